/*
 * --openmp-report: where the threads of parallel regions worked, and where they waited for each
 * other.
 *
 * Each thread tells when it has arrived at a region's end. A run of a region counts when all of its
 * threads have told; rings are read one after the other, so many runs may be incomplete meanwhile.
 * Threads may still run tasks then: complete ones wait until many others are complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "summary.h"
#include "timing.h"
#include "tree.h"

#define RUNS_MAX     (1u << 18)
#define COMPLETE_MAX 4096u

typedef unsigned long long ull;

/* One run of a region. */
struct team_run {
	struct xs_tree_node node; /* first */
	uint64_t region;
	uint64_t first, last; /* when its first thread began, its last one arrived */
	uint64_t arrivals;    /* sum, since `first` as it was when each came */
	uint64_t work, longest, waited;
	uint64_t after; /* work in tasks, of threads that had arrived */
	uint32_t name, count, size;
	bool paused;	       /* recording was off while a thread was in it */
	struct team_run *next; /* unused ones; those that are complete */
};

struct openmp {
	struct xs_table regions;
	struct xs_tree runs;
	struct team_run *spare;
	struct team_run *complete, **last; /* in this order */
	uint32_t complete_count;
	uint64_t incomplete;
};

static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct team_run *a = (const void *)x, *b = (const void *)y;

	return a->region < b->region ? -1 : a->region > b->region;
}

/* The run's, made if it is new; NULL: no memory, or no room. */
static struct team_run *run_of(struct openmp *openmp, const struct xs_team *team)
{
	struct team_run key = { .region = team->region }, *run;

	run = (struct team_run *)xs_tree_before(&openmp->runs, &key.node);
	if (run && run->region == team->region)
		return run;
	if (team->more) /* of a run that was counted, or is lost */
		return NULL;
	if (openmp->runs.count >= RUNS_MAX) {
		openmp->incomplete++;
		return NULL;
	}
	run = openmp->spare;
	if (run)
		openmp->spare = run->next;
	else
		run = malloc(sizeof(*run));
	if (!run)
		return NULL;
	*run = (struct team_run){ .region = team->region,
				  .first = team->start,
				  .last = team->end,
				  .name = team->name,
				  .size = team->size };
	xs_tree_add(&openmp->runs, &run->node);
	return run;
}

/* What its threads have waited at the end, in sum. */
static uint64_t late_of(const struct team_run *run)
{
	uint64_t all = run->count * (run->last - run->first), used = run->arrivals + run->after;

	return all > used ? all - used : 0;
}

/* The oldest one of those that are complete. */
static void count_run(struct openmp *openmp)
{
	struct team_run *run = openmp->complete;
	const struct xs_table_key key = { .id = run->name };
	struct xs_table_row *row = NULL;

	if (run->paused) /* what its threads did meanwhile is neither work nor waiting */
		openmp->incomplete++;
	else
		row = xs_table_add(&openmp->regions, &key, run->last - run->first);

	openmp->complete_count--;
	openmp->complete = run->next;
	if (!run->next)
		openmp->last = &openmp->complete;

	if (row) {
		row->threads = run->size > row->threads ? run->size : row->threads;
		row->work += run->work;
		row->waited += run->waited;
		row->late += late_of(run);
		row->longest += run->longest * run->count;
	}
	xs_tree_take(&openmp->runs, &run->node);
	run->next = openmp->spare;
	openmp->spare = run;
}

static void add_team(struct xs_process *process, const struct xs_team *team)
{
	struct openmp *openmp = process->sink[XS_SINK_OPENMP];
	struct team_run *run = run_of(openmp, team);
	uint64_t work = team->end - team->start - team->waited;

	if (!run)
		return;
	run->paused |= team->paused;
	if (team->more) {
		run->after += work - team->told;
		run->work += work - team->told;
		run->longest = work > run->longest ? work : run->longest;
		run->last = team->end > run->last ? team->end : run->last;
		return;
	}
	if (team->start < run->first) {
		run->arrivals += run->count * (run->first - team->start);
		run->first = team->start;
	}
	if (team->end > run->last)
		run->last = team->end;
	run->arrivals += team->end - run->first;
	run->work += work;
	run->waited += team->waited;
	run->longest = work > run->longest ? work : run->longest;
	if (++run->count != run->size)
		return;
	run->next = NULL;
	*openmp->last = run;
	openmp->last = &run->next;
	if (++openmp->complete_count > COMPLETE_MAX)
		count_run(openmp);
}

/* ---- the report ---- */

/* How much of the threads' time the slowest one's work has cost: 1 - mean / longest. */
static double imbalance(const struct xs_table_row *row)
{
	return row->longest ? 100.0 * (1.0 - (double)row->work / (double)row->longest) : 0;
}

static void print_rows(struct xs_process *process, struct xs_report *report,
		       const struct xs_table *table)
{
	uint64_t total = xs_timing_total(table);
	int width = xs_rows_width(process, table, "Region");

	xs_report_print(report,
			"\n== OpenMP Regions ==\n\n%*s, %10s, %8s, %16s, %9s, %14s, %16s, %16s, "
			"%16s, %14s\n",
			width, "Region", "Runs", "Threads", "Time (ns)", "Time (%)", "Average (ns)",
			"Work (ns)", "Wait Inside (ns)", "Wait at End (ns)", "Imbalance (%)");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		xs_row_put_name(process, report, row, width);
		xs_report_print(report,
				", %10llu, %8llu, %16llu, %9.2f, %14llu, %16llu, %16llu, "
				"%16llu, %14.2f\n",
				(ull)row->calls, (ull)row->threads, (ull)row->total,
				xs_timing_percent(row->total, total),
				(ull)(row->total / row->calls), (ull)row->work, (ull)row->waited,
				(ull)row->late, imbalance(row));
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

		xs_row_begin(&out, "openmp_regions", "OpenMP");
		xs_row_text(&out, XS_COL_NAME, name, xs_row_name(process, &row->key, false, name));
		xs_timing_times(&out, row, total);
		xs_row_number(&out, XS_COL_THREADS, row->threads);
		xs_row_number(&out, XS_COL_WORK, row->work);
		xs_row_number(&out, XS_COL_WAITED, row->waited);
		xs_row_number(&out, XS_COL_LATE, row->late);
		xs_row_real(&out, XS_COL_IMBALANCE, imbalance(row));
		xs_row_end(report, &out);
	}
}

static bool print(struct xs_process *process, struct openmp *openmp)
{
	struct xs_report *report;

	while (openmp->complete)
		count_run(openmp);
	openmp->incomplete += openmp->runs.count;
	if (!openmp->regions.count && !openmp->incomplete)
		return false;
	report = xs_report_of(process, XS_REPORT_OPENMP);
	if (!report)
		return false;
	xs_table_sort(&openmp->regions);
	if (report->format != XS_REPORT_TEXT) {
		put_rows(process, report, &openmp->regions);
		return true;
	}
	print_rows(process, report, &openmp->regions);
	if (openmp->incomplete)
		xs_report_print(report,
				"(%llu run%s of regions not in this table: not all of the threads "
				"were recorded from begin to end)\n\n",
				(ull)openmp->incomplete, openmp->incomplete == 1 ? " is" : "s are");
	return true;
}

/* ---- the sink ---- */

static bool wanted(const struct xs_run *run)
{
	return run->options->openmp_report;
}

static bool open_openmp(struct xs_process *process)
{
	struct openmp *openmp = calloc(1, sizeof(*openmp));

	process->sink[XS_SINK_OPENMP] = openmp;
	if (openmp) {
		openmp->runs.compare = compare;
		openmp->last = &openmp->complete;
	}
	return openmp;
}

static void drop_openmp(struct xs_process *process)
{
	struct openmp *openmp = process->sink[XS_SINK_OPENMP];

	while (openmp->runs.root) {
		struct team_run *run = (struct team_run *)openmp->runs.root;

		xs_tree_take(&openmp->runs, &run->node);
		free(run);
	}
	while (openmp->spare) {
		struct team_run *run = openmp->spare;

		openmp->spare = run->next;
		free(run);
	}
	xs_table_fini(&openmp->regions);
	free(openmp);
}

static bool close_openmp(struct xs_process *process, enum xs_end end, int status)
{
	bool something = print(process, process->sink[XS_SINK_OPENMP]);

	(void)end, (void)status;
	drop_openmp(process);
	return something;
}

const struct xs_sink xs_openmp_sink = {
	.wanted = wanted,
	.open = open_openmp,
	.team = add_team,
	.close = close_openmp,
	.drop = drop_openmp,
};
