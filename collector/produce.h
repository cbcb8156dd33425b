/*
 * The few lines that every producer runs per event: room for a record, a record, and the call of an
 * API that is in flight.
 */
#ifndef XS_PRODUCE_H
#define XS_PRODUCE_H

#include "clock.h"
#include "gate.h"

/*
 * Where the return address of the function lies that this is compiled into: no two living frames of
 * a stack have the same.
 */
#define XS_FRAME_MARK() ((uintptr_t)__builtin_dwarf_cfa() - sizeof(void *))
#define XS_INLINE	static inline __attribute__((always_inline))

/*
 * From here to xs_inside_end() a handler leaves the ring alone: before head is read, or what it
 * writes would be overwritten.
 */
XS_INLINE void xs_inside_begin(uintptr_t mark)
{
	xs_tls.mark = mark;
	atomic_signal_fence(memory_order_seq_cst);
}

XS_INLINE void xs_inside_end(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.mark = 0;
}

/*
 * Memory for one record, or NULL: not recorded. Every field must be stored before xs_record_end().
 * `mark`: XS_FRAME_MARK() of a function that does not return before that.
 */
XS_INLINE void *xs_record_reserve_in(uintptr_t mark, uint32_t size, enum xs_role role)
{
	void *record;

	if (!xs_recording())
		return NULL;
	xs_inside_begin(mark);
	record = xs_ring_reserve(&xs_tls.producer, xs_bell, size, role);
	if (__builtin_expect(!record, 0))
		xs_inside_end();
	return record;
}

XS_INLINE void *xs_record_reserve(uint32_t size, enum xs_role role)
{
	return xs_record_reserve_in(XS_FRAME_MARK(), size, role);
}

/* The same of a record that tells of `count` events: so many are lost if it finds no room. */
XS_INLINE void *xs_record_reserve_many(uint32_t size, uint32_t count)
{
	void *record = xs_record_reserve(size, XS_ROLE_OTHER);

	if (__builtin_expect(!record && xs_recording(), 0))
		atomic_fetch_add_explicit(&xs_tls.producer.ring->lost, count - 1,
					  memory_order_relaxed);
	return record;
}

/* The same, header filled in except for the tick. */
XS_INLINE void *xs_record_begin_in(uintptr_t mark, uint32_t size, uint8_t kind, uint8_t source,
				   uint8_t flags, uint32_t name, enum xs_role role)
{
	struct xs_event *event = xs_record_reserve_in(mark, size, role);

	if (__builtin_expect(!event, 0))
		return NULL;
	event->name = name;
	event->kind = kind;
	event->words = (uint8_t)(size / 8);
	event->source = source;
	event->flags = flags;
	return event;
}

XS_INLINE void *xs_record_begin(uint32_t size, uint8_t kind, uint8_t source, uint8_t flags,
				uint32_t name, enum xs_role role)
{
	return xs_record_begin_in(XS_FRAME_MARK(), size, kind, source, flags, name, role);
}

static inline void xs_record_end(uint32_t size)
{
	xs_ring_commit(&xs_tls.producer, size);
	xs_inside_end();
}

/*
 * The ring's next lines were last read by the drain process's core. Asking for them early hides
 * that; 256 bytes behind the record is a dozen events ahead, and harmless where nothing is mapped.
 */
static inline void xs_own_ahead(const void *record)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw 256(%0)" : : "r"(record));
#else
	__builtin_prefetch((const char *)record + 256, 1);
#endif
}

/*
 * The common case of a record that is its header alone: no call is made, so the compiled caller
 * saves no registers. False: the long way (xs_record_begin()) must be taken. `name` must be valid,
 * and xs_is_open() has said yes.
 */
XS_INLINE bool xs_mark_timed(uint8_t kind, uint8_t source, uint32_t name, const uint64_t *tick)
{
	struct xs_producer *producer = &xs_tls.producer;
	struct xs_event *event;
	uint64_t head;

	if (__builtin_expect(xs_tls.mark != 0, 0))
		return false;
	xs_inside_begin(XS_FRAME_MARK());
	head = producer->head;
	if (__builtin_expect(head + sizeof(struct xs_event) > producer->limit, 0)) {
		xs_inside_end();
		return false;
	}
	event = (struct xs_event *)(producer->data + (head & producer->mask));
	event->name = name;
	/* constants: one store */
	event->kind = kind;
	event->words = sizeof(*event) / 8;
	event->source = source;
	event->flags = 0;
	event->tick = tick ? *tick : xs_tick(true);
	xs_own_ahead(event);
	xs_ring_commit(producer, sizeof(struct xs_event));
	xs_inside_end();
	return true;
}

XS_INLINE bool xs_mark_open(uint8_t kind, uint8_t source, uint32_t name)
{
	return xs_mark_timed(kind, source, name, NULL);
}

/* The same of something whose time is known. */
XS_INLINE bool xs_mark_at(uint8_t kind, uint8_t source, uint32_t name, uint64_t tick)
{
	return xs_mark_timed(kind, source, name, &tick);
}

/* The same for a caller who has not asked whether anything is recorded. */
XS_INLINE bool xs_mark(uint8_t kind, uint8_t source, uint32_t name)
{
	return xs_is_open() && xs_mark_open(kind, source, name);
}

/*
 * An API call in flight, on the stack of its wrapper. Calls nest: a callback that the call runs may
 * call the API.
 */
struct xs_call {
	uint64_t tick, outer_tick;
	uintptr_t outer_call; /* as xs_tls.call */
	uint32_t outer;
};

/* The rest of the one below, for what is rare: the process's first event, another clock. */
bool xs_call_enter_long(struct xs_call *call, uint32_t word) __attribute__((cold));
/*
 * The ring names another call. Has the program left that by a jump or an exception? Then it is
 * counted as lost: nobody knows when that was.
 */
void xs_call_within(struct xs_call *call) __attribute__((cold));

/* xs_call_enter() for a caller who has just seen that recording is not paused. */
static inline bool xs_call_enter_unpaused(struct xs_call *call, uint8_t source, uint32_t function)
{
	struct xs_ring *ring = xs_tls.producer.ring;
	uint32_t word = (uint32_t)source << 24 | (function + 1);

	if (__builtin_expect(atomic_load_explicit(&xs_gate->open, memory_order_relaxed) !=
					     xs_tls.producer.key ||
				     !ring || xs_tls.mark,
			     0))
		return xs_call_enter_long(call, word);
	call->outer = atomic_load_explicit(&ring->call, memory_order_relaxed);
	if (__builtin_expect(call->outer, 0))
		xs_call_within(call);
	xs_tls.call = (uintptr_t)call;
	call->tick = xs_tick(true);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, word, memory_order_relaxed);
	return true;
}

/* False: not recorded, go straight through. `function`: number in the source's table. */
static inline bool xs_call_enter(struct xs_call *call, uint8_t source, uint32_t function)
{
	return !xs_paused() && xs_call_enter_unpaused(call, source, function);
}

/* The call's duration in ticks, so far. */
static inline uint64_t xs_call_ticks(const struct xs_call *call)
{
	return __builtin_expect(xs_is_off(), 0) ? 0 : xs_tick(xs_use_tsc) - call->tick;
}

/*
 * The ring names the call no more. Once its record is written: a handler may leave by a jump before
 * that, and the next call finds out that there was one.
 */
static inline void xs_call_past(const struct xs_call *call)
{
	struct xs_ring *ring = xs_own_ring();

	if (__builtin_expect(xs_is_off(), 0))
		return;
	/* a child that was forked inside the call may have none of its own yet */
	if (__builtin_expect(ring != NULL, 1)) {
		if (call->outer) {
			atomic_store_explicit(&ring->call_tick, call->outer_tick,
					      memory_order_relaxed);
			xs_tls.call = call->outer_call;
		}
		atomic_store_explicit(&ring->call, call->outer, memory_order_relaxed);
	}
}

/* Both, of a call that will have no record, or a later one. Returns its duration in ticks. */
static inline uint64_t xs_call_leave(const struct xs_call *call)
{
	uint64_t duration = xs_call_ticks(call);

	xs_call_past(call);
	return duration;
}

static inline uint64_t xs_call_header(uint8_t source, uint32_t function, uint8_t flags)
{
	return function | (uint64_t)XS_CALL << 32 |
	       (uint64_t)(sizeof(struct xs_call_record) / 8) << 40 | (uint64_t)source << 48 |
	       (uint64_t)flags << 56;
}

/*
 * A leaf in the common case: it saves no registers. `call` comes where reading the clock overwrites
 * a register.
 */
void xs_call_end(uint64_t header, int64_t result, const struct xs_call *call);

/* What xs_call_ticks() has told of the call; xs_call_past() follows. False: it is in no trace. */
bool xs_call_write(uint64_t tick, uint64_t duration, uint64_t header, int64_t result);

#endif
