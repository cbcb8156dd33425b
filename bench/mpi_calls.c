/*
 * Cheap MPI calls and a ping-pong, timed by the program itself: what an MPI call costs when it is
 * traced. mpi_calls COUNT Prints "<name> <ns>" for each, on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BURST 500

static double per_call(double seconds, long count)
{
	return seconds * 1e9 / (double)count;
}

/* ns for a message of one integer there and one back. */
static double ping_pong(int rank, long messages)
{
	double begin = MPI_Wtime();
	int word = 0;

	for (long i = 0; i < messages && rank < 2; i++) {
		if (rank == 0)
			MPI_Send(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
	}
	return per_call(MPI_Wtime() - begin, messages);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000000, messages = count / 20;
	double rank_best = 1e9, rank_all = 0, send_best = 1e9;
	int rank, size, byte = 0, came;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int round = 0; round < 20; round++) {
		double begin = MPI_Wtime(), took;

		/* bursts that fit into the ring: what the call costs, not what the disk does */
		for (long i = 0; i < count / 20; i++)
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		took = per_call(MPI_Wtime() - begin, count / 20);
		rank_all += took / 20;
		rank_best = took < rank_best ? took : rank_best;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	for (int round = 0; round < 10; round++) {
		double begin = MPI_Wtime(), took;

		for (long i = 0; i < messages / 10; i++)
			MPI_Sendrecv(&byte, 1, MPI_INT, 0, 1, &came, 1, MPI_INT, 0, 1,
				     MPI_COMM_SELF, MPI_STATUS_IGNORE);
		took = per_call(MPI_Wtime() - begin, messages / 10);
		send_best = took < send_best ? took : send_best;
	}
	if (size > 1) {
		double all = ping_pong(rank, messages), burst = 1e9;

		/* with pauses, so that nobody but the two ranks wants a processor meanwhile */
		for (int round = 0; round < 50; round++) {
			double took;

			MPI_Barrier(MPI_COMM_WORLD);
			(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
			took = ping_pong(rank, BURST);
			burst = took < burst ? took : burst;
		}
		if (!rank)
			printf("ping_pong %.2f\nping_pong_burst %.2f\n", all, burst);
	}
	if (!rank)
		printf("comm_rank %.2f\ncomm_rank_sustained %.2f\nself_sendrecv %.2f\n", rank_best,
		       rank_all, send_best);
	MPI_Finalize();
	return 0;
}
