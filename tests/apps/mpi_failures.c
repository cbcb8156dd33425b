/*
 * Calls that fail on one rank, which goes on (MPI_ERRORS_RETURN). Each message has a length of its
 * own. With --start-paused it begins to record by itself. Argument 1: "messages", or the collective
 * that fails on rank 1 alone; argument 2: recording is paused then.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char data[100];
static int rank, wrong;

static void fails(int code)
{
	wrong += code == MPI_SUCCESS;
}

static void sends(void)
{
	MPI_Request request;
	MPI_Status status;

	fails(MPI_Send(data, -1, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
	fails(MPI_Isend(data, -1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
	fails(MPI_Sendrecv(data, 5, MPI_CHAR, 1, 1, data, -1, MPI_CHAR, 1, 1, MPI_COMM_WORLD,
			   &status));
	fails(MPI_Send_init(data, -1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
	fails(MPI_Ssend(data, 5, MPI_CHAR, 99, 1, MPI_COMM_WORLD));
	usleep(50000);
	MPI_Send(data, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	MPI_Send_init(data, 2, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
	MPI_Start(&request);
	MPI_Wait(&request, &status);
	MPI_Request_free(&request);
	/* what is cut is gone */
	MPI_Send(data, 30, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	MPI_Send(data, 4, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	MPI_Sendrecv(data, 5, MPI_CHAR, 1, 1, data, 9, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &status);
	MPI_Send(data, 31, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
	MPI_Send(data, 8, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
}

static void receives(void)
{
	MPI_Request request;
	MPI_Message message;
	MPI_Status status;

	fails(MPI_Recv(data, -1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status));
	fails(MPI_Irecv(data, -1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request));
	fails(MPI_Recv(data, 9, MPI_CHAR, 99, 1, MPI_COMM_WORLD, &status));
	fails(MPI_Sendrecv(data, -1, MPI_CHAR, 0, 1, data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
			   &status));
	fails(MPI_Recv_init(data, -1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request));
	MPI_Recv(data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	MPI_Recv(data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	fails(MPI_Recv(data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status));
	MPI_Recv(data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	MPI_Sendrecv(data, 6, MPI_CHAR, 0, 1, data, 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status);
	fails(MPI_Mrecv(data, 9, MPI_CHAR, &message, &status));
	MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status);
	MPI_Mrecv(data, 9, MPI_CHAR, &message, &status);
}

static void fails_alone(const char *kind)
{
	MPI_Request request;
	MPI_Comm comm;

	if (!strcmp(kind, "root"))
		fails(MPI_Bcast(data, 1, MPI_CHAR, 99, MPI_COMM_WORLD));
	if (!strcmp(kind, "count"))
		fails(MPI_Bcast(data, -1, MPI_CHAR, 0, MPI_COMM_WORLD));
	if (!strcmp(kind, "type"))
		fails(MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
	if (!strcmp(kind, "op"))
		fails(MPI_Allreduce(data, data + 9, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
	if (!strcmp(kind, "started"))
		fails(MPI_Ibcast(data, 1, MPI_CHAR, 99, MPI_COMM_WORLD, &request));
	if (!strcmp(kind, "dup"))
		fails(MPI_Comm_dup(MPI_COMM_WORLD, NULL));
	if (!strcmp(kind, "group"))
		fails(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm));
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	setenv("PTI_ENABLE_COLLECTION", "1", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (strcmp(argv[1], "messages")) {
		if (argc > 2)
			setenv("PTI_ENABLE_COLLECTION", "0", 1);
		if (rank)
			fails_alone(argv[1]);
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
		for (int i = 0; i < 3; i++) {
			usleep(20000);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Barrier(comm);
	} else if (rank) {
		receives();
	} else {
		sends();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return wrong;
}
