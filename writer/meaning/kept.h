/*
 * What the drain process keeps for a successor (--recover), in files that only drain processes
 * open: how it is written, and whether it is what was written. docs/RING.md has the argument.
 *
 * What is saved with a commit has the commit's number, its turn. There are two places for it: that
 * which counts stays as it is while the other one is filled. Nothing of it counts before the head
 * of the file has the turn, which is one store.
 *
 * Everything has a check, over all that it says. That is no cryptography: another process of the
 * same user can make it, too. It shows what was overwritten by accident, or by somebody who
 * scribbles there. No change of a single word stays unseen, and nothing that was written has 0.
 */
#ifndef XS_KEPT_H
#define XS_KEPT_H

#include "shm.h"

/* ---- the head of a file ---- */

/* Can it be what a drain process has left, killed at any instruction? */
bool xs_kept_is_sound(const struct xs_kept_file *kept);
/* Bytes of the trace that count; 0 also where there is none. */
uint64_t xs_kept_bytes(const struct xs_kept_file *kept);
/* errno of the first write that failed; 0: none has. */
int xs_kept_error(const struct xs_kept_file *kept);
/* The next commit: of *turn, which becomes its number, and of that length. error: 0 or -errno. */
void xs_kept_commit(struct xs_kept_file *kept, uint64_t *turn, uint64_t bytes, int error);
/* The trace is complete: from one of the stores on there is none. */
void xs_kept_end_trace(struct xs_kept_file *kept, uint64_t *turn);
/* How a trace that does not count yet is called, and which file it is; inode 0: not made yet. */
void xs_kept_name_trace(struct xs_kept_file *kept, const char *path);
void xs_kept_identify(struct xs_kept_file *kept, uint64_t device, uint64_t inode);
/* --recover: of a trace that was just being named, what was not written whole is taken away. */
void xs_kept_tidy(struct xs_kept_file *kept);

/* ---- copies ---- */

enum xs_kept_copy { XS_KEPT_FIRST, XS_KEPT_SECOND, XS_KEPT_NEITHER, XS_KEPT_SPOILT };

/*
 * Which copy counts, where `turn` is the newest commit that does. The other one is forgotten: it
 * may be prepared for a turn that will be of something else.
 */
enum xs_kept_copy xs_kept_take_ring(struct xs_kept_ring *ring, uint64_t turn);
enum xs_kept_copy xs_kept_take_activity(struct xs_kept_activity *activity, uint64_t turn);

/* Before a copy is filled, and afterwards. */
void xs_kept_begin_ring(struct xs_ring_saved *saved, uint64_t turn);
void xs_kept_end_ring(struct xs_ring_saved *saved);
void xs_kept_begin_activity(struct xs_activity_saved *saved, uint64_t turn);
void xs_kept_end_activity(struct xs_activity_saved *saved);

#endif
