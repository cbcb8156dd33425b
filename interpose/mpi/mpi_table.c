/*
 * From handles to communicators, windows and files. Looking up takes no lock; whoever changes the
 * table holds xs_mpi_comms_lock.
 */
#include "mpi_comms.h"

struct slot {
	_Atomic uint64_t handle; /* 0: free, and the end of a search */
	struct xs_mpi_comm *_Atomic comm;
};

struct table {
	uint32_t size, used; /* size: power of two; used: with tombs */
	struct slot slot[];
};

_Atomic uint32_t xs_mpi_comms_lock;
static struct table *_Atomic comms;

uint32_t xs_mpi_place(uint64_t handle, uint32_t size)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15ull >> 32) & (size - 1);
}

struct xs_mpi_comm *xs_mpi_look_up(uint64_t handle)
{
	const struct table *table = atomic_load_explicit(&comms, memory_order_acquire);
	uint64_t found;

	if (!table || handle <= XS_MPI_TOMB)
		return NULL;
	for (uint32_t i = xs_mpi_place(handle, table->size);; i++) {
		/* pairs with the release in put_in() */
		found = atomic_load_explicit(&table->slot[i & (table->size - 1)].handle,
					     memory_order_acquire);
		if (found == handle)
			return atomic_load_explicit(&table->slot[i & (table->size - 1)].comm,
						    memory_order_relaxed);
		if (!found)
			return NULL;
	}
}

static void put_in(struct table *table, uint64_t handle, struct xs_mpi_comm *comm)
{
	uint32_t i = xs_mpi_place(handle, table->size);

	while (atomic_load_explicit(&table->slot[i & (table->size - 1)].handle,
				    memory_order_relaxed))
		i++;
	table->used++;
	atomic_store_explicit(&table->slot[i & (table->size - 1)].comm, comm, memory_order_relaxed);
	/* the comm and all in it; pairs with the acquire in xs_mpi_look_up() */
	atomic_store_explicit(&table->slot[i & (table->size - 1)].handle, handle,
			      memory_order_release);
}

/* A table with room, without tombs. The old one stays as it is: other threads may be reading it. */
static struct table *with_room(struct table *old)
{
	uint32_t size = 512, live = 0;
	struct table *table;

	if (old && 4 * (old->used + 1) < 3 * old->size)
		return old;
	for (uint32_t i = 0; old && i < old->size; i++)
		live += atomic_load_explicit(&old->slot[i].handle, memory_order_relaxed) >
			XS_MPI_TOMB;
	while (size < 4 * live)
		size *= 2;
	table = xs_mpi_take(sizeof(*table) + size * sizeof(table->slot[0]));
	if (!table)
		return NULL;
	memset(table, 0, sizeof(*table) + size * sizeof(table->slot[0]));
	table->size = size;
	for (uint32_t i = 0; old && i < old->size; i++) {
		uint64_t handle = atomic_load_explicit(&old->slot[i].handle, memory_order_relaxed);

		if (handle > XS_MPI_TOMB)
			put_in(table, handle,
			       atomic_load_explicit(&old->slot[i].comm, memory_order_relaxed));
	}
	return table;
}

void xs_mpi_comm_free(struct xs_mpi_comm *comm)
{
	if (comm->ranks)
		xs_mpi_give(comm->ranks, (size_t)comm->count * sizeof(*comm->ranks));
	xs_mpi_topology_free(comm);
	xs_mpi_from_free(comm);
	xs_mpi_give(comm, sizeof(*comm));
}

void xs_mpi_take_out(uint64_t handle)
{
	struct table *table = atomic_load_explicit(&comms, memory_order_relaxed);

	if (!table || handle <= XS_MPI_TOMB)
		return;
	for (uint32_t i = xs_mpi_place(handle, table->size);; i++) {
		struct slot *slot = &table->slot[i & (table->size - 1)];
		uint64_t found = atomic_load_explicit(&slot->handle, memory_order_relaxed);

		if (!found)
			return;
		if (found != handle)
			continue;
		atomic_store_explicit(&slot->handle, XS_MPI_TOMB, memory_order_relaxed);
		xs_mpi_comm_free(atomic_load_explicit(&slot->comm, memory_order_relaxed));
		return;
	}
}

void xs_mpi_insert(uint64_t handle, struct xs_mpi_comm *comm)
{
	struct table *table;

	xs_mpi_take_out(handle);
	table = with_room(atomic_load_explicit(&comms, memory_order_relaxed));
	if (!table) {
		xs_mpi_comm_free(comm);
		return;
	}
	put_in(table, handle, comm);
	atomic_store_explicit(&comms, table, memory_order_release);
}
