/*
 * Spans that any thread may end.
 */
#ifndef XS_SPANS_H
#define XS_SPANS_H

#include "track.h"

struct xs_task_record;

/* A begin or an end. */
void xs_spans_read(struct xs_track *track, const struct xs_task_record *record, uint32_t size,
		   uint64_t ns);
/* The span with this id, of the event's domain, that is open at the event; NULL: none. */
struct xs_open *xs_spans_find(const struct xs_track *track, const struct xs_event *event,
			      const struct xs_id *id);
/* What the track alone knows of open spans is found through its process from here on. */
void xs_spans_release(struct xs_track *track);
/* All has been read that was written up to process->pass_tick. */
void xs_spans_pass(struct xs_process *process);
/* The process has ended: what is still open. */
void xs_spans_finish(struct xs_process *process, uint64_t end);

#endif
