/*
 * The end of a recorded call, and what is rare at its begin.
 */
#include "collector.h"
#include "stack.h"

#define ONE_STACK (1u << 20)

/* It was left just behind its record, which is the thread's last. */
static bool is_written(uint64_t tick)
{
	const struct xs_producer *producer = &xs_tls.producer;
	uint64_t at = (producer->head - sizeof(struct xs_call_record)) & producer->mask;
	const struct xs_event *event = (const struct xs_event *)(producer->data + at);

	return producer->head >= sizeof(struct xs_call_record) && event->kind == XS_CALL &&
	       event->tick == tick;
}

void xs_call_within(struct xs_call *call)
{
	struct xs_ring *ring = xs_tls.producer.ring;

	if (!ring) /* a handler has forked: this is the child */
		return;
	call->outer_tick = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);
	call->outer_call = xs_tls.call;
	/*
	 * stacks grow down: what was at this place, or a little below, is there no more; farther
	 * away is another stack
	 */
	if ((uintptr_t)call - xs_tls.call >= ONE_STACK)
		return;
	call->outer = 0;
	if (!is_written(call->outer_tick))
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

/*
 * The common case, as xs_mark(): where the record comes, inside. NULL, and not inside: the long way
 * must be taken. Without a ring, too, for its limit is 0.
 */
XS_INLINE uint64_t *begin_ready(void)
{
	struct xs_producer *producer = &xs_tls.producer;
	uint64_t head;

	xs_inside_begin(XS_FRAME_MARK());
	head = producer->head;
	if (__builtin_expect(head + sizeof(struct xs_call_record) > producer->limit, 0)) {
		xs_inside_end();
		return NULL;
	}
	return (uint64_t *)(producer->data + (head & producer->mask));
}

/*
 * past: the ring names the call no more. Still inside: a child that a handler has forked there goes
 * on with a ring of its own (forked.c), later with none.
 */
XS_INLINE void end_ready(uint64_t *words, uint64_t tick, uint64_t duration, uint64_t header,
			 int64_t result, bool past)
{
	words[0] = tick;
	words[1] = header;
	words[2] = duration;
	words[3] = (uint64_t)result;
	xs_own_ahead(words);
	xs_ring_commit(&xs_tls.producer, sizeof(struct xs_call_record));
	if (past)
		atomic_store_explicit(&xs_tls.producer.ring->call, 0, memory_order_relaxed);
	xs_inside_end();
}

bool xs_call_write(uint64_t tick, uint64_t duration, uint64_t header, int64_t result)
{
	uint64_t *words = NULL;

	if (__builtin_expect(xs_ready_for_mark() && !xs_stack_depth, 1))
		words = begin_ready();
	if (__builtin_expect(!words, 0))
		return write_long(tick, duration, header, result);
	end_ready(words, tick, duration, header, result, false);
	return true;
}

/* Apart, so that the function below saves no registers. */
static __attribute__((noinline, cold)) void write_and_pass(uint64_t header, int64_t result,
							   const struct xs_call *call)
{
	write_long(call->tick, xs_call_ticks(call), header, result);
	xs_call_past(call);
}

void xs_call_end(uint64_t header, int64_t result, const struct xs_call *call)
{
	uint64_t *words = NULL;

	if (__builtin_expect(xs_ready_for_mark() && !call->outer && !xs_stack_depth, 1))
		words = begin_ready();
	if (__builtin_expect(!words, 0)) {
		write_and_pass(header, result, call);
		return;
	}
	end_ready(words, call->tick, xs_tick(true) - call->tick, header, result, true);
}
