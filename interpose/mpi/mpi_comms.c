/*
 * Communicators that are made, promised and freed; windows and files are known by their
 * communicators. Nothing here is on the way of an ordinary call but a look into a table; making and
 * freeing communicators takes a lock.
 */
#include "mpi_comms.h"

#include <sys/uio.h>

#include "mpi_record.h"
#include "sys.h"

static struct xs_mpi_comm unknown = { .is_told = true };

static struct xs_mpi_comm *make(uint64_t handle, uint64_t parent, uint64_t how)
{
	struct xs_mpi_comm *comm = xs_mpi_take(sizeof(*comm));
	int32_t *local = NULL, count;
	uint64_t key = xs_mpi_mix(xs_mpi_mix(0, parent), how), mine, theirs;

	if (!comm)
		return NULL;
	memset(comm, 0, sizeof(*comm));
	comm->inter = xs_mpi_is_inter(handle);
	comm->handle = handle;
	comm->rank = xs_mpi_own_rank(handle);
	count = xs_mpi_members(handle, XS_MPI_GROUP_OWN, &local);
	if (count < 0) {
		xs_mpi_give(comm, sizeof(*comm));
		return NULL;
	}
	if (comm->inter) {
		comm->count = xs_mpi_members(handle, XS_MPI_GROUP_REMOTE, &comm->ranks);
		if (comm->count < 0)
			comm->count = 0;
		/* both sides must come to the same: the order of the two groups is theirs */
		mine = xs_mpi_mix_ranks(1, local, count);
		theirs = xs_mpi_mix_ranks(1, comm->ranks, comm->count);
		comm->side = mine > theirs;
		key = xs_mpi_mix(key, mine + theirs);
		xs_mpi_give(local, (size_t)count * sizeof(*local));
	} else {
		key = xs_mpi_mix_ranks(key, local, count);
		comm->ranks = local;
		comm->count = count;
	}
	comm->local = count;
	comm->id = key;
	return comm;
}

void xs_mpi_comm_tell(struct xs_mpi_comm *comm)
{
	struct xs_mpi_member_record member = {
		.event = { .tick = xs_tick_if_any(),
			   .name = comm->name,
			   .kind = XS_MPI_MEMBER,
			   .words = sizeof(struct xs_mpi_member_record) / 8,
			   .source = XS_SOURCE_MPI },
		.id = comm->id,
		.rank = comm->rank,
		.members = comm->local,
		.others = comm->inter ? comm->count : 0,
		.side = comm->side,
	};

	atomic_store_explicit(&comm->is_told, true, memory_order_relaxed);
	if (comm->id)
		xs_companion_record(&member, sizeof(member));
}

#define LONGEST_NAME 256 /* bytes: more than any MPI library keeps */

void xs_mpi_comm_made(uint64_t handle, uint64_t parent, uint64_t how)
{
	struct xs_mpi_comm *comm;

	if (!xs_mpi_world || handle == xs_mpi_abi.comm_null || handle <= XS_MPI_TOMB)
		return;
	comm = make(handle, parent, how);
	if (!comm)
		return;
	xs_lock_robust(&xs_mpi_comms_lock);
	comm->id = xs_mpi_identity(comm->id);
	xs_mpi_insert(handle, comm);
	xs_unlock(&xs_mpi_comms_lock);
}

void xs_mpi_comm_named(struct xs_mpi_comm *comm, const char *text, xs_word length)
{
	/* Fortran's texts end with blanks that mean nothing */
	while (length > 0 && text[length - 1] == ' ')
		length--;
	length = length < 0		 ? (xs_word)strnlen(text, LONGEST_NAME)
		 : length < LONGEST_NAME ? length
					 : LONGEST_NAME;
	comm->name = length > 0 ? xs_companion_intern(text, (uint32_t)length, 0) : 0;
	/* the next call that is recorded tells it */
	atomic_store_explicit(&comm->is_told, false, memory_order_relaxed);
}

/* ---- MPI_Comm_idup ---- */

#define PROMISES 64u
static struct promise {
	struct xs_mpi_comm *comm; /* all of it but the handle; NULL: free */
	uint64_t members, order;  /* members: their hash */
	const void *place;	  /* where the handle will stand */
	bool fortran;
} promises[PROMISES];

static uint64_t hash_of_members(uint64_t handle)
{
	int32_t *ranks, count = xs_mpi_members(handle, XS_MPI_GROUP_OWN, &ranks);
	uint64_t hash = xs_mpi_mix_ranks(0, ranks, count);

	xs_mpi_give(ranks, ranks ? (size_t)count * sizeof(*ranks) : 0);
	return hash;
}

void xs_mpi_comm_promised(uint64_t of, uint64_t parent, const void *place, bool fortran)
{
	static uint64_t order;
	struct xs_mpi_comm *comm;
	uint64_t hash;

	if (!xs_mpi_world)
		return;
	hash = hash_of_members(of);
	comm = make(of, parent, 0); /* its members are those of its parent */
	if (!comm)
		return;
	xs_lock_robust(&xs_mpi_comms_lock);
	/* now: all members make communicators in one order, but come to use them in any */
	comm->id = xs_mpi_identity(comm->id);
	for (uint32_t i = 0; i < PROMISES && comm; i++)
		if (!promises[i].comm) {
			promises[i] = (struct promise){ comm, hash, ++order, place, fortran };
			comm = NULL;
		}
	if (comm)
		xs_mpi_comm_free(comm);
	xs_unlock(&xs_mpi_comms_lock);
}

/* Does that handle stand where it was to come? The memory may be gone by now, or be another's. */
static bool stands(const struct promise *promise, uint64_t handle)
{
	uint64_t found = 0;
	size_t width = promise->fortran || xs_mpi_abi.int_handles ? 4 : 8;
	struct iovec from = { (void *)(uintptr_t)promise->place, width }, to = { &found, width };

	if (xs_sys(SYS_process_vm_readv, xs_sys(SYS_getpid), &to, 1, &from, 1, 0) != (long)width)
		return false;
	return (promise->fortran ? xs_mpi_from_fortran(XS_MPI_KIND_COMM, (int32_t)found) : found) ==
	       handle;
}

/*
 * An unknown communicator is one that was promised (MPI_Comm_idup): the one whose handle was to be
 * stored at a place that now holds this handle, or else (`guess`) the oldest with the same members.
 * The library and the kernel are asked about places without the lock.
 */
static struct xs_mpi_comm *promised(uint64_t handle, bool guess)
{
	uint64_t hash = guess ? hash_of_members(handle) : 0, order = 0;
	struct xs_mpi_comm *comm = NULL;
	struct promise copy;

	for (uint32_t i = 0; i < PROMISES && !order; i++) {
		xs_lock_robust(&xs_mpi_comms_lock);
		copy = promises[i];
		xs_unlock(&xs_mpi_comms_lock);
		if (copy.comm && stands(&copy, handle))
			order = copy.order;
	}
	guess &= !order;
	xs_lock_robust(&xs_mpi_comms_lock);
	for (uint32_t i = 0; i < PROMISES && guess; i++)
		if (promises[i].comm && promises[i].members == hash &&
		    (!order || promises[i].order < order))
			order = promises[i].order;
	for (uint32_t i = 0; i < PROMISES && order; i++)
		if (promises[i].comm && promises[i].order == order) {
			comm = promises[i].comm;
			comm->handle = handle;
			promises[i].comm = NULL;
		}
	xs_unlock(&xs_mpi_comms_lock);
	return comm;
}

void xs_mpi_comm_gone(uint64_t handle)
{
	struct xs_mpi_comm *unused = xs_mpi_look_up(handle) ? NULL : promised(handle, false);

	xs_lock_robust(&xs_mpi_comms_lock);
	xs_mpi_take_out(handle);
	if (unused)
		xs_mpi_comm_free(unused);
	xs_unlock(&xs_mpi_comms_lock);
}

/* ---- windows, files, sessions ---- */

void xs_mpi_child_made(uint64_t handle, struct xs_mpi_comm *comm, uint32_t kind)
{
	struct xs_mpi_comm *child = xs_mpi_take(sizeof(*child));
	size_t bytes = (size_t)comm->count * sizeof(*comm->ranks);

	if (!child)
		return;
	*child = (struct xs_mpi_comm){ .count = comm->count,
				       .rank = comm->rank,
				       .handle = comm->handle };
	child->id =
		xs_mpi_mix(xs_mpi_mix(comm->id, kind),
			   1 + atomic_fetch_add_explicit(&comm->children, 1, memory_order_relaxed));
	if (comm->ranks) {
		child->ranks = xs_mpi_take(bytes);
		if (!child->ranks) {
			xs_mpi_give(child, sizeof(*child));
			return;
		}
		memcpy(child->ranks, comm->ranks, bytes);
	}
	xs_lock_robust(&xs_mpi_comms_lock);
	xs_mpi_insert(handle, child);
	xs_unlock(&xs_mpi_comms_lock);
}

/* A window or file that was made by a call which we do not see: known by its members alone. */
static void child_found(uint64_t handle, enum xs_mpi_kind kind)
{
	struct xs_mpi_comm *child = xs_mpi_take(sizeof(*child));
	uint64_t key;

	if (!child)
		return;
	*child = (struct xs_mpi_comm){ .handle = 0 };
	child->count =
		xs_mpi_members(handle,
			       kind == XS_MPI_KIND_WIN ? XS_MPI_GROUP_WIN : XS_MPI_GROUP_FILE,
			       &child->ranks);
	if (child->count < 0) {
		xs_mpi_give(child, sizeof(*child));
		return;
	}
	key = xs_mpi_mix_ranks(xs_mpi_mix(0, kind), child->ranks, child->count);
	xs_lock_robust(&xs_mpi_comms_lock);
	child->id = xs_mpi_identity(key);
	xs_mpi_insert(handle, child);
	xs_unlock(&xs_mpi_comms_lock);
}

static void comm_found(uint64_t handle, bool ask)
{
	struct xs_mpi_comm *comm = promised(handle, ask);

	if (comm) {
		xs_lock_robust(&xs_mpi_comms_lock);
		xs_mpi_insert(handle, comm);
		xs_unlock(&xs_mpi_comms_lock);
	} else if (ask) {
		xs_mpi_comm_made(handle, 0, 0);
	}
}

struct xs_mpi_comm *xs_mpi_object_find(enum xs_mpi_kind kind, uint64_t handle, bool ask)
{
	struct xs_mpi_comm *found;

	if (!xs_mpi_world) {
		xs_mpi_begin();
		if (!xs_mpi_world)
			return &unknown;
	}
	if (handle == xs_mpi_world)
		return &xs_mpi_world_comm;
	if (handle == xs_mpi_abi.self)
		return &xs_mpi_self_comm;
	found = xs_mpi_look_up(handle);
	if (!found && handle != xs_mpi_abi.comm_null && handle > XS_MPI_TOMB) {
		/* made by a call that we have not seen */
		if (kind == XS_MPI_KIND_COMM)
			comm_found(handle, ask);
		else if (ask)
			child_found(handle, kind);
		found = xs_mpi_look_up(handle);
	}
	return found ? found : &unknown;
}

uint32_t xs_mpi_collective_late(struct xs_mpi_comm **found, uint64_t handle, bool failed)
{
	*found = xs_mpi_object_find(XS_MPI_KIND_COMM, handle, !failed);
	return (*found)->id ? xs_mpi_collective(*found) : 0;
}

uint32_t xs_mpi_collective_failed(struct xs_mpi_comm *comm, uint32_t number, int32_t result)
{
	if (!xs_mpi_is_of_arguments(xs_mpi_error_of(result)))
		return number;
	if (number && atomic_load_explicit(&comm->collectives, memory_order_relaxed) == number)
		atomic_store_explicit(&comm->collectives, number - 1, memory_order_relaxed);
	return (uint32_t)XS_MPI_NOTHING;
}
