/*
 * An MPI call, as a wrapper records it that says how much it moves, and to whom; compiled as
 * libxstrace-mpi.so is.
 */
#include "probes.h"

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

static __attribute__((noinline)) int wrapper(void)
{
	uint64_t word[WORDS];
	struct xs_mpi_call call;

	if (!xs_mpi_enter(&call, 1, XS_FRAME_MARK()))
		return 0;
	xs_mpi_leave(&call, 0);
	for (uint32_t i = 0; i < WORDS; i++)
		word[i] = i;
	xs_mpi_write(&call,
		     1u << XS_MPI_COMM | 1u << XS_MPI_PEER | 1u << XS_MPI_COUNT |
			     1u << XS_MPI_BYTES,
		     word, WORDS);
	return 0;
}

static void many(uint32_t count)
{
	int (*volatile function)(void) = wrapper;

	while (count--)
		(void)function();
}

static uint64_t durations(const unsigned char *data, uint32_t count)
{
	uint32_t size = (uint32_t)(sizeof(struct xs_mpi_record) + 8 * WORDS + 15) & ~15u;
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < count; i++)
		ticks += ((const struct xs_mpi_record *)(const void *)(data + i * size))->duration;
	return ticks;
}
const struct xs_probe xs_probe_mpi = { many, durations };
