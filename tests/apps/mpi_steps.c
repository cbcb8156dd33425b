/*
 * Steps whose parts have the lengths that they are given, so that a change can be foretold and then
 * made. mpi_steps DIRECTORY STEPS US BYTES: in each step rank r has a task "steps::compute" of
 * US * (r + 1) and one "steps::rest" of 2000 us, then each sends BYTES to the next, and all come
 * together.
 */
#include "mpi_app.h"

#include <errno.h>
#include <time.h>

#include "ittnotify.h"

static __itt_domain *domain;

static void work(const char *name, unsigned us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(name));
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
	__itt_task_end(domain);
}

int main(int argc, char **argv)
{
	int steps, bytes, sum = 0, one = 1;
	unsigned us;
	char *out, *in;

	begin(&argc, &argv, argv[1]);
	steps = atoi(argv[2]);
	us = (unsigned)atoi(argv[3]);
	bytes = atoi(argv[4]);
	out = calloc(1, (size_t)bytes);
	in = calloc(1, (size_t)bytes);
	domain = __itt_domain_create("steps");
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < steps; i++) {
		work("compute", us * (unsigned)(rank + 1));
		work("rest", 2000);
		if (rank > 0)
			MPI_Recv(in, bytes, MPI_CHAR, rank - 1, i, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		if (rank + 1 < size)
			MPI_Send(out, bytes, MPI_CHAR, rank + 1, i, MPI_COMM_WORLD);
		if (i % 3 == 2)
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
