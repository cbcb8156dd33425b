/*
 * Whose data a collective gets, where the arguments say that of each partner: a rank that gets
 * nothing from a partner does not wait for it.
 */
#include "mpi_comms.h"
#include "mpi_record.h"

/* Ranks are put in, in any order. */
struct set {
	int32_t count; /* ranks that there are */
	int32_t found; /* that were put in, each as often as it was */
	uint64_t low;  /* of communicators that fit into the word */
	uint64_t *bits;
};

static size_t size_of(int32_t count)
{
	return ((uint32_t)count + 63) / 64 * sizeof(uint64_t);
}

/*
 * MPI allows one thread at a time on a communicator: what does not fit into a word has one place
 * there.
 */
static bool begin(struct set *set, struct xs_mpi_comm *comm)
{
	*set = (struct set){ .count = comm->count };
	if (comm->count <= (int32_t)XS_MPI_FROM_BITS)
		return true;
	if (!comm->set && size_of(comm->count) <= XS_STRING_MAX)
		comm->set = xs_mpi_take(size_of(comm->count));
	set->bits = comm->set;
	if (set->bits)
		memset(set->bits, 0, size_of(comm->count));
	return set->bits;
}

void xs_mpi_from_free(struct xs_mpi_comm *comm)
{
	if (comm->set)
		xs_mpi_give(comm->set, size_of(comm->count));
}

static void put(struct set *set, int32_t rank)
{
	if (rank < 0 || rank >= set->count)
		return;
	set->found++;
	if (set->bits)
		set->bits[rank / 64] |= 1ull << rank % 64;
	else
		set->low |= 1ull << rank;
}

static uint64_t finish(struct set *set)
{
	uint64_t word = set->low;
	uint32_t id;

	if (set->bits) {
		id = set->found
			     ? xs_companion_intern((const char *)set->bits,
						   (uint32_t)size_of(set->count), XS_MPI_SET_SCOPE)
			     : 0;
		word = !set->found ? 0 : id <= 1 ? XS_MPI_FROM_UNKNOWN : XS_MPI_FROM_SET | id;
	}
	return word;
}

uint64_t xs_mpi_from_own(const struct xs_mpi_call *call, const struct xs_mpi_comm *comm,
			 const void *counts, bool wide, uint64_t type)
{
	int64_t size;

	if (call->result || !counts || comm->rank >= comm->local)
		return XS_MPI_FROM_UNKNOWN;
	if (!xs_mpi_element(counts, wide, comm->rank))
		return 0;
	return !xs_mpi_size_of(type, &size) ? XS_MPI_FROM_UNKNOWN : size ? XS_MPI_FROM_ALL : 0;
}

/*
 * Of `number` partners, who are the ranks in `partners`, or the first ones of all; `types`: of
 * each, NULL: `type` of all.
 */
static uint64_t from(const struct xs_mpi_call *call, struct xs_mpi_comm *comm, int32_t number,
		     const int32_t *partners, const void *counts, bool wide, uint64_t type,
		     const void *types, bool fortran)
{
	int64_t size = 1;
	int32_t zeros = 0;
	struct set set;

	if (call->result || (number && !counts))
		return XS_MPI_FROM_UNKNOWN;
	for (int32_t i = 0; i < number; i++)
		zeros += !xs_mpi_element(counts, wide, i);
	if (zeros == number)
		return 0;
	if (!types && !xs_mpi_size_of(type, &size))
		return XS_MPI_FROM_UNKNOWN;
	if (!size)
		return 0;
	if (!zeros && !types && !partners)
		return XS_MPI_FROM_ALL;
	if (!begin(&set, comm))
		return XS_MPI_FROM_UNKNOWN;
	for (int32_t i = 0; i < number; i++) {
		if (!xs_mpi_element(counts, wide, i))
			continue;
		if (types && (!xs_mpi_size_of(xs_mpi_type_at(types, fortran, i), &size) || !size))
			continue;
		put(&set, partners ? partners[i] : i);
	}
	return finish(&set);
}

uint64_t xs_mpi_from_counts(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
			    const void *counts, bool wide, uint64_t type)
{
	return from(call, comm, comm->count, NULL, counts, wide, type, NULL, false);
}

uint64_t xs_mpi_from_types(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
			   const void *counts, bool wide, const void *types, bool fortran)
{
	return types ? from(call, comm, comm->count, NULL, counts, wide, 0, types, fortran)
		     : XS_MPI_FROM_UNKNOWN;
}

uint64_t xs_mpi_from_near(const struct xs_mpi_call *call, struct xs_mpi_comm *comm, int64_t count,
			  uint64_t type)
{
	const int32_t *sources;
	struct set set;
	int32_t number;
	int64_t size;

	if (!count)
		return 0;
	sources = call->result ? NULL : xs_mpi_sources(comm, &number);
	if (!sources || !xs_mpi_size_of(type, &size))
		return XS_MPI_FROM_UNKNOWN;
	if (!size)
		return 0;
	if (!begin(&set, comm))
		return XS_MPI_FROM_UNKNOWN;
	for (int32_t i = 0; i < number; i++)
		put(&set, sources[i]);
	return finish(&set);
}

uint64_t xs_mpi_from_near_counts(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
				 const void *counts, bool wide, uint64_t type)
{
	int32_t number;
	const int32_t *sources = call->result ? NULL : xs_mpi_sources(comm, &number);

	return sources ? from(call, comm, number, sources, counts, wide, type, NULL, false)
		       : XS_MPI_FROM_UNKNOWN;
}

uint64_t xs_mpi_from_near_types(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
				const void *counts, bool wide, const void *types, bool fortran)
{
	int32_t number;
	const int32_t *sources = call->result ? NULL : xs_mpi_sources(comm, &number);

	return sources && (types || !number)
		       ? from(call, comm, number, sources, counts, wide, 0, types, fortran)
		       : XS_MPI_FROM_UNKNOWN;
}
