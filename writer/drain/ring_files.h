/*
 * The files of a process's rings, all that there are.
 */
#ifndef XS_RING_FILES_H
#define XS_RING_FILES_H

#include "traced.h"

/* Does what its header says of its rings fit it? That was read once: it may change at any time. */
bool xs_mapped_is_valid(const struct xs_mapped *file);
/* Rings that threads took since the last look. What cannot be read of them is noted (unread.h). */
void xs_process_find_tracks(struct xs_process *process);

#endif
