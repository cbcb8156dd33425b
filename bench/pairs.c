/*
 * The cost of a begin+end pair to the program that makes it.
 *
 *	pairs_* burst [BURSTS [PAIRS [THREADS]]]	default 101 bursts of 8192 pairs, one thread
 *	pairs_* cold [PAIRS [MIB]]			default 2001 pairs, 16 MiB
 *	pairs_* run [COUNT [THREADS [--step]]]		default 10^6 pairs by each thread
 *
 * burst: with pauses in between, so that the tracer's buffers are empty and warm at each burst;
 * medians over the bursts. The floor is what no tracer with exact times can do without: two
 * readings of the clock and 32 bytes stored, in the same bursts. cold: before each pair as much
 * memory is read, so that the pair finds the caches as in a program that works in between; wall is
 * its median. run: as fast as it goes.
 * --step: "ready" is printed and a line awaited on stdin before the run, "done" and a line after
 *it.
 *
 * Each line is "<name> <value>": wall, cpu and floor in ns per pair and thread, rss_kib the most
 * memory that the program ever had, end_ns the CLOCK_MONOTONIC at the end of main.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emit.h"

#define MAX_THREADS 64
#define MAX_BURSTS  10000
#define PAUSE_NS    10000000
#define FLOOR_BYTES (1u << 20)

struct sample {
	double wall, cpu, floor;
};

static long bursts = 1, pairs, threads = 1;
static bool with_floor;
static size_t cold_bytes;
static struct sample *samples; /* [threads][bursts] */
static pthread_barrier_t start;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t tick(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return clock_ns(CLOCK_MONOTONIC);
#endif
}

static void floor_pairs(volatile uint64_t *memory, long count)
{
	for (long i = 0; i < count; i++) {
		volatile uint64_t *at = memory + (uint64_t)i * 4 % (FLOOR_BYTES / sizeof(*at));

		at[0] = tick();
		at[1] = 1;
		at[2] = tick();
		at[3] = 2;
	}
}

static void read_all(const volatile unsigned char *memory)
{
	for (size_t i = 0; i < cold_bytes; i += 64)
		(void)memory[i];
}

static double per_pair(uint64_t begin, uint64_t end)
{
	return (double)(end - begin) / (double)pairs;
}

static void measure(struct sample *ret)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);

	emit_pairs(pairs);
	ret->wall = per_pair(wall, clock_ns(CLOCK_MONOTONIC));
	ret->cpu = per_pair(cpu, clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

static void *thread_main(void *arg)
{
	struct sample *mine = arg;
	uint64_t *memory = with_floor ? calloc(1, FLOOR_BYTES) : NULL;
	unsigned char *other = cold_bytes ? malloc(cold_bytes) : NULL;

	if (cold_bytes && !other)
		abort();
	if (other)
		memset(other, 1, cold_bytes); /* or each page would be the same one of zeros */

	for (long i = 0; i < bursts; i++) {
		uint64_t begin;

		if (with_floor)
			nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
		if (other)
			read_all(other);
		pthread_barrier_wait(&start);
		measure(&mine[i]);
		if (!memory)
			continue;
		begin = clock_ns(CLOCK_MONOTONIC);
		floor_pairs(memory, pairs);
		mine[i].floor = per_pair(begin, clock_ns(CLOCK_MONOTONIC));
	}
	free(other);
	free(memory);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* `field`: offset in struct sample. The median over the bursts of the threads' mean. */
static double median(size_t field)
{
	static double values[MAX_BURSTS];

	for (long i = 0; i < bursts; i++) {
		values[i] = 0;
		for (long t = 0; t < threads; t++)
			values[i] += *(double *)((char *)&samples[t * bursts + i] + field) /
				     (double)threads;
	}
	qsort(values, (size_t)bursts, sizeof(*values), compare);
	return values[bursts / 2];
}

static long peak_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmHWM:", 6))
			kib = atol(line + 6);
	if (file)
		fclose(file);
	return kib;
}

static void step(bool wanted, const char *word)
{
	char c = 0;

	if (!wanted)
		return;
	printf("%s\n", word);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static int work(void)
{
	pthread_t ids[MAX_THREADS];

	samples = calloc((size_t)(threads * bursts), sizeof(*samples));
	if (!samples || pthread_barrier_init(&start, NULL, (unsigned)threads))
		return 1;
	if (threads == 1) { /* on the first thread: the plainest program there is */
		thread_main(samples);
		return 0;
	}
	for (long t = 0; t < threads; t++)
		if (pthread_create(&ids[t], NULL, thread_main, &samples[t * bursts]))
			return 1;
	for (long t = 0; t < threads; t++)
		pthread_join(ids[t], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	bool steps = argc > 1 && !strcmp(argv[argc - 1], "--step");
	long numbers[3] = { 0 };

	argc -= steps;
	for (int i = 2; i < argc && i < 5; i++)
		numbers[i - 2] = atol(argv[i]);
	if (argc > 1 && !strcmp(argv[1], "burst")) {
		with_floor = true;
		bursts = numbers[0] ? numbers[0] : 101;
		pairs = numbers[1] ? numbers[1] : 8192;
		threads = numbers[2] ? numbers[2] : 1;
	} else if (argc > 1 && !strcmp(argv[1], "cold")) {
		bursts = numbers[0] ? numbers[0] : 2001;
		pairs = 1;
		cold_bytes = (size_t)(numbers[1] ? numbers[1] : 16) << 20;
	} else if (argc > 1 && !strcmp(argv[1], "run")) {
		pairs = numbers[0] ? numbers[0] : 1000000;
		threads = numbers[1] ? numbers[1] : 1;
	}
	if (pairs < 1 || threads < 1 || threads > MAX_THREADS || bursts < 1 ||
	    bursts > MAX_BURSTS) {
		fprintf(stderr, "usage: %s burst|cold|run [NUMBER...] [--step]\n", argv[0]);
		return 2;
	}

	emit_init();
	step(steps, "ready");
	if (work()) {
		fprintf(stderr, "%s: no memory or no threads\n", argv[0]);
		return 1;
	}
	step(steps, "done");
	printf("wall %.2f\ncpu %.2f\n", median(offsetof(struct sample, wall)),
	       median(offsetof(struct sample, cpu)));
	if (with_floor)
		printf("floor %.2f\n", median(offsetof(struct sample, floor)));
	printf("rss_kib %ld\n", peak_kib());
	printf("end_ns %ju\n", (uintmax_t)clock_ns(CLOCK_MONOTONIC));
	fflush(stdout);
	return 0;
}
