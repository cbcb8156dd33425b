/*
 * The files of a process's rings, all that there are.
 */
#ifndef XS_RING_FILES_H
#define XS_RING_FILES_H

#include "traced.h"

/*
 * Does what its header says of its rings fit it? That was read once: it may change at any time.
 * Their number is put right where the rest fits, and is one of process->corrupt.
 */
bool xs_mapped_is_valid(struct xs_process *process, struct xs_mapped *file);
/*
 * Rings that threads took since the last look. What cannot be read of them is noted (unread.h).
 * last: nobody looks again, so those are found, too, of which the process's file does not say that
 * they are used; each such word is one of process->corrupt.
 */
void xs_process_find_tracks(struct xs_process *process, bool last);

#endif
