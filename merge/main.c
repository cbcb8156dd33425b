/*
 * xstrace-merge: the traces of many processes and ranks become one, on one true timeline.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "merge_options.h"
#include "new_file.h"
#include "passes.h"
#include "paths.h"
#include "streams.h"
#include "text.h"

#define DAY_NS 86400000000000

/* ---- the output ---- */

/* A pipe, a device, a directory: what is there is no file to put another one beside. */
static bool is_special(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return false;
	xm_say("xstrace-merge: %s: is there and no file; a new file's name is needed", path);
	return true;
}

static int start_output(struct xm_work *work, const struct xm_options *options)
{
	bool compress = xm_ends_with(options->output, ".zst");
	int fd, result;

	if (is_special(options->output))
		return XM_FAILED;
	fd = xm_new_file_open(options->output);
	if (fd < 0) {
		xm_say("xstrace-merge: %s: %s", options->output, strerror(-fd));
		return XM_FAILED;
	}
	work->sink = options->perfetto ? xm_sink_perfetto() : xm_sink_json(options->kineto);
	result = work->sink ? work->sink->open(work->sink, fd, compress) : -ENOMEM;
	if (result < 0) {
		xm_say("xstrace-merge: %s: %s", options->output, strerror(-result));
		xm_new_file_drop();
		return XM_FAILED;
	}
	work->sink->merge = work->merge;
	work->sink->clocks = work->clocks;
	return 0;
}

/* What was written takes its name, if `result` is 0. */
static int finish_file(const char *what, const char *wanted, int result)
{
	char path[PATH_MAX], shown[PATH_MAX];

	if (result)
		xm_new_file_drop();
	else
		result = xm_new_file_keep(wanted, path);
	if (result) {
		xm_say("xstrace-merge: %s: %s; nothing is stored there", wanted, strerror(-result));
		return XM_FAILED;
	}
	if (strcmp(path, wanted))
		xm_say("[INFO] %s is there already", wanted);
	(void)xs_path_from_root(path, shown, sizeof(shown));
	xm_say("[INFO] %s is stored in %s", what, shown);
	return 0;
}

static int finish_output(struct xm_work *work, const char *wanted)
{
	int result = work->sink->close(work->sink, work->merge, &work->totals);

	work->sink = NULL;
	return finish_file("Merged trace", wanted, result);
}

static void put_report(const struct xm_work *work, FILE *out, bool json)
{
	if (json)
		fputc('{', out);
	xm_report_print(work->report, work->mpi, out, json);
	fputs(json ? ",\n" : "", out);
	xm_late_print(work->late, out, json);
	fputs(json ? ",\n" : "", out);
	xm_evidence_report(out, work->merge, work->clocks, json);
	fputs(json ? "}\n" : "", out);
}

/* Text that is all there: 0 or -errno. */
static int write_text(FILE *out, const char *text, size_t length)
{
	size_t n = fwrite(text, 1, length, out);
	int result = n == length && !fflush(out) ? 0 : -errno;

	return out != stdout && fclose(out) && !result ? -errno : result;
}

/* Names of communicators, tasks and hosts are programs' texts: each line is made plain. */
static size_t plain_lines(char *text, size_t length)
{
	char *out = text;

	for (char *line = text, *stop = text + length, *end; line < stop; line = end + 1) {
		end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		out = xs_plain(out, line, (size_t)(end - line));
		if (end < stop)
			*out++ = '\n';
	}
	return (size_t)(out - text);
}

static int write_report(const struct xm_work *work, const char *wanted)
{
	FILE *out = stdout, *made;
	bool json = xm_ends_with(wanted, ".json");
	char *text = NULL;
	size_t length = 0;
	int result = 0, fd;

	if (strcmp(wanted, "-")) {
		if (is_special(wanted))
			return XM_FAILED;
		fd = xm_new_file_open(wanted);
		out = fd >= 0 ? fdopen(fd, "w") : NULL;
		if (!out) {
			xm_say("xstrace-merge: %s: %s", wanted, strerror(fd < 0 ? -fd : errno));
			return XM_FAILED;
		}
	}
	made = open_memstream(&text, &length);
	if (made)
		put_report(work, made, json);
	result = !made || ferror(made) | fclose(made) ? -ENOMEM : 0;
	if (!result)
		result = write_text(out, text, json ? length : plain_lines(text, length));
	else if (out != stdout)
		fclose(out);
	free(text);
	if (out != stdout)
		return finish_file("Report", wanted, result);
	if (result)
		xm_say("xstrace-merge: cannot write the report: %s", strerror(-result));
	return result ? XM_FAILED : 0;
}

/* ---- all of it ---- */

/* The beginning of the day of the first event. */
static void choose_base(struct xm_merge *merge, const struct xm_clocks *clocks)
{
	int64_t first = INT64_MAX;

	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = &merge->inputs[i];
		int64_t time;

		if (input->first > input->last)
			continue;
		time = xm_true_time(xm_clocks_of(clocks, input), input->first + input->shift);
		first = time < first ? time : first;
	}
	merge->base = first == INT64_MAX ? 0
		      : first >= 0	 ? first - first % DAY_NS
					 : first - first % DAY_NS - DAY_NS;
}

static void say_clocks(const struct xm_work *work)
{
	for (uint32_t i = 0; i < work->merge->count; i++)
		if (xm_clocks_of(work->clocks, work->merge->order[i])->violated) {
			xm_say("[WARNING] the clocks did not run evenly: messages may still arrive "
			       "up to %" PRIu64 " ns before they were sent",
			       xm_clocks_of(work->clocks, work->merge->order[i])->violated);
			return;
		}
}

/* Which processes did not end by themselves, and in which calls they were. */
static void say_killed(const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];
		char who[64] = "", calls[512] = "", name[256];
		struct xf_text threads = { input->in_calls,
					   input->in_calls ? strlen(input->in_calls) : 0 },
			       thread;
		const char *p = xf_first(threads);
		int length = 0;

		if (!input->usable || strcmp(input->end, "killed"))
			continue;
		while (threads.n && xf_element(&p, threads.p + threads.n, &thread) &&
		       length < (int)sizeof(calls) - 260) {
			(void)xf_unescape(xf_find(thread, "in_call"), name, sizeof(name));
			length += snprintf(calls + length, sizeof(calls) - (size_t)length, "%s%s",
					   length ? ", " : ", in ", name);
		}
		if (input->rank >= 0)
			(void)snprintf(who, sizeof(who), "rank %" PRId64 ", ", input->rank);
		xm_say("[WARNING] %spid %" PRId64 " on %s was killed by signal %" PRId64 "%s", who,
		       input->pid, input->host, input->status, calls);
	}
}

/* Traces that are merged already. */
static void say_merged(const struct xm_merge *merge, uint32_t usable)
{
	for (uint32_t i = 0; i < merge->count && usable > 1; i++)
		if (!strcmp(merge->inputs[i].tool, "xstrace-merge"))
			xm_say("[WARNING] %s is a merged trace: what it was made of must not be "
			       "merged once more beside it",
			       merge->inputs[i].path);
}

/* Which traces have lost events; what that means is told if it means anything. */
static bool say_lost(const struct xm_work *work)
{
	bool is_any = false;

	for (uint32_t i = 0; i < work->merge->count && work->tied; i++) {
		const struct xm_input *input = &work->merge->inputs[i];

		if (!input->usable || input->lost <= 0)
			continue;
		is_any = true;
		xm_say("[WARNING] %s: %" PRId64
		       " events are lost: its MPI calls tie no clocks and have no "
		       "arrows, and what the report says of its waits may be wrong",
		       input->path, input->lost);
	}
	return is_any;
}

static int no_memory(void)
{
	xm_say("xstrace-merge: out of memory");
	return XM_FAILED;
}

/*
 * What is in the inputs, and which time is true. *complete: all of all of them can be shown.
 */
static int first_pass(struct xm_work *work, const struct xm_options *options, bool *complete)
{
	struct xm_merge *merge = work->merge;
	uint32_t usable = 0;
	bool again;

	if (xm_pass_first(work) < 0)
		return no_memory();
	/* what is lost is known when all has been read: then clocks are tied by what is sure */
	again = say_lost(work);
	for (uint32_t i = 0; i < merge->count; i++)
		again |= xm_take_late_base(&merge->inputs[i]);
	if (again && xm_pass_again(work) < 0)
		return no_memory();
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = &merge->inputs[i];

		usable += input->usable && !xm_is_empty(input);
		*complete &= xm_is_complete(input);
	}
	if (!usable) {
		xm_say("xstrace-merge: no trace to merge");
		return XM_FAILED;
	}
	xm_arrange(merge);
	if (!merge->order || xm_clocks_solve(work->clocks, merge, !options->no_sync) < 0 ||
	    xm_pass_mend(work) < 0)
		return no_memory();
	choose_base(merge, work->clocks);
	say_clocks(work);
	xm_evidence_say(merge, work->clocks);
	say_killed(merge);
	say_merged(merge, usable);
	work->next_id = merge->next_id;
	return 0;
}

/* What the output had no room for. True: nothing. */
static bool say_room(const struct xm_totals *totals)
{
	if (totals->no_room)
		xm_say("xstrace-merge: %" PRIu64
		       " slices and other events are left out: there are more tracks, or "
		       "slices that are open at the same time, than the output may have",
		       totals->no_room);
	return !totals->no_room;
}

static void say_halves(const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		if (merge->inputs[i].half_arrows)
			xm_say("[INFO] %s: %" PRIu64 " arrows of which only one end is there are "
			       "left out",
			       merge->inputs[i].path, merge->inputs[i].half_arrows);
}

/* Writes the merged trace, and finds what the report tells. */
static int second_pass(struct xm_work *work, const struct xm_options *options)
{
	struct xm_merge *merge = work->merge;
	int result = 0;

	work->tree = xm_tree_create(merge, work->clocks);
	work->late = options->report ? xm_late_create() : NULL;
	work->report = work->late ? xm_report_create(work->late) : NULL;
	if (!work->tree || (options->report && !work->report))
		return no_memory();
	if (options->output)
		result = start_output(work, options);
	if (result)
		return result;
	if (work->sink)
		work->sink->head(work->sink, merge, work->clocks, !options->no_sync);
	result = xm_pass_second(work);
	if (!work->sink)
		return result < 0 ? no_memory() : 0;
	if (result < 0)
		work->sink->error = result;
	say_halves(merge);
	work->totals.arrows += xm_tree_draw(work->tree, work->sink, work->next_id);
	return finish_output(work, options->output);
}

static int run(struct xm_work *work, const struct xm_options *options)
{
	struct xm_merge *merge = work->merge;
	bool complete = !merge->left_out;
	int result = first_pass(work, options, &complete);

	if (!result)
		result = second_pass(work, options);
	if (!result && work->report && xm_late_begin(work->late)) {
		result = xm_pass_late(work) < 0 ? no_memory() : 0;
		xm_late_solve(work->late, work->report, xm_report_late);
	}
	if (!result && work->report)
		result = write_report(work, options->report);
	for (uint32_t i = 0; i < merge->count; i++)
		complete &= !merge->inputs[i].changed;
	complete &= say_room(&work->totals);
	return result ? result : !complete;
}

int main(int argc, char **argv)
{
	struct xm_options options = { 0 };
	struct xm_merge merge = { 0 };
	struct xm_work work = { .merge = &merge };
	struct rlimit files;
	int result;

	xs_stdout_waits();
	result = xm_options_parse(argc, argv, &options);
	if (result)
		return result == 1 && !xs_printed("xstrace-merge") ? XM_FAILED : result - 1;
	(void)signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error, and said */
	xm_new_file_init();
	/* all inputs are open at once */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	merge.window_log = options.window_log;
	xf_map_init(&merge.known, UINT32_MAX - 1, UINT32_MAX);
	if (options.output)
		xm_never_read(&merge, options.output);
	if (options.report)
		xm_never_read(&merge, options.report);
	for (; optind < argc && !result; optind++)
		result = xm_add_path(&merge, argv[optind]) < 0 ? XM_FAILED : 0;
	if (!result) {
		xm_wait_for_writers(&merge, options.wait);
		result = run(&work, &options);
	}
	xm_report_free(work.report);
	xm_late_free(work.late);
	xm_tree_free(work.tree);
	xm_mpi_free(work.mpi);
	xm_clocks_free(work.clocks);
	xm_merge_free(&merge);
	return result;
}
