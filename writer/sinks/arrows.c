/*
 * Arrows between calls and device work: from the call that enqueued it and from that which
 * submitted it, and to the one that waited for it (waits.c).
 *
 * The work's record may be read before the call's, which is in another ring. Its arrow waits on the
 * call's track, so that whatever is the last thing to reach the file (a full disk), no arrow starts
 * from nothing, or leads there.
 */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "chrome.h"
#include "device_record.h"

#define MAX_WAITING 65536u /* on one track; more are written at once */
#define FAR	    1024u  /* so are those that belong before so many others */

/* What both ends of an arrow say behind their times: at most XS_CHUNK bytes. */
static inline char *put_rest(char *o, uint64_t id, enum xs_arrow_kind kind)
{
	static const char rest[][40] = {
		[XS_ARROW_ENQUEUE] = ",\"cat\":\"flow\",\"name\":\"dep\"},\n",
		[XS_ARROW_SUBMIT] = ",\"cat\":\"flow\",\"name\":\"submit\"},\n",
		[XS_ARROW_WAIT] = ",\"cat\":\"flow\",\"name\":\"wait\"},\n",
		[XS_ARROW_KINETO] = ",\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n",
	};

	return xs_put(xs_put_count(o, ",\"id\":", id), rest[kind]);
}

/* From the time of its beginning on: the rest of an arrow, which ends on the track `to`. */
static char *put_both(char *o, struct xs_json_clock *clock, const struct xs_arrow *arrow,
		      uint64_t id, uint64_t from, uint64_t until, const struct xs_own *to)
{
	char *rest = xs_json_time(o, from, clock);
	size_t length;

	o = put_rest(rest, id, arrow->kind);
	length = (size_t)(o - rest);
	o = xs_json_time(xs_chrome_put_chunks(o, to->arrow, to->arrow_length), until, clock);
	memcpy(o, rest, XS_CHUNK);
	return o + length;
}

static uint64_t id_of(const struct xs_process *process, const struct xs_arrow *arrow)
{
	return xs_arrow_id(process, xs_backend_of(arrow->source)->arrows,
			   (uint32_t)arrow->kind << 27 | (arrow->id & 0x7ffffff));
}

static void write_back(struct xs_process *process, const struct xs_arrow *arrow)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	const struct xs_own *own = xs_chrome_own(chrome, arrow->pid, arrow->tid);
	uint64_t id = id_of(process, arrow);
	char *o = xs_output_put(&chrome->out), *phase = o + sizeof("{\"ph\":\"") - 1;

	o = xs_chrome_put_chunks(o, own->text, own->length);
	*phase = 's'; /* both begin as slices do */
	own = xs_chrome_own(chrome, (uint32_t)process->pid, arrow->host_tid);
	o = put_both(o, &chrome->time, arrow, id, arrow->device, arrow->host, own);
	xs_chrome_finish(chrome, o);
}

void xs_arrow_between(struct xs_process *process, uint8_t source, uint32_t number,
		      const struct xs_arrow_end *from, const struct xs_arrow_end *to)
{
	static const char rest[] = ",\"cat\":\"flow\",\"name\":\"order\"},\n";
	const struct xs_arrow arrow = { .id = number, .kind = XS_ARROW_ORDER, .source = source };
	struct xs_chrome *chrome = xs_chrome_of(process);
	const struct xs_own *own = xs_chrome_own(chrome, from->pid, from->tid);
	uint64_t start = from->ns < to->ns ? from->ns : to->ns, id = id_of(process, &arrow);
	char *o = xs_output_put(&chrome->out), *phase = o + sizeof("{\"ph\":\"") - 1;

	o = xs_chrome_put_chunks(o, own->text, own->length);
	*phase = 's'; /* both begin as slices do */
	o = xs_put_count(xs_json_time(o, start, &chrome->time), ",\"id\":", id);
	o = xs_put(o, rest);
	own = xs_chrome_own(chrome, to->pid, to->tid);
	o = xs_chrome_put_chunks(o, own->arrow, own->arrow_length);
	o = xs_put_count(xs_json_time(o, to->ns, &chrome->time), ",\"id\":", id);
	xs_chrome_finish(chrome, xs_put(o, rest));
}

/* track: the calling thread's; NULL: it has none. */
static void write_arrow(struct xs_process *process, const struct xs_track *track,
			const struct xs_arrow *arrow)
{
	uint64_t pid = (uint32_t)process->pid, id = id_of(process, arrow);
	struct xs_chrome *chrome = xs_chrome_of(process);
	const struct xs_own *own;
	char *o = xs_output_put(&chrome->out), *phase = o + sizeof("{\"ph\":\"") - 1;

	if (arrow->kind == XS_ARROW_WAIT) {
		write_back(process, arrow);
		return;
	}
	if (!track) {
		own = xs_chrome_own(chrome, pid, arrow->host_tid);
		o = xs_chrome_put_chunks(o, own->text, own->length);
	} else {
		const struct xs_chrome_track *caller = xs_chrome_track(track);

		memcpy(o, caller->prefix, sizeof(caller->prefix)); /* of a fixed size: no call */
		o += caller->prefix_length;
	}
	*phase = 's'; /* both begin as slices do */
	own = xs_chrome_own(chrome, arrow->pid, arrow->tid);
	o = put_both(o, &chrome->time, arrow, id, arrow->host, arrow->device, own);
	xs_chrome_finish(chrome, o);
}

static struct xs_track *track_of(struct xs_process *process, uint32_t tid)
{
	uint32_t at = xs_chrome_of(process)->last_caller, count = process->track_count;

	for (uint32_t i = 0; i < count; i++, at = at + 1 < count ? at + 1 : 0) {
		if (at < count && process->tracks[at]->tid == tid) {
			xs_chrome_of(process)->last_caller = at;
			return process->tracks[at];
		}
	}
	return NULL;
}

/* Room behind the last of those that wait. */
static bool make_room(struct xs_chrome_track *own)
{
	uint32_t waiting = own->arrow_end - own->arrow_first;
	struct xs_arrow *grown;

	if (own->arrow_end < own->arrow_room)
		return true;
	if (waiting <= own->arrow_room / 2) {
		if (waiting)
			memmove(own->arrows, own->arrows + own->arrow_first,
				waiting * sizeof(*grown));
		own->arrow_first = 0;
		own->arrow_end = waiting;
		if (own->arrow_room)
			return true;
	}
	grown = realloc(own->arrows, (own->arrow_room ? 2 * own->arrow_room : 16) * sizeof(*grown));
	if (!grown)
		return false;
	own->arrows = grown;
	own->arrow_room = own->arrow_room ? 2 * own->arrow_room : 16;
	return true;
}

/*
 * Those that wait lie in the order in which their calls end; what the device completes comes nearly
 * so.
 */
static bool wait_for_call(const struct xs_track *track, const struct xs_arrow *arrow)
{
	struct xs_chrome_track *own = xs_chrome_track(track);
	uint32_t low, high;

	if (track->last_ns >= arrow->after || own->arrow_end - own->arrow_first == MAX_WAITING ||
	    !make_room(own))
		return false;
	low = high = own->arrow_end;
	for (uint32_t step = 1; low > own->arrow_first && own->arrows[low - 1].after > arrow->after;
	     step *= 2) {
		high = low;
		low = low - own->arrow_first > step ? low - step : own->arrow_first;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (own->arrows[middle].after > arrow->after)
			high = middle;
		else
			low = middle + 1;
	}
	if (own->arrow_end - low > FAR)
		return false;
	memmove(&own->arrows[low + 1], &own->arrows[low], (own->arrow_end - low) * sizeof(*arrow));
	own->arrows[low] = *arrow;
	own->arrow_end++;
	return true;
}

void xs_arrow_put(struct xs_process *process, const struct xs_arrow *arrow)
{
	struct xs_track *track = track_of(process, arrow->host_tid);

	if (!track || !wait_for_call(track, arrow))
		write_arrow(process, track, arrow);
}

void xs_arrow_add(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		  uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	const bool kineto = xs_chrome_of(process)->kineto;
	struct xs_arrow arrow = {
		.kind = kineto ? XS_ARROW_KINETO : XS_ARROW_ENQUEUE,
		.host = work->host_start,
		.device = work->start,
		.after = work->host_end,
		.pid = pid,
		.tid = tid,
		.id = record->id,
		.host_tid = record->tid,
		.source = record->event.source,
	};

	xs_arrow_put(process, &arrow);
	if (kineto || !(record->event.flags & XS_DEVICE_FLAG_TICKS) || !record->submitter ||
	    record->submit == record->event.tick)
		return;
	/* it lies inside the call that submitted, the end of which is not known */
	arrow.kind = XS_ARROW_SUBMIT;
	arrow.host = work->submit;
	arrow.after = work->submit + 1;
	arrow.host_tid = (uint32_t)record->submitter;
	if (arrow.host <= arrow.device)
		xs_arrow_put(process, &arrow);
}

void xs_arrows_flush(struct xs_track *track, uint64_t ns)
{
	struct xs_chrome_track *own = xs_chrome_track(track);

	while (own->arrow_first < own->arrow_end && own->arrows[own->arrow_first].after <= ns)
		write_arrow(track->process, track, &own->arrows[own->arrow_first++]);
}
