/*
 * Times of not recording. The run lists its own, and each traced process lists its: each pause with
 * its two ticks.
 */
#include "pauses.h"

static const struct xs_pauses *pauses_of(const struct xs_process *process, unsigned list)
{
	switch (list) {
	case XS_PAUSES_OF_RUN:
		return &process->run->control->pauses;
	case XS_PAUSES_OF_HOST:
		return &process->run->control->host_pauses;
	default:
		return &process->file->pauses;
	}
}

uint32_t xs_pause_count(const struct xs_process *process, unsigned list)
{
	/* pairs with the release in xs_pauses_begin() */
	return atomic_load_explicit(&pauses_of(process, list)->count, memory_order_acquire);
}

/*
 * When a pause begins or ends. A process lists its own where others may write: none lies before the
 * run.
 */
static uint64_t tick_of(const struct xs_process *process, const _Atomic uint64_t *place)
{
	/* pairs with the release of a pause's end */
	uint64_t tick = atomic_load_explicit(place, memory_order_acquire);

	return tick < process->run->began ? process->run->began : tick;
}

/* The first one of the list that the track is not past; *ret_from UINT64_MAX: there is none. */
static void next_pause(struct xs_track *track, unsigned list, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct xs_pauses *pauses = pauses_of(track->process, list);
	uint32_t count = xs_pause_count(track->process, list), at;

	*ret_from = *ret_to = UINT64_MAX;
	if ((int32_t)(count - track->cuts[list]) <= 0)
		return;
	if (count - track->cuts[list] > XS_PAUSES)
		track->cuts[list] = count - XS_PAUSES; /* older ones are forgotten */
	at = track->cuts[list] % XS_PAUSES;
	*ret_to = tick_of(track->process, &pauses->last[at].to);
	*ret_from = tick_of(track->process, &pauses->last[at].from);
}

unsigned xs_pause_first(struct xs_track *track, uint64_t *ret_from, uint64_t *ret_to)
{
	unsigned first = 0;
	uint64_t to;

	*ret_from = *ret_to = UINT64_MAX;
	for (unsigned list = 0; list < XS_PAUSE_LISTS; list++) {
		uint64_t from;

		next_pause(track, list, &from, &to);
		if (from < *ret_from)
			*ret_from = from;
		if (to < *ret_to || !list) {
			*ret_to = to;
			first = list;
		}
	}
	return first;
}

uint64_t xs_process_paused_after(const struct xs_process *process, uint64_t tick)
{
	uint64_t first = UINT64_MAX;

	/* of the host alone: no work ends there */
	for (unsigned list = 0; list < XS_PAUSES_OF_HOST; list++) {
		const struct xs_pauses *pauses = pauses_of(process, list);
		uint32_t count = xs_pause_count(process, list);

		for (uint32_t i = 0; i < count && i < XS_PAUSES; i++) {
			uint64_t from = tick_of(process, &pauses->last[i].from);

			if (from < first && tick_of(process, &pauses->last[i].to) > tick)
				first = from;
		}
	}
	return first;
}

bool xs_process_was_paused(const struct xs_process *process, uint64_t ns)
{
	for (unsigned list = 0; list < XS_PAUSE_LISTS; list++) {
		const struct xs_pauses *pauses = pauses_of(process, list);
		uint32_t count = xs_pause_count(process, list);

		for (uint32_t n = 1; n <= count && n <= XS_PAUSES; n++) {
			uint32_t at = (count - n) % XS_PAUSES;
			uint64_t from = tick_of(process, &pauses->last[at].from),
				 to = tick_of(process, &pauses->last[at].to);

			if (to != UINT64_MAX && xs_process_ns(process, to) <= ns)
				break; /* those before ended before */
			if (xs_process_ns(process, from) <= ns)
				return true;
		}
	}
	return false;
}
