/*
 * Many ITT tasks as fast as they go: the figure for one begin+end pair, and the load for "nothing
 * is lost". The clock is read around the loop only, so that the figure is the pair's alone.
 *
 *	itt_tasks [COUNT [THREADS]] [--depth D] [--hold]
 *
 * Each thread makes COUNT tasks app::t0 ... app::t<D-1>, each inside the one before it, again and
 * again. --hold keeps the finished program alive until somebody kills it.
 */
#include <getopt.h>
#include "itt_app.h"

#define MAX_DEPTH   64
#define MAX_THREADS 256

static __itt_domain *domain;
static __itt_string_handle *names[MAX_DEPTH];
static long count = 1000, depth = 2;
static pthread_barrier_t start;

static double trace_tasks(void)
{
	uint64_t begin = now_ns();

	for (long left = count; left > 0; left -= depth) {
		long n = left < depth ? left : depth;

		for (long i = 0; i < n; i++)
			task_begin(domain, names[i]);
		for (long i = 0; i < n; i++)
			task_end(domain);
	}
	return count ? (double)(now_ns() - begin) / (double)count : 0;
}

static void *thread_main(void *ret_ns)
{
	pthread_barrier_wait(&start);
	*(double *)ret_ns = trace_tasks();
	return NULL;
}

static void run_threads(double *ret_ns, long threads)
{
	pthread_t ids[MAX_THREADS];

	pthread_barrier_init(&start, NULL, (unsigned int)threads);
	for (long i = 0; i < threads; i++)
		ids[i] = start_thread(thread_main, &ret_ns[i]);
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

static void print_results(const double *ns, long threads)
{
	long total = count * threads;
	double sum = 0;

	for (long i = 0; i < threads; i++) {
		printf("thread %ld: %.2f ns per begin/end pair\n", i, ns[i]);
		sum += ns[i];
	}
	printf("pair: %.2f ns\n", sum / (double)threads);
	for (long i = 0; i < depth; i++)
		printf("expected: %ld tasks app::t%ld\n",
		       threads * (count / depth + (i < count % depth)), i);
	printf("expected: %ld threads\n", threads);
	printf("expected: %ld tasks\n", total);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "depth", required_argument, NULL, 'd' },
						 { "hold", no_argument, NULL, 'h' },
						 { 0 } };
	double ns[MAX_THREADS] = { 0 };
	long threads = 1;
	bool hold = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			depth = atol(optarg);
		else if (c == 'h')
			hold = true;
		else
			return 2;
	}
	if (optind < argc)
		count = atol(argv[optind++]);
	if (optind < argc)
		threads = atol(argv[optind++]);
	if (count < 0 || threads < 1 || threads > MAX_THREADS || depth < 1 || depth > MAX_DEPTH) {
		fprintf(stderr, "itt_tasks: out of range\n");
		return 2;
	}

	domain = __itt_domain_create("app");
	for (long i = 0; i < depth; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t%ld", i);
		names[i] = __itt_string_handle_create(name);
	}

	if (threads == 1)
		ns[0] = trace_tasks(); /* on the first thread: the plainest program there is */
	else
		run_threads(ns, threads);
	print_results(ns, threads);
	while (hold)
		pause();
	return 0;
}
