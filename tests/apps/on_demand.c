/*
 * A program with the library that works until its standard input ends.
 *
 *	on_demand [ranges]	a step every ms, and a range "work" in each; with `ranges` no steps
 *
 * Lines of its standard input: "start", "stop PATH" (a trace of its own), "child" (another one
 * of these programs, that works as long as this one). It prints "ready", and the result of each.
 */
#include <poll.h>

#include "app.h"
#include "xstrace/xstrace.h"

static bool steps;

static void work(void)
{
	if (steps)
		xstrace_step();
	xstrace_range_push("work");
	(void)usleep(1000);
	xstrace_range_pop();
}

static void stop(const char *path)
{
	struct xstrace_trace *trace = NULL;
	int result = xstrace_stop(&trace), saved = trace ? xstrace_trace_save(trace, path) : -1;

	printf("stop: %d %d\n", result, saved);
	xstrace_trace_free(trace);
}

static void start_child(void)
{
	int ends[2];

	if (pipe(ends) < 0 || fork())
		return;
	/* its input ends with this process, which alone can write there */
	(void)dup2(ends[0], 0);
	close(ends[1]);
	(void)execl("/proc/self/exe", "on_demand", (char *)NULL);
	_exit(127);
}

static void obey(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "start"))
		printf("start: %d\n", xstrace_start());
	else if (!strncmp(line, "stop ", 5))
		stop(line + 5);
	else if (!strcmp(line, "child"))
		start_child();
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	char line[4096];

	steps = argc < 2 || strcmp(argv[1], "ranges") != 0;
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("initialize: %d\nready\n", xstrace_initialize(true));
	for (;;) {
		work();
		if (poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		obey(line);
	}
}
