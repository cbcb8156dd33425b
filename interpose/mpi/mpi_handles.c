/*
 * Handles and statuses as C and Fortran pass them.
 */
#include "mpi_wrap.h"

static void *from_fortran[XS_MPI_KIND_SESSION + 1];
static void *const *ignore[2][2]; /* [f08][many]: where Fortran's addresses stand */

void xs_mpi_handles_find(void)
{
	/* the ABI of MPI 5 has the second alone */
#define CONVERSIONS(kind) { "PMPI_" kind "_f2c", "PMPI_" kind "_fromint" }
	static const char *const kinds[][2] = {
		[XS_MPI_KIND_COMM] = CONVERSIONS("Comm"),
		[XS_MPI_KIND_TYPE] = CONVERSIONS("Type"),
		[XS_MPI_KIND_REQUEST] = CONVERSIONS("Request"),
		[XS_MPI_KIND_MESSAGE] = CONVERSIONS("Message"),
		[XS_MPI_KIND_WIN] = CONVERSIONS("Win"),
		[XS_MPI_KIND_FILE] = CONVERSIONS("File"),
		[XS_MPI_KIND_SESSION] = CONVERSIONS("Session"),
	};
	/* MPICH's f08 has its own; Open MPI's has that of mpif.h */
	static const char *const names[2][2] = { { "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE" },
						 { "MPI_F08_STATUS_IGNORE",
						   "MPI_F08_STATUSES_IGNORE" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		from_fortran[i] = xs_mpi_find_in(kinds[i][0]);
		if (!from_fortran[i])
			from_fortran[i] = xs_mpi_find_in(kinds[i][1]);
	}
	for (int f08 = 0; f08 < 2; f08++)
		for (int many = 0; many < 2; many++) {
			void *found = xs_mpi_find_data(names[f08][many]);

			ignore[f08][many] = f08 && !found ? ignore[0][many] : found;
		}
}

uint64_t xs_mpi_from_fortran(enum xs_mpi_kind kind, int32_t handle)
{
	void *function = from_fortran[kind];

	/* MPICH's are the same ints, except for files */
	if (xs_mpi_abi.int_handles && kind != XS_MPI_KIND_FILE)
		return (uint32_t)handle;
	return function ? (uint64_t)((intptr_t (*)(int))function)(handle) : 0;
}

bool xs_mpi_ignored(xs_word status, enum xs_mpi_ignore kind, bool many)
{
	void *const *place;

	if (kind == XS_MPI_IGNORE_C)
		return status == xs_mpi_abi.status_ignore;
	place = ignore[kind == XS_MPI_IGNORE_F08][many];
	return !status || (place && (intptr_t)*place == status);
}

uint64_t xs_mpi_load(const void *handle)
{
	return xs_mpi_abi.int_handles ? *(const uint32_t *)handle : *(const uint64_t *)handle;
}
