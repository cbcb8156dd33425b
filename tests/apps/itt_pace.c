/*
 * Work with tasks in it at a given rate, for what a tracer costs a program that does something
 *else.
 *
 *	itt_pace TASKS NS	each task and what follows it: about NS of computing in all
 *
 * Prints "wall_ms" and "cpu_ms", the time of all of them.
 */
#include "itt_app.h"

static volatile uint64_t sink;

static void compute(uint64_t rounds)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

static double ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	long tasks = argc > 1 ? atol(argv[1]) : 100000;
	uint64_t ns = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
	/*
	 * the same work in each run: a number of rounds, not a time. The chain is 4 cycles a round,
	 * at any speed near 3 GHz 4/3 ns
	 */
	uint64_t rounds = ns * 3 / 4 / 2;
	double wall, cpu;
	__itt_domain *domain = __itt_domain_create("pace");
	__itt_string_handle *name = __itt_string_handle_create("work");

	wall = ms(CLOCK_MONOTONIC);
	cpu = ms(CLOCK_PROCESS_CPUTIME_ID);
	for (long i = 0; i < tasks; i++) {
		task_begin(domain, name);
		compute(rounds);
		task_end(domain);
		compute(rounds);
	}
	printf("wall_ms %.3f\ncpu_ms %.3f\n", ms(CLOCK_MONOTONIC) - wall,
	       ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	return 0;
}
