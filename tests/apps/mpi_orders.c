/*
 * Rank 0 sends messages of 1, 2, 3, … ints to rank 1, which posts receives of all kinds for them
 * and completes them in another order: each gets the message that is as long as it was posted
 * early.
 */
#include <mpi.h>

#define COUNT 7
#define LATE  4

static int sent[COUNT], got[COUNT][COUNT];

/*
 * The second and the last but one of these are cancelled when all are posted, and the first when it
 * has its message.
 */
static int cancel_behind(int rank)
{
	MPI_Request requests[LATE + 2];
	MPI_Status status;
	int count, wrong = 0, is_cancelled;

	for (int i = 0; rank && i < LATE + 2; i++)
		MPI_Irecv(got[i], COUNT, MPI_INT, 0, 6, MPI_COMM_WORLD, &requests[i]);
	if (rank) {
		MPI_Cancel(&requests[1]);
		MPI_Cancel(&requests[LATE]);
		MPI_Wait(&requests[LATE], MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; !rank && i <= LATE; i++)
		MPI_Send(sent, i + 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		return 0;
	MPI_Recv(got[0], COUNT, MPI_INT, 0, 6, MPI_COMM_WORLD, &status); /* behind all of them */
	MPI_Get_count(&status, MPI_INT, &count);
	wrong += count != LATE + 1;
	MPI_Wait(&requests[LATE + 1], &status);
	MPI_Get_count(&status, MPI_INT, &count);
	wrong += count != LATE;
	MPI_Cancel(&requests[0]); /* too late */
	for (int i = 0; i < LATE; i++) {
		MPI_Wait(&requests[i], &status);
		MPI_Get_count(&status, MPI_INT, &count);
		MPI_Test_cancelled(&status, &is_cancelled);
		wrong += i == 1 ? !is_cancelled : is_cancelled || count != i + !i;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	MPI_Request requests[COUNT - 1];
	MPI_Status status;
	int rank, count, wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank) {
		/* what is cancelled gets nothing */
		for (int i = 0; i < 2; i++) {
			MPI_Irecv(got[i], COUNT, MPI_INT, i ? 0 : MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
				  &requests[i]);
			MPI_Cancel(&requests[i]);
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		}
		MPI_Recv_init(got[4], COUNT, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[4]);
		MPI_Recv_init(got[1], COUNT, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
			      &requests[1]);
		MPI_Recv_init(got[5], COUNT, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[5]);
		MPI_Irecv(got[0], COUNT, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			  &requests[0]);
		MPI_Start(&requests[1]);
		MPI_Irecv(got[2], COUNT, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[2]);
		MPI_Irecv(got[3], COUNT, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[3]);
		MPI_Startall(2, requests + 4);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; !rank && i < COUNT; i++)
		MPI_Send(sent, i + 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
	if (rank) {
		MPI_Recv(got[6], COUNT, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = COUNT - 2; i >= 0; i--) {
			MPI_Wait(&requests[i], &status);
			MPI_Get_count(&status, MPI_INT, &count);
			wrong += count != i + 1;
		}
		MPI_Request_free(&requests[1]);
		MPI_Request_free(&requests[4]);
		MPI_Request_free(&requests[5]);
	}
	wrong += cancel_behind(rank);
	MPI_Finalize();
	return wrong;
}
