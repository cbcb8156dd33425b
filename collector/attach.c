/*
 * What is rare before an event: the process joins, the thread gets a ring, or a handler's jump is
 * found out.
 */
#include "self.h"
#include "stack.h"
#include "sys.h"

/*
 * A child of fork that cannot join, because its parent's sandbox would end it for that: the
 * parent's file, which it has, tells.
 */
static bool lose_for_parent(void)
{
	struct xs_process_file *parent = xs_self.left;

	if (xs_is_sealed() && parent && !xs_is_off())
		atomic_fetch_add_explicit(&parent->lost_no_ring, 1, memory_order_relaxed);
	return false;
}

/* A thread that comes without a ring. */
static void attach(void)
{
	struct xs_entered entered;

	if (xs_is_sealed())
		return;
	xs_enter_to_join(&entered);
	if (!xs_own_ring()) { /* in a child of fork the parent's */
		xs_tls.producer = (struct xs_producer){ .ring = NULL };
		xs_tls.slot = NULL;
	}
	if (xs_start() && !xs_tls.producer.ring &&
	    !atomic_load_explicit(&xs_gate->no_rings, memory_order_relaxed))
		xs_thread_begin();
	xs_leave(&entered);
}

/* A child that a handler has forked within an event of its parent's: its own trace tells of it. */
static bool join_for_it(void)
{
	struct xs_entered entered;
	bool joined;

	if (xs_tls.busy || !xs_tls.producer.ring || xs_is_sealed())
		return false;
	xs_enter_to_join(&entered);
	joined = xs_start();
	xs_leave(&entered);
	return joined;
}

/* What a handler would have recorded, or a thread without a ring. */
static bool lose(void)
{
	struct xs_ring *ring = xs_own_ring();

	if (xs_joined() && ring)
		atomic_fetch_add_explicit(&ring->lost_nested, 1, memory_order_relaxed);
	else if (xs_joined() || join_for_it())
		atomic_fetch_add_explicit(&xs_self.process->lost_no_ring, 1, memory_order_relaxed);
	return false;
}

/*
 * Has the thread left the frame of the mark, by a jump from the handler of a signal that
 * interrupted it there? Inside of the rare paths no signal arrives, so what is found there was
 * called from there.
 */
static bool has_left(void)
{
	if (xs_tls.busy || xs_stack_has(xs_tls.mark))
		return false;
	xs_sys_left();
	xs_tls.mark = 0;
	return true;
}

bool xs_thread_is_guest(void)
{
	return xs_tls.tid && xs_sys(SYS_gettid) != (long)xs_tls.tid;
}

bool xs_thread_attach(void)
{
	if (xs_state() == XS_OFF || xs_tls.ignored)
		return false;
	if (xs_is_guest()) /* the ring is the thread's */
		return lose();
	if (xs_tls.mark && !has_left())
		return lose();
	if (!xs_joined() || !xs_own_ring())
		attach();
	if (!xs_joined())
		return lose_for_parent();
	if (!xs_own_ring())
		return lose();
	return !xs_paused(); /* joining may have shown that nothing is to be recorded for now */
}
