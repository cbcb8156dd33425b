/*
 * The first events of a process and of its threads, with nothing warmed up: no event comes before
 * the one that is measured.
 *
 *	first_events [PAIRS [THREADS]]	default 1000 pairs, 8 threads
 *
 * Each line is "<name> <microseconds>". floor: a mapping is made and its first page written, which
 * is the least that memory for events costs. first: from the first call of ITT, in which the
 * client's library looks for a collector, to the end of the first pair. pairs: to the end of so
 * many. thread: the first pair of a further thread, the median of those that live at once, so that
 * each needs memory of its own; thread_again: of threads that come after others have ended.
 */
#include <ittnotify.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_THREADS 64

static __itt_domain *domain;
static __itt_string_handle *name;
static pthread_barrier_t all_here;
static double firsts[MAX_THREADS];

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double pair(void)
{
	double begin = now_us();

	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_task_end(domain);
	return now_us() - begin;
}

static double map_a_page(void)
{
	double begin = now_us();
	volatile char *page =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		abort();
	*page = 1;
	return now_us() - begin;
}

static void *stay(void *first)
{
	*(double *)first = pair();
	pthread_barrier_wait(&all_here);
	return NULL;
}

static void *leave(void *first)
{
	*(double *)first = pair();
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The next thread begins when the one before has had its first event. */
static double median_of_threads(int count, bool at_once)
{
	pthread_t threads[MAX_THREADS];

	for (int i = 0; i < count; i++) {
		firsts[i] = -1;
		if (pthread_create(&threads[i], NULL, at_once ? stay : leave, &firsts[i]))
			abort();
		while (at_once && *(volatile double *)&firsts[i] < 0)
			(void)nanosleep(&(struct timespec){ 0, 100000 }, NULL);
		if (!at_once)
			pthread_join(threads[i], NULL);
	}
	if (at_once) {
		pthread_barrier_wait(&all_here);
		for (int i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
	}
	qsort(firsts, (size_t)count, sizeof(*firsts), compare);
	return firsts[count / 2];
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 1000, threads = argc > 2 ? atoi(argv[2]) : 8;
	double begin, first = 0, all;

	if (pairs < 1 || threads < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: first_events [PAIRS [THREADS]], at most %d threads\n",
			MAX_THREADS);
		return 2;
	}
	(void)now_us(); /* the clock is no part of it */
	printf("floor %.2f\n", map_a_page());
	begin = now_us();
	domain = __itt_domain_create("first");
	name = __itt_string_handle_create("event");
	for (int i = 0; i < pairs; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
		if (!i)
			first = now_us();
	}
	all = now_us();
	printf("first %.2f\npairs %.2f\n", first - begin, all - begin);
	if (pthread_barrier_init(&all_here, NULL, (unsigned)threads + 1))
		return 1;
	printf("thread %.2f\n", median_of_threads(threads, true));
	printf("thread_again %.2f\n", median_of_threads(threads, false));
	return 0;
}
