/*
 * One line on a terminal that says how far a pass is, where the work is long. Any other line clears
 * it first; it has no escape sequences, and nothing of it is written to a file or a pipe.
 */
#ifndef XM_PROGRESS_H
#define XM_PROGRESS_H

#include "merge.h"

/* A pass begins: what it does, such as "reading". */
void xm_progress_begin(const struct xm_merge *merge, const char *what);
/* Now and then, by the caller's thread. */
void xm_progress_tell(const struct xm_merge *merge);
/* The line goes; before each other line, and at the end of a pass. */
void xm_progress_clear(void);

#endif
