/*
 * What records mean together: see records.c.
 */
#ifndef XS_RECORDS_H
#define XS_RECORDS_H

#include "counted.h"
#include "plain.h"
#include "tasks.h"

/* The track is this thread's from here on. What the one before it has said counts no more. */
void xs_track_enter(struct xs_track *track, uint32_t tid);
/* The same where the record that says so is lost. name: a string id; 0: not known. */
void xs_track_go_on(struct xs_track *track, uint32_t tid, uint32_t name);
/* A record that is neither XS_BEGIN nor XS_END. */
void xs_record_read_other(struct xs_track *track, const struct xs_event *event, uint32_t size);
/*
 * The end of the open task number `at`, where it is not the innermost one, or there is more to do
 * with it. The application ends tasks of two domains in another order than it began them, or at
 * times of its own.
 */
void xs_task_end_among(struct xs_track *track, const struct xs_event *event, uint32_t at,
		       uint64_t end);

static inline void xs_task_end(struct xs_track *track, const struct xs_event *event)
{
	struct xs_process *process = track->process;
	uint64_t end = xs_process_ns(process, event->tick);
	uint32_t at = track->depth, lowest = xs_track_lowest(track);
	struct xs_open *task;

	if (xs_track_ends_unseen(track))
		return;
	while (at > lowest && track->open[at - 1].name.scope != event->name &&
	       track->open[at - 1].name.scope != XS_SCOPE_UNKNOWN)
		at--; /* as lost begins have */
	if (__builtin_expect(at == lowest, 0)) {
		/* an end without a begin: the application's, or begun while paused */
		process->unmatched++;
		return;
	}
	task = &track->open[at - 1];
	if (__builtin_expect(at != track->depth || task->extra || task->row || end < track->last_ns,
			     0)) {
		xs_task_end_among(track, event, at - 1, end);
		return;
	}
	if (process->plain_tasks)
		process->plain_tasks(track,
				     &(struct xs_task){ task->start, end, task->name.id,
							track->depth },
				     1);
	track->depth--;
	track->last_ns = end;
}

/* A record, in memory of ours. Begins and ends of plain tasks are the most of all. */
static inline void xs_record_read(struct xs_track *track, const struct xs_event *event,
				  uint32_t size)
{
	if (event->kind == XS_BEGIN) {
		uint64_t last = track->last_ns, ns = xs_process_ns(track->process, event->tick);
		struct xs_open *task = xs_track_open(track, ns, event->name);

		if (__builtin_expect(ns < last, 0))
			xs_track_displace(track, task);
		if (__builtin_expect(track->counts_due, 0))
			xs_counted_begins(track, event, task);
		track->process->kinds[XS_BEGIN]++;
		track->records++;
	} else if (event->kind == XS_END) {
		xs_task_end(track, event);
		track->process->kinds[XS_BEGIN]++;
		track->records++;
	} else {
		track->process->kinds[event->kind]++;
		xs_record_read_other(track, event, size);
	}
}

#endif
