/*
 * The sink of a run that a program has begun for itself: each event as a row of a table that the
 * program maps (common/events.h), beside the trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity_types.h"
#include "backends.h"
#include "device_record.h"
#include "events.h"
#include "kineto.h"
#include "names.h"
#include "sink.h"
#include "sinks.h"
#include "task_record.h"

#define ROWS	  512u
#define TEXT	  (64u << 10)
#define SLOTS	  8192u /* names whose place is known, by their last bits */
#define NAME_MOST 16384u

/* Of a process. */
struct events {
	int rows_file, names_file;
	struct xs_event_row rows[ROWS];
	uint32_t row_count, text_length;
	char text[TEXT];
	uint64_t text_written;
	struct {
		uint32_t id;
		uint64_t offset;
	} known[SLOTS];
	bool failed; /* a write: what is there is not complete, and goes */
};

static struct events *events_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_EVENTS];
}

static void write_all(struct events *events, int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length && !events->failed) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			events->failed = true;
			break;
		}
		at += n;
		length -= (size_t)n;
	}
}

static void flush_rows(struct events *events)
{
	write_all(events, events->rows_file, events->rows,
		  events->row_count * sizeof(events->rows[0]));
	events->row_count = 0;
}

static void flush_text(struct events *events)
{
	write_all(events, events->names_file, events->text, events->text_length);
	events->text_written += events->text_length;
	events->text_length = 0;
}

static uint64_t offset_of(struct xs_process *process, uint32_t id)
{
	struct events *events = events_of(process);
	uint32_t slot = id % SLOTS;
	size_t length;
	const char *text;

	if (events->known[slot].id == id && id)
		return events->known[slot].offset;
	text = xs_text_of(process->run, id, &length);
	if (length > NAME_MOST)
		length = NAME_MOST;
	if (events->text_length + length + 1 > TEXT)
		flush_text(events);
	events->known[slot].id = id;
	events->known[slot].offset = events->text_written + events->text_length;
	memcpy(events->text + events->text_length, text, length);
	events->text[events->text_length + length] = '\0';
	events->text_length += (uint32_t)length + 1;
	return events->known[slot].offset;
}

/* A row of an event, to be filled; its times are ns of the trace. */
static struct xs_event_row *new_row(struct xs_process *process, uint32_t type, uint32_t name,
				    uint64_t start, uint64_t end)
{
	struct events *events = events_of(process);
	struct xs_event_row *row;

	if (events->row_count == ROWS)
		flush_rows(events);
	row = &events->rows[events->row_count++];
	*row = (struct xs_event_row){ .type = (int32_t)type,
				      .start = (int64_t)(start + process->run->base),
				      .duration = end > start ? end - start : 0,
				      .device = process->pid,
				      .name = offset_of(process, name) };
	return row;
}

static struct xs_event_row *new_on_thread(struct xs_track *track, uint32_t type, uint32_t name,
					  uint64_t start, uint64_t end)
{
	struct xs_event_row *row = new_row(track->process, type, name, start, end);

	row->resource = track->tid;
	row->external = track->external;
	row->user_external = track->user_external;
	return row;
}

static void add_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		(void)new_on_thread(track, XS_TYPE_USER_ANNOTATION, tasks[i].name, tasks[i].start,
				    tasks[i].end);
}

static void add_slice(struct xs_process *process, const struct xs_slice *slice)
{
	if (slice->track)
		(void)new_on_thread(slice->track, XS_TYPE_USER_ANNOTATION, slice->task->name.id,
				    slice->task->start, slice->end);
	else
		(void)new_row(process, XS_TYPE_USER_ANNOTATION, slice->task->name.id,
			      slice->task->start, slice->end);
}

static void add_mark(struct xs_process *process, const struct xs_mark *mark)
{
	new_row(process, XS_TYPE_CPU_INSTANT_EVENT, mark->name, mark->ns, mark->ns)->resource =
		mark->tid;
}

static void add_call(struct xs_track *track, const struct xs_call *call)
{
	new_on_thread(track, xs_backend_of(call->event->source)->call_type, call->name, call->start,
		      call->end)
		->correlation = xs_kineto_correlation(track->tid, call->event->tick);
}

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	static const uint8_t types[] = { [XS_WORK_KERNEL] = XS_TYPE_KERNEL,
					 [XS_WORK_COPY] = XS_TYPE_GPU_MEMCPY,
					 [XS_WORK_FILL] = XS_TYPE_GPU_MEMSET,
					 [XS_WORK_MAP] = XS_TYPE_GPU_MEMCPY,
					 [XS_WORK_OTHER] = XS_TYPE_KERNEL };
	const struct xs_device_record *record = work->record;
	uint32_t name = record->event.flags & XS_DEVICE_FLAG_FUNCTION
				? xs_function_id(record->event.source, record->event.name)
				: record->event.name;
	struct xs_event_row *row =
		new_row(process,
			record->work < sizeof(types) ? types[record->work] : XS_TYPE_KERNEL, name,
			work->start, work->end);

	row->device = record->device;
	row->resource = record->queue;
	if (record->event.tick) /* the call's */
		row->correlation = xs_kineto_correlation(record->tid, record->event.tick);
	row->bytes = record->bytes;
}

static void add_activity(struct xs_track *track, const struct xs_activity *activity)
{
	const struct xs_activity_record *record = activity->record;
	struct xs_event_row *row = new_row(track->process, record->type, record->event.name,
					   activity->start, activity->end);

	row->device = record->device;
	row->resource = record->resource;
	row->correlation = record->correlation;
	row->external = track->external;
	row->user_external = track->user_external;
}

/* ---- the files ---- */

static int open_beside(const struct xs_process *process, const char *suffix)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s%s", process->kept->output, suffix);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static bool wanted(const struct xs_run *run)
{
	return run->hosted_start;
}

/* Behind the Chrome sink, which gives the trace its name. */
static bool open_events(struct xs_process *process)
{
	struct events *events = process->kept && process->kept->output[0] && !process->needs_no_list
					? calloc(1, sizeof(*events))
					: NULL;

	if (!events)
		return true; /* there is no trace whose events these were */
	events->rows_file = open_beside(process, XS_EVENTS_SUFFIX);
	events->names_file = open_beside(process, XS_NAMES_SUFFIX);
	events->failed = events->rows_file < 0 || events->names_file < 0;
	process->sink[XS_SINK_EVENTS] = events;
	return true;
}

static void drop_events(struct xs_process *process)
{
	struct events *events = events_of(process);

	if (events->rows_file >= 0)
		close(events->rows_file);
	if (events->names_file >= 0)
		close(events->names_file);
	free(events);
}

static void remove_beside(const struct xs_process *process, const char *suffix)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s%s", process->kept->output, suffix);
	(void)unlink(path);
}

/* Ours: another one's may have been in the way. */
static void remove_files(const struct xs_process *process, const struct events *events)
{
	if (events->rows_file >= 0)
		remove_beside(process, XS_EVENTS_SUFFIX);
	if (events->names_file >= 0)
		remove_beside(process, XS_NAMES_SUFFIX);
}

static bool close_events(struct xs_process *process, enum xs_end end, int status)
{
	struct events *events = events_of(process);

	(void)status;
	flush_rows(events);
	flush_text(events);
	/* else the program has ended before its trace: nobody reads them */
	if (end != XS_END_STOPPED || events->failed)
		remove_files(process, events);
	drop_events(process);
	return false;
}

const struct xs_sink xs_events_sink = {
	.wanted = wanted,
	.open = open_events,
	.at_first_event = true,
	.tasks = add_tasks,
	.slice = add_slice,
	.mark = add_mark,
	.call = add_call,
	.work = add_work,
	.activity = add_activity,
	.close = close_events,
	.drop = drop_events,
};
