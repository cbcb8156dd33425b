/*
 * Raw records that were moved out of full rings, to become text later: see backlog.c.
 */
#ifndef XS_BACKLOG_H
#define XS_BACKLOG_H

#include "track.h"

/*
 * run->backlog, for all processes of the list; NULL where there is to be none. A successor finds
 * what is left of it.
 */
void xs_backlog_open(struct xs_run *run, struct xs_process **processes);
void xs_backlog_close(struct xs_run *run);

/*
 * Makes room in rings that are too full, if `read` bytes since the last look are enough for
 * another. Returns the bytes moved.
 */
uint64_t xs_backlog_relieve(struct xs_run *run, uint64_t read);
/* Would it move something? */
bool xs_backlog_is_due(const struct xs_run *run);
/*
 * Is it better to make no text now? The program fills its rings, and somebody else wants the
 * processor that this one runs on.
 */
bool xs_backlog_defers(const struct xs_run *run);
/* Bytes that wait to become text. */
uint64_t xs_backlog_left(const struct xs_run *run);
/* The track's records are text, and committed, up to track->pos. */
void xs_backlog_committed(struct xs_track *track);
/* What it has in the backlog is not wanted any more. */
void xs_backlog_forget(struct xs_track *track);
/* --recover, or the next trace of a process: from track->pos on. */
void xs_backlog_restore(struct xs_track *track);

/* Does a track of it have records in the backlog? */
bool xs_process_is_behind(const struct xs_process *process);

#endif
