/*
 * The Chrome JSON of what is not a plain slice of a thread: marks, counters, rows of their own,
 * arrows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity_types.h"
#include "chrome.h"
#include "names.h"
#include "perfetto.h"
#include "task_record.h"
#include "tasks.h"

#define ROWS_MAX   1024u
#define OTHER_ROWS UINT32_MAX /* in place of a name: what is beyond these shares one */

/* ---- slices ---- */

static struct xs_place end_slice(struct xs_process *process, char *o, struct xs_place place,
				 const struct xs_open *task, bool unfinished)
{
	if (task->extra || unfinished)
		o = xs_chrome_put_args(o, process, NULL, task->extra, unfinished);
	xs_chrome_finish(xs_chrome_of(process), xs_chrome_put_name(o, process, task->name.id));
	return place;
}

/* The beginning of a slice on a track that is no thread's, up to its duration. */
static char *put_own_slice(struct xs_process *process, uint32_t tid, uint64_t start, uint64_t end)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	struct xs_own *own = xs_chrome_own(chrome, (uint32_t)process->pid, tid);

	return xs_chrome_begin(xs_output_put(&chrome->out), &own->begun, own->text, own->length,
			       start, end);
}

static struct xs_place slice(struct xs_process *process, uint32_t tid, const struct xs_open *task,
			     uint64_t end, bool unfinished)
{
	if (!tid)
		return (struct xs_place){ 0, 0 };
	return end_slice(process, put_own_slice(process, tid, task->start, end),
			 (struct xs_place){ tid, task->start }, task, unfinished);
}

static struct xs_row *row_of(struct xs_process *process, uint32_t name)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	struct xs_row *grown;

	if (chrome->last_row < chrome->row_count && chrome->rows[chrome->last_row].name == name)
		return &chrome->rows[chrome->last_row];
	for (uint32_t i = 0; i < chrome->row_count; i++)
		if (chrome->rows[i].name == name)
			return &chrome->rows[chrome->last_row = i];
	if (chrome->row_count >= ROWS_MAX && name != OTHER_ROWS) {
		process->omitted[XS_OMIT_TRACKS]++;
		return row_of(process, OTHER_ROWS);
	}
	grown = realloc(chrome->rows, (chrome->row_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	chrome->rows = grown;
	grown += chrome->row_count++;
	memset(grown, 0, sizeof(*grown));
	grown->name = name;
	return grown;
}

/* The lane of a row for what lasts from `start` to `end`; 0: there was no memory. */
static uint32_t lane_of_row(struct xs_process *process, uint32_t row, uint64_t start, uint64_t end)
{
	static const char *const titles[XS_SPAN_COUNT] = {
		[XS_SPAN_FRAME] = "Frames",
		[XS_SPAN_REGION] = "Regions",
		[XS_SPAN_OVERLAPPED] = "Overlapped tasks",
		[XS_SPAN_WAIT] = "Waits",
		[XS_SPAN_REQUEST] = "MPI requests",
		[XS_SPAN_COMMAND] = "SYCL commands waiting",
	};
	struct xs_row *found = row_of(process, row);
	char title[1025];
	const char *text;
	size_t length;

	if (!found)
		return 0;
	row = found->name;
	text = row < XS_SPAN_COUNT ? titles[row] : row == OTHER_ROWS ? "(more tracks)" : NULL;
	if (!text) {
		text = xs_text_of(process->run, row, &length);
		if (length >= sizeof(title))
			length = sizeof(title) - 1;
		memcpy(title, text, length);
		title[length] = '\0';
		text = title;
	}
	return xs_chrome_lane(process, &found->lanes, text, start, end,
			      row == XS_SPAN_OVERLAPPED ? XS_FIT_APART : XS_FIT_NESTING);
}

static struct xs_place on_row(struct xs_process *process, uint32_t row, const struct xs_open *task,
			      uint64_t end, bool unfinished)
{
	return slice(process, lane_of_row(process, row, task->start, end), task, end, unfinished);
}

char *xs_chrome_own_slice(struct xs_process *process, uint32_t row, uint64_t start, uint64_t end)
{
	uint32_t tid = lane_of_row(process, row, start, end);

	return tid ? put_own_slice(process, tid, start, end) : NULL;
}

void xs_chrome_aside(struct xs_process *process, const struct xs_aside *aside)
{
	char *o = xs_chrome_own_slice(process, aside->row, aside->start, aside->end);

	if (!o)
		return;
	if (aside->fact_count) {
		char *begin = o = xs_put(o, ",\"args\":");

		o = xs_put(xs_chrome_put_facts(o, aside->facts, aside->fact_count, true), "}");
		*begin = '{'; /* in place of the first comma */
	}
	xs_chrome_finish(xs_chrome_of(process), xs_chrome_put_name(o, process, aside->name));
}

void xs_chrome_request(struct xs_process *process, uint32_t name, uint64_t start, uint64_t end,
		       const char *args, size_t length)
{
	struct xs_row *row = row_of(process, XS_SPAN_REQUEST);
	uint32_t tid = row ? xs_chrome_lane(process, &row->lanes, "MPI requests", start, end,
					    XS_FIT_FOLDED)
			   : 0;
	char *o;

	if (!tid)
		return;
	o = xs_put(put_own_slice(process, tid, start, end), ",\"args\":{");
	memcpy(o, args, length);
	o = xs_put(o + length, "},\"cat\":\"mpi_request\"");
	xs_chrome_finish(xs_chrome_of(process), xs_chrome_put_bare_name(o, process, name));
}

/* The task is still among those that are open, or was the innermost of them. */
static uint64_t shown_start(const struct xs_track *track, const struct xs_open *task, uint64_t end)
{
	const struct xs_chrome *chrome = xs_chrome_of(track->process);
	uint32_t at = track->depth;

	if (!chrome->perfetto)
		return task->start;
	while (at > xs_track_lowest(track) && (track->open[at - 1].start != task->start ||
					       track->open[at - 1].name.id != task->name.id))
		at--;
	return xs_perfetto_start(track, at > xs_track_lowest(track) ? at - 1 : track->depth,
				 task->start, end);
}

static struct xs_place on_thread(struct xs_track *track, const struct xs_open *task, uint64_t end,
				 bool displaced, bool unfinished)
{
	struct xs_chrome_track *own = xs_chrome_track(track);
	struct xs_process *process = track->process;
	char title[64];

	if (task->extra && task->extra->unplaced) {
		(void)snprintf(title, sizeof(title), "%u (clock not placed)", track->tid);
		return slice(process,
			     xs_chrome_lane(process, &own->unplaced, title, task->start, end,
					    XS_FIT_NESTING),
			     task, end, unfinished);
	}
	if (!displaced) {
		uint64_t start = shown_start(track, task, end);
		char *o = xs_chrome_put_slice(xs_output_put(&xs_chrome_of(process)->out), track,
					      start, end);

		return end_slice(process, o, (struct xs_place){ track->tid, start }, task,
				 unfinished);
	}
	(void)snprintf(title, sizeof(title), "%u (overlapping)", track->tid);
	return slice(process,
		     xs_chrome_lane(process, &own->crossing, title, task->start, end, XS_FIT_APART),
		     task, end, unfinished);
}

void xs_chrome_span(struct xs_process *process, const struct xs_slice *span)
{
	static const struct xs_id none;
	const struct xs_open *task = span->task;
	const struct xs_extra *extra = task->extra;
	uint32_t row = span->kind == XS_SPAN_TASK ? span->row : span->kind;
	bool thread = span->track && (span->kind == XS_SPAN_TASK ? !row : true);
	struct xs_place place;
	struct xs_id self;

	if (!xs_chrome_wants_task(process, task->name.id))
		return;
	place = thread ? on_thread(span->track, task, span->end, span->displaced, span->unfinished)
		       : on_row(process, row, task, span->end, span->unfinished);
	if (!extra)
		return;
	if (memcmp(&extra->id, &none, sizeof(none)))
		xs_flows_place(process, &extra->id, place, span->end);
	self = xs_id_of_self(extra->self);
	if (extra->self)
		xs_flows_place(process, &self, place, span->end);
}

/* ---- marks, counters, arrows ---- */

void xs_chrome_mark(struct xs_process *process, const struct xs_mark *mark)
{
	static const char *const scopes[] = { "t", "p", "g" };
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t length;
	const char *text;
	char *o;

	if (!xs_chrome_wants(chrome, XS_TYPE_CPU_INSTANT_EVENT))
		return;
	if (mark->id && mark->within)
		xs_flows_mark(process, mark->id, mark->within, mark->ns);
	o = xs_put_count(xs_output_put(&chrome->out), "{\"ph\":\"i\",\"tid\":", mark->tid);
	o = xs_put(xs_put_count(o, ",\"pid\":", (uint32_t)process->pid), ",\"ts\":");
	o = xs_json_micros(o, mark->ns);
	o = xs_put(xs_put(xs_put(o, ",\"s\":\""),
			  scopes[mark->scope <= XS_SCOPE_GLOBAL ? mark->scope : 0]),
		   "\"");
	o = xs_chrome_put_args(o, process, mark->id, mark->extra, false);
	if (chrome->kineto && !mark->metadata) {
		o = xs_put(o, ",\"cat\":\"cpu_instant_event\"");
		xs_chrome_finish(chrome, xs_chrome_put_bare_name(o, process, mark->name));
		return;
	}
	if (!mark->metadata) {
		xs_chrome_finish(chrome, xs_chrome_put_name(o, process, mark->name));
		return;
	}
	text = xs_text_of(process->run, mark->name, &length);
	o = xs_json_escape(xs_put(o, ",\"cat\":\"cpu_op\",\"name\":\""), text,
			   length < 8192 ? length : 8192);
	xs_chrome_finish(chrome, xs_put(o, "::metadata\"},\n"));
}

void xs_chrome_counter(struct xs_process *process, const struct xs_counter_record *record,
		       uint64_t ns)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	char *o = xs_output_put(&chrome->out);

	if (record->event.flags == XS_VALUE_DOUBLE && !isfinite(record->value.d))
		return; /* no viewer can show it, and JSON cannot say it */
	if (!chrome->counter_length)
		chrome->counter_length =
			(uint32_t)(xs_put(xs_put_count(chrome->counter, "{\"ph\":\"C\",\"pid\":",
						       (uint32_t)process->pid),
					  ",\"ts\":") -
				   chrome->counter);
	memcpy(o, chrome->counter, sizeof(chrome->counter));
	o = xs_put(xs_json_time(o + chrome->counter_length, ns, &chrome->time),
		   ",\"args\":{\"value\":");
	if (record->event.flags == XS_VALUE_DOUBLE)
		o = xs_chrome_put_double(o, record->value.d, false);
	else if (record->event.flags == XS_VALUE_S64)
		o = xs_json_signed(o, record->value.s);
	else
		o = xs_json_uint(o, record->value.u);
	/* a counter is its process's, of no thread and no category: a fifth less to write */
	xs_chrome_finish(chrome,
			 xs_chrome_put_bare_name(xs_put(o, "}"), process, record->event.name));
}
