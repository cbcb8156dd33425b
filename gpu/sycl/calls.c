/*
 * Calls of the Unified Runtime (stream "ur.call"), and of the plug-in interface before it
 * ("sycl.pi"): their begins and ends are two callbacks, between which each thread keeps a few.
 */
#include <spare.h>
#include <string.h>

#include "call_values.h"
#include "sycl.h"
#include "sycl_functions.h"
#include "ur_abi.h"

#define DEPTH	  16u /* the ends of what is further out are not recorded */
#define FUNCTIONS 1024u

struct entered {
	struct xs_call call;
	uint64_t instance;
	uint32_t function; /* a number of ur_abi.h's; else its name, behind these */
};

struct of_thread {
	void *spare; /* while nobody has it */
	uint32_t depth;
	uint32_t allocates; /* functions + 1 of the newest allocation; 0: none since it was asked */
	uint64_t device;    /* of this one */
	struct entered entered[DEPTH];
};
static __thread struct of_thread *mine __attribute__((tls_model("initial-exec")));
static struct xs_spare spare;

/* Is the runtime of a version of which ur_abi.h says where arguments are? */
static _Atomic bool knows_arguments;
/* Functions + 1 by the runtime's own number, which it never gives to another function. */
static _Atomic uint32_t functions[FUNCTIONS];

static uint32_t function_of_name(const char *name)
{
	for (uint32_t i = 0; i < FN_sycl_count && atomic_load(&knows_arguments); i++)
		if (!strcmp(sycl_functions[i].name, name))
			return i;
	return FN_sycl_count + xs_name(name, 0);
}

static uint32_t function_of(const struct xpti_function *given)
{
	uint32_t found = given->id < FUNCTIONS
				 ? atomic_load_explicit(&functions[given->id], memory_order_relaxed)
				 : 0;

	if (__builtin_expect(!found, 0)) {
		found = function_of_name(given->name ? given->name : "(no name)") + 1;
		if (given->id < FUNCTIONS && given->name)
			atomic_store_explicit(&functions[given->id], found, memory_order_relaxed);
	}
	return found - 1;
}

static void thread_ends(void)
{
	struct of_thread *thread = mine;

	mine = NULL;
	if (thread)
		xs_spare_give(&spare, thread);
}

void sycl_calls_init(void)
{
	static struct xs_hook at_thread_end = { .function = thread_ends };

	xs_at_thread_end(&at_thread_end);
}

void sycl_calls_version(unsigned major, unsigned minor)
{
	atomic_store(&knows_arguments,
		     major == UR_MAJOR && minor >= UR_OLDEST_MINOR && minor <= UR_NEWEST_MINOR);
}

/* The function whose arguments lie there; NULL: it is none that we know, or one is missing. */
static const struct sycl_function *with_arguments(uint32_t function, void *const *args)
{
	if (function >= FN_sycl_count || !args)
		return NULL;
	for (uint32_t i = 0; i < sycl_functions[function].count; i++)
		if (!args[i])
			return NULL;
	return &sycl_functions[function];
}

static void show_given(struct xs_call *call, uint32_t function, void *const *args)
{
	const struct sycl_function *known = with_arguments(function, args);

	if (known)
		known->given(call, args);
	else if (xs_args_begin(XS_FRAME_MARK(), call, XS_SOURCE_UR, function, 0))
		xs_args_end(call, 0);
}

/* ---- the device of an allocation ---- */

static struct of_thread *thread_state(void)
{
	if (__builtin_expect(!mine, 0))
		mine = xs_spare_take_zeroed(&spare, sizeof(*mine));
	return mine;
}

void sycl_call_allocates(void)
{
	struct of_thread *thread = thread_state();

	if (thread)
		thread->allocates = 0;
}

bool sycl_call_allocated(uint64_t *ret_handle)
{
	const struct of_thread *thread = mine;

	*ret_handle = thread && thread->allocates ? thread->device : 0;
	return thread && thread->allocates == FN_urUSMHostAlloc + 1;
}

static void note_allocation(uint32_t function, void *const *args)
{
	struct of_thread *thread = thread_state();

	if (!thread || !with_arguments(function, args))
		return;
	thread->allocates = function + 1;
	thread->device = 0;
	if (function != FN_urUSMHostAlloc) /* the second of both others' */
		memcpy(&thread->device, args[1], sizeof(thread->device));
}

static bool allocates(uint32_t function)
{
	return function == FN_urUSMHostAlloc || function == FN_urUSMDeviceAlloc ||
	       function == FN_urUSMSharedAlloc;
}

/* ---- calls ---- */

static void enter(uint64_t instance, uint32_t function, void *const *args)
{
	struct of_thread *thread = thread_state();
	struct entered *entered;
	uint32_t depth;

	if (!thread)
		return;
	depth = thread->depth; /* read once: a handler may come in between, and raise it */
	if (__builtin_expect(depth >= DEPTH, 0)) { /* jumps have left some of them */
		depth = DEPTH - 1;
		memmove(thread->entered, thread->entered + 1, depth * sizeof(*thread->entered));
	}
	entered = &thread->entered[depth];
	entered->instance = instance;
	entered->function = function;
	if (!xs_call_enter(&entered->call, XS_SOURCE_UR, function))
		return;
	xs_tls.call = UINTPTR_MAX; /* it is on no stack, and what it makes may be anywhere */
	thread->depth = depth + 1;
	if (__builtin_expect(xs_log_calls, 0))
		show_given(&entered->call, function, args);
}

static void leave(uint64_t instance, int32_t result, void *const *args)
{
	struct of_thread *thread = mine;
	const struct sycl_function *known;
	const struct entered *entered;
	uint32_t depth = thread ? thread->depth : 0;

	while (depth && thread->entered[depth - 1].instance != instance)
		depth--;
	if (!depth) /* it began while nothing was recorded */
		return;
	entered = &thread->entered[depth - 1];
	thread->depth = depth - 1;
	xs_call_end(xs_call_header(XS_SOURCE_UR, entered->function,
				   result ? XS_CALL_FLAG_FAILED : 0),
		    result, &entered->call);
	known = __builtin_expect(xs_log_calls && !result, 0)
			? with_arguments(entered->function, args)
			: NULL;
	if (known && known->gave)
		known->gave(&entered->call, args);
}

void sycl_call_begin(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		     uint64_t instance, const void *data)
{
	const struct xpti_function *given = data;
	uint32_t function;

	(void)type, (void)parent, (void)event;
	if (!given)
		return;
	function = function_of(given);
	if (__builtin_expect(allocates(function), 0)) /* while nothing is recorded, too */
		note_allocation(function, given->args);
	if (!xs_paused())
		enter(instance, function, given->args);
}

void sycl_call_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	const struct xpti_function *function = data;

	(void)type, (void)parent, (void)event;
	leave(instance, function && function->result ? *function->result : 0,
	      function ? function->args : NULL);
}

void sycl_function_begin(uint16_t type, const struct xpti_event *parent,
			 const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event;
	if (data && xs_recording())
		enter(instance, FN_sycl_count + xs_name(data, 0), NULL);
}

void sycl_function_end(uint16_t type, const struct xpti_event *parent,
		       const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)data;
	leave(instance, 0, NULL);
}
