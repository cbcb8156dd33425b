/*
 * Reading tracks: see tracks.c.
 */
#ifndef XS_TRACKS_H
#define XS_TRACKS_H

#include "track.h"

#define XS_SKEW (1ull << 33) /* ticks: some seconds; clocks of processors differ by less */

/* How much the ring holds by now: track->head. */
void xs_track_begin(struct xs_track *track);
/* Reads up to there, but not much more than `most` bytes; returns how many. */
uint64_t xs_track_read(struct xs_track *track, uint64_t most);
/* One record, while track->pos is not there yet. */
void xs_track_next(struct xs_track *track);
/* The first event of a process that is to be shown: opens the sinks that wait for one. */
void xs_tracks_first_event(struct xs_process *process);
/* Tells the sinks what the threads are called whose records come next. */
void xs_tracks_name_threads(struct xs_process *process);
/* Records in memory of our own, known to be whole, are read as if they came from the ring. */
void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length);

#endif
