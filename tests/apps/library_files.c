/*
 * A program that contains xstrace, and the files of its traces. It prints results.
 *
 *	library_files twice A B		two threads save a trace at the same time, many times
 *	library_files gone DIR		the directory of the traces is removed while one is recorded
 *	library_files taken PATH	somebody removes the trace before it is saved
 *	library_files full PATH		there is no room at PATH for the trace
 *	library_files memory PATH	nor for a profile of memory
 *	library_files empty		traces without an event
 *	library_files steps PATH	steps that nobody records, and some that are
 *	library_files prepare DIR	a run is to begin, with its traces in DIR
 */
#include <dirent.h>
#include <pthread.h>

#include "app.h"
#include "xstrace/xstrace.h"

#define ROUNDS 40

static void say(const char *what, int result)
{
	printf("%s: %d%s%s\n", what, result, result ? ", " : "", result ? xstrace_why() : "");
	(void)fflush(stdout);
}

static struct xstrace_trace *record(unsigned ranges)
{
	struct xstrace_trace *trace = NULL;

	if (xstrace_start())
		say("start", xstrace_start());
	for (unsigned i = 0; i < ranges; i++) {
		xstrace_range_push("range");
		xstrace_range_pop();
	}
	if (xstrace_stop(&trace))
		say("stop", xstrace_stop(&trace));
	return trace;
}

struct saver {
	struct xstrace_trace *trace;
	const char *path;
	pthread_barrier_t *together;
	int result;
};

static void *save(void *user)
{
	struct saver *saver = user;

	(void)pthread_barrier_wait(saver->together);
	saver->result = xstrace_trace_save(saver->trace, saver->path);
	return NULL;
}

static void twice(const char *a, const char *b)
{
	struct saver savers[2] = { { .path = a }, { .path = b } };
	unsigned one = 0, there = 0;
	pthread_barrier_t together;
	pthread_t threads[2];

	(void)pthread_barrier_init(&together, NULL, 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct xstrace_trace *trace = record(2000);
		const char *lies = xstrace_trace_path(trace);

		for (unsigned i = 0; i < 2; i++) {
			savers[i].trace = trace;
			savers[i].together = &together;
			(void)pthread_create(&threads[i], NULL, save, &savers[i]);
		}
		for (unsigned i = 0; i < 2; i++)
			(void)pthread_join(threads[i], NULL);
		one += (savers[0].result == XSTRACE_OK && savers[1].result == XSTRACE_BAD_STATE) ||
		       (savers[1].result == XSTRACE_OK && savers[0].result == XSTRACE_BAD_STATE);
		there += lies[0] && !access(xstrace_trace_path(trace), F_OK);
		xstrace_trace_free(trace);
		(void)unlink(a);
		(void)unlink(b);
	}
	printf("saved once %u, there %u of %d\n", one, there, ROUNDS);
}

static void remove_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[4096];

	while (directory && (entry = readdir(directory))) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		(void)unlink(name);
	}
	if (directory)
		(void)closedir(directory);
	say("rmdir", rmdir(path));
}

static void prepare(const char *directory)
{
	struct xstrace_config config = { .size = sizeof(config), .directory = directory };

	say("prepare", xstrace_prepare(&config));
}

static void gone(const char *directory)
{
	struct xstrace_trace *trace;

	prepare(directory);
	for (unsigned round = 0; round < 2; round++) {
		say("start", xstrace_start());
		xstrace_mark("mark");
		(void)usleep(200000); /* the drain process has made the trace's file */
		if (!round)
			remove_directory(directory);
		say("stop", xstrace_stop(&trace));
		printf("active %d, trace %d\n", (int)xstrace_is_active(), trace != NULL);
		xstrace_trace_free(trace);
	}
}

static void taken(const char *path)
{
	struct xstrace_trace *trace = record(10);

	(void)unlink(xstrace_trace_path(trace));
	say("save", xstrace_trace_save(trace, path));
	printf("there %d, events %zu\n", !access(path, F_OK), xstrace_trace_count(trace));
	xstrace_trace_free(trace);
}

static void full(const char *path)
{
	struct xstrace_trace *trace = record(20000);

	say("save", xstrace_trace_save(trace, path));
	printf("there %d\n", !access(path, F_OK));
	say("save elsewhere", xstrace_trace_save(trace, "elsewhere.json"));
	xstrace_trace_free(trace);
}

static void memory(const char *path)
{
	int result;

	(void)xstrace_memory_start();
	for (unsigned i = 0; i < 10000; i++)
		xstrace_memory(NULL, 1, 1, 1, XSTRACE_DEVICE_CPU, 0, NULL);
	(void)xstrace_memory_stop();
	result = xstrace_memory_export(path);
	printf("export: %d, there %d\n", result, !access(path, F_OK));
}

static void empty(void)
{
	for (unsigned round = 0; round < 2; round++) {
		struct xstrace_event event;
		struct xstrace_trace *trace;

		(void)xstrace_start();
		if (round)
			(void)xstrace_metadata("key", "value");
		say("stop", xstrace_stop(&trace));
		printf("events %zu\n", xstrace_trace_count(trace));
		say("event", xstrace_trace_event(trace, 0, &event));
		xstrace_trace_free(trace);
	}
}

static void take_steps(unsigned count)
{
	while (count--)
		xstrace_step();
}

static void steps(const char *path)
{
	struct xstrace_trace *trace;

	take_steps(1);
	(void)xstrace_start();
	take_steps(2);
	(void)xstrace_stop(&trace);
	xstrace_trace_free(trace);
	take_steps(3);
	(void)xstrace_start();
	take_steps(1);
	xstrace_step_number(70);
	(void)xstrace_stop(&trace);
	say("save", xstrace_trace_save(trace, path));
	xstrace_trace_free(trace);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";

	if (!strcmp(kind, "twice"))
		twice(path, argc > 3 ? argv[3] : "");
	else if (!strcmp(kind, "gone"))
		gone(path);
	else if (!strcmp(kind, "taken"))
		taken(path);
	else if (!strcmp(kind, "full"))
		full(path);
	else if (!strcmp(kind, "memory"))
		memory(path);
	else if (!strcmp(kind, "steps"))
		steps(path);
	else if (!strcmp(kind, "empty"))
		empty();
	else if (!strcmp(kind, "prepare"))
		prepare(path[0] ? path : NULL);
	return 0;
}
