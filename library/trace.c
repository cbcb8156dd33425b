/*
 * A trace that was stopped: its file, and its events.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"
#include "state.h"

struct mapped {
	void *data;
	size_t size;
};

struct xstrace_trace {
	struct xs_api_lock lock;   /* of who saves it */
	char *path;		   /* where it lay first; NULL: there is no file */
	const char *_Atomic saved; /* where it lies now; NULL: it is not saved yet */
	bool joined, lost;	   /* the list of its events could not be written or read */
	struct mapped rows, names;
	uint32_t *chosen; /* rows that the filter leaves; NULL: all */
	size_t count;
};

/* Where there were no events the file is empty, and there is none where they found no room. */
static struct mapped map_beside(const char *path, const char *suffix, bool *ret_lost)
{
	struct mapped result = { NULL, 0 };
	static char name[PATH_MAX + 16]; /* the lock is held */
	struct stat st;
	int fd;

	(void)snprintf(name, sizeof(name), "%s%s", path, suffix);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	*ret_lost = fd < 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		result.data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		result.size = (size_t)st.st_size;
	}
	if (result.data == MAP_FAILED) {
		result = (struct mapped){ NULL, 0 };
		*ret_lost = true;
	}
	if (fd >= 0)
		close(fd);
	(void)unlink(name); /* what is mapped stays */
	return result;
}

static bool choose(struct xstrace_trace *trace, uint64_t filter)
{
	const struct xs_event_row *rows = trace->rows.data;
	size_t all = trace->rows.size / sizeof(*rows);

	trace->count = all;
	if (!filter || !all)
		return true;
	trace->chosen = malloc(all * sizeof(*trace->chosen));
	trace->count = 0;
	for (size_t i = 0; trace->chosen && i < all && i < UINT32_MAX; i++)
		if (filter >> ((uint32_t)rows[i].type % 64) & 1)
			trace->chosen[trace->count++] = (uint32_t)i;
	return trace->chosen;
}

struct xstrace_trace *xs_trace_open(const char *path, bool joined)
{
	struct xstrace_trace *trace = calloc(1, sizeof(*trace));
	bool rows_lost, names_lost;

	if (!trace)
		return NULL;
	trace->lock = (struct xs_api_lock){ .mutex = PTHREAD_MUTEX_INITIALIZER };
	trace->joined = joined;
	if (!path[0])
		return trace;
	trace->path = strdup(path);
	trace->rows = map_beside(path, XS_EVENTS_SUFFIX, &rows_lost);
	trace->names = map_beside(path, XS_NAMES_SUFFIX, &names_lost);
	trace->lost = rows_lost || names_lost;
	if (trace->path && choose(trace, xs_library.filter))
		return trace;
	xstrace_trace_free(trace);
	return NULL;
}

size_t xstrace_trace_count(const struct xstrace_trace *trace)
{
	return trace && !trace->lost ? trace->count : 0;
}

int xstrace_trace_event(const struct xstrace_trace *trace, size_t index, struct xstrace_event *ret)
{
	const struct xs_event_row *row;
	const char *name = "";

	if (trace && ret && trace->lost)
		return xs_refuse(XSTRACE_IO, "there was no room for the list of the trace's "
					     "events; the trace itself may have them");
	if (!trace || !ret || index >= trace->count)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "the trace has no event %zu", index);
	row = (const struct xs_event_row *)trace->rows.data +
	      (trace->chosen ? trace->chosen[index] : index);
	if (row->name < trace->names.size)
		name = (const char *)trace->names.data + row->name;
	*ret = (struct xstrace_event){
		.name = name,
		.start = row->start,
		.duration = row->duration,
		.correlation = row->correlation,
		.external = row->external,
		.user_external = row->user_external,
		.device = row->device,
		.resource = row->resource,
		.bytes = row->bytes,
		.type = row->type,
		.device_type = xstrace_device_type_of(row->type),
	};
	return XSTRACE_OK;
}

void xs_trace_post_process(const struct xstrace_trace *trace, xstrace_post_process function,
			   void *user)
{
	struct xstrace_event event;

	for (size_t i = 0; i < trace->count; i++)
		if (!xstrace_trace_event(trace, i, &event))
			function(&event, user);
}

/* ---- the file ---- */

#define BUFFER (64u << 10)

bool xs_is_file(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* What is cut does not stay. */
static int copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out, error = 0;
	char *buffer = malloc(BUFFER);
	ssize_t n = 0;
	bool made;

	if (in < 0 || !buffer) {
		error = buffer ? -errno : -ENOMEM;
		if (in >= 0)
			close(in);
		free(buffer);
		return error;
	}
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0)
		error = -errno;
	made = xs_is_file(out);
	while (!error && (n = read(in, buffer, BUFFER)) > 0)
		for (ssize_t at = 0, k; !error && at < n; at += k) {
			k = write(out, buffer + at, (size_t)(n - at));
			if (k < 0) {
				error = -errno;
				k = 0;
			}
		}
	if (n < 0 && !error)
		error = -errno;
	if (out >= 0 && close(out) < 0 && !error)
		error = -errno;
	if (error && made)
		(void)unlink(to);
	close(in);
	free(buffer);
	return error;
}

static int move(const char *from, const char *to)
{
	int error = 0;

	if (!rename(from, to))
		return 0;
	if (errno != EXDEV)
		return -errno;
	error = copy(from, to);
	if (!error)
		(void)unlink(from);
	return error;
}

static int refuse_move(const struct xstrace_trace *trace, const char *path, int error)
{
	bool gone = error == -ENOENT && access(trace->path, F_OK) < 0;

	errno = -error;
	return xs_refuse(error == -ENOMEM ? XSTRACE_NO_MEMORY : XSTRACE_IO, "%s%s: %s",
			 gone ? "the trace is gone: " : "", gone ? trace->path : path,
			 strerror(-error));
}

/* Its lock is held. */
static int save(struct xstrace_trace *trace, const char *path)
{
	struct xs_calm calm;
	int error;
	char *name;

	if (trace->saved)
		return xs_refuse(XSTRACE_BAD_STATE, "the trace was saved already, as %s",
				 trace->saved);
	name = strdup(path);
	xs_calm_begin(&calm);
	error = name ? move(trace->path, path) : -ENOMEM;
	xs_calm_end(&calm);
	if (error) {
		free(name);
		return refuse_move(trace, path, error);
	}
	trace->saved = name;
	return XSTRACE_OK;
}

int xstrace_trace_save(struct xstrace_trace *trace, const char *path)
{
	int result;

	if (!trace || !path || !*path)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "xstrace_trace_save: a trace and a path");
	if (xs_is_child())
		return xs_refuse(XSTRACE_OFF, "the trace belongs to the process that this one was "
					      "forked from");
	if (trace->joined)
		return xs_refuse(XSTRACE_JOINED, "the events are in the launcher's trace");
	if (!trace->path)
		return xs_refuse(XSTRACE_OFF, "the drain process could not write the trace");
	result = xs_lock(&trace->lock);
	return result ? result : xs_unlock(&trace->lock, save(trace, path));
}

const char *xstrace_trace_path(const struct xstrace_trace *trace)
{
	const char *saved = trace ? trace->saved : NULL;

	return saved || !trace ? saved : trace->path;
}

void xstrace_trace_free(struct xstrace_trace *trace)
{
	if (!trace)
		return;
	if (trace->path && !trace->saved && !xs_is_child()) /* the parent's stays */
		(void)unlink(trace->path);
	if (trace->rows.data)
		(void)munmap(trace->rows.data, trace->rows.size);
	if (trace->names.data)
		(void)munmap(trace->names.data, trace->names.size);
	(void)pthread_mutex_destroy(&trace->lock.mutex);
	free(trace->chosen);
	free((void *)trace->saved);
	free(trace->path);
	free(trace);
}
