/*
 * What the files of this folder know together of the run and of this process. Nobody else includes it.
 */
#ifndef XS_SELF_H
#define XS_SELF_H

#include "collector.h"
#include "shm.h"

struct xs_self {
	char dir[PATH_MAX];              /* the run directory */
	const struct xs_control *control; /* mapped once, not to be written, kept over fork; NULL: no run has been joined */
	struct xs_mailbox *mailbox;
	struct xs_strings *strings;
	struct xs_process_file *process; /* in a child of fork the parent's, until the child joins */
};
extern struct xs_self xs_self __attribute__((visibility("hidden")));

/* The gate's `state`: 0 in a page that a fork has wiped. */
enum xs_state { XS_NOT_JOINED, XS_JOINED, XS_OFF };

static inline enum xs_state xs_state(void)
{
	/* pairs with the release in xs_start(): every thread comes by here before its first event */
	return (enum xs_state)atomic_load_explicit(&xs_gate->state, memory_order_acquire);
}

/* Of the process; children of fork find it free. Only between xs_enter() and xs_leave(), or while xs_tls.busy is not 0. */
void xs_lock(void);
void xs_unlock(void);

/* From here to xs_leave() events of this thread's signal handlers are not recorded. Nests. */
static inline struct xs_ring *xs_enter(void)
{
	struct xs_ring *ready = xs_tls.ready;

	xs_tls.ready = NULL;
	xs_tls.busy++;
	atomic_signal_fence(memory_order_seq_cst);
	return ready;
}

/* `ready`: what xs_enter() gave. */
static inline void xs_leave(struct xs_ring *ready)
{
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.busy--;
	xs_tls.ready = ready;
}

/* Joins the run unless that was done or is impossible. True: joined. */
bool xs_start(void);

/* ---- rings.c: the rings of this process; with the lock held ---- */

/* A ring that nobody uses, the oldest first, else a new one; NULL: there is no memory. It is the caller's until its state is XS_RING_IDLE. */
struct xs_ring *xs_ring_take(void);
/* The process has a new file, with no ring taken. */
void xs_rings_forget(void);

/* ---- thread.c ---- */

/* Once, before any thread gets a ring: threads give theirs back when they end. */
void xs_threads_init(void);

#endif
