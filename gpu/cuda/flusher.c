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

static _Atomic uint32_t asked, flushed; /* futexes: the newest flush that is wanted, and done */
static atomic_bool working;		/* there is the thread */
static atomic_bool worked;		/* since it looked last */
static atomic_bool ending, refused;	/* the process ends; there is no thread to be had */

/* False: the thread must go on, since somebody has asked in between. */
static bool may_end(uint32_t done)
{
	atomic_store(&working, false);
	/* pairs with start(): who asks, or has worked, looks for the thread afterwards */
	if (atomic_load(&asked) == done && !atomic_load(&worked))
		return true;
	return atomic_exchange(&working, true);
}

static void *flush(void *none)
{
	uint32_t done = atomic_load(&flushed), wanted, quiet = 0;

	(void)none;
	(void)xs_sys(SYS_prctl, PR_SET_NAME, "xstrace-flush");
	xs_cuda_is_ours = true;
	for (;;) {
		wanted = atomic_load(&asked);
		if (wanted != done) {
			xs_cuda_flush();
			done = wanted;
			atomic_store(&flushed, done);
			xs_futex_wake(&flushed);
			quiet = 0;
		}
		/* from there on libcupti may be gone; pairs with flush_in_time() */
		if ((atomic_load(&ending) && atomic_load(&asked) == done) || !xs_cuda_alive())
			return NULL;
		if (quiet >= QUIET && may_end(done))
			return NULL;
		xs_futex_wait(&asked, done, PERIOD_NS);
		if (atomic_load(&asked) != done)
			continue;
		quiet = atomic_exchange(&worked, false) ? 0 : quiet + 1;
		xs_cuda_flush_some();
	}
}

/* False: there is no thread to be had. */
static bool start(void)
{
	uint64_t signals;
	pthread_t thread;
	bool made;

	if (atomic_exchange(&working, true))
		return true;
	signals = xs_cuda_block();
	made = !pthread_create(&thread, NULL, flush, NULL);
	xs_cuda_unblock(signals);
	if (made)
		(void)pthread_detach(thread); /* the process may end first */
	else
		atomic_store(&working, false);
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
	if (!start())
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
		xs_cuda_flush();
		atomic_store(&flushed, wanted);
		return;
	}
	xs_futex_wake(&asked);
	while ((int32_t)(wanted - (done = atomic_load(&flushed))) > 0 &&
	       (now = xs_true_ns()) < deadline)
		xs_futex_wait(&flushed, done, deadline - now);
}

static void at_exit(void)
{
	flush_in_time(true);
}

static void stop(void)
{
	flush_in_time(false);
}

static struct xs_hook at_stop = { .function = stop };

void xs_cuda_flush_at_ends(void)
{
	(void)atexit(at_exit);
	xs_at_stop(&at_stop);
}
