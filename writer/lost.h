/*
 * Programs that were started without our variables (env -i, a process pool with an environment of its own): nothing is traced
 * in them, and somebody must say so.
 */
#ifndef XS_LOST_H
#define XS_LOST_H

#include "writer.h"

#define XS_LOST_NAMED 4u

struct xs_lost {
	uint32_t count; /* programs that are known to be lost */
	struct xs_lost_program {
		int32_t pid;
		char comm[16];
	} named[XS_LOST_NAMED];
	struct xs_suspect {
		int32_t pid;   /* 0: free */
		bool told;     /* counted */
		uint64_t start; /* start time of the process, and which program: the same at the second look */
		uint64_t program;
	} suspects[64];
	uint64_t next, interval; /* CLOCK_MONOTONIC ns: when to look again */
};

/* Has the process our variable, in the environment that it was started with? -1: that cannot be seen. */
int xs_has_variable(const struct xs_run *run, int32_t pid);
/* Looks at the children of the traced processes, and at these themselves, when it is time. */
void xs_lost_look(struct xs_lost *lost, const struct xs_run *run, const struct xs_process *processes);
/* Somebody has joined: there may be more to see. */
void xs_lost_again(struct xs_lost *lost);
/* One line, if there were any. */
void xs_lost_tell(const struct xs_lost *lost);

#endif
