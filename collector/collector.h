/*
 * Life inside the traced process: joining a run, one ring per thread, and the few lines that every producer runs per event.
 *
 * Nothing here may crash, print or wait in an application that is not traced. Any function may be the first one called (library
 * constructors run before ours) and none is the last (destructors of other libraries run after ours).
 */
#ifndef XS_COLLECTOR_H
#define XS_COLLECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"
#include "ring.h"

/* Per thread: one pointer and one counter (initial-exec: glibc has little room for it when we are dlopened). */
struct xs_tls {
	struct xs_ring *ring; /* NULL until the thread's first event */
	uint32_t busy;        /* we are inside the collector: a signal handler's events must not touch the ring */
};
extern __thread struct xs_tls xs_tls __attribute__((tls_model("initial-exec")));

/*
 * Whether to record: `open` is 1 only in a process that has joined and is not paused. The page is wiped by the kernel in a
 * child of fork, however it was forked, so that a child never writes into its parent's rings.
 */
struct xs_gate {
	_Atomic uint32_t open;
	_Atomic uint32_t lock;
	_Atomic uint32_t no_rings; /* there was no memory for a ring, and none was given back since */
	uint32_t state;            /* enum in collector.c */
};
extern struct xs_gate *xs_gate;
extern struct xs_doorbell *xs_bell;
extern bool xs_use_tsc;

/* The run's options, or NULL when this process is not traced. Joins the run if that was not done yet. */
const struct xs_options *xs_collector_options(void);

/* Interned id of a name; 0 when not traced. */
uint32_t xs_name(const char *text, uint32_t scope);

/* The thread gets its ring (and the process joins its run). False: not traced, paused, or inside the collector. */
bool xs_thread_attach(void);

/* The kernel's id of the calling thread, which has a ring. */
static inline uint32_t xs_thread_id(void)
{
	return atomic_load_explicit(&xs_tls.ring->tid, memory_order_relaxed);
}

/* Memory that lives as long as the process, from the kernel: the application's allocator is never entered. NULL: none left. */
void *xs_arena(size_t size);

/* Called once, when the process ends normally: a backend puts finished device work into the ring. */
void xs_at_end(void (*function)(void));

static inline bool xs_recording(void)
{
	return __builtin_expect(atomic_load_explicit(&xs_gate->open, memory_order_relaxed) && xs_tls.ring && !xs_tls.busy, 1) ||
	       xs_thread_attach();
}

/*
 * One record: xs_record_begin() gives its memory, header filled in except for the tick, or NULL: not recorded.
 * Every field must be stored before xs_record_end().
 */
static inline void *xs_record_begin(uint32_t size, uint8_t kind, uint8_t source, uint8_t flags, uint32_t name,
				    enum xs_role role)
{
	struct xs_event *event;

	if (!xs_recording())
		return NULL;
	xs_tls.busy++;
	atomic_signal_fence(memory_order_seq_cst);
	event = xs_ring_reserve(xs_tls.ring, xs_bell, size, role);
	if (!event) {
		xs_tls.busy--;
		return NULL;
	}
	event->name = name;
	event->kind = kind;
	event->words = (uint8_t)(size / 8);
	event->source = source;
	event->flags = flags;
	return event;
}

static inline void xs_record_end(uint32_t size)
{
	xs_ring_commit(xs_tls.ring, size);
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.busy--;
}

/* An API call in flight. Calls nest: a callback that the call runs may call the API. */
struct xs_call {
	uint64_t tick, outer_tick;
	uint32_t outer;
};

/* False: not recorded, go straight through. `function`: number in the source's table. */
static inline bool xs_call_enter(struct xs_call *call, uint8_t source, uint32_t function)
{
	struct xs_ring *ring;

	if (!xs_recording())
		return false;
	ring = xs_tls.ring;
	call->outer = atomic_load_explicit(&ring->call, memory_order_relaxed);
	call->outer_tick = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);
	call->tick = xs_tick(xs_use_tsc);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, (uint32_t)source << 24 | (function + 1), memory_order_relaxed);
	return true;
}

/* Returns the call's duration in ticks. */
static inline uint64_t xs_call_leave(const struct xs_call *call)
{
	uint64_t duration = xs_tick(xs_use_tsc) - call->tick;

	/* a child that was forked inside the call has no ring of its own yet, and must not touch its parent's */
	if (__builtin_expect(atomic_load_explicit(&xs_gate->open, memory_order_relaxed) && xs_tls.ring, 1)) {
		atomic_store_explicit(&xs_tls.ring->call_tick, call->outer_tick, memory_order_relaxed);
		atomic_store_explicit(&xs_tls.ring->call, call->outer, memory_order_relaxed);
	}
	return duration;
}

static inline void xs_call_record(const struct xs_call *call, uint64_t duration, uint8_t source, uint32_t function,
				  uint8_t flags, int64_t result)
{
	struct xs_call_record *record =
		xs_record_begin(sizeof(*record), XS_CALL, source, flags, function, XS_ROLE_OTHER);

	if (record) {
		record->event.tick = call->tick;
		record->duration = duration;
		record->result = result;
		xs_record_end(sizeof(*record));
	}
}

#endif
