/* What the collector knows that it cannot see, in words: for stderr and for the trace. */
#ifndef XS_UNSEEN_H
#define XS_UNSEEN_H

#include <stdint.h>

#include "shm.h"

/* unseen: enum xs_unseen, which a traced process may have spoilt. NULL: nothing is told of it. */
const char *xs_unseen_text(uint32_t unseen);

/* of all of them together, at most, with quotes and commas */
#define XS_UNSEEN_ROOM 8192u

#endif
