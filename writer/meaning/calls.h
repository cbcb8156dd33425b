/*
 * -c: what calls were given and what they gave: see calls.c.
 */
#ifndef XS_CALLS_H
#define XS_CALLS_H

#include "functions.h"
#include "sink.h"

struct xs_record;

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
 * When the record happened, as far as the log is concerned. One with an impossible time is read at
 * once, and the reader rejects it.
 */
uint64_t xs_calls_time_of(struct xs_track *track, const struct xs_record *record, uint32_t size);
/* Must the record at track->pos wait for another one, which will say more about it? */
bool xs_calls_incomplete(const struct xs_track *track, const struct xs_event *event, uint32_t size);

#endif
