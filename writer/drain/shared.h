/*
 * What all processes of a run share, and any of them may have spoilt: said when the run ends.
 */
#ifndef XS_SHARED_H
#define XS_SHARED_H

#include "run.h"

/* Which files they are, before a program runs. Not for --recover. */
void xs_shared_note(struct xs_run *run);

/*
 * Lines on stderr: a file that was cut; and that programs could not join the run any more. True:
 * the former.
 */
bool xs_shared_tell(const struct xs_run *run);

#endif
