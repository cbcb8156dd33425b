/*
 * The inputs: finding them, and waiting until they are complete.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "progress.h"
#include "text.h"
#include "turn.h"

#define DEEPEST 16u /* directories below one that is named */

void xm_say(const char *format, ...)
{
	char line[4096];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	xm_progress_clear();
	xs_tell("%s\n", line);
}

/* Is it the first time that this file or directory is met? */
static bool is_new(struct xm_merge *merge, const struct stat *st)
{
	struct {
		uint64_t device, number;
	} key = { st->st_dev, st->st_ino };
	uint32_t count = merge->known.count;

	(void)xf_map_add(&merge->known, &key, sizeof(key));
	return merge->known.count > count;
}

void xm_never_read(struct xm_merge *merge, const char *path)
{
	struct stat st;

	if (!stat(path, &st))
		(void)is_new(merge, &st);
}

int xm_left_out(struct xm_merge *merge, const char *path, const char *why)
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
		return xm_left_out(merge, path, "is the output, or among the inputs already");
	if (!xf_room_for(&merge->inputs, &merge->room, merge->count, sizeof(*merge->inputs)))
		return -1;
	input = &merge->inputs[merge->count++];
	input->index = merge->count - 1;
	input->path = strdup(path);
	input->lost_read = -1;
	input->rank = input->world_size = input->pid = input->ppid = input->status = input->lost =
		input->clock_error = -1;
	input->untimed = input->open_commands = input->open_requests = -1;
	input->first = INT64_MAX;
	input->last = INT64_MIN;
	xf_map_init(&input->pids, XM_PROCESSES, 16u << 20);
	xf_map_init(&input->tids, XM_OWN_TIDS, 64u << 20);
	input->file.fd = -1;
	input->file.window_log = merge->window_log;
	if (!input->path)
		return -1;
	result = xm_file_open(&input->file, path, st);
	return result ? xm_left_out(merge, path, xm_reason(result)) : 0;
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
				(void)xm_left_out(merge, *name, strerror(errno));
		} else if (S_ISDIR(st.st_mode)) {
			if (depth == DEEPEST)
				(void)xm_left_out(merge, *name,
						  "directories are nested too deeply");
			else if (is_new(merge, &st)) /* links lead round */
				result |= add_directory(merge, *name, depth + 1, found);
		} else if (is_trace && S_ISREG(st.st_mode)) {
			result |= add(merge, *name, &st);
			(*found)++;
		} else if (is_trace) {
			(void)xm_left_out(merge, *name, "no file");
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
		return xm_left_out(merge, path, "is among the inputs already");
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
		free(input->overhead);
		free(input->halves);
		free(input->path);
		xm_file_close(&input->file);
		xf_map_free(&input->pids);
		xf_map_free(&input->tids);
	}
	xf_map_free(&merge->known);
	free(merge->inputs);
	free(merge->order);
}
