/*
 * What came to MPI later, or is used rarely: partitioned messages, MPI_Imrecv, MPI_Comm_idup,
 * requests of files. Ranks as in mpi_messages.c. mpi_more DIRECTORY
 */
#include "mpi_app.h"

static int even, other;
static int numbers[1024];

static void partitioned(void)
{
	static int list[] = { 2 };
	MPI_Request request;
	int flag = 0;

	if (even)
		MPI_Psend_init(numbers, 4, 10, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &request);
	else
		MPI_Precv_init(numbers, 2, 20, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &request);
	say("call %s comm=world peer=%d tag=5 count=40 bytes=160 request=!",
	    even ? "MPI_Psend_init" : "MPI_Precv_init", other);
	for (int i = 0; i < 2; i++) {
		MPI_Start(&request);
		say("call MPI_Start request=!");
		if (even) {
			MPI_Pready(3, request);
			say("call MPI_Pready request=!");
			MPI_Pready_range(0, 1, request);
			say("call MPI_Pready_range request=!");
			MPI_Pready_list(1, list, request);
			say("call MPI_Pready_list request=!");
		} else {
			while (!flag) {
				MPI_Parrived(request, 1, &flag);
				say("call MPI_Parrived request=!");
			}
			flag = 0;
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		say("call MPI_Wait request=!");
		say("done %s peer=%d tag=5 count=40 bytes=160",
		    even ? "MPI_Psend_init" : "MPI_Precv_init", other);
	}
	MPI_Request_free(&request);
	say("call MPI_Request_free request=!");
}

/* The receive does not say from whom: its completion does. */
static void matched(void)
{
	MPI_Message message;
	MPI_Request request;

	if (even) {
		MPI_Send(numbers, 3, MPI_INT, other, 16, MPI_COMM_WORLD);
		say("call MPI_Send comm=world peer=%d tag=16 count=3 bytes=12", other);
		return;
	}
	MPI_Mprobe(MPI_ANY_SOURCE, 16, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	say("call MPI_Mprobe peer=%d tag=16 bytes=12", other);
	MPI_Imrecv(numbers, 9, MPI_INT, &message, &request);
	say("call MPI_Imrecv comm=world count=9 bytes=36 request=!");
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("call MPI_Wait request=!");
	say("done MPI_Imrecv peer=%d tag=16 count=3 bytes=12", other);
}

/* Two at once, and each rank uses another one of them first. */
static void duplicates(void)
{
	MPI_Comm twin[2];
	MPI_Request request[2];

	for (int i = 0; i < 2; i++) {
		MPI_Comm_idup(MPI_COMM_WORLD, &twin[i], &request[i]);
		say("call MPI_Comm_idup comm=world seq=%d request=!", 1 + i);
	}
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	say("call MPI_Waitall count=2");
	for (int i = 0; i < 2; i++) {
		say("done MPI_Comm_idup comm=world seq=%d", 1 + i);
		MPI_Comm_rank(twin[even ? i : 1 - i], &rank);
		say("call MPI_Comm_rank comm=!");
	}
	MPI_Barrier(twin[0]);
	say("call MPI_Barrier comm=! seq=1");
	MPI_Bcast(numbers, 1, MPI_INT, 0, twin[1]);
	say("call MPI_Bcast comm=! seq=1 root=0");
	for (int i = 0; i < 2; i++) {
		MPI_Comm_free(&twin[i]);
		say("call MPI_Comm_free");
	}
}

static void files(const char *directory)
{
	MPI_File file = open_data(directory);
	MPI_Request request;
	MPI_Status status;

	MPI_File_iwrite_at(file, 400 * rank, numbers, 100, MPI_INT, &request);
	say("call MPI_File_iwrite_at file=! offset=%d count=100 bytes=400 request=!", 400 * rank);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("call MPI_Wait");
	say("done MPI_File_iwrite_at file=! offset=%d count=100 bytes=400", 400 * rank);
	MPI_File_sync(file);
	say("call MPI_File_sync file=!");
	MPI_Barrier(MPI_COMM_WORLD);
	say("call MPI_Barrier");
	/* more is asked for than there is */
	MPI_File_iread_at(file, 400 * (size - 1), numbers, 200, MPI_INT, &request);
	say("call MPI_File_iread_at file=! count=200 bytes=800 request=!");
	MPI_Wait(&request, &status);
	say("call MPI_Wait");
	say("done MPI_File_iread_at file=! offset=%d count=200 bytes=400", 400 * (size - 1));
	MPI_File_iwrite_at_all(file, 400 * rank, numbers, 50, MPI_INT, &request);
	say("call MPI_File_iwrite_at_all file=! offset=%d bytes=200 request=!", 400 * rank);
	MPI_Waitall(1, &request, &status);
	say("call MPI_Waitall count=1");
	say("done MPI_File_iwrite_at_all bytes=200");
	MPI_File_close(&file);
	say("call MPI_File_close");
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, argv[1]);
	other = partner();
	even = rank < other;
	partitioned();
	matched();
	duplicates();
	files(argv[1]);
	return end();
}
