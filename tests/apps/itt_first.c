/*
 * The first events of a process and of threads that are all there at once. "ready" before, "done"
 * after them; each time a line is awaited.
 *
 *	itt_first THREADS [PAIRS [NAMES]]	each thread makes PAIRS tasks, of NAMES names in
 *turn
 */
#include "itt_app.h"

#define MOST_THREADS 64
#define MOST_NAMES   100000

static __itt_domain *domain;
static __itt_string_handle *names[MOST_NAMES];
static long pairs = 1, name_count = 1;
static pthread_barrier_t all_here;

static void *trace(void *unused)
{
	(void)unused;
	for (long i = 0; i < pairs; i++)
		finished_task(domain, names[i % name_count]);
	pthread_barrier_wait(&all_here); /* a thread that has ended leaves its ring to the next */
	return NULL;
}

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
	(void)getchar();
}

int main(int argc, char **argv)
{
	pthread_t ids[MOST_THREADS];
	long threads = argc > 1 ? atol(argv[1]) : 1;

	pairs = argc > 2 ? atol(argv[2]) : 1;
	name_count = argc > 3 ? atol(argv[3]) : 1;
	if (threads < 1 || threads > MOST_THREADS || pairs < 1 || name_count < 1 ||
	    name_count > MOST_NAMES) {
		fprintf(stderr, "itt_first: out of range\n");
		return 2;
	}
	say("ready");
	domain = __itt_domain_create("first");
	for (long i = 0; i < name_count; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "task %ld", i);
		names[i] = __itt_string_handle_create(name);
	}
	if (pthread_barrier_init(&all_here, NULL, (unsigned)threads + 1))
		die("pthread_barrier_init");
	for (long i = 0; i < threads; i++)
		ids[i] = start_thread(trace, NULL);
	pthread_barrier_wait(&all_here);
	say("done");
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
