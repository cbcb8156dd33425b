/*
 * Parallel regions whose parts have the lengths that they are given, so that a change can be
 * foretold and then made. omp_steps REGIONS ITERATIONS US: in each region two threads share a loop
 * of so many iterations, of which the second thread's take US and the first one's half of that;
 * 2000 us of the first thread's own follow.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void work(int us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
}

int main(int argc, char **argv)
{
	int regions = argc > 3 ? atoi(argv[1]) : 0, iterations = argc > 3 ? atoi(argv[2]) : 0,
	    us = argc > 3 ? atoi(argv[3]) : 0;

	for (int i = 0; i < regions; i++) {
#pragma omp parallel for schedule(static, 1) num_threads(2)
		for (int k = 0; k < iterations; k++)
			work(k % 2 ? us : us / 2);
		work(2000);
	}
	return 0;
}
