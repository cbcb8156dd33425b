/*
 * Threads that make, start, complete and free each other's requests:
 *	mpi_pool SEED THREADS STEPS FILE
 * Each step takes a request of the pool and does what its state allows, as the dice say. FILE has a
 * line for each work that was started: the function that made its request, and its tag, which no
 * other request has; and for each MPI_Start() and MPI_Wait() a line "by", the function, the tag.
 *Ends with 77 where a library has no MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define POOL	    24
#define THREADS_MAX 16

enum state { UNMADE, MADE, STARTED };

static struct one {
	pthread_mutex_t mutex;
	MPI_Request request;
	enum state state;
	bool receives, persistent;
	int tag, data;
} pool[POOL];
static atomic_int tags;
static unsigned seed;
static int steps;
static FILE *file;

static void begun(const struct one *one)
{
	one->persistent
		? fprintf(file, "MPI_%s_init %d\n", one->receives ? "Recv" : "Send", one->tag)
		: fprintf(file, "MPI_I%s %d\n", one->receives ? "recv" : "send", one->tag);
}

static void make(struct one *one, unsigned *dice)
{
	void *data = &one->data;
	MPI_Request *request = &one->request;

	one->tag = atomic_fetch_add(&tags, 1);
	one->receives = rand_r(dice) % 2;
	one->persistent = rand_r(dice) % 2;
	if (one->persistent)
		one->receives
			? MPI_Recv_init(data, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF, request)
			: MPI_Send_init(data, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF, request);
	else
		one->receives ? MPI_Irecv(data, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF, request)
			      : MPI_Isend(data, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF, request);
	one->state = one->persistent ? MADE : STARTED;
	if (!one->persistent)
		begun(one);
}

static void by(const char *function, const struct one *one)
{
	fprintf(file, "by %s %d\n", function, one->tag);
}

static void start(struct one *one, unsigned *dice)
{
	if (rand_r(dice) % 2) {
		by("MPI_Start", one);
		MPI_Start(&one->request);
	} else {
		MPI_Startall(1, &one->request);
	}
	begun(one);
	one->state = STARTED;
}

static void complete(struct one *one, unsigned *dice)
{
	int other = 0, done = 0, index;

	if (one->receives)
		MPI_Send(&other, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF);
	else
		MPI_Recv(&other, 1, MPI_INT, 0, one->tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	switch (rand_r(dice) % 5) {
	case 0:
		by("MPI_Wait", one);
		MPI_Wait(&one->request, MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Waitall(1, &one->request, MPI_STATUSES_IGNORE);
		break;
	case 2:
		MPI_Waitany(1, &one->request, &index, MPI_STATUS_IGNORE);
		break;
	case 3:
		while (!done)
			MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
		break;
	default:
		while (done < 1)
			MPI_Testsome(1, &one->request, &done, &index, MPI_STATUSES_IGNORE);
	}
	one->state = one->persistent ? MADE : UNMADE;
}

static void discard(struct one *one)
{
	MPI_Request_free(&one->request);
	one->state = UNMADE;
}

static void step(struct one *one, unsigned *dice)
{
	if (one->state == UNMADE)
		make(one, dice);
	else if (one->state == STARTED)
		complete(one, dice);
	else if (rand_r(dice) % 3)
		start(one, dice);
	else
		discard(one);
}

static void *work(void *number)
{
	unsigned dice = seed * 1000 + *(unsigned *)number;

	for (int i = 0; i < steps; i++) {
		struct one *one = &pool[rand_r(&dice) % POOL];

		if (pthread_mutex_trylock(&one->mutex))
			continue;
		step(one, &dice);
		pthread_mutex_unlock(&one->mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	unsigned numbers[THREADS_MAX], count, dice = 1;
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (argc != 5 || provided != MPI_THREAD_MULTIPLE)
		exit(77);
	seed = (unsigned)atoi(argv[1]);
	count = (unsigned)atoi(argv[2]);
	steps = atoi(argv[3]);
	file = fopen(argv[4], "w");
	for (int i = 0; i < POOL; i++)
		pthread_mutex_init(&pool[i].mutex, NULL);
	for (unsigned i = 0; i < count; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, work, &numbers[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < POOL; i++) {
		if (pool[i].state == STARTED)
			complete(&pool[i], &dice);
		if (pool[i].state == MADE)
			discard(&pool[i]);
	}
	fclose(file);
	MPI_Finalize();
	return 0;
}
