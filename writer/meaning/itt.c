/*
 * What the rarer records of ITT mean: tasks with ids, metadata, events, counters, tracks.
 */
#include <string.h>

#include "copy.h"
#include "counted.h"
#include "extras.h"
#include "itt.h"
#include "own_clock.h"
#include "sink.h"
#include "spans.h"
#include "task_record.h"
#include "tasks.h"

void xs_itt_end(struct xs_track *track, struct xs_open *task, uint64_t end, bool displaced,
		bool unfinished)
{
	const struct xs_slice span = { .task = task,
				       .end = end,
				       .track = track,
				       .kind = XS_SPAN_TASK,
				       .row = task->row,
				       .displaced = displaced ||
						    (task->extra && task->extra->displaced),
				       .unfinished = unfinished };

	XS_TELL_SINKS(track->process, slice, track->process, &span);
	xs_extra_drop(track->process, task);
}

/* ---- metadata, instants, relations ---- */

/* An instant, or arguments of nothing that is open. */
static void read_instant(struct xs_track *track, const struct xs_args_record *record,
			 uint32_t length)
{
	struct xs_process *process = track->process;
	struct xs_open loose = { .start = xs_process_ns(process, record->event.tick) };
	bool metadata = record->event.kind == XS_ARGS;
	struct xs_mark mark = {
		.tid = track->tid,
		.name = record->event.name,
		.metadata = metadata,
		.scope = metadata ? XS_SCOPE_THREAD : record->event.flags,
		.id = metadata || xs_id_is_null(&record->id) ? NULL : &record->id,
	};

	struct xs_open *task;
	struct xs_id within;

	if (!process->open_count)
		return;
	task = mark.id ? xs_track_open_task(track, 0, &(struct xs_id){ 0 }) : NULL;
	if (task && !task->lost && xs_extra_self(process, task, &within))
		mark.within = &within;
	(void)xs_own_time_begin(track, &record->event, &loose, loose.start);
	xs_extra_add_args(process, &loose, record, length);
	mark.ns = loose.start;
	mark.extra = loose.extra;
	XS_TELL_SINKS(process, mark, process, &mark);
	xs_extra_drop(process, &loose);
}

/* room: bytes behind the record. */
static void read_args(struct xs_track *track, const struct xs_args_record *record, uint32_t room)
{
	uint32_t length = record->length < room ? record->length : room;
	bool of_task = record->event.kind == XS_ARGS;
	struct xs_open *task = of_task ? xs_track_open_task(track, record->event.name, &record->id)
				       : NULL;

	if (task && task->lost)
		return; /* it is said of one of those, as nothing inside of them is open */
	if (task)
		xs_extra_add_args(track->process, task, record, length);
	else if (of_task && !xs_id_is_null(&record->id))
		xs_spans_say(track, record, length);
	else
		read_instant(track, record, length);
}

static void read_relation(struct xs_track *track, const struct xs_task_record *record)
{
	static const struct {
		const char *name;
		bool from_tail;
	} relations[XS_RELATION_COUNT] = {
		[XS_RELATION_UNKNOWN] = { "related", false },
		[XS_RELATION_DEPENDENT_ON] = { "dependent_on", true },
		[XS_RELATION_SIBLING_OF] = { "sibling_of", false },
		[XS_RELATION_PARENT_OF] = { "parent_of", false },
		[XS_RELATION_CONTINUATION_OF] = { "continuation_of", true },
		[XS_RELATION_CHILD_OF] = { "child_of", true },
		[XS_RELATION_CONTINUED_BY] = { "continued_by", false },
		[XS_RELATION_PREDECESSOR_TO] = { "predecessor_to", false },
	};
	struct xs_process *process = track->process;
	uint8_t relation = record->event.flags < XS_RELATION_COUNT ? record->event.flags : 0;
	struct xs_id head = record->id;
	struct xs_open *task;

	if (xs_id_is_null(&record->parent) || !process->open_count)
		return;
	if (xs_id_is_null(&head)) {
		task = xs_track_open_task(track, record->event.name, &head);
		if (!task || task->lost || !xs_extra_self(process, task, &head)) {
			process->open_relations++; /* the calling thread is in no task */
			return;
		}
	}
	if (relations[relation].from_tail)
		xs_spans_relate(track, record, relations[relation].name, &record->parent, &head);
	else
		xs_spans_relate(track, record, relations[relation].name, &head, &record->parent);
}

/* ---- the rest ---- */

static void read_task(struct xs_track *track, const struct xs_task_record *record, uint64_t ns)
{
	uint64_t last = track->last_ns;
	struct xs_open *task = xs_track_open(track, ns, record->event.name);
	bool displaced = ns < last;

	if (!task)
		return;
	task->start = xs_own_time_begin(track, &record->event, task, ns);
	if (track->counts_due)
		xs_counted_begins(track, &record->event, task);
	if (task->start != ns)
		track->last_ns = last; /* it is not on the thread's own track */
	xs_spans_parent(track, task, record);
	xs_extra_set_id(track->process, task, &record->id);
	if (displaced)
		xs_track_displace(track, task);
}

static void read_span(struct xs_track *track, const struct xs_span_record *record, uint64_t ns)
{
	struct xs_process *process = track->process;
	uint64_t end = xs_process_ns(process, record->event.tick + record->duration);
	struct xs_open task = { .start = ns, .name = xs_name_of(process, record->event.name) };
	bool wait = record->event.flags == XS_SPAN_WAIT;
	const struct xs_slice span = {
		.task = &task,
		.end = end,
		.track = wait ? track : NULL,
		.kind = record->event.flags < XS_SPAN_COUNT ? record->event.flags : 0,
		.displaced = wait && ns < track->last_ns,
	};

	if (!xs_track_believes(track, &record->event, record->duration)) {
		process->corrupt++;
		return;
	}
	if (!process->open_count)
		return;
	if (record->special && xs_extra_of(process, &task)) {
		task.extra->cancelled = wait;
		task.extra->moved = !wait;
	}
	XS_TELL_SINKS(process, slice, process, &span);
	xs_extra_drop(process, &task);
	if (wait && end > track->last_ns)
		track->last_ns = end;
}

/* An event that was begun and never ended was meant as a mark. */
static void event_begin(struct xs_track *track, const struct xs_event *event, uint64_t ns)
{
	struct xs_process *process = track->process;
	struct xs_mark mark = { .tid = track->tid, .name = event->name };
	struct xs_open task;

	xs_track_note_lost(track, ns - 1);
	for (uint32_t at = track->depth; at > xs_track_lowest(track); at--) {
		if (track->open[at - 1].name.id != event->name || track->open[at - 1].lost)
			continue;
		task = track->open[at - 1];
		mark.ns = task.start;
		if (task.start <= track->lost_ns) { /* its end may be lost */
			xs_itt_end(track, &task,
				   task.start > track->last_ns ? task.start : track->last_ns,
				   at != track->depth, true);
		} else {
			XS_TELL_SINKS(process, mark, process, &mark);
			/* a task may be called as the event is */
			xs_extra_drop(process, &task);
		}
		xs_track_take(track, at - 1);
		break;
	}
	(void)xs_track_open(track, ns, event->name);
}

static void event_end(struct xs_track *track, const struct xs_event *event, uint64_t ns)
{
	struct xs_open task;

	xs_track_note_lost(track, ns);
	if (xs_track_ends_unseen(track))
		return;
	for (uint32_t at = track->depth; at > xs_track_lowest(track); at--) {
		if (track->open[at - 1].name.id != event->name || track->open[at - 1].lost)
			continue;
		task = track->open[at - 1];
		xs_itt_end(track, &task, ns, at != track->depth, task.start <= track->lost_ns);
		xs_track_take(track, at - 1);
		track->last_ns = ns;
		return;
	}
	track->process->unmatched++;
}

void xs_itt_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	static const uint8_t sizes[] = {
		[XS_TASK] = sizeof(struct xs_task_record),
		[XS_ARGS] = sizeof(struct xs_args_record),
		[XS_INSTANT] = sizeof(struct xs_args_record),
		[XS_COUNTER] = sizeof(struct xs_counter_record),
		[XS_SPAN] = sizeof(struct xs_span_record),
		[XS_OPEN] = sizeof(struct xs_event),
		[XS_CLOSE] = sizeof(struct xs_event),
		[XS_EVENT_BEGIN] = sizeof(struct xs_event),
		[XS_EVENT_END] = sizeof(struct xs_event),
		[XS_RELATION] = sizeof(struct xs_task_record),
		[XS_TRACK] = sizeof(struct xs_event),
	};
	struct xs_process *process = track->process;
	const void *record = event;
	uint64_t ns;

	if (event->kind >= sizeof(sizes) || !sizes[event->kind] || size < sizes[event->kind])
		return;
	ns = xs_process_ns(process, event->tick);
	switch (event->kind) {
	case XS_TASK:
		read_task(track, record, ns);
		break;
	case XS_ARGS:
	case XS_INSTANT:
		read_args(track, record, size - (uint32_t)sizeof(struct xs_args_record));
		break;
	case XS_COUNTER:
		XS_TELL_SINKS(process, counter, process, record, ns);
		break;
	case XS_SPAN:
		read_span(track, record, ns);
		break;
	case XS_OPEN:
	case XS_CLOSE:
		xs_spans_read(track, record, size, ns);
		break;
	case XS_EVENT_BEGIN:
		event_begin(track, event, ns);
		break;
	case XS_EVENT_END:
		event_end(track, event, ns);
		break;
	case XS_RELATION:
		read_relation(track, record);
		break;
	default:
		track->row = event->name;
		break;
	}
}
