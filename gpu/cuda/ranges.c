/*
 * The counters of each kernel, by CUPTI's range profiler: it makes a range of each kernel that is
 * launched while it is started. So it is started before each launch and stopped behind it, and what
 * it has counted is written with the launch's correlation id. One thread launches at a time: a
 *launch that is counted returns when its kernel has run.
 *
 * CUPTI 13.0 on a GPU leaves no other way:
 *	started from one launch to the next it crashes, after the program has freed what its kernels
 *	have used, streams for one;
 *	it makes no range of a graph, and no records of its kernels: graphs are not measured;
 *	to start or stop it ends each capture of a stream, in whichever thread and mode that is. So
 *it is not started while there is one.
 */
#include <string.h>

#include "lock.h"
#include "profiler.h"
#include "shm.h"
#include "sys.h"

#define CONTEXTS 16u

enum stage { UNUSED, READY, NEVER };

struct context {
	_Atomic(CUcontext) handle;
	_Atomic uint64_t turn;	/* a claim: who launches has the profiler for itself */
	_Atomic uint32_t turns; /* futex: how many there have been */
	_Atomic uint32_t stage; /* enum stage */
	bool worked;		/* it could be started before */
	struct xs_counters counters;
};

bool xs_cuda_ranges;
/* Not listed by XS_TABLE: nothing is begun any more where memory cannot be had. */
static struct xs_table table = { .size = CONTEXTS * sizeof(struct context) };
static _Atomic uint32_t captures; /* that have begun and not ended */

/* The launch that the thread is in. */
static __thread struct {
	struct context *context; /* whose turn it has */
	uint32_t correlation;
	bool started;	 /* it is a range */
	bool unmeasured; /* it is counted as one that is not measured */
	bool captured;
} going __attribute__((tls_model("initial-exec")));

static struct context *context_of(CUcontext handle, bool make)
{
	struct context *contexts = make && !xs_is_sealed() ? xs_table(&table)
							   : atomic_load(&table.memory);

	for (uint32_t i = 0; contexts && i < CONTEXTS; i++) {
		CUcontext there = atomic_load(&contexts[i].handle);

		if (there == handle)
			return &contexts[i];
		if (!there && make &&
		    (atomic_compare_exchange_strong(&contexts[i].handle, &there, handle) ||
		     there == handle))
			return &contexts[i];
	}
	return NULL;
}

/* ---- turns ---- */

#define TURN_NS	   2000000000u	/* who waits for a kernel may be who the kernel waits for */
#define CAPTURE_NS 30000000000u /* the first start of a profiler takes seconds */

static bool take_turn(struct context *context, uint64_t patience)
{
	uint64_t now, deadline = 0;

	for (;;) {
		uint32_t turns = atomic_load(&context->turns);

		if (xs_claim(&context->turn))
			return true;
		now = xs_true_ns();
		deadline = deadline ? deadline : now + patience;
		if (xs_is_sealed() || now >= deadline)
			return false;
		xs_futex_wait(&context->turns, turns, deadline - now);
	}
}

static void end_turn(struct context *context)
{
	xs_unclaim(&context->turn);
	atomic_fetch_add(&context->turns, 1);
	if (!xs_is_sealed())
		xs_futex_wake(&context->turns);
}

/* ---- the profiler, in one's turn ---- */

/* It does not come to be measured; nobody is to be told if it never ran. */
static void forget_unmeasured(void)
{
	if (going.unmeasured)
		xs_count_unmeasured(UINT64_MAX);
	going.unmeasured = false;
}

static void start(struct context *context)
{
	struct xs_blocked blocked = xs_block(); /* libcupti may make threads */

	if (atomic_load(&context->stage) == UNUSED)
		atomic_store(&context->stage,
			     xs_counters_make(&context->counters, atomic_load(&context->handle), 1)
				     ? READY
				     : NEVER);
	if (atomic_load(&context->stage) == READY) {
		going.started = xs_counters_start(&context->counters);
		if (!going.started && !context->worked) {
			atomic_store(&context->stage, NEVER);
			xs_tell_unseen(XS_UNSEEN_METRIC_ACTIVE);
		}
		context->worked |= going.started;
	}
	xs_unblock(blocked);
	if (atomic_load(&context->stage) == NEVER)
		forget_unmeasured(); /* which has been told as a whole */
}

/* False: what was counted is not that of one kernel alone, or cannot be written. */
static bool stop(struct context *context)
{
	going.started = false;
	return xs_counters_stop(&context->counters) == 1 &&
	       xs_counters_write(&context->counters, 0, going.correlation);
}

/* ---- launches ---- */

void xs_cuda_range_enter(CUcontext handle, uint32_t correlation, bool kernel)
{
	struct context *context;

	if (going.context) /* a handler left the call before by a jump */
		xs_cuda_range_leave(false);
	going.captured = going.unmeasured = false;
	if (xs_paused() || !handle || !xs_cuda_own_process())
		return;
	context = context_of(handle, true);
	if (!context || atomic_load(&context->stage) == NEVER)
		return;
	/* for now: the process may end at any time */
	xs_count_unmeasured(1);
	going.unmeasured = true;
	going.correlation = correlation;
	if (!take_turn(context, TURN_NS))
		return;
	going.context = context;
	/* pairs with xs_cuda_capture_begins() and xs_cuda_ranges_end(), which have the turn, too */
	if (kernel && !atomic_load(&captures) && !atomic_load(&xs_cupti.stage) && !xs_is_sealed() &&
	    !xs_in_handler())
		start(context);
}

void xs_cuda_range_captured(void)
{
	going.captured = true;
}

void xs_cuda_range_leave(bool failed)
{
	struct context *context = going.context;
	bool written = going.started && stop(context);

	if (written || failed || going.captured)
		forget_unmeasured();
	going.unmeasured = false;
	going.context = NULL;
	if (context)
		end_turn(context);
}

/* ---- captures, and ends ---- */

void xs_cuda_capture_begins(void)
{
	struct context *contexts = atomic_load(&table.memory);
	uint64_t now = xs_true_ns(), deadline = now + CAPTURE_NS;

	(void)atomic_fetch_add(&captures, 1);
	/* who has not seen that yet has the turn */
	for (uint32_t i = 0; contexts && i < CONTEXTS; i++) {
		if (!atomic_load(&contexts[i].handle))
			continue;
		now = xs_true_ns();
		if (take_turn(&contexts[i], now < deadline ? deadline - now : 0))
			end_turn(&contexts[i]);
	}
}

void xs_cuda_capture_ends(void)
{
	uint32_t count = atomic_load(&captures);

	while (count && !atomic_compare_exchange_weak(&captures, &count, count - 1))
		;
}

bool xs_cuda_ranges_end(void)
{
	struct context *contexts = atomic_load(&table.memory);
	bool all = true;

	for (uint32_t i = 0; contexts && i < CONTEXTS; i++) {
		if (!atomic_load(&contexts[i].handle))
			continue;
		if (!take_turn(&contexts[i], TURN_NS)) {
			all = false;
			continue;
		}
		if (atomic_load(&contexts[i].stage) == READY && !atomic_load(&captures))
			xs_counters_end(&contexts[i].counters);
		atomic_store(&contexts[i].stage, NEVER);
		end_turn(&contexts[i]);
	}
	return all;
}

void xs_cuda_range_context_ends(CUcontext handle)
{
	struct context *context = xs_cuda_own_process() ? context_of(handle, false) : NULL;

	if (!context || !take_turn(context, TURN_NS))
		return;
	if (!atomic_load(&captures)) {
		if (atomic_load(&context->stage) == READY)
			xs_counters_end(&context->counters);
		context->worked = false;
		atomic_store(&context->stage, UNUSED);
		atomic_store(&context->handle, NULL);
	}
	end_turn(context);
}
