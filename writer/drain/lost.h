/*
 * Programs in which nothing is traced: started without our variables (env -i, a process pool with
 * an environment of its own), as another user, with no room for us, or where no library can be
 * preloaded. Somebody must say so, and why.
 */
#ifndef XS_LOST_H
#define XS_LOST_H

#include "traced.h"

#define XS_LOST_NAMED 8u
#define XS_LOST_WHY   192u

struct xs_lost {
	uint32_t count;	 /* programs that are known to be lost */
	uint32_t failed; /* of these, those that have said themselves that they could not join */
	struct xs_lost_program {
		int32_t pid;
		uint64_t program; /* which it ran */
		bool joined;	  /* later: it was only slow */
		char comm[16], why[XS_LOST_WHY];
	} named[XS_LOST_NAMED];
	struct xs_suspect {
		int32_t pid; /* 0: free */
		bool told;   /* counted */
		/* start time of the process, and which program: the same at the second look */
		uint64_t start;
		uint64_t program;
	} suspects[64];
	uint64_t next, interval; /* CLOCK_MONOTONIC ns: when to look again */
};

/* Was the process started with our variable in its environment? -1: unknown. */
int xs_has_variable(const struct xs_run *run, int32_t pid);
/* Looks at the children of the traced processes, and at these themselves, when it is time. */
void xs_lost_look(struct xs_lost *lost, const struct xs_run *run,
		  const struct xs_process *processes);
/* Somebody has joined: there may be more to see. */
void xs_lost_again(struct xs_lost *lost);
/*
 * One has joined: had it been taken for lost, it was still starting (a debugger, many libraries, a
 * busy machine).
 */
void xs_lost_joined(struct xs_lost *lost, int32_t pid);
/* A line for each. */
void xs_lost_tell(const struct xs_lost *lost);
/* Is one of these lines about that process? */
bool xs_lost_has(const struct xs_lost *lost, int32_t pid);

#endif
