/*
 * What the files of the timing reports know together: timing.c finds rows and sums, timing_text.c
 * prints tables of them, timing_rows.c JSON and CSV.
 */
#ifndef XS_TIMING_H
#define XS_TIMING_H

#include "backends.h"
#include "device_record.h"
#include "summary.h"

/* One report, and where in it one is. */
struct xs_timing_view {
	struct xs_process *process;
	struct xs_summary *summary;
	struct xs_report *report;
	const struct xs_table *table;
	bool device;
	size_t group; /* of backends.h: whose rows */
	int width;    /* of the first column */
	bool devices; /* text: a last column says which device a row is of */
};

struct xs_timing_sums {
	uint64_t calls, failed, total, queued, submit;
};

/*
 * Of the group's rows: is there one, what do they come to. `device`: the table is of device work,
 * not of calls.
 */
bool xs_timing_has(const struct xs_summary *summary, const struct xs_table *table, size_t group,
		   bool device);
struct xs_timing_sums xs_timing_sums_of(const struct xs_summary *summary,
					const struct xs_table *table, size_t group, bool device);
/* The sum of all rows' times. */
uint64_t xs_timing_total(const struct xs_table *table);

/* Has something the same name on two devices? */
bool xs_timing_needs_device(const struct xs_table *table);
/*
 * Several processes write to one stderr: each table says whose it is. A file's name does that for
 * all in it.
 */
void xs_timing_title(struct xs_process *process, struct xs_report *report, const char *title,
		     const char *end);
/* Of text in UTF-8. */
size_t xs_timing_columns(const char *text, size_t length);
/* Columns of the longest name of a table's rows, and of `title` above them. */
int xs_rows_width(const struct xs_process *process, const struct xs_table *table,
		  const char *title);
/* A row's name at the right end of so many columns. */
void xs_row_put_name(const struct xs_process *process, struct xs_report *report,
		     const struct xs_table_row *row, int width);
/*
 * The next row of the view's group from *at on, NULL: there is none; its name in `name`, of
 * XS_ROW_NAME_MAX bytes.
 */
const struct xs_table_row *xs_timing_next(const struct xs_timing_view *view, uint32_t *at,
					  char *name, size_t *ret_length);
/* A collective's name without its size, which has a column of its own; as xs_row_name(). */
size_t xs_timing_ccl_name(const struct xs_timing_view *view, const struct xs_table_row *row,
			  char *name);

/* What the row's kernel is made of; NULL: nobody has told. */
const struct xs_kernel_record *xs_timing_kernel(const struct xs_summary *summary,
						const struct xs_table_row *row);
const char *xs_timing_compiled(const struct xs_kernel_record *kernel);

/* What recording a call of the group takes on this machine, in ns; 0: nobody measures. */
double xs_timing_record_ns(const struct xs_run *run, size_t group);

static inline double xs_timing_percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

/* Calls and times of a row, for JSON and CSV; total: of all rows. */
void xs_timing_times(struct xs_report_row *out, const struct xs_table_row *row, uint64_t total);

/* One report each, of what the view shows. */
void xs_timing_text_host(struct xs_timing_view *view);
void xs_timing_text_device(struct xs_timing_view *view);
void xs_timing_text_submission(struct xs_timing_view *view);
void xs_timing_text_ccl(struct xs_timing_view *view);
void xs_timing_rows_host(struct xs_timing_view *view);
void xs_timing_rows_device(struct xs_timing_view *view);
void xs_timing_rows_submission(struct xs_timing_view *view);
void xs_timing_rows_ccl(struct xs_timing_view *view);

#endif
