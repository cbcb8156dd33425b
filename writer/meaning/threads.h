/*
 * Counts of the threads that a ring was, one after the other.
 */
#ifndef XS_THREADS_H
#define XS_THREADS_H

#include "track.h"

/* Records of the process that were read so far. */
uint64_t xs_process_events(const struct xs_process *process);

/* The ring is another thread's from here on: counts of its own. */
void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name);
/* The thread is done with the ring, or the process is. lost: the ring's count. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost);
/*
 * Overwrite, at the end of the trace: records that are given up, of whichever thread, that no trace
 * has told.
 */
void xs_track_close_given_up(struct xs_track *track);
/* How many these are. */
uint64_t xs_ring_given_up(const struct xs_ring *ring);

/* An XS_THREAD_NAMED record: the program's name for a thread, which may be unknown yet. */
void xs_thread_named(struct xs_process *process, const struct xs_event *event, uint32_t size);
/* What the program calls the thread, an id; 0: it has not said. */
uint32_t xs_thread_given(const struct xs_process *process, uint32_t tid);

#endif
