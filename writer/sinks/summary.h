/*
 * The timing reports (-h, -d, -s, -r): summary.c counts as records come, timing.c prints when the
 * process has ended (timing_text.c, timing_rows.c).
 */
#ifndef XS_SUMMARY_H
#define XS_SUMMARY_H

#include "device_record.h"
#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "table.h"

#define XS_KERNELS_KEPT 65536u

struct xs_summary {
	struct xs_table host, device;
	/* a row for each collective; for each and its message size */
	struct xs_table ccl, ccl_sizes;
	bool seen[XS_SOURCE_COUNT][4];	  /* enum xs_device_type: what the backend ran on */
	struct xs_kernel_record *kernels; /* by id */
	uint32_t kernel_room;
};

/* What of a command tells it apart in reports: with -v a kernel's shape and a copy's size too. */
struct xs_table_key xs_work_key(const struct xs_work *work, bool detailed);

/*
 * The name of a row, with tile, shape and so on, on one line; `quoted`: kernels of Level Zero in
 * quotes, as in unitrace's tables. Returns its length; there is no 0 behind it.
 */
#define XS_ROW_NAME_MAX 8192u
size_t xs_row_name(const struct xs_process *process, const struct xs_table_key *key, bool quoted,
		   char *out);

/* timing.c: all that was asked for. True when there was something to report. */
bool xs_timing_print(struct xs_process *process);

#endif
