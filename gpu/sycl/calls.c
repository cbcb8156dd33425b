/*
 * Calls of the Unified Runtime (stream "ur.call"), and of the plug-in interface before it
 * ("sycl.pi"): their begins and ends are two callbacks, between which each thread keeps a few.
 */
#include <spare.h>
#include <string.h>

#include "call_values.h"
#include "sycl.h"

#define DEPTH	  16u /* the ends of what is further out are not recorded */
#define FUNCTIONS 1024u

struct entered {
	struct xs_call call;
	uint64_t instance;
	uint32_t name;
};

struct of_thread {
	void *spare; /* while nobody has it */
	uint32_t depth;
	struct entered entered[DEPTH];
};
static __thread struct of_thread *mine __attribute__((tls_model("initial-exec")));
static struct xs_spare spare;

/* Interned names by number, which the runtime never gives to another function. */
static _Atomic uint32_t functions[FUNCTIONS];

static uint32_t name_of(const struct xpti_function *function)
{
	uint32_t name = function->id < FUNCTIONS ? atomic_load_explicit(&functions[function->id],
									memory_order_relaxed)
						 : 0;

	if (__builtin_expect(!name, 0)) {
		name = xs_name(function->name ? function->name : "(no name)", 0);
		if (function->id < FUNCTIONS && function->name)
			atomic_store_explicit(&functions[function->id], name, memory_order_relaxed);
	}
	return name;
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

static void enter(uint64_t instance, uint32_t name)
{
	struct of_thread *thread = mine;
	struct entered *entered;
	uint32_t depth;

	if (__builtin_expect(!thread, 0))
		thread = mine = xs_spare_take_zeroed(&spare, sizeof(*thread));
	if (!thread || !name)
		return;
	depth = thread->depth; /* read once: a handler may come in between, and raise it */
	if (__builtin_expect(depth >= DEPTH, 0)) { /* jumps have left some of them */
		depth = DEPTH - 1;
		memmove(thread->entered, thread->entered + 1, depth * sizeof(*thread->entered));
	}
	entered = &thread->entered[depth];
	entered->instance = instance;
	entered->name = name;
	if (!xs_call_enter(&entered->call, XS_SOURCE_UR, name))
		return;
	thread->depth = depth + 1;
	if (__builtin_expect(xs_log_calls, 0) &&
	    xs_args_begin(XS_FRAME_MARK(), &entered->call, XS_SOURCE_UR, name, 0))
		xs_args_end(&entered->call, 0);
}

static void leave(uint64_t instance, int32_t result)
{
	struct of_thread *thread = mine;
	const struct entered *entered;
	uint32_t depth = thread ? thread->depth : 0;

	while (depth && thread->entered[depth - 1].instance != instance)
		depth--;
	if (!depth) /* it began while nothing was recorded */
		return;
	entered = &thread->entered[depth - 1];
	thread->depth = depth - 1;
	xs_call_end(xs_call_header(XS_SOURCE_UR, entered->name, result ? XS_CALL_FLAG_FAILED : 0),
		    result, &entered->call);
}

void sycl_call_begin(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		     uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event;
	if (data && !xs_paused())
		enter(instance, name_of(data));
}

void sycl_call_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	const struct xpti_function *function = data;

	(void)type, (void)parent, (void)event;
	leave(instance, function && function->result ? *function->result : 0);
}

void sycl_function_begin(uint16_t type, const struct xpti_event *parent,
			 const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event;
	if (data && xs_recording())
		enter(instance, xs_name(data, 0));
}

void sycl_function_end(uint16_t type, const struct xpti_event *parent,
		       const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)data;
	leave(instance, 0);
}
