/*
 * From files of the run directory to processes and tracks.
 */
#ifndef XS_ADOPT_H
#define XS_ADOPT_H

#include "traced.h"
#include "track.h"

/* Maps a process's file; NULL when it is not ready (errno EAGAIN) or no such file can be used. */
struct xs_process *xs_process_adopt(struct xs_run *run, const char *name);
/*
 * --recover: a process without rings, whose file is spoilt or gone, and whose trace is to be
 * closed. NULL: there is no trace of it.
 */
struct xs_process *xs_process_left(struct xs_run *run, int32_t pid, uint32_t serial);

#endif
