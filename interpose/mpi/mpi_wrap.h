/*
 * Between the generated MPI wrappers (interpose/generate_mpi.py) and what MPI calls mean.
 *
 * All of it is libxstrace-mpi.so, which is preloaded only when MPI is to be traced. There is no
 * mpi.h: an argument is a machine word and is passed on as it came. What a call's arguments say is
 * written after the call, while nothing of the time is the call's any more.
 */
#ifndef XS_MPI_WRAP_H
#define XS_MPI_WRAP_H

#include <string.h>

#include "companion.h"
#include "lock.h"
#include "mpi_abi.h"
#include "mpi_functions.h"
#include "mpi_record.h"

#define XS_EXPORT __attribute__((visibility("default")))

typedef intptr_t xs_word;

/*
 * A wrapper is at work in this thread whose library may call MPI in its turn: what it calls so is
 * the same call. It is named by where its return address lies (XS_FRAME_MARK()), so that a wrapper
 * that was left by a jump, out of an error handler, is found out by the next call.
 */
extern __thread uintptr_t xs_mpi_inside __attribute__((tls_model("initial-exec")));

/* Is it a caller of the wrapper that asks? */
bool xs_mpi_is_there(uintptr_t mark) __attribute__((cold));

static inline bool xs_mpi_is_inside(uintptr_t mark)
{
	return __builtin_expect(xs_mpi_inside != 0, 0) && xs_mpi_is_there(mark);
}

/* The function of that name behind us, seen from the wrapper's caller; never NULL. */
void *xs_mpi_find(const char *name, void *caller) __attribute__((cold));
/*
 * For an optional function's symbol: the wrapper if the MPI library has the function, else NULL, as
 * without us.
 */
void *xs_mpi_probe(const char *name, const void *wrapper);

struct xs_mpi_call {
	struct xs_call call;
	uint64_t duration;
	uint32_t function;
	int32_t result;
};

/* False: not recorded, go straight through. mark: the wrapper's XS_FRAME_MARK(). */
static inline bool xs_mpi_enter(struct xs_mpi_call *call, uint32_t function, uintptr_t mark)
{
	if (xs_mpi_is_inside(mark))
		return false;
	call->function = function;
	return xs_call_enter(&call->call, XS_SOURCE_MPI, function);
}

/* The call is over; its record must follow. */
static inline void xs_mpi_leave(struct xs_mpi_call *call, int32_t result)
{
	call->duration = xs_tick_if_any() - call->call.tick;
	call->result = result;
}

/*
 * Also for a call inside of another one, one that failed or took days, and when recording has just
 * ended.
 */
void xs_mpi_write_long(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word,
		       uint32_t count) __attribute__((cold));

/* `words`: the bits of enum xs_mpi_word, which are constants here; `count`: how many they are. */
static inline __attribute__((always_inline)) void xs_mpi_write(const struct xs_mpi_call *call,
							       uint32_t words, const uint64_t *word,
							       uint32_t count)
{
	const uint32_t size = (uint32_t)(sizeof(struct xs_mpi_record) + 8 * count + 15) & ~15u;
	struct xs_producer *producer = &xs_tls.producer;
	struct xs_ring *ring = producer->ring;
	uint64_t head, *place;

	if (__builtin_expect(!xs_ready_for_mark() || !ring || call->call.outer || call->result ||
				     call->duration >> 48,
			     0)) {
		xs_mpi_write_long(call, words, word, count);
		return;
	}
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	xs_inside_begin(XS_FRAME_MARK());
	head = producer->head;
	if (__builtin_expect(head + size > producer->limit, 0)) {
		xs_inside_end();
		xs_mpi_write_long(call, words, word, count);
		return;
	}
	place = (uint64_t *)(producer->data + (head & producer->mask));
	place[0] = call->call.tick;
	place[1] = call->function | (uint64_t)XS_MPI << 32 | (uint64_t)(size / 8) << 40 |
		   (uint64_t)XS_SOURCE_MPI << 48;
	place[2] = call->duration | (uint64_t)words << 48;
	for (uint32_t i = 0; i < count; i++)
		place[3 + i] = word[i];
	xs_own_ahead(place);
	xs_ring_commit(producer, size);
	xs_inside_end();
}

/* ---- memory (mpi_memory.c) ---- */

/* Memory, from the kernel, for anything that is rare; NULL: none. */
void *xs_mpi_take(size_t size);
void xs_mpi_give(void *block, size_t size);

/* ---- communicators, windows, files (mpi_comms.c and its neighbours, mpi_comms.h) ---- */

struct xs_mpi_comm {
	uint64_t id;
	/* in MPI_COMM_WORLD, of those that a call can name as partners; NULL: the same */
	int32_t *ranks;
	int32_t count;
	int32_t rank;  /* of this process in it, or in its group */
	int32_t local; /* members of its group */
	uint64_t handle;
	_Atomic uint32_t collectives; /* so far */
	_Atomic uint32_t children;    /* windows and files made of it */
	bool inter, side;	      /* side: which of two groups this is */
	_Atomic bool is_told;	      /* the trace has a record of it */
	uint32_t name;		      /* that the application gave it, interned; 0: none */
	struct xs_mpi_topology *_Atomic topology; /* mpi_topology.c; NULL: not asked yet */
	uint64_t *set; /* room for mpi_from.c: a bit for each rank; NULL: none yet */
};
extern struct xs_mpi_comm xs_mpi_world_comm;
extern uint64_t xs_mpi_world; /* its handle; 0: not known yet */

static inline uint64_t xs_mpi_handle(xs_word word)
{
	return (uint64_t)word & xs_mpi_abi.handle_mask;
}

enum xs_mpi_kind {
	XS_MPI_KIND_COMM,
	XS_MPI_KIND_TYPE,
	XS_MPI_KIND_REQUEST,
	XS_MPI_KIND_MESSAGE,
	XS_MPI_KIND_WIN,
	XS_MPI_KIND_FILE,
	XS_MPI_KIND_SESSION
};

/*
 * Never NULL: what is not known has the id 0. `ask`: the library may be asked, since a call has
 * succeeded with that handle.
 */
struct xs_mpi_comm *xs_mpi_object_find(enum xs_mpi_kind kind, uint64_t handle, bool ask);

static inline struct xs_mpi_comm *xs_mpi_object(enum xs_mpi_kind kind, uint64_t handle, bool ask)
{
	if (kind == XS_MPI_KIND_COMM && __builtin_expect(handle == xs_mpi_world && handle, 1))
		return &xs_mpi_world_comm;
	return xs_mpi_object_find(kind, handle, ask);
}

static inline struct xs_mpi_comm *xs_mpi_comm(uint64_t handle)
{
	return xs_mpi_object(XS_MPI_KIND_COMM, handle, true);
}

/* The application has become part of a job, or a communicator is named: MPI says who is who. */
void xs_mpi_begin(void);

/* The same for a program without MPI_COMM_WORLD. */
void xs_mpi_begin_session(uint64_t session);

/*
 * A communicator was made of one with the identity `parent`; what else all members know of it is in
 * `how`.
 */
void xs_mpi_comm_made(uint64_t handle, uint64_t parent, uint64_t how);
void xs_mpi_comm_gone(uint64_t handle);
/* MPI_Comm_idup: the handle comes later, to `place`. */
void xs_mpi_comm_promised(uint64_t of, uint64_t parent, const void *place, bool fortran);
/* A window or file of that communicator was made. */
void xs_mpi_child_made(uint64_t handle, struct xs_mpi_comm *comm, uint32_t kind);
/* A hash of a text of a length, or that ends with a 0 (length -1). */
uint64_t xs_mpi_text(const char *text, xs_word length);
/*
 * Who this process is in it, for the trace: once, when it is first used in a call that is recorded.
 */
void xs_mpi_comm_tell(struct xs_mpi_comm *comm) __attribute__((cold));
/* The application has named it; as xs_mpi_text(). */
void xs_mpi_comm_named(struct xs_mpi_comm *comm, const char *text, xs_word length);
/*
 * How many ranks a collective's arrays are about; of its own group; for neighbourhood collectives:
 * to which it sends.
 */
int32_t xs_mpi_ranks(const struct xs_mpi_comm *comm);
int32_t xs_mpi_local(const struct xs_mpi_comm *comm);
int32_t xs_mpi_neighbors(struct xs_mpi_comm *comm);
/* Of neighbourhood collectives: the ranks it gets something from; NULL: not known. */
const int32_t *xs_mpi_sources(struct xs_mpi_comm *comm, int32_t *ret_count);

/*
 * A rank of the communicator (or a special one) as one of MPI_COMM_WORLD; XS_MPI_NOTHING for any.
 */
static inline int32_t xs_mpi_rank(const struct xs_mpi_comm *comm, int32_t rank)
{
	if (__builtin_expect(rank < 0, 0))
		return rank == xs_mpi_abi.proc_null ? XS_MPI_NO_PEER : XS_MPI_NOTHING;
	return __builtin_expect(!comm->ranks, 1) ? rank
	       : rank < comm->count		 ? comm->ranks[rank]
						 : XS_MPI_NOTHING;
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

/*
 * After a call on a communicator that was not known before it: `found` may be known now. Returns
 * the call's number.
 */
uint32_t xs_mpi_collective_late(struct xs_mpi_comm **found, uint64_t handle, bool failed)
	__attribute__((cold));

/*
 * After a call that failed: in one whose arguments were wrong nobody took part, so that it has no
 * number. Returns the call's number, or XS_MPI_NOTHING.
 */
uint32_t xs_mpi_collective_failed(struct xs_mpi_comm *comm, uint32_t number, int32_t result)
	__attribute__((cold));

static inline uint64_t xs_mpi_root(const struct xs_mpi_comm *comm, int32_t root, uint32_t number)
{
	return xs_mpi_pair(xs_mpi_rank(comm, root), (int32_t)number);
}

/* ---- the library (mpi_library.c); what others ask it for, once it is found ---- */

/* Finds it, seen from the wrapper's caller. Its soname; NULL: there is none. */
const char *xs_mpi_library_open(void *caller);
void *xs_mpi_find_in(const char *name);
/* An address that programs may have copied into themselves. */
void *xs_mpi_find_data(const char *name);
/* Behind us, seen from the caller; NULL: nowhere. */
void *xs_mpi_find_behind(const char *name, void *caller);
void xs_mpi_handles_find(void);
void xs_mpi_comms_find(void);
void xs_mpi_requests_find(void);
void xs_mpi_errors_find(void);

/* ---- errors (mpi_errors.c) ---- */

/* The class of what a call has returned: enum xs_mpi_error. */
uint32_t xs_mpi_error_of(int32_t result) __attribute__((cold));
/* Does MPI find such an error in the arguments, before it talks to others? */
bool xs_mpi_is_of_arguments(uint32_t error) __attribute__((cold));

/* ---- arguments, as C and Fortran pass them (mpi_handles.c) ---- */

/* A handle in memory. */
uint64_t xs_mpi_load(const void *handle);

/* Fortran's handle as C's. */
uint64_t xs_mpi_from_fortran(enum xs_mpi_kind kind, int32_t handle);

#define C_INT(x)     ((int32_t)(x))
#define C_LONG(x)    ((int64_t)(x))
#define C_TYPE(x)    xs_mpi_handle(x)
#define C_COMM(x)    xs_mpi_handle(x)
#define C_WIN(x)     xs_mpi_handle(x)
#define C_REQUEST(x) xs_mpi_handle(x)
#define C_FILE(x)    ((uint64_t)(x)) /* a pointer everywhere */
/* a NULL where there must be a handle is an error that MPI itself tells */
#define C_HANDLE_AT(x)	 ((x) ? xs_mpi_load((const void *)(x)) : 0)
#define C_OUT_INT(x)	 (*(const int32_t *)(x))
#define C_OUT_COMM(x)	 C_HANDLE_AT(x)
#define C_OUT_WIN(x)	 C_HANDLE_AT(x)
#define C_OUT_REQUEST(x) C_HANDLE_AT(x)
#define C_OUT_MESSAGE(x) C_HANDLE_AT(x)
#define C_OUT_FILE(x)	 ((x) ? *(const uint64_t *)(x) : 0)
#define C_SESSION(x)	 xs_mpi_load((const void *)(x))

#define F_INT(x)	 (*(const int32_t *)(x))
#define F_LONG(x)	 (*(const int64_t *)(x))
#define F_TYPE(x)	 xs_mpi_from_fortran(XS_MPI_KIND_TYPE, F_INT(x))
#define F_COMM(x)	 xs_mpi_from_fortran(XS_MPI_KIND_COMM, F_INT(x))
#define F_WIN(x)	 xs_mpi_from_fortran(XS_MPI_KIND_WIN, F_INT(x))
#define F_FILE(x)	 xs_mpi_from_fortran(XS_MPI_KIND_FILE, F_INT(x))
#define F_SESSION(x)	 xs_mpi_from_fortran(XS_MPI_KIND_SESSION, F_INT(x))
#define F_OUT_INT(x)	 F_INT(x)
#define F_OUT_COMM(x)	 F_COMM(x)
#define F_OUT_WIN(x)	 F_WIN(x)
#define F_OUT_FILE(x)	 F_FILE(x)
#define F_OUT_REQUEST(x) xs_mpi_from_fortran(XS_MPI_KIND_REQUEST, F_INT(x))
#define F_OUT_MESSAGE(x) xs_mpi_from_fortran(XS_MPI_KIND_MESSAGE, F_INT(x))

/* ---- data (mpi_data.c) ---- */

extern int (*xs_mpi_type_size)(xs_word type, int64_t *size);

/* What a call moves: INT64_MIN is not known. */
struct xs_mpi_amount {
	int64_t count, bytes, size; /* size: of one */
};

static inline bool xs_mpi_size_of(uint64_t type, int64_t *size)
{
	/* MPICH's predefined types have their size in the handle */
	if (__builtin_expect(xs_mpi_abi.int_handles && type >> 26 == 0x13, 1)) {
		*size = type >> 8 & 0xff;
		return true;
	}
	return xs_mpi_type_size && !xs_mpi_type_size((xs_word)type, size) && *size >= 0;
}

/*
 * Only the arguments of a call that has succeeded may be asked about: a bad handle could end the
 * application.
 */
static inline struct xs_mpi_amount xs_mpi_amount(const struct xs_mpi_call *call, int64_t count,
						 uint64_t type)
{
	struct xs_mpi_amount amount = { count, count ? INT64_MIN : 0, 0 };

	if (__builtin_expect(!call->result && count > 0 && xs_mpi_size_of(type, &amount.size), 1))
		amount.bytes = count * amount.size;
	return amount;
}

/* Of a rooted collective: not where the arguments mean nothing. */
struct xs_mpi_amount xs_mpi_amount_but(const struct xs_mpi_call *call,
				       const struct xs_mpi_comm *comm, int32_t root, int64_t count,
				       uint64_t type);
/* One count and datatype at the root, another elsewhere. */
struct xs_mpi_amount xs_mpi_amount_root(const struct xs_mpi_call *call,
					const struct xs_mpi_comm *comm, int32_t root,
					int64_t at_root, uint64_t type_at_root, int64_t count,
					uint64_t type);
/* The same, where the root has an array of counts. `wide`: of 64 bits. */
struct xs_mpi_amount xs_mpi_amount_own_root(const struct xs_mpi_call *call,
					    const struct xs_mpi_comm *comm, int32_t root,
					    const void *counts, bool wide, uint64_t type_at_root,
					    int64_t count, uint64_t type);
/* This rank's count of an array. */
struct xs_mpi_amount xs_mpi_amount_own(const struct xs_mpi_call *call,
				       const struct xs_mpi_comm *comm, const void *counts,
				       bool wide, uint64_t type);
/* What it gives to an allgather; between groups its own arguments say that. */
struct xs_mpi_amount xs_mpi_amount_given(const struct xs_mpi_call *call,
					 const struct xs_mpi_comm *comm, const void *counts,
					 bool wide, uint64_t type, int64_t count,
					 uint64_t type_given);
struct xs_mpi_amount xs_mpi_amount_sum(const struct xs_mpi_call *call, int32_t number,
				       const void *counts, bool wide, uint64_t type);
struct xs_mpi_amount xs_mpi_amount_types(const struct xs_mpi_call *call, int32_t number,
					 const void *counts, bool wide, const void *types,
					 bool fortran);

/* ---- whose data a collective gets (mpi_from.c): XS_MPI_FROM ---- */

/* Of all, if this rank's count is not 0. */
uint64_t xs_mpi_from_own(const struct xs_mpi_call *call, const struct xs_mpi_comm *comm,
			 const void *counts, bool wide, uint64_t type);
/* Of those whose counts are not 0. */
uint64_t xs_mpi_from_counts(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
			    const void *counts, bool wide, uint64_t type);
uint64_t xs_mpi_from_types(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
			   const void *counts, bool wide, const void *types, bool fortran);
/* The same of neighbours; one count for all of them. */
uint64_t xs_mpi_from_near(const struct xs_mpi_call *call, struct xs_mpi_comm *comm, int64_t count,
			  uint64_t type);
uint64_t xs_mpi_from_near_counts(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
				 const void *counts, bool wide, uint64_t type);
uint64_t xs_mpi_from_near_types(const struct xs_mpi_call *call, struct xs_mpi_comm *comm,
				const void *counts, bool wide, const void *types, bool fortran);

static inline int64_t xs_mpi_element(const void *counts, bool wide, int32_t i)
{
	return wide ? ((const int64_t *)counts)[i] : ((const int32_t *)counts)[i];
}

static inline uint64_t xs_mpi_type_at(const void *types, bool fortran, int32_t i)
{
	return fortran			? F_TYPE((const int32_t *)types + i)
	       : xs_mpi_abi.int_handles ? ((const uint32_t *)types)[i]
					: ((const uint64_t *)types)[i];
}

static inline uint64_t xs_mpi_elements(int64_t bytes, struct xs_mpi_amount posted)
{
	return posted.size > 0 && bytes % posted.size == 0 ? (uint64_t)(bytes / posted.size)
							   : (uint64_t)INT64_MIN;
}

/* ---- statuses (mpi_requests.c) ---- */

enum xs_mpi_ignore { XS_MPI_IGNORE_C, XS_MPI_IGNORE_F, XS_MPI_IGNORE_F08 };

struct xs_mpi_came {
	bool known, cancelled;
	int32_t source, tag;
	int64_t bytes;
};

/* Addresses that stand for no status, or no statuses. */
bool xs_mpi_ignored(xs_word status, enum xs_mpi_ignore kind, bool many);
int64_t xs_mpi_ask_bytes(const void *status);

/* The status to call with: one of ours where the application wants none. */
static inline xs_word xs_mpi_status(xs_word status, uint64_t *own, enum xs_mpi_ignore kind)
{
	if (kind == XS_MPI_IGNORE_C ? status != xs_mpi_abi.status_ignore
				    : !xs_mpi_ignored(status, kind, false))
		return status;
	return (xs_word)own; /* a call that succeeds fills it in */
}

static inline struct xs_mpi_came xs_mpi_read_status(const void *status)
{
	const int32_t *word = status;
	struct xs_mpi_came came = { .known = true };

	if (xs_mpi_abi.status == XS_MPI_STATUS_MPICH) {
		came.source = word[2];
		came.tag = word[3];
		came.cancelled = word[1] & 1;
		came.bytes = (int64_t)((uint64_t)(uint32_t)word[0] |
				       (uint64_t)((uint32_t)word[1] >> 1) << 32);
	} else {
		came.source = word[0];
		came.tag = word[1];
		came.cancelled = xs_mpi_abi.status == XS_MPI_STATUS_OPEN && word[3];
		came.bytes = xs_mpi_abi.status == XS_MPI_STATUS_OPEN ? *(const int64_t *)(word + 4)
								     : xs_mpi_ask_bytes(status);
	}
	return came;
}

/* flag: something came. */
static inline struct xs_mpi_came xs_mpi_came(const struct xs_mpi_call *call, const void *status,
					     int32_t flag)
{
	return call->result || !flag
		       ? (struct xs_mpi_came){ .source = XS_MPI_NOTHING, .tag = XS_MPI_NOTHING }
		       : xs_mpi_read_status(status);
}

static inline uint64_t xs_mpi_transferred(const struct xs_mpi_call *call, const void *status,
					  struct xs_mpi_amount posted)
{
	return call->result ? (uint64_t)posted.bytes : (uint64_t)xs_mpi_read_status(status).bytes;
}

/* ---- requests (mpi_requests.c) ---- */

#define XS_MPI_FEW 16u

/* What is completed by a call, as it was before. */
struct xs_mpi_wait {
	int32_t count;
	bool fortran;
	uint64_t *handles;
	unsigned char *statuses; /* NULL: not known */
	uint32_t step;		 /* bytes of one status */
	size_t taken[2];	 /* bytes of handles and statuses that do not fit here */
	uint64_t few[XS_MPI_FEW];
	uint64_t few_statuses[XS_MPI_FEW * 4];
};

/* Returns the statuses to call with. */
xs_word xs_mpi_wait_begin(struct xs_mpi_wait *wait, int32_t count, xs_word requests,
			  xs_word statuses, bool many, enum xs_mpi_ignore kind, bool fortran);
/* `done` of them are complete: those of the indices, or from the first on. */
void xs_mpi_wait_end(struct xs_mpi_call *call, struct xs_mpi_wait *wait, int32_t done,
		     const int32_t *indices);
void xs_mpi_wait_one(struct xs_mpi_call *call, struct xs_mpi_wait *wait, int32_t flag,
		     int32_t index);
void xs_mpi_started(const struct xs_mpi_call *call, uint64_t request);
void xs_mpi_started_all(const struct xs_mpi_call *call, int32_t count, const void *requests,
			bool fortran);

/*
 * A request or message of a communicator whose ranks are not those of MPI_COMM_WORLD, and whose
 * source is not known yet.
 */
void xs_mpi_note(uint64_t handle, struct xs_mpi_comm *comm);
/* Its communicator, which is forgotten; MPI_COMM_WORLD's where nothing was noted. */
struct xs_mpi_comm *xs_mpi_message(uint64_t handle);

/* ---- functions that are not in every library (mpi_probe.c) ---- */

struct xs_mpi_optional {
	const char *name;
	void *(*probe)(void);
};
extern const struct xs_mpi_optional xs_mpi_optional[];
extern const uint32_t xs_mpi_optional_count;

#endif
