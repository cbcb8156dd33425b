/*
 * Between the generated MPI wrappers (interpose/generate_mpi.py) and what MPI calls mean (mpi_calls.c, mpi_comms.c, mpi_requests.c).
 *
 * All of it is libxstrace-mpi.so, which is preloaded only when MPI is to be traced. There is no mpi.h: an argument is a machine word and
 * is passed on as it came. What a call's arguments say is written after the call, while nothing of the time is the call's any more.
 */
#ifndef XS_MPI_WRAP_H
#define XS_MPI_WRAP_H

#include <string.h>

#include "companion.h"
#include "mpi_abi.h"
#include "mpi_functions.h"

#define XS_EXPORT __attribute__((visibility("default")))

typedef intptr_t xs_word;

/* A Fortran wrapper is at work in this thread: what its library calls in C is the same call. */
extern __thread uint32_t xs_mpi_depth __attribute__((tls_model("initial-exec")));

extern struct xs_mpi_abi xs_mpi_abi;

/* The function of that name behind us, seen from the wrapper's caller; never NULL. */
void *xs_mpi_find(const char *name, void *caller) __attribute__((cold));
/* For an optional function's symbol: the wrapper if the MPI library has the function, else NULL, as without us. */
void *xs_mpi_probe(const char *name, void *wrapper);

struct xs_mpi_call {
	struct xs_call call;
	uint64_t duration;
	uint32_t function;
	int32_t result;
};

/* False: not recorded, go straight through. */
static inline bool xs_mpi_enter(struct xs_mpi_call *call, uint32_t function)
{
	if (__builtin_expect(xs_mpi_depth, 0))
		return false;
	call->function = function;
	return xs_call_enter(&call->call, XS_SOURCE_MPI, function);
}

static inline void xs_mpi_leave(struct xs_mpi_call *call, int32_t result)
{
	call->duration = xs_call_leave(&call->call);
	call->result = result;
}

void xs_mpi_write_long(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word, uint32_t count) __attribute__((cold));

/* `words`: the bits of enum xs_mpi_word, which are constants here; `count`: how many they are. */
static inline __attribute__((always_inline)) void xs_mpi_write(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word,
							      uint32_t count)
{
	const uint32_t size = (uint32_t)(sizeof(struct xs_mpi_record) + 8 * count + 15) & ~15u;
	struct xs_ring *ring = xs_tls.ready;
	uint64_t head, *place;

	if (!xs_ready_for_mark(ring)) {
		xs_mpi_write_long(call, words, word, count);
		return;
	}
	/* before head is read: see xs_mark() */
	xs_tls.ready = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	if (__builtin_expect(head + size > ring->limit, 0)) {
		xs_tls.ready = ring;
		xs_mpi_write_long(call, words, word, count);
		return;
	}
	place = (uint64_t *)(ring->data + (head & ring->mask));
	place[0] = call->call.tick;
	place[1] = call->function | (uint64_t)XS_MPI << 32 | (uint64_t)(size / 8) << 40 | (uint64_t)XS_SOURCE_MPI << 48 |
		   (uint64_t)(call->result ? XS_FLAG_FAILED : 0) << 56;
	place[2] = call->duration;
	place[3] = (uint32_t)call->result | (uint64_t)words << 32;
	for (uint32_t i = 0; i < count; i++)
		place[4 + i] = word[i];
	xs_own_ahead(place);
	atomic_store_explicit(&ring->head, head + size, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.ready = ring;
}

/* ---- communicators, windows, files (mpi_comms.c) ---- */

struct xs_mpi_comm {
	uint64_t id;
	int32_t *ranks; /* in MPI_COMM_WORLD, of those that a call can name as partners; NULL: the same */
	int32_t count;
	_Atomic uint32_t collectives; /* so far */
	_Atomic uint32_t children;    /* windows and files made of it */
	bool inter;
};
extern struct xs_mpi_comm xs_mpi_world_comm;
extern uint64_t xs_mpi_world; /* its handle; 0: not known yet */

static inline uint64_t xs_mpi_handle(xs_word word)
{
	return (uint64_t)word & xs_mpi_abi.handle_mask;
}

/* Never NULL: what is not known has the id 0. */
struct xs_mpi_comm *xs_mpi_comm_find(uint64_t handle);

static inline struct xs_mpi_comm *xs_mpi_comm(uint64_t handle)
{
	return __builtin_expect(handle == xs_mpi_world && handle, 1) ? &xs_mpi_world_comm : xs_mpi_comm_find(handle);
}

/* The application has become part of a job, or a communicator is named: MPI says who is who. */
void xs_mpi_begin(void);

/* A communicator was made of one with the identity `parent`; what else all members know of it is in `how`. */
void xs_mpi_comm_made(uint64_t handle, uint64_t parent, uint64_t how);
void xs_mpi_comm_gone(uint64_t handle);

/* A rank of the communicator (or a special one) as one of MPI_COMM_WORLD; XS_MPI_NOTHING for any. */
static inline int32_t xs_mpi_rank(const struct xs_mpi_comm *comm, int32_t rank)
{
	if (__builtin_expect(rank < 0, 0))
		return rank == xs_mpi_abi.proc_null ? XS_MPI_NO_PEER : XS_MPI_NOTHING;
	return __builtin_expect(!comm->ranks, 1) ? rank : rank < comm->count ? comm->ranks[rank] : XS_MPI_NOTHING;
}

static inline uint64_t xs_mpi_pair(int32_t low, int32_t high)
{
	return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

static inline uint64_t xs_mpi_peer(const struct xs_mpi_comm *comm, int32_t rank, int32_t tag)
{
	return xs_mpi_pair(xs_mpi_rank(comm, rank), tag < 0 ? XS_MPI_NOTHING : tag);
}

/* The number of a collective call, to be taken whether it is recorded or not. */
static inline uint32_t xs_mpi_collective(struct xs_mpi_comm *comm)
{
	uint32_t number = atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1;

	/* MPI allows one thread at a time here */
	atomic_store_explicit(&comm->collectives, number, memory_order_relaxed);
	return number;
}

static inline uint64_t xs_mpi_root(const struct xs_mpi_comm *comm, int32_t root, uint32_t number)
{
	return xs_mpi_pair(xs_mpi_rank(comm, root), (int32_t)number);
}

/* A handle in memory. */
uint64_t xs_mpi_load(const void *handle);
/* Memory, from the kernel, for anything that is rare; NULL: none. */
void *xs_mpi_take(size_t size);
void xs_mpi_give(void *block, size_t size);

/* ---- the library, once it is found (mpi_calls.c) ---- */

void *xs_mpi_find_in(const char *name);
void xs_mpi_comms_find(void);

/* ---- data ---- */

extern int (*xs_mpi_type_size)(xs_word type, int64_t *size);

static inline int64_t xs_mpi_size(uint64_t type)
{
	int64_t size = 0;

	return xs_mpi_type_size && !xs_mpi_type_size((xs_word)type, &size) && size > 0 ? size : 0;
}

#endif
