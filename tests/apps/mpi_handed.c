/*
 * Threads that complete each other's requests: each waits for the one before it and starts the
 * next, mostly with the same handle. Its tag is its number. Ends with 77 where a library has no
 * MPI_THREAD_MULTIPLE.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "mpi_app.h"

#define THREADS 4

static atomic_int turn;
static int count, data;
static MPI_Request request;

static void *work(void *arg)
{
	int own = *(int *)arg, now;

	while ((now = atomic_load(&turn)) <= count) {
		if (now % THREADS != own) {
			sched_yield();
			continue;
		}
		if (now) {
			MPI_Send(&now, 1, MPI_INT, 0, now - 1, MPI_COMM_SELF);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		if (now < count)
			MPI_Irecv(&data, 1, MPI_INT, 0, now, MPI_COMM_SELF, &request);
		atomic_store(&turn, now + 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], provided;

	count = atoi(argv[1]);
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
