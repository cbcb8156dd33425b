/*
 * Ends that nobody has recorded: see cuts.c.
 */
#ifndef XS_CUTS_H
#define XS_CUTS_H

#include "track.h"

/* The innermost `count` open tasks end there, though nobody ended them. */
void xs_track_close(struct xs_track *track, uint32_t count, uint64_t end);
/*
 * Are there pauses that the track is not past? To be asked after the ring's head was read: who
 * wrote behind a pause had seen its end.
 */
void xs_track_look_for_pauses(struct xs_track *track);
/* A record of that tick is next: ends what was open at the pauses before it. */
void xs_track_cut(struct xs_track *track, uint64_t tick) __attribute__((cold));
/* The process has ended: the same for all pauses, also for one that has not ended. */
void xs_track_cut_last(struct xs_track *track);
/*
 * For a record that is written at its end, of something that began at `tick` and took `duration`:
 * when it is to end in the trace if recording was off in between, so that it stays inside the tasks
 * around it; else UINT64_MAX.
 */
uint64_t xs_track_cut_short(struct xs_track *track, uint64_t tick, uint64_t duration);

#endif
