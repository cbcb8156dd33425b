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

#include "chrome.h"
#include "cuda_activity.h"
#include "flight.h"
#include "text.h"
#include "version.h"

char *xs_chrome_put_metadata(char *out, const char *name, uint64_t pid, uint64_t tid)
{
	out = put(put(put(out, "{\"ph\":\"M\",\"name\":\""), name), "\",\"pid\":");
	out = put(xs_json_uint(out, pid), ",\"tid\":");
	return put(xs_json_uint(out, tid), ",\"args\":{");
}

/* Does the file begin as a trace of this run, or with nothing at all? */
static bool begins_as_ours(const struct xs_run *run, int fd)
{
	static const unsigned char zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	char head[1024], mark[64];
	ssize_t n = pread(fd, head, sizeof(head) - 1, 0);

	if (n <= 0)
		return n == 0;
	if (run->options->compress)
		return n >= (ssize_t)sizeof(zstd) && !memcmp(head, zstd, sizeof(zstd));
	head[n] = '\0';
	(void)snprintf(mark, sizeof(mark), "\"run\":\"%s\"", run->run_id);
	return strstr(head, mark);
}

/*
 * Is it the very file that the killed drain process was writing? The text says what is wrong; NULL:
 * it is.
 */
static const char *why_not(const struct xs_process *process, int fd, uint64_t offset)
{
	const struct xs_kept_file *kept = process->kept;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "no regular file";
	if (st.st_uid != geteuid())
		return "another user's";
	if (kept->inode ? st.st_ino != kept->inode || st.st_dev != kept->device : st.st_size > 0)
		return "another file than the drain process made";
	if ((uint64_t)st.st_size < offset)
		return "shorter than the drain process left it";
	return begins_as_ours(process->run, fd) ? NULL : "no trace of this run";
}

/*
 * After a killed drain process: the file that it was writing, cut back to what was committed.
 * -EPERM: it is another one.
 */
static int reopen(struct xs_process *process, char *path, size_t size, uint64_t *ret_offset)
{
	uint64_t offset = atomic_load(&process->kept->committed) >> 1;
	const char *wrong;
	int fd;

	(void)snprintf(path, size, "%.*s", PATH_MAX - 1, process->kept->output);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	wrong = fd < 0 ? strerror(errno) : why_not(process, fd, offset);
	if (!wrong && (ftruncate(fd, (off_t)offset) < 0 || lseek(fd, 0, SEEK_END) < 0))
		wrong = strerror(errno);
	*ret_offset = offset;
	if (!wrong)
		return fd;
	if (fd >= 0)
		close(fd);
	/*
	 * killed before the file was made: the name may be another's, which it was just finding out
	 */
	if (!process->kept->inode && !offset)
		return -ENOENT;
	xs_tell("xstrace: --recover %s: %s: %s; nothing is written. Put the file back, or move it "
		"away to have the rest of the trace\n",
		process->run->dir, path, wrong);
	process->run->refused = true;
	return -EPERM;
}

/* Whose trace does not begin where the run began. */
static char *put_recorder(char *o, const struct xs_run *run)
{
	static const char *const reasons[] = { "signal", "session", "trigger", "crash" };
	const struct xs_dump *dump;
	bool first = true;

	if (!run->flight)
		return put(o, ",\"flight_recorder\":{\"recovered\":true}");
	dump = xs_flight_dump_of(run);
	o = put(put_count(o, ",\"flight_recorder\":{\"dump\":", dump->number), ",\"reasons\":[");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (dump->reasons & 1u << i) {
			o = put(put(put(o, first ? "\"" : ",\""), reasons[i]), "\"");
			first = false;
		}
	o = put_count(o, "],\"window_ns\":", run->options->flight);
	o = xs_json_micros(put(o, ",\"from\":"), dump->from);
	o = xs_json_micros(put(o, ",\"to\":"), dump->to);
	return put(o, dump->cut ? ",\"cut\":true}" : "}");
}

/* Words with a NUL behind each, as members of an array. */
static char *put_words(char *o, const char *word, size_t length)
{
	const char *stop = word + length;

	for (bool first = true; word < stop; first = false) {
		size_t n = strnlen(word, (size_t)(stop - word));

		o = put(xs_json_escape(put(o, first ? "\"" : ",\""), word, n), "\"");
		word += n + 1;
	}
	return o;
}

char *xs_chrome_put_rank(char *o, const struct xs_process *process)
{
	int32_t rank = xs_process_rank(process);

	return rank < 0 ? o : put(put_count(o, "RANK ", (uint64_t)rank), " ");
}

/*
 * As unitrace calls it, whose users look for RANK and HOST<…>; behind that, what it is. It is
 * written again when that has changed.
 */
static char *put_process_name(struct xs_process *process, char *o)
{
	o = xs_chrome_put_metadata(o, "process_name", (uint64_t)process->pid,
				   (uint64_t)process->pid);
	o = xs_chrome_put_rank(put(o, "\"name\":\""), process);
	o = put(put_escaped(put(o, "HOST<"), process->run->host), "> ");
	(void)strcpy(process->chrome->title, xs_title_of(process));
	process->chrome->rank = xs_process_rank(process);
	return put(put_escaped(o, process->chrome->title), "\"}},\n");
}

static void header(struct xs_process *process)
{
	const struct xs_run *run = process->run;
	struct xs_chrome *chrome = process->chrome;
	int32_t rank = xs_process_rank(process),
		world_size = atomic_load_explicit(&process->file->world_size, memory_order_relaxed);
	char *o = xs_output_put(&chrome->out);

	o = put_count(o, "{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":", run->base);
	o = put(o, ",\"metadata\":{\"tool\":\"xstrace\",\"version\":\"" XS_VERSION "\",\"run\":\"");
	o = put_escaped(o, run->run_id);
	o = put_escaped(put(o, "\",\"host\":\""), run->host);
	o = put_count(o, "\",\"pid\":", (uint64_t)process->pid);
	o = put_count(o, ",\"ppid\":", (uint64_t)process->ppid);
	if (rank >= 0)
		o = put_count(o, ",\"rank\":", (uint64_t)rank);
	if (world_size > 0)
		o = put_count(o, ",\"world_size\":", (uint64_t)world_size);
	o = put_escaped(put(o, ",\"options\":\""), run->arguments);
	o = put(o, "\",\"clock\":");
	o = put(o, run->use_tsc ? "\"tsc\"" : "\"monotonic\"");
	o = put_count(o, ",\"ring_size\":", process->ring_size);
	if (run->options->flight)
		o = put_recorder(o, run);
	o = put_words(put(o, ",\"command\":["), run->command, run->command_length);
	o = put(o, "]");
	finish(chrome, o);
	o = xs_output_put(&chrome->out);
	if (process->arguments)
		o = put(put_words(put(o, ",\"argv\":["), process->arguments,
				  process->arguments_length),
			"]");
	o = put(o, "},\"traceEvents\":[\n");
	o = put_process_name(process, o);
	o = xs_chrome_put_metadata(o, "process_labels", (uint64_t)process->pid,
				   (uint64_t)process->pid);
	o = put(put_escaped(put(o, "\"labels\":\""), process->comm), "\"}},\n");
	finish(chrome, o);
}

/*
 * Held while this process lives and the file is open: tells readers that the file is not complete
 * yet. Failure to lock is ignored.
 */
static void lock_it(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	(void)fcntl(fd, F_OFD_SETLK, &whole);
}

int xs_chrome_open(struct xs_process *process)
{
	struct xs_chrome *chrome = calloc(1, sizeof(*chrome));
	uint64_t offset = 0;
	bool again = process->run->recovering && process->kept && process->kept->output[0];
	int fd, error;

	if (!chrome)
		return -ENOMEM;
	fd = again ? reopen(process, chrome->path, sizeof(chrome->path), &offset) : -ENOENT;
	if (process->run->refused) {
		free(chrome);
		return -EPERM;
	}
	if (fd == -ENOENT) {
		offset = 0;
		fd = xs_file_create(process, XS_FILE_TRACE, chrome->path, sizeof(chrome->path));
	}
	if (fd >= 0)
		lock_it(fd);
	error = xs_output_init(&chrome->out, fd, offset, process->run->options->compress);
	if (error < 0) {
		if (fd >= 0)
			close(fd);
		free(chrome);
		return error;
	}
	if (fd < 0) {
		chrome->out.error = fd;
		xs_tell_write_error(process->run, fd);
	}
	process->chrome = chrome;
	process->out = &chrome->out;
	if (offset) { /* it has its names */
		(void)strcpy(chrome->title, xs_title_of(process));
		chrome->rank = xs_process_rank(process);
	} else {
		header(process);
		/* at once: a file that is cut later has its head */
		(void)xs_output_flush(&chrome->out);
		if (!process->run->flight && process->kept)
			atomic_store(&process->kept->committed, chrome->out.offset << 1);
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		xs_chrome_prefix(process->tracks[i]);
	return 0;
}

void xs_chrome_prefix(struct xs_track *track)
{
	char *o = put_count(track->prefix, "{\"ph\":\"X\",\"tid\":", track->tid);

	o = put(put_count(o, ",\"pid\":", (uint32_t)track->process->pid), ",\"ts\":");
	track->prefix_length = (uint32_t)(o - track->prefix);
}

void xs_chrome_thread(struct xs_track *track, uint32_t tid, const char *name, size_t length)
{
	struct xs_chrome *chrome = track->process->chrome;
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name",
					 (uint64_t)track->process->pid, tid);

	o = xs_json_escape(put(o, "\"name\":\""), name, length < 256 ? length : 256);
	finish(chrome, put(o, "\"}},\n"));
}

/*
 * The name, as the last thing of an event; `arguments` (",\"args\":{…}") come before it when there
 * are some.
 */
static inline char *put_name(char *o, struct xs_process *process, const struct xs_name *name)
{
	size_t length;
	const char *text;

	if (__builtin_expect(name->length && name->length <= XS_NAME_SLACK, 1)) {
		memcpy(o, name->json, XS_NAME_SLACK);
		return o + name->length;
	}
	text = xs_text_of(process->run, name->id, &length);
	o = put(o, ",\"cat\":\"cpu_op\",\"name\":\"");
	/*
	 * bounded by XS_OUTPUT_SLACK: a name is at most XS_STRING_MAX bytes, six times that would
	 * not fit
	 */
	o = xs_json_escape(o, text, length < 8192 ? length : 8192);
	return put(o, "\"},\n");
}

char *xs_chrome_put_name(char *o, struct xs_process *process, const struct xs_name *name)
{
	return put_name(o, process, name);
}

char *xs_chrome_put_bare_name(char *o, struct xs_process *process, const struct xs_name *name)
{
	static const char category[] = ",\"cat\":\"cpu_op\"";
	const size_t skip = sizeof(category) - 1;
	char *end;

	if (__builtin_expect(name->length && name->length <= XS_NAME_SLACK, 1)) {
		memcpy(o, name->json + skip, XS_NAME_SLACK - skip);
		return o + name->length - skip;
	}
	end = put_name(o, process, name);
	memmove(o, o + skip, (size_t)(end - o) - skip);
	return end - skip;
}

uint32_t xs_chrome_lane(struct xs_process *process, struct xs_lanes *lanes, const char *title,
			uint64_t start, uint64_t end, enum xs_fit fit)
{
	struct xs_lane *lane = xs_lanes_take(lanes, start, end, fit);
	struct xs_chrome *chrome = process->chrome;
	size_t length = strlen(title);
	char *o;

	if (!lane)
		process->omitted[XS_OMIT_SLICES]++;
	if (!lane || lane->tid)
		return lane ? lane->tid : 0;
	lane->tid = XS_OWN_TID + chrome->next_own++;
	o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name",
				   (uint64_t)process->pid, lane->tid);
	o = xs_json_escape(put(o, "\"name\":\""), title, length < 1024 ? length : 1024);
	if (lanes->count > 1)
		o = put_count(o, " lane ", lanes->count);
	finish(chrome, put(o, "\"}},\n"));
	return lane->tid;
}

void xs_chrome_task(struct xs_track *track, const struct xs_open *task, uint64_t end)
{
	struct xs_process *process = track->process;
	char *o = put_slice(xs_output_put(&process->chrome->out), track, task->start, end);

	finish(process->chrome, put_name(o, process, &task->name));
}

void xs_chrome_unfinished(struct xs_track *track, const struct xs_name *name, uint64_t start,
			  uint64_t end)
{
	struct xs_process *process = track->process;
	char *o = put_slice(xs_output_put(&process->chrome->out), track, start, end);

	o = put(o, ",\"args\":{\"unfinished\":true}");
	finish(process->chrome, put_name(o, process, name));
}

/*
 * ,"args":{…}: the result of a call that failed, where it was made (`stack`, or NULL), and with -c
 * what is known about it; nothing when there is nothing to say.
 */
static char *put_call(char *o, const struct xs_call_record *call,
		      const struct xs_call_members *members, const char *stack, size_t length)
{
	char *begin = o;

	o = put(o, ",\"args\":{");
	if (call->event.flags & XS_FLAG_FAILED) {
		o = put(o, "\"result\":");
		if (call->result < 0)
			*o++ = '-';
		o = put(xs_json_uint(o, call->result < 0 ? 0 - (uint64_t)call->result
							 : (uint64_t)call->result),
			",");
	}
	if (members && members->result[0])
		o = put(put_escaped(put(o, "\"returned\":\""), members->result), "\",");
	if (members && members->in)
		o = put(mempcpy(put(o, "\"in\":"), members->in, members->in_length), ",");
	if (members && members->out)
		o = put(mempcpy(put(o, "\"out\":"), members->out, members->out_length), ",");
	if (stack)
		o = put(mempcpy(o, stack, length), ",");
	if (o[-1] == '{')
		return begin;
	o[-1] = '}';
	return o;
}

void xs_chrome_call(struct xs_track *track, const struct xs_call_record *call, uint64_t start,
		    uint64_t end, const struct xs_call_members *members, const char *stack,
		    size_t length)
{
	const struct xs_options *options = track->process->run->options;
	struct xs_chrome *chrome = track->process->chrome;
	char *o;

	if (!options->chrome_call &&
	    !(options->chrome_kernel && call->event.flags & XS_FLAG_OF_WORK))
		return;
	o = put_slice(xs_output_put(&chrome->out), track, start, end);
	o = put_call(o, call, members, stack, length);
	o = put_name(o, track->process,
		     xs_name_of(track->process,
				xs_function_id(call->event.source, call->event.name)));
	finish(chrome, o);
}

const struct xs_own *xs_chrome_own(struct xs_chrome *chrome, uint64_t pid, uint64_t tid)
{
	struct xs_own *own = &chrome->own[tid % 4];
	char *o;

	if (__builtin_expect(own->tid == tid && own->pid == pid, 1))
		return own;
	o = put(put_count(put_count(own->text, "{\"ph\":\"X\",\"tid\":", tid), ",\"pid\":", pid),
		",\"ts\":");
	own->length = (uint32_t)(o - own->text);
	o = put(put_count(put_count(own->arrow, "{\"ph\":\"f\",\"bp\":\"e\",\"tid\":", tid),
			  ",\"pid\":", pid),
		",\"ts\":");
	own->arrow_length = (uint32_t)(o - own->arrow);
	own->tid = tid;
	own->pid = pid;
	return own;
}

char *xs_chrome_mpi_begin(const struct xs_track *track, uint64_t start, uint64_t end)
{
	return put_slice(xs_output_put(&track->process->chrome->out), track, start, end);
}

void xs_chrome_mpi_end(const struct xs_track *track, uint32_t name, char *o)
{
	finish(track->process->chrome,
	       put_name(o, track->process, xs_name_of(track->process, name)));
}

static char *put_end(char *o, enum xs_end end, int status)
{
	static const char *const ends[] = { "exited",  "killed",  "exec",
					    "unknown", "stopped", "running" };

	o = put(put(put(o, "\"end\":\""), ends[end]), "\"");
	if (end == XS_END_EXITED && status >= 0)
		o = put_count(o, ",\"status\":", (uint64_t)status);
	if (end == XS_END_KILLED)
		o = put_count(o, ",\"status\":", (uint64_t)status);
	return o;
}

static char *put_omitted(char *o, const struct xs_process *process)
{
	bool some = false;

	for (int i = 0; i < XS_OMIT_COUNT; i++) {
		if (!process->omitted[i])
			continue;
		o = put_count(put(put(o, some ? ",\"" : ",\"omitted\":{\""), xs_omit_words[i]),
			      "\":", process->omitted[i]);
		some = true;
	}
	return some ? put(o, "}") : o;
}

void xs_chrome_close(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	struct xs_chrome *chrome = process->chrome;
	size_t room = 8192 + (size_t)process->thread_count * 1024, length;
	char *tail = malloc(room), *o = tail;
	bool written;
	int error;
	char path[PATH_MAX];

	memcpy(path, chrome->path, sizeof(path));
	if (tail) {
		if (strcmp(chrome->title, xs_title_of(process)) ||
		    chrome->rank != xs_process_rank(process))
			o = put_process_name(process, o);
		/* an event to close the list: all others end with a comma */
		o = xs_chrome_put_metadata(o, "process_sort_index", (uint64_t)process->pid,
					   (uint64_t)process->pid);
		o = put(put_count(o, "\"sort_index\":", (uint64_t)process->pid),
			"}}\n],\"otherData\":{");
		o = put_end(o, end, status);
		o = put_count(o, ",\"events\":", process->events);
		o = put_count(o, ",\"lost\":", process->lost);
		if (process->untimed)
			o = put_count(o, ",\"untimed_commands\":", process->untimed);
		o = xs_cuda_other_data(process, o);
		if (process->open_commands)
			o = put_count(o, ",\"open_commands\":", process->open_commands);
		if (process->open_requests)
			o = put_count(o, ",\"open_requests\":", process->open_requests);
		if (process->unmatched)
			o = put_count(o, ",\"unmatched_ends\":", process->unmatched);
		o = put_omitted(o, process);
		if (process->corrupt)
			o = put_count(o, ",\"corrupt_rings\":", process->corrupt);
		o = put_count(o, ",\"clock_error_ns\":", run->clock.max_error);
		o = put(o, ",\"threads\":[");
		for (uint32_t i = 0; i < process->thread_count; i++) {
			const struct xs_thread_stats *t = &process->threads[i];
			const char *name = xs_text_of(run, t->name, &length);

			o = put_count(o, i ? ",\n{\"tid\":" : "\n{\"tid\":", t->tid);
			o = xs_json_escape(put(o, ",\"name\":\""), t->name ? name : "",
					   t->name && length < 32 ? length : 0);
			o = put_count(o, "\",\"records\":", t->records);
			o = put_count(o, ",\"lost\":", t->lost);
			if (t->call) {
				name = xs_text_of(run,
						  xs_function_id((uint8_t)(t->call >> 24),
								 (t->call & 0xffffff) - 1),
						  &length);
				o = put(xs_json_escape(put(o, ",\"in_call\":\""), name,
						       length < 64 ? length : 64),
					"\"");
			}
			*o++ = '}';
		}
		o = put(o, "]");
		if (process->threads_omitted)
			o = put_count(o, ",\"threads_omitted\":", process->threads_omitted);
		o = put(o, "}}\n");
	}
	written = chrome->out.offset;
	if (!written && chrome->out.fd >= 0)
		(void)unlink(path); /* there was no room for the head even */
	error = xs_output_close(&chrome->out, tail ? tail : "", tail ? (size_t)(o - tail) : 0);
	free(tail);
	for (uint32_t i = 0; i < chrome->track_count; i++)
		xs_lanes_fini(&chrome->tracks[i].lanes);
	for (uint32_t i = 0; i < chrome->row_count; i++)
		xs_lanes_fini(&chrome->rows[i].lanes);
	free(chrome->rows);
	free(chrome->labels);
	free(chrome->tracks);
	free(chrome->track_index);
	free(chrome);
	process->chrome = NULL;
	if (error)
		xs_tell_write_error(process->run, error);
	if (written && run->flight)
		xs_flight_list(run, path);
	if (written)
		xs_tell("[INFO] Timeline is stored in %s%s\n", path,
			error ? " (what came before the disk was full)" : "");
}
