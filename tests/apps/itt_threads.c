/*
 * Very many short threads, one task each. A tracer that keeps something for each thread that ever
 * was runs out of memory, of descriptors or of names here.
 *
 *	itt_threads [N [AT_ONCE]]	at most 64 at once; default 1000, one after the other
 */
#include "itt_app.h"

#define MAX_AT_ONCE 64

static __itt_domain *domain;
static __itt_string_handle *name;

static void *trace_task(void *arg)
{
	(void)arg;
	finished_task(domain, name);
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000;
	long at_once = argc > 2 ? atol(argv[2]) : 1;
	pthread_t threads[MAX_AT_ONCE];
	uint64_t begin = now_ns();

	if (count < 0 || at_once < 1 || at_once > MAX_AT_ONCE) {
		fprintf(stderr, "itt_threads: out of range\n");
		return 2;
	}
	domain = __itt_domain_create("short");
	name = __itt_string_handle_create("task");
	for (long made = 0; made < count; made += at_once) {
		long n = count - made < at_once ? count - made : at_once;

		for (long i = 0; i < n; i++)
			threads[i] = start_thread(trace_task, NULL);
		for (long i = 0; i < n; i++)
			pthread_join(threads[i], NULL);
	}
	printf("thread: %.0f ns\n", count ? (double)(now_ns() - begin) / (double)count : 0);
	printf("expected: %ld threads\n", count);
	printf("expected: %ld tasks short::task\n", count);
	printf("expected: %ld tasks\n", count);
	return 0;
}
