/*
 * A library for CUDA_INJECTION64_PATH that subscribes to CUPTI and does nothing with what it hears:
 * what xstrace costs over it is ours, what it costs itself is CUPTI's.
 *
 *	SUBSCRIBER_CALLS=all|launches	which calls it hears (none)
 *	SUBSCRIBER_WORK=1		kernels as records, too, in buffers that nobody reads
 */
#include <cupti.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT	__attribute__((visibility("default")))
#define BUFFER	(4u << 20)
#define BUFFERS 8u

static _Alignas(4096) uint8_t buffers[BUFFERS][BUFFER];
static atomic_uint next;

static void CUPTIAPI hear(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			  const void *data)
{
	(void)user, (void)domain, (void)id, (void)data;
}

static void CUPTIAPI requested(uint8_t **ret_buffer, size_t *ret_size, size_t *ret_records)
{
	*ret_buffer = buffers[atomic_fetch_add(&next, 1) % BUFFERS];
	*ret_size = BUFFER;
	*ret_records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
			       size_t valid)
{
	(void)context, (void)stream, (void)data, (void)size, (void)valid;
}

static int hears(const char *what)
{
	const char *calls = getenv("SUBSCRIBER_CALLS");

	return calls && !strcmp(calls, what);
}

EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
	CUpti_SubscriberHandle subscriber;

	if (cuptiSubscribe(&subscriber, hear, NULL))
		return 0;
	if (hears("all")) {
		(void)cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
		(void)cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
	} else if (hears("launches")) {
		(void)cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
					  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
		(void)cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
					  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	}
	if (getenv("SUBSCRIBER_WORK")) {
		(void)cuptiActivityRegisterCallbacks(requested, completed);
		(void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	}
	return 1;
}
