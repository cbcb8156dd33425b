/*
 * What the files of this folder know together of the run and of this process. Nobody else includes
 * it.
 */
#ifndef XS_SELF_H
#define XS_SELF_H

#include "collector.h"
#include "shm.h"

struct xs_self {
	char dir[PATH_MAX]; /* the run directory */
	/* mapped once, not to be written, kept over fork; NULL: no run has been joined */
	const struct xs_control *control;
	struct xs_mailbox *mailbox;
	struct xs_strings *strings;
	/* in a child of fork the parent's, until the child joins */
	struct xs_process_file *process;
	struct xs_process_file *left; /* that is it, and its rings are no longer there (forked.c) */
	/* what was written into its file, where others may write, too */
	int32_t pid;
	uint32_t serial, slots;
	uint64_t ring_size; /* of the rings in its first file */
};
extern struct xs_self xs_self __attribute__((visibility("hidden")));

/* The gate's `state`: 0 in a page that a fork has wiped. */
enum xs_state { XS_NOT_JOINED, XS_JOINED, XS_OFF };

static inline enum xs_state xs_state(void)
{
	/*
	 * pairs with the release in xs_start(): every thread comes by here before its first event
	 */
	return (enum xs_state)atomic_load_explicit(&xs_gate->state, memory_order_acquire);
}

/* What xs_enter() has changed. */
struct xs_entered {
	uintptr_t mark;
	uint64_t signals; /* that were blocked before */
	enum { XS_ENTERED_BLOCKED, XS_ENTERED_AGAIN, XS_ENTERED_SEALED } how;
	int error; /* errno */
};

/*
 * A program may give a stack its pages one by one, in its handler of SIGSEGV, which cannot run
 * where signals are blocked. So the next ones are asked for before: `bytes` below the caller. The
 * stack pointer goes down with them: below it valgrind allows no read.
 */
void xs_ask_for_stack(uint32_t bytes);

/*
 * From here to xs_leave() no signal arrives: no handler interrupts, no jump leaves, no cancellation
 * ends the thread. So what is done here is done to its end, and locks may be held (`gate->lock` and
 * `gate->control_lock`, which children of fork find free). Rare paths only. Nests. What is called
 * here and traces in its turn (an allocator) finds the collector closed. In a sealed process
 * signals cannot be blocked: a jump leaves what is done here, and the mark tells.
 */
XS_INLINE void xs_enter(struct xs_entered *entered);
void xs_enter_in(uintptr_t mark, struct xs_entered *entered);
void xs_leave(const struct xs_entered *entered);
/*
 * In a child of fork: of the calls that were going on those of other threads are the parent's
 * alone.
 */
void xs_sys_forget_parent(void);

XS_INLINE void xs_enter(struct xs_entered *entered)
{
	xs_enter_in(XS_FRAME_MARK(), entered);
}

/* Where xs_start() may follow, which needs more stack than all else (docs/SECURITY.md). */
XS_INLINE void xs_enter_to_join(struct xs_entered *entered)
{
	if (__builtin_expect(!xs_joined(), 0))
		xs_ask_for_stack(4400);
	xs_enter_in(XS_FRAME_MARK(), entered);
}

/*
 * The process gets the page of its gate, unless that was done. If several threads come here at
 * once, all use the first one's.
 */
void xs_gate_make(void);
/* The same in a process that was not to be traced, and now is. False: there is no memory. */
bool xs_gate_renew(void);

/* Zeroed memory of its own from the kernel; NULL: there is none. */
void *xs_map_memory(size_t size);
/* What another process has told of Python's functions (shared.c). */
void xs_copy_function_costs(struct xs_process_file *to, const struct xs_process_file *from);

/* forked.c: a process that records may fork within an event. */
void xs_watch_forks(void);
/* In a child of fork: its first instructions. */
void xs_leave_parent(void);
pid_t _Fork(void);

/* Joins the run unless that was done or is impossible. True: joined. */
bool xs_start(void);
#define XS_ENV_ENABLE "PTI_ENABLE_COLLECTION"
/* What the environment says, when the process joins. */
void xs_control_begin(const char *enable);
/* As xs_companion_begin(). */
bool xs_begin_late(const char *variable);

/* Puts a hook before the others, unless it is among them already; calls all. */
void xs_hang(struct xs_hook *_Atomic *hooks, struct xs_hook *hook);
void xs_call_hooks(struct xs_hook *_Atomic *hooks);

/* ---- rings.c: the rings of this process; between xs_enter() and xs_leave() ---- */

/* Gives the thread an unused ring, the oldest first, else a new one. False: there is no memory. */
bool xs_ring_take(void);
/* It goes to the next thread as it is, whatever is still in it. */
void xs_ring_give(void);
/* The process has a new file, with no ring taken. */
void xs_rings_forget(void);
/* In a child of fork: unmaps its parent's. */
void xs_rings_leave(void);
/* In a child of fork: what libcupti may still touch is memory of the child's own. */
void xs_leave_activity(void);
/*
 * How large the rings of a new file of so many are to be: as large as asked for, unless the run's
 * group has little memory (xs_control.rings_most). Then its first half goes to few large rings,
 * and the more there are the smaller they become.
 */
uint64_t xs_ring_size(uint32_t slots);
/*
 * Makes the memory of all rings in use present, while system calls can still be made. False: it
 * would be too much, or is not there.
 */
bool xs_rings_prepare(void);

/* ---- counters.c: the hardware's counters of a thread, which lie with its ring ---- */

#define XS_COUNTERS 8u /* at the same time; processors have no more for a thread */
struct xs_counters {
	uint32_t count; /* 0: none, or they were not to be had */
	struct {
		uint32_t event;	  /* enum xs_cpu_event */
		const void *page; /* mapped */
	} of[XS_COUNTERS];
};
struct xs_counters *xs_slot_counters(struct xs_slot *slot); /* rings.c */
/* For the calling thread, those of a mask (cpu_events.h); between xs_enter() and xs_leave(). */
void xs_counters_open(struct xs_counters *counters, uint32_t wanted);
void xs_counters_close(struct xs_counters *counters);

/* What a thread has counted; `known`: of which events. */
struct xs_counts {
	uint32_t known;
	uint64_t enabled, running; /* as in struct xs_cpu_record */
	uint64_t value[XS_CPU_EVENTS];
};
/* The hardware's last at a begin and first at an end: our own work is not the task's. */
void xs_counters_read(const struct xs_counters *counters, uint32_t wanted, bool begin,
		      struct xs_counts *ret);

/* ---- filter.c, sandbox.c, exec.c: programs that are started in a sandbox ---- */

struct sock_fprog;
/* Can a seccomp filter, which is about to be installed, be read? */
bool xs_filter_is_there(const struct sock_fprog *program);
/* Might it end or trap the process that makes a call, or one of those that we make? */
bool xs_filter_may_end(const struct sock_fprog *program, uint32_t number);
bool xs_filter_may_end_us(const struct sock_fprog *program);
/*
 * Such a filter is in force: a program that this process starts must not be traced, and nothing is
 * asked of the kernel for it. The second one is the pid of a child of vfork() in this thread, for
 * which that holds; its filter lets getpid() through.
 */
extern _Atomic bool xs_starts_untraced __attribute__((visibility("hidden")));
extern __thread int32_t xs_child_starts_untraced
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- thread.c ---- */

/* Once, before any thread gets a ring: threads give theirs back when they end. */
void xs_threads_init(void);
/* The thread gets a ring and says who it is; between xs_enter() and xs_leave(). */
void xs_thread_begin(void);

#endif
