/* One message and three collectives. */
#include <mpi.h>

int main(int argc, char **argv)
{
	double from[100] = { 0 }, to[100];
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		MPI_Send(from, 100, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(to, 100, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Allreduce(from, to, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Bcast(to, 10, MPI_INT, 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
