/*
 * What the library costs a program that traces itself (include/xstrace/xstrace.h).
 *
 *	library_calls [COUNT]	default 10^6 events in the trace that is stopped
 *
 * Each line is "<name> <figure>": ns per pair or call, ms, or millions of activities per second.
 *With XSTRACE_DISABLE in the environment the same calls do nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

#define ROUNDS 15
#define PAIRS  10000 /* the ring has room for them */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void by_name(int count)
{
	const struct xstrace_name *name = xstrace_get_name("by name");

	for (int i = 0; i < count; i++) {
		xstrace_range_push_name(name);
		xstrace_range_pop();
	}
}

static void by_text(int count)
{
	for (int i = 0; i < count; i++) {
		xstrace_range_push("by text");
		xstrace_range_pop();
	}
}

/* The median of several bursts; in between the drain process empties the ring. */
static void pairs(const char *key, void (*run)(int count))
{
	double rounds[ROUNDS];

	run(PAIRS);
	for (int i = 0; i < ROUNDS; i++) {
		double begin;

		usleep(20000);
		begin = now_ns();
		run(PAIRS);
		rounds[i] = (now_ns() - begin) / PAIRS;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_size);
	printf("%s %.2f\n", key, rounds[ROUNDS / 2]);
}

static void activities(int count)
{
	struct xstrace_activity *all = calloc((size_t)count, sizeof(*all));
	struct xstrace_ids ids = xstrace_get_ids();
	struct xstrace_cpu_trace *list;
	int64_t start = xstrace_now();
	double begin, added, end;

	for (int i = 0; all && i < count; i++)
		all[i] = (struct xstrace_activity){ .name = i % 3 ? "aten::add" : "aten::mul",
						    .start = start + i,
						    .end = start + i + 1,
						    .device = ids.device,
						    .resource = ids.resource,
						    .correlation = (uint64_t)i };
	list = xstrace_cpu_trace_create(start, "list");
	if (!all || !list)
		exit(1);
	begin = now_ns();
	xstrace_cpu_trace_add(list, all, (size_t)count, NULL);
	added = now_ns();
	xstrace_cpu_trace_transfer(list, start + count);
	end = now_ns();
	printf("add %.3f\ntransfer %.3f\n", count / (added - begin) * 1e3,
	       count / (end - added) * 1e3);
	free(all);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000000;
	struct xstrace_trace *trace;
	double begin, prepared;
	int result;

	begin = now_ns();
	result = xstrace_prepare(NULL);
	prepared = now_ns();
	if (!result)
		result = xstrace_start();
	printf("prepare %.3f\nstart %.3f\n", (prepared - begin) / 1e6, (now_ns() - prepared) / 1e6);
	if (result && result != XSTRACE_OFF) {
		fprintf(stderr, "%s\n", xstrace_why());
		return 1;
	}
	pairs("pair_name", by_name);
	pairs("pair_text", by_text);
	activities(count);
	begin = now_ns();
	(void)xstrace_stop(&trace);
	printf("stop %.3f\n", (now_ns() - begin) / 1e6);
	xstrace_trace_free(trace);
	return 0;
}
