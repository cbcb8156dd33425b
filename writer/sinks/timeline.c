/*
 * -t: one line for each command, as it completes.
 */
#include "backends.h"
#include "device_record.h"
#include "json.h"
#include "summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *xs_put(char *o, const char *text)
{
	return stpcpy(o, text);
}

/* As unitrace has it: shapes and sizes are shown for Level Zero whatever is asked for. */
static struct xs_table_key key_of(const struct xs_process *process, const struct xs_work *work)
{
	return xs_work_key(work, process->run->options->verbose ||
					 xs_backend_of(work->record->event.source)->detailed);
}

static char *put_line(char *o, const struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_table_key key = key_of(process, work);

	if (process->run->options->show_pid)
		o = xs_put(xs_json_uint(xs_put(o, "<PID:"), (uint64_t)process->pid), "> ");
	o = xs_json_uint(xs_put(o, "Thread "), record->tid);
	o = xs_put(xs_json_uint(xs_put(o, " Device "), record->device), " : ");
	o += xs_row_name(process, &key, true, o);
	o = xs_put(xs_json_uint(xs_put(o, " [ns] "), work->queued), " (append) ");
	o = xs_put(xs_json_uint(o, work->submit), " (submit) ");
	o = xs_put(xs_json_uint(o, work->start), " (start) ");
	return xs_put(xs_json_uint(o, work->end), " (end)\n");
}

static char *put_row(char *o, const struct xs_report *report, const struct xs_process *process,
		     const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	char name[XS_ROW_NAME_MAX], engine[16];
	struct xs_table_key key = key_of(process, work);
	struct xs_report_row row;

	xs_row_begin(&row, "device_timeline", xs_backend_of(record->event.source)->label);
	xs_row_text(&row, XS_COL_NAME, name, xs_row_name(process, &key, false, name));
	xs_row_number(&row, XS_COL_PID, (uint64_t)process->pid);
	xs_row_number(&row, XS_COL_TID, record->tid);
	xs_row_number(&row, XS_COL_DEVICE, record->device);
	if (record->tile)
		xs_row_number(&row, XS_COL_TILE, record->tile - 1u);
	if (record->engine)
		xs_row_text(&row, XS_COL_ENGINE, engine,
			    (size_t)sprintf(engine, "%u.%u", record->engine - 1u,
					    record->engine_index));
	if (record->bytes)
		xs_row_number(&row, XS_COL_BYTES, record->bytes);
	xs_row_number(&row, XS_COL_AT_QUEUED, work->queued);
	xs_row_number(&row, XS_COL_AT_SUBMIT, work->submit);
	xs_row_number(&row, XS_COL_AT_START, work->start);
	xs_row_number(&row, XS_COL_AT_END, work->end);
	return xs_row_put(o, report, &row);
}

/* ---- the order ---- */

/*
 * Commands are told by several threads, whose rings are read one after the other. So the lines of a
 * while are kept and given out in the order of their commands' ends.
 */
#define LINES	1024u
#define ROOM	262144u
#define LONGEST 65536u

struct line {
	uint64_t end;
	uint32_t offset, length;
};

struct xs_timeline_lines {
	uint32_t count, used;
	struct line lines[LINES];
	char text[ROOM];
};

static int by_end(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->end < y->end	       ? -1
	       : x->end > y->end       ? 1
	       : x->offset < y->offset ? -1
				       : x->offset > y->offset;
}

static void flush(struct xs_process *process)
{
	struct xs_timeline_lines *kept = process->sink[XS_SINK_TIMELINE];
	struct xs_report *report = kept && kept->count ? xs_report_of(process, XS_REPORT_TIMELINE)
						       : NULL;

	if (!report)
		return;
	qsort(kept->lines, kept->count, sizeof(kept->lines[0]), by_end);
	for (uint32_t i = 0; i < kept->count; i++)
		xs_report_end(report,
			      mempcpy(xs_report_begin(report), kept->text + kept->lines[i].offset,
				      kept->lines[i].length));
	kept->count = kept->used = 0;
}

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	struct xs_report *report = xs_report_of(process, XS_REPORT_TIMELINE);
	struct xs_timeline_lines *kept = process->sink[XS_SINK_TIMELINE];
	char *from, *end;

	if (!report)
		return;
	if (kept->count == LINES || kept->used > ROOM - LONGEST)
		flush(process);
	from = kept->text + kept->used;
	end = report->format == XS_REPORT_TEXT ? put_line(from, process, work)
					       : put_row(from, report, process, work);
	kept->lines[kept->count++] = (struct line){ .end = work->end,
						    .offset = kept->used,
						    .length = (uint32_t)(end - from) };
	kept->used += (uint32_t)(end - from);
}

static bool wanted(const struct xs_run *run)
{
	return run->options->device_timeline;
}

static bool open_timeline(struct xs_process *process)
{
	process->sink[XS_SINK_TIMELINE] = calloc(1, sizeof(struct xs_timeline_lines));
	return process->sink[XS_SINK_TIMELINE];
}

static void drop_timeline(struct xs_process *process)
{
	free(process->sink[XS_SINK_TIMELINE]);
}

static bool close_timeline(struct xs_process *process, enum xs_end end, int status)
{
	(void)end, (void)status;
	flush(process);
	drop_timeline(process);
	return false; /* its report tells */
}

const struct xs_sink xs_timeline_sink = {
	.wanted = wanted,
	.open = open_timeline,
	.work = add_work,
	.flush = flush,
	.close = close_timeline,
	.drop = drop_timeline,
};
