/*
 * While we call a runtime that may allocate memory or make threads, where it would not in the
 * program's own call: no signal of the program's arrives, whose handler might leave by a jump, and
 * none for threads that are made meanwhile. Nor does the thread end there because somebody has
 * cancelled it: the runtime may open files, the program's own call would not.
 */
#ifndef XS_BLOCKED_H
#define XS_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

struct xs_blocked {
	uint64_t signals; /* as they were */
	int cancel_state; /* likewise */
};

/* All signals but faults, and what glibc must hear; and cancellation. For xs_unblock(). */
struct xs_blocked xs_block(void);
/* False: in a sandbox signals still arrive. */
bool xs_is_blocked(struct xs_blocked blocked);
void xs_unblock(struct xs_blocked before);

#endif
