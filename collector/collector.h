/*
 * Life inside the traced process, all that producers need: joining a run and one ring per thread
 * (gate.h), the few lines that they run per event (produce.h), and what is rare.
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

#include "device_record.h"
#include "gate.h"
#include "options.h"
#include "produce.h"
#include "strtab.h"

/*
 * A process has one collector: a copy of this library that was loaded into another namespace
 * (dlmopen, LD_AUDIT) records nothing. NULL: this is none; else where the process's own is, or this
 * one if there is no other.
 */
struct link_map;
const struct link_map *xs_first_self(void);

/*
 * CLOCK_MONOTONIC for deadlines: the kernel's, where the program may have a clock_gettime() of
 * another kind (libfaketime), which stands still or goes back. By a system call. UINT64_MAX where
 * no clock can be read: any deadline is over.
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
 * is no memory. Its pages are not present yet. made_as: where in its first page that word lies.
 */
void *xs_own_activity(uint32_t number, uint64_t size, size_t made_as);
/* Number 0 is complete: the drain process may look at it. */
void xs_tell_activity(void);
/*
 * So many commands for a device will not be reported, although nothing was paused; told at the end.
 * None of them has begun (below).
 */
void xs_count_untimed(uint64_t count);
/* The same of runs of kernels that were to be measured; UINT64_MAX: one fewer. */
void xs_count_unmeasured(uint64_t count);
/* There was no room for a name; told at the end. */
void xs_count_unnamed(void) __attribute__((cold));
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

#endif
