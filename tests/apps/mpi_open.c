/*
 * Requests that are not complete when the process ends. mpi_open DIRECTORY [finalize|_exit|abort]:
 * two of each rank.
 */
#include "mpi_app.h"

int main(int argc, char **argv)
{
	const char *end = argc > 2 ? argv[2] : "_exit";
	static int from[4], sent = 7;
	MPI_Request open[4];

	begin(&argc, &argv, argv[1]);
	MPI_Irecv(&from[0], 1, MPI_INT, partner(), 1, MPI_COMM_WORLD, &open[0]);
	MPI_Isend(&sent, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD, &open[1]);
	MPI_Waitall(2, open, MPI_STATUSES_IGNORE);
	/* nobody sends these; the second is a persistent one, the third was never started */
	MPI_Irecv(&from[1], 1, MPI_INT, partner(), 2, MPI_COMM_WORLD, &open[0]);
	MPI_Recv_init(&from[2], 1, MPI_INT, partner(), 3, MPI_COMM_WORLD, &open[1]);
	MPI_Start(&open[1]);
	MPI_Recv_init(&from[3], 1, MPI_INT, partner(), 4, MPI_COMM_WORLD, &open[2]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(end, "abort") && !rank)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (!strcmp(end, "_exit") || !strcmp(end, "abort")) {
		usleep(!strcmp(end, "abort") ? 10000000 : 0);
		_exit(0);
	}
	return 0;
}
