/*
 * Communicators: who a rank of one is in MPI_COMM_WORLD, and an identity that all of its ranks find by themselves.
 *
 * The identity is a hash of the parent's identity, the members' ranks in MPI_COMM_WORLD, and how many communicators of just these members were
 * made of the parent before: whoever is a member has taken part in all of those. Windows and files are known by their communicators.
 * Nothing here is on the way of an ordinary call but a look into a table; making and freeing communicators takes a lock.
 */
#include "mpi_wrap.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define TOMB 1u /* a handle that was taken out of the table; no library has such a handle */

struct slot {
	_Atomic uint64_t handle; /* 0: free, and the end of a search */
	struct xs_mpi_comm *_Atomic comm;
};

struct table {
	uint32_t size, used; /* size: power of two; used: with tombs */
	struct slot slot[];
};

struct birth { /* how often communicators of a key were made */
	uint64_t key;
	uint32_t count;
};

static int (*initialized)(int *flag), (*finalized)(int *flag);
static int (*comm_rank)(xs_word comm, int *rank), (*comm_size)(xs_word comm, int *size), (*comm_test_inter)(xs_word comm, int *flag);
static int (*comm_group)(xs_word comm, void *group), (*comm_remote_group)(xs_word comm, void *group);
static int (*group_size)(xs_word group, int *size), (*group_free)(void *group);
static int (*group_rank)(xs_word group, int *rank), (*group_of_set)(xs_word session, const char *name, void *group);
static int (*topo_test)(xs_word comm, int *kind), (*graph_count)(xs_word comm, int *in, int *out, int *weighted);
static int (*cart_dim)(xs_word comm, int *dimensions), (*neighbors_count)(xs_word comm, int rank, int *count);
static int (*translate_ranks)(xs_word group, int n, const int *ranks, xs_word to, int *result);

struct xs_mpi_comm xs_mpi_world_comm = { .id = XS_MPI_WORLD };
uint64_t xs_mpi_world;
static struct xs_mpi_comm self_comm = { .id = XS_MPI_SELF }, unknown;
static int32_t self_rank[1], world_size;
static uint64_t world_group;
static struct table *_Atomic comms;
static struct birth *births;
static uint32_t births_size, births_used;
static _Atomic uint32_t lock;

/* ---- memory: the application's allocator is never entered ---- */

#define CLASSES 40u
static void *spare[CLASSES]; /* blocks of 1 << class bytes */
static _Atomic uint32_t memory_lock;

static void take_lock(_Atomic uint32_t *word)
{
	while (atomic_exchange_explicit(word, 1, memory_order_acquire))
		;
}

static void give_lock(_Atomic uint32_t *word)
{
	atomic_store_explicit(word, 0, memory_order_release);
}

static uint32_t class_of(size_t size)
{
	uint32_t class = 6;

	while ((size_t)1 << class < size)
		class++;
	return class;
}

void *xs_mpi_take(size_t size)
{
	static char *rest, *rest_end;
	uint32_t class = class_of(size);
	size_t bytes = (size_t)1 << class;
	void *block = NULL;

	if (class >= CLASSES)
		return NULL;
	take_lock(&memory_lock);
	block = spare[class];
	if (block) {
		spare[class] = *(void **)block;
	} else {
		if (bytes > (size_t)(rest_end - rest)) {
			size_t chunk = bytes > 65536 ? bytes : 65536;
			void *map = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			rest = map == MAP_FAILED ? NULL : map;
			rest_end = map == MAP_FAILED ? NULL : rest + chunk;
		}
		block = rest;
		rest = rest ? rest + bytes : NULL;
	}
	give_lock(&memory_lock);
	return block;
}

void xs_mpi_give(void *block, size_t size)
{
	uint32_t class = class_of(size);

	if (!block)
		return;
	take_lock(&memory_lock);
	*(void **)block = spare[class];
	spare[class] = block;
	give_lock(&memory_lock);
}

/* ---- what the library says ---- */

uint64_t xs_mpi_load(const void *handle)
{
	return xs_mpi_abi.int_handles ? *(const uint32_t *)handle : *(const uint64_t *)handle;
}

static void free_group(uint64_t group)
{
	int32_t narrow = (int32_t)group;

	(void)group_free(xs_mpi_abi.int_handles ? (void *)&narrow : (void *)&group);
}

/* The members' ranks in MPI_COMM_WORLD (XS_MPI_NOTHING: of another world); the number of them, or -1. */
static int32_t members(uint64_t comm, bool remote, int32_t **ret_ranks)
{
	uint64_t group = 0;
	int32_t count = -1, *ranks = NULL, *own;

	*ret_ranks = NULL;
	if ((remote ? comm_remote_group : comm_group)((xs_word)comm, &group))
		return -1;
	group = xs_mpi_load(&group);
	if (group_size((xs_word)group, &count) || count < 0)
		count = -1;
	if (count > 0) {
		ranks = xs_mpi_take((size_t)count * sizeof(*ranks));
		own = xs_mpi_take((size_t)count * sizeof(*own));
		for (int32_t i = 0; own && i < count; i++)
			own[i] = i;
		if (!ranks || !own || translate_ranks((xs_word)group, count, own, (xs_word)world_group, ranks)) {
			xs_mpi_give(ranks, (size_t)count * sizeof(*ranks));
			ranks = NULL;
			count = -1;
		}
		for (int32_t i = 0; ranks && i < count; i++)
			if (ranks[i] < 0)
				ranks[i] = XS_MPI_NOTHING;
		xs_mpi_give(own, own ? (size_t)count * sizeof(*own) : 0);
	}
	free_group(group);
	*ret_ranks = ranks;
	return count;
}

void xs_mpi_comms_find(void)
{
	static const struct {
		const char *name;
		void **place;
	} wanted[] = {
		{ "PMPI_Initialized", (void **)&initialized },
		{ "PMPI_Finalized", (void **)&finalized },
		{ "PMPI_Comm_rank", (void **)&comm_rank },
		{ "PMPI_Comm_size", (void **)&comm_size },
		{ "PMPI_Comm_test_inter", (void **)&comm_test_inter },
		{ "PMPI_Comm_group", (void **)&comm_group },
		{ "PMPI_Comm_remote_group", (void **)&comm_remote_group },
		{ "PMPI_Group_size", (void **)&group_size },
		{ "PMPI_Group_free", (void **)&group_free },
		{ "PMPI_Group_translate_ranks", (void **)&translate_ranks },
		{ "PMPI_Group_rank", (void **)&group_rank },
		{ "PMPI_Group_from_session_pset", (void **)&group_of_set },
		{ "PMPI_Topo_test", (void **)&topo_test },
		{ "PMPI_Dist_graph_neighbors_count", (void **)&graph_count },
		{ "PMPI_Graph_neighbors_count", (void **)&neighbors_count },
		{ "PMPI_Cartdim_get", (void **)&cart_dim },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		*wanted[i].place = xs_mpi_find_in(wanted[i].name);
}

static bool complete(void)
{
	return initialized && finalized && comm_rank && comm_size && comm_test_inter && comm_group && comm_remote_group && group_size &&
	       group_free && translate_ranks;
}

void xs_mpi_begin(void)
{
	int yes = 0, over = 1, rank, size;
	uint64_t group = 0;

	if (xs_mpi_world || !complete() || initialized(&yes) || !yes || finalized(&over) || over)
		return;
	take_lock(&lock);
	if (!xs_mpi_world && !comm_rank((xs_word)xs_mpi_abi.world, &rank) && !comm_size((xs_word)xs_mpi_abi.world, &size) &&
	    !comm_group((xs_word)xs_mpi_abi.world, &group)) {
		world_group = xs_mpi_load(&group);
		world_size = xs_mpi_world_comm.count = size;
		xs_mpi_world_comm.rank = self_rank[0] = rank;
		xs_mpi_world_comm.handle = xs_mpi_abi.world;
		self_comm.handle = xs_mpi_abi.self;
		self_comm.ranks = self_rank;
		self_comm.count = 1;
		xs_companion_rank(rank, size);
		xs_mpi_world = xs_mpi_abi.world;
	}
	give_lock(&lock);
}

/* ---- the table ---- */

static uint32_t place_of(uint64_t handle, uint32_t size)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15ull >> 32) & (size - 1);
}

static struct xs_mpi_comm *look_up(uint64_t handle)
{
	const struct table *table = atomic_load_explicit(&comms, memory_order_acquire);
	uint64_t found;

	if (!table || handle <= TOMB)
		return NULL;
	for (uint32_t i = place_of(handle, table->size);; i++) {
		/* pairs with the release in put_in() */
		found = atomic_load_explicit(&table->slot[i & (table->size - 1)].handle, memory_order_acquire);
		if (found == handle)
			return atomic_load_explicit(&table->slot[i & (table->size - 1)].comm, memory_order_relaxed);
		if (!found)
			return NULL;
	}
}

static void put_in(struct table *table, uint64_t handle, struct xs_mpi_comm *comm)
{
	uint32_t i = place_of(handle, table->size);

	while (atomic_load_explicit(&table->slot[i & (table->size - 1)].handle, memory_order_relaxed))
		i++;
	table->used++;
	atomic_store_explicit(&table->slot[i & (table->size - 1)].comm, comm, memory_order_relaxed);
	/* the comm and all in it; pairs with the acquire in look_up() */
	atomic_store_explicit(&table->slot[i & (table->size - 1)].handle, handle, memory_order_release);
}

/* A table with room, without tombs. The old one stays as it is: other threads may be reading it. */
static struct table *with_room(struct table *old)
{
	uint32_t size = 512, live = 0;
	struct table *table;

	if (old && 4 * (old->used + 1) < 3 * old->size)
		return old;
	for (uint32_t i = 0; old && i < old->size; i++)
		live += atomic_load_explicit(&old->slot[i].handle, memory_order_relaxed) > TOMB;
	while (size < 4 * live)
		size *= 2;
	table = xs_mpi_take(sizeof(*table) + size * sizeof(table->slot[0]));
	if (!table)
		return NULL;
	memset(table, 0, sizeof(*table) + size * sizeof(table->slot[0]));
	table->size = size;
	for (uint32_t i = 0; old && i < old->size; i++) {
		uint64_t handle = atomic_load_explicit(&old->slot[i].handle, memory_order_relaxed);

		if (handle > TOMB)
			put_in(table, handle, atomic_load_explicit(&old->slot[i].comm, memory_order_relaxed));
	}
	return table;
}

static void free_comm(struct xs_mpi_comm *comm)
{
	if (comm->ranks)
		xs_mpi_give(comm->ranks, (size_t)comm->count * sizeof(*comm->ranks));
	xs_mpi_give(comm, sizeof(*comm));
}

/* With the lock held. */
static void take_out(uint64_t handle)
{
	struct table *table = atomic_load_explicit(&comms, memory_order_relaxed);

	if (!table || handle <= TOMB)
		return;
	for (uint32_t i = place_of(handle, table->size);; i++) {
		struct slot *slot = &table->slot[i & (table->size - 1)];
		uint64_t found = atomic_load_explicit(&slot->handle, memory_order_relaxed);

		if (!found)
			return;
		if (found != handle)
			continue;
		atomic_store_explicit(&slot->handle, TOMB, memory_order_relaxed);
		free_comm(atomic_load_explicit(&slot->comm, memory_order_relaxed));
		return;
	}
}

/* With the lock held; a handle that is known is another object's from now on. */
static void insert(uint64_t handle, struct xs_mpi_comm *comm)
{
	struct table *table;

	take_out(handle);
	table = with_room(atomic_load_explicit(&comms, memory_order_relaxed));
	if (!table) {
		free_comm(comm);
		return;
	}
	put_in(table, handle, comm);
	atomic_store_explicit(&comms, table, memory_order_release);
}

/* ---- identities ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25ull;
	hash ^= hash >> 29;
	hash *= 0xd6e8feb86659fd93ull;
	return hash ^ hash >> 32;
}

static uint64_t mix_ranks(uint64_t hash, const int32_t *ranks, int32_t count)
{
	hash = mix(hash, (uint64_t)count);
	for (int32_t i = 0; ranks && i < count; i++)
		hash = mix(hash, (uint32_t)ranks[i]);
	return hash;
}

/* With the lock held: how often this was asked for the key, with this time. */
static uint32_t nth(uint64_t key)
{
	if (4 * (births_used + 1) > 3 * births_size) {
		uint32_t size = births_size ? 2 * births_size : 256;
		struct birth *grown = xs_mpi_take(size * sizeof(*grown));

		if (!grown)
			return 0;
		memset(grown, 0, size * sizeof(*grown));
		for (uint32_t i = 0; i < births_size; i++) {
			uint32_t at = place_of(births[i].key, size);

			while (births[i].count && grown[at & (size - 1)].count)
				at++;
			if (births[i].count)
				grown[at & (size - 1)] = births[i];
		}
		xs_mpi_give(births, births_size * sizeof(*births));
		births = grown;
		births_size = size;
	}
	for (uint32_t at = place_of(key, births_size);; at++) {
		struct birth *birth = &births[at & (births_size - 1)];

		if (birth->count && birth->key != key)
			continue;
		births_used += !birth->count;
		birth->key = key;
		return ++birth->count;
	}
}

static uint64_t identity(uint64_t key)
{
	uint64_t id = mix(key, nth(key));

	return id > XS_MPI_SELF ? id : id + 16;
}

static struct xs_mpi_comm *make(uint64_t handle, uint64_t parent, uint64_t how)
{
	struct xs_mpi_comm *comm = xs_mpi_take(sizeof(*comm));
	int32_t *local = NULL, count, yes = 0;
	uint64_t key = mix(mix(0, parent), how);

	if (!comm)
		return NULL;
	memset(comm, 0, sizeof(*comm));
	(void)comm_test_inter((xs_word)handle, &yes);
	comm->inter = yes;
	comm->handle = handle;
	(void)comm_rank((xs_word)handle, &comm->rank);
	count = members(handle, false, &local);
	if (count < 0) {
		xs_mpi_give(comm, sizeof(*comm));
		return NULL;
	}
	if (comm->inter) {
		comm->count = members(handle, true, &comm->ranks);
		if (comm->count < 0)
			comm->count = 0;
		/* both sides must come to the same: the order of the two groups is theirs */
		key = mix(key, mix_ranks(1, local, count) + mix_ranks(1, comm->ranks, comm->count));
		xs_mpi_give(local, (size_t)count * sizeof(*local));
	} else {
		key = mix_ranks(key, local, count);
		comm->ranks = local;
		comm->count = count;
	}
	comm->id = key;
	return comm;
}

void xs_mpi_comm_made(uint64_t handle, uint64_t parent, uint64_t how)
{
	struct xs_mpi_comm *comm;

	if (!xs_mpi_world || handle == xs_mpi_abi.comm_null || handle <= TOMB)
		return;
	comm = make(handle, parent, how);
	if (!comm)
		return;
	take_lock(&lock);
	comm->id = identity(comm->id);
	insert(handle, comm);
	give_lock(&lock);
}

/* ---- MPI_Comm_idup ---- */

#define PROMISES 64u
static struct promise {
	struct xs_mpi_comm *comm; /* all of it but the handle; NULL: free */
	uint64_t members, order;  /* members: their hash */
	const void *place;        /* where the handle will stand */
	bool fortran;
} promises[PROMISES];

static uint64_t hash_of_members(uint64_t handle)
{
	int32_t *ranks, count = members(handle, false, &ranks);
	uint64_t hash = mix_ranks(0, ranks, count);

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
	take_lock(&lock);
	comm->id = identity(comm->id); /* now: all members make communicators in one order, but come to use them in any */
	for (uint32_t i = 0; i < PROMISES && comm; i++)
		if (!promises[i].comm) {
			promises[i] = (struct promise){ comm, hash, ++order, place, fortran };
			comm = NULL;
		}
	if (comm)
		free_comm(comm);
	give_lock(&lock);
}

/* Does that handle stand where it was to come? The memory may be gone by now, or be another's. */
static bool stands(const struct promise *promise, uint64_t handle)
{
	uint64_t found = 0;
	size_t width = promise->fortran || xs_mpi_abi.int_handles ? 4 : 8;
	struct iovec from = { (void *)(uintptr_t)promise->place, width }, to = { &found, width };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)width)
		return false;
	return (promise->fortran ? xs_mpi_from_fortran(XS_MPI_KIND_COMM, (int32_t)found) : found) == handle;
}

/* A communicator that nobody told us about is one that was promised: that of its place, or else (`guess`) the oldest with its members. */
static struct xs_mpi_comm *promised(uint64_t handle, bool guess)
{
	uint64_t hash = guess ? hash_of_members(handle) : 0;
	struct promise *found = NULL;
	struct xs_mpi_comm *comm = NULL;
	int saved = errno;

	take_lock(&lock);
	for (uint32_t i = 0; i < PROMISES && !found; i++)
		if (promises[i].comm && stands(&promises[i], handle))
			found = &promises[i];
	guess &= !found;
	for (uint32_t i = 0; i < PROMISES && guess; i++)
		if (promises[i].comm && promises[i].members == hash && (!found || promises[i].order < found->order))
			found = &promises[i];
	if (found) {
		comm = found->comm;
		comm->handle = handle;
		found->comm = NULL;
	}
	give_lock(&lock);
	errno = saved;
	return comm;
}

void xs_mpi_comm_gone(uint64_t handle)
{
	struct xs_mpi_comm *unused = look_up(handle) ? NULL : promised(handle, false);

	take_lock(&lock);
	take_out(handle);
	if (unused)
		free_comm(unused);
	give_lock(&lock);
}

/* ---- windows, files, sessions ---- */

void xs_mpi_child_made(uint64_t handle, struct xs_mpi_comm *comm, uint32_t kind)
{
	struct xs_mpi_comm *child = xs_mpi_take(sizeof(*child));
	size_t bytes = (size_t)comm->count * sizeof(*comm->ranks);

	if (!child)
		return;
	*child = (struct xs_mpi_comm){ .count = comm->count, .rank = comm->rank, .handle = comm->handle };
	child->id = mix(mix(comm->id, kind), 1 + atomic_fetch_add_explicit(&comm->children, 1, memory_order_relaxed));
	if (comm->ranks) {
		child->ranks = xs_mpi_take(bytes);
		if (!child->ranks) {
			xs_mpi_give(child, sizeof(*child));
			return;
		}
		memcpy(child->ranks, comm->ranks, bytes);
	}
	take_lock(&lock);
	insert(handle, child);
	give_lock(&lock);
}

uint64_t xs_mpi_text(const char *text, xs_word length)
{
	uint64_t hash = 5;

	/* Fortran's texts end with blanks that mean nothing */
	while (length > 0 && text[length - 1] == ' ')
		length--;
	for (xs_word i = 0; length < 0 ? text[i] != 0 : i < length; i++)
		hash = mix(hash, (unsigned char)text[i]);
	return hash;
}

void xs_mpi_begin_session(uint64_t session)
{
	uint64_t group = 0;
	int rank, size;

	xs_mpi_begin();
	if (xs_mpi_world || !complete() || !group_of_set || !group_rank || group_of_set((xs_word)session, "mpi://WORLD", &group))
		return;
	group = xs_mpi_load(&group);
	if (group_rank((xs_word)group, &rank) || group_size((xs_word)group, &size))
		return;
	take_lock(&lock);
	world_group = group;
	xs_mpi_world_comm.count = size;
	xs_mpi_world_comm.rank = rank;
	xs_companion_rank(rank, size);
	xs_mpi_world = xs_mpi_abi.world; /* which nobody names before MPI_Init */
	give_lock(&lock);
}

int32_t xs_mpi_ranks(const struct xs_mpi_comm *comm)
{
	return comm->count;
}

int32_t xs_mpi_neighbors(const struct xs_mpi_comm *comm)
{
	xs_word handle = (xs_word)comm->handle;
	int kind, in, out = 0, weighted, dimensions = 0;

	if (!comm->handle || !topo_test || !graph_count || !cart_dim || !neighbors_count || topo_test(handle, &kind))
		return 0;
	/* the kinds' numbers differ between libraries */
	if (kind == xs_mpi_abi.cart)
		return cart_dim(handle, &dimensions) ? 0 : 2 * dimensions;
	if (kind == xs_mpi_abi.graph)
		return neighbors_count(handle, comm->rank, &out) ? 0 : out;
	return kind != xs_mpi_abi.dist_graph || graph_count(handle, &in, &out, &weighted) ? 0 : out;
}

struct xs_mpi_comm *xs_mpi_comm_find(uint64_t handle)
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
		return &self_comm;
	found = look_up(handle);
	if (!found && handle != xs_mpi_abi.comm_null && handle > TOMB) {
		/* made in a way that nobody told us */
		found = promised(handle, true);
		if (found) {
			take_lock(&lock);
			insert(handle, found);
			give_lock(&lock);
		} else {
			xs_mpi_comm_made(handle, 0, 0);
		}
		found = look_up(handle);
	}
	return found ? found : &unknown;
}
