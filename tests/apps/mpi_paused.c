/* Records one barrier of a communicator that was made before, and used. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	MPI_Comm comm, other;

	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 7; i++)
		MPI_Barrier(comm);
	setenv("PTI_ENABLE_COLLECTION", "1", 1);
	MPI_Barrier(comm);
	setenv("PTI_ENABLE_COLLECTION", "0", 1);
	MPI_Barrier(comm);
	MPI_Comm_free(&comm);
	MPI_Comm_free(&other);
	MPI_Finalize();
	return 0;
}
