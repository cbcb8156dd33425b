/*
 * The timing reports at the end of a process: which are asked for, and have something to show.
 */
#include "kept.h"
#include "overhead_told.h"
#include "timing.h"

typedef unsigned long long ull;

/* Also without a row there is something to tell then: the device may hang. */
static bool lacks_some(const struct xs_process *process)
{
	return process->open_commands || process->untimed;
}

/* What a table of device work lacks. */
static void print_missing(struct xs_report *report, const struct xs_process *process)
{
	if (process->untimed)
		xs_report_print(report,
				"(%llu command%s not in this table: %s times could not be had)\n\n",
				(ull)process->untimed, process->untimed == 1 ? " is" : "s are",
				process->untimed == 1 ? "its" : "their");
	if (process->open_commands)
		xs_report_print(report,
				"(%llu command%s not in this table: not known to be complete when "
				"the process "
				"ended, or while it was recorded)\n\n",
				(ull)process->open_commands,
				process->open_commands == 1 ? " is" : "s are");
}

/* In front of the first table of text. */
static void print_recovered(struct xs_report *report, const struct xs_process *process)
{
	if (process->run->recovering && process->kept && xs_kept_bytes(process->kept) &&
	    process->run->options->report_format == XS_REPORT_TEXT)
		xs_report_print(report, "\n(recovered: what the killed drain process had read "
					"before is not in these tables)\n");
}

/* Behind the last table of text. */
static void print_overhead(struct xs_report *report, const struct xs_process *process)
{
	struct xs_overhead overhead;
	char text[XS_OVERHEAD_TEXT_MAX];

	xs_overhead_of(process, &overhead);
	*xs_overhead_put_text(text, &overhead) = '\0';
	xs_report_print(report, "%s\n\n", text);
}

bool xs_timing_print(struct xs_process *process)
{
	const struct xs_options *options = process->run->options;
	struct xs_summary *summary = process->sink[XS_SINK_SUMMARY];
	const struct {
		bool wanted;
		enum xs_report_kind kind;
		struct xs_table *table;
		bool device;
		void (*text)(struct xs_timing_view *);
		void (*rows)(struct xs_timing_view *);
	} reports[] = {
		/*
		 * a trace's calls are counted too, and are no reason for a report that does not
		 * show them
		 */
		{ options->host_timing, XS_REPORT_HOST_TIMING, &summary->host, false,
		  xs_timing_text_host, xs_timing_rows_host },
		{ options->device_timing, XS_REPORT_DEVICE_TIMING, &summary->device, true,
		  xs_timing_text_device, xs_timing_rows_device },
		{ options->kernel_submission, XS_REPORT_SUBMISSION, &summary->device, true,
		  xs_timing_text_submission, xs_timing_rows_submission },
		{ options->ccl_summary, XS_REPORT_CCL, &summary->ccl, false, xs_timing_text_ccl,
		  xs_timing_rows_ccl },
	};
	struct xs_report *last = NULL; /* of text */
	bool something = false;

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		struct xs_timing_view view = { .process = process,
					       .summary = summary,
					       .table = reports[i].table,
					       .device = reports[i].device };

		if (!reports[i].wanted ||
		    (!reports[i].table->count && !(reports[i].device && lacks_some(process))))
			continue;
		view.report = xs_report_of(process, reports[i].kind);
		if (!view.report)
			continue;
		xs_table_sort(reports[i].table);
		xs_table_sort(&summary->ccl_sizes);
		if (!something)
			print_recovered(view.report, process);
		view.devices = reports[i].device && xs_timing_needs_device(reports[i].table);
		something = true;
		if (options->report_format != XS_REPORT_TEXT) {
			reports[i].rows(&view);
			continue;
		}
		reports[i].text(&view);
		if (reports[i].device)
			print_missing(view.report, process);
		last = view.report;
	}
	if (last)
		print_overhead(last, process);
	return something;
}
