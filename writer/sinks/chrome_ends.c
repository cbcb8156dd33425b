/*
 * What a trace begins and ends with, beside its events: who wrote it and of what, and how it ended,
 * with all that is missing.
 */
#include <string.h>

#include "backends.h"
#include "chrome.h"
#include "kineto.h"
#include "names.h"
#include "overhead_told.h"
#include "perfetto.h"
#include "text.h"
#include "title.h"
#include "unseen.h"
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
		o = xs_put(o, XS_CHROME_OPENING);
	return xs_put_count(o, "\"baseTimeNanoseconds\":", process->run->base);
}

void xs_chrome_put_head(struct xs_process *process)
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

/* Why something is not there, where the collector knows that. */
static char *put_unseen(char *o, const struct xs_process *process)
{
	uint32_t unseen = atomic_load(&process->file->unseen);
	bool some = false;

	for (uint32_t i = 0; i < 32; i++) {
		if (!(unseen & 1u << i) || !xs_unseen_text(i))
			continue;
		o = xs_put(o, some ? ",\"" : ",\"not_seen\":[\"");
		o = xs_put(xs_put(o, xs_unseen_text(i)), "\"");
		some = true;
	}
	return some ? xs_put(o, "]") : o;
}

/* What is in no slice, or in half of one. */
static char *put_missing(char *o, const struct xs_process *process)
{
	if (process->open_commands)
		o = xs_put_count(o, ",\"open_commands\":", process->open_commands);
	if (process->open_requests)
		o = xs_put_count(o, ",\"open_requests\":", process->open_requests);
	if (process->open_relations)
		o = xs_put_count(o, ",\"open_relations\":", process->open_relations);
	if (process->unmatched)
		o = xs_put_count(o, ",\"unmatched_ends\":", process->unmatched);
	if (process->excluded)
		o = xs_put_count(o, ",\"excluded_calls\":", process->excluded);
	return o;
}

char *xs_chrome_put_tail(char *o, struct xs_process *process, enum xs_end end, int status,
			 uint32_t threads)
{
	const struct xs_chrome *chrome = xs_chrome_of(process);
	uint64_t omitted = process->threads_omitted;
	struct xs_overhead overhead;
	int error = chrome->out.error ? -chrome->out.error : chrome->former_error;

	if (chrome->perfetto && threads > XS_PERFETTO_THREADS)
		threads = XS_PERFETTO_THREADS;
	omitted += process->thread_count - threads;
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
	if (error)
		o = xs_put(xs_put(xs_put(o, ",\"write_error\":\""), strerror(error)), "\"");
	if (process->untimed)
		o = xs_put_count(o, ",\"untimed_commands\":", process->untimed);
	o = put_told(o, process);
	if (!chrome->kineto)
		o = xs_chrome_put_about(o, process);
	o = put_missing(o, process);
	o = put_omitted(o, process);
	o = put_unseen(o, process);
	if (process->corrupt)
		o = xs_put_count(o, ",\"corrupt_rings\":", process->corrupt);
	if (process->unread.files)
		o = xs_put_count(o, ",\"unread_files\":", process->unread.files);
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
