/*
 * Committing: what was read reaches its file, and its room the producers. See commit.c.
 */
#ifndef XS_COMMIT_H
#define XS_COMMIT_H

#include "traced.h"
#include "track.h"

/* Writes out what is buffered and gives the rings' room back. */
void xs_process_commit(struct xs_process *process);
/* Is a producer waiting, or a step of a ring filled? Then the drain process must not sleep. */
bool xs_process_urgent(const struct xs_process *process);

#endif
