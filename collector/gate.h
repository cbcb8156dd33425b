/*
 * Whether this thread records, and into what: the few words that every event looks at.
 */
#ifndef XS_GATE_H
#define XS_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"
#include "pause.h"
#include "ring.h"

/*
 * A companion library (companion.h) reaches the few words that every event looks at by names of
 * their own: within libxstrace.so they are hidden, so no access goes through a table.
 */
#ifdef XS_COMPANION
#define XS_SHARED	   "default"
#define xs_tls		   xs_companion_tls
#define xs_gate		   xs_companion_gate
#define xs_run_paused	   xs_companion_paused
#define xs_use_tsc	   xs_companion_use_tsc
#define xs_call_enter_long xs_companion_enter
#define xs_call_within	   xs_companion_within
#else
#define XS_SHARED "hidden"
#endif

/* A task whose end --iterations or --trigger waits for. */
struct xs_watch {
	const void *domain;
	uint32_t depth; /* open tasks of the domain from it on; 0: nobody waits */
};

/*
 * Per thread (initial-exec: glibc has little room for it when we are dlopened). The first line is
 * all that a common event needs.
 *
 * `mark` says that the thread is between reading and publishing its ring's head, or in the
 * collector's rare paths: events of a signal handler that interrupts it there do not touch the
 * ring. It names a frame, so that it means nothing any more when the thread has left that frame by
 * a jump: see xs_thread_attach().
 */
struct xs_tls {
	/* 0: outside; else where the return address of the function lies that is inside */
	_Alignas(64) uintptr_t mark;
	uintptr_t call;		     /* struct xs_call of the one in flight that the ring names */
	struct xs_producer producer; /* ring NULL: none yet */
	uint32_t busy;	      /* depth inside the collector's rare paths, where no signal arrives */
	uint32_t tid;	      /* the kernel's id; 0: not known yet */
	uint32_t name;	      /* interned; 0: as the kernel calls the thread */
	bool ignored;	      /* recording of the thread has stopped */
	struct xs_slot *slot; /* of the ring (rings.c) */
	struct xs_watch trigger, iteration; /* --trigger's task, the last of --iterations */
	uint64_t trigger_ns;		    /* when the first of them began */
	uintptr_t stack_low, stack_high;    /* known to be readable (stack.c) */
};
extern __thread struct xs_tls xs_tls
	__attribute__((tls_model("initial-exec"), visibility(XS_SHARED)));

/*
 * Whether to record: `open` says so only in a process that has joined and is not paused. The page
 * is wiped by the kernel in a child of fork, however it was forked, so that a child never writes
 * into its parent's rings.
 */
enum xs_open_gate {
	XS_GATE_CLOSED, /* not joined: the first event joins */
	/*
	 * What is between these two is the process's key: open for threads that have a ring of this
	 * process's. In a child of fork the thread that called it still has the parent's, also when
	 * another thread has joined.
	 *
	 * open, but every event takes the long way: another clock, or --iterations or --trigger
	 * watches events
	 */
	XS_GATE_SLOW = 0xfffffff0,
	XS_GATE_PAUSED,	     /* joined, not recording for a reason of this process's (control.c) */
	XS_GATE_PAUSED_SLOW, /* the same, and --iterations or --trigger watches events */
	XS_GATE_OFF,	     /* closed for good: even reading the clock is forbidden (sandbox.c) */
};

struct xs_gate {
	_Atomic uint32_t open;	       /* enum xs_open_gate, or the key */
	_Atomic uint32_t key;	       /* of this process; 0: not joined */
	_Atomic uint32_t lock;	       /* of joining, rings and memory */
	_Atomic uint32_t control_lock; /* of control.c */
	/*
	 * there may be a process that shares this one's memory and a thread's variables (sandbox.c)
	 */
	_Atomic uint32_t shared;
	/* there was no memory for a ring, and none was given back since */
	_Atomic uint32_t no_rings;
	_Atomic uint32_t state; /* enum xs_state (self.h) */
};
extern struct xs_gate *xs_gate __attribute__((visibility(XS_SHARED)));
/*
 * The run's reasons not to record (enum xs_pause_reason): control->paused, 0 before the process has
 * joined.
 */
extern const _Atomic uint32_t *xs_run_paused __attribute__((visibility(XS_SHARED)));
extern struct xs_doorbell *xs_bell __attribute__((visibility("hidden")));
extern bool xs_use_tsc __attribute__((visibility(XS_SHARED)));

/*
 * The run's options, or NULL when this process is not traced. Joins the run if that was not done
 * yet.
 */
const struct xs_options *xs_collector_options(void);

/*
 * What is rare before an event: the thread gets its ring (and the process joins its run), or finds
 * that it has left the collector by a jump. False: not traced, paused, or inside the collector.
 */
bool xs_thread_attach(void) __attribute__((cold));

/* Is this another process, which lives in the memory of the thread that it looks like? */
bool xs_thread_is_guest(void) __attribute__((cold));

/*
 * The same; as a rule there is none. Who keeps something of a thread's own asks before touching it.
 */
static inline bool xs_is_guest(void)
{
	return __builtin_expect(atomic_load_explicit(&xs_gate->shared, memory_order_relaxed), 0) &&
	       xs_thread_is_guest();
}

/* May this process write into its rings? */
static inline bool xs_joined(void)
{
	uint32_t open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);

	return open != XS_GATE_CLOSED && open != XS_GATE_OFF;
}

/* Is even reading the clock forbidden? */
static inline bool xs_is_off(void)
{
	return atomic_load_explicit(&xs_gate->open, memory_order_relaxed) == XS_GATE_OFF;
}

/*
 * The clock of events for who has not asked xs_recording() in this call; 0 where reading it is
 * forbidden.
 */
static inline uint64_t xs_tick_if_any(void)
{
	return __builtin_expect(xs_is_off(), 0) ? 0 : xs_tick(xs_use_tsc);
}

/* The part that a file records, if it can be switched off: said where the file is compiled. */
#ifndef XS_PART
#define XS_PART 0u
#endif

static inline bool xs_run_is_paused(void)
{
	return atomic_load_explicit(xs_run_paused, memory_order_relaxed) & (XS_PAUSE_ALL | XS_PART);
}

/* What an event checks first on the slow path: a few loads in a process that does not record. */
static inline bool xs_paused(void)
{
	return atomic_load_explicit(&xs_gate->open, memory_order_relaxed) >= XS_GATE_PAUSED ||
	       xs_run_is_paused();
}

/* Is it a reason of this process's own? Then xs_at_resume()'s hooks tell the end. */
static inline bool xs_paused_itself(void)
{
	uint32_t open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);

	return open == XS_GATE_PAUSED || open == XS_GATE_PAUSED_SLOW;
}

/* Is xs_watch_begin() and its like to be called? Also in a child of fork, from its first event on.
 */
static inline bool xs_watching(void)
{
	uint32_t open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);

	if (__builtin_expect(open == XS_GATE_CLOSED, 0) && xs_collector_options())
		open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);
	return open == XS_GATE_SLOW || open == XS_GATE_PAUSED_SLOW;
}

/* The thread's ring; NULL: it has none, or its parent's (a child of fork). */
static inline struct xs_ring *xs_own_ring(void)
{
	return atomic_load_explicit(&xs_gate->key, memory_order_relaxed) == xs_tls.producer.key
		       ? xs_tls.producer.ring
		       : NULL;
}

/* May this thread write a record? */
static inline bool xs_ready(void)
{
	return xs_joined() && xs_own_ring() && !xs_tls.mark;
}

static inline bool xs_recording(void)
{
	if (__builtin_expect(xs_paused(), 0))
		return false;
	return __builtin_expect(xs_ready() && !atomic_load_explicit(&xs_gate->shared,
								    memory_order_relaxed),
				1) ||
	       xs_thread_attach();
}

/*
 * Is nothing needed but the time stamp counter and a ring? Also where the process has not joined
 * and the thread has no ring: its limit of 0 tells then.
 */
static inline bool xs_is_open(void)
{
	return __builtin_expect(atomic_load_explicit(&xs_gate->open, memory_order_relaxed) ==
						xs_tls.producer.key &&
					!xs_run_is_paused(),
				1);
}

/* The common case, in which this thread can write, too: without a ring its limit is 0. */
static inline bool xs_ready_for_mark(void)
{
	return __builtin_expect(xs_is_open() && !xs_tls.mark, 1);
}

#endif
