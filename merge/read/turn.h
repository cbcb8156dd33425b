/*
 * What the files of this folder share: one input is read by turns of some hundred events.
 */
#ifndef XM_TURN_H
#define XM_TURN_H

#include "merge.h"

/* inputs.c: a line about a file. Returns 0. */
int xm_left_out(struct xm_merge *merge, const char *path, const char *why);

/* said.c: a member of the top level, into the input (user). */
void xm_take_member(void *user, struct xf_text key, struct xf_text value);
/* What the first pass keeps of an event. */
void xm_first_look(struct xm_input *input, const struct xf_event *event, struct xm_process *process,
		   int64_t start, int64_t end);

/* turn.c: an input from its beginning. */
void xm_turn_open(struct xm_merge *merge, struct xm_input *input, bool first);
/*
 * The next events of an input become a block, which is empty: those of one turn, or fewer where
 * they need much room.
 */
void xm_turn_make(struct xm_input *input, const struct xm_visitor *visitor, bool first,
		  struct xm_block *block);
/* All has been read: says what was wrong with it. */
void xm_turn_close(struct xm_input *input, bool first);

#endif
