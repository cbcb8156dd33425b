/*
 * Call stacks: see stacks.c.
 */
#ifndef XS_STACKS_H
#define XS_STACKS_H

#include "sink.h"
#include "sinks.h"

/*
 * Where the call was made, as JSON ("stack":[…]), valid until the next call; NULL: it is not known.
 * Who asks first has its time counted for the folded file.
 */
const char *xs_stacks_text(struct xs_process *process, const struct xs_call *call,
			   size_t *ret_length);

#endif
