/*
 * Point-to-point messages in all their forms, between an even number of ranks: each even rank with
 * the next. mpi_messages DIRECTORY [no errors]
 */
#include "mpi_app.h"

static int even, other;
static int numbers[1024], more[1024];

static void blocking(void)
{
	MPI_Status status;
	MPI_Datatype column;
	int flag = 0, elements;
	MPI_Message message;

	/* a column of a matrix: 16 integers with gaps are 64 bytes */
	MPI_Type_vector(16, 1, 8, MPI_INT, &column);
	say("call MPI_Type_vector");
	MPI_Type_commit(&column);
	say("call MPI_Type_commit");
	if (even) {
		MPI_Send(numbers, 2, column, other, 11, MPI_COMM_WORLD);
		say("call MPI_Send comm=world peer=%d tag=11 count=2 bytes=128", other);
		MPI_Ssend(numbers, 3, MPI_DOUBLE, other, 12, MPI_COMM_WORLD);
		say("call MPI_Ssend peer=%d tag=12 count=3 bytes=24", other);
		MPI_Send(numbers, 5, MPI_SHORT, other, 13, MPI_COMM_WORLD);
		say("call MPI_Send peer=%d tag=13 count=5 bytes=10", other);
		MPI_Send(numbers, 7, MPI_BYTE, other, 14, MPI_COMM_WORLD);
		say("call MPI_Send peer=%d tag=14 count=7 bytes=7", other);
		MPI_Send(numbers, 0, MPI_INT, MPI_PROC_NULL, 15, MPI_COMM_WORLD);
		say("call MPI_Send peer=-1 tag=15 count=0 bytes=0");
	} else {
		MPI_Recv(numbers, 2, column, other, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		say("call MPI_Recv comm=world peer=%d tag=11 count=2 bytes=128", other);
		/* from anybody, any tag, and room for more than comes */
		MPI_Recv(numbers, 100, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 &status);
		say("call MPI_Recv peer=%d tag=12 count=3 bytes=24", other);
		MPI_Get_count(&status, MPI_DOUBLE, &elements);
		say("call MPI_Get_count");
		if (elements != 3 || status.MPI_SOURCE != other)
			MPI_Abort(MPI_COMM_WORLD, 3);
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		say("call MPI_Probe peer=%d tag=13 bytes=10", other);
		MPI_Mprobe(MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
		say("call MPI_Mprobe peer=%d tag=13 bytes=10", other);
		MPI_Mrecv(numbers, 9, MPI_SHORT, &message, MPI_STATUS_IGNORE);
		say("call MPI_Mrecv comm=world peer=%d tag=13 count=5 bytes=10", other);
		MPI_Recv(numbers, 9, MPI_BYTE, other, 14, MPI_COMM_WORLD, &status);
		say("call MPI_Recv peer=%d tag=14 count=7 bytes=7", other);
		MPI_Iprobe(other, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		say("call MPI_Iprobe peer=%d tag=99", other);
	}
	MPI_Sendrecv(numbers, 4, MPI_INT, other, 20 + even, more, 100, MPI_INT, MPI_ANY_SOURCE,
		     21 - even, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	say("call MPI_Sendrecv peer=%d tag=%d count=4 bytes=16 recv_peer=%d recv_tag=%d "
	    "recv_bytes=16",
	    other, 20 + even, other, 21 - even);
	MPI_Sendrecv_replace(numbers, 6, MPI_INT, other, 30, other, 30, MPI_COMM_WORLD, &status);
	say("call MPI_Sendrecv_replace peer=%d tag=30 bytes=24 recv_peer=%d recv_tag=30 "
	    "recv_bytes=24",
	    other, other);
	MPI_Type_free(&column);
	say("call MPI_Type_free");
}

/* Completed in another order than they were started. */
static void nonblocking(void)
{
	MPI_Request requests[4];
	MPI_Status statuses[4];
	int index, count, indices[4], flag = 0;

	for (int i = 0; i < 4; i++) {
		MPI_Irecv(numbers + 100 * i, 100, MPI_INT, i & 1 ? MPI_ANY_SOURCE : other, 40 + i,
			  MPI_COMM_WORLD, &requests[i]);
		if (i & 1)
			say("call MPI_Irecv tag=%d", 40 + i);
		else
			say("call MPI_Irecv peer=%d tag=%d count=100 bytes=400", other, 40 + i);
	}
	for (int i = 3; i >= 0; i--) {
		MPI_Send(more, 10 + i, MPI_INT, other, 40 + i, MPI_COMM_WORLD);
		say("call MPI_Send peer=%d tag=%d bytes=%d", other, 40 + i, 40 + 4 * i);
	}
	MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
	say("call MPI_Wait");
	say("done MPI_Irecv peer=%d tag=42 count=12 bytes=48", other);
	MPI_Wait(&requests[1], &statuses[0]);
	say("call MPI_Wait");
	say("done MPI_Irecv peer=%d tag=41 count=11 bytes=44", other);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* two of them are null by now */
	say("call MPI_Waitall count=4");
	say("done MPI_Irecv peer=%d tag=40 count=10 bytes=40", other);
	say("done MPI_Irecv peer=%d tag=43 count=13 bytes=52", other);

	MPI_Irecv(numbers, 10, MPI_INT, other, 50, MPI_COMM_WORLD, &requests[0]);
	say("call MPI_Irecv tag=50");
	MPI_Isend(more, 10, MPI_INT, other, 50, MPI_COMM_WORLD, &requests[1]);
	say("call MPI_Isend peer=%d tag=50 count=10 bytes=40", other);
	MPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE);
	say("call MPI_Waitany count=1");
	say("done MPI_Irecv peer=%d tag=50 bytes=40", other);
	MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
	say("call MPI_Waitsome count=2");
	say("done MPI_Isend peer=%d tag=50 bytes=40", other);

	MPI_Issend(more, 1, MPI_INT, other, 51, MPI_COMM_WORLD, &requests[0]);
	say("call MPI_Issend peer=%d tag=51", other);
	MPI_Recv(numbers, 1, MPI_INT, other, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	say("call MPI_Recv tag=51 bytes=4");
	while (!flag) {
		MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
		say("call MPI_Test");
	}
	say("done MPI_Issend peer=%d tag=51 bytes=4", other);
}

static void persistent(void)
{
	MPI_Request requests[2];

	MPI_Send_init(more, 8, MPI_INT, other, 60, MPI_COMM_WORLD, &requests[0]);
	say("call MPI_Send_init peer=%d tag=60 bytes=32", other);
	MPI_Recv_init(numbers, 80, MPI_INT, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &requests[1]);
	say("call MPI_Recv_init tag=60");
	for (int i = 0; i < 3; i++) {
		if (i) {
			MPI_Startall(2, requests);
			say("call MPI_Startall");
		} else {
			MPI_Start(&requests[0]);
			say("call MPI_Start");
			MPI_Start(&requests[1]);
			say("call MPI_Start");
		}
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		say("call MPI_Waitall count=2");
		say("done MPI_Send_init peer=%d tag=60 bytes=32", other);
		say("done MPI_Recv_init peer=%d tag=60 count=8 bytes=32", other);
	}
	MPI_Request_free(&requests[0]);
	say("call MPI_Request_free");
	MPI_Request_free(&requests[1]);
	say("call MPI_Request_free");
}

/* The ranks in another order, so that a partner's rank here is not that of the world. */
static void other_communicators(void)
{
	MPI_Comm turned, half;
	MPI_Request request;
	int here = size - 1 - rank, there = size - 1 - other;

	MPI_Comm_split(MPI_COMM_WORLD, 0, here, &turned);
	say("call MPI_Comm_split comm=world seq=1");
	MPI_Irecv(numbers, 10, MPI_INT, MPI_ANY_SOURCE, 70, turned, &request);
	say("call MPI_Irecv tag=70");
	MPI_Send(more, 3, MPI_INT, there, 70, turned);
	say("call MPI_Send peer=%d tag=70 bytes=12", other);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("call MPI_Wait");
	say("done MPI_Irecv peer=%d tag=70 count=3 bytes=12", other);
	MPI_Barrier(turned);
	say("call MPI_Barrier seq=1");
	MPI_Bcast(more, 2, MPI_INT, size - 1, turned);
	say("call MPI_Bcast root=0 bytes=8 seq=2");
	MPI_Comm_split(turned, even, 0, &half);
	say("call MPI_Comm_split seq=3");
	MPI_Allreduce(more, numbers, 4, MPI_INT, MPI_SUM, half);
	say("call MPI_Allreduce count=4 bytes=16 seq=1");
	MPI_Comm_free(&half);
	say("call MPI_Comm_free");
	MPI_Comm_free(&turned);
	say("call MPI_Comm_free");
}

static void errors(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	say("call MPI_Comm_set_errhandler");
	if (MPI_Send(more, 1, MPI_INT, size + 5, 80, MPI_COMM_WORLD) == MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 4);
	say("call MPI_Send tag=80 result=!");
	if (MPI_Send(more, 1, MPI_DATATYPE_NULL, other, 81, MPI_COMM_WORLD) == MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 5);
	say("call MPI_Send peer=%d tag=81 result=!", other);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, argv[1]);
	other = partner();
	even = rank < other;
	blocking();
	nonblocking();
	persistent();
	other_communicators();
	if (argc < 3)
		errors();
	return end();
}
