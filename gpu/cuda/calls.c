/*
 * Calls of CUDA's functions, as CUPTI tells of them: before and after each that was asked for.
 *
 * The driver's functions that the runtime calls are the runtime's own and not shown. What a call
 * puts on a device, or has waited for, is told by its correlation id, which CUPTI's record of that
 * has, too: the drain process joins the two.
 */
#include "call_values.h"
#include "xs_cuda.h"

/* The call that the thread is in. */
static __thread struct {
	struct xs_call call;
	uint32_t function, correlation;
	bool open;
} inside __attribute__((tls_model("initial-exec")));

static bool log_all, log_kernels, log_enqueues;
static uint8_t correlated; /* uses: the drain process is told the numbers of such calls */

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

static void enqueued(uint64_t tick, uint64_t duration, uint8_t use, const CUpti_CallbackData *data)
{
	bool launch = use & XS_CUDA_LAUNCHES;
	uint32_t name = launch && data->symbolName ? xs_cuda_symbol(data->symbolName) : 0;
	struct xs_enqueued_record *record =
		xs_record_begin(sizeof(*record), XS_ENQUEUED, XS_SOURCE_CUDA,
				launch ? XS_ENQUEUED_FLAG_LAUNCH : 0, name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick;
	record->correlation = data->correlationId;
	record->host_ticks = duration > UINT32_MAX ? UINT32_MAX : (uint32_t)duration;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

/* Apart, as the next one: while nothing is recorded no register is saved. */
static __attribute__((noinline)) void enter(CUpti_CallbackDomain domain, CUpti_CallbackId id,
					    const CUpti_CallbackData *data)
{
	if (inside.open && domain == CUPTI_CB_DOMAIN_DRIVER_API)
		return;
	inside.function = function_of(domain, id);
	inside.correlation = data->correlationId;
	inside.open = xs_call_enter_unpaused(&inside.call, XS_SOURCE_CUDA, inside.function);
	if (xs_log_calls && inside.open)
		xs_cuda_in(&inside.call, domain == CUPTI_CB_DOMAIN_RUNTIME_API, id,
			   data->functionParams);
}

static bool is_logged(uint8_t use)
{
	return log_all || (log_kernels && use) || (log_enqueues && use & XS_CUDA_ENQUEUES);
}

static __attribute__((noinline)) void leave(CUpti_CallbackDomain domain, CUpti_CallbackId id,
					    const CUpti_CallbackData *data)
{
	uint8_t use = use_of(domain, id), flags = use ? XS_CALL_FLAG_OF_WORK : 0;
	const int *returned = data->functionReturnValue;
	int result = returned ? *returned : 0;
	bool failed = xs_cuda_failed(result);
	uint64_t duration;

	if (inside.function != function_of(domain, id)) {
		/* the runtime's own call, whose work may have a number of its own */
		if (use & correlated && !failed && inside.correlation != data->correlationId)
			enqueued(inside.call.tick, 0, use, data);
		return;
	}
	inside.open = false;
	duration = xs_call_leave(&inside.call);
	if (is_logged(use))
		xs_call_write(inside.call.tick, duration,
			      xs_call_header(XS_SOURCE_CUDA, inside.function,
					     flags | (failed ? XS_CALL_FLAG_FAILED : 0)),
			      result);
	if (xs_log_calls && !result)
		xs_cuda_out(&inside.call, domain == CUPTI_CB_DOMAIN_RUNTIME_API, id,
			    data->functionParams);
	if (use & correlated && !failed)
		enqueued(inside.call.tick, duration, use, data);
}

void CUPTIAPI xs_cuda_on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			      const void *data)
{
	const CUpti_CallbackData *call = data;
	bool is_api = domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API;

	(void)user;
	if (__builtin_expect(is_api, 1)) {
		if (call->callbackSite == CUPTI_API_ENTER) {
			if (!xs_paused())
				enter(domain, id, call);
		} else if (inside.open) {
			leave(domain, id, call);
		}
	} else if (domain == CUPTI_CB_DOMAIN_RESOURCE &&
		   id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
		xs_cuda_forget_symbols();
	}
}

/* Of one part the functions whose use is among `uses`. */
static CUptiResult enable_some(CUpti_CallbackDomain domain, const uint8_t *uses_of, uint32_t count,
			       uint8_t uses)
{
	CUptiResult result = CUPTI_SUCCESS, first = CUPTI_SUCCESS;
	bool some = false;

	for (uint32_t id = 0; id < count; id++) {
		if (!(uses_of[id] & uses))
			continue;
		/* an older libcupti does not know all */
		result = xs_cupti.EnableCallback(1, xs_cupti.subscriber, domain, id);
		some |= result == CUPTI_SUCCESS;
		if (!first)
			first = result;
	}
	return some ? CUPTI_SUCCESS : first;
}

CUptiResult xs_cuda_enable_calls(const struct xs_options *options)
{
	uint8_t uses = XS_CUDA_ENQUEUES;
	CUptiResult result;

	log_all = xs_want_calls(options);
	log_kernels = xs_want_kernel_calls(options);
	log_enqueues = xs_want_enqueues(options);
	correlated = xs_want_device(options) ? XS_CUDA_ENQUEUES : 0;
	if (log_kernels)
		uses |= XS_CUDA_KERNELS;
	if (correlated && options->chrome_kernel)
		correlated |= XS_CUDA_WAITS;
	(void)xs_cupti.EnableCallback(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
				      CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
	if (log_all) {
		result = xs_cupti.EnableDomain(1, xs_cupti.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
		return result ? result
			      : xs_cupti.EnableDomain(1, xs_cupti.subscriber,
						      CUPTI_CB_DOMAIN_DRIVER_API);
	}
	result = enable_some(CUPTI_CB_DOMAIN_RUNTIME_API, xs_cuda_runtime_uses,
			     XS_CUDA_runtime_COUNT, uses);
	return result ? result
		      : enable_some(CUPTI_CB_DOMAIN_DRIVER_API, xs_cuda_driver_uses,
				    XS_CUDA_driver_COUNT, uses);
}
