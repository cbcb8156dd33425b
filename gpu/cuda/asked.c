/*
 * Which calls CUPTI tells us of.
 */
#include <errno.h>

#include "profiler.h"
#include "xs_cuda.h"

struct xs_cuda_asked xs_cuda_asked;

/* Of one part the functions whose use is among `uses`. */
static CUptiResult enable_some(uint32_t on, CUpti_CallbackDomain domain, const uint8_t *uses_of,
			       uint32_t count)
{
	uint8_t uses = XS_CUDA_ENQUEUES | (xs_cuda_asked.kernels ? XS_CUDA_KERNELS : 0) |
		       (xs_cuda_ranges ? XS_CUDA_CAPTURES : 0);
	CUptiResult result = CUPTI_SUCCESS, first = CUPTI_SUCCESS;
	bool some = false;

	for (uint32_t id = 0; id < count; id++) {
		if (!(uses_of[id] & uses))
			continue;
		/* an older libcupti does not know all */
		result = xs_cupti.EnableCallback(on, xs_cupti.subscriber, domain, id);
		some |= result == CUPTI_SUCCESS;
		if (!first)
			first = result;
	}
	return some ? CUPTI_SUCCESS : first;
}

static CUptiResult enable(uint32_t on)
{
	CUptiResult result;

	if (xs_cuda_asked.all) {
		result =
			xs_cupti.EnableDomain(on, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
		return result ? result
			      : xs_cupti.EnableDomain(on, xs_cupti.subscriber,
						      CUPTI_CB_DOMAIN_DRIVER_API);
	}
	result = enable_some(on, CUPTI_CB_DOMAIN_RUNTIME_API, xs_cuda_runtime_uses,
			     XS_CUDA_runtime_COUNT);
	return result ? result
		      : enable_some(on, CUPTI_CB_DOMAIN_DRIVER_API, xs_cuda_driver_uses,
				    XS_CUDA_driver_COUNT);
}

/*
 * A process that begins paused is not called before its first resume. Later pauses leave it as it
 * is: a call that had begun would not be told to end. In a handler CUPTI may not be called, which
 * may be what was interrupted: then the next occasion has it.
 */
static _Atomic bool awaited;

void xs_cuda_resumed(void)
{
	int error = errno;
	struct xs_blocked blocked;

	if (!atomic_load_explicit(&awaited, memory_order_relaxed) || xs_paused_itself() ||
	    !xs_cuda_own_process() || atomic_load(&xs_cupti.stage) || xs_in_handler() ||
	    !atomic_exchange(&awaited, false))
		return;
	blocked = xs_block();
	(void)enable(1);
	xs_unblock(blocked);
	errno = error;
}

CUptiResult xs_cuda_enable_calls(const struct xs_options *options)
{
	static struct xs_hook hook = { .function = xs_cuda_resumed };
	CUptiResult result;

	xs_cuda_asked.all = xs_want_calls(options);
	xs_cuda_asked.kernels = xs_want_kernel_calls(options);
	xs_cuda_asked.enqueues = xs_want_enqueues(options);
	xs_cuda_asked.correlated = xs_want_device(options) ? XS_CUDA_ENQUEUES : 0;
	if (xs_cuda_asked.correlated && options->chrome_kernel)
		xs_cuda_asked.correlated |= XS_CUDA_WAITS;
	(void)xs_cupti.EnableCallback(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
				      CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
	(void)xs_cupti.EnableCallback(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
				      CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	if (xs_cuda_awaits_context())
		(void)xs_cupti.EnableCallback(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
					      CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
	xs_cuda_ranges = options->metric_query;
	xs_cuda_stalls = options->stall_sampling;
	xs_cuda_asked.profiles = xs_cuda_ranges || xs_cuda_stalls;
	if (xs_cuda_asked.profiles)
		(void)xs_cupti.EnableCallback(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
					      CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
	result = enable(1);
	if (result || !xs_paused_itself())
		return result;
	(void)enable(0);
	atomic_store(&awaited, true);
	xs_at_resume(&hook);
	xs_cuda_resumed(); /* if it was in between */
	return CUPTI_SUCCESS;
}
