/*
 * xstrace-merge: the traces of many processes and ranks become one, on one true timeline.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "late.h"
#include "mend.h"
#include "mpi_needs.h"
#include "merge_options.h"
#include "paths.h"
#include "report.h"
#include "sink.h"
#include "tree.h"
#include "uncertainty.h"

#define DAY_NS 86400000000000

/* What both passes have at hand. */
struct work {
	struct xm_merge *merge;
	struct xm_clocks *clocks;
	struct xm_mend *mend;
	struct xm_uncertainty *uncertainty;
	struct xm_mpi *mpi;
	struct xm_sink *sink;
	struct xm_tree *tree;
	struct xm_report *report;
	struct xm_late *late;
	struct xm_totals totals;
	uint64_t next_id;
	bool tied; /* clocks, by anything */
};

/*
 * In a trace that has lost events the k-th call need not be the k-th that was made: what it seems
 * to belong to proves nothing.
 */
static bool is_sure(const struct xm_end *from, const struct xm_end *to)
{
	return from->input->lost <= 0 && to->input->lost <= 0;
}

/* ---- the first pass: what ties the clocks together ---- */

/* Something that one end had before the other could go on. */
static void tie(struct work *work, const struct xm_function *function, const struct xm_end *from,
		const struct xm_end *to)
{
	if (to->is_cut || !is_sure(from, to))
		return; /* when it ended is not known */
	work->tied = true;
	if (work->uncertainty)
		xm_uncertainty_message(work->uncertainty, from->input->clock, from->start,
				       to->input->clock, to->end);
	if (work->mend)
		xm_mend_message(work->mend, from->input->clock, from->start, to->input->clock,
				to->end);
	else
		xm_clocks_message(work->clocks, function, from->input, from->start, to->input,
				  to->end);
}

static void first_message(void *user, uint64_t comm, const struct xm_function *send,
			  const struct xm_function *receive, const struct xm_end *from,
			  const struct xm_end *to)
{
	(void)comm, (void)send;
	tie(user, receive, from, to);
}

static void first_pair(void *user, const struct xm_collective *c, const struct xm_member *to,
		       const struct xm_member *from)
{
	struct work *work = user;

	tie(work, c->function, &from->end, &to->end);
	/*
	 * where each waits for the other, both go on at about the same time, unless they look at it
	 * later
	 */
	if (!work->mend && is_sure(&from->end, &to->end) && c->function->role == XM_COLLECTIVE &&
	    from < to && xm_gets(c, from, to))
		xm_clocks_together(work->clocks, from->end.input->index, from->end.end,
				   to->end.input->index, to->end.end);
}

static void first_collective(void *user, const struct xm_collective *c)
{
	xm_each_pair(c, user, first_pair);
}

static void first_visit(void *user, struct xm_input *input, const struct xm_event *event,
			struct xm_process *process, int64_t start, int64_t end)
{
	struct work *work = user;

	xm_mpi_take(work->mpi, input, event, process, start, end);
}

/* ---- the second pass: writing ---- */

static void draw(struct work *work, const char *name, const struct xm_end *from,
		 const struct xm_end *to)
{
	int64_t base = work->merge->base,
		arrival = from->start > to->start ? from->start : to->start;
	struct xm_place a = { from->out_pid, from->started_by, from->start - base };
	struct xm_place b = { to->out_pid, to->ended_by, 0 };

	if (!work->sink || !is_sure(from, to) || arrival > to->end || from->tid == XM_NO_TIME ||
	    to->tid == XM_NO_TIME)
		return;
	/* the call that saw the end ends with it, and viewers take an end for what is behind it */
	if (to->ended_by != to->tid && to->end > arrival)
		arrival = to->end - 1;
	/* what comes in the moment in which it went is taken for its beginning by viewers */
	if (arrival == from->start && arrival < to->end)
		arrival++;
	b.time = arrival - base;
	work->sink->arrow(work->sink, "mpi", name, work->next_id++, &a, &b);
	work->totals.arrows++;
}

static void second_message(void *user, uint64_t comm, const struct xm_function *send,
			   const struct xm_function *receive, const struct xm_end *from,
			   const struct xm_end *to)
{
	struct work *work = user;

	if (!is_sure(from, to))
		return;
	work->totals.messages++;
	if (to->end < from->start && !to->is_cut) {
		work->totals.early++;
		work->totals.early_ns = from->start - to->end > work->totals.early_ns
						? from->start - to->end
						: work->totals.early_ns;
	}
	draw(work, "message", from, to);
	if (work->report)
		xm_report_message(work->report, comm, send, receive, from, to);
}

/*
 * From the last that it waited for, unless it came still later; what a root gives always comes from
 * it.
 */
static void second_wait(void *user, const struct xm_collective *c, const struct xm_member *to,
			const struct xm_member *last)
{
	if (c->function->flow == XM_FROM_ROOT || xm_is_later(last, to))
		draw(user, c->function->name, &last->end, &to->end);
}

static void second_collective(void *user, const struct xm_collective *c)
{
	struct work *work = user;

	xm_each_wait(c, work, second_wait);
	if (work->report)
		xm_report_collective(work->report, c);
}

static void second_sent(void *user, uint64_t comm, const struct xm_end *end)
{
	struct work *work = user;

	if (work->report)
		xm_report_sent(work->report, comm, end);
}

static void second_call(void *user, uint64_t comm, const struct xm_function *function,
			const struct xm_end *end)
{
	struct work *work = user;

	if (work->report)
		xm_report_call(work->report, comm, function, end);
}

static bool is_replaced(const struct xm_event *event)
{
	return event->ph.p[1] == 'M' && (xm_is(event->name, "\"process_name\"") ||
					 xm_is(event->name, "\"process_labels\"") ||
					 xm_is(event->name, "\"process_sort_index\""));
}

static void second_visit(void *user, struct xm_input *input, const struct xm_event *event,
			 struct xm_process *process, int64_t start, int64_t end)
{
	struct work *work = user;
	const struct xm_clock *clock = xm_clocks_of(work->clocks, input);
	bool is_slice = event->ph.p[1] == 'X';
	struct xm_place place = { process->out_pid, XM_NO_TIME, XM_NO_TIME };

	if (is_replaced(event))
		return;
	if (start != XM_NO_TIME) {
		start = xm_true_time(clock, start + input->shift);
		end = xm_true_time(clock, end + input->shift);
		place.time = start - work->merge->base;
	}
	if (event->tid.n)
		place.tid = xm_tid(input, process, event);
	if (work->sink) {
		work->sink->event(work->sink, input, event, &place, is_slice ? end - start : -1);
		input->events++;
	}
	if (!is_slice)
		return;
	if (work->tree && process->is_number && process->pid == input->pid)
		xm_tree_slice(work->tree, input, place.tid, start, end);
	xm_mpi_take(work->mpi, input, event, process, start, end);
}

/* ---- the third, for a report: what ranks did while others waited for them ---- */

static void late_visit(void *user, struct xm_input *input, const struct xm_event *event,
		       struct xm_process *process, int64_t start, int64_t end)
{
	struct work *work = user;
	const struct xm_clock *clock = xm_clocks_of(work->clocks, input);

	if (event->ph.p[1] != 'X' || !process->is_number || process->pid != input->pid)
		return;
	xm_late_slice(work->late, input, event, xm_tid(input, process, event),
		      xm_true_time(clock, start + input->shift),
		      xm_true_time(clock, end + input->shift));
}

/* ---- the output ---- */

/* Creates the file; where the name is taken, one with a number: "all.json", "all-2.json". */
static int create(const char *wanted, char *path, size_t size)
{
	const char *slash = strrchr(wanted, '/'), *dot = strchr(slash ? slash : wanted, '.');
	int stem = dot ? (int)(dot - wanted) : (int)strlen(wanted);

	for (int i = 1; i < 100000; i++) {
		int fd;

		if (i == 1)
			(void)snprintf(path, size, "%s", wanted);
		else
			(void)snprintf(path, size, "%.*s-%d%s", stem, wanted, i, dot ? dot : "");
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

/* A pipe, a device, a directory: what is there is no file to put another one beside. */
static bool is_special(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return false;
	xm_say("xstrace-merge: %s: is there and no file; a new file's name is needed", path);
	return true;
}

static int start_output(struct work *work, const struct xm_options *options, char *path,
			size_t size)
{
	bool compress = xm_ends_with(options->output, ".zst");
	int fd, result;

	if (is_special(options->output))
		return XM_FAILED;
	fd = create(options->output, path, size);
	if (fd < 0) {
		xm_say("xstrace-merge: %s: %s", path, strerror(-fd));
		return XM_FAILED;
	}
	if (strcmp(path, options->output))
		xm_say("[INFO] %s is there already; writing %s", options->output, path);
	work->sink = options->perfetto ? xm_sink_perfetto() : xm_sink_json(options->kineto);
	result = work->sink ? work->sink->open(work->sink, fd, compress) : -ENOMEM;
	if (result < 0) {
		xm_say("xstrace-merge: %s: %s", path, strerror(-result));
		(void)unlink(path);
		return XM_FAILED;
	}
	work->sink->merge = work->merge;
	work->sink->clocks = work->clocks;
	return 0;
}

static void say_stored(const char *what, const char *path)
{
	char shown[PATH_MAX];

	(void)xs_path_from_root(path, shown, sizeof(shown));
	xm_say("[INFO] %s is stored in %s", what, shown);
}

static int finish_output(struct work *work, const char *path)
{
	int result = work->sink->close(work->sink, work->merge, &work->totals);

	work->sink = NULL;
	if (result < 0) {
		xm_say("xstrace-merge: %s: %s; the merged trace is not complete", path,
		       strerror(-result));
		return XM_FAILED;
	}
	say_stored("Merged trace", path);
	return 0;
}

static int write_report(const struct work *work, const char *wanted)
{
	bool json = xm_ends_with(wanted, ".json");
	char path[PATH_MAX];
	FILE *out = stdout;
	int fd;

	if (strcmp(wanted, "-")) {
		if (is_special(wanted))
			return XM_FAILED;
		fd = create(wanted, path, sizeof(path));
		out = fd >= 0 ? fdopen(fd, "w") : NULL;
		if (!out) {
			xm_say("xstrace-merge: %s: %s", path, strerror(fd < 0 ? -fd : errno));
			return XM_FAILED;
		}
	}
	if (json)
		fputc('{', out);
	xm_report_print(work->report, work->mpi, out, json);
	fputs(json ? ",\n" : "", out);
	xm_late_print(work->late, out, json);
	fputs(json ? ",\n" : "", out);
	xm_evidence_report(out, work->merge, work->clocks, json);
	fputs(json ? "}\n" : "", out);
	if (ferror(out) | (out == stdout ? fflush(out) : fclose(out))) {
		xm_say("xstrace-merge: %s: cannot write the report", wanted);
		return XM_FAILED;
	}
	if (out != stdout)
		say_stored("Report", path);
	return 0;
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

static void say_clocks(const struct work *work)
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
		struct xm_text threads = { input->in_calls,
					   input->in_calls ? strlen(input->in_calls) : 0 },
			       thread;
		const char *p = xm_first(threads);
		int length = 0;

		if (!input->usable || strcmp(input->end, "killed"))
			continue;
		while (threads.n && xm_element(&p, threads.p + threads.n, &thread) &&
		       length < (int)sizeof(calls) - 260) {
			(void)xm_unescape(xm_find(thread, "in_call"), name, sizeof(name));
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

/* One more pass begins, by clocks that the one before made. 0 or -ENOMEM. */
static int next_pass(struct work *work, const struct xm_mpi_sink *sink)
{
	struct xm_mpi *before = work->mpi;

	work->mpi = xm_mpi_create(sink);
	if (work->mpi)
		xm_mpi_learn(work->mpi, before);
	xm_mpi_free(before);
	return work->mpi ? 0 : -ENOMEM;
}

/*
 * Between the two, if clocks did not run evenly: as many passes as it takes until no message
 * arrives too early. The first of them finds how far the clocks can be off. 0 or -ENOMEM.
 */
static int mend(struct work *work, const struct xm_mpi_sink *sink)
{
	bool is_mended;
	int result = 0;

	work->mend = xm_mend_create(work->clocks, work->merge);
	work->uncertainty = work->mend ? xm_uncertainty_create(work->clocks, work->merge) : NULL;
	for (is_mended = !work->mend; !is_mended && !result;) {
		uint64_t dropped;

		result = next_pass(work, sink);
		if (result)
			break;
		xm_walk(work->merge, false, second_visit, work);
		(void)xm_mpi_finish(work->mpi, &dropped);
		if (work->uncertainty)
			xm_uncertainty_solve(work->uncertainty);
		xm_uncertainty_free(work->uncertainty);
		/* later passes see the same messages, at the same times */
		work->uncertainty = NULL;
		is_mended = xm_mend_solve(work->mend);
	}
	xm_uncertainty_free(work->uncertainty);
	xm_mend_free(work->mend);
	work->uncertainty = NULL;
	work->mend = NULL;
	return result;
}

/* Which traces have lost events; what that means is told if it means anything. */
static bool say_lost(const struct work *work)
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

/*
 * What is lost is known when all has been read. Then clocks are tied once more, by what is sure. 0
 * or -ENOMEM.
 */
static int tie_again(struct work *work, const struct xm_mpi_sink *sink)
{
	xm_clocks_free(work->clocks);
	work->clocks = xm_clocks_create(work->merge->count);
	if (!work->clocks || next_pass(work, sink) < 0)
		return -ENOMEM;
	xm_walk(work->merge, false, first_visit, work);
	(void)xm_mpi_finish(work->mpi, &work->totals.dropped);
	return 0;
}

static int no_memory(void)
{
	xm_say("xstrace-merge: out of memory");
	return XM_FAILED;
}

/* What is in the inputs, and which time is true. *complete: all of all of them can be shown. */
static int first_pass(struct work *work, const struct xm_options *options, bool *complete)
{
	const struct xm_mpi_sink sink = { work, first_message, first_collective, NULL, NULL };
	struct xm_merge *merge = work->merge;
	uint32_t usable = 0;

	work->clocks = xm_clocks_create(merge->count);
	work->mpi = xm_mpi_create(&sink);
	if (!work->clocks || !work->mpi)
		return no_memory();
	xm_walk(merge, true, first_visit, work);
	(void)xm_mpi_finish(work->mpi, &work->totals.dropped);
	if (say_lost(work) && tie_again(work, &sink) < 0)
		return no_memory();
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = &merge->inputs[i];

		usable += input->usable;
		*complete &= xm_is_complete(input);
	}
	if (!usable) {
		xm_say("xstrace-merge: no trace to merge");
		return XM_FAILED;
	}
	xm_arrange(merge);
	if (!merge->order || xm_clocks_solve(work->clocks, merge, !options->no_sync) < 0 ||
	    mend(work, &sink) < 0)
		return no_memory();
	choose_base(merge, work->clocks);
	say_clocks(work);
	xm_evidence_say(merge, work->clocks);
	say_killed(merge);
	say_merged(merge, usable);
	work->next_id = merge->next_id;
	return 0;
}

/* Writes the merged trace, and finds what the report tells. */
static int second_pass(struct work *work, const struct xm_options *options)
{
	const struct xm_mpi_sink sink = { work, second_message, second_collective, second_sent,
					  second_call };
	struct xm_merge *merge = work->merge;
	char path[PATH_MAX] = "";
	int result = 0;

	work->tree = xm_tree_create(merge, work->clocks);
	work->late = options->report ? xm_late_create() : NULL;
	work->report = work->late ? xm_report_create(work->late) : NULL;
	if (next_pass(work, &sink) < 0 || !work->tree || (options->report && !work->report))
		return no_memory();
	if (options->output)
		result = start_output(work, options, path, sizeof(path));
	if (result)
		return result;
	if (work->sink)
		work->sink->head(work->sink, merge, work->clocks, !options->no_sync);
	xm_walk(merge, false, second_visit, work);
	work->totals.alone = xm_mpi_finish(work->mpi, &work->totals.dropped);
	if (!work->sink)
		return 0;
	work->totals.arrows += xm_tree_draw(work->tree, work->sink, work->next_id);
	return finish_output(work, path);
}

static int run(struct work *work, const struct xm_options *options)
{
	struct xm_merge *merge = work->merge;
	bool complete = !merge->left_out;
	int result = first_pass(work, options, &complete);

	if (!result)
		result = second_pass(work, options);
	if (!result && work->report && xm_late_begin(work->late)) {
		xm_walk(merge, false, late_visit, work);
		xm_late_solve(work->late, work->report, xm_report_late);
	}
	if (!result && work->report)
		result = write_report(work, options->report);
	for (uint32_t i = 0; i < merge->count; i++)
		complete &= !merge->inputs[i].changed;
	return result ? result : !complete;
}

int main(int argc, char **argv)
{
	struct xm_options options = { 0 };
	struct xm_merge merge = { 0 };
	struct work work = { .merge = &merge };
	struct rlimit files;
	int result = xm_options_parse(argc, argv, &options);

	if (result)
		return result - 1;
	/* all inputs are open at once */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	merge.window_log = options.window_log;
	xm_map_init(&merge.known, UINT32_MAX - 1, UINT32_MAX);
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
