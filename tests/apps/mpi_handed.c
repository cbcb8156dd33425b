/*
 * Threads that complete each other's requests: each waits for the one before it and starts the
 * next, mostly with the same handle. Its tag is its number. With a second argument requests are
 * persistent: each is made by one thread, started by the next one, and freed by the one behind
 * that. Ends with 77 where a library has no MPI_THREAD_MULTIPLE.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "mpi_app.h"

#define THREADS 4

static atomic_int turn;
static int count, data;
static MPI_Request request;

static void complete(int tag)
{
	MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_SELF);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Two turns a request: in the first one it is made, in the second one started. */
static void persistent(int now)
{
	if (now % 2) {
		MPI_Start(&request);
		return;
	}
	if (now) {
		complete(now / 2 - 1);
		MPI_Request_free(&request);
	}
	if (now < count)
		MPI_Recv_init(&data, 1, MPI_INT, 0, now / 2, MPI_COMM_SELF, &request);
}

static void immediate(int now)
{
	if (now)
		complete(now - 1);
	if (now < count)
		MPI_Irecv(&data, 1, MPI_INT, 0, now, MPI_COMM_SELF, &request);
}

static void (*step)(int now) = immediate;

static void *work(void *arg)
{
	int own = *(int *)arg, now;

	while ((now = atomic_load(&turn)) <= count) {
		if (now % THREADS != own) {
			sched_yield();
			continue;
		}
		step(now);
		atomic_store(&turn, now + 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], provided;

	count = atoi(argv[1]);
	if (argc > 2) {
		step = persistent;
		count *= 2;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, work, &numbers[i]);
	}
	for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++)
		pthread_join(threads[i], NULL);
	MPI_Finalize();
	return provided == MPI_THREAD_MULTIPLE ? 0 : 77;
}
