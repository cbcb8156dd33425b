/*
 * How much memory there is, for rings, the backlog and histories: what they take must not be
 * missing elsewhere.
 */
#ifndef XS_MEMORY_H
#define XS_MEMORY_H

#include <stdint.h>

/* Bytes that the machine can give without swapping; UINT64_MAX: unknown. */
uint64_t xs_memory_available(void);
/* Bytes that this process's group (container, batch job) may have; UINT64_MAX: no limit. */
uint64_t xs_memory_limit(void);

#endif
