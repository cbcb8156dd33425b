#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_check.h"
#include "trace.h"

void verdict_options(struct xs_options *options, unsigned wishes, unsigned reports)
{
	options->call_logging = reports & 1;
	options->device_timeline = reports & 2;
	options->kernel_submission = reports & 4;
	options->show_pid = options->show_tid = options->demangle = reports & 8;
	options->report_format = (reports >> 4 & 3) % 3;
	options->format = (reports >> 4 & 3) == 3 ? XS_FORMAT_KINETO_HTA : XS_FORMAT_CHROME;
	(void)snprintf(options->output, sizeof(options->output), "%s",
		       options->report_format || reports & 64 ? "rep" : "");
	if (reports & 128)
		wishes &= ~7u; /* no trace: the report alone is judged */
	options->chrome_call = wishes & 1;
	options->chrome_kernel = wishes & 2;
	options->chrome_itt = wishes & 4;
	options->host_timing = wishes & 8;
	options->device_timing = wishes & 16;
	options->no_thread_on_device = wishes & 32;
	options->no_engine_on_device = wishes & 64;
	options->verbose = wishes & 128;
}

void verdict(struct rundir *dir)
{
	char path[PATH_MAX], complaint[256];
	size_t length = 0;
	struct trace trace;
	char *text = rundir_trace(dir, path, sizeof(path), &length);

	if (text && !strncmp(strrchr(path, '/'), "/rep.", 5)) {
		size_t at;

		if (dir->run.copied_options.report_format == XS_REPORT_JSON &&
		    !json_check(text, length, &at)) {
			printf("a report is not JSON at %zu: %.80s\n", at, text + at);
			(void)fflush(stdout);
			abort();
		}
		free(text);
	} else if (text && !dir->run.copied_options.compress && !dir->run.recovering) {
		if (!trace_parse(&trace, text, length, complaint, sizeof(complaint))) {
			printf("%s\n", complaint);
			(void)fflush(stdout);
			abort();
		}
		trace_free(&trace);
	} else {
		free(text);
	}
	rundir_clear(dir);
}
