#include "files.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "overhead.h"
#include "stored.h"
#include "text.h"

#define PRINT_MAX 16384

struct xs_reports {
	struct xs_report *of[XS_REPORT_COUNT]; /* the same one for several kinds */
};

/* ---- files ---- */

/* Do all kinds of reports go to one place? */
static bool in_one_place(const struct xs_options *options)
{
	return !options->result_dir[0];
}

static void put_head(struct xs_report *report);

static struct xs_report *open_report(struct xs_process *process, enum xs_report_kind kind)
{
	const struct xs_options *options = process->run->options;
	struct xs_report *report = calloc(1, sizeof(*report));
	int fd = STDERR_FILENO, error;

	if (!report)
		return NULL;
	report->format = options->report_format;
	if (options->output[0] || options->result_dir[0]) {
		fd = xs_file_create(process, (enum xs_file)kind, report->path,
				    sizeof(report->path));
		report->to_file = fd >= 0;
		if (fd < 0)
			xs_tell("xstrace: cannot write %s: %s; the report follows here\n",
				report->path, strerror(-fd));
		fd = fd < 0 ? STDERR_FILENO : fd;
	}
	error = xs_output_init(&report->out, fd, 0, XS_COMPRESS_NONE);
	if (error < 0) {
		if (report->to_file)
			close(fd);
		free(report->out.data);
		free(report);
		return NULL;
	}
	report->out.borrowed = !report->to_file;
	put_head(report);
	return report;
}

struct xs_report *xs_report_of(struct xs_process *process, enum xs_report_kind kind)
{
	struct xs_report *report;

	if (!process->reports)
		process->reports = calloc(1, sizeof(*process->reports));
	if (!process->reports)
		return NULL;
	report = process->reports->of[kind];
	if (report)
		return report;
	report = open_report(process, kind);
	for (int i = 0; i < XS_REPORT_COUNT; i++)
		if (i == (int)kind || in_one_place(process->run->options))
			process->reports->of[i] = report;
	return report;
}

static void tell_error(struct xs_report *report, int error)
{
	if (error < 0 && !report->told && report->to_file)
		xs_tell("xstrace: cannot write all of %s: %s; the application goes on, what "
			"follows is lost\n",
			report->path, strerror(-error));
	report->told |= error < 0;
}

void xs_reports_flush(struct xs_process *process)
{
	for (int i = 0; process->reports && i < XS_REPORT_COUNT; i++)
		if (process->reports->of[i] && process->reports->of[i]->out.length) {
			(void)xs_output_flush(&process->reports->of[i]->out);
			tell_error(process->reports->of[i], process->reports->of[i]->out.error);
		}
}

void xs_report_end(struct xs_report *report, char *end)
{
	xs_output_put_end(&report->out, end);
	if (xs_output_full(&report->out))
		(void)xs_output_flush(&report->out);
	tell_error(report, report->out.error);
}

void xs_report_print(struct xs_report *report, const char *format, ...)
{
	char *out = xs_report_begin(report);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out, PRINT_MAX, format, args);
	va_end(args);
	xs_report_end(report, out + (n < 0 ? 0 : n < PRINT_MAX ? n : PRINT_MAX - 1));
}

/* ---- JSON and CSV ---- */

enum { CELL_EMPTY, CELL_NUMBER, CELL_REAL, CELL_TEXT, CELL_JSON };

static const char *const columns[XS_COL_COUNT] = {
	"report",
	"backend",
	"name",
	"calls",
	"failed",
	"time_ns",
	"time_percent",
	"average_ns",
	"min_ns",
	"max_ns",
	"p50_ns",
	"p90_ns",
	"p99_ns",
	"queued_ns",
	"queued_percent",
	"submit_ns",
	"submit_percent",
	"execute_ns",
	"execute_percent",
	"message_bytes",
	"compiled",
	"simd",
	"arguments",
	"slm_per_work_group",
	"private_per_thread",
	"spill_per_thread",
	"registers_per_thread",
	"pid",
	"tid",
	"device",
	"tile",
	"engine",
	"bytes",
	"queued_at_ns",
	"submitted_at_ns",
	"started_at_ns",
	"ended_at_ns",
	"result",
	"in",
	"out",
	"xstrace_ns",
	"run_ns",
	"comm",
	"host",
	"rank",
	"lost",
	"untimed_commands",
	"open_commands",
	"open_requests",
	"counted",
	"threads",
	"work_ns",
	"waited_ns",
	"late_ns",
	"imbalance_percent",
	"self_ns",
	"only_counted",
	"drain_cpu_ns",
};

static void put_head(struct xs_report *report)
{
	char *o = xs_report_begin(report);

	if (report->format == XS_REPORT_JSON)
		*o++ = '[', *o++ = '\n';
	for (int i = 0; report->format == XS_REPORT_CSV && i < XS_COL_COUNT; i++)
		o += sprintf(o, "%s%s", columns[i], i + 1 < XS_COL_COUNT ? "," : "\n");
	xs_report_end(report, o);
}

void xs_row_begin(struct xs_report_row *row, const char *kind, const char *backend)
{
	memset(row, 0, sizeof(*row));
	xs_row_text(row, XS_COL_REPORT, kind, strlen(kind));
	if (backend)
		xs_row_text(row, XS_COL_BACKEND, backend, strlen(backend));
}

void xs_row_number(struct xs_report_row *row, enum xs_column column, uint64_t value)
{
	row->cell[column].type = CELL_NUMBER;
	row->cell[column].value.number = value;
}

void xs_row_real(struct xs_report_row *row, enum xs_column column, double value)
{
	row->cell[column].type = CELL_REAL;
	row->cell[column].value.real = value;
}

void xs_row_text(struct xs_report_row *row, enum xs_column column, const char *text, size_t length)
{
	row->cell[column].type = CELL_TEXT;
	row->cell[column].length = (uint32_t)length;
	row->cell[column].value.text = text;
}

void xs_row_json(struct xs_report_row *row, enum xs_column column, const char *text, size_t length)
{
	xs_row_text(row, column, text, length);
	row->cell[column].type = CELL_JSON;
}

/* Quotes doubled; what is not a printable character becomes '?'. */
static char *put_csv_text(char *o, const struct xs_row_cell *cell)
{
	const char *text = cell->value.text, *stop = text + cell->length;

	*o++ = '"';
	while (text < stop) {
		const char *quote = memchr(text, '"', (size_t)(stop - text)),
			   *end = quote ? quote : stop;

		o = xs_plain(o, text, (size_t)(end - text));
		if (quote)
			*o++ = '"', *o++ = '"', end++;
		text = end;
	}
	*o++ = '"';
	return o;
}

static char *put_cell(char *o, const struct xs_row_cell *cell, bool json)
{
	switch (cell->type) {
	case CELL_NUMBER:
		return xs_json_uint(o, cell->value.number);
	case CELL_REAL:
		return o + sprintf(o, "%.6f", cell->value.real);
	case CELL_JSON:
		if (json) {
			memcpy(o, cell->value.text, cell->length);
			return o + cell->length;
		}
		return put_csv_text(o, cell);
	default:
		if (!json)
			return put_csv_text(o, cell);
		*o++ = '"';
		o = xs_json_escape(o, cell->value.text, cell->length);
		*o++ = '"';
		return o;
	}
}

/* The row without what is behind it. */
static char *put_row(char *o, const struct xs_report_row *row, bool json)
{
	bool first = true;

	if (json)
		*o++ = '{';
	for (int i = 0; i < XS_COL_COUNT; i++) {
		if (!json && i)
			*o++ = ',';
		if (!row->cell[i].type)
			continue;
		if (json)
			o += sprintf(o, "%s\"%s\":", first ? "" : ",", columns[i]);
		first = false;
		o = put_cell(o, &row->cell[i], json);
	}
	if (json)
		*o++ = '}';
	return o;
}

char *xs_row_put(char *o, const struct xs_report *report, const struct xs_report_row *row)
{
	bool json = report->format == XS_REPORT_JSON;

	o = put_row(o, row, json);
	if (json)
		*o++ = ',';
	*o++ = '\n';
	return o;
}

void xs_row_end(struct xs_report *report, const struct xs_report_row *row)
{
	xs_report_end(report, xs_row_put(xs_report_begin(report), report, row));
}

/* The last row of JSON and CSV: whose reports these are. It also ends the array without a comma. */
static size_t put_tail(char *tail, const struct xs_process *process, const struct xs_report *report)
{
	const struct xs_run *run = process->run;
	struct xs_overhead overhead;
	struct xs_report_row row;
	char *o = tail;

	if (report->format == XS_REPORT_TEXT)
		return 0;
	xs_overhead_of(process, &overhead);
	xs_row_begin(&row, "process", NULL);
	xs_row_number(&row, XS_COL_PID, (uint64_t)process->pid);
	xs_row_number(&row, XS_COL_RUN_TIME, process->host_ns);
	xs_row_number(&row, XS_COL_OVERHEAD,
		      overhead.events_ns + overhead.waited_ns + overhead.commands_ns);
	xs_row_number(&row, XS_COL_DRAIN, overhead.drain_ns);
	xs_row_text(&row, XS_COL_COMM, process->comm, strlen(process->comm));
	xs_row_text(&row, XS_COL_HOST, run->host, strlen(run->host));
	if (xs_process_rank(process) >= 0)
		xs_row_number(&row, XS_COL_RANK, (uint64_t)xs_process_rank(process));
	xs_row_number(&row, XS_COL_LOST, process->lost);
	xs_row_number(&row, XS_COL_UNTIMED, process->untimed);
	xs_row_number(&row, XS_COL_OPEN_COMMANDS, process->open_commands);
	xs_row_number(&row, XS_COL_OPEN_REQUESTS, process->open_requests);
	o = put_row(o, &row, report->format == XS_REPORT_JSON);
	*o++ = '\n';
	if (report->format == XS_REPORT_JSON)
		*o++ = ']', *o++ = '\n';
	return (size_t)(o - tail);
}

static void close_report(struct xs_process *process, struct xs_report *report)
{
	char tail[2048];
	size_t length = put_tail(tail, process, report);
	int error = xs_output_close(&report->out, tail, length);

	tell_error(report, error);
	if (error < 0 && report->to_file)
		xs_file_failed(process);
	if (report->to_file)
		xs_tell_output("Log is", report->path, &report->out, error);
	free(report);
}

bool xs_reports_close(struct xs_process *process)
{
	struct xs_reports *reports = process->reports;
	bool some = false;

	for (int i = 0; reports && i < XS_REPORT_COUNT; i++) {
		struct xs_report *report = reports->of[i];

		for (int k = i; k < XS_REPORT_COUNT; k++)
			if (reports->of[k] == report)
				reports->of[k] = NULL;
		if (report) {
			close_report(process, report);
			some = true;
		}
	}
	free(reports);
	process->reports = NULL;
	return some;
}
