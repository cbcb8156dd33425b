/*
 * The flight recorder's side of the drain process (--flight-recorder). Only used when run->flight
 * is there.
 */
#ifndef XS_FLIGHT_H
#define XS_FLIGHT_H

#include "track.h"

/* Sets run->flight. False: no memory. */
bool xs_flight_create(struct xs_run *run);
void xs_flight_destroy(struct xs_flight *flight);

/* A look at the rings begins. */
void xs_flight_look(struct xs_run *run);
/* Copies what the track's ring holds, from track->pos to head. */
void xs_flight_keep(struct xs_track *track, uint64_t head);
/* Adds a record that is in no ring: of at most XS_RECORD_MAX bytes, a multiple of 16. */
void xs_flight_add(struct xs_track *track, const void *record, uint32_t size);
/* Lets go what has become too old; false when no records of the process are left. */
bool xs_flight_expire(struct xs_process *process);
/* Lets go all of the track's records. */
void xs_flight_forget(struct xs_track *track);

/* Does somebody want a dump? */
bool xs_flight_asked(const struct xs_run *run);
/* Is one being written? Tells those who wait for it if it is not any more. */
bool xs_flight_writing(struct xs_run *run);
/* The same as of the last look. */
bool xs_flight_is_writing(const struct xs_run *run);
/*
 * Begins a dump; asked, triggers: of control->dumps and the mailbox's, which requests that serves.
 * True in a child, which is to write it and to exit.
 */
bool xs_flight_dump(struct xs_run *run, uint32_t asked, uint32_t triggers, uint32_t reasons);
/* In that child, of a dump that has something to show: if no trace of it is there, the list says
 * so. */
void xs_flight_end_list(struct xs_run *run);

/*
 * For xs_process_dump(): brings the process to the moment at which its history begins, then sends
 * that through the dispatch.
 */
void xs_flight_rewind(struct xs_process *process);
void xs_flight_replay(struct xs_process *process);

#endif
