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
/*
 * Of one of its files (segment 0: the first) the first `used` rings become tracks, but for those
 * that are. 0 or -errno: not all of them.
 */
int xs_process_find_in(struct xs_process *process, struct xs_mapped *file, uint32_t segment,
		       uint32_t used);

/* ---- ring_files.c ---- */

/* Does what its header says of its rings fit it? That was read once: it may change at any time. */
bool xs_mapped_is_valid(const struct xs_mapped *file);
/* Rings that threads took since the last look. What cannot be read of them is noted (unread.h). */
void xs_process_find_tracks(struct xs_process *process);

#endif
