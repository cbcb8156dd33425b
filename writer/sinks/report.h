/*
 * Where reports go: a file of a process, or stderr; as text, JSON or CSV. report.c opens, formats
 * and closes; what is in them is said by timing.c, timeline.c and call_log.c.
 *
 * JSON is one array and CSV one table per file, whatever reports share it: every row says in its
 * first column which report it is of. docs/REPORTS.md has the columns.
 */
#ifndef XS_REPORT_H
#define XS_REPORT_H

#include <limits.h>

#include "output.h"
#include "traced.h"

enum xs_report_kind {
	XS_REPORT_HOST_TIMING,
	XS_REPORT_DEVICE_TIMING,
	XS_REPORT_SUBMISSION,
	XS_REPORT_TIMELINE,
	XS_REPORT_CALL_LOG,
	XS_REPORT_CCL,
	XS_REPORT_TASK_COUNTS,
	XS_REPORT_OPENMP,
	XS_REPORT_PYTHON,
	XS_REPORT_SAMPLES,
	XS_REPORT_COUNT,
};

/* The columns of JSON and CSV, in this order; names in report.c. */
enum xs_column {
	XS_COL_REPORT,
	XS_COL_BACKEND,
	XS_COL_NAME,
	XS_COL_CALLS,
	XS_COL_FAILED,
	XS_COL_TIME,
	XS_COL_PERCENT,
	XS_COL_AVERAGE,
	XS_COL_MIN,
	XS_COL_MAX,
	XS_COL_P50,
	XS_COL_P90,
	XS_COL_P99,
	XS_COL_QUEUED,
	XS_COL_QUEUED_PERCENT,
	XS_COL_SUBMIT,
	XS_COL_SUBMIT_PERCENT,
	XS_COL_EXECUTE,
	XS_COL_EXECUTE_PERCENT,
	XS_COL_MESSAGE_SIZE,
	XS_COL_COMPILED,
	XS_COL_SIMD,
	XS_COL_ARGUMENTS,
	XS_COL_SLM,
	XS_COL_PRIVATE,
	XS_COL_SPILL,
	XS_COL_REGISTERS,
	XS_COL_PID,
	XS_COL_TID,
	XS_COL_DEVICE,
	XS_COL_TILE,
	XS_COL_ENGINE,
	XS_COL_BYTES,
	XS_COL_AT_QUEUED,
	XS_COL_AT_SUBMIT,
	XS_COL_AT_START,
	XS_COL_AT_END,
	XS_COL_RESULT,
	XS_COL_IN,
	XS_COL_OUT,
	XS_COL_OVERHEAD,
	XS_COL_RUN_TIME,
	XS_COL_COMM,
	XS_COL_HOST,
	XS_COL_RANK,
	XS_COL_LOST,
	XS_COL_UNTIMED,
	XS_COL_OPEN_COMMANDS,
	XS_COL_OPEN_REQUESTS,
	XS_COL_COUNTED,
	XS_COL_THREADS,
	XS_COL_WORK,
	XS_COL_WAITED,
	XS_COL_LATE,
	XS_COL_IMBALANCE,
	XS_COL_SELF,
	XS_COL_ONLY_COUNTED,
	XS_COL_DRAIN,
	XS_COL_COUNT,
};

/* One row of JSON or CSV while it is put together; text is not copied. */
struct xs_row_cell {
	uint8_t type; /* enum in report.c; 0: empty */
	uint32_t length;
	union {
		uint64_t number;
		double real;
		const char *text;
	} value;
};
struct xs_report_row {
	struct xs_row_cell cell[XS_COL_COUNT];
};

struct xs_report {
	struct xs_output out;
	uint32_t format; /* enum xs_report_format */
	char path[PATH_MAX];
	bool to_file, told;
};

/*
 * The open report of this kind of the process, made at the first call; kinds share one where they
 * go to the same place. NULL: no memory. A file that cannot be made is said once, and its report
 * goes to stderr.
 */
struct xs_report *xs_report_of(struct xs_process *process, enum xs_report_kind kind);
/* What was put reaches the file or the terminal. */
void xs_reports_flush(struct xs_process *process);
/* Ends all of the process's reports and says where they are. True when there was one. */
bool xs_reports_close(struct xs_process *process);

/* Text: where to put it, at most XS_OUTPUT_SLACK bytes, then xs_report_end(). */
static inline char *xs_report_begin(struct xs_report *report)
{
	return xs_output_put(&report->out);
}
void xs_report_end(struct xs_report *report, char *end);
/* At most 16 KiB at a time. */
void xs_report_print(struct xs_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* JSON and CSV. The row is emptied. kind, backend: constants. */
void xs_row_begin(struct xs_report_row *row, const char *kind, const char *backend);
void xs_row_number(struct xs_report_row *row, enum xs_column column, uint64_t value);
void xs_row_real(struct xs_report_row *row, enum xs_column column, double value);
void xs_row_text(struct xs_report_row *row, enum xs_column column, const char *text, size_t length);
/* As it is: a number, an array or an object of JSON; quoted in CSV. */
void xs_row_json(struct xs_report_row *row, enum xs_column column, const char *text, size_t length);
void xs_row_end(struct xs_report *report, const struct xs_report_row *row);
/* The same, to memory; returns the end. */
char *xs_row_put(char *out, const struct xs_report *report, const struct xs_report_row *row);
#endif
