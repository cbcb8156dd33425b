/*
 * The target that is killed at a random moment. What each thread has really finished stands in a
 * file that it maps shared, so the truth outlives SIGKILL and the trace can be compared with it.
 *
 *	itt_stress FILE [THREADS [PACE_NS [SECONDS]]]
 *
 * Each thread's n-th task (n from 0) is stress::t<n % 16>, so a gap or a swap shows in the trace.
 * PACE_NS (default 1000) is the time spent inside each task, 0 for as fast as it goes; SECONDS
 * (default 0: until killed) ends the program by itself. "ready" is printed when all threads trace.
 *
 * FILE holds one 64-byte entry for each thread, native integers of 64 bits: tid, begun (counted
 * before each begin), finished (counted after each end), then zeroes. In the trace the thread has
 * at least `finished` and at most `begun` tasks; at most one of them has no end.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "itt_app.h"

#define MAX_THREADS 256

struct truth {
	_Alignas(64) _Atomic uint64_t tid;
	_Atomic uint64_t begun, finished;
};

static __itt_domain *domain;
static __itt_string_handle *names[16];
static uint64_t pace_ns = 1000;
static _Atomic bool stop;
static pthread_barrier_t start;

static struct truth *map_truth(const char *path, long threads)
{
	size_t size = (size_t)threads * sizeof(struct truth);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct truth *truth;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die(path);
	truth = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		die("mmap");
	close(fd);
	return truth;
}

/* release stores keep begun, the task and finished in order on every machine */
static void trace_task(struct truth *truth, uint64_t n)
{
	uint64_t until;

	atomic_store_explicit(&truth->begun, n + 1, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	task_begin(domain, names[n % 16]);
	for (until = pace_ns ? now_ns() + pace_ns : 0; pace_ns && now_ns() < until;)
		;
	task_end(domain);
	atomic_store_explicit(&truth->finished, n + 1, memory_order_release);
}

static void *thread_main(void *arg)
{
	struct truth *truth = arg;

	truth->tid = (uint64_t)syscall(SYS_gettid);
	trace_task(truth, 0);
	pthread_barrier_wait(&start);
	for (uint64_t n = 1; !stop; n++)
		trace_task(truth, n);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 2 ? atol(argv[2]) : 2;
	long seconds = argc > 4 ? atol(argv[4]) : 0;
	pthread_t ids[MAX_THREADS];
	struct truth *truth;
	uint64_t total = 0;

	if (argc < 2 || threads < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: itt_stress FILE [THREADS [PACE_NS [SECONDS]]]\n");
		return 2;
	}
	if (argc > 3)
		pace_ns = strtoull(argv[3], NULL, 10);
	domain = __itt_domain_create("stress");
	for (int i = 0; i < 16; i++) {
		char name[8];

		snprintf(name, sizeof(name), "t%d", i);
		names[i] = __itt_string_handle_create(name);
	}
	truth = map_truth(argv[1], threads);
	pthread_barrier_init(&start, NULL, (unsigned int)threads + 1);
	for (long i = 0; i < threads; i++)
		ids[i] = start_thread(thread_main, &truth[i]);
	pthread_barrier_wait(&start);
	printf("ready\n");
	fflush(stdout);

	if (seconds == 0)
		while (true)
			pause();
	sleep_ms(seconds * 1000);
	stop = true;
	for (long i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		total += truth[i].finished;
	}
	printf("expected: %ld threads\nexpected: %ju tasks\n", threads, (uintmax_t)total);
	return 0;
}
