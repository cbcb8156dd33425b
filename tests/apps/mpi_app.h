/*
 * What the MPI programs share: each rank writes into a file of its own what its trace must hold, in
 *the order in which it does it.
 *
 *	call <function> [key=value …]	a slice of the thread with at least these arguments
 *	done <function> [key=value …]	the work of a request
 */
#ifndef XSTRACE_TESTS_MPI_APP_H
#define XSTRACE_TESTS_MPI_APP_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static FILE *said;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(said, format, args);
	va_end(args);
	fputc('\n', said);
}

/* The first calls of nearly every program here. */
static inline void begin(int *argc, char ***argv, const char *directory)
{
	char path[4096];

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(path, sizeof(path), "%s/said.%d", directory, rank);
	said = fopen(path, "w");
	if (!said)
		MPI_Abort(MPI_COMM_WORLD, 9);
	say("call MPI_Init");
	say("call MPI_Comm_rank comm=world");
	say("call MPI_Comm_size comm=world");
}

/* Each even rank talks to the next. */
static inline int partner(void)
{
	return rank % 2 ? rank - 1 : rank + 1;
}

static inline MPI_File open_data(const char *directory)
{
	char path[4200];
	MPI_File file;

	snprintf(path, sizeof(path), "%s/data", directory);
	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	say("call MPI_File_open comm=world");
	return file;
}

static inline int end(void)
{
	MPI_Finalize();
	say("call MPI_Finalize");
	fclose(said);
	return 0;
}

#endif
