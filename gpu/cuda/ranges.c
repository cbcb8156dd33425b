/*
 * Which kernel a range of CUPTI's profiler is of.
 *
 * CUPTI makes a range of each kernel that a context launches, in their order, and gives them no
 * other names. So the launches of a context are counted here, as it calls us before and after
 * each. After so many of them the profiler is stopped, and what it has counted is written, each
 * range with its launch's correlation id; the next launch starts it again. If there are not as
 * many ranges as launches, or several threads launched at once, it is not known which is whose:
 * then they are not measured, which is counted. CUPTI makes no range of a graph, and no records of
 * its kernels while it makes ranges: so the profiler is stopped before a graph is launched, and
 * graphs are not measured.
 *
 * While a stream is captured, anywhere in the process, the profiler is neither started nor stopped:
 * either would end the capture (CUPTI 13.0, whatever the thread's mode is). So it is stopped
 * before.
 *
 * One thread at a time prepares, starts or stops a context's profiler, by a claim: libcupti may
 * wait for the device.
 */
#include <string.h>

#include "lock.h"
#include "profiler.h"
#include "shm.h"
#include "sys.h"

#define CONTEXTS 16u
#define BATCH	 512u /* launches after which the profiler is looked at */
#define MOST	 576u /* those that came while it could not be */

enum stage { UNUSED, STOPPED, STARTED, NEVER };

enum launch_state {
	LAUNCH_GOES_ON,
	LAUNCH_DONE, /* it is a range */
	LAUNCH_NONE, /* it failed, or is captured: there is no range of it */
};

struct launch {
	_Atomic uint8_t state;
	_Atomic bool mixed; /* with another thread's */
	bool wanted;	    /* it is a kernel's, and nothing was paused */
	uint32_t correlation;
};

struct context {
	_Atomic(CUcontext) handle;
	_Atomic uint64_t claim;
	_Atomic uint32_t stage;	 /* enum stage */
	_Atomic uint32_t inside; /* threads in a call that launches */
	_Atomic uint32_t count;	 /* launches since it was started */
	_Atomic bool spoilt;	 /* it is not known which of them are ranges */
	_Atomic uint64_t turn;	 /* a claim: one launch at a time */
	_Atomic uint32_t turns;	 /* futex: how many there have been */
	struct xs_counters counters;
	struct launch launch[MOST];
};

bool xs_cuda_ranges;
/* Not listed by XS_TABLE: nothing is begun any more where memory cannot be had. */
static struct xs_table table = { .size = CONTEXTS * sizeof(struct context) };

/* The launch that the thread is in. */
static __thread struct {
	struct context *context;
	uint32_t number;
	bool captured;
	struct context *graph; /* whose turn it is: none of its kernels is counted meanwhile */
	bool unmeasured;       /* there is no context: nothing is counted in it, which is told */
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

/* ---- captures ---- */

static _Atomic uint32_t captures; /* that have begun and not ended */

/* False: a stream is captured. Else none begins to be before the claim is given back. */
static bool may_turn(struct context *context)
{
	if (!xs_claim(&context->claim))
		return false;
	if (!atomic_load(&captures))
		return true;
	xs_unclaim(&context->claim);
	return false;
}

void xs_cuda_capture_ends(void)
{
	uint32_t count = atomic_load(&captures);

	while (count && !atomic_compare_exchange_weak(&captures, &count, count - 1))
		;
}

/* ---- the profiler ---- */

/* With the claim. */
static void start(struct context *context)
{
	uint32_t stage = atomic_load(&context->stage);
	uint64_t signals = xs_cuda_block(); /* libcupti may make threads */

	if (stage == UNUSED)
		stage = xs_counters_make(&context->counters, atomic_load(&context->handle), MOST)
				? STOPPED
				: NEVER;
	if (stage == STOPPED) {
		atomic_store(&context->count, 0);
		atomic_store(&context->spoilt, false);
		stage = xs_counters_start(&context->counters) ? STARTED : NEVER;
		if (stage == NEVER)
			xs_tell_unseen(XS_UNSEEN_METRIC_ACTIVE);
	}
	xs_cuda_unblock(signals);
	atomic_store(&context->stage, stage);
}

/*
 * With the claim, and no thread in a launch. Each launch has been counted as one that is not
 * measured, as the process may end at any time.
 */
static void look(struct context *context)
{
	uint32_t count = atomic_load(&context->count), ranges, range = 0, some = 0;
	bool known;

	ranges = xs_counters_stop(&context->counters);
	for (uint32_t i = 0; i < count; i++)
		some += atomic_load(&context->launch[i].state) != LAUNCH_NONE;
	known = ranges == some && !atomic_load(&context->spoilt);
	for (uint32_t i = 0; i < count; i++) {
		struct launch *launch = &context->launch[i];
		bool is_range = atomic_load(&launch->state) != LAUNCH_NONE;

		if (launch->wanted && (!is_range || (known && !atomic_load(&launch->mixed) &&
						     xs_counters_write(&context->counters, range,
								       launch->correlation))))
			xs_count_unmeasured(UINT64_MAX);
		range += is_range;
	}
	atomic_store(&context->count, 0);
}

/* Nobody may begin a launch as long as the stage is STOPPED and the claim is held. */
static void look_if(struct context *context)
{
	if (!may_turn(context))
		return;
	if (atomic_load(&context->stage) == STARTED) {
		atomic_store(&context->stage, STOPPED);
		/* pairs with begin(): a thread counts itself in, then looks at the stage */
		if (atomic_load(&context->inside))
			atomic_store(&context->stage, STARTED);
		else
			look(context);
	}
	xs_unclaim(&context->claim);
}

/* ---- launches ---- */

/* Who launches at the same time as others does not know whose range comes first. */
static void mix(struct context *context, uint32_t number)
{
	for (uint32_t i = 0; i <= number; i++)
		if (atomic_load(&context->launch[i].state) == LAUNCH_GOES_ON)
			atomic_store(&context->launch[i].mixed, true);
}

#define TURN_NS 200000000u

/*
 * libcupti runs one kernel at a time, and a launch returns when its kernel has run. So it costs
 * nothing to let one thread after the other launch, and then their order is known. A thread that
 * has waited for too long goes on without: the kernel that it waits for may wait for it.
 */
static bool take_turn(struct context *context)
{
	uint64_t now, deadline = 0;

	for (;;) {
		uint32_t turns = atomic_load(&context->turns);

		if (xs_claim(&context->turn))
			return true;
		now = xs_true_ns();
		deadline = deadline ? deadline : now + TURN_NS;
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

static void begin(struct context *context, uint32_t correlation, bool wanted)
{
	uint32_t others = atomic_fetch_add(&context->inside, 1), number;

	xs_count_unmeasured(wanted && atomic_load(&context->stage) != NEVER);
	number = atomic_load(&context->stage) == STARTED ? atomic_fetch_add(&context->count, 1)
							 : MOST;
	if (number >= MOST) { /* where it is started, CUPTI has no room, either */
		if (atomic_load(&context->count) >= MOST) {
			atomic_store(&context->count, MOST);
			atomic_store(&context->spoilt, true);
		}
		going.unmeasured = wanted;
		atomic_fetch_sub(&context->inside, 1);
		end_turn(context);
		return;
	}
	context->launch[number].correlation = correlation;
	context->launch[number].wanted = wanted;
	atomic_store(&context->launch[number].mixed, false);
	atomic_store(&context->launch[number].state, LAUNCH_GOES_ON);
	going.context = context;
	going.number = number;
	if (others)
		mix(context, number);
}

static void end_graph(void)
{
	struct context *context = going.graph;

	going.graph = NULL;
	if (context)
		end_turn(context);
}

void xs_cuda_range_enter(CUcontext handle, uint32_t correlation, bool kernel)
{
	bool wanted = !xs_paused();
	struct context *context;

	if (going.context) { /* a handler left the call before by a jump */
		atomic_store(&going.context->spoilt, true);
		atomic_fetch_sub(&going.context->inside, 1);
		end_turn(going.context);
		going.context = NULL;
	}
	end_graph();
	going.captured = going.unmeasured = false;
	context = handle && xs_cuda_own_process() ? context_of(handle, wanted) : NULL;
	if (!context || atomic_load(&context->stage) == NEVER)
		return;
	if (!wanted && atomic_load(&context->stage) != STARTED)
		return;
	(void)take_turn(context);
	if (!kernel) {
		look_if(context);
		xs_count_unmeasured(wanted);
		going.unmeasured = wanted;
		going.graph = context;
		return;
	}
	if (wanted && atomic_load(&context->stage) <= STOPPED && may_turn(context)) {
		if (atomic_load(&context->stage) <= STOPPED && !xs_is_sealed() && !xs_in_handler())
			start(context);
		xs_unclaim(&context->claim);
	}
	begin(context, correlation, wanted);
}

void xs_cuda_range_captured(void)
{
	going.captured = true;
}

void xs_cuda_range_leave(bool failed)
{
	struct context *context = going.context;

	if (going.unmeasured && (failed || going.captured))
		xs_count_unmeasured(UINT64_MAX); /* it runs later, or never */
	going.unmeasured = false;
	end_graph();
	if (!context)
		return;
	going.context = NULL;
	atomic_store(&context->launch[going.number].state,
		     failed || going.captured ? LAUNCH_NONE : LAUNCH_DONE);
	atomic_fetch_sub(&context->inside, 1);
	if (atomic_load(&context->count) >= BATCH)
		look_if(context);
	end_turn(context);
}

/*
 * The profiler is stopped meanwhile, so that graphs have records. Whose profiler is being started
 * or stopped is waited for: may_turn() has looked before.
 */
void xs_cuda_capture_begins(void)
{
	struct context *contexts = atomic_load(&table.memory);
	uint32_t rounds = 0, count = contexts ? CONTEXTS : 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!atomic_load(&contexts[i].handle))
			count = i;
		else if (take_turn(&contexts[i]))
			look_if(&contexts[i]);
	}
	(void)atomic_fetch_add(&captures, 1);
	for (uint32_t i = 0; i < count; i++) {
		while (!xs_claim(&contexts[i].claim) && xs_wait_a_bit(&rounds))
			;
		xs_unclaim(&contexts[i].claim);
		end_turn(&contexts[i]);
	}
}

/* ---- ends ---- */

void xs_cuda_ranges_look(void)
{
	struct context *contexts = xs_cuda_ranges ? atomic_load(&table.memory) : NULL;

	for (uint32_t i = 0; contexts && i < CONTEXTS; i++)
		if (atomic_load(&contexts[i].handle))
			look_if(&contexts[i]);
}

void xs_cuda_range_context_ends(CUcontext handle)
{
	struct context *context = xs_cuda_own_process() ? context_of(handle, false) : NULL;

	if (!context)
		return;
	look_if(context);
	if (!may_turn(context))
		return;
	if (atomic_load(&context->stage) == STOPPED) {
		xs_counters_end(&context->counters);
		atomic_store(&context->stage, UNUSED);
		atomic_store(&context->handle, NULL);
	}
	xs_unclaim(&context->claim);
}
