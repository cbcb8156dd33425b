/*
 * Opening and closing a process's sinks, for the drain process: see sinks.c.
 */
#ifndef XS_SINKS_OPEN_H
#define XS_SINKS_OPEN_H

#include "traced.h"
#include "track.h"

/*
 * Opens those that the options ask for: with the process, or with its first event. False: one of
 * them cannot be opened now.
 */
bool xs_sinks_open(struct xs_process *process, bool at_first_event);
/* Are there any that are opened with the first event? */
bool xs_sinks_await_event(const struct xs_run *run);
/*
 * One sink more, or less, of a process whose others stay; its number as in sinks.h. It must have no
 * state for tracks.
 */
void xs_sinks_add(struct xs_process *process, uint32_t number);
void xs_sinks_remove(struct xs_process *process, uint32_t number);
/* What the sinks have of a new track. False: no memory. */
bool xs_sinks_add_track(struct xs_track *track);
void xs_sinks_drop_track(struct xs_track *track);
/* What was read so far reaches the files, all but the one that is committed (process->out). */
void xs_sinks_flush(struct xs_process *process);
/* True: they have shown something. */
bool xs_sinks_close(struct xs_process *process, enum xs_end end, int status);
/* Instead: nobody wants any more what they have. */
void xs_sinks_drop(struct xs_process *process);

#endif
