/*
 * The file on disk for what the backlog has no memory for: see spool.c.
 */
#ifndef XS_SPOOL_H
#define XS_SPOOL_H

#include <limits.h>
#include <stdint.h>

#include "run.h"

/* Which file it is, for a successor. */
struct xs_spool_place {
	uint64_t device, inode; /* 0: it is still to be made, or has just been made */
	char path[PATH_MAX];	/* absolute; empty: there is none */
};

/* Makes the file, and notes in `place` which it is. The descriptor or -errno. */
int xs_spool_create(const struct xs_run *run, struct xs_spool_place *place);
/* The one that a killed drain process has made. The descriptor or -errno; -EPERM: it is another. */
int xs_spool_open(const struct xs_spool_place *place);
/* `fd` is the file; what else has its name by now stays. */
void xs_spool_remove(struct xs_spool_place *place, int fd);

#endif
