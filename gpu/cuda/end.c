/*
 * The program ends normally: CUPTI hands back the buffers that it fills.
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

static _Atomic uint32_t flushed; /* futex */

static void *flush(void *none)
{
	(void)none;
	xs_cuda_flush();
	atomic_store(&flushed, 1);
	xs_futex_wake(&flushed);
	return NULL;
}

/* False: there is no thread to be had. */
static bool flush_apart(void)
{
	uint64_t signals = xs_cuda_block();
	pthread_t thread;
	/* never joined: the process ends first */
	int error = pthread_create(&thread, NULL, flush, NULL);

	xs_cuda_unblock(signals);
	return error == 0;
}

void xs_cuda_at_exit(void)
{
	uint64_t now, deadline = xs_clock_ns(CLOCK_MONOTONIC) + FLUSH_NS;

	if (!xs_cuda_alive())
		return;
	if (!flush_apart()) {
		xs_cuda_flush();
		return;
	}
	while (!atomic_load(&flushed) && (now = xs_clock_ns(CLOCK_MONOTONIC)) < deadline)
		xs_futex_wait(&flushed, 0, deadline - now);
}
