/*
 * Reading tracks in the order of time: see order.c.
 */
#ifndef XS_ORDER_H
#define XS_ORDER_H

#include "traced.h"

/*
 * Instead of xs_track_read() for each ring: all of them in the order of time. Returns the bytes
 * read.
 */
uint64_t xs_tracks_read_in_order(struct xs_process *process, bool all);
/* The same for a process with a backlog (xs_process_is_behind()); all: to the very end. */
uint64_t xs_tracks_catch_up(struct xs_process *process, bool all);
/* Up to which tick all has been read; process->pass_tick at most. */
uint64_t xs_tracks_read_until(const struct xs_process *process);

#endif
