/*
 * Requests of which every other pair becomes complete while nothing is recorded. The last pair is
 * open through such a time, and is seen complete behind it; then the program goes on for a while.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 6

static int rank, came, sent;

static void record(int on)
{
	setenv("PTI_ENABLE_COLLECTION", on ? "1" : "0", 1);
}

static void exchange(int tag, MPI_Request *requests)
{
	MPI_Irecv(&came, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(&sent, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[1]);
}

int main(int argc, char **argv)
{
	MPI_Request requests[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	record(1);
	for (int i = 0; i < ROUNDS; i++) {
		exchange(i, requests);
		record(i % 2 == 0);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		record(1);
		usleep(1000);
	}
	exchange(ROUNDS, requests);
	record(0);
	usleep(1000);
	record(1);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	usleep(50000);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
