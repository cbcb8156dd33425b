/*
 * Times by clocks of the application's own (ITT's clock domains). The traced process tells each of
 * them twice: as a tick, and as ns of that clock (XS_OWN_TIME, just before). Where a clock cannot
 * be placed, because nobody knows what it counts from, the ticks are those of the calls; then its
 * zero is put where its first time that we see is that of its call, or where an open task has put
 * it, once for all: its slices keep their lengths, and lie to each other as the application says.
 */
#include "own_clock.h"
#include "task_record.h"

#include <stdlib.h>

/* ns: what lies farther from its call is no time, and is put there */
#define FAR (30ull * 86400 * 1000000000)

/* Where the application's clocks are shown that cannot be placed. */
struct xs_own_clocks {
	struct {
		bool known;
		uint64_t zero; /* ns in the trace */
	} of[XS_OWN_CLOCKS];
};

void xs_own_time_read(struct xs_track *track, const struct xs_own_time_record *record,
		      uint32_t size)
{
	if (size < sizeof(*record))
		return;
	if (!track->own_time)
		track->own_time = malloc(sizeof(*track->own_time));
	if (track->own_time)
		*track->own_time = (struct xs_own_time){ .tick = record->event.tick,
							 .ns = record->ns,
							 .clock = record->event.name,
							 .placed = record->event.flags };
}

/* Has the record that? It is no other's then. */
static bool take(struct xs_track *track, const struct xs_event *event, struct xs_own_time *ret)
{
	if (!track->own_time)
		return false;
	*ret = *track->own_time;
	track->own_time->tick = 0;
	return ret->tick == event->tick && ret->tick;
}

/* Where the clock's zero is, as far as that can be said: ns is that of a call with this time. */
static uint64_t zero_of(const struct xs_track *track, const struct xs_own_time *time, uint64_t ns)
{
	for (uint32_t i = track->depth; i; i--) {
		const struct xs_open *task = &track->open[i - 1];

		if (task->extra && task->extra->began.tick && task->extra->began.placed &&
		    task->extra->began.clock == time->clock)
			return task->start - task->extra->began.ns;
	}
	return ns - time->ns;
}

static uint64_t xs_put(struct xs_track *track, const struct xs_own_time *time, uint64_t ns)
{
	struct xs_process *process = track->process;
	uint64_t at;

	if (!process->own_clocks)
		process->own_clocks = calloc(1, sizeof(*process->own_clocks));
	if (time->clock >= XS_OWN_CLOCKS || !process->own_clocks)
		return ns;
	if (!process->own_clocks->of[time->clock].known)
		process->own_clocks->of[time->clock].zero = zero_of(track, time, ns);
	process->own_clocks->of[time->clock].known = true;
	at = process->own_clocks->of[time->clock].zero + time->ns;
	/* nor what lies before the trace's first day */
	return at - ns + FAR < 2 * FAR && !(at >> 63) ? at : ns;
}

uint64_t xs_own_time_begin(struct xs_track *track, const struct xs_event *event,
			   struct xs_open *task, uint64_t ns)
{
	struct xs_own_time time;

	if (!take(track, event, &time) || !xs_extra_of(track->process, task))
		return ns;
	task->extra->began = time;
	task->extra->unplaced = !time.placed;
	return time.placed ? ns : xs_put(track, &time, ns);
}

uint64_t xs_own_time_end(struct xs_track *track, const struct xs_event *event, struct xs_open *task,
			 uint64_t ns)
{
	struct xs_extra *extra = task->extra;
	struct xs_own_time time;
	uint64_t length;

	if (!take(track, event, &time) || !extra)
		return ns;
	if (!extra->began.tick || extra->began.clock != time.clock || time.clock >= XS_OWN_CLOCKS ||
	    time.placed == extra->began.placed) {
		extra->unplaced |= !time.placed;
		return time.placed ? ns : xs_put(track, &time, ns);
	}
	/*
	 * the clock turned out to be another one while the task was open: only its length is known
	 */
	extra->unplaced = true;
	length = time.ns - extra->began.ns;
	if (length > FAR)
		return ns;
	if (time.placed && ns >= length)
		task->start = ns - length;
	return task->start + length;
}
