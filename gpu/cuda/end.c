/*
 * The program ends normally, or ends its trace: CUPTI hands back the buffers that it fills.
 *
 * That may take for ever, if the device hangs or libcupti waits for itself. So another thread asks
 * for it, and the program waits for that thread for a limited time. What CUPTI has not handed back
 * by then is read from the buffers as after a kill.
 */
#include <pthread.h>

#include "xs_cuda.h"
#include "lock.h"
#include "sys.h"

#define FLUSH_NS 2000000000u

static _Atomic uint32_t flushed; /* futex: how often */
static atomic_bool flushing;	 /* one at a time; one that hangs is the last */

static void *flush(void *none)
{
	(void)none;
	xs_cuda_flush();
	atomic_store(&flushing, false);
	atomic_fetch_add(&flushed, 1);
	xs_futex_wake(&flushed);
	return NULL;
}

/* False: there is no thread to be had. */
static bool flush_apart(void)
{
	uint64_t signals = xs_cuda_block();
	pthread_t thread;
	int error = pthread_create(&thread, NULL, flush, NULL);

	xs_cuda_unblock(signals);
	if (!error)
		(void)pthread_detach(thread); /* the process may end first */
	return error == 0;
}

static void flush_in_time(void)
{
	uint64_t now, deadline = xs_true_ns() + FLUSH_NS;
	uint32_t before = atomic_load(&flushed);

	if (!xs_cuda_alive() || atomic_exchange(&flushing, true))
		return;
	if (!flush_apart()) {
		xs_cuda_flush();
		atomic_store(&flushing, false);
		return;
	}
	while (atomic_load(&flushed) == before && (now = xs_true_ns()) < deadline)
		xs_futex_wait(&flushed, before, deadline - now);
}

static struct xs_hook at_stop = { .function = flush_in_time };

void xs_cuda_flush_at_ends(void)
{
	(void)atexit(flush_in_time);
	xs_at_stop(&at_stop);
}
