/*
 * The Chrome JSON sink. docs/TRACE_FORMAT.md says what is written.
 *
 * A slice is put together from three pieces that are ready beforehand (track, name, digits), so it
 * costs little more than copying its bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends.h"
#include "files.h"
#include "kept.h"
#include "kineto.h"
#include "names.h"
#include "overhead_told.h"
#include "perfetto.h"
#include "stored.h"
#include "text.h"
#include "stacks.h"
#include "title.h"
#include "unseen.h"
#include "values.h"

static void enter(struct xs_track *track)
{
	struct xs_chrome_track *own = xs_chrome_track(track);
	char *o = xs_put_count(own->prefix, "{\"ph\":\"X\",\"tid\":", track->tid);

	o = xs_put(xs_put_count(o, ",\"pid\":", (uint32_t)track->process->pid), ",\"ts\":");
	own->prefix_length = (uint32_t)(o - own->prefix);
	own->begun.from = 0;
	memset(own->sequences, 0, sizeof(own->sequences));
	/* they have the name of the thread before, or are another trace's */
	xs_lanes_fini(&own->crossing);
	xs_lanes_fini(&own->unplaced);
}

static bool init_format(const struct xs_process *process, struct xs_chrome *chrome)
{
	switch (process->run->options->format) {
	case XS_FORMAT_CHROME:
		return true;
	case XS_FORMAT_PERFETTO:
		chrome->perfetto = xs_perfetto_create(process);
		return chrome->perfetto;
	default:
		chrome->category = ",\"cat\":\"user_annotation\"";
		return xs_kineto_init(chrome);
	}
}

/* The killed drain process could not write all; nobody knows how much that was. */
static void take_error(struct xs_process *process, struct xs_chrome *chrome, int error)
{
	chrome->former_error = error;
	if (!error)
		return;
	process->lost++;
	process->unwritten = true;
	process->run->incomplete = true;
}

static bool open_trace(struct xs_process *process)
{
	struct xs_chrome *chrome = calloc(1, sizeof(*chrome));
	/* before a file is made in the place of one that is gone */
	int former_error = process->run->recovering && process->kept ? xs_kept_error(process->kept)
								     : 0;
	uint64_t offset = 0;
	int fd, error;

	if (!chrome)
		return false;
	xs_json_names_init(&chrome->names);
	chrome->types = process->trace_types ? process->trace_types : UINT64_MAX;
	chrome->category = process->run->options->attach[0] ? ",\"cat\":\"sample\""
							    : ",\"cat\":\"cpu_op\"";
	if (!init_format(process, chrome)) {
		free(chrome);
		return false;
	}
	/* memory first: where there is none, no file is made, now and at each later try */
	error = xs_output_init(&chrome->out, -1, 0, process->run->options->compress);
	fd = error < 0 ? error : xs_chrome_open_file(process, chrome, &offset);
	if (error < 0 || process->run->refused) {
		if (fd >= 0)
			close(fd);
		(void)xs_output_close(&chrome->out, "", 0);
		xs_kineto_fini(chrome);
		xs_perfetto_free(chrome->perfetto);
		free(chrome);
		return false;
	}
	xs_output_begin(&chrome->out, fd, offset);
	if (fd < 0) {
		chrome->out.error = fd;
		xs_tell_write_error(process, fd);
	}
	if (process->run->recovering && process->kept) {
		xs_chrome_take_up(chrome, &process->kept->numbers);
		take_error(process, chrome, former_error);
	}
	if (chrome->perfetto)
		chrome->out.whole = xs_perfetto_whole;
	process->sink[XS_SINK_CHROME] = chrome;
	process->out = &chrome->out;
	if (offset) { /* it has its names */
		(void)strcpy(chrome->title, xs_title_of(process));
		chrome->rank = xs_process_rank(process);
	} else {
		xs_chrome_put_head(process);
		/* at once: a file that is cut later has its head */
		(void)xs_output_head(&chrome->out);
		if (fd >= 0 && !process->run->flight && process->kept)
			/* no record is missing yet, also where the head did not fit */
			xs_kept_commit(process->kept, &process->turn, chrome->out.offset, 0);
	}
	return true;
}

static void name_thread(struct xs_process *process, uint32_t tid, const char *name, size_t length)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name",
					 (uint64_t)process->pid, tid);

	o = xs_put(o, "\"name\":\"");
	if (chrome->kineto)
		o = xs_put(xs_put_count(o, "thread ", tid), " (");
	o = xs_json_escape(o, name, length < 256 ? length : 256);
	xs_chrome_finish(chrome, xs_put(o, chrome->kineto ? ")\"}},\n" : "\"}},\n"));
}

/* The result's name, where the API's header has one. */
static char *put_returned(char *o, const struct xs_call *call)
{
	const struct xs_api *api;
	const struct xs_function *function =
		xs_function_of(call->event->source, call->event->name, &api);
	char text[XS_RESULT_MAX];

	if (function && xs_show_returned_result(api, function, call->result, text) && text[0])
		o = xs_put(xs_put_escaped(xs_put(o, "\"returned\":\""), text), "\",");
	return o;
}

/* With -c: what the call was given, and what came back. */
static char *put_given(char *o, const struct xs_call *call)
{
	const struct xs_api *api;
	const struct xs_function *function =
		xs_function_of(call->event->source, call->event->name, &api);

	if (!function)
		return o;
	if (call->given->begun && call->given->count)
		o = xs_put(xs_show_given(xs_put(o, "\"in\":"), function, call->given), ",");
	if (call->given->values)
		o = xs_put(xs_show_returned(xs_put(o, "\"out\":"), api, function, call->given),
			   ",");
	return o;
}

/*
 * ,"args":{…}: the result of a call that failed, where it was made, and with -c what is known about
 * it; nothing when there is nothing to say.
 */
static char *put_about(char *o, struct xs_process *process, const struct xs_call *call)
{
	char *begin = o;
	size_t length;
	bool given = call->given && process->run->options->chrome_call;
	const char *stack = call->callers ? xs_stacks_text(process, call, &length) : NULL;

	o = xs_put(o, ",\"args\":{");
	if (call->event->flags & XS_CALL_FLAG_FAILED)
		o = xs_put(xs_json_signed(xs_put(o, "\"result\":"), call->result), ",");
	if (call->event->flags & XS_CALL_FLAG_FAILED || given)
		o = put_returned(o, call);
	if (given)
		o = put_given(o, call);
	if (stack)
		o = xs_put(mempcpy(o, stack, length), ",");
	if (o[-1] == '{')
		return begin;
	o[-1] = '}';
	return o;
}

static void put_call(struct xs_track *track, const struct xs_call *call)
{
	const struct xs_options *options = track->process->run->options;
	struct xs_chrome *chrome = xs_chrome_of(track->process);
	const struct xs_chrome_track *own = xs_chrome_track(track);
	char *o;

	if ((chrome->types == UINT64_MAX || xs_kineto_wants_call(track->process, call)) &&
	    (call->unfinished || options->chrome_call ||
	     xs_backend_of(call->event->source)->asked ||
	     (options->chrome_kernel && call->event->flags & XS_CALL_FLAG_OF_WORK))) {
		o = xs_chrome_put_slice(xs_output_put(&chrome->out), track, call->start, call->end);
		if (call->unfinished)
			o = xs_put(o, ",\"args\":{\"unfinished\":true}");
		else if (call->event->flags & XS_CALL_FLAG_FAILED || call->given || call->callers)
			o = put_about(o, track->process, call);
		xs_chrome_finish(chrome, chrome->kineto ? xs_kineto_end_call(o, track, call)
							: xs_chrome_put_name(o, track->process,
									     call->name));
		xs_often_see(chrome, call->name);
	}
	if (__builtin_expect(own->arrow_first < own->arrow_end, 0))
		xs_arrows_flush(track, call->end);
}

static void free_state(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	for (uint32_t i = 0; i < chrome->track_count; i++)
		xs_lanes_fini(&chrome->tracks[i].lanes);
	for (uint32_t i = 0; i < chrome->row_count; i++)
		xs_lanes_fini(&chrome->rows[i].lanes);
	xs_flows_fini(process);
	xs_waits_fini(process);
	xs_orders_fini(process);
	xs_json_names_free(&chrome->names);
	xs_chrome_about_free(chrome);
	xs_kineto_fini(chrome);
	xs_perfetto_free(chrome->perfetto);
	free(chrome->mpi);
	free(chrome->rows);
	free(chrome->labels);
	free(chrome->tracks);
	free(chrome->track_index);
	free(chrome);
	process->out = NULL;
}

#define TAIL_THREAD 1024u /* bytes, of each thread in the tail */

/*
 * Where there is no memory for the tail, a limit set from outside mostly: the output's own, with as
 * many threads as it has room for.
 */
static char *tail_in_place(struct xs_process *process, size_t room, uint32_t *threads)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t space = chrome->out.room + XS_OUTPUT_SLACK - XS_PERFETTO_ROOM;

	if (room > space) {
		process->omitted[XS_OMIT_NAMES]++;
		room -= xs_chrome_about_room(chrome);
		xs_chrome_about_free(chrome);
	}
	if (*threads > (space - room) / TAIL_THREAD)
		*threads = (uint32_t)((space - room) / TAIL_THREAD);
	(void)xs_output_flush(&chrome->out);
	return chrome->out.data;
}

static bool finish_trace(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t room = 8192 + XS_UNSEEN_ROOM + XS_OVERHEAD_TEXT_MAX + xs_chrome_about_room(chrome) +
		      xs_kineto_tail_room(chrome);
	uint32_t threads = process->thread_count;
	char *memory = malloc(room + (size_t)threads * TAIL_THREAD + XS_PERFETTO_ROOM);
	char *tail = memory ? memory : tail_in_place(process, room, &threads), path[PATH_MAX];
	struct xs_often *often = chrome->often;
	struct xs_output out;
	size_t length = 0;
	bool written;
	int error;

	length = (size_t)(xs_chrome_put_tail(tail, process, end, status, threads) - tail);
	if (chrome->perfetto) {
		xs_perfetto_begin_anew(chrome->perfetto);
		length = (size_t)(xs_perfetto_put(chrome->perfetto, tail, tail + length) - tail);
	}
	written = chrome->out.offset;
	memcpy(path, chrome->path, sizeof(path));
	if (!written && chrome->out.fd >= 0) {
		(void)unlink(path);		      /* there was no room for the head even */
		if (run->recovering && process->kept) /* who tries again does not miss it */
			xs_kept_identify(process->kept, 0, 0);
	}
	error = xs_output_close(&chrome->out, tail, length);
	out = chrome->out; /* no memory of it is left */
	free(memory);
	free_state(process);
	if (error)
		xs_tell_write_error(process, error);
	if (written && run->trace_written)
		run->trace_written(run, path);
	if (written && !process->again)
		xs_tell_output("Timeline is", path, &out, error);
	xs_often_end(run, often);
	return true;
}

static bool close_trace(struct xs_process *process, enum xs_end end, int status)
{
	xs_kineto_span_flush(process);
	xs_waits_end(process);
	xs_flows_end(process);
	xs_chrome_late_names(process);
	return finish_trace(process, end, status);
}

static void leave(struct xs_track *track, uint64_t ns)
{
	(void)ns;
	xs_arrows_flush(track, UINT64_MAX);
}

static void drop_track(struct xs_track *track)
{
	struct xs_chrome_track *own = xs_chrome_track(track);

	xs_lanes_fini(&own->crossing);
	xs_lanes_fini(&own->unplaced);
	free(own->arrows);
}

/* ---- what the two formats have in different ways ---- */

static void put_work(struct xs_process *process, const struct xs_work *work)
{
	if (xs_chrome_of(process)->kineto)
		xs_kineto_work(process, work);
	else
		xs_chrome_work(process, work);
}

static void put_aside(struct xs_process *process, const struct xs_aside *aside)
{
	if (xs_chrome_of(process)->kineto)
		xs_kineto_aside(process, aside);
	else
		xs_chrome_aside(process, aside);
}

static void put_activity(struct xs_track *track, const struct xs_activity *activity)
{
	if (xs_chrome_of(track->process)->kineto)
		xs_kineto_activity(track, activity);
	else
		xs_chrome_activity(track, activity);
}

static void put_wait(struct xs_process *process, const struct xs_wait *wait)
{
	if (!xs_chrome_of(process)->kineto) /* Kineto's has no such arrows */
		xs_waits_read(process, wait);
}

static void put_order(struct xs_process *process, const struct xs_order *order)
{
	if (!xs_chrome_of(process)->kineto && process->run->options->chrome_kernel)
		xs_orders_read(process, order);
}

static bool wanted(const struct xs_run *run)
{
	return xs_want_chrome(run->options);
}

const struct xs_sink xs_chrome_sink = {
	.wanted = wanted,
	.open = open_trace,
	.at_first_event = true,
	.track_size = sizeof(struct xs_chrome_track),
	.enter = enter,
	.leave = leave,
	.thread = name_thread,
	.tasks = xs_chrome_tasks,
	.slice = xs_chrome_span,
	.mark = xs_chrome_mark,
	.counter = xs_chrome_counter,
	.flow = xs_flows_add,
	.call = put_call,
	.call_unfinished = put_call,
	.work = put_work,
	.metrics = xs_chrome_metrics,
	.sample = xs_chrome_sample,
	.wait = put_wait,
	.order = put_order,
	.mpi_call = xs_chrome_mpi_call,
	.aside = put_aside,
	.activity = put_activity,
	.about = xs_chrome_about,
	.mpi_work = xs_chrome_mpi_work,
	.communicator = xs_chrome_communicator,
	.flush = xs_waits_looked,
	.close = close_trace,
	.drop_track = drop_track,
};
