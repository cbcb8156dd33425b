/*
 * --delay and --duration: when the run records.
 */
#ifndef XS_WINDOW_H
#define XS_WINDOW_H

#include "run.h"

struct xs_window {
	uint64_t begin, end; /* CLOCK_MONOTONIC; 0: it has come, or there is none */
};

void xs_window_set(struct xs_window *window, const struct xs_run *run);
/* Does what is due; returns how long to sleep at most, so that the next is done in time. */
uint64_t xs_window_follow(struct xs_window *window, const struct xs_run *run);

#endif
