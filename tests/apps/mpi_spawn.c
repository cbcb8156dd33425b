/* Ranks that start other ranks, and talk to them. mpi_spawn */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	MPI_Comm parent, between, all;
	int rank, size, number = 7, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_get_parent(&parent);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (parent == MPI_COMM_NULL)
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &between, MPI_ERRCODES_IGNORE);
	else
		between = parent;
	if (rank == 0 && parent == MPI_COMM_NULL)
		MPI_Send(&number, 1, MPI_INT, 1, 3, between);
	if (rank == 1 && parent != MPI_COMM_NULL)
		MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 3, between, MPI_STATUS_IGNORE);
	MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
	MPI_Comm_size(all, &size);
	MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, all);
	if (rank == 0 && parent == MPI_COMM_NULL)
		printf("%d ranks, sum %d\n", size, sum);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&between);
	MPI_Finalize();
	return 0;
}
