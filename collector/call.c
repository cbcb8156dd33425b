/*
 * The end of a recorded call, and what is rare at its begin.
 */
#include "collector.h"
#include "stack.h"

#define ONE_STACK (1u << 20)

void xs_call_within(struct xs_call *call)
{
	struct xs_ring *ring = xs_tls.producer.ring;

	call->outer_tick = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);
	call->outer_call = xs_tls.call;
	/*
	 * stacks grow down: what was at this place, or a little below, is there no more; farther
	 * away is another stack
	 */
	if ((uintptr_t)call - xs_tls.call >= ONE_STACK)
		return;
	call->outer = 0;
	atomic_fetch_add_explicit(&ring->lost_nested, 1, memory_order_relaxed);
}

bool xs_call_enter_long(struct xs_call *call, uint32_t word)
{
	struct xs_ring *ring;

	if (!xs_recording())
		return false;
	ring = xs_tls.producer.ring;
	call->outer = atomic_load_explicit(&ring->call, memory_order_relaxed);
	if (call->outer)
		xs_call_within(call);
	xs_tls.call = (uintptr_t)call;
	call->tick = xs_tick(xs_use_tsc);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, word, memory_order_relaxed);
	return true;
}

/* For the call record that follows, which began at `tick`. */
static __attribute__((noinline, cold)) void write_stack(uint64_t tick)
{
	uint32_t depth = xs_stack_depth, count, size = XS_STACK_SIZE(depth);
	struct xs_stack_record *record =
		xs_record_begin(size, XS_STACK, XS_SOURCE_NONE, 0, 0, XS_ROLE_OTHER);
	bool more;

	if (!record)
		return;
	count = xs_stack_frames(record->frame, depth, &more);
	if (count & 1)
		record->frame[count] = 0;
	size = XS_STACK_SIZE(count);
	record->event.tick = tick;
	record->event.name = count;
	record->event.words = (uint8_t)(size / 8);
	record->event.flags = more ? XS_STACK_FLAG_CUT : 0;
	xs_record_end(size);
}

static __attribute__((noinline, cold)) bool write_long(uint64_t tick, uint64_t duration,
						       uint64_t header, int64_t result)
{
	struct xs_call_record *record;

	if (xs_stack_depth)
		write_stack(tick);
	record = xs_record_begin(sizeof(*record), XS_CALL, (uint8_t)(header >> 48),
				 (uint8_t)(header >> 56), (uint32_t)header, XS_ROLE_OTHER);
	if (record) {
		record->event.tick = tick;
		record->duration = duration;
		record->result = result;
		xs_record_end(sizeof(*record));
	}
	return record;
}

/* The common case, as xs_mark(). */
XS_INLINE bool write_ready(uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	struct xs_producer *producer = &xs_tls.producer;
	uint64_t head, *words;

	xs_inside_begin(XS_FRAME_MARK());
	head = producer->head;
	if (__builtin_expect(head + sizeof(struct xs_call_record) > producer->limit, 0)) {
		xs_inside_end();
		return write_long(tick, duration, header, result);
	}
	words = (uint64_t *)(producer->data + (head & producer->mask));
	words[0] = tick;
	words[1] = header;
	words[2] = duration;
	words[3] = (uint64_t)result;
	xs_own_ahead(words);
	xs_ring_commit(producer, sizeof(struct xs_call_record));
	xs_inside_end();
	return true;
}

bool xs_call_write(uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	if (__builtin_expect(!xs_ready_for_mark() || xs_stack_depth, 0))
		return write_long(tick, duration, header, result);
	return write_ready(tick, duration, header, result);
}

/* Apart, so that the function below saves no registers. */
static __attribute__((noinline, cold)) void leave_and_write(uint64_t header, int64_t result,
							    const struct xs_call *call)
{
	write_long(call->tick, xs_call_leave(call), header, result);
}

void xs_call_end(uint64_t header, int64_t result, const struct xs_call *call)
{
	struct xs_ring *ring = xs_tls.producer.ring;
	uint64_t tick = call->tick, duration;

	if (__builtin_expect(!xs_ready_for_mark() || !ring || call->outer || xs_stack_depth, 0)) {
		leave_and_write(header, result, call);
		return;
	}
	duration = xs_tick(true) - tick;
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	write_ready(tick, duration, header, result);
}
