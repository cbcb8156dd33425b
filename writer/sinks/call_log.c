/*
 * -c: each call as two lines, in the order of time over all threads of the process (calls.c); as
 * JSON and CSV one row.
 */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "functions.h"
#include "json.h"
#include "names.h"
#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "values.h"

static struct xs_handles *handles_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_CALL_LOG];
}

static struct xs_line line_in(const struct xs_process *process, struct xs_report *report)
{
	char *at = xs_report_begin(report);

	return (struct xs_line){ .at = at,
				 .stop = at + XS_SHOWN_LINE,
				 .handles = handles_of(process) };
}

static void put_number(struct xs_line *line, const char *before, uint64_t value, const char *after)
{
	xs_line_put(line, before);
	line->at = xs_json_uint(line->at, value);
	xs_line_put(line, after);
}

static void begin_line(struct xs_line *line, const struct xs_track *track, const char *arrow,
		       uint64_t ns, const struct xs_event *event)
{
	const struct xs_options *options = track->process->run->options;
	size_t length;
	const char *name = xs_text_of(track->process->run,
				      xs_function_id(event->source, event->name), &length);

	put_number(line, arrow, ns, "] ");
	if (options->show_pid)
		put_number(line, "<PID:", (uint64_t)track->process->pid, "> ");
	if (options->show_tid)
		put_number(line, "<TID:", track->tid, "> ");
	memcpy(line->at, name, length);
	line->at += length;
}

static void end_line(struct xs_report *report, struct xs_line *line)
{
	xs_line_put(line, "");
	*line->at++ = '\n';
	xs_report_end(report, line->at);
}

static void show_begin(struct xs_track *track, const struct xs_event *event,
		       const struct xs_given *given)
{
	const struct xs_function *function = xs_function_of(event->source, event->name, NULL);
	struct xs_report *report = xs_report_of(track->process, XS_REPORT_CALL_LOG);
	struct xs_line line;

	if (!report || report->format != XS_REPORT_TEXT ||
	    (!function && !xs_backend_of(event->source)->interned))
		return;
	line = line_in(track->process, report);
	begin_line(&line, track, ">>>> [", given->start, event);
	xs_line_put(&line, ":");
	if (function)
		xs_show_arguments(&line, function, given->words, given->count, given->values);
	end_line(report, &line);
}

static void write_row(struct xs_report *report, const struct xs_track *track,
		      const struct xs_call *call, const struct xs_function *function,
		      const struct xs_api *api)
{
	/* what was given, what came back */
	static char objects[2][XS_SHOWN_LINE / 2 + XS_LINE_SLACK + 2];
	const struct xs_event *event = call->event;
	size_t length;
	const char *name = xs_text_of(track->process->run, call->name, &length);
	char text[XS_RESULT_MAX];
	const char *result = xs_show_returned_result(api, function, call->result, text);
	struct xs_report_row row;

	xs_row_begin(&row, "call_log", xs_backend_of(event->source)->label);
	xs_row_text(&row, XS_COL_NAME, name, length);
	xs_row_number(&row, XS_COL_PID, (uint64_t)track->process->pid);
	xs_row_number(&row, XS_COL_TID, track->tid);
	xs_row_number(&row, XS_COL_FAILED, !!(event->flags & XS_CALL_FLAG_FAILED));
	xs_row_number(&row, XS_COL_TIME, call->end - call->start);
	xs_row_number(&row, XS_COL_AT_START, call->start);
	xs_row_number(&row, XS_COL_AT_END, call->end);
	if (result)
		xs_row_text(&row, XS_COL_RESULT, result, strlen(result));
	/* a name alone has no arguments, whatever the record says */
	if (function && call->given->begun)
		xs_row_json(&row, XS_COL_IN, objects[0],
			    (size_t)(xs_show_given(objects[0], function, call->given) -
				     objects[0]));
	if (function && call->given->values)
		xs_row_json(&row, XS_COL_OUT, objects[1],
			    (size_t)(xs_show_returned(objects[1], api, function, call->given) -
				     objects[1]));
	xs_row_end(report, &row);
}

static void write_line(struct xs_report *report, const struct xs_track *track,
		       const struct xs_call *call, const struct xs_function *function,
		       const struct xs_api *api)
{
	struct xs_line line = line_in(track->process, report);

	begin_line(&line, track, "<<<< [", call->end, call->event);
	put_number(&line, " [", call->end - call->start, " ns]");
	if (function)
		xs_show_values(&line, api, function, call->given->values,
			       call->given->begun && !call->given->complete);
	if (function && (function->returns == XS_RETURNS_RESULT ||
			 function->returns == XS_RETURNS_POINTER_AND_RESULT)) {
		xs_line_put(&line, " -> ");
		xs_show_result(&line, api, function, call->result,
			       call->event->flags & XS_CALL_FLAG_FAILED);
	} else if (!function && call->event->flags & XS_CALL_FLAG_FAILED) {
		put_number(&line, " -> ", (uint64_t)call->result, "");
	}
	end_line(report, &line);
}

static void show_call(struct xs_track *track, const struct xs_call *call)
{
	struct xs_report *report = xs_report_of(track->process, XS_REPORT_CALL_LOG);
	const struct xs_api *api;
	const struct xs_function *function =
		xs_function_of(call->event->source, call->event->name, &api);

	if (!report || !call->given)
		return;
	if (call->given->values && function && function->names)
		xs_handles_learn(handles_of(track->process), function, call->given->values);
	if (report->format == XS_REPORT_TEXT)
		write_line(report, track, call, function, api);
	else
		write_row(report, track, call, function, api);
}

static void show_left(struct xs_track *track, const struct xs_event *event, uint64_t start,
		      uint64_t end)
{
	struct xs_report *report = xs_report_of(track->process, XS_REPORT_CALL_LOG);
	struct xs_line line;

	if (!report || report->format != XS_REPORT_TEXT)
		return;
	line = line_in(track->process, report);
	begin_line(&line, track, "<<<< [", end, event);
	put_number(&line, " [", end > start ? end - start : 0, " ns] (unfinished)");
	end_line(report, &line);
}

static bool wanted(const struct xs_run *run)
{
	return run->options->call_logging && !run->flight;
}

static bool open_log(struct xs_process *process)
{
	process->sink[XS_SINK_CALL_LOG] = calloc(1, sizeof(struct xs_handles));
	return process->sink[XS_SINK_CALL_LOG];
}

static bool close_log(struct xs_process *process, enum xs_end end, int status)
{
	(void)end, (void)status;
	free(process->sink[XS_SINK_CALL_LOG]);
	return false;
}

static void drop_log(struct xs_process *process)
{
	free(process->sink[XS_SINK_CALL_LOG]);
}

const struct xs_sink xs_call_log_sink = {
	.wanted = wanted,
	.open = open_log,
	.call_begin = show_begin,
	.call = show_call,
	.call_left = show_left,
	.close = close_log,
	.drop = drop_log,
};
