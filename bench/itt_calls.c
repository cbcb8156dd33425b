/*
 * What the ITT calls beside a task's begin and end cost their caller.
 *
 *	itt_calls [COUNT [THREADS [NAME]]]	default 10^6 of each by each of so many threads;
 *NAME: of that one alone
 *
 * Each line is "<name> <ns>": per call, the mean of the threads' walls. The loops are as fast as
 *they go, so what the tracer does behind the calls counts as far as it holds them up.
 */
#include <ittnotify.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 64

static __itt_domain *domain;
static __itt_string_handle *task, *key;
static __itt_counter counter;
static __itt_event event;
static volatile void *sink;

static void tasks(long count)
{
	for (long i = 0; i < count; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, task);
		__itt_task_end(domain);
	}
}

static void handles(long count)
{
	for (long i = 0; i < count; i++)
		sink = (__itt_string_handle_create("a name known already"));
}

static void metadata(long count)
{
	for (long i = 0; i < count; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, task);
		__itt_metadata_add(domain, __itt_null, key, __itt_metadata_s64, 1, &i);
		__itt_task_end(domain);
	}
}

static void counters(long count)
{
	for (long i = 0; i < count; i++)
		__itt_counter_set_value(counter, &i);
}

static void frames(long count)
{
	for (long i = 0; i < count; i++) {
		__itt_frame_begin_v3(domain, NULL);
		__itt_frame_end_v3(domain, NULL);
	}
}

static void events(long count)
{
	for (long i = 0; i < count; i++) {
		__itt_event_start(event);
		__itt_event_end(event);
	}
}

static const struct {
	const char *name;
	void (*run)(long count);
	int calls; /* that the figure is divided by */
} cases[] = {
	{ "task_call", tasks, 2 },  { "handle", handles, 1 },	 { "metadata_task", metadata, 1 },
	{ "counter", counters, 1 }, { "frame_call", frames, 2 }, { "event_call", events, 2 },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static long count = 1000000;
static const char *only; /* NULL: all */
static pthread_barrier_t start;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void *thread_main(void *arg)
{
	double *ret_ns = arg;

	for (size_t i = 0; i < CASES; i++) {
		uint64_t begin;

		if (only && strcmp(only, cases[i].name))
			continue;
		pthread_barrier_wait(&start);
		begin = now_ns();
		cases[i].run(count);
		ret_ns[i] = (double)(now_ns() - begin) / (double)count / cases[i].calls;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static double ns[MAX_THREADS][CASES];
	pthread_t ids[MAX_THREADS];
	int threads = argc > 2 ? atoi(argv[2]) : 1;

	only = argc > 3 ? argv[3] : NULL;

	if (argc > 1)
		count = atol(argv[1]);
	if (count < 1 || threads < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: %s [COUNT [THREADS [NAME]]]\n", argv[0]);
		return 2;
	}
	domain = __itt_domain_create("app");
	task = __itt_string_handle_create("t0");
	key = __itt_string_handle_create("i");
	(void)(__itt_string_handle_create("a name known already"));
	counter = __itt_counter_create("counter", "app");
	event = __itt_event_create("event", 5);
	if (pthread_barrier_init(&start, NULL, (unsigned)threads))
		return 1;
	for (int t = 0; t < threads; t++)
		if (pthread_create(&ids[t], NULL, thread_main, ns[t]))
			return 1;
	for (int t = 0; t < threads; t++)
		pthread_join(ids[t], NULL);
	for (size_t i = 0; i < CASES; i++) {
		double sum = 0;

		for (int t = 0; t < threads; t++)
			sum += ns[t][i];
		if (!only || !strcmp(only, cases[i].name))
			printf("%s %.2f\n", cases[i].name, sum / threads);
	}
	return 0;
}
