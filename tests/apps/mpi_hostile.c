/*
 * Programs that do to MPI what nobody should; argument 1 says which. One rank. What they print is
 * the same without xstrace.
 */
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static int handled;

static void begin(void)
{
	int provided;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
}

static void after_us(int us)
{
	struct itimerval timer = { .it_value = { .tv_usec = us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- in no order ---- */

static void before(void)
{
	int rank = -1;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("rank %d\n", rank);
}

static void after(void)
{
	int over;

	begin();
	MPI_Finalize();
	MPI_Finalized(&over);
	printf("over %d\n", over);
	fflush(stdout);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void twice(void)
{
	begin();
	printf("again %d\n", MPI_Init(NULL, NULL) != 0);
	MPI_Finalize();
}

static void never(void)
{
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	int yes, length, version, sub;

	MPI_Initialized(&yes);
	MPI_Get_version(&version, &sub);
	MPI_Get_library_version(name, &length);
	printf("%d %d.%d %zu\n", yes, version, sub, strlen(name));
}

/* ---- left by jumps, threads that end ---- */

static void jump_back(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/*
 * Out of a receive that will never end; what MPI does without the network works after that, and
 * jumps out of it any number of times.
 */
static void jumps(void)
{
	static int data, rank;
	static volatile int times, sum;

	MPI_Init(NULL, NULL); /* a lock that was left by a jump would be MPI's own */
	signal(SIGALRM, jump_back);
	if (!sigsetjmp(back, 1)) {
		after_us(20000);
		MPI_Recv(&data, 1, MPI_INT, 0, 999, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	}
	for (times = 0; times < 50; times++)
		if (!sigsetjmp(back, 1)) {
			after_us(50 + times % 3 * 50);
			for (;;) {
				MPI_Type_size(MPI_INT, &data);
				MPI_Comm_rank(MPI_COMM_WORLD, &rank);
			}
		}
	for (int i = 0; i < 100; i++) {
		MPI_Type_size(MPI_INT, &data);
		sum += data;
	}
	printf("%d times, sum %d, rank %d\n", times, sum, rank);
	fflush(stdout);
	_exit(4); /* MPI_Finalize would wait for the receive */
}

static void *calls(void *unused)
{
	int size, rank;

	(void)unused;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &rank);
	for (;;) {
		MPI_Type_size(MPI_DOUBLE, &size);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	}
	return NULL;
}

/* Threads that are cancelled anywhere, and new ones in their places. */
static void cancels(void)
{
	pthread_t thread[4];
	int rank;

	begin();
	for (int round = 0; round < 25; round++) {
		for (int i = 0; i < 4; i++)
			pthread_create(&thread[i], NULL, calls, NULL);
		usleep(20 * (round % 5));
		for (int i = 0; i < 4; i++)
			pthread_cancel(thread[i]);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("cancelled, rank %d\n", rank);
	fflush(stdout);
	_exit(5);
}

static void abort_now(int signal)
{
	(void)signal;
	MPI_Abort(MPI_COMM_WORLD, 7);
}

static void aborts(void)
{
	int data;

	MPI_Init(NULL, NULL); /* with threads MPI would find its own lock held */
	signal(SIGALRM, abort_now);
	after_us(20000);
	MPI_Recv(&data, 1, MPI_INT, 0, 999, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void child(void)
{
	int status = 0, sum = 0, one = 1;

	begin();
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (!pid) {
			MPI_Comm_size(MPI_COMM_SELF, &sum);
			_exit(sum);
		}
		waitpid(pid, &status, 0);
		one += WEXITSTATUS(status);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	printf("children %d, sum %d\n", one, sum);
	MPI_Finalize();
}

/* ---- errors ---- */

static void count_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled++;
}

static void jump_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled++;
	siglongjmp(back, 1);
}

/* Each wrong call calls the handler once. */
static void errors(void)
{
	MPI_Comm gone, bad;
	MPI_Errhandler count, jump;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Datatype type = MPI_DATATYPE_NULL;
	volatile int jumps = 0;
	int x = 0, errors = 0;

	MPI_Init(NULL, NULL);
	MPI_Comm_create_errhandler(count_error, &count);
	MPI_Comm_create_errhandler(jump_error, &jump);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, count);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, count);
	MPI_Comm_dup(MPI_COMM_SELF, &gone);
	bad = gone;
	MPI_Comm_free(&gone);
	errors += MPI_Send(&x, 1, MPI_INT, 0, 0, bad) != 0;
	errors += MPI_Bcast(&x, 1, MPI_INT, 0, bad) != 0;
	errors += MPI_Comm_dup(bad, &gone) != 0;
	errors += MPI_Barrier(MPI_COMM_NULL) != 0;
	errors += MPI_Send(&x, 1, type, 0, 0, MPI_COMM_WORLD) != 0;
	errors += MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_WORLD) != 0;
	errors += MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) != 0;
	errors += MPI_Irecv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL) != 0;
	errors += MPI_Wait(NULL, MPI_STATUS_IGNORE) != 0;
	errors += MPI_Waitall(3, NULL, MPI_STATUSES_IGNORE) != 0;
	errors += MPI_Waitall(-3, &request, MPI_STATUSES_IGNORE) != 0;
	errors += MPI_Test(&request, NULL, MPI_STATUS_IGNORE) != 0;
	errors += MPI_Startall(2, NULL) != 0;
	errors += MPI_Start(NULL) != 0;
	errors += MPI_Comm_free(NULL) != 0;
	errors += MPI_Win_fence(0, MPI_WIN_NULL) != 0;
	printf("%d errors, %d handled\n", errors, handled);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, jump);
	for (int i = 0; i < 1000; i++)
		if (sigsetjmp(back, 0))
			jumps++;
		else if (i % 2)
			MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
		else
			MPI_Bcast(&x, 1, MPI_INT, 77, MPI_COMM_WORLD);
	printf("%d jumps, %d handled\n", jumps, handled);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	fflush(stdout);
	_exit(6);
}

/* ---- requests ---- */

static void many(void)
{
	enum { MANY = 100000, STEP = 100 }; /* most of them are none */
	MPI_Request *request = malloc(2 * MANY * sizeof(*request));
	MPI_Status *status = malloc(2 * MANY * sizeof(*status));
	int *index = malloc(2 * MANY * sizeof(*index)), *data = calloc(MANY, sizeof(*data)), done,
	    sum = 0, bytes = 0;

	begin();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2 * MANY; i++)
			request[i] = MPI_REQUEST_NULL;
		for (int i = 0; i < MANY; i += STEP)
			MPI_Irecv(&data[i], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request[i]);
		for (int i = 0; i < MANY; i += STEP)
			MPI_Isend(&i, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request[MANY + i]);
		if (round == 0)
			MPI_Waitall(2 * MANY, request, MPI_STATUSES_IGNORE);
		else if (round == 1)
			MPI_Waitall(2 * MANY, request, status);
		else
			for (int left = 2 * MANY / STEP; left > 0; left -= done)
				MPI_Testsome(2 * MANY, request, &done, index, status);
		for (int i = 0; i < MANY; i++)
			sum += data[i] > 0;
	}
	for (int i = 0; i < 10; i++) {
		MPI_Get_count(&status[i], MPI_INT, &done);
		bytes += done;
	}
	/* some are freed while they are on their way, some cancelled */
	for (int i = 0; i < 1000; i++) {
		MPI_Irecv(&data[i], 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request[0]);
		MPI_Isend(&i, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request[1]);
		MPI_Request_free(&request[1]);
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
		MPI_Irecv(&data[i], 1, MPI_INT, 0, 8, MPI_COMM_SELF, &request[1]);
		MPI_Cancel(&request[1]);
		MPI_Wait(&request[1], MPI_STATUS_IGNORE);
	}
	printf("sum %d, %d received\n", sum, bytes);
	MPI_Finalize();
}

/* ---- MPI_IN_PLACE ---- */

static void in_place(void)
{
	int x[4] = { 1, 2, 3, 4 }, one = 1, zero = 0;

	begin();
	MPI_Allreduce(MPI_IN_PLACE, x, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce(MPI_IN_PLACE, x, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, &one, &zero, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Scatter(x, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	MPI_Scatterv(x, &one, &zero, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0,
		     MPI_COMM_WORLD);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, &one, &zero, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, x, &one, &zero, MPI_INT,
		      MPI_COMM_WORLD);
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, x, &one, &zero, (MPI_Datatype[]){ MPI_INT },
		      MPI_COMM_WORLD);
	MPI_Reduce_scatter(MPI_IN_PLACE, x, &one, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce_scatter_block(MPI_IN_PLACE, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Scan(MPI_IN_PLACE, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%d %d %d %d\n", x[0], x[1], x[2], x[3]);
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "before", before }, { "after", after },	     { "twice", twice },
		      { "never", never },   { "jumps", jumps },	     { "cancels", cancels },
		      { "aborts", aborts }, { "child", child },	     { "errors", errors },
		      { "many", many },	    { "in_place", in_place } };

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kinds[i].run();
	return 0;
}
