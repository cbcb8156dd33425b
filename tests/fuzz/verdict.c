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
	options->format = XS_FORMAT_CHROME;
	if ((reports >> 4 & 3) == 3)
		options->format = reports & 4 ? XS_FORMAT_PERFETTO : XS_FORMAT_KINETO_HTA;
	(void)snprintf(options->output, sizeof(options->output), "%s",
		       options->report_format || reports & 64 ? "rep" : "");
	options->metric_query = options->output[0] && options->report_format == XS_REPORT_TEXT;
	/* with another one of these bits, by time or by instruction */
	options->metric_sampling = options->metric_query && wishes & 1;
	options->stall_sampling = options->metric_sampling && wishes & 2;
	options->idle_sampling = options->metric_sampling;
	options->cpu_events = options->cpu_events_of_tasks = reports & 64 ? XS_CPU_ALL : 0;
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

/* A number of up to ten bytes; false: there is none. */
static bool take_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
	*ret = 0;
	for (int shift = 0; *at < end && shift < 70; shift += 7) {
		unsigned char byte = *(*at)++;

		*ret |= (uint64_t)(byte & 127) << (shift < 64 ? shift : 63);
		if (byte < 128)
			return true;
	}
	return false;
}

/*
 * Is it a message of protobuf, and are those in it that are messages themselves? kind: 0 a trace, 1
 * a packet, 2 one of its messages, 3 an annotation.
 */
static bool is_message(const unsigned char *at, const unsigned char *end, int kind)
{
	uint64_t key, value;

	while (at < end) {
		if (!take_varint(&at, end, &key))
			return false;
		switch (key & 7) {
		case 0:
			if (!take_varint(&at, end, &value))
				return false;
			break;
		case 1:
			value = 8;
			if ((size_t)(end - at) < value)
				return false;
			at += value;
			break;
		case 2:
			if (!take_varint(&at, end, &value) || value > (size_t)(end - at))
				return false;
			if ((!kind && key >> 3 != 1) || (!kind && !is_message(at, at + value, 1)) ||
			    (kind == 1 && !is_message(at, at + value, 2)) ||
			    (kind == 2 && key >> 3 == 4 && !is_message(at, at + value, 3)) ||
			    (kind == 3 && (key >> 3 == 11 || key >> 3 == 12) &&
			     !is_message(at, at + value, 3)))
				return false;
			at += value;
			break;
		default:
			return false;
		}
	}
	return true;
}

static void judge_packets(const char *text, size_t length)
{
	if (is_message((const unsigned char *)text, (const unsigned char *)text + length, 0))
		return;
	printf("no packets of Perfetto's\n");
	(void)fflush(stdout);
	abort();
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
	} else if (!text || dir->run.copied_options.compress || dir->run.recovering) {
		free(text);
	} else if (dir->run.copied_options.format == XS_FORMAT_PERFETTO) {
		judge_packets(text, length);
		free(text);
	} else {
		if (!trace_parse(&trace, text, length, complaint, sizeof(complaint))) {
			printf("%s\n", complaint);
			(void)fflush(stdout);
			abort();
		}
		trace_free(&trace);
	}
	rundir_clear(dir);
}
