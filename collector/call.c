/*
 * The end of a recorded call, and what is rare at its begin.
 */
#include "collector.h"
#include "stack.h"

bool xs_call_enter_long(struct xs_call *call, uint32_t word)
{
	struct xs_ring *ring;

	if (!xs_recording())
		return false;
	ring = xs_tls.ring;
	call->outer = atomic_load_explicit(&ring->call, memory_order_relaxed);
	call->outer_tick = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);
	call->tick = xs_tick(xs_use_tsc);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, word, memory_order_relaxed);
	return true;
}

static __attribute__((noinline, cold)) void write_long(uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	struct xs_call_record *record;

	if (xs_stack_depth)
		xs_stack_write(tick);
	record = xs_record_begin(sizeof(*record), XS_CALL, (uint8_t)(header >> 48), (uint8_t)(header >> 56), (uint32_t)header,
				 XS_ROLE_OTHER);
	if (record) {
		record->event.tick = tick;
		record->duration = duration;
		record->result = result;
		xs_record_end(sizeof(*record));
	}
}

/* The common case, as xs_mark(): the ring is ready. */
static inline void write_ready(struct xs_ring *ring, uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	uint64_t head, *words;

	/* before head is read: see xs_mark() */
	xs_tls.ready = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	if (__builtin_expect(head + sizeof(struct xs_call_record) > ring->limit, 0)) {
		xs_tls.ready = ring;
		write_long(tick, duration, header, result);
		return;
	}
	words = (uint64_t *)(ring->data + (head & ring->mask));
	words[0] = tick;
	words[1] = header;
	words[2] = duration;
	words[3] = (uint64_t)result;
	xs_own_ahead(words);
	atomic_store_explicit(&ring->head, head + sizeof(struct xs_call_record), memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.ready = ring;
}

void xs_call_write(uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	struct xs_ring *ring = xs_tls.ready;

	if (__builtin_expect(!xs_ready_for_mark(ring) || xs_stack_depth, 0))
		write_long(tick, duration, header, result);
	else
		write_ready(ring, tick, duration, header, result);
}

/* Apart, so that the function below saves no registers. */
static __attribute__((noinline, cold)) void leave_and_write(uint64_t header, int64_t result, const struct xs_call *call)
{
	write_long(call->tick, xs_call_leave(call), header, result);
}

void xs_call_end(uint64_t header, int64_t result, const struct xs_call *call)
{
	struct xs_ring *ring = xs_tls.ready;
	uint64_t tick = call->tick, duration;

	if (__builtin_expect(!xs_ready_for_mark(ring) || call->outer || xs_stack_depth, 0)) {
		leave_and_write(header, result, call);
		return;
	}
	duration = xs_tick(true) - tick;
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	write_ready(ring, tick, duration, header, result);
}
