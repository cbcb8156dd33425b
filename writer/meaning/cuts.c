/*
 * Ends that nobody has recorded: of tasks that are open when a thread or a process ends, and of
 * what is open when a time of not recording begins. A track is past a pause once it has read a
 * record from behind it.
 */
#include "cuts.h"

#include "extras.h"
#include "itt.h"
#include "output.h"
#include "pauses.h"
#include "sink.h"
#include "tasks.h"

/* Events have no domain. */
static bool is_event(const struct xs_open *task)
{
	return !task->name.scope;
}

/* An open task that nobody will end. Events are marks then, unless their ends may be lost. */
static void close_one(struct xs_track *track, struct xs_open *task, uint64_t end)
{
	struct xs_process *process = track->process;

	if (is_event(task) && task->start > track->lost_ns) {
		const struct xs_mark mark = { .tid = track->tid,
					      .name = task->name.id,
					      .ns = task->start,
					      .extra = task->extra };

		XS_TELL_SINKS(process, mark, process, &mark);
		xs_extra_drop(process, task);
	} else {
		xs_itt_end(track, task, end, false, true);
	}
}

static void make_room(struct xs_track *track)
{
	struct xs_process *process = track->process;

	if (process->out && xs_output_full(process->out)) {
		track->dirty = true;
		process->commit(process);
	}
}

void xs_track_close(struct xs_track *track, uint64_t end)
{
	track->too_deep = 0;
	while (track->depth) {
		struct xs_open *task = &track->open[--track->depth];

		if (task->lost)
			continue;
		close_one(track, task, end > task->start ? end : task->start);
		make_room(track);
	}
}

void xs_track_lose(struct xs_track *track, uint32_t count)
{
	uint32_t unseen = track->too_deep < count ? (uint32_t)track->too_deep : count, events = 0;
	struct xs_open task;

	track->lost_here = true;
	track->too_deep -= unseen;
	count -= unseen;
	for (uint32_t at = track->depth; at && count && events < XS_SEARCH_MAX; at--) {
		task = track->open[at - 1];
		if (is_event(&task)) {
			events++;
			continue;
		}
		if (task.lost) {
			count -= xs_track_end_lost(track, at - 1, count);
			continue;
		}
		count--;
		xs_track_take(track, at - 1);
		xs_itt_end(track, &task, task.start > track->last_ns ? task.start : track->last_ns,
			   events > 0, true);
		make_room(track);
	}
}

/* ---- pauses ---- */

/*
 * Ends tasks that are open now at `from`: their real ends are unknown. Records that raced with the
 * pause still lie inside them; calls, where only the host's tasks were not recorded, do not.
 */
static void close_at_pause(struct xs_track *track, unsigned list, uint64_t from)
{
	bool after = list == XS_PAUSES_OF_HOST && track->last_ns == track->call_end;
	uint64_t end = xs_process_ns(track->process, from);

	if (end > track->process->horizon) /* no pause begins later than now */
		end = track->last_ns;
	xs_track_close(track, end > track->last_ns || after ? end : track->last_ns);
}

/* A record of that time is next: ends what was open at the pauses before it. */
void xs_track_cut(struct xs_track *track, uint64_t tick)
{
	uint64_t from, to;

	/* there are no more, unless a process adds to the list while it is read */
	for (unsigned most = XS_PAUSE_LISTS * XS_PAUSES; most; most--) {
		unsigned list = xs_pause_first(track, &from, &to);

		track->cut_at = to;
		if (to == UINT64_MAX || to > tick)
			return;
		/*
		 * not, in a recovered track, those from after a pause that the killed drain process
		 * had seen
		 */
		if (track->depth &&
		    track->open[track->depth - 1].start < xs_process_ns(track->process, to))
			close_at_pause(track, list, from);
		track->cut_to = to;
		track->cuts[list]++;
	}
}

uint64_t xs_track_paused_in(const struct xs_track *track, uint64_t tick, uint64_t duration)
{
	uint64_t from = xs_process_paused_after(track->process, tick);

	return from < tick + duration ? from : UINT64_MAX;
}

void xs_track_look_for_pauses(struct xs_track *track)
{
	bool more = false;

	for (unsigned list = 0; list < XS_PAUSE_LISTS; list++)
		more |= xs_pause_count(track->process, list) != track->cuts[list];
	if (more)
		xs_track_cut(track, 0);
}

void xs_track_cut_last(struct xs_track *track)
{
	uint64_t from, to;
	unsigned list;

	xs_track_cut(track, UINT64_MAX);
	list = xs_pause_first(track, &from, &to);
	if (from != UINT64_MAX)
		close_at_pause(track, list, from);
}
