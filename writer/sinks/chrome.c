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
#include "kineto.h"
#include "names.h"
#include "overhead_told.h"
#include "perfetto.h"
#include "stored.h"
#include "text.h"
#include "stacks.h"
#include "title.h"
#include "values.h"
#include "version.h"

/* Whose trace does not begin where the run began. */
static char *put_recorder(char *o, const struct xs_run *run)
{
	static const char *const reasons[] = { "signal", "session", "trigger", "crash" };
	const struct xs_dump *dump = run->dump;
	bool first = true;

	if (!dump)
		return xs_put(o, ",\"flight_recorder\":{\"recovered\":true}");
	o = xs_put(xs_put_count(o, ",\"flight_recorder\":{\"dump\":", dump->number),
		   ",\"reasons\":[");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (dump->reasons & 1u << i) {
			o = xs_put(xs_put(xs_put(o, first ? "\"" : ",\""), reasons[i]), "\"");
			first = false;
		}
	o = xs_put_count(o, "],\"window_ns\":", run->options->flight);
	o = xs_json_micros(xs_put(o, ",\"from\":"), dump->from);
	o = xs_json_micros(xs_put(o, ",\"to\":"), dump->to);
	return xs_put(o, dump->cut ? ",\"cut\":true}" : "}");
}

/* Words with a NUL behind each, as members of an array. */
static char *put_words(char *o, const char *word, size_t length)
{
	const char *stop = word + length;

	for (bool first = true; word < stop; first = false) {
		size_t n = strnlen(word, (size_t)(stop - word));

		o = xs_put(xs_json_escape(xs_put(o, first ? "\"" : ",\""), word, n), "\"");
		word += n + 1;
	}
	return o;
}

/*
 * As unitrace calls it, whose users look for RANK and HOST<…>; behind that, what it is. It is
 * written again when that has changed.
 */
static char *put_process_name(struct xs_process *process, char *o)
{
	o = xs_chrome_put_metadata(o, "process_name", (uint64_t)process->pid,
				   (uint64_t)process->pid);
	o = xs_chrome_put_rank(xs_put(o, "\"name\":\""), process);
	o = xs_put(xs_put_escaped(xs_put(o, "HOST<"), process->run->host), "> ");
	(void)strcpy(xs_chrome_of(process)->title, xs_title_of(process));
	xs_chrome_of(process)->rank = xs_process_rank(process);
	return xs_put(xs_put_escaped(o, xs_chrome_of(process)->title), "\"}},\n");
}

/* Perfetto's format has no place beside its events: one of them, up to the members of its args. */
static char *put_instant(char *o, const struct xs_process *process, uint64_t ns, const char *name)
{
	o = xs_put_count(o, "{\"ph\":\"i\",\"s\":\"p\",\"pid\":", (uint32_t)process->pid);
	o = xs_put_count(o, ",\"tid\":", (uint32_t)process->pid);
	o = xs_put(xs_json_micros(xs_put(o, ",\"ts\":"), ns), ",\"name\":\"");
	return xs_put(xs_put(o, name), "\",\"args\":{");
}

static char *put_head(char *o, const struct xs_process *process)
{
	const struct xs_chrome *chrome = xs_chrome_of(process);

	if (chrome->kineto)
		return xs_kineto_put_head(o, process);
	if (chrome->perfetto)
		o = put_instant(o, process, xs_process_ns(process, process->join_tick),
				"xstrace::trace");
	else
		o = xs_put(o, "{\"displayTimeUnit\":\"ns\",");
	return xs_put_count(o, "\"baseTimeNanoseconds\":", process->run->base);
}

static void header(struct xs_process *process)
{
	const struct xs_run *run = process->run;
	struct xs_chrome *chrome = xs_chrome_of(process);
	int32_t rank = xs_process_rank(process),
		world_size = atomic_load_explicit(&process->file->world_size, memory_order_relaxed);
	char *o = xs_output_put(&chrome->out);

	o = xs_put(put_head(o, process),
		   ",\"metadata\":{\"tool\":\"xstrace\",\"version\":\"" XS_VERSION
		   "\",\"format\":" XS_TRACE_FORMAT ",\"run\":\"");
	o = xs_put_escaped(o, run->run_id);
	o = xs_put_escaped(xs_put(o, "\",\"host\":\""), run->host);
	o = xs_put_count(o, "\",\"pid\":", (uint64_t)process->pid);
	o = xs_put_count(o, ",\"ppid\":", (uint64_t)process->ppid);
	if (rank >= 0)
		o = xs_put_count(o, ",\"rank\":", (uint64_t)rank);
	if (world_size > 0)
		o = xs_put_count(o, ",\"world_size\":", (uint64_t)world_size);
	o = xs_put_escaped(xs_put(o, ",\"options\":\""), run->arguments);
	o = xs_put(o, "\",\"clock\":");
	o = xs_put(o, run->use_tsc ? "\"tsc\"" : "\"monotonic\"");
	o = xs_put_count(o, ",\"ring_size\":", process->first.ring_size);
	if (run->options->flight)
		o = put_recorder(o, run);
	o = put_words(xs_put(o, ",\"command\":["), run->command, run->command_length);
	xs_chrome_finish(chrome, xs_put(o, chrome->perfetto ? "]}}},\n" : "]"));
	o = xs_output_put(&chrome->out);
	if (chrome->perfetto)
		o = xs_put_count(put_instant(o, process, xs_process_ns(process, process->join_tick),
					     "xstrace::process"),
				 "\"pid\":", (uint64_t)process->pid);
	if (process->arguments)
		o = xs_put(put_words(xs_put(o, ",\"argv\":["), process->arguments,
				     process->arguments_length),
			   "]");
	o = xs_put(o, chrome->perfetto ? "}},\n" : "},\"traceEvents\":[\n");
	o = put_process_name(process, o);
	o = xs_chrome_put_metadata(o, "process_labels", (uint64_t)process->pid,
				   (uint64_t)process->pid);
	o = xs_put(xs_put_escaped(xs_put(o, "\"labels\":\""),
				  chrome->kineto ? "CPU" : process->comm),
		   "\"}},\n");
	xs_chrome_finish(chrome, o);
}

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

static bool open_trace(struct xs_process *process)
{
	struct xs_chrome *chrome = calloc(1, sizeof(*chrome));
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
	fd = xs_chrome_open_file(process, chrome, &offset);
	error = process->run->refused
			? fd
			: xs_output_init(&chrome->out, fd, offset, process->run->options->compress);
	if (error < 0) {
		if (fd >= 0)
			close(fd);
		xs_kineto_fini(chrome);
		xs_perfetto_free(chrome->perfetto);
		free(chrome);
		return false;
	}
	if (fd < 0) {
		chrome->out.error = fd;
		xs_tell_write_error(process->run, fd);
	}
	if (process->run->recovering && process->kept)
		xs_chrome_take_up(chrome, &process->kept->numbers);
	if (chrome->perfetto)
		chrome->out.whole = xs_perfetto_whole;
	process->sink[XS_SINK_CHROME] = chrome;
	process->out = &chrome->out;
	if (offset) { /* it has its names */
		(void)strcpy(chrome->title, xs_title_of(process));
		chrome->rank = xs_process_rank(process);
	} else {
		header(process);
		/* at once: a file that is cut later has its head */
		(void)xs_output_head(&chrome->out);
		if (!process->run->flight && process->kept)
			atomic_store(&process->kept->committed, chrome->out.offset << 1);
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

static char *put_end(char *o, enum xs_end end, int status)
{
	static const char *const ends[] = { "exited",  "killed",  "exec",
					    "unknown", "stopped", "running" };

	o = xs_put(xs_put(xs_put(o, "\"end\":\""), ends[end]), "\"");
	if (end == XS_END_EXITED && status >= 0)
		o = xs_put_count(o, ",\"status\":", (uint64_t)status);
	if (end == XS_END_KILLED)
		o = xs_put_count(o, ",\"status\":", (uint64_t)status);
	return o;
}

static char *put_omitted(char *o, const struct xs_process *process)
{
	bool some = false;

	for (int i = 0; i < XS_OMIT_COUNT; i++) {
		if (!process->omitted[i])
			continue;
		o = xs_put_count(xs_put(xs_put(o, some ? ",\"" : ",\"omitted\":{\""),
					xs_omit_word(i)),
				 "\":", process->omitted[i]);
		some = true;
	}
	return some ? xs_put(o, "}") : o;
}

/* The text, or its first `most` bytes, cut between two characters. */
static char *put_start_of(char *o, const char *text, size_t length, size_t most)
{
	if (length > most)
		for (length = most; length && ((unsigned char)text[length] & 0xc0) == 0x80;)
			length--;
	return xs_json_escape(o, text, length);
}

/* What backends have told of the process. */
static char *put_told(char *o, const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->about_count; i++) {
		const struct xs_about *about = &process->about[i];
		size_t length;
		const char *text;

		o = xs_put(xs_put(xs_put(o, ",\""), about->key), "\":");
		if (!about->text) {
			o = xs_json_uint(o, about->number);
			continue;
		}
		text = xs_text_of(process->run, about->text, &length);
		o = xs_put(put_start_of(xs_put(o, "\""), text, length, 400), "\"");
	}
	return o;
}

static char *put_thread(char *o, struct xs_run *run, const struct xs_thread_stats *thread,
			bool first)
{
	size_t length;
	const char *name = xs_text_of(run, thread->name, &length);

	o = xs_put_count(o, first ? "\n{\"tid\":" : ",\n{\"tid\":", thread->tid);
	o = put_start_of(xs_put(o, ",\"name\":\""), thread->name ? name : "",
			 thread->name ? length : 0, 64);
	o = xs_put_count(o, "\",\"records\":", thread->records);
	o = xs_put_count(o, ",\"lost\":", thread->lost);
	if (thread->call) {
		name = xs_text_of(run,
				  xs_function_id((uint8_t)(thread->call >> 24),
						 (thread->call & 0xffffff) - 1),
				  &length);
		o = xs_put(put_start_of(xs_put(o, ",\"in_call\":\""), name, length, 64), "\"");
	}
	return xs_put(o, "}");
}

/* What is in no slice, or in half of one. */
static char *put_missing(char *o, const struct xs_process *process)
{
	if (process->open_commands)
		o = xs_put_count(o, ",\"open_commands\":", process->open_commands);
	if (process->open_requests)
		o = xs_put_count(o, ",\"open_requests\":", process->open_requests);
	if (process->unmatched)
		o = xs_put_count(o, ",\"unmatched_ends\":", process->unmatched);
	if (process->excluded)
		o = xs_put_count(o, ",\"excluded_calls\":", process->excluded);
	return o;
}

/* What ends the list of events, and all that is known of the process now. */
static char *put_tail(char *o, struct xs_process *process, enum xs_end end, int status)
{
	const struct xs_chrome *chrome = xs_chrome_of(process);
	uint32_t threads = process->thread_count;
	uint64_t omitted = process->threads_omitted;
	struct xs_overhead overhead;

	if (chrome->perfetto && threads > XS_PERFETTO_THREADS) {
		omitted += threads - XS_PERFETTO_THREADS;
		threads = XS_PERFETTO_THREADS;
	}
	if (strcmp(chrome->title, xs_title_of(process)) || chrome->rank != xs_process_rank(process))
		o = put_process_name(process, o);
	/* an event to close the list: all others end with a comma */
	o = xs_chrome_put_metadata(o, "process_sort_index", (uint64_t)process->pid,
				   (uint64_t)process->pid);
	o = xs_put(xs_put_count(o, "\"sort_index\":", (uint64_t)process->pid),
		   chrome->perfetto ? "}},\n" : "}}\n],");
	if (chrome->perfetto)
		o = put_instant(o, process,
				process->last_ns ? process->last_ns
						 : xs_process_ns(process, process->join_tick),
				"xstrace::end");
	if (chrome->kineto)
		o = xs_put(xs_kineto_put_tail(o, process), ",");
	o = xs_put(o, "\"otherData\":{");
	o = put_end(o, end, status);
	o = xs_put_count(o, ",\"events\":", process->events);
	o = xs_put_count(o, ",\"lost\":", process->lost);
	if (process->run->recovering)
		o = xs_put(o, ",\"recovered\":true");
	if (process->out && process->out->error)
		o = xs_put(xs_put(xs_put(o, ",\"write_error\":\""), strerror(-process->out->error)),
			   "\"");
	if (process->untimed)
		o = xs_put_count(o, ",\"untimed_commands\":", process->untimed);
	o = put_told(o, process);
	if (!chrome->kineto)
		o = xs_chrome_put_about(o, process);
	o = put_missing(o, process);
	o = put_omitted(o, process);
	if (process->corrupt)
		o = xs_put_count(o, ",\"corrupt_rings\":", process->corrupt);
	if (process->impossible)
		o = xs_put_count(o, ",\"impossible_times\":", process->impossible);
	o = xs_put_count(o, ",\"clock_error_ns\":", process->run->clock.max_error);
	xs_overhead_of(process, &overhead);
	o = xs_overhead_put_json(xs_put(o, ",\"overhead\":"), &overhead);
	o = xs_put(o, ",\"threads\":[");
	for (uint32_t i = 0; i < threads; i++)
		o = put_thread(o, process->run, &process->threads[i], !i);
	o = xs_put(o, "]");
	if (omitted)
		o = xs_put_count(o, ",\"threads_omitted\":", omitted);
	return xs_put(o, chrome->perfetto ? "}}},\n" : "}}\n");
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

static bool finish_trace(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t room = 8192 + XS_OVERHEAD_TEXT_MAX + (size_t)process->thread_count * 1024 +
		      xs_chrome_about_room(chrome) + xs_kineto_tail_room(chrome);
	char *tail = malloc(room + XS_PERFETTO_ROOM), path[PATH_MAX];
	struct xs_often *often = chrome->often;
	struct xs_output out;
	size_t length = 0;
	bool written;
	int error;

	if (tail)
		length = (size_t)(put_tail(tail, process, end, status) - tail);
	if (chrome->perfetto)
		xs_perfetto_begin_anew(chrome->perfetto);
	if (tail && chrome->perfetto)
		length = (size_t)(xs_perfetto_put(chrome->perfetto, tail, tail + length) - tail);
	written = chrome->out.offset;
	memcpy(path, chrome->path, sizeof(path));
	if (!written && chrome->out.fd >= 0)
		(void)unlink(path); /* there was no room for the head even */
	error = xs_output_close(&chrome->out, tail ? tail : "", length);
	out = chrome->out; /* no memory of it is left */
	free(tail);
	free_state(process);
	if (error)
		xs_tell_write_error(run, error);
	if (written && run->trace_written)
		run->trace_written(run, path);
	if (written)
		xs_tell_output("Timeline is", path, &out, error);
	xs_often_end(run, often);
	return true;
}

static bool close_trace(struct xs_process *process, enum xs_end end, int status)
{
	xs_kineto_span_flush(process);
	xs_waits_end(process);
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
