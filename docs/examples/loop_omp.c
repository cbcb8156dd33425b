/*
 * A parallel loop whose last iterations are the longest.
 *
 *	clang -O1 -fopenmp -o loop_omp loop_omp.c
 *	OMP_NUM_THREADS=4 ./loop_omp [static|dynamic]
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void work(int units)
{
	nanosleep(&(struct timespec){ .tv_nsec = units * 1000000L }, NULL);
}

static void uneven(void)
{
#pragma omp parallel for schedule(runtime)
	for (int i = 0; i < 64; i++)
		work(i / 8);
}

int main(int argc, char **argv)
{
	omp_set_schedule(argc > 1 && strcmp(argv[1], "dynamic") == 0 ? omp_sched_dynamic
								     : omp_sched_static,
			 0);
	for (int i = 0; i < 5; i++)
		uneven();
	printf("done\n");
	return 0;
}
