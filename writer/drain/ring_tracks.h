/*
 * From a file of rings to tracks, and to what is kept of them.
 */
#ifndef XS_RING_TRACKS_H
#define XS_RING_TRACKS_H

#include "traced.h"
#include "track.h"

/*
 * Of one of its files (segment 0: the first) the first `used` rings become tracks, but for those
 * that are. 0 or -errno: not all of them.
 */
int xs_process_find_in(struct xs_process *process, struct xs_mapped *file, uint32_t segment,
		       uint32_t used);
/* Opens or makes what is kept of the file's rings: file->kept; NULL: there is no memory. */
void xs_rings_open_kept(struct xs_process *process, struct xs_mapped *file, uint32_t segment);
/* --recover: nothing is known of how far these rings were read. */
void xs_rings_tell_not_kept(struct xs_process *process, uint32_t segment);

#endif
