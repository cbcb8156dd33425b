/*
 * Rank 1 waits 0.3 s for a message, rank 0 0.2 s for a barrier; each says how long it was in the
 * call.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	double begin;
	int rank, x = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank) {
		MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(200000);
	} else {
		usleep(300000);
		MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
	}
	begin = MPI_Wtime();
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d: %.3f s\n", rank, MPI_Wtime() - begin);
	MPI_Finalize();
	return 0;
}
