/*
 * xstrace-tables: a trace becomes tables, each a Parquet file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "packets.h"
#include "streams.h"
#include "sweep.h"
#include "tables_options.h"
#include "text.h"

#define WINDOW (256u << 10)

static int fail(const char *path, const char *why)
{
	xs_tell("xstrace-tables: %s: %s\n", path, why);
	return XT_FAILED;
}

/* ---- reading ---- */

static void take_events(struct xt_trace *trace, struct xt_progress *progress)
{
	struct xf_event event;

	while (!trace->error && xm_reader_next(&trace->reader, &event)) {
		int64_t ts = event.own_ts, dur = event.own_dur;

		if (!event.is_own) {
			dur = 0;
			if (event.ph.n != 3 || event.ph.p[0] != '"') {
				trace->unfit++;
				continue;
			}
			if (event.ph.p[1] == 'M') {
				xt_take_name(trace, &event);
				continue;
			}
			if (!xf_nanoseconds(event.ts, &ts) ||
			    (event.dur.n && !xf_nanoseconds(event.dur, &dur)) || dur < 0) {
				trace->unfit++;
				continue;
			}
		}
		if (ts <= -XT_FAR || ts >= XT_FAR || dur >= XT_FAR)
			trace->unfit++;
		else
			xt_take(trace, &event, ts, event.ph.p[1] == 'X' ? dur : 0);
		if (!(trace->events & 0xfff))
			xt_progress(progress, "reading", (uint64_t)trace->reader.source.at,
				    (uint64_t)trace->file.size);
	}
	xt_take_end(trace);
}

/* Is it in Perfetto's format? *source is at its beginning then. 0 or -errno. */
static int open_packets(struct xt_trace *trace, struct xm_source *source, bool *ret_is_packets)
{
	char head[64];
	ssize_t n;
	int result = xm_source_open(source, &trace->file);

	if (result < 0)
		return result;
	n = xm_source_read(source, head, sizeof(head));
	*ret_is_packets = n > 0 && xt_is_packets(head, (size_t)n);
	xm_source_close(source);
	return *ret_is_packets ? xm_source_open(source, &trace->file) : 0;
}

static int open_file(struct xt_trace *trace)
{
	struct stat st;

	return stat(trace->path, &st) < 0 ? -errno : xm_file_open(&trace->file, trace->path, &st);
}

static int open_json(struct xt_trace *trace, const char **ret_why)
{
	trace->reader.member = xt_take_member;
	trace->reader.user = trace;
	return xm_reader_open(&trace->reader, &trace->file, WINDOW, ret_why);
}

/* What was wrong with the trace. True: nothing. */
static bool say_damage(const struct xt_trace *trace)
{
	const struct xm_reader *r = &trace->reader;

	if (r->error)
		xs_tell("xstrace-tables: %s: %s; the tables hold what could be read\n", trace->path,
			xm_reason(r->error));
	else if (r->source.error)
		xs_tell("xstrace-tables: %s: damaged compressed data (%s); the tables hold all "
			"before that\n",
			trace->path, r->source.error);
	if (r->left_out && !r->first_line)
		xs_tell("xstrace-tables: %s: %llu packets cannot be read (%s)\n", trace->path,
			(unsigned long long)r->left_out, r->first_why);
	else if (r->left_out)
		xs_tell("xstrace-tables: %s: line %llu: %s; left out%s\n", trace->path,
			(unsigned long long)r->first_line, r->first_why,
			r->left_out > 1 ? ", and more like it" : "");
	if (r->lost_line)
		xs_tell("xstrace-tables: %s: what follows that in line %llu cannot be read; the "
			"tables hold all before it\n",
			trace->path, (unsigned long long)r->lost_line);
	if (r->cut && !r->source.error)
		xs_tell("xstrace-tables: %s: was cut; the tables hold all before that\n",
			trace->path);
	if (trace->unfit)
		xs_tell("xstrace-tables: %s: %llu events without a usable ph, pid, time or "
			"beginning, or of more than %u processes; left out\n",
			trace->path, (unsigned long long)trace->unfit, XT_PROCESSES);
	if (trace->has_odd_base)
		xs_tell("xstrace-tables: %s: its baseTimeNanoseconds is no time; its events are "
			"in the tables as if none were given\n",
			trace->path);
	return !r->error && !r->source.error && !r->left_out && !r->cut && !trace->unfit &&
	       !trace->has_odd_base;
}

/* ---- writing ---- */

static int write_tables(struct xt_trace *trace, int directory, const struct xt_options *options,
			struct xt_progress *progress)
{
	struct xt_out out = { 0 };
	struct xt_rows ends;
	int result;

	xt_rows_init(&ends, directory, options->memory / 4);
	result = xt_out_create(&out, directory, options->threads);
	if (!result)
		result = xt_sweep(trace, &out, &ends, progress);
	if (!result)
		result = xt_join(trace, &out, &ends);
	if (!result)
		xt_tell(trace, &out);
	result = xt_out_close(&out, directory, result);
	xt_rows_free(&ends);
	return result;
}

/* *ret_made: it was not there before. */
static int open_directory(const char *path, bool *ret_made)
{
	int directory;

	*ret_made = !mkdir(path, 0777);
	if (!*ret_made && errno != EEXIST)
		return -errno;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -errno : directory;
}

/* All events of the trace. 0, or an exit status: it has been said why. */
static int read_trace(struct xt_trace *trace, struct xt_progress *progress)
{
	struct xm_source source = { 0 };
	const char *why = NULL;
	bool is_packets = false;
	int result = open_file(trace);

	if (!result)
		result = open_packets(trace, &source, &is_packets);
	if (!result && is_packets) {
		result = xt_packets_take(trace, &source, progress);
		xm_source_close(&source);
	} else if (!result) {
		result = open_json(trace, &why);
		if (!result)
			take_events(trace, progress);
	}
	if (result == -EBADMSG)
		return fail(trace->path, why ? why : "not a trace");
	if (result)
		return fail(trace->path, xm_reason(result));
	if (trace->events || trace->is_own)
		return 0;
	(void)say_damage(trace);
	return fail(trace->path, "no event in it can be used");
}

static int convert(struct xt_trace *trace, int directory, const struct xt_options *options)
{
	struct xt_progress progress = { .fd = options->progress };
	int result = xt_trace_init(trace, directory, options->memory / 2);

	if (result)
		return fail(options->output, xm_reason(result));
	result = read_trace(trace, &progress);
	if (!result) {
		result = trace->error ? trace->error
				      : write_tables(trace, directory, options, &progress);
		if (result)
			result = fail(options->output, xm_reason(result));
		else
			result = say_damage(trace) ? 0 : XT_IN_PART;
	}
	xt_progress_end(&progress);
	return result;
}

int main(int argc, char **argv)
{
	struct xt_options options = { 0 };
	struct xt_trace trace = { 0 };
	int result, directory;
	bool made;

	xs_stdout_waits();
	result = xt_options_parse(argc, argv, &options);
	if (result)
		return result == 1 && !xs_printed("xstrace-tables") ? XT_FAILED : result - 1;
	(void)signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error, and said */
	directory = open_directory(options.output, &made);
	if (directory < 0)
		return fail(options.output, xm_reason(directory));
	trace.path = options.trace;
	trace.file.fd = -1;
	trace.file.window_log = options.window_log;
	result = convert(&trace, directory, &options);
	xm_reader_close(&trace.reader);
	xm_file_close(&trace.file);
	xt_trace_free(&trace);
	close(directory);
	if (result == XT_FAILED && made)
		(void)rmdir(options.output); /* what could not be made is not there */
	return result;
}
