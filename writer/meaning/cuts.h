/*
 * Ends that nobody has recorded: see cuts.c.
 */
#ifndef XS_CUTS_H
#define XS_CUTS_H

#include "track.h"

/* All open tasks end there, though nobody ended them. */
void xs_track_close(struct xs_track *track, uint64_t end);
/* Here records are lost, among them the ends of the `count` innermost open tasks. */
void xs_track_lose(struct xs_track *track, uint32_t count);
/*
 * Are there pauses that the track is not past? To be asked after the ring's head was read: who
 * wrote behind a pause had seen its end.
 */
void xs_track_look_for_pauses(struct xs_track *track);
/* A record of that tick is next: ends what was open at the pauses before it. */
void xs_track_cut(struct xs_track *track, uint64_t tick) __attribute__((cold));
/* The process has ended: the same for all pauses, also for one that has not ended. */
void xs_track_cut_last(struct xs_track *track);
/* When recording was first off in the time from `tick` on; UINT64_MAX: never. */
uint64_t xs_track_paused_in(const struct xs_track *track, uint64_t tick, uint64_t duration)
	__attribute__((cold));
/*
 * For a record that is written at its end, of something that began at `tick` and took `duration`:
 * when it is to end in the trace if recording was off in between, so that it stays inside the tasks
 * around it; else UINT64_MAX.
 */
static inline uint64_t xs_track_cut_short(struct xs_track *track, uint64_t tick, uint64_t duration)
{
	if (__builtin_expect(track->cut_at <= tick + duration, 0))
		xs_track_cut(track, tick + duration);
	return __builtin_expect(tick >= track->cut_to, 1)
		       ? UINT64_MAX
		       : xs_track_paused_in(track, tick, duration);
}

#endif
