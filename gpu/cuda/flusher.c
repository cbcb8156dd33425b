/*
 * A thread of ours that has CUPTI process what it has.
 *
 * CUPTI reserves a record when a call is made, and fills in what the device did when it is asked
 * for its buffers, or when a buffer is full: a program that is killed before has left records
 * without times. So it is asked for what is done each PERIOD, as long as the program puts work on
 * devices or waits for it, and QUIET periods longer.
 *
 * When the program ends normally, or ends its trace, CUPTI hands back all buffers. That may take
 * for ever, if the device hangs or libcupti waits for itself. So the thread asks for it, and the
 * program waits for the thread for a limited time. What CUPTI has not handed back by then is read
 * from the buffers as after a kill.
 *
 * Before a program enters a sandbox the thread has ended: its calls, and those of the C library
 * that end it, are none that the program makes itself.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "xs_cuda.h"
#include "lock.h"
#include "profiler.h"
#include "sys.h"

#define PERIOD_NS 100000000u
#define QUIET	  10u
#define FLUSH_NS  2000000000u
#define PATIENCE  10000u /* pauses; somewhat more than a second */

static _Atomic uint32_t asked, flushed; /* futexes: the newest flush that is wanted, and done */
static atomic_bool working;		/* there is the thread */
static atomic_bool worked;		/* since it looked last */
static atomic_bool ending, refused;	/* the process ends; there is no thread to be had */
static _Atomic int32_t tid;		/* of the newest one; it may have ended */

/* A sealed process asks, too: it is not in its sandbox yet. */
static bool is_there(int32_t thread)
{
	return thread && xs_sys6(SYS_tgkill, xs_cuda_owner, thread, 0, 0, 0, 0) != -ESRCH;
}

static void pause_a_bit(void)
{
	struct timespec pause = { 0, 50000 };

	(void)xs_sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

/* There is one at a time, so that none is left where the newest has ended. */
static void take_over(void)
{
	int32_t before = atomic_load(&tid);

	for (uint32_t i = 0; i < PATIENCE && is_there(before); i++)
		pause_a_bit();
	atomic_store(&tid, (int32_t)xs_sys6(SYS_gettid, 0, 0, 0, 0, 0, 0));
}

/* False: the thread must go on, since somebody has asked in between. */
static bool may_end(uint32_t done)
{
	atomic_store(&working, false);
	/* pairs with start(): who asks, or has worked, looks for the thread afterwards */
	if (atomic_load(&asked) == done && !atomic_load(&worked))
		return true;
	return atomic_exchange(&working, true);
}

static void work(void)
{
	uint32_t done = atomic_load(&flushed), wanted, quiet = 0;

	while (xs_cuda_alive()) {
		wanted = atomic_load(&asked);
		if (wanted != done) {
			xs_cuda_flush();
			done = wanted;
			atomic_store(&flushed, done);
			xs_futex_wake(&flushed);
			quiet = 0;
		}
		/* from there on libcupti may be gone; pairs with flush_in_time() */
		if (atomic_load(&ending) && atomic_load(&asked) == done)
			return;
		if (quiet >= QUIET && may_end(done))
			return;
		xs_futex_wait(&asked, done, PERIOD_NS);
		if (atomic_load(&asked) != done || !xs_cuda_alive())
			continue;
		quiet = atomic_exchange(&worked, false) ? 0 : quiet + 1;
		xs_cuda_flush_some();
	}
	atomic_store(&working, false);
}

static void *flush(void *none)
{
	(void)none;
	take_over();
	(void)xs_sys(SYS_prctl, PR_SET_NAME, "xstrace-flush");
	xs_cuda_is_ours = true;
	work();
	return NULL;
}

/*
 * False: there is no thread to be had. Signals are blocked first: a handler that enters a sandbox
 * would wait for the thread that it keeps from being made.
 */
static bool start(void)
{
	struct xs_blocked blocked = xs_block();
	bool made = atomic_exchange(&working, true);
	pthread_t thread;

	if (!made) {
		/* pairs with seal() */
		made = xs_cuda_alive() && !pthread_create(&thread, NULL, flush, NULL);
		if (made)
			(void)pthread_detach(thread); /* the process may end first */
		else
			atomic_store(&working, false);
	}
	xs_unblock(blocked);
	return made;
}

void xs_cuda_worked(void)
{
	if (xs_cuda_ranges) /* of kernels that are counted CUPTI tells no times, ever */
		return;
	if (!atomic_load_explicit(&worked, memory_order_relaxed))
		atomic_store(&worked, true);
	if (atomic_load(&working) || atomic_load_explicit(&refused, memory_order_relaxed) ||
	    atomic_load(&ending) || xs_in_handler() || !xs_cuda_alive())
		return;
	if (!start() && xs_cuda_alive())
		atomic_store_explicit(&refused, true, memory_order_relaxed);
}

static void flush_in_time(bool last)
{
	uint64_t now, deadline = xs_true_ns() + FLUSH_NS;
	uint32_t wanted, done;

	if (!xs_cuda_alive())
		return;
	wanted = atomic_fetch_add(&asked, 1) + 1;
	if (last)
		atomic_store(&ending, true);
	if (!start()) {
		if (xs_cuda_alive())
			xs_cuda_flush();
		atomic_store(&flushed, wanted);
		return;
	}
	xs_futex_wake(&asked);
	while ((int32_t)(wanted - (done = atomic_load(&flushed))) > 0 &&
	       (now = xs_true_ns()) < deadline)
		xs_futex_wait(&flushed, done, deadline - now);
}

void xs_cuda_flush_last(void)
{
	flush_in_time(true);
	for (uint32_t i = 0; i < PATIENCE && is_there(atomic_load(&tid)); i++)
		pause_a_bit();
}

static void at_exit(void)
{
	flush_in_time(true);
}

static void stop(void)
{
	flush_in_time(false);
}

/* A child of fork has no such thread. */
static void seal(void)
{
	if (xs_sys6(SYS_getpid, 0, 0, 0, 0, 0, 0) != (long)xs_cuda_owner)
		return;
	for (uint32_t i = 0; i < PATIENCE && ((atomic_load(&working) && !atomic_load(&ending)) ||
					      is_there(atomic_load(&tid)));
	     i++)
		pause_a_bit();
}

static struct xs_hook at_stop = { .function = stop }, at_seal = { .function = seal };

void xs_cuda_flush_at_ends(void)
{
	xs_at_seal(&at_seal);
	(void)atexit(at_exit);
	xs_at_stop(&at_stop);
}
