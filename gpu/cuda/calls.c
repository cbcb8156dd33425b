/*
 * Calls of CUDA's functions, as CUPTI tells of them: before and after each that was asked for.
 *
 * The driver's functions that the runtime calls are the runtime's own and not shown. What a call
 * puts on a device, or has waited for, is told by its correlation id, which CUPTI's record of that
 * has, too: the drain process joins the two.
 */
#include <errno.h>

#include "call_values.h"
#include "device_record.h"
#include "profiler.h"
#include "stack.h"
#include "xs_cuda.h"

/*
 * The calls that the thread is in. There is more than one if a handler that interrupts one makes
 * another. A handler that leaves by a jump leaves its calls behind: later ones take their places.
 */
#define NESTED	4u
#define SUSPECT 64u /* the driver's functions that one call seems to have called itself */
struct going {
	struct xs_call call;
	uint32_t function, correlation;
	uint32_t own;  /* functions of the driver that it has called, as it seems */
	uintptr_t at;  /* on the stack */
	bool captured; /* it becomes a node of a graph: nothing runs yet */
};
static __thread struct {
	struct going going[NESTED];
	uint32_t depth;
	/*
	 * The frame of xs_cuda_on_call() that runs, perhaps with OWES; 0: none does. It stays when
	 * a handler leaves that frame by a jump, and with it the libcupti that has called us: such
	 * a libcupti may believe for ever that it is telling, and tell nothing else of the thread.
	 */
	uintptr_t told;
	uint32_t theirs; /* 1 + how many calls there were when a handler interrupted that frame */
} inside __attribute__((tls_model("initial-exec")));
#define OWES ((uintptr_t)1) /* what it tells of is to be recorded, and is not in `going` */

static void owe(bool owes)
{
	atomic_signal_fence(memory_order_seq_cst);
	inside.told = owes ? inside.told | OWES : inside.told & ~OWES;
	atomic_signal_fence(memory_order_seq_cst);
}

static uint32_t function_of(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	return id + (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? XS_CUDA_runtime_FIRST
							   : XS_CUDA_driver_FIRST);
}

/* A newer libcupti has functions that we know nothing of. */
static uint8_t use_of(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
		return id < XS_CUDA_runtime_COUNT ? xs_cuda_runtime_uses[id] : 0;
	return id < XS_CUDA_driver_COUNT ? xs_cuda_driver_uses[id] : 0;
}

/* Does CUPTI tell when what the call has put on a device has run? It tells nothing of 0 bytes. */
static bool is_awaited(uint8_t use, const CUpti_CallbackData *data)
{
	const struct {
		uint64_t to, from, bytes;
	} *arguments = data->functionParams;

	return use & XS_CUDA_GRAPHS || (use & XS_CUDA_SIZED && arguments && arguments->bytes);
}

static void enqueued(uint64_t tick, uint64_t duration, uint8_t use, const CUpti_CallbackData *data,
		     bool written)
{
	bool launch = use & XS_CUDA_LAUNCHES;
	uint32_t name = launch && data->symbolName ? xs_cuda_symbol(data->symbolName) : 0;
	struct xs_enqueued_record *record =
		xs_record_begin(sizeof(*record), XS_ENQUEUED, XS_SOURCE_CUDA,
				(launch			 ? XS_ENQUEUED_FLAG_LAUNCH
				 : is_awaited(use, data) ? XS_ENQUEUED_FLAG_AWAITED
							 : 0) |
					(written ? 0 : XS_ENQUEUED_FLAG_ALONE),
				name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick;
	record->correlation = data->correlationId;
	record->host_ticks = xs_ticks_pack(duration);
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

#define ONE_STACK (1u << 20)

static bool is_overwritten(const struct going *going)
{
	CUpti_CallbackData data;

	if (xs_is_sealed()) /* nobody can be asked whether they can be read */
		return false;
	return xs_copy_readable(&data, (const void *)going->at, sizeof(data)) != sizeof(data) ||
	       data.correlationId != going->correlation;
}

/*
 * Has the program left the call by a jump? Where its data were on the stack there is something else
 * by now, sooner or later. The data of what begins now may have the same number, which the driver
 * then goes on with; but stacks grow down, so what is at the same place or a little above has not
 * been called from there (farther away is another stack).
 */
static bool is_left(const struct going *going, const CUpti_CallbackData *now)
{
	return (now->correlationId == going->correlation &&
		(uintptr_t)now - going->at < ONE_STACK) ||
	       is_overwritten(going);
}

static void lose(uint32_t count)
{
	if (count && xs_own_ring() && !xs_paused())
		atomic_fetch_add_explicit(&xs_own_ring()->lost_nested, count, memory_order_relaxed);
}

/* The call, and what seemed to be its own, is counted as lost: nobody knows when it ended. */
static void forget(const struct going *going)
{
	inside.depth--;
	(void)xs_call_leave(&going->call);
	lose(1 + going->own);
}

/*
 * Is what begins now the innermost call's own? Runtimes call the driver, a few functions each time;
 * whatever else comes within a call is a handler's, or the call was left by a jump. What a handler
 * calls while we are told of a call belongs to none that was there before.
 */
static bool is_within(bool driver, const CUpti_CallbackData *data)
{
	for (uint32_t i = 0; i < NESTED && inside.depth && inside.depth >= inside.theirs; i++) {
		struct going *going = &inside.going[(inside.depth - 1) % NESTED];
		bool deeper = driver && going->at >= (uintptr_t)data;

		/* as a rule it goes on: that is looked at less and less often */
		if (deeper && (++going->own < SUSPECT || going->own & (going->own - 1)))
			return true;
		if (!is_left(going, data))
			return deeper;
		forget(going);
	}
	return false;
}

/* Apart, as the next one: while nothing is recorded no register is saved. */
static __attribute__((noinline)) void enter(CUpti_CallbackDomain domain, CUpti_CallbackId id,
					    const CUpti_CallbackData *data)
{
	bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
	struct going *going;
	uint32_t depth;

	if ((driver && xs_cuda_is_ours) || (inside.depth && is_within(driver, data))) {
		owe(false);
		return;
	}
	depth = inside.depth;
	going = &inside.going[depth % NESTED];
	owe(true);
	/* first of all: a handler's call takes the next place */
	inside.depth = depth + 1;
	owe(false);
	going->function = function_of(domain, id);
	going->correlation = data->correlationId;
	going->at = (uintptr_t)data;
	going->own = 0;
	going->captured = false;
	if (!xs_call_enter_unpaused(&going->call, XS_SOURCE_CUDA, going->function)) {
		inside.depth = depth;
		return;
	}
	xs_tls.call = UINTPTR_MAX; /* it is on no stack, and what it makes may be anywhere */
	if (xs_log_calls)
		xs_cuda_in(&going->call, domain == CUPTI_CB_DOMAIN_RUNTIME_API, id,
			   data->functionParams);
}

/* How deep the call is that ends; those that were made within have ended, too. 0: it is unknown. */
static uint32_t depth_of(uint32_t function, const CUpti_CallbackData *data)
{
	for (uint32_t n = inside.depth, last = n > NESTED ? n - NESTED : 0; n > last; n--) {
		const struct going *going = &inside.going[(n - 1) % NESTED];

		if (going->function == function && going->correlation == data->correlationId)
			return n;
	}
	return 0;
}

static bool is_logged(uint8_t use)
{
	return xs_cuda_asked.all || (xs_cuda_asked.kernels && use) ||
	       (xs_cuda_asked.enqueues && use & XS_CUDA_ENQUEUES);
}

/* What the runtime calls itself is not shown, but its work may have a number of its own. */
static void leave_own(uint8_t use, const CUpti_CallbackData *data)
{
	const struct going *going = &inside.going[(inside.depth - 1) % NESTED];

	if (use & xs_cuda_asked.correlated && !going->captured &&
	    going->correlation != data->correlationId)
		enqueued(going->call.tick, 0, use, data, true);
}

static __attribute__((noinline)) void leave(CUpti_CallbackDomain domain, CUpti_CallbackId id,
					    const CUpti_CallbackData *data)
{
	uint32_t function = function_of(domain, id);
	uint32_t depth = depth_of(function, data);
	uint8_t use = use_of(domain, id), flags = use ? XS_CALL_FLAG_OF_WORK : 0;
	const int *returned = data->functionReturnValue;
	int result = returned ? *returned : 0;
	bool failed = xs_cuda_failed(result);
	struct xs_call call;
	uint64_t duration;
	bool captured, written = true;

	if (!depth) {
		if (!failed)
			leave_own(use, data);
		return;
	}
	call = inside.going[(depth - 1) % NESTED].call;
	captured = inside.going[(depth - 1) % NESTED].captured;
	duration = xs_call_leave(&call);
	owe(true);
	inside.depth = depth - 1; /* from here on a handler's call may take the place */
	if (is_logged(use)) {
		written = xs_call_write(call.tick, duration,
					xs_call_header(XS_SOURCE_CUDA, function,
						       flags | (failed ? XS_CALL_FLAG_FAILED : 0)),
					result);
		owe(false);
	}
	if (xs_log_calls && !result)
		xs_cuda_out(&call, domain == CUPTI_CB_DOMAIN_RUNTIME_API, id, data->functionParams);
	if (use & xs_cuda_asked.correlated && !failed && !captured) {
		enqueued(call.tick, duration, use, data, written);
		xs_cuda_worked();
	}
}

static __attribute__((noinline)) void resource(CUpti_CallbackId id, const void *data)
{
	const CUpti_ResourceData *what = data;

	if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
		xs_cuda_stalls_look(false);
		xs_cuda_forget_symbols();
	} else if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
		if (xs_cuda_ranges)
			xs_cuda_range_context_ends(what->context);
		if (xs_cuda_stalls)
			xs_cuda_stalls_context_ends(what->context);
	} else if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
		xs_cuda_context_made();
	}
	if (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED || xs_is_guest())
		return;
	xs_cuda_range_captured();
	if (inside.depth)
		inside.going[(inside.depth - 1) % NESTED].captured = true;
}

/* The stream is captured no more, although the call has failed. */
static bool is_end_of_capture(int result)
{
	return !result || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	       result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static void capture(uint8_t use, const CUpti_CallbackData *data)
{
	bool begins = use & XS_CUDA_CAPTURE_BEGINS;
	int result = data->callbackSite != CUPTI_API_ENTER && data->functionReturnValue
			     ? *(const int *)data->functionReturnValue
			     : 0;

	if (data->callbackSite == CUPTI_API_ENTER) {
		if (begins)
			xs_cuda_capture_begins();
	} else if (begins ? result : is_end_of_capture(result)) {
		xs_cuda_capture_ends();
	}
}

/* What the driver is about to run, and has put on the device, in pauses too. */
static __attribute__((noinline)) void profile(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
	uint8_t use = use_of(CUPTI_CB_DOMAIN_DRIVER_API, id);
	bool kernel = use & XS_CUDA_LAUNCHES;
	int error = errno;

	if (use & XS_CUDA_CAPTURES && xs_cuda_ranges) {
		capture(use, data);
		errno = error;
	}
	if (!kernel && !(use & XS_CUDA_GRAPHS))
		return;
	if (xs_cuda_stalls && data->callbackSite == CUPTI_API_ENTER)
		xs_cuda_stalls_launch(data->context);
	if (xs_cuda_ranges && !xs_is_guest()) {
		if (data->callbackSite == CUPTI_API_ENTER)
			xs_cuda_range_enter(data->context, data->correlationId, kernel);
		else
			xs_cuda_range_leave(data->functionReturnValue &&
					    *(const int *)data->functionReturnValue);
	}
	errno = error;
}

/*
 * CUPTI calls us while it does so already: in a handler, or it goes on after a jump; or we have
 * called it ourselves, where nothing is owed.
 */
static __attribute__((noinline, cold)) uintptr_t still_told(uintptr_t told)
{
	if (xs_stack_has(told & ~OWES)) {
		if (!inside.theirs)
			inside.theirs = inside.depth + 1;
		return told;
	}
	lose(told & OWES);
	inside.theirs = 0;
	return 0;
}

static inline bool is_api(CUpti_CallbackDomain domain)
{
	return domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API;
}

/* Apart: what comes before inside.told is set is what a jump leaves without a trace. */
static __attribute__((noinline)) void tell(bool guest, CUpti_CallbackDomain domain,
					   CUpti_CallbackId id, const CUpti_CallbackData *call)
{
	if (__builtin_expect(xs_cuda_asked.profiles, 0) && domain == CUPTI_CB_DOMAIN_DRIVER_API)
		profile(id, call);
	if (__builtin_expect(is_api(domain), 1)) {
		if (guest) {
			/* what the thread is in is not the guest's */
			if (call->callbackSite == CUPTI_API_ENTER)
				(void)xs_recording(); /* counts it as lost */
		} else if (call->callbackSite == CUPTI_API_ENTER) {
			if (!xs_paused())
				enter(domain, id, call);
		} else if (inside.depth) {
			leave(domain, id, call);
		}
	} else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		resource(id, call);
	}
}

/* Will enter() be asked, and not for what may be a call's own? */
static inline bool begins(CUpti_CallbackDomain domain, const CUpti_CallbackData *call)
{
	return is_api(domain) && call->callbackSite == CUPTI_API_ENTER && !xs_paused() &&
	       !(inside.depth && domain == CUPTI_CB_DOMAIN_DRIVER_API);
}

void CUPTIAPI xs_cuda_on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			      const void *data)
{
	uintptr_t outer = inside.told;

	(void)user;
	if (xs_is_guest()) { /* nor is the frame */
		tell(true, domain, id, data);
		return;
	}
	if (__builtin_expect(outer, 0))
		outer = still_told(outer);
	inside.told = XS_FRAME_MARK() | (begins(domain, data) ? OWES : 0);
	atomic_signal_fence(memory_order_seq_cst);
	tell(false, domain, id, data);
	atomic_signal_fence(memory_order_seq_cst);
	inside.told = outer;
	if (!outer)
		inside.theirs = 0;
}

/* CUPTI has told nothing more since it was left: it may have been unable to. */
static void tell_left(void)
{
	if (!atomic_load(&xs_cupti.stage)) /* else we have ended that */
		xs_tell_unseen(XS_UNSEEN_CUDA_LEFT);
}

static void forget_told(void)
{
	lose(inside.told & OWES);
	inside.told = 0;
	tell_left();
}

static void forget_last(const struct going *going)
{
	forget(going);
	tell_left();
}

/* It has left whatever it was in. */
static void thread_ends(void)
{
	if (inside.told)
		forget_told();
	for (uint32_t i = 0; i < NESTED && inside.depth; i++)
		forget_last(&inside.going[(inside.depth - 1) % NESTED]);
}

/*
 * A handler may end the process within a call. Otherwise those that were left are found as far as
 * their stack shows it; a call that is not is shown as one that went on until now.
 */
static void process_ends(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (xs_is_guest())
		return;
	if (inside.told && !xs_stack_has(inside.told & ~OWES))
		forget_told();
	for (uint32_t i = 0; i < NESTED && inside.depth && !xs_in_handler(); i++) {
		const struct going *going = &inside.going[(inside.depth - 1) % NESTED];

		if (here - going->at >= ONE_STACK && !is_overwritten(going))
			break;
		forget_last(going);
	}
}

void xs_cuda_watch_ends(void)
{
	static struct xs_hook at_thread_end = { .function = thread_ends };
	static struct xs_hook at_end = { .function = process_ends };

	xs_at_thread_end(&at_thread_end);
	xs_at_end(&at_end);
}
