/*
 * The triad of McCalpin's STREAM with OpenMP, in regions as short as programs have them: compiled
 * by bench/run with clang.
 *
 *	openmp_triad REGIONS ELEMENTS	says what all of them took ("wall", ns)
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	int regions = argc > 1 ? atoi(argv[1]) : 1000, n = argc > 2 ? atoi(argv[2]) : 100000;
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b)),
	       *c = calloc((size_t)n, sizeof(*c)), start = 0;

	for (int r = -10; r < regions; r++) {
		if (!r)
			start = now();
#pragma omp parallel for num_threads(2)
		for (int i = 0; i < n; i++)
			a[i] = b[i] + 3.0 * c[i];
	}
	printf("wall %.0f\n", now() - start);
	return 0;
}
