/*
 * Times of not recording: what is open when one begins ends there, in the trace.
 *
 * The traced processes list their pauses, each with its two ticks; a track is past a pause once it
 * has read a record from behind it.
 */
#include "pauses.h"

#include "records.h"

enum { PAUSES_OF_RUN, PAUSES_OF_PROCESS, PAUSE_LISTS };

static const struct xs_pauses *pauses_of(const struct xs_process *process, unsigned list)
{
	return list == PAUSES_OF_RUN ? &process->run->control->pauses : &process->file->pauses;
}

static uint32_t pause_count(const struct xs_process *process, unsigned list)
{
	/* pairs with the release in xs_pauses_begin() */
	return atomic_load_explicit(&pauses_of(process, list)->count, memory_order_acquire);
}

/* The first one of the list that the track is not past; *ret_from UINT64_MAX: there is none. */
static void next_pause(struct xs_track *track, unsigned list, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct xs_pauses *pauses = pauses_of(track->process, list);
	uint32_t count = pause_count(track->process, list), at;

	*ret_from = *ret_to = UINT64_MAX;
	if ((int32_t)(count - track->cuts[list]) <= 0)
		return;
	if (count - track->cuts[list] > XS_PAUSES)
		track->cuts[list] = count - XS_PAUSES; /* older ones are forgotten */
	at = track->cuts[list] % XS_PAUSES;
	*ret_to = atomic_load_explicit(&pauses->last[at].to, memory_order_acquire);
	*ret_from = atomic_load_explicit(&pauses->last[at].from, memory_order_relaxed);
}

/*
 * The one that ends first, of both lists; returns which list has it. Where the two overlap, it
 * began when the first of them did.
 */
static unsigned first_pause(struct xs_track *track, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t from[PAUSE_LISTS], to[PAUSE_LISTS];
	unsigned list;

	next_pause(track, PAUSES_OF_RUN, &from[PAUSES_OF_RUN], &to[PAUSES_OF_RUN]);
	next_pause(track, PAUSES_OF_PROCESS, &from[PAUSES_OF_PROCESS], &to[PAUSES_OF_PROCESS]);
	list = to[PAUSES_OF_RUN] <= to[PAUSES_OF_PROCESS] ? PAUSES_OF_RUN : PAUSES_OF_PROCESS;
	*ret_from = from[0] < from[1] ? from[0] : from[1];
	*ret_to = to[list];
	return list;
}

/*
 * Ends tasks that are open now at `from`: their real ends are unknown. Records that raced with the
 * pause still lie inside them.
 */
static void close_at_pause(struct xs_track *track, uint64_t from)
{
	uint64_t end = xs_process_ns(track->process, from);

	xs_track_close(track, UINT32_MAX, end > track->last_ns ? end : track->last_ns);
}

/* A record of that time is next: ends what was open at the pauses before it. */
void xs_track_cut(struct xs_track *track, uint64_t tick)
{
	uint64_t from, to;

	/* there are no more, unless a process adds to the list while it is read */
	for (unsigned most = PAUSE_LISTS * XS_PAUSES; most; most--) {
		unsigned list = first_pause(track, &from, &to);

		track->cut_at = to;
		if (to == UINT64_MAX || to > tick)
			return;
		/*
		 * not, in a recovered track, those from after a pause that the killed drain process
		 * had seen
		 */
		if (track->depth &&
		    track->open[track->depth - 1].start < xs_process_ns(track->process, to))
			close_at_pause(track, from);
		track->cut_to = to;
		track->cuts[list]++;
	}
}

uint64_t xs_process_paused_after(const struct xs_process *process, uint64_t tick)
{
	uint64_t first = UINT64_MAX;

	for (unsigned list = 0; list < PAUSE_LISTS; list++) {
		const struct xs_pauses *pauses = pauses_of(process, list);
		uint32_t count = pause_count(process, list);

		for (uint32_t i = 0; i < count && i < XS_PAUSES; i++) {
			uint64_t from =
				atomic_load_explicit(&pauses->last[i].from, memory_order_relaxed);

			if (from < first &&
			    atomic_load_explicit(&pauses->last[i].to, memory_order_relaxed) > tick)
				first = from;
		}
	}
	return first;
}

uint64_t xs_track_cut_short(struct xs_track *track, uint64_t tick, uint64_t duration)
{
	uint64_t from;

	if (track->cut_at <= tick + duration)
		xs_track_cut(track, tick + duration);
	if (tick >= track->cut_to)
		return UINT64_MAX;
	from = xs_process_paused_after(track->process, tick);
	return from < tick + duration ? from : UINT64_MAX;
}

void xs_track_look_for_pauses(struct xs_track *track)
{
	if (pause_count(track->process, PAUSES_OF_RUN) != track->cuts[PAUSES_OF_RUN] ||
	    pause_count(track->process, PAUSES_OF_PROCESS) != track->cuts[PAUSES_OF_PROCESS])
		xs_track_cut(track, 0);
}

void xs_track_cut_last(struct xs_track *track)
{
	uint64_t from, to;

	xs_track_cut(track, UINT64_MAX);
	(void)first_pause(track, &from, &to);
	if (from != UINT64_MAX)
		close_at_pause(track, from);
}
