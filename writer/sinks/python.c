/*
 * --python-stacks with -h: a row for each function, with the time that it spent in itself.
 *
 * Slices of a thread are told when they end, those inside of another one first. So of what has
 * ended a thread keeps those that no other one holds yet, and what comes next takes those inside of
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "summary.h"
#include "timing.h"

#define ENDED_MAX 256u /* beyond: the oldest count as nobody's */

typedef unsigned long long ull;

struct python {
	struct xs_table functions;
	uint32_t domain; /* string id of "Python"; 0: not seen yet */
};

/* Of a track: what has ended and is in nothing that has. */
struct ended {
	uint32_t count;
	struct {
		uint64_t start, ns;
	} of[ENDED_MAX];
};

static bool is_python(struct xs_process *process, struct python *python, uint32_t name)
{
	uint32_t scope = xs_name_of(process, name).scope;
	struct xs_text text;

	if (!scope || scope == python->domain)
		return scope != 0;
	text = xs_text_find(process->run, scope);
	if (text.length != 6 || memcmp(text.text, "Python", 6) != 0)
		return false;
	python->domain = scope;
	return true;
}

static uint64_t inside_of(struct ended *ended, uint64_t start)
{
	uint64_t ns = 0;

	while (ended->count && ended->of[ended->count - 1].start >= start)
		ns += ended->of[--ended->count].ns;
	return ns;
}

static void add(struct xs_track *track, uint32_t name, uint64_t start, uint64_t end)
{
	struct python *python = track->process->sink[XS_SINK_PYTHON];
	struct ended *ended = track->sink[XS_SINK_PYTHON];
	struct xs_table_key key = { .id = name };
	uint64_t ns = end - start, inside;
	struct xs_table_row *row;

	if (!is_python(track->process, python, name))
		return;
	inside = inside_of(ended, start);
	if (ended->count == ENDED_MAX)
		memmove(ended->of, ended->of + 1, --ended->count * sizeof(ended->of[0]));
	ended->of[ended->count].start = start;
	ended->of[ended->count++].ns = ns;
	row = xs_table_add(&python->functions, &key, ns);
	if (row)
		row->work += inside < ns ? ns - inside : 0;
}

static void add_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add(track, tasks[i].name, tasks[i].start, tasks[i].end);
}

static void add_slice(struct xs_process *process, const struct xs_slice *slice)
{
	(void)process;
	if (slice->kind == XS_SPAN_TASK && slice->track)
		add(slice->track, slice->task->name.id, slice->task->start, slice->end);
}

/* Where they were made is not known: their time stays in that of their callers, too. */
static void add_called(struct xs_process *process, uint32_t name, uint64_t calls, uint64_t ns)
{
	struct python *python = process->sink[XS_SINK_PYTHON];
	struct xs_table_key key = { .id = name };
	struct xs_table_row *row;

	if (!is_python(process, python, name))
		return;
	row = xs_table_add(&python->functions, &key, ns / calls);
	if (!row)
		return;
	row->calls += calls - 1;
	row->total += ns - ns / calls;
	row->work += ns;
	row->late += calls;
}

/* ---- the report ---- */

static void print_rows(struct xs_process *process, struct xs_report *report,
		       const struct xs_table *table)
{
	uint64_t total = xs_timing_total(table);
	int width = xs_rows_width(process, table, "Function");

	xs_report_print(report,
			"\n== Python Functions ==\n\n%*s, %12s, %16s, %9s, %16s, %14s, %14s, %14s, "
			"%14s\n",
			width, "Function", "Calls", "Time (ns)", "Time (%)", "Self (ns)",
			"Average (ns)", "Min (ns)", "Max (ns)", "Only Counted");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		xs_row_put_name(process, report, row, width);
		xs_report_print(report,
				", %12llu, %16llu, %9.2f, %16llu, %14llu, %14llu, %14llu, %14llu\n",
				(ull)row->calls, (ull)row->total,
				xs_timing_percent(row->total, total), (ull)row->work,
				(ull)(row->total / row->calls), (ull)row->low, (ull)row->high,
				(ull)row->late);
	}
	xs_report_print(report, "\n");
}

static void put_rows(struct xs_process *process, struct xs_report *report,
		     const struct xs_table *table)
{
	uint64_t total = xs_timing_total(table);
	char name[XS_ROW_NAME_MAX];
	struct xs_report_row out;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		xs_row_begin(&out, "python_functions", "Python");
		xs_row_text(&out, XS_COL_NAME, name, xs_row_name(process, &row->key, false, name));
		xs_timing_times(&out, row, total);
		xs_row_number(&out, XS_COL_SELF, row->work);
		xs_row_number(&out, XS_COL_ONLY_COUNTED, row->late);
		xs_row_end(report, &out);
	}
}

static bool print(struct xs_process *process, struct python *python)
{
	struct xs_report *report = python->functions.count ? xs_report_of(process, XS_REPORT_PYTHON)
							   : NULL;

	if (!report)
		return false;
	xs_table_sort(&python->functions);
	(report->format == XS_REPORT_TEXT ? print_rows : put_rows)(process, report,
								   &python->functions);
	return true;
}

/* ---- the sink ---- */

static bool wanted(const struct xs_run *run)
{
	return run->options->python_stacks[0] && run->options->host_timing;
}

static bool open_python(struct xs_process *process)
{
	process->sink[XS_SINK_PYTHON] = calloc(1, sizeof(struct python));
	return process->sink[XS_SINK_PYTHON];
}

static void drop_python(struct xs_process *process)
{
	struct python *python = process->sink[XS_SINK_PYTHON];

	xs_table_fini(&python->functions);
	free(python);
}

static bool close_python(struct xs_process *process, enum xs_end end, int status)
{
	bool something = print(process, process->sink[XS_SINK_PYTHON]);

	(void)end, (void)status;
	drop_python(process);
	return something;
}

const struct xs_sink xs_python_sink = {
	.wanted = wanted,
	.open = open_python,
	.track_size = sizeof(struct ended),
	.tasks = add_tasks,
	.slice = add_slice,
	.called = add_called,
	.close = close_python,
	.drop = drop_python,
};
