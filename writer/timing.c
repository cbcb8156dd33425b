/*
 * Prints what summary.c counted: -h, -d, -s and -r. Titles, columns, widths and units are unitrace's, which are not the same for Level
 * Zero and OpenCL; what unitrace does not tell stands in tables of its own behind these.
 */
#include "summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_ZERO 0
#define PERCENT(part, all) ((all) ? 100.0 * (double)(part) / (double)(all) : 0.0)

/* Rows are grouped by these. */
static const struct backend {
	const char *title;
	uint8_t source, type; /* OpenCL: enum xs_device_type */
} backends[] = {
	{ "L0", XS_SOURCE_LEVEL_ZERO, 0 },
	{ "CL", XS_SOURCE_OPENCL, XS_DEVICE_UNKNOWN },
	{ "CL CPU", XS_SOURCE_OPENCL, XS_DEVICE_CPU },
	{ "CL GPU", XS_SOURCE_OPENCL, XS_DEVICE_GPU },
	{ "CL ACCELERATOR", XS_SOURCE_OPENCL, XS_DEVICE_ACCELERATOR },
	{ "MPI", XS_SOURCE_MPI, 0 },
};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))
#define MPI (BACKENDS - 1)

struct widths {
	int calls, time, percent, decimals;
};
static const struct widths host_widths[] = { { 12, 20, 13, 6 }, { 11, 19, 11, 2 } };
static const struct widths device_widths[] = { { 12, 20, 12, 6 }, { 11, 19, 11, 2 } };

typedef unsigned long long ull;

/* ---- rows ---- */

/*
 * Calls of OpenCL belong to the type of device that the process used; without any, or with several, to OpenCL as such. Device work to
 * the type of its device.
 */
static size_t backend_of(const struct xs_summary *summary, const struct xs_table_row *row, bool device)
{
	uint8_t type = row->key.type & 3;

	if (row->key.source == XS_SOURCE_LEVEL_ZERO)
		return LEVEL_ZERO;
	if (row->key.source == XS_SOURCE_MPI)
		return MPI;
	for (uint8_t t = 1; !device && t < 4; t++)
		if (summary->seen[t])
			type = type ? 4 : t;
	return type > 3 ? 1 : 1u + type;
}

static bool has_backend(const struct xs_summary *summary, const struct xs_table *table, size_t backend, bool device)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (backend_of(summary, &table->rows[i], device) == backend)
			return true;
	return false;
}

struct sums {
	uint64_t calls, failed, total, queued, submit;
};

static struct sums sums_of(const struct xs_summary *summary, const struct xs_table *table, size_t backend, bool device)
{
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		if (backend_of(summary, row, device) != backend)
			continue;
		sums.calls += row->calls;
		sums.failed += row->failed;
		sums.total += row->total;
		sums.queued += row->queued;
		sums.submit += row->submit;
	}
	return sums;
}

static char *put_shape(char *o, const struct xs_table_key *key)
{
	const uint64_t *d = key->shape, *l = key->shape + 3;
	uint64_t g[3];

	xs_shown_shape(key->source, d, g);
	if (key->simd)
		o += sprintf(o, "[SIMD%u {%llu; %llu; %llu} ", key->simd, (ull)g[0], (ull)g[1], (ull)g[2]);
	else
		o += sprintf(o, "[{%llu; %llu; %llu} ", (ull)g[0], (ull)g[1], (ull)g[2]);
	return o + sprintf(o, "{%llu; %llu; %llu}]", (ull)l[0], (ull)l[1], (ull)l[2]);
}

size_t xs_row_name(const struct xs_process *process, const struct xs_table_key *key, bool quoted, char *out)
{
	struct xs_event event = { .name = key->id, .source = key->source };
	const char *text = "(all others)", *quote = quoted && key->device && key->source == XS_SOURCE_LEVEL_ZERO ? "\"" : "";
	size_t length = strlen(text);
	char *o = out;

	if (key->id & XS_NAME_FUNCTION) {
		event.name = key->id & 0xffffff;
		event.flags = XS_FLAG_FUNCTION;
	}
	if (key->id != XS_TABLE_OTHERS)
		text = xs_kernel_text(process->run, &event, &length);
	if (key->tile)
		o += sprintf(o, "Tile #%u: ", key->tile - 1u);
	o += sprintf(o, "%s", quote);
	o = xs_report_plain(o, text, length < 4096 ? length : 4096);
	if (key->memory)
		o += sprintf(o, "(%c2%c)", xs_memory_letter(key->memory >> 4), xs_memory_letter(key->memory & 15));
	if (key->form == XS_FORM_SHAPE)
		o = put_shape(o, key);
	else if (key->form == XS_FORM_BYTES)
		o += sprintf(o, "[%llu]", (ull)key->shape[0]);
	o += sprintf(o, "%s", quote);
	return (size_t)(o - out);
}

/* ---- a table of one backend ---- */

struct view {
	struct xs_process *process;
	struct xs_summary *summary;
	struct xs_report *report;
	const struct xs_table *table;
	bool device;
	size_t backend;
	int width; /* of the first column */
};

/* The next row of the view's backend from *at on; its name in `name`. */
static const struct xs_table_row *next_row(const struct view *view, uint32_t *at, char *name, size_t *ret_length)
{
	while (*at < view->table->count) {
		const struct xs_table_row *row = &view->table->rows[(*at)++];
		if (backend_of(view->summary, row, view->device) != view->backend)
			continue;
		*ret_length = xs_row_name(view->process, &row->key, view->report->format == XS_REPORT_TEXT, name);
		return row;
	}
	return NULL;
}

static void find_width(struct view *view, const char *title)
{
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	view->width = (int)strlen(title);
	while (next_row(view, &at, name, &length))
		if ((int)length > view->width)
			view->width = (int)length;
}

static void print_name(const struct view *view, const char *name, size_t length)
{
	char *o = xs_report_begin(view->report);
	size_t pad = (size_t)view->width - length;

	memset(o, ' ', pad);
	memcpy(o + pad, name, length);
	xs_report_end(view->report, o + pad + length);
}

/* The label of the longest backend that unitrace knows sets the place of the figures. */
static void print_total(const struct view *view, const char *kind, const char *backend, uint64_t total, bool first)
{
	char label[96], longest[96];
	int width;

	(void)snprintf(label, sizeof(label), "Total %s Time for %s backend (ns): ", kind, backend);
	(void)snprintf(longest, sizeof(longest), "Total %s Time for CL CPU backend (ns): ", kind);
	width = (int)(strlen(label) > strlen(longest) ? strlen(label) : strlen(longest));
	if (first)
		xs_report_print(view->report, "%*s%20llu\n", width, "Total Execution Time (ns): ", (ull)view->process->host_ns);
	xs_report_print(view->report, "%*s%20llu\n", width, label, (ull)total);
}

static void print_totals(struct view *view, const char *kind)
{
	bool first = true;

	for (size_t b = 0; b < BACKENDS; b++) {
		if (!has_backend(view->summary, view->table, b, view->device))
			continue;
		print_total(view, kind, backends[b].title, sums_of(view->summary, view->table, b, view->device).total, first);
		first = false;
	}
}

static void print_timing_rows(const struct view *view, const char *title, const struct widths *w)
{
	uint64_t total = sums_of(view->summary, view->table, view->backend, view->device).total;
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	print_name(view, title, strlen(title));
	xs_report_print(view->report, ", %*s, %*s, %*s, %*s, %*s, %*s\n", w->calls, "Calls", w->time, "Time (ns)", w->percent, "Time (%)", w->time,
			"Average (ns)", w->time, "Min (ns)", w->time, "Max (ns)");
	while ((row = next_row(view, &at, name, &length))) {
		print_name(view, name, length);
		xs_report_print(view->report, ", %*llu, %*llu, %*.*f, %*llu, %*llu, %*llu\n", w->calls, (ull)row->calls, w->time, (ull)row->total,
				w->percent, w->decimals, PERCENT(row->total, total), w->time, (ull)(row->total / row->calls), w->time,
				(ull)row->low, w->time, (ull)row->high);
	}
	xs_report_print(view->report, "\n");
}

static void print_submission_rows(const struct view *view, const char *title, const struct widths *unused)
{
	struct sums sums = sums_of(view->summary, view->table, view->backend, true);
	bool zero = view->backend == LEVEL_ZERO;
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	(void)unused;
	print_name(view, title, strlen(title));
	if (zero)
		xs_report_print(view->report, ", %12s, %20s, %11s, %20s, %11s, %20s, %12s\n", "Calls", "Append (ns)", "Append (%)", "Submit (ns)",
				"Submit (%)", "Execute (ns)", "Execute (%)");
	else
		xs_report_print(view->report, ", %11s, %19s, %11s, %19s, %11s, %19s, %11s\n", "Calls", "Queued (ns)", "Queued (%)", "Submit (ns)",
				"Submit (%)", "Execute (ns)", "Execute (%)");
	while ((row = next_row(view, &at, name, &length))) {
		int calls = zero ? 12 : 11, time = zero ? 20 : 19, decimals = zero ? 6 : 2;

		print_name(view, name, length);
		xs_report_print(view->report, ", %*llu, %*llu, %11.*f, %*llu, %11.*f, %*llu, %*.*f\n", calls, (ull)row->calls, time,
				(ull)row->queued, decimals, PERCENT(row->queued, sums.queued), time, (ull)row->submit, decimals,
				PERCENT(row->submit, sums.submit), time, (ull)row->total, zero ? 12 : 11, decimals,
				PERCENT(row->total, sums.total));
	}
	xs_report_print(view->report, "\n");
}

static void print_distribution_rows(const struct view *view, const char *title, const struct widths *unused)
{
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	uint32_t at = 0;
	size_t length;

	(void)unused;
	print_name(view, title, strlen(title));
	xs_report_print(view->report, ", %12s, %19s, %19s, %19s\n", view->device ? "Calls" : "Failed Calls", "p50 (ns)", "p90 (ns)", "p99 (ns)");
	while ((row = next_row(view, &at, name, &length))) {
		print_name(view, name, length);
		xs_report_print(view->report, ", %12llu, %19llu, %19llu, %19llu\n", (ull)(view->device ? row->calls : row->failed),
				(ull)xs_table_percentile(row, 0.5), (ull)xs_table_percentile(row, 0.9), (ull)xs_table_percentile(row, 0.99));
	}
	xs_report_print(view->report, "\n");
}

static void print_backends(struct view *view, const char *title, const struct widths *widths,
			   void (*print)(const struct view *, const char *, const struct widths *))
{
	for (view->backend = 0; view->backend < BACKENDS; view->backend++) {
		if (!has_backend(view->summary, view->table, view->backend, view->device))
			continue;
		find_width(view, title);
		xs_report_print(view->report, "\n== %s Backend ==\n\n", backends[view->backend].title);
		print(view, title, widths ? &widths[view->backend != LEVEL_ZERO] : NULL);
	}
	xs_report_print(view->report, "\n");
}

/* ---- kernel properties ---- */

static const struct xs_kernel_record *kernel_of(const struct xs_summary *summary, const struct xs_table_row *row)
{
	const struct xs_kernel_record *kernel = row->kernel < summary->kernel_room ? &summary->kernels[row->kernel] : NULL;

	return kernel && kernel->id ? kernel : NULL;
}

static const char *simd_text(const struct xs_kernel_record *kernel, char *text)
{
	(void)sprintf(text, "%u", kernel->simd);
	return kernel->simd == 1 ? "ANY" : kernel->simd ? text : "unknown";
}

static const char *compiled_text(const struct xs_kernel_record *kernel)
{
	return kernel->compiled == 1 ? "JIT" : kernel->compiled == 2 ? "AOT" : "unknown";
}

static void print_properties(struct view *view)
{
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX], simd[16], registers[16];
	bool some = false;
	size_t length;

	for (uint32_t i = 0; i < view->table->count; i++)
		some |= kernel_of(view->summary, &view->table->rows[i]) != NULL;
	if (!some)
		return;
	xs_report_print(view->report, "\n=== Kernel Properties ===\n\n");
	for (view->backend = 0; view->backend < BACKENDS; view->backend++) {
		bool first = true;
		uint32_t at = 0;

		find_width(view, "Kernel");
		while ((row = next_row(view, &at, name, &length))) {
			const struct xs_kernel_record *kernel = kernel_of(view->summary, row);

			if (!kernel)
				continue;
			if (first) {
				print_name(view, "Kernel", 6);
				xs_report_print(view->report, ", Compiled, SIMD, Number of Arguments, SLM Per Work Group, Private Memory Per Thread, "
							      "Spill Memory Per Thread, Register File Size Per Thread\n");
			}
			first = false;
			print_name(view, name, length);
			(void)sprintf(registers, "%u", kernel->registers);
			xs_report_print(view->report, ", %8s, %4s, %19u, %18u, %25u, %23u, %29s\n", compiled_text(kernel), simd_text(kernel, simd),
					kernel->arguments, kernel->local_bytes, kernel->private_bytes, kernel->spill_bytes,
					kernel->registers ? registers : "unknown");
		}
	}
	xs_report_print(view->report, "\n\n");
}

/* ---- what xstrace itself cost ---- */

/*
 * What writing one record of a call takes: measured here, with the same clock and the same ring code, on memory that is warm. The least of
 * some rounds, since other work of the machine only adds to it.
 */
static double record_ns(const struct xs_run *run)
{
	enum { ROUNDS = 8, RECORDS = 1000, SIZE = 65536 };
	struct xs_ring *ring = aligned_alloc(64, XS_RING_HEADER + SIZE);
	uint64_t best = UINT64_MAX;

	if (!ring)
		return 0;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start;

		memset(ring, 0, sizeof(*ring));
		xs_ring_init(ring, (unsigned char *)ring + XS_RING_HEADER, SIZE, XS_FULL_DROP);
		ring->limit = SIZE;
		start = xs_clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < RECORDS; i++) {
			uint64_t tick = xs_tick(run->use_tsc);
			struct xs_call_record *record = xs_ring_reserve(ring, NULL, sizeof(*record), XS_ROLE_OTHER);

			record->event.tick = tick;
			record->duration = xs_tick(run->use_tsc) - tick;
			record->result = 0;
			xs_ring_commit(ring, sizeof(*record));
		}
		start = xs_clock_ns(CLOCK_MONOTONIC) - start;
		if (start < best)
			best = start;
	}
	free(ring);
	return (double)best / RECORDS;
}

static uint64_t times_blocked(const struct xs_process *process)
{
	uint64_t blocked = 0;

	for (uint32_t i = 0; i < process->track_count; i++)
		blocked += atomic_load_explicit(&process->tracks[i]->ring->blocked, memory_order_relaxed);
	return blocked;
}

static void print_sums(struct view *view, double each)
{
	const char *format = "%*s, %12llu, %12llu, %20llu, %20.0f\n";
	struct sums all = { 0 };

	xs_report_print(view->report, "\n=== API Totals ===\n\n%14s, %12s, %12s, %20s, %20s\n", "Backend", "Calls", "Failed Calls", "Time (ns)",
			"Inside xstrace (ns)");
	for (size_t b = 0; b < BACKENDS; b++) {
		struct sums sums = sums_of(view->summary, view->table, b, false);

		if (!sums.calls)
			continue;
		xs_report_print(view->report, format, 14, backends[b].title, (ull)sums.calls, (ull)sums.failed, (ull)sums.total,
				(double)sums.calls * each);
		all.calls += sums.calls;
		all.failed += sums.failed;
		all.total += sums.total;
	}
	xs_report_print(view->report, format, 14, "All", (ull)all.calls, (ull)all.failed, (ull)all.total, (double)all.calls * each);
	xs_report_print(view->report,
			"\nInside xstrace: an estimate, %llu calls at %.1f ns each, which writing their records took here just now. Threads waited "
			"%llu times for room in a full ring; that is not in it.\n\n\n",
			(ull)all.calls, each, (ull)times_blocked(view->process));
}

/* ---- text ---- */

static void print_host(struct view *view)
{
	xs_report_print(view->report, "\n=== API Timing Summary ===\n\n");
	print_totals(view, "API");
	print_backends(view, "Function", host_widths, print_timing_rows);
	xs_report_print(view->report, "\n=== API Time Distribution ===\n");
	print_backends(view, "Function", NULL, print_distribution_rows);
	print_sums(view, record_ns(view->process->run));
}

static void print_device(struct view *view)
{
	xs_report_print(view->report, "\n=== Device Timing Summary ===\n\n");
	print_totals(view, "Device");
	print_backends(view, "Kernel", device_widths, print_timing_rows);
	print_properties(view);
	xs_report_print(view->report, "\n=== Device Time Distribution ===\n");
	print_backends(view, "Kernel", NULL, print_distribution_rows);
}

static void print_submission(struct view *view)
{
	xs_report_print(view->report, "\n=== Kernel Submission Summary ===\n\n");
	print_totals(view, "Device");
	print_backends(view, "Kernel", NULL, print_submission_rows);
}

static uint64_t total_of(const struct xs_table *table)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < table->count; i++)
		total += table->rows[i].total;
	return total;
}

/* The row's name without its size, which has a column of its own. */
static size_t ccl_name(const struct view *view, const struct xs_table_row *row, char *name)
{
	struct xs_table_key key = { .id = row->key.id };

	return xs_row_name(view->process, &key, false, name);
}

static void print_box(const struct view *view)
{
	static const char stars[] = "****************************************************************";
	char rank[16] = "-", text[64];
	int n;

	if (xs_process_rank(view->process) >= 0)
		(void)snprintf(rank, sizeof(rank), "%d", xs_process_rank(view->process));
	n = snprintf(text, sizeof(text), "*  Process ID : %d | Rank ID : %s  *", view->process->pid, rank);
	xs_report_print(view->report, "%.*s\n%s\n%.*s\n\n", n, stars, text, n, stars);
}

/* A row for each collective and message size. */
static void print_ccl(struct view *view)
{
	uint64_t total = total_of(view->table);
	char name[XS_ROW_NAME_MAX], size[24];

	xs_report_print(view->report, "\n=== CCL Timing Summary ===\n\n");
	print_box(view);
	print_total(view, "CCL", "oneCCL", total, true);
	view->width = (int)strlen("Function");
	for (uint32_t i = 0; i < view->table->count; i++) {
		int length = (int)ccl_name(view, &view->table->rows[i], name);

		view->width = length > view->width ? length : view->width;
	}
	xs_report_print(view->report, "\n");
	print_name(view, "Function", 8);
	xs_report_print(view->report, ", %20s, %11s, %19s, %11s, %19s, %19s, %19s\n", "Message Size (B)", "Calls", "Time (ns)", "Time (%)",
			"Average (ns)", "Min (ns)", "Max (ns)");
	for (uint32_t i = 0; i < view->table->count; i++) {
		const struct xs_table_row *row = &view->table->rows[i];

		print_name(view, name, ccl_name(view, row, name));
		(void)snprintf(size, sizeof(size), "%llu", (ull)row->key.shape[0]);
		xs_report_print(view->report, ", %20s, %11llu, %19llu, %11.2f, %19llu, %19llu, %19llu\n", row->key.form ? size : "-",
				(ull)row->calls, (ull)row->total, PERCENT(row->total, total), (ull)(row->total / row->calls), (ull)row->low,
				(ull)row->high);
	}
	xs_report_print(view->report, "\n\n");
}

/* ---- JSON and CSV ---- */

static void set_times(struct xs_report_row *out, const struct xs_table_row *row, uint64_t total)
{
	xs_row_number(out, XS_COL_CALLS, row->calls);
	xs_row_number(out, XS_COL_TIME, row->total);
	xs_row_real(out, XS_COL_PERCENT, PERCENT(row->total, total));
	xs_row_number(out, XS_COL_AVERAGE, row->total / row->calls);
	xs_row_number(out, XS_COL_MIN, row->low);
	xs_row_number(out, XS_COL_MAX, row->high);
	xs_row_number(out, XS_COL_P50, xs_table_percentile(row, 0.5));
	xs_row_number(out, XS_COL_P90, xs_table_percentile(row, 0.9));
	xs_row_number(out, XS_COL_P99, xs_table_percentile(row, 0.99));
}

static void set_properties(struct xs_report_row *out, const struct xs_kernel_record *kernel)
{
	const char *compiled = compiled_text(kernel);

	xs_row_text(out, XS_COL_COMPILED, compiled, strlen(compiled));
	if (kernel->simd)
		xs_row_number(out, XS_COL_SIMD, kernel->simd);
	xs_row_number(out, XS_COL_ARGUMENTS, kernel->arguments);
	xs_row_number(out, XS_COL_SLM, kernel->local_bytes);
	xs_row_number(out, XS_COL_PRIVATE, kernel->private_bytes);
	xs_row_number(out, XS_COL_SPILL, kernel->spill_bytes);
	if (kernel->registers)
		xs_row_number(out, XS_COL_REGISTERS, kernel->registers);
}

static void set_submission(struct xs_report_row *out, const struct xs_table_row *row, const struct sums *sums)
{
	xs_row_number(out, XS_COL_CALLS, row->calls);
	xs_row_number(out, XS_COL_QUEUED, row->queued);
	xs_row_real(out, XS_COL_QUEUED_PERCENT, PERCENT(row->queued, sums->queued));
	xs_row_number(out, XS_COL_SUBMIT, row->submit);
	xs_row_real(out, XS_COL_SUBMIT_PERCENT, PERCENT(row->submit, sums->submit));
	xs_row_number(out, XS_COL_EXECUTE, row->total);
	xs_row_real(out, XS_COL_EXECUTE_PERCENT, PERCENT(row->total, sums->total));
}

/* One report of the three as rows. */
static void row_all(struct view *view, const char *kind, bool submission)
{
	double each = view->device ? 0 : record_ns(view->process->run);
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	struct xs_report_row out;
	size_t length;

	for (view->backend = 0; view->backend < BACKENDS; view->backend++) {
		struct sums sums = sums_of(view->summary, view->table, view->backend, view->device);
		uint32_t at = 0;

		while ((row = next_row(view, &at, name, &length))) {
			xs_row_begin(&out, kind, backends[view->backend].title);
			xs_row_text(&out, XS_COL_NAME, name, length);
			if (submission)
				set_submission(&out, row, &sums);
			else
				set_times(&out, row, sums.total);
			if (!view->device) {
				xs_row_number(&out, XS_COL_FAILED, row->failed);
				xs_row_number(&out, XS_COL_OVERHEAD, (uint64_t)((double)row->calls * each));
			}
			if (view->device && row->key.tile)
				xs_row_number(&out, XS_COL_TILE, row->key.tile - 1u);
			if (view->device && !submission && kernel_of(view->summary, row))
				set_properties(&out, kernel_of(view->summary, row));
			xs_row_end(view->report, &out);
		}
	}
}

static void row_host(struct view *view)
{
	row_all(view, "host_timing", false);
}

static void row_device(struct view *view)
{
	row_all(view, "device_timing", false);
}

static void row_submission(struct view *view)
{
	row_all(view, "kernel_submission", true);
}

static void row_ccl(struct view *view)
{
	uint64_t total = total_of(view->table);
	char name[XS_ROW_NAME_MAX];
	struct xs_report_row out;

	for (uint32_t i = 0; i < view->table->count; i++) {
		const struct xs_table_row *row = &view->table->rows[i];

		xs_row_begin(&out, "ccl_summary", "oneCCL");
		xs_row_text(&out, XS_COL_NAME, name, ccl_name(view, row, name));
		set_times(&out, row, total);
		if (row->key.form)
			xs_row_number(&out, XS_COL_MESSAGE_SIZE, row->key.shape[0]);
		xs_row_end(view->report, &out);
	}
}

/* ---- all of it ---- */

bool xs_timing_print(struct xs_process *process)
{
	const struct xs_options *options = process->run->options;
	struct xs_summary *summary = process->summary;
	const struct {
		bool wanted;
		enum xs_report_kind kind;
		struct xs_table *table;
		bool device;
		void (*text)(struct view *);
		void (*rows)(struct view *);
	} reports[] = {
		/* a trace's calls are counted too, and are no reason for a report that does not show them */
		{ options->host_timing, XS_REPORT_HOST_TIMING, &summary->host, false, print_host, row_host },
		{ options->device_timing, XS_REPORT_DEVICE_TIMING, &summary->device, true, print_device, row_device },
		{ options->kernel_submission, XS_REPORT_SUBMISSION, &summary->device, true, print_submission, row_submission },
		{ options->ccl_summary, XS_REPORT_CCL, &summary->ccl, false, print_ccl, row_ccl },
	};
	bool something = false;

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		struct view view = { .process = process, .summary = summary, .table = reports[i].table, .device = reports[i].device };

		if (!reports[i].wanted || !reports[i].table->count)
			continue;
		view.report = xs_report_of(process, reports[i].kind);
		if (!view.report)
			continue;
		xs_table_sort(reports[i].table);
		if (!something && process->run->recovering && process->file->committed && options->report_format == XS_REPORT_TEXT)
			xs_report_print(view.report, "\n(recovered: what the killed drain process had read before is not in these tables)\n");
		something = true;
		if (options->report_format == XS_REPORT_TEXT)
			reports[i].text(&view);
		else
			reports[i].rows(&view);
	}
	return something;
}
