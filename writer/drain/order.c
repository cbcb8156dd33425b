/*
 * Rings that are read by the times of their records: with -c one record at a time, for a process
 * with a backlog a portion at a time.
 */
#include "order.h"

#include <stdlib.h>

#include "backlog.h"
#include "calls.h"
#include "commit.h"
#include "copy.h"
#include "tracks.h"

/* ns: longer calls get their first line without what their arguments point to */
#define PATIENCE	100000000u
#define PATIENCE_URGENT 2000000u /* the same, while a ring fills */

#define TURN	(1u << 20) /* bytes read of a process with a backlog before others' turn comes */
#define PORTION 8192u	   /* bytes of a ring, before the next one's */

/* ---- -c ---- */

/*
 * A call whose last record is still to come holds up all others for a short while, a very short one
 * when a ring fills.
 */
static bool waits(const struct xs_track *track, uint64_t now, uint64_t patience)
{
	const struct xs_timeline *clock = &track->process->run->clock;
	struct xs_record record;
	uint32_t size = xs_record_at(&record, track, track->pos, track->head, XS_RECORD_GLANCE);
	uint64_t since;

	if (!size || record.event.tick > now || !xs_calls_incomplete(track, &record.event, size))
		return false;
	since = record.event.tick;
	if (record.event.kind == XS_CALL) { /* the thread is just about to say it */
		since += record.call.duration < now - since ? record.call.duration : now - since;
		patience = PATIENCE;
	}
	return xs_timeline_ns(clock, now) < xs_timeline_ns(clock, since) + patience;
}

struct ordered {
	struct xs_track *track;
	uint64_t time; /* of its next record; UINT64_MAX: it has none */
};

static void look_at(struct ordered *one)
{
	struct xs_record record;
	uint32_t size = xs_record_at(&record, one->track, one->track->pos, one->track->head,
				     XS_RECORD_GLANCE);

	/* a spoilt ring is read at once, and the reader rejects it */
	one->time = size ? xs_calls_time_of(one->track, &record, size)
		    : one->track->pos == one->track->head ? UINT64_MAX
							  : 0;
}

/* The one with the earliest record, and when the next of the others has its own. */
static struct ordered *earliest(struct ordered *list, uint32_t count, uint64_t *ret_next)
{
	struct ordered *first = &list[0];

	*ret_next = UINT64_MAX;
	for (uint32_t i = 1; i < count; i++) {
		struct ordered *one = &list[i];

		if (one->time < first->time) {
			*ret_next = first->time;
			first = one;
		} else if (one->time < *ret_next) {
			*ret_next = one->time;
		}
	}
	return first;
}

uint64_t xs_tracks_read_in_order(struct xs_process *process, bool all)
{
	uint64_t now = xs_tick(process->run->use_tsc), next, read = 0;
	struct ordered *list = calloc(process->track_count + 1, sizeof(*list));
	uint64_t patience = all ? 0 : xs_process_urgent(process) ? PATIENCE_URGENT : PATIENCE;
	bool waiting = false;

	if (!list)
		return 0;
	for (uint32_t i = 0; i < process->track_count; i++) {
		list[i].track = process->tracks[i];
		xs_track_begin(list[i].track);
		look_at(&list[i]);
	}
	while (process->track_count && !waiting) {
		struct ordered *one = earliest(list, process->track_count, &next);

		/*
		 * what is later than `now` may have something earlier beside it in a ring that was
		 * looked at before
		 */
		if (one->time == UINT64_MAX || (!all && one->time > now))
			break;
		/* the loop has others to look at, too */
		if (read >= TURN && !all && xs_process_is_behind(process))
			break;
		do {
			uint64_t from = one->track->pos;

			waiting = patience && waits(one->track, now, patience);
			if (waiting)
				break;
			xs_track_next(one->track);
			read += one->track->pos - from;
			look_at(one);
		} while (one->time <= next && one->time != UINT64_MAX && (all || one->time <= now));
	}
	free(list);
	return read;
}

/* ---- a backlog ---- */

/* The one whose next record is the oldest; NULL: all are read. */
static struct xs_track *oldest(const struct xs_process *process)
{
	struct xs_track *first = NULL;
	uint64_t least = UINT64_MAX;
	struct xs_record record;

	record.event.tick = 0;
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];
		uint32_t size =
			xs_record_at(&record, track, track->pos, track->head, sizeof(record.event));

		if (track->pos == track->head)
			continue;
		/* a spoilt one is read at once, and the reader rejects it */
		if (!first || !size || record.event.tick < least) {
			least = size ? record.event.tick : 0;
			first = track;
		}
	}
	return first;
}

uint64_t xs_tracks_catch_up(struct xs_process *process, bool all)
{
	struct xs_track *track;
	uint64_t read = 0;

	for (uint32_t i = 0; i < process->track_count; i++)
		xs_track_begin(process->tracks[i]);
	/* what belongs together lies in several rings: they are read at the same time of theirs */
	while ((all || read < TURN) && (track = oldest(process)))
		read += xs_track_read(track, PORTION);
	return read;
}

/* ---- both ---- */

uint64_t xs_tracks_read_until(const struct xs_process *process)
{
	uint64_t until = process->pass_tick;
	struct xs_record record;

	record.event.tick = 0;
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];

		if (track->pos == track->head)
			continue;
		/* what is behind a record was written later */
		if (!xs_record_at(&record, track, track->pos, track->head, sizeof(record.event)))
			return 0;
		if (record.event.tick <= until)
			until = record.event.tick ? record.event.tick - 1 : 0;
	}
	return until;
}
