/*
 * An MPI call, as a wrapper records it that says how much it moves, and to whom; compiled as
 * libxstrace-mpi.so is.
 */
#include "probes.h"

#include "mpi_record.h"
#include "mpi_wrap.h"

#define WORDS 4u

__thread uintptr_t xs_mpi_inside __attribute__((tls_model("initial-exec")));

bool xs_mpi_is_there(uintptr_t mark)
{
	(void)mark;
	return false;
}

bool xs_companion_enter(struct xs_call *call, uint32_t word)
{
	struct xs_ring *ring = xs_tls.producer.ring;

	call->outer = 0;
	call->tick = xs_tick(xs_use_tsc);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, word, memory_order_relaxed);
	return true;
}

void xs_companion_within(struct xs_call *call)
{
	call->outer = 0;
}

/* where the time stamp counter is not used */
void xs_mpi_write_long(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word,
		       uint32_t count)
{
	uint32_t size = (uint32_t)(sizeof(struct xs_mpi_record) + 8 * count + 15) & ~15u;
	struct xs_mpi_record *record = xs_ring_reserve(&xs_tls.producer, NULL, size, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = call->call.tick;
	record->duration = call->duration & 0xffffffffffffu;
	record->words = words & 0xffff;
	memcpy(record + 1, word, 8 * (size_t)count);
	xs_ring_commit(&xs_tls.producer, size);
}

struct xs_mpi_abi xs_mpi_abi = { .int_handles = true,
				 .handle_mask = 0xffffffff,
				 .proc_null = -1,
				 .status = XS_MPI_STATUS_MPICH };
struct xs_mpi_comm xs_mpi_world_comm;
uint64_t xs_mpi_world = 1;
int (*xs_mpi_type_size)(xs_word type, int64_t *size);

struct xs_mpi_comm *xs_mpi_object_find(enum xs_mpi_kind kind, uint64_t handle, bool ask)
{
	(void)kind, (void)handle, (void)ask;
	return &xs_mpi_world_comm;
}

/* only where the compiler does not see that the kind is C's */
bool xs_mpi_ignored(xs_word status, enum xs_mpi_ignore kind, bool many)
{
	(void)kind, (void)many;
	return !status;
}

int64_t xs_mpi_ask_bytes(const void *status)
{
	(void)status;
	return 0;
}

/* As MPI_Recv()'s. */
static __attribute__((noinline)) int wrapper(xs_word count, xs_word type, xs_word source,
					     xs_word tag, xs_word comm, xs_word status)
{
	uint64_t own[XS_MPI_STATUS_MAX / 8], word[WORDS];
	struct xs_mpi_amount amount;
	struct xs_mpi_comm *found;
	struct xs_mpi_call call;

	if (!xs_mpi_enter(&call, 1, XS_FRAME_MARK()))
		return 0;
	status = xs_mpi_status(status, own, XS_MPI_IGNORE_C);
	xs_mpi_leave(&call, 0);
	found = xs_mpi_object(XS_MPI_KIND_COMM, C_COMM(comm), !call.result);
	amount = xs_mpi_amount(&call, C_INT(count), C_TYPE(type));
	word[0] = found->id;
	word[1] = xs_mpi_peer(found, C_INT(source), C_INT(tag));
	word[3] = xs_mpi_transferred(&call, (const void *)status, amount);
	word[2] = xs_mpi_elements((int64_t)word[3], amount);
	xs_mpi_write(&call,
		     1u << XS_MPI_COMM | 1u << XS_MPI_PEER | 1u << XS_MPI_COUNT |
			     1u << XS_MPI_BYTES,
		     word, WORDS);
	return call.result;
}

static void call(void)
{
	static int32_t status[8] = { 8, 0, 0, 1 };
	int (*volatile function)(xs_word, xs_word, xs_word, xs_word, xs_word, xs_word) = wrapper;

	(void)function(2, 0x4c000405, 0, 1, 1, (xs_word)status);
}

static uint64_t durations(const unsigned char *data, uint32_t count)
{
	uint32_t size = (uint32_t)(sizeof(struct xs_mpi_record) + 8 * WORDS + 15) & ~15u;
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < count; i++)
		ticks += ((const struct xs_mpi_record *)(const void *)(data + i * size))->duration;
	return ticks;
}
const struct xs_probe xs_probe_mpi = { NULL, call, durations };
