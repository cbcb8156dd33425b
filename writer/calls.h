/*
 * -c: what calls were given and what they gave: see calls.c.
 */
#ifndef XS_CALLS_H
#define XS_CALLS_H

#include "functions.h"
#include "sink.h"

/* NULL: no such function. *ret_api may be NULL. */
const struct xs_function *xs_function_of(uint8_t source, uint32_t function,
					 const struct xs_api **ret_api);
/* An XS_CALL_IN record. */
void xs_calls_begin(struct xs_track *track, const struct xs_event *event, uint32_t size);
/*
 * What is known of a call that has ended; valid until the next one is read. False: nothing, for
 * want of memory.
 */
bool xs_calls_end(struct xs_track *track, const struct xs_call_record *call, struct xs_given *ret);
/* The thread or its process has ended: what it was in. */
void xs_calls_finish(struct xs_track *track, uint64_t end);
void xs_calls_forget(struct xs_track *track);
/*
 * Instead of xs_track_read() for each ring: all of them in the order of time. Returns the bytes
 * read.
 */
uint64_t xs_calls_read(struct xs_process *process, bool all);

#endif
