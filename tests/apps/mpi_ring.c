/*
 * Every rank works for a while, more or less of it from step to step, then exchanges with its
 * neighbours and adds up with all.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT 1000

static double here[COUNT], there[COUNT];

static void work(int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
	int rank, size, steps = argc > 1 ? atoi(argv[1]) : 3;
	double sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int step = 0; step < steps; step++) {
		MPI_Request requests[2];

		MPI_Irecv(there, COUNT, MPI_DOUBLE, (rank + size - 1) % size, step, MPI_COMM_WORLD,
			  &requests[0]);
		work(5 + 10 * ((rank + step) % size));
		MPI_Isend(here, COUNT, MPI_DOUBLE, (rank + 1) % size, step, MPI_COMM_WORLD,
			  &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		work(3);
		MPI_Allreduce(there, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
