/*
 * -t: one line for each command, as it completes.
 */
#include "json.h"
#include "summary.h"

#include <stdio.h>
#include <string.h>

static char *put(char *o, const char *text)
{
	return stpcpy(o, text);
}

static void put_line(struct xs_report *report, struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_table_key key = xs_work_key(process, work);
	char *o = xs_report_begin(report);

	if (process->run->options->show_pid)
		o = put(xs_json_uint(put(o, "<PID:"), (uint64_t)process->pid), "> ");
	o = xs_json_uint(put(o, "Thread "), record->tid);
	o = put(xs_json_uint(put(o, " Device "), record->device), " : ");
	o += xs_row_name(process, &key, true, o);
	o = put(xs_json_uint(put(o, " [ns] "), work->queued), " (append) ");
	o = put(xs_json_uint(o, work->submit), " (submit) ");
	o = put(xs_json_uint(o, work->start), " (start) ");
	xs_report_end(report, put(xs_json_uint(o, work->end), " (end)\n"));
}

static void put_row(struct xs_report *report, struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	char name[XS_ROW_NAME_MAX], engine[16];
	struct xs_table_key key = xs_work_key(process, work);
	struct xs_report_row row;

	xs_row_begin(&row, "device_timeline", record->event.source == XS_SOURCE_LEVEL_ZERO ? "L0" : "CL");
	xs_row_text(&row, XS_COL_NAME, name, xs_row_name(process, &key, false, name));
	xs_row_number(&row, XS_COL_PID, (uint64_t)process->pid);
	xs_row_number(&row, XS_COL_TID, record->tid);
	xs_row_number(&row, XS_COL_DEVICE, record->device);
	if (record->tile)
		xs_row_number(&row, XS_COL_TILE, record->tile - 1u);
	if (record->engine)
		xs_row_text(&row, XS_COL_ENGINE, engine, (size_t)sprintf(engine, "%u.%u", record->engine - 1u, record->engine_index));
	if (record->bytes)
		xs_row_number(&row, XS_COL_BYTES, record->bytes);
	xs_row_number(&row, XS_COL_AT_QUEUED, work->queued);
	xs_row_number(&row, XS_COL_AT_SUBMIT, work->submit);
	xs_row_number(&row, XS_COL_AT_START, work->start);
	xs_row_number(&row, XS_COL_AT_END, work->end);
	xs_row_end(report, &row);
}

void xs_timeline_device(struct xs_process *process, const struct xs_work *work)
{
	struct xs_report *report = xs_report_of(process, XS_REPORT_TIMELINE);

	if (!report)
		return;
	if (report->format == XS_REPORT_TEXT)
		put_line(report, process, work);
	else
		put_row(report, process, work);
}
