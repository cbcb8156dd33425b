/*
 * Requests in flight, many at a time: argument 2 of them completed by one call, then as many by a
 * few at a time, in no order, then one after the other. expected: see test_mpi.py
 */
#include "mpi_app.h"

static MPI_Request *request;
static int *data;

static void post(int i)
{
	MPI_Irecv(&data[i], 1, MPI_INT, 0, i % 1000, MPI_COMM_SELF, &request[i]);
}

static void send(int i)
{
	MPI_Send(&i, 1, MPI_INT, 0, i % 1000, MPI_COMM_SELF);
}

int main(int argc, char **argv)
{
	const int many = atoi(argv[1]), few = 8;
	int left;

	MPI_Init(&argc, &argv);
	request = malloc((size_t)many * sizeof(*request));
	data = malloc((size_t)many * sizeof(*data));
	for (int i = 0; i < many; i++)
		post(i);
	for (int i = 0; i < many; i++)
		send(i);
	MPI_Waitall(many, request, MPI_STATUSES_IGNORE);
	for (int begin = 0; begin + few <= many && begin < 1000; begin += few) {
		for (int i = 0; i < few; i++)
			post(begin + i);
		for (int i = 0; i < few; i++)
			send(begin + (i * 5 + begin) % few);
		for (left = few; left; left--) {
			int index;

			MPI_Waitany(few, request + begin, &index, MPI_STATUS_IGNORE);
		}
	}
	for (int i = 0; i < many && i < 1000; i++) {
		post(i);
		send(i);
		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
