/*
 * Messages that are received in other ways than they come. Each has a length of its own. Argument 1
 * says how: "once", "polls", "probes", "started", "mixed", "both", "parts".
 */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

#define COUNT  4
#define ROUNDS 30

static char data[4][100];
static int rank, wrong;
static MPI_Status status;

static void send_all(int count, int us)
{
	for (int i = 1; i <= count; i++) {
		usleep((unsigned)us);
		MPI_Send(data[0], i, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	}
}

static void has_come(int length)
{
	int count;

	MPI_Get_count(&status, MPI_CHAR, &count);
	wrong += count != length;
}

/* Tests that come too early complete nothing. */
static void once(void)
{
	MPI_Request request;
	int flag;

	for (int i = 1; i <= COUNT; i++) {
		MPI_Irecv(data[0], 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
		MPI_Test(&request, &flag, &status);
		if (!flag)
			MPI_Wait(&request, &status);
		has_come(i);
	}
}

static void polls(void)
{
	MPI_Request requests[COUNT];
	int left = COUNT, flag;

	for (int i = 0; i < COUNT; i++)
		MPI_Irecv(data[i], 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
	while (left) {
		usleep(1000);
		for (int i = COUNT - 1; i >= 0; i--) {
			if (requests[i] == MPI_REQUEST_NULL)
				continue;
			MPI_Test(&requests[i], &flag, &status);
			left -= flag;
			if (flag)
				has_come(i + 1);
		}
	}
}

static void probes(void)
{
	MPI_Message first, third;
	int flag = 0;

	MPI_Mprobe(0, 1, MPI_COMM_WORLD, &first, &status);
	MPI_Recv(data[0], 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	has_come(2);
	while (!flag)
		MPI_Improbe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, &third, &status);
	MPI_Recv(data[0], 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
	has_come(4);
	MPI_Mrecv(data[0], 9, MPI_CHAR, &third, &status);
	has_come(3);
	MPI_Mrecv(data[0], 9, MPI_CHAR, &first, &status);
	has_come(1);
}

static void started(void)
{
	MPI_Message messages[COUNT];
	MPI_Request requests[COUNT];

	for (int i = 0; i < COUNT; i++)
		MPI_Mprobe(0, 1, MPI_COMM_WORLD, &messages[i], &status);
	for (int i = COUNT - 1; i >= 0; i--)
		MPI_Imrecv(data[i], 9, MPI_CHAR, &messages[i], &requests[i]);
	for (int i = 0; i < COUNT; i++) {
		MPI_Wait(&requests[i], &status);
		has_come(i + 1);
	}
}

/* Persistent and other receives of one channel, one after the other, among many tests. */
static void mixed(void)
{
	MPI_Request requests[3];
	int flag;

	for (int n = 0; n < ROUNDS; n++) {
		int left = 3;

		MPI_Recv_init(data[1], 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[1]);
		MPI_Irecv(data[0], 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[0]);
		MPI_Start(&requests[1]);
		MPI_Irecv(data[2], 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[2]);
		for (int i = 0; left; i = (i + 1) % 3) {
			if (requests[i] == MPI_REQUEST_NULL)
				continue;
			MPI_Test(&requests[i], &flag, &status);
			if (!flag)
				continue;
			has_come(3 * n + i + 1);
			left--;
			if (i == 1)
				MPI_Request_free(&requests[1]);
		}
	}
}

/*
 * Sends and receives at once, started together; MPI 4 has it. (The statuses that MPICH 4.0 gives
 * for these are empty.)
 */
static void both(void)
{
#if MPI_VERSION >= 4
	MPI_Request requests[3];
	int other = 1 - rank, flag = 0;

	MPI_Isendrecv(data[0], 1 + rank, MPI_CHAR, other, 1, data[1], 9, MPI_CHAR, other, 1,
		      MPI_COMM_WORLD, &requests[0]);
	MPI_Isendrecv_replace(data[2], 3 + rank, MPI_CHAR, other, 2, other, 2, MPI_COMM_WORLD,
			      &requests[1]);
	MPI_Isendrecv(data[3], 5, MPI_CHAR, rank ? MPI_PROC_NULL : 1, 1, data[3] + 50, 9, MPI_CHAR,
		      rank ? 0 : MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[2]);
	MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	while (!flag)
		MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
#endif
}

/* Partitioned messages of one tag, among others, which the two ranks start in different order. */
static void parts(void)
{
#if MPI_VERSION >= 4
	MPI_Request requests[2];

	for (int i = 0; i < 2; i++)
		if (rank)
			MPI_Precv_init(data[i], 1 + i, 10, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
				       MPI_INFO_NULL, &requests[i]);
		else
			MPI_Psend_init(data[i], 1 + i, 10, MPI_CHAR, 1, 1, MPI_COMM_WORLD,
				       MPI_INFO_NULL, &requests[i]);
	for (int n = 0; n < 2; n++) {
		if (!rank)
			MPI_Send(data[2], 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		for (int i = 0; i < 2; i++)
			MPI_Start(&requests[rank ? i : 1 - i]);
		for (int i = 0; i < 2 && !rank; i++)
			MPI_Pready_range(0, i, requests[i]);
		for (int i = 0; i < 2; i++)
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		if (rank)
			MPI_Recv(data[2], 9, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < 2; i++)
		MPI_Request_free(&requests[i]);
#endif
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*receive)(void);
		int us;
	} ways[] = { { "once", once, 30000 },
		     { "polls", polls, 30000 },
		     { "probes", probes, 10000 },
		     { "started", started, 0 },
		     { "mixed", mixed, 200 } };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 5; i++)
		if (!strcmp(argv[1], ways[i].name) && rank)
			ways[i].receive();
		else if (!strcmp(argv[1], ways[i].name))
			send_all(ways[i].receive == mixed ? 3 * ROUNDS : COUNT, ways[i].us);
	if (!strcmp(argv[1], "both"))
		both();
	if (!strcmp(argv[1], "parts"))
		parts();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return wrong;
}
