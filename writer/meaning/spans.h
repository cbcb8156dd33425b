/*
 * Spans that any thread may end.
 */
#ifndef XS_SPANS_H
#define XS_SPANS_H

#include "task_record.h"
#include "track.h"

struct xs_args_record;
struct xs_task_record;

/* A begin or an end. */
void xs_spans_read(struct xs_track *track, const struct xs_task_record *record, uint32_t size,
		   uint64_t ns);
/*
 * An arrow. An id means the span that has it and is open at the record: others may have had it, or
 * will. Without one, the last that ended, or the next.
 */
void xs_spans_relate(struct xs_track *track, const struct xs_task_record *record, const char *name,
		     const struct xs_id *from, const struct xs_id *to);
/* The same from the parent that the record tells to the task, which has no id yet. */
void xs_spans_parent(struct xs_track *track, struct xs_open *task,
		     const struct xs_task_record *record);
/* Arguments for the span with the record's id, of its domain, that is open then: `length` bytes. */
void xs_spans_say(struct xs_track *track, const struct xs_args_record *record, uint32_t length);
/* What the track alone knows of open spans is found through its process from here on. */
void xs_spans_release(struct xs_track *track);
/* All has been read that was written up to process->pass_tick. */
void xs_spans_pass(struct xs_process *process);
/* The process has ended: what is still open. */
void xs_spans_finish(struct xs_process *process, uint64_t end);

#endif
