/*
 * While we call a runtime that may allocate memory or make threads, where it would not in the
 * program's own call: no signal of the program's arrives, whose handler might leave by a jump, and
 * none for threads that are made meanwhile.
 */
#ifndef XS_BLOCKED_H
#define XS_BLOCKED_H

#include <stdint.h>

/* All but faults, and what glibc must hear. What xs_unblock_signals() is given. */
uint64_t xs_block_signals(void);
void xs_unblock_signals(uint64_t before);

#endif
