/*
 * --cpu-metrics: what processors have counted for tasks, a row for each name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "hash.h"
#include "names.h"
#include "put.h"
#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "text.h"
#include "timing.h"

typedef unsigned long long ull;

#define ROWS_MAX   65536u
#define FIRST	   64u /* rows; a power of two */
#define NAME_SHOWN 1024u
#define WIDTH	   20

struct row {
	uint32_t name, known; /* string id; events that all of its tasks have */
	uint64_t calls, ns;
	uint64_t value[XS_CPU_EVENTS];
};

struct xs_task_counts {
	struct row *rows;
	uint32_t *index; /* number of the row + 1; 0: free; twice as many as there is room for */
	uint32_t count, room;
	uint64_t uncounted, omitted; /* tasks without counts; those of too many names */
};

static struct xs_task_counts *counts_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_TASK_COUNTS];
}

static uint32_t *place_of(const struct xs_task_counts *counts, uint32_t name)
{
	uint32_t mask = 2 * counts->room - 1, at = xs_hash_id(name) & mask;

	while (counts->index[at] && counts->rows[counts->index[at] - 1].name != name)
		at = (at + 1) & mask;
	return &counts->index[at];
}

static bool grow(struct xs_task_counts *counts)
{
	uint32_t room = counts->room ? 2 * counts->room : FIRST;
	uint32_t *index = room <= ROWS_MAX ? calloc(2 * room, sizeof(*index)) : NULL;
	struct row *rows = index ? realloc(counts->rows, room * sizeof(*rows)) : NULL;

	if (!rows) {
		free(index);
		return false;
	}
	free(counts->index);
	counts->rows = rows;
	counts->index = index;
	counts->room = room;
	for (uint32_t i = 0; i < counts->count; i++)
		*place_of(counts, rows[i].name) = i + 1;
	return true;
}

static struct row *row_of(struct xs_task_counts *counts, uint32_t name)
{
	uint32_t *place;

	if (counts->room) {
		place = place_of(counts, name);
		if (*place)
			return &counts->rows[*place - 1];
	}
	if (counts->count == counts->room && !grow(counts))
		return NULL;
	place = place_of(counts, name);
	counts->rows[counts->count] = (struct row){ .name = name, .known = XS_CPU_ALL };
	*place = ++counts->count;
	return &counts->rows[counts->count - 1];
}

static void add_slice(struct xs_process *process, const struct xs_slice *slice)
{
	const struct xs_counted *counted = slice->task->extra ? &slice->task->extra->counted : NULL;
	struct xs_task_counts *counts = counts_of(process);
	struct row *row;

	if (slice->kind != XS_SPAN_TASK)
		return;
	if (slice->unfinished || !counted || !counted->known) {
		counts->uncounted++;
		return;
	}
	row = row_of(counts, slice->task->name.id);
	if (!row) {
		counts->omitted++;
		return;
	}
	row->calls++;
	row->ns += slice->end > slice->task->start ? slice->end - slice->task->start : 0;
	row->known &= counted->known;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (counted->known >> event & 1)
			row->value[event] += counted->value[event];
}

static void add_plain(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	(void)tasks;
	counts_of(track->process)->uncounted += count;
}

/* ---- the report ---- */

static int longer(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->ns != other->ns)
		return one->ns < other->ns ? 1 : -1;
	return one->name < other->name ? -1 : one->name > other->name;
}

static bool ipc_of(const struct row *row, double *ret)
{
	struct xs_counted counted = { .known = row->known };

	memcpy(counted.value, row->value, sizeof(counted.value));
	return xs_counted_ipc(&counted, ret);
}

/* "cycles", or "cycles/call" */
static void print_head(struct xs_report *report, uint32_t event, const char *end)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%s%s", xs_cpu_event_name(event), end);
	xs_report_print(report, ", %*s", WIDTH, text);
}

static void print_cell(struct xs_report *report, const struct row *row, uint32_t event, bool each)
{
	if (!(row->known >> event & 1))
		xs_report_print(report, ", %*s", WIDTH, "-");
	else if (each)
		xs_report_print(report, ", %*.2f", WIDTH,
				(double)row->value[event] / (double)row->calls);
	else
		xs_report_print(report, ", %*llu", WIDTH, (ull)row->value[event]);
}

static size_t name_of(const struct xs_process *process, const struct row *row, char *name)
{
	size_t length;
	const char *text = xs_text_of(process->run, row->name, &length);

	return (size_t)(xs_plain(name, text, length < NAME_SHOWN ? length : NAME_SHOWN) - name);
}

static void print_row(struct xs_report *report, const struct xs_process *process,
		      const struct row *row, uint32_t known, int width)
{
	char name[4 * NAME_SHOWN + 1];
	double rate;
	int columns;

	name[name_of(process, row, name)] = '\0';
	columns = (int)xs_timing_columns(name, strlen(name));
	xs_report_print(report, "%*s%s, %*llu, %*llu", width > columns ? width - columns : 0, "",
			name, WIDTH, (ull)row->calls, WIDTH, (ull)row->ns);
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (known >> event & 1) {
			print_cell(report, row, event, false);
			print_cell(report, row, event, true);
		}
	if (ipc_of(row, &rate))
		xs_report_print(report, ", %8.3f", rate);
	xs_report_print(report, "\n");
}

static void print_text(struct xs_report *report, struct xs_process *process, uint32_t known)
{
	const uint32_t both = XS_CPU_BIT(XS_CPU_CYCLES) | XS_CPU_BIT(XS_CPU_INSTRUCTIONS);
	struct xs_task_counts *counts = counts_of(process);
	char name[4 * NAME_SHOWN + 1];
	int width = (int)strlen("Task");

	for (uint32_t i = 0; i < counts->count; i++) {
		size_t length = name_of(process, &counts->rows[i], name);

		if ((int)xs_timing_columns(name, length) > width)
			width = (int)xs_timing_columns(name, length);
	}
	xs_timing_title(process, report, "Task Counters", "\n");
	xs_report_print(report, "%*s, %*s, %*s", width, "Task", WIDTH, "Calls", WIDTH, "Time (ns)");
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (known >> event & 1) {
			print_head(report, event, "");
			print_head(report, event, "/call");
		}
	xs_report_print(report, (known & both) == both ? ", %8s\n" : "\n", "IPC");
	for (uint32_t i = 0; i < counts->count; i++)
		print_row(report, process, &counts->rows[i], known, width);
	if (counts->uncounted + counts->omitted)
		xs_report_print(report,
				"\n(%llu tasks are not in this table: nothing was counted "
				"for them, or there are too many names)\n",
				(ull)(counts->uncounted + counts->omitted));
	xs_report_print(report, "\n");
}

static void put_row(struct xs_report *report, struct xs_process *process, const struct row *row)
{
	char name[4 * NAME_SHOWN + 1], text[2048], *o = text;
	struct xs_report_row out;
	double rate;

	xs_row_begin(&out, "task_counters", "ITT");
	xs_row_text(&out, XS_COL_NAME, name, name_of(process, row, name));
	xs_row_number(&out, XS_COL_CALLS, row->calls);
	xs_row_number(&out, XS_COL_TIME, row->ns);
	xs_row_number(&out, XS_COL_AVERAGE, row->ns / row->calls);
	*o++ = '{';
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (row->known >> event & 1)
			o += sprintf(o, "%s\"%s\": %llu", o == text + 1 ? "" : ", ",
				     xs_cpu_event_name(event), (ull)row->value[event]);
	if (ipc_of(row, &rate))
		o += sprintf(o, ", \"ipc\": %.6f", rate);
	*o++ = '}';
	xs_row_json(&out, XS_COL_COUNTED, text, (size_t)(o - text));
	xs_row_end(report, &out);
}

static void drop(struct xs_process *process)
{
	struct xs_task_counts *counts = counts_of(process);

	free(counts->rows);
	free(counts->index);
	free(counts);
}

static bool close_counts(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_task_counts *counts = counts_of(process);
	struct xs_report *report = counts->count ? xs_report_of(process, XS_REPORT_TASK_COUNTS)
						 : NULL;
	uint32_t known = 0;

	(void)end, (void)status;
	if (report) {
		qsort(counts->rows, counts->count, sizeof(*counts->rows), longer);
		for (uint32_t i = 0; i < counts->count; i++)
			known |= counts->rows[i].known;
		if (report->format == XS_REPORT_TEXT)
			print_text(report, process, known);
		for (uint32_t i = 0; report->format != XS_REPORT_TEXT && i < counts->count; i++)
			put_row(report, process, &counts->rows[i]);
	}
	drop(process);
	return report;
}

static bool wanted(const struct xs_run *run)
{
	return run->options->cpu_events_of_tasks;
}

static bool open_counts(struct xs_process *process)
{
	process->sink[XS_SINK_TASK_COUNTS] = calloc(1, sizeof(struct xs_task_counts));
	return process->sink[XS_SINK_TASK_COUNTS];
}

const struct xs_sink xs_task_counts_sink = {
	.wanted = wanted,
	.open = open_counts,
	.tasks = add_plain,
	.slice = add_slice,
	.close = close_counts,
	.drop = drop,
};
