/*
 * Life inside the traced process: joining a run, one ring per thread, and the few lines that every
 * producer runs per event.
 *
 * Nothing here may crash, print or wait in an application that is not traced. Any function may be
 * the first one called (library constructors run before ours) and none is the last (destructors of
 * other libraries run after ours).
 */
#ifndef XS_COLLECTOR_H
#define XS_COLLECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "device_record.h"
#include "options.h"
#include "pause.h"
#include "ring.h"
#include "strtab.h"

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
	const void *wait_object; /* that the thread waits for, as ITT's sync_prepare said */
	uint64_t wait_tick;
	uintptr_t stack_low, stack_high; /* known to be readable (stack.c) */
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
 * A process has one collector: a copy of this library that was loaded into another namespace
 * (dlmopen, LD_AUDIT) records nothing. NULL: this is none; else where the process's own is, or this
 * one if there is no other.
 */
struct link_map;
const struct link_map *xs_first_self(void);

/*
 * CLOCK_MONOTONIC for deadlines: the kernel's, where the program may have a clock_gettime() of
 * another kind (libfaketime), which stands still or goes back. By a system call.
 */
uint64_t xs_true_ns(void);
/* Can the page of this address be read? By a system call. */
bool xs_page_readable(uintptr_t address);
/*
 * Copies what another thread may be giving back to the kernel. So many bytes were there; in a
 * sealed process none.
 */
size_t xs_copy_readable(void *to, const void *from, size_t size);
/* Interned id of a name; 0 when not traced. */
uint32_t xs_name(const char *text, uint32_t scope);

/* The same, of pieces. */
uint32_t xs_name_parts(const struct xs_part *parts, uint32_t count, uint32_t scope);

/* What an id stands for, which this process has interned; empty: it is none. */
struct xs_part xs_text_of_name(uint32_t name);

/* The id of what a command is (0: there is no room), and what that id stands for. */
uint32_t xs_shape(const struct xs_shape *shape);
const struct xs_shape *xs_shape_of(uint32_t id);

/*
 * What is rare before an event: the thread gets its ring (and the process joins its run), or finds
 * that it has left the collector by a jump. False: not traced, paused, or inside the collector.
 */
bool xs_thread_attach(void) __attribute__((cold));

/* ---- control.c: whether this process records ---- */

/*
 * The process has joined (again): what its gate is to be, by the options, the environment and what
 * ITT said so far.
 */
uint32_t xs_gate_wanted(void);
/* ITT's pause and resume; without --start-paused without effect. */
void xs_control_itt(bool resume);
/* ITT's detach: stops recording this process for good. */
void xs_control_detach(void);
/*
 * Sets the gate anew after one of the reasons has changed; does nothing before the process has
 * joined.
 */
void xs_gate_update(void);
/*
 * For the gates XS_GATE_SLOW and XS_GATE_PAUSED_SLOW: a task or frame begins, a task ends, a marker
 * comes. May open or shut the gate.
 */
void xs_watch_begin(const void *domain_object, const char *domain, const char *name);
void xs_watch_end(const void *domain_object);
void xs_watch_marker(const char *domain, const char *name);

/* Of the process that has joined. */
const struct xs_options *xs_options_of_run(void);
struct xs_pauses *xs_own_pauses(void);
/* Where the clock of a device is told; NULL: there is no memory. */
struct xs_device_pairs *xs_own_device_pairs(uint32_t device);
/*
 * Makes the process's file number `number` of CUDA's activity (activity.h), of zeros. NULL: there
 * is no memory. Its pages are not present yet.
 */
void *xs_own_activity(uint32_t number, uint64_t size);
/* Number 0 is complete: the drain process may look at it. */
void xs_tell_activity(void);
/*
 * So many commands for a device will not be reported, although nothing was paused; told at the end.
 * None of them has begun (below).
 */
void xs_count_untimed(uint64_t count);
/* The same of runs of kernels that were to be measured; UINT64_MAX: one fewer. */
void xs_count_unmeasured(uint64_t count);
/* So many samples of instructions are lost, at least. */
void xs_count_unsampled(uint64_t count);
/*
 * --on-demand: a step of the program begins; how many have so far. Where a trace is to begin or end
 * with it, the drain process does that first, for which it gets 50 ms. 0: the run is another one.
 */
uint64_t xs_count_step(void);

/*
 * Each command that is recorded when it has run is counted twice, by stores into the header of the
 * ring of the thread that does so: when it is on its way, and when it is known what the trace tells
 * of it. The drain process tells of the rest, however the process ends.
 */
static inline void xs_commands_begin(uint64_t count)
{
	/* who enqueues while recording has a ring */
	_Atomic uint64_t *begun = &xs_tls.producer.ring->commands_begun;

	atomic_store_explicit(begun, atomic_load_explicit(begun, memory_order_relaxed) + count,
			      memory_order_relaxed);
}
/*
 * Have a record; written false: it found no room and was counted, unless nothing is recorded just
 * now.
 */
void xs_commands_end(uint64_t count, bool written);
/* Will have none: their times could not be had; with the same exception. */
void xs_commands_untimed(uint64_t count);
/*
 * How much of an API's memory is in use now on a device (its interned name; 0: not known), which
 * has this place in struct xs_process_file; what is not freed is told at the end.
 */
void xs_tell_unfreed(uint32_t place, uint32_t device, uint64_t count, uint64_t bytes);
/*
 * At the end of the process: is a library loaded whose name, without its directory, begins like
 * this?
 */
bool xs_has_library(const char *name);
/* --python-stacks: what tracing a call costs (shm.h), and that one has ended. */
void xs_tell_function_costs(double ns, double inside_ns, double counted_ns);
void xs_count_function(bool has_slice);
/* An enum xs_unseen (shm.h); told at the end. */
void xs_tell_unseen(unsigned what);
/* When the run began: no event of it is older. */
uint64_t xs_life_began_tick(void);
uint64_t xs_life_began_ns(void); /* CLOCK_MONOTONIC */
/* MPI has said who this process is. */
void xs_told_rank(int32_t rank, int32_t world_size);
/* --flight-recorder: a trace is to be written. */
void xs_request_dump(void);

/* Has a signal interrupted what this thread does? Where that cannot be found out: no. */
bool xs_in_handler(void) __attribute__((cold, noinline));
/* Stops recording this thread: __itt_thread_ignore(). */
void xs_thread_ignore(void);
/* The thread's name from here on, by its id. */
void xs_thread_name(uint32_t name);

/* The kernel's id of the calling thread, which has a ring. */
static inline uint32_t xs_thread_id(void)
{
	return xs_tls.tid;
}

/*
 * Memory that lives as long as the process, from the kernel: the application's allocator is never
 * entered. NULL: none left, which is told at the end.
 */
void *xs_arena(size_t size);

/*
 * A large table, zeroed, that is there from the first time on that it is needed: a program that
 * does not need it, or that may have little data (RLIMIT_DATA counts what it never touches, too),
 * does not have it.
 */
struct xs_table {
	_Atomic(void *) memory;
	size_t size;
};
/*
 * All of these are listed, for a process that is about to lose the right to get memory (sandbox.c).
 */
#define XS_TABLE(name, bytes)                              \
	static struct xs_table name = { .size = (bytes) }; \
	static struct xs_table *const name##_row __attribute__((section("xs_tables"), used)) = &name
void *xs_table_make(struct xs_table *table) __attribute__((cold));

/* NULL: there is no memory for it. */
static inline void *xs_table(struct xs_table *table)
{
	/* pairs with the release in xs_table_make() */
	void *memory = atomic_load_explicit(&table->memory, memory_order_acquire);

	return __builtin_expect(memory != NULL, 1) ? memory : xs_table_make(table);
}

/*
 * What a backend wants to be called; it lives as long as the process. Any number of them, the
 * newest first.
 */
struct xs_hook {
	void (*function)(void);
	struct xs_hook *next;
	atomic_bool is_hung; /* once is enough */
};
/* When a program that was started without a run begins one for itself: what it uses already is
 * found. */
void xs_at_begin(struct xs_hook *hook);
/* When the process ends normally, once: a backend puts finished device work into the ring. */
void xs_at_end(struct xs_hook *hook);
/* When the program itself ends a trace (library/), again and again: likewise. */
void xs_at_stop(struct xs_hook *hook);
void xs_call_at_stop(void);
/*
 * When the program is about to enter a sandbox and nothing may be recorded that needs a system call
 * (xs_is_sealed()): a backend ends its threads. It may make calls still, but not by xs_sys().
 */
void xs_at_seal(struct xs_hook *hook);
/*
 * When a pause of this process's own ends, whatever calls that: a backend that was not called
 * meanwhile is called from now on. Not for the pauses of the run.
 */
void xs_at_resume(struct xs_hook *hook);
/*
 * What a program calls one of its objects: told to the backend that knows the object by its handle.
 * A device's handle is its number, and its name may come before there is a backend.
 */
enum xs_object { XS_OBJECT_DEVICE, XS_OBJECT_CONTEXT, XS_OBJECT_STREAM };
#define XS_NAMED_DEVICES 64u
extern _Atomic uint32_t xs_named_devices[XS_NAMED_DEVICES]; /* interned; 0: it has none */
typedef void xs_namer(enum xs_object object, uint64_t handle, uint32_t name);
extern _Atomic(xs_namer *) xs_object_namer; /* NULL: there is no such backend (yet) */
void xs_name_object(enum xs_object object, uint64_t handle, const char *name);

/* When a thread ends that has recorded something: a backend takes back what it gave the thread. */
void xs_at_thread_end(struct xs_hook *hook);

/* May this process write into its rings? */
static inline bool xs_joined(void)
{
	uint32_t open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);

	return open != XS_GATE_CLOSED && open != XS_GATE_OFF;
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

/* Returns the call's duration in ticks. */
static inline uint64_t xs_call_leave(const struct xs_call *call)
{
	uint32_t open = atomic_load_explicit(&xs_gate->open, memory_order_relaxed);
	struct xs_ring *ring = xs_own_ring();
	uint64_t duration;

	if (__builtin_expect(open == XS_GATE_OFF, 0))
		return 0;
	duration = xs_tick(xs_use_tsc) - call->tick;
	/* a child that was forked inside the call may have none of its own yet */
	if (__builtin_expect(ring != NULL, 1)) {
		if (call->outer) {
			atomic_store_explicit(&ring->call_tick, call->outer_tick,
					      memory_order_relaxed);
			xs_tls.call = call->outer_call;
		}
		atomic_store_explicit(&ring->call, call->outer, memory_order_relaxed);
	}
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

/* What xs_call_leave() has told of the call. */
void xs_call_write(uint64_t tick, uint64_t duration, uint64_t header, int64_t result);

#endif
