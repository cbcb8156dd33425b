/*
 * Ranks that meet after each step; one of them has more to do.
 *
 *	mpicc -O1 -o ranks ranks.c
 *	mpiexec -n 4 ./ranks [STEPS [SLOW_RANK]]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* stands for work of the rank's own */
static void compute(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

int main(int argc, char **argv)
{
	int rank, size, steps, slow, next, before;
	double mine = 1, sum, got;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	steps = argc > 1 ? atoi(argv[1]) : 20;
	slow = argc > 2 ? atoi(argv[2]) : 1;
	next = (rank + 1) % size;
	before = (rank + size - 1) % size;
	for (int step = 0; step < steps; step++) {
		compute(rank == slow ? 30 : 2);
		MPI_Sendrecv(&mine, 1, MPI_DOUBLE, next, 7, &got, 1, MPI_DOUBLE, before, 7,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%d ranks, %d steps\n", size, steps);
	MPI_Finalize();
	return 0;
}
