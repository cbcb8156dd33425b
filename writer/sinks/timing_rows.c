/*
 * The timing reports as JSON and CSV: one row for each row of the tables.
 */
#include "device_record.h"
#include "timing.h"

#include <string.h>

void xs_timing_times(struct xs_report_row *out, const struct xs_table_row *row, uint64_t total)
{
	xs_row_number(out, XS_COL_CALLS, row->calls);
	xs_row_number(out, XS_COL_TIME, row->total);
	xs_row_real(out, XS_COL_PERCENT, xs_timing_percent(row->total, total));
	xs_row_number(out, XS_COL_AVERAGE, row->total / row->calls);
	xs_row_number(out, XS_COL_MIN, row->low);
	xs_row_number(out, XS_COL_MAX, row->high);
	xs_row_number(out, XS_COL_P50, xs_table_percentile(row, 0.5));
	xs_row_number(out, XS_COL_P90, xs_table_percentile(row, 0.9));
	xs_row_number(out, XS_COL_P99, xs_table_percentile(row, 0.99));
}

static void set_properties(struct xs_report_row *out, const struct xs_kernel_record *kernel)
{
	const char *compiled = xs_timing_compiled(kernel);

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

static void set_submission(struct xs_report_row *out, const struct xs_table_row *row,
			   const struct xs_timing_sums *sums)
{
	xs_row_number(out, XS_COL_CALLS, row->calls);
	xs_row_number(out, XS_COL_QUEUED, row->queued);
	xs_row_real(out, XS_COL_QUEUED_PERCENT, xs_timing_percent(row->queued, sums->queued));
	xs_row_number(out, XS_COL_SUBMIT, row->submit);
	xs_row_real(out, XS_COL_SUBMIT_PERCENT, xs_timing_percent(row->submit, sums->submit));
	xs_row_number(out, XS_COL_EXECUTE, row->total);
	xs_row_real(out, XS_COL_EXECUTE_PERCENT, xs_timing_percent(row->total, sums->total));
}

/* One report of the three as rows. */
static void row_all(struct xs_timing_view *view, const char *kind, bool submission)
{
	const struct xs_table_row *row;
	char name[XS_ROW_NAME_MAX];
	struct xs_report_row out;
	size_t length;

	for (view->group = 0; view->group < XS_GROUPS; view->group++) {
		struct xs_timing_sums sums =
			xs_timing_sums_of(view->summary, view->table, view->group, view->device);
		double each = view->device ? 0
					   : xs_timing_record_ns(view->process->run, view->group);
		uint32_t at = 0;

		while ((row = xs_timing_next(view, &at, name, &length))) {
			xs_row_begin(&out, kind, xs_group_title(view->group));
			xs_row_text(&out, XS_COL_NAME, name, length);
			if (submission)
				set_submission(&out, row, &sums);
			else
				xs_timing_times(&out, row, sums.total);
			if (!view->device) {
				xs_row_number(&out, XS_COL_FAILED, row->failed);
				xs_row_number(&out, XS_COL_OVERHEAD,
					      (uint64_t)((double)row->calls * each));
			}
			if (view->device && row->key.place)
				xs_row_number(&out, XS_COL_DEVICE, row->key.place - 1u);
			if (view->device && row->key.tile)
				xs_row_number(&out, XS_COL_TILE, row->key.tile - 1u);
			if (view->device && !submission && xs_timing_kernel(view->summary, row))
				set_properties(&out, xs_timing_kernel(view->summary, row));
			xs_row_end(view->report, &out);
		}
	}
}

void xs_timing_rows_host(struct xs_timing_view *view)
{
	row_all(view, "host_timing", false);
}

void xs_timing_rows_device(struct xs_timing_view *view)
{
	row_all(view, "device_timing", false);
}

void xs_timing_rows_submission(struct xs_timing_view *view)
{
	row_all(view, "kernel_submission", true);
}

void xs_timing_rows_ccl(struct xs_timing_view *view)
{
	const struct xs_table *table = &view->summary->ccl_sizes;
	uint64_t total = xs_timing_total(table);
	char name[XS_ROW_NAME_MAX];
	struct xs_report_row out;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		xs_row_begin(&out, "ccl_summary", "oneCCL");
		xs_row_text(&out, XS_COL_NAME, name, xs_timing_ccl_name(view, row, name));
		xs_timing_times(&out, row, total);
		if (row->key.form)
			xs_row_number(&out, XS_COL_MESSAGE_SIZE, row->key.shape[0]);
		xs_row_end(view->report, &out);
	}
}
