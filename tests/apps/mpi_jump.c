/*
 * A call fails, and the program's error handler leaves it by a jump. mpi_jump DIRECTORY: what is
 * called afterwards, from the same function, from one that lies deeper on the stack and from one
 * that lies higher, is in the trace.
 */
#include "mpi_app.h"

#include <setjmp.h>

static jmp_buf back;

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	longjmp(back, 1);
}

/* Of a communicator that is made a wrapper takes notice whether it records or not. */
static __attribute__((noinline)) void fail(int depth)
{
	volatile char room[400];
	MPI_Comm made;

	room[0] = (char)depth;
	if (depth)
		fail(depth - 1);
	else
		MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &made);
	room[1] = room[0];
}

static __attribute__((noinline)) void barriers(int depth)
{
	volatile char room[400];

	room[0] = (char)depth;
	if (depth)
		barriers(depth - 1);
	for (int i = 0; i < 10; i++) {
		MPI_Comm made;

		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Comm_dup(MPI_COMM_WORLD, &made);
		MPI_Comm_free(&made);
	}
	room[1] = room[0];
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;
	volatile int jumped = 0;

	begin(&argc, &argv, argv[1]);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	for (volatile int depth = 0; depth < 4; depth++) {
		if (!setjmp(back))
			fail(depth);
		else
			jumped++;
		barriers(2);
	}
	say("jumped %d", jumped);
	fclose(said);
	MPI_Finalize();
	return 0;
}
