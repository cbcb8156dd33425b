/*
 * The inputs: finding them, what they say of themselves, and reading them side by side.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "text.h"
#include "merge.h"

#define LONGEST_NAME   1024
#define LONGEST_OF_ALL (256u << 20) /* bytes: that many inputs can hold a long event each */
#define SHORTEST_LIMIT (1u << 20)
#define DEEPEST	       16u	  /* directories below one that is named */
#define IN_CALLS       65536	  /* bytes kept of one input's threads */
#define DEVICES	       (1u << 20) /* bytes of what is said of devices */

void xm_say(const char *format, ...)
{
	char line[4096];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	xs_tell("%s\n", line);
}

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

/* Is it the first time that this file or directory is met? */
static bool is_new(struct xm_merge *merge, const struct stat *st)
{
	struct {
		uint64_t device, number;
	} key = { st->st_dev, st->st_ino };
	uint32_t count = merge->known.count;

	(void)xm_map_add(&merge->known, &key, sizeof(key));
	return merge->known.count > count;
}

void xm_never_read(struct xm_merge *merge, const char *path)
{
	struct stat st;

	if (!stat(path, &st))
		(void)is_new(merge, &st);
}

static int left_out(struct xm_merge *merge, const char *path, const char *why)
{
	merge->left_out = true;
	xm_say("xstrace-merge: %s: %s; left out", path, why);
	return 0;
}

static int add(struct xm_merge *merge, const char *path, const struct stat *st)
{
	struct xm_input *input;
	int result;

	if (!is_new(merge, st))
		return left_out(merge, path, "is the output, or among the inputs already");
	if (!xm_room_for(&merge->inputs, &merge->room, merge->count, sizeof(*merge->inputs)))
		return -1;
	input = &merge->inputs[merge->count++];
	input->index = merge->count - 1;
	input->path = strdup(path);
	input->rank = input->world_size = input->pid = input->ppid = input->status = input->lost =
		input->clock_error = -1;
	input->untimed = input->open_commands = input->open_requests = -1;
	input->first = INT64_MAX;
	input->last = INT64_MIN;
	xm_map_init(&input->pids, XM_PROCESSES, 16u << 20);
	xm_map_init(&input->tids, 1u << 20, 64u << 20);
	input->file.fd = -1;
	input->file.window_log = merge->window_log;
	if (!input->path)
		return -1;
	result = xm_file_open(&input->file, path, st);
	return result ? left_out(merge, path, reason(result)) : 0;
}

bool xm_ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n >= m && !strcmp(name + n - m, suffix);
}

static bool is_trace_name(const char *name)
{
	return xm_ends_with(name, ".json") || xm_ends_with(name, ".json.zst") ||
	       xm_ends_with(name, ".json.gz");
}

/* The traces in a directory and below it. */
static int add_directory(struct xm_merge *merge, const char *path, unsigned depth, uint32_t *found)
{
	int length = (int)strlen(path);
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort), result = 0;
	char **names;

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (n < 0) {
		xm_say("xstrace-merge: %s: %s", path, strerror(errno));
		return -1;
	}
	names = calloc((size_t)n + 1, sizeof(*names));
	result = names ? 0 : -1;
	for (int i = 0, k = 0; i < n; i++) {
		if (names && entries[i]->d_name[0] != '.')
			if (asprintf(&names[k++], "%.*s/%s", length, path, entries[i]->d_name) < 0)
				names[--k] = NULL;
		free(entries[i]);
	}
	free(entries);
	for (char **name = names; name && *name; name++) {
		bool is_trace = is_trace_name(*name);
		struct stat st;

		if (stat(*name, &st) < 0) {
			if (is_trace)
				(void)left_out(merge, *name, strerror(errno));
		} else if (S_ISDIR(st.st_mode)) {
			if (depth == DEEPEST)
				(void)left_out(merge, *name, "directories are nested too deeply");
			else if (is_new(merge, &st)) /* links lead round */
				result |= add_directory(merge, *name, depth + 1, found);
		} else if (is_trace && S_ISREG(st.st_mode)) {
			result |= add(merge, *name, &st);
			(*found)++;
		} else if (is_trace) {
			(void)left_out(merge, *name, "no file");
		}
		free(*name);
	}
	free(names);
	return result;
}

int xm_add_path(struct xm_merge *merge, const char *path)
{
	uint32_t found = 0;
	struct stat st;
	int result;

	if (stat(path, &st) < 0) {
		xm_say("xstrace-merge: %s: %s", path, strerror(errno));
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return add(merge, path, &st);
	if (!is_new(merge, &st))
		return left_out(merge, path, "is among the inputs already");
	result = add_directory(merge, path, 0, &found);
	if (!result && !found) {
		xm_say("xstrace-merge: %s: no traces (.json, .json.zst, .json.gz) in this "
		       "directory",
		       path);
		result = -1;
	}
	return result;
}

/* ---- those that are not complete yet ---- */

#define LOOK_MS 20

static uint32_t look_for_writers(struct xm_merge *merge)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = &merge->inputs[i];

		input->is_written = xm_file_is_written(&input->file);
		count += input->is_written;
		/* after that: if nobody writes it any more, all of it is there */
		xm_file_look_again(&input->file);
	}
	return count;
}

void xm_wait_for_writers(struct xm_merge *merge, unsigned seconds)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };
	uint32_t count = look_for_writers(merge), first = 0;
	char more[32] = "";

	if (!count || !seconds)
		return;
	while (!merge->inputs[first].is_written)
		first++;
	if (count > 1)
		(void)snprintf(more, sizeof(more), " and %u more", count - 1);
	xm_say("[INFO] %s%s: still being written; waiting for the end, %u s at most",
	       merge->inputs[first].path, more, seconds);
	for (unsigned n = 0; n < seconds * 1000 / LOOK_MS && look_for_writers(merge); n++)
		(void)nanosleep(&pause, NULL);
}

/* ---- what an input says of itself ---- */

static void take_number(struct xm_text object, const char *name, int64_t *field)
{
	int64_t value;

	if (xm_integer(xm_find(object, name), &value))
		*field = value;
}

static void take_text(struct xm_text object, const char *name, char *field, size_t room)
{
	struct xm_text value = xm_find(object, name);

	if (xm_is_string(value))
		(void)xm_unescape(value, field, room);
}

/* The threads that were inside a call at the end, as they stand there. */
static void take_threads(struct xm_input *input, struct xm_text threads)
{
	struct xm_text thread;
	const char *p = xm_first(threads);
	size_t length = 0;

	if (threads.n < 2 || threads.p[0] != '[')
		return;
	while (xm_element(&p, threads.p + threads.n, &thread)) {
		if (!xm_find(thread, "in_call").p || length + thread.n + 2 > IN_CALLS)
			continue;
		if (!input->in_calls)
			input->in_calls = malloc(IN_CALLS);
		if (!input->in_calls)
			return;
		input->in_calls[length] = length ? ',' : '[';
		length++;
		memcpy(input->in_calls + length, thread.p, thread.n);
		length += thread.n;
		input->in_calls[length] = '\0';
	}
	for (char *c = input->in_calls; c && *c; c++) /* strings hold no raw newline */
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	if (input->in_calls)
		strcpy(input->in_calls + length, "]");
}

/* JSON on one line: strings hold no raw newline. */
static void take_devices(struct xm_input *input, struct xm_text devices)
{
	if (input->devices || devices.n < 2 || devices.n > DEVICES || devices.p[0] != '[')
		return;
	input->devices = strndup(devices.p, devices.n);
	for (char *c = input->devices; c && *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
}

static void take_member(void *user, struct xm_text key, struct xm_text value)
{
	struct xm_input *input = user;
	int64_t number;

	if (xm_is(key, "baseTimeNanoseconds")) {
		if (xm_integer(value, &number) && number >= 0 && number < XM_LATEST)
			input->base = number;
	} else if (xm_is(key, "metadata")) {
		take_text(value, "tool", input->tool, sizeof(input->tool));
		take_text(value, "host", input->host, sizeof(input->host));
		take_text(value, "run", input->run, sizeof(input->run));
		take_number(value, "rank", &input->rank);
		take_number(value, "world_size", &input->world_size);
		take_number(value, "pid", &input->pid);
		take_number(value, "ppid", &input->ppid);
	} else if (xm_is(key, "otherData")) {
		take_text(value, "end", input->end, sizeof(input->end));
		take_number(value, "status", &input->status);
		take_number(value, "lost", &input->lost);
		take_number(value, "untimed_commands", &input->untimed);
		take_number(value, "open_commands", &input->open_commands);
		take_number(value, "open_requests", &input->open_requests);
		take_number(value, "clock_error_ns", &input->clock_error);
		take_threads(input, xm_find(value, "threads"));
	} else if (xm_is(key, "distributedInfo")) {
		take_number(value, "rank", &input->rank);
		take_number(value, "world_size", &input->world_size);
	} else if (xm_is(key, "deviceProperties")) {
		take_devices(input, value);
	} else if (xm_is(key, "schemaVersion") && !input->tool[0]) {
		strcpy(input->tool, "Kineto");
	} else if (xm_is(key, "hostname") || xm_is(key, "host_name")) {
		if (xm_is_string(value))
			(void)xm_unescape(value, input->host, sizeof(input->host));
	}
}

/* "RANK 3 HOST<node7>", as unitrace calls its processes. */
static void take_process_name(struct xm_input *input, const char *name)
{
	const char *host = strstr(name, "HOST<"), *end;
	unsigned rank;

	if (input->rank < 0 && sscanf(name, "RANK %u ", &rank) == 1)
		input->rank = rank;
	if (!host || input->host[0] || !(end = strchr(host, '>')) ||
	    (size_t)(end - host - 5) >= sizeof(input->host))
		return;
	memcpy(input->host, host + 5, (size_t)(end - host - 5));
	if (!input->tool[0])
		strcpy(input->tool, "unitrace");
}

static void keep(char **field, struct xm_text string)
{
	if (!xm_is_string(string) || string.n > LONGEST_NAME)
		return;
	free(*field);
	*field = strndup(string.p, string.n);
}

static void first_look(struct xm_input *input, const struct xm_event *event,
		       struct xm_process *process, int64_t start, int64_t end)
{
	int64_t id, tid = xm_tid(input, process, event);
	char text[LONGEST_NAME];

	switch (event->ph.p[1]) {
	case 'M':
		if (xm_is(event->name, "\"process_name\"")) {
			keep(&process->name, xm_find(event->args, "name"));
			(void)xm_unescape(xm_find(event->args, "name"), text, sizeof(text));
			take_process_name(input, text);
			process->is_device |= strstr(text, "DEVICE<") != NULL;
		} else if (xm_is(event->name, "\"process_labels\"")) {
			keep(&process->labels, xm_find(event->args, "labels"));
		}
		return;
	case 'X':
		if (process->first_start == XM_NO_TIME || start < process->first_start ||
		    (start == process->first_start && end > process->first_end)) {
			process->first_start = start;
			process->first_end = end;
			process->first_tid = tid;
		}
		break;
	case 's':
	case 't':
	case 'f':
		if (!xm_integer(event->id, &id) || id < 0) {
			input->has_odd_ids = true;
		} else {
			input->id_low = input->has_ids && input->id_low < id ? input->id_low : id;
			input->id_high = input->has_ids && input->id_high > id ? input->id_high
									       : id;
			input->has_ids = true;
		}
		break;
	}
	if (start != XM_NO_TIME) {
		input->first = start < input->first ? start : input->first;
		input->last = end > input->last ? end : input->last;
	}
}

/* ---- walking ---- */

static struct xm_process *process_of(struct xm_input *input, struct xm_text pid, bool first)
{
	uint32_t known = input->pids.count, index;

	if (pid.n && pid.n == input->last_pid_length && !memcmp(pid.p, input->last_pid, pid.n))
		return &input->processes[input->last_process];
	if (!pid.n)
		return NULL;
	index = first ? xm_map_add(&input->pids, pid.p, pid.n)
		      : xm_map_find(&input->pids, pid.p, pid.n);
	if (index == XM_NONE ||
	    !xm_room_for(&input->processes, &input->process_room, index, sizeof(*input->processes)))
		return NULL;
	if (index == known)
		input->processes[index].first_start = XM_NO_TIME;
	input->processes[index].is_number = xm_integer(pid, &input->processes[index].pid);
	if (pid.n <= sizeof(input->last_pid)) {
		memcpy(input->last_pid, pid.p, pid.n);
		input->last_pid_length = pid.n;
		input->last_process = index;
	}
	return &input->processes[index];
}

int64_t xm_tid(struct xm_input *input, const struct xm_process *process,
	       const struct xm_event *event)
{
	char key[256];
	uint32_t index = (uint32_t)(process - input->processes);
	struct xm_text tid = event->tid;
	int64_t number;

	if (event->is_own)
		return event->own_tid;
	if (xm_integer(tid, &number) && number >= 0 && number < (int64_t)1 << 32)
		return number;
	if (!tid.n || tid.n > sizeof(key) - sizeof(index))
		return XM_NO_TIME;
	memcpy(key, &index, sizeof(index));
	memcpy(key + sizeof(index), tid.p, tid.n);
	index = xm_map_add(&input->tids, key, sizeof(index) + tid.n);
	return index == XM_NONE ? XM_NO_TIME : XM_OWN_TID + (int64_t)index;
}

/* Is the event one that has a place in the output? Finds its times. */
static bool fit(const struct xm_input *input, const struct xm_event *event, int64_t *start,
		int64_t *end)
{
	int64_t ts, dur = 0;
	char phase;

	*start = *end = XM_NO_TIME;
	if (event->is_own) {
		*start = input->base + event->own_ts; /* of 2^61 and 10^18 */
		*end = *start + event->own_dur;
		return *end < XM_LATEST;
	}
	if (event->ph.n != 3 || event->ph.p[0] != '"')
		return false;
	phase = event->ph.p[1];
	if (phase == 'M')
		return event->name.n;
	if (!xm_nanoseconds(event->ts, &ts) ||
	    (event->dur.n && !xm_nanoseconds(event->dur, &dur)) || dur < 0)
		return false;
	*start = input->base + ts; /* of 2^61 and 2^62 */
	*end = *start;
	*end += phase == 'X' ? dur : 0; /* 2^62 more */
	return *start > -XM_LATEST && *end < XM_LATEST;
}

/* Reads some events of one input. */
static void walk_some(struct xm_input *input, bool first, xm_visit visit, void *user)
{
	struct xm_event event;

	for (unsigned n = 0; n < 512; n++) {
		struct xm_process *process;
		int64_t start, end;

		if (!xm_reader_next(&input->reader, &event)) {
			input->done = true;
			return;
		}
		process = fit(input, &event, &start, &end) ? process_of(input, event.pid, first)
							   : NULL;
		if (!process) {
			input->unfit += first;
			continue;
		}
		if (first)
			first_look(input, &event, process, start, end);
		if (start != XM_NO_TIME)
			input->progress = start - input->first;
		input->met++;
		visit(user, input, &event, process, start, end);
	}
}

static void open_input(struct xm_merge *merge, struct xm_input *input, bool first)
{
	size_t window = (64u << 20) / (merge->count + 1);
	const char *why = NULL;
	int result;

	input->done = first ? input->file.fd < 0 : !input->usable;
	input->progress = INT64_MIN;
	input->met = 0;
	input->last_pid_length = 0;
	if (input->done)
		return;
	memset(&input->reader, 0, sizeof(input->reader));
	input->reader.member = first ? take_member : NULL;
	input->reader.user = input;
	input->reader.longest = LONGEST_OF_ALL / merge->count;
	if (input->reader.longest > XM_LONGEST)
		input->reader.longest = XM_LONGEST;
	if (input->reader.longest < SHORTEST_LIMIT)
		input->reader.longest = SHORTEST_LIMIT;
	window = window > 131072 ? 131072 : window < 16384 ? 16384 : window;
	result = xm_reader_open(&input->reader, &input->file, window, &why);
	input->usable = !result;
	if (!result)
		return;
	input->changed = !first;
	input->done = true;
	(void)left_out(merge, input->path, result == -EBADMSG && why ? why : reason(result));
	xm_reader_close(&input->reader);
}

static bool is_empty(const struct xm_input *input)
{
	return !input->pids.count && strncmp(input->tool, "xstrace", 7) != 0;
}

bool xm_is_complete(const struct xm_input *input)
{
	const struct xm_reader *r = &input->reader;

	return input->usable && !input->changed && !is_empty(input) && !r->left_out &&
	       !input->unfit && !r->error && !r->source.error;
}

/* What was wrong with the file; all of it is known now. */
static void say_damage(const struct xm_input *input)
{
	const struct xm_reader *r = &input->reader;

	if (r->error)
		xm_say("xstrace-merge: %s: %s; what could be read is merged", input->path,
		       reason(r->error));
	else if (r->source.error)
		xm_say("xstrace-merge: %s: damaged compressed data (%s); all before that is merged",
		       input->path, r->source.error);
	if (r->left_out)
		xm_say("xstrace-merge: %s: line %llu: %s; left out%s", input->path,
		       (unsigned long long)r->first_line, r->first_why,
		       r->left_out > 1 ? ", and more like it" : "");
	if (is_empty(input))
		xm_say("xstrace-merge: %s: no event in it can be used%s", input->path,
		       r->cut ? "; it was cut" : "");
	else if (input->is_written)
		xm_say("xstrace-merge: %s: is still being written; what is there by now is merged",
		       input->path);
	else if (r->cut && !r->source.error)
		xm_say("xstrace-merge: %s: was cut; all before that is merged", input->path);
	if (input->unfit)
		xm_say("xstrace-merge: %s: %llu events without a usable ph, pid or time; left out",
		       input->path, (unsigned long long)input->unfit);
}

/* A later pass: did it meet what the first one had met? */
static void look_for_change(struct xm_input *input)
{
	if (input->changed || (!input->reader.error && input->met == input->met_first))
		return;
	input->changed = true;
	xm_say("xstrace-merge: %s: was changed while it was read; not all of it is merged as it "
	       "was",
	       input->path);
}

void xm_walk(struct xm_merge *merge, bool first, xm_visit visit, void *user)
{
	for (uint32_t i = 0; i < merge->count; i++)
		open_input(merge, &merge->inputs[i], first);
	for (;;) {
		struct xm_input *next = NULL;

		for (uint32_t i = 0; i < merge->count; i++)
			if (!merge->inputs[i].done &&
			    (!next || merge->inputs[i].progress < next->progress))
				next = &merge->inputs[i];
		if (!next)
			break;
		walk_some(next, first, visit, user);
		if (next->done) {
			if (first) {
				next->met_first = next->met;
				say_damage(next);
			} else {
				look_for_change(next);
			}
			xm_reader_close(&next->reader);
		}
	}
}

void xm_merge_free(struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = &merge->inputs[i];

		for (uint32_t k = 0; k < input->pids.count; k++) {
			free(input->processes[k].name);
			free(input->processes[k].labels);
		}
		free(input->processes);
		free(input->in_calls);
		free(input->devices);
		free(input->path);
		xm_file_close(&input->file);
		xm_map_free(&input->pids);
		xm_map_free(&input->tids);
	}
	xm_map_free(&merge->known);
	free(merge->inputs);
	free(merge->order);
}
