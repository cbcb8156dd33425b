/*
 * What differs between MPI libraries as seen from their callers: the width of handles, a few
 * constants, the layout of a status.
 *
 * All else is the same in every one of them, so the wrappers pass arguments on as machine words and
 * know no mpi.h.
 */
#ifndef XS_MPI_ABI_H
#define XS_MPI_ABI_H

#include <stdbool.h>
#include <stdint.h>

#define XS_MPI_STATUS_MAX 64u /* bytes; the largest of them has 32 */

enum xs_mpi_status {
	XS_MPI_STATUS_MPICH, /* int count_lo, count_hi << 1 | cancelled, source, tag, error */
	XS_MPI_STATUS_OPEN,  /* int source, tag, error, cancelled; size_t bytes */
	XS_MPI_STATUS_ABI,   /* int source, tag, error, …: the library must be asked for the rest */
};

struct xs_mpi_abi {
	const char *name;
	uint64_t handle_mask; /* what of a word is the handle */
	bool int_handles;     /* a handle in memory is an int, and Fortran's is the same */
	/* handles; of Open MPI: addresses, found at run time */
	uint64_t world, self, comm_null, request_null, byte;
	int32_t proc_null, any_source, root, undefined;
	int32_t cart, graph, dist_graph; /* kinds of topologies */
	intptr_t status_ignore;
	enum xs_mpi_status status;
	uint32_t status_size;
	int32_t error_other;
	/*
	 * classes of errors have other numbers than enum xs_mpi_error; codes of errors are their
	 * classes, and only a code that MPI has given may be asked about
	 */
	bool own_classes, codes_are_classes;
};

/* Of the library that was found; changes no more once a call has been made. */
extern struct xs_mpi_abi xs_mpi_abi;

/* An error's class as enum xs_mpi_error. */
uint32_t xs_mpi_class_of(const struct xs_mpi_abi *abi, int32_t class);

/* `find` looks a name up in the MPI library; soname: the library's. */
void xs_mpi_abi_choose(struct xs_mpi_abi *abi, const char *soname, void *(*find)(const char *name));

#endif
