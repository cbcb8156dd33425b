/*
 * The flight recorder's side of the drain process (--flight-recorder). Only used when run->flight
 * is there.
 */
#ifndef XS_FLIGHT_H
#define XS_FLIGHT_H

#include "track.h"

/* What a trace says about the dump that it belongs to. */
struct xs_dump {
	uint32_t number, reasons; /* from 1; enum xs_dump_reason */
	/* ns of the trace: all that a process recorded in between is there */
	uint64_t from, to;
	bool cut; /* there was no memory for the whole time */
};

struct xs_flight *xs_flight_create(const struct xs_options *options); /* NULL: no memory */
void xs_flight_destroy(struct xs_flight *flight);
const struct xs_dump *xs_flight_dump_of(const struct xs_run *run);

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
/* A trace of the dump is written. */
void xs_flight_list(struct xs_run *run, const char *path);
/* Is one being written? Tells those who wait for it if it is not any more. */
bool xs_flight_writing(struct xs_run *run);
/* The same as of the last look. */
bool xs_flight_is_writing(const struct xs_run *run);
/*
 * Begins to write the history of these lists of processes; asked, triggers: of control->dumps and
 * the mailbox's, which requests that serves.
 */
void xs_flight_dump(struct xs_run *run, struct xs_process *running, struct xs_process *ended,
		    uint32_t asked, uint32_t triggers, uint32_t reasons);

/*
 * For xs_process_dump(): brings the process to the moment at which its history begins, then sends
 * that through the dispatch.
 */
void xs_flight_rewind(struct xs_process *process);
void xs_flight_replay(struct xs_process *process);

#endif
