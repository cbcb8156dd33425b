/* Rank 1 dies while it waits for a message that nobody sends. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void die(int signal_)
{
	(void)signal_;
	kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
	int rank, number = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 100; i++) {
		if (rank)
			MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank) {
		signal(SIGALRM, die);
		alarm(1);
	}
	MPI_Recv(&number, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
