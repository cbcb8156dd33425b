/*
 * How much a call moves, where that takes more than a count and a datatype.
 *
 * Only arguments that MPI looks at itself may be read: MPI_IN_PLACE and roots make some of them
 * meaningless, and a handle that means nothing must not be asked about.
 */
#include "mpi_wrap.h"

static const struct xs_mpi_amount unknown = { INT64_MIN, INT64_MIN, 0 };

static bool is_root(const struct xs_mpi_comm *comm, int32_t root)
{
	return comm->inter ? root == xs_mpi_abi.root : root == comm->rank;
}

/* A rank of the root's group that is not the root itself. */
static bool is_nobody(const struct xs_mpi_comm *comm, int32_t root)
{
	return comm->inter && root == xs_mpi_abi.proc_null;
}

struct xs_mpi_amount xs_mpi_amount_but(const struct xs_mpi_call *call,
				       const struct xs_mpi_comm *comm, int32_t root, int64_t count,
				       uint64_t type)
{
	return is_nobody(comm, root) ? unknown : xs_mpi_amount(call, count, type);
}

struct xs_mpi_amount xs_mpi_amount_root(const struct xs_mpi_call *call,
					const struct xs_mpi_comm *comm, int32_t root,
					int64_t at_root, uint64_t type_at_root, int64_t count,
					uint64_t type)
{
	if (is_nobody(comm, root))
		return unknown;
	return is_root(comm, root) ? xs_mpi_amount(call, at_root, type_at_root)
				   : xs_mpi_amount(call, count, type);
}

struct xs_mpi_amount xs_mpi_amount_own(const struct xs_mpi_call *call,
				       const struct xs_mpi_comm *comm, const void *counts,
				       bool wide, uint64_t type)
{
	if (call->result || comm->inter || !counts || comm->rank >= comm->count)
		return unknown;
	return xs_mpi_amount(call, xs_mpi_element(counts, wide, comm->rank), type);
}

struct xs_mpi_amount xs_mpi_amount_given(const struct xs_mpi_call *call,
					 const struct xs_mpi_comm *comm, const void *counts,
					 bool wide, uint64_t type, int64_t count,
					 uint64_t type_given)
{
	return comm->inter ? xs_mpi_amount(call, count, type_given)
			   : xs_mpi_amount_own(call, comm, counts, wide, type);
}

struct xs_mpi_amount xs_mpi_amount_own_root(const struct xs_mpi_call *call,
					    const struct xs_mpi_comm *comm, int32_t root,
					    const void *counts, bool wide, uint64_t type_at_root,
					    int64_t count, uint64_t type)
{
	if (is_nobody(comm, root))
		return unknown;
	return is_root(comm, root) ? xs_mpi_amount_own(call, comm, counts, wide, type_at_root)
				   : xs_mpi_amount(call, count, type);
}

struct xs_mpi_amount xs_mpi_amount_sum(const struct xs_mpi_call *call, int32_t number,
				       const void *counts, bool wide, uint64_t type)
{
	int64_t sum = 0;

	if (call->result || !counts)
		return unknown;
	for (int32_t i = 0; i < number; i++)
		sum += xs_mpi_element(counts, wide, i);
	return xs_mpi_amount(call, sum, type);
}

struct xs_mpi_amount xs_mpi_amount_types(const struct xs_mpi_call *call, int32_t number,
					 const void *counts, bool wide, const void *types,
					 bool fortran)
{
	struct xs_mpi_amount sum = { 0, 0, 0 };

	if (call->result || !counts || !types)
		return unknown;
	for (int32_t i = 0; i < number; i++) {
		int64_t count = xs_mpi_element(counts, wide, i);
		struct xs_mpi_amount one;

		if (!count)
			continue;
		one = xs_mpi_amount(call, count, xs_mpi_type_at(types, fortran, i));
		sum.count += count;
		sum.bytes += one.bytes > 0 ? one.bytes : 0;
	}
	return sum;
}
