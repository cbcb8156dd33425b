/*
 * Messages that move only while both sides are in MPI. mpi_late DIRECTORY, two ranks: rank 1 posts
 *its receive, or begins its send, and computes in a task of its own outside MPI, while rank 0 is in
 *a call that cannot end before.
 *
 *	late <function> <task> <ns>	how long rank 1 was outside at least, while rank 0 was in
 *that call
 */
#include "mpi_app.h"

#include <time.h>

#include "ittnotify.h"

#define LARGE (4 << 20)

static char buffer[LARGE];
static __itt_domain *domain;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void compute(const char *function, const char *task, int ms)
{
	long long begin = now();

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("outer"));
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(task));
	while (now() < begin + ms * 1000000ll)
		;
	__itt_task_end(domain);
	__itt_task_end(domain);
	say("late %s late::%s %lld", function, task, now() - begin);
}

int main(int argc, char **argv)
{
	MPI_Request request;

	begin(&argc, &argv, argv[1]);
	domain = __itt_domain_create("late");
	MPI_Barrier(MPI_COMM_WORLD);
	/* a rendezvous whose receive was posted early */
	if (rank == 1) {
		MPI_Irecv(buffer, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
		MPI_Send(buffer, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
		compute("MPI_Send", "forces", 300);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buffer, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buffer, LARGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	/* the same, and the sender waits for its request */
	if (rank == 1) {
		MPI_Irecv(buffer, LARGE, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request);
		MPI_Send(buffer, 0, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
		compute("MPI_Wait", "pairs", 200);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buffer, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Isend(buffer, LARGE, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	/* a send that was begun early, and whose sender computes */
	if (rank == 1) {
		MPI_Isend(buffer, LARGE, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &request);
		MPI_Send(buffer, 0, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
		compute("MPI_Recv", "bonds", 100);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buffer, 0, MPI_CHAR, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(buffer, LARGE, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	/* small ones need nobody: the receiver computes as long, and nobody waits */
	if (rank == 1) {
		MPI_Irecv(buffer, 8, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request);
		compute("-", "alone", 50);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Send(buffer, 8, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
	}
	return end();
}
