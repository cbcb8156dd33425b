/*
 * The timing reports as text. Titles, columns, widths and units are unitrace's, which are not the
 * same for Level Zero and OpenCL; what unitrace does not tell stands in tables of its own behind
 * these. Scripts look for unitrace's headings and take what follows for its tables (its summary.py
 * does), so none of them may stand above a table of ours.
 */
#include "device_record.h"
#include "timing.h"
#include "title.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

void xs_timing_title(struct xs_process *process, struct xs_report *report, const char *title,
		     const char *end)
{
	char rank[32] = "";

	if (xs_process_rank(process) >= 0)
		(void)snprintf(rank, sizeof(rank), ", rank %d", xs_process_rank(process));
	if (!report->to_file)
		xs_report_print(report, "\nProcess %d%s: %s\n", process->pid, rank,
				xs_title_of(process));
	xs_report_print(report, "\n=== %s ===\n%s", title, end);
}

static void print_title(const struct xs_timing_view *view, const char *title, const char *end)
{
	xs_timing_title(view->process, view->report, title, end);
}

/* ---- a table of one group ---- */

static void find_width(struct xs_timing_view *view, const char *title)
{
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	view->width = (int)strlen(title);
	while (xs_timing_next(view, &at, name, &length))
		if ((int)xs_timing_columns(name, length) > view->width)
			view->width = (int)xs_timing_columns(name, length);
}

static void print_name(const struct xs_timing_view *view, const char *name, size_t length)
{
	char *o = xs_report_begin(view->report);
	size_t columns = xs_timing_columns(name, length);
	size_t pad = (size_t)view->width > columns ? (size_t)view->width - columns : 0;

	memset(o, ' ', pad);
	memcpy(o + pad, name, length);
	xs_report_end(view->report, o + pad + length);
}

/* The last column, behind all that unitrace has: only where one name is on several devices. */
static void end_head(const struct xs_timing_view *view)
{
	xs_report_print(view->report, "%s\n", view->devices ? ", Device" : "");
}

static void end_row(const struct xs_timing_view *view, const struct xs_table_row *row)
{
	if (view->devices && row->key.place)
		xs_report_print(view->report, ", %6u\n", row->key.place - 1u);
	else
		xs_report_print(view->report, view->devices ? ", %6s\n" : "\n", "-");
}

/* The label of the longest backend that unitrace knows sets the place of the figures. */
static void print_total(const struct xs_timing_view *view, const char *kind, const char *backend,
			uint64_t total, bool first)
{
	char label[96], longest[96];
	int width;

	(void)snprintf(label, sizeof(label), "Total %s Time for %s backend (ns): ", kind, backend);
	(void)snprintf(longest, sizeof(longest), "Total %s Time for CL CPU backend (ns): ", kind);
	width = (int)(strlen(label) > strlen(longest) ? strlen(label) : strlen(longest));
	if (first)
		xs_report_print(view->report, "%*s%20llu\n", width,
				"Total Execution Time (ns): ", (ull)view->process->host_ns);
	xs_report_print(view->report, "%*s%20llu\n", width, label, (ull)total);
}

static void print_totals(struct xs_timing_view *view, const char *kind)
{
	bool first = true;

	for (size_t g = 0; g < XS_GROUPS; g++) {
		if (!xs_timing_has(view->summary, view->table, g, view->device))
			continue;
		print_total(view, kind, xs_group_title(g),
			    xs_timing_sums_of(view->summary, view->table, g, view->device).total,
			    first);
		first = false;
	}
}

static void print_timing_rows(const struct xs_timing_view *view, const char *title)
{
	const struct xs_layout *w = &xs_group_backend(view->group)->layout;
	int percent = view->device ? w->device_percent : w->host_percent;
	uint64_t total =
		xs_timing_sums_of(view->summary, view->table, view->group, view->device).total;
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	print_name(view, title, strlen(title));
	xs_report_print(view->report, ", %*s, %*s, %*s, %*s, %*s, %*s", w->calls, "Calls", w->time,
			"Time (ns)", percent, "Time (%)", w->time, "Average (ns)", w->time,
			"Min (ns)", w->time, "Max (ns)");
	end_head(view);
	while ((row = xs_timing_next(view, &at, name, &length))) {
		print_name(view, name, length);
		xs_report_print(view->report, ", %*llu, %*llu, %*.*f, %*llu, %*llu, %*llu",
				w->calls, (ull)row->calls, w->time, (ull)row->total, percent,
				w->decimals, xs_timing_percent(row->total, total), w->time,
				(ull)(row->total / row->calls), w->time, (ull)row->low, w->time,
				(ull)row->high);
		end_row(view, row);
	}
	xs_report_print(view->report, "\n");
}

static void print_submission_rows(const struct xs_timing_view *view, const char *title)
{
	struct xs_timing_sums sums =
		xs_timing_sums_of(view->summary, view->table, view->group, true);
	const struct xs_layout *w = &xs_group_backend(view->group)->layout;
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	print_name(view, title, strlen(title));
	xs_report_print(view->report, ", %*s, %*s (ns), %*s (%%), %*s, %11s, %*s, %*s", w->calls,
			"Calls", w->time - 5, w->queued, 7, w->queued, w->time, "Submit (ns)",
			"Submit (%)", w->time, "Execute (ns)", w->device_percent, "Execute (%)");
	end_head(view);
	while ((row = xs_timing_next(view, &at, name, &length))) {
		print_name(view, name, length);
		xs_report_print(view->report, ", %*llu, %*llu, %11.*f, %*llu, %11.*f, %*llu, %*.*f",
				w->calls, (ull)row->calls, w->time, (ull)row->queued, w->decimals,
				xs_timing_percent(row->queued, sums.queued), w->time,
				(ull)row->submit, w->decimals,
				xs_timing_percent(row->submit, sums.submit), w->time,
				(ull)row->total, w->device_percent, w->decimals,
				xs_timing_percent(row->total, sums.total));
		end_row(view, row);
	}
	xs_report_print(view->report, "\n");
}

static void print_distribution_rows(const struct xs_timing_view *view, const char *title)
{
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	print_name(view, title, strlen(title));
	xs_report_print(view->report, ", %12s, %19s, %19s, %19s",
			view->device ? "Calls" : "Failed Calls", "p50 (ns)", "p90 (ns)",
			"p99 (ns)");
	end_head(view);
	while ((row = xs_timing_next(view, &at, name, &length))) {
		print_name(view, name, length);
		xs_report_print(view->report, ", %12llu, %19llu, %19llu, %19llu",
				(ull)(view->device ? row->calls : row->failed),
				(ull)xs_table_percentile(row, 0.5),
				(ull)xs_table_percentile(row, 0.9),
				(ull)xs_table_percentile(row, 0.99));
		end_row(view, row);
	}
	xs_report_print(view->report, "\n");
}

/* `word`: what a heading has behind the backend's name. */
static void print_groups(struct xs_timing_view *view, const char *word, const char *title,
			 void (*print)(const struct xs_timing_view *, const char *))
{
	for (view->group = 0; view->group < XS_GROUPS; view->group++) {
		if (!xs_timing_has(view->summary, view->table, view->group, view->device))
			continue;
		find_width(view, title);
		xs_report_print(view->report, "\n== %s %s ==\n\n", xs_group_title(view->group),
				word);
		print(view, title);
	}
	xs_report_print(view->report, "\n");
}

/* ---- kernel properties ---- */

static const char *simd_text(const struct xs_kernel_record *kernel, char *text)
{
	(void)sprintf(text, "%u", kernel->simd);
	return kernel->simd == 1 ? "ANY" : kernel->simd ? text : "unknown";
}

static void print_properties(struct xs_timing_view *view)
{
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX], simd[16], registers[16];
	bool some = false;
	size_t length;

	for (uint32_t i = 0; i < view->table->count; i++)
		some |= xs_timing_kernel(view->summary, &view->table->rows[i]) != NULL;
	if (!some)
		return;
	print_title(view, "Kernel Properties", "\n");
	for (view->group = 0; view->group < XS_GROUPS; view->group++) {
		bool first = true;
		uint32_t at = 0;

		find_width(view, "Kernel");
		while ((row = xs_timing_next(view, &at, name, &length))) {
			const struct xs_kernel_record *kernel =
				xs_timing_kernel(view->summary, row);

			if (!kernel)
				continue;
			if (first) {
				print_name(view, "Kernel", 6);
				xs_report_print(
					view->report,
					", Compiled, SIMD, Number of Arguments, SLM Per Work "
					"Group, Private Memory Per Thread, "
					"Spill Memory Per Thread, Register File Size Per Thread");
				end_head(view);
			}
			first = false;
			print_name(view, name, length);
			(void)sprintf(registers, "%u", kernel->registers);
			xs_report_print(view->report, ", %8s, %4s, %19u, %18u, %25u, %23u, %29s",
					xs_timing_compiled(kernel), simd_text(kernel, simd),
					kernel->arguments, kernel->local_bytes,
					kernel->private_bytes, kernel->spill_bytes,
					kernel->registers ? registers : "unknown");
			end_row(view, row);
		}
	}
	xs_report_print(view->report, "\n\n");
}

/* ---- what xstrace itself cost ---- */

static uint64_t times_blocked(const struct xs_process *process)
{
	uint64_t blocked = 0;

	for (uint32_t i = 0; i < process->track_count; i++)
		blocked += atomic_load_explicit(&process->tracks[i]->ring->blocked,
						memory_order_relaxed);
	return blocked;
}

static void print_sums(struct xs_timing_view *view)
{
	const char *format = "%*s, %12llu, %12llu, %20llu, %20.0f\n";
	uint64_t blocked = times_blocked(view->process);
	struct xs_timing_sums all = { 0 };
	double inside = 0;

	print_title(view, "API Totals", "\n");
	xs_report_print(view->report, "%14s, %12s, %12s, %20s, %20s\n", "Backend", "Calls",
			"Failed Calls", "Time (ns)", "Inside xstrace (ns)");
	for (size_t g = 0; g < XS_GROUPS; g++) {
		struct xs_timing_sums sums =
			xs_timing_sums_of(view->summary, view->table, g, false);
		double own = (double)sums.calls * xs_timing_record_ns(view->process->run, g);

		if (!sums.calls)
			continue;
		xs_report_print(view->report, format, 14, xs_group_title(g), (ull)sums.calls,
				(ull)sums.failed, (ull)sums.total, own);
		inside += own;
		all.calls += sums.calls;
		all.failed += sums.failed;
		all.total += sums.total;
	}
	xs_report_print(view->report, format, 14, "All", (ull)all.calls, (ull)all.failed,
			(ull)all.total, inside);
	xs_report_print(view->report,
			"\nInside xstrace: an estimate, the calls times what the recording of one "
			"takes here, measured just now. Threads waited "
			"%llu time%s for room in a full ring; that is not in it.\n\n\n",
			(ull)blocked, blocked == 1 ? "" : "s");
}

/* ---- text ---- */

void xs_timing_text_host(struct xs_timing_view *view)
{
	print_title(view, "API Timing Summary", "\n");
	print_totals(view, "API");
	print_groups(view, "Backend", "Function", print_timing_rows);
	print_title(view, "API Time Distribution", "");
	print_groups(view, "Calls", "Function", print_distribution_rows);
	print_sums(view);
}

void xs_timing_text_device(struct xs_timing_view *view)
{
	print_title(view, "Device Timing Summary", "\n");
	print_totals(view, "Device");
	print_groups(view, "Backend", "Kernel", print_timing_rows);
	print_title(view, "Device Time Distribution", "");
	print_groups(view, "Commands", "Kernel", print_distribution_rows);
	print_properties(view); /* last: unitrace's tests take every name behind it for a kernel */
}

void xs_timing_text_submission(struct xs_timing_view *view)
{
	print_title(view, "Kernel Submission Summary", "\n");
	print_totals(view, "Device");
	print_groups(view, "Backend", "Kernel", print_submission_rows);
}

/* unitrace's, without a rank an empty one. The table follows at once. */
static void print_box(const struct xs_timing_view *view)
{
	static const char stars[] = "************************************************************";
	char rank[16] = "";

	if (xs_process_rank(view->process) >= 0)
		(void)snprintf(rank, sizeof(rank), "%d", xs_process_rank(view->process));
	xs_report_print(view->report, "%s\n*  Process ID : %d | Rank ID : %s\n%s\n", stars,
			view->process->pid, rank, stars);
}

static void find_ccl_width(struct xs_timing_view *view)
{
	char name[XS_ROW_NAME_MAX];

	view->width = 10;
	for (uint32_t i = 0; i < view->table->count; i++) {
		int length =
			(int)xs_timing_columns(name, xs_timing_ccl_name(view, &view->table->rows[i],
									name));

		view->width = length > view->width ? length : view->width;
	}
}

/* as unitrace's, which are those of Level Zero */
static const struct xs_layout ccl_layout = {
	.calls = 12, .time = 20, .device_percent = 12, .decimals = 6
};

static void print_ccl_row(const struct xs_timing_view *view, const struct xs_table_row *row,
			  uint64_t total)
{
	const struct xs_layout *w = &ccl_layout;

	xs_report_print(view->report, ", %*llu, %*llu, %*.*f, %*llu, %*llu, %*llu\n", w->calls,
			(ull)row->calls, w->time, (ull)row->total, w->device_percent, w->decimals,
			xs_timing_percent(row->total, total), w->time,
			(ull)(row->total / row->calls), w->time, (ull)row->low, w->time,
			(ull)row->high);
}

static void print_ccl_table(const struct xs_timing_view *view, const struct xs_table *table,
			    bool sizes)
{
	const struct xs_layout *w = &ccl_layout;
	uint64_t total = xs_timing_total(table);
	char name[XS_ROW_NAME_MAX], size[24];

	print_name(view, "Function", 8);
	if (sizes)
		xs_report_print(view->report, ", %20s", "Message Size (B)");
	xs_report_print(view->report, ", %*s, %*s, %*s, %*s, %*s, %*s\n", w->calls, "Calls",
			w->time, "Time (ns)", w->device_percent, "Time (%)", w->time,
			"Average (ns)", w->time, "Min (ns)", w->time, "Max (ns)");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		print_name(view, name, xs_timing_ccl_name(view, row, name));
		(void)snprintf(size, sizeof(size), "%llu", (ull)row->key.shape[0]);
		if (sizes)
			xs_report_print(view->report, ", %20s", row->key.form ? size : "-");
		print_ccl_row(view, row, total);
	}
	xs_report_print(view->report, "\n");
}

void xs_timing_text_ccl(struct xs_timing_view *view)
{
	find_ccl_width(view);
	print_box(view);
	print_ccl_table(view, view->table, false);
	print_title(view, "CCL Time by Message Size", "\n");
	print_ccl_table(view, &view->summary->ccl_sizes, true);
	xs_report_print(view->report, "\n");
}
