/*
 * Rank 0 and each other rank say something to each other, again and again for a while, and note
 *when, by the clock that they share and that nobody fakes (fake_clock.c): "<function> <before>
 *<after>" for each message, in the order of the trace.
 *
 *	mpi_clocks DIRECTORY ROUNDS PAUSE_MS
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "mpi_app.h"

/* ns: an answer that nobody kept waiting; a busy machine gets some tries for one */
#define QUICK 5000
#define TRIES 2000
#define MOST  200000

static struct {
	const char *function;
	int64_t before, after;
} noted[MOST];
static unsigned count;

static int64_t truth(void)
{
	struct timespec time;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void send_to(int other, int again)
{
	int64_t before = truth();

	MPI_Send(&again, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
	noted[count].function = "MPI_Send";
	noted[count].before = before;
	noted[count++].after = truth();
}

static int hear_from(int other)
{
	int64_t before = truth();
	int again;

	MPI_Recv(&again, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	noted[count].function = "MPI_Recv";
	noted[count].before = before;
	noted[count++].after = truth();
	return again;
}

/* The other one answers as long as there is something to be answered. */
static void talk_to(int other)
{
	for (int n = 0; n < TRIES && count < MOST - 8; n++) {
		int64_t before = truth();

		send_to(other, 1);
		(void)hear_from(other);
		if (n > 2 && truth() - before < QUICK)
			break;
	}
	send_to(other, 0);
}

/* Who waits for another on the same processor waits for the end of its time there. */
static void take_a_processor(void)
{
	int count = 0, wanted;
	cpu_set_t all, own;

	CPU_ZERO(&own);
	if (sched_getaffinity(0, sizeof(all), &all) || !CPU_COUNT(&all))
		return;
	/* rank 0, whom all others talk to, alone on the first */
	wanted = CPU_COUNT(&all) == 1 || !rank ? 0 : 1 + (rank - 1) % (CPU_COUNT(&all) - 1);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && count++ == wanted)
			CPU_SET(i, &own);
	(void)sched_setaffinity(0, sizeof(own), &own);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? atoi(argv[2]) : 1, pause = argc > 3 ? atoi(argv[3]) : 1;
	struct timespec time = { pause / 1000, pause % 1000 * 1000000 };

	begin(&argc, &argv, argv[1]);
	take_a_processor();
	for (int round = 0; round < rounds; round++) {
		for (int other = 1; !rank && other < size; other++)
			talk_to(other);
		while (rank && hear_from(0))
			send_to(0, 1);
		nanosleep(&time, NULL);
	}
	for (unsigned i = 0; i < count; i++)
		say("%s %lld %lld", noted[i].function, (long long)noted[i].before,
		    (long long)noted[i].after);
	return end();
}
