/*
 * xstrace-tables: a trace becomes tables, each a Parquet file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"
#include "sweep.h"
#include "tables_options.h"
#include "text.h"

#define WINDOW (256u << 10)

static const char *reason(int error)
{
	switch (error) {
	case -ENOTSUP:
		return "this build cannot read compressed files of its kind";
	case -EMEDIUMTYPE:
		return "neither a file nor a pipe";
	case -ENODATA:
		return "has become shorter while it was read";
	default:
		return strerror(-error);
	}
}

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

static int open_trace(struct xt_trace *trace, const char **ret_why)
{
	struct stat st;
	int result = stat(trace->path, &st) < 0 ? -errno : 0;

	*ret_why = NULL;
	if (!result)
		result = xm_file_open(&trace->file, trace->path, &st);
	if (result)
		return result;
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
			reason(r->error));
	else if (r->source.error)
		xs_tell("xstrace-tables: %s: damaged compressed data (%s); the tables hold all "
			"before that\n",
			trace->path, r->source.error);
	if (r->left_out)
		xs_tell("xstrace-tables: %s: line %llu: %s; left out%s\n", trace->path,
			(unsigned long long)r->first_line, r->first_why,
			r->left_out > 1 ? ", and more like it" : "");
	if (r->cut && !r->source.error)
		xs_tell("xstrace-tables: %s: was cut; the tables hold all before that\n",
			trace->path);
	if (trace->unfit)
		xs_tell("xstrace-tables: %s: %llu events without a usable ph, pid, time or "
			"beginning; left out\n",
			trace->path, (unsigned long long)trace->unfit);
	return !r->error && !r->source.error && !r->left_out && !r->cut && !trace->unfit;
}

/* ---- writing ---- */

static int write_tables(struct xt_trace *trace, int directory, const struct xt_options *options,
			struct xt_progress *progress)
{
	struct xt_out out = { 0 };
	struct xt_rows ends;
	int result = xt_rows_init(&ends, directory, options->memory / 4), closed;

	if (result)
		return result;
	result = xt_out_create(&out, directory, options->threads);
	if (!result)
		result = xt_sweep(trace, &out, &ends, progress);
	if (!result)
		result = xt_join(trace, &out, &ends);
	if (!result)
		xt_tell(trace, &out);
	closed = xt_out_close(&out);
	xt_rows_free(&ends);
	return result ? result : closed;
}

static int open_directory(const char *path)
{
	int directory;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -errno;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -errno : directory;
}

static int convert(struct xt_trace *trace, int directory, const struct xt_options *options)
{
	struct xt_progress progress = { .fd = options->progress };
	const char *why = NULL;
	bool good;
	int result = xt_trace_init(trace, directory, options->memory / 2);

	if (result)
		return fail(options->output, reason(result));
	result = open_trace(trace, &why);
	if (result && result != -EBADMSG)
		return fail(trace->path, reason(result));
	if (result)
		return fail(trace->path, why ? why : "not a trace");
	take_events(trace, &progress);
	if (!trace->events && !trace->is_own) {
		(void)say_damage(trace);
		return fail(trace->path, "no event in it can be used");
	}
	result = trace->error ? trace->error : write_tables(trace, directory, options, &progress);
	xt_progress_end(&progress);
	if (result)
		return fail(options->output, reason(result));
	good = say_damage(trace);
	return good ? 0 : XT_IN_PART;
}

int main(int argc, char **argv)
{
	struct xt_options options = { 0 };
	struct xt_trace trace = { 0 };
	int result = xt_options_parse(argc, argv, &options), directory;

	if (result)
		return result - 1;
	directory = open_directory(options.output);
	if (directory < 0)
		return fail(options.output, reason(directory));
	trace.path = options.trace;
	trace.file.fd = -1;
	trace.file.window_log = options.window_log;
	result = convert(&trace, directory, &options);
	xm_reader_close(&trace.reader);
	xm_file_close(&trace.file);
	xt_trace_free(&trace);
	close(directory);
	return result;
}
