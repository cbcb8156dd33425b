/* The callback API: subscribers, and what each of them hears. */
#include "profiler.h"

#include <stdio.h>
#include <string.h>

struct su_subscriber su_subscribers[SU_SUBSCRIBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first_name[64];
static __thread bool calling;

struct su_session *su_session_of(CUpti_SubscriberHandle handle)
{
	struct su_subscriber *subscriber = (struct su_subscriber *)handle;

	if (subscriber < su_subscribers || subscriber >= su_subscribers + SU_SUBSCRIBERS ||
	    !subscriber->used)
		return NULL;
	return &su_sessions[1 + (subscriber - su_subscribers)];
}

bool su_hears(unsigned domain, unsigned cbid)
{
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++)
		if (su_subscribers[i].used && su_subscribers[i].on[domain][cbid % SU_CBIDS])
			return true;
	return false;
}

bool su_hears_calls(void)
{
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++)
		if (su_subscribers[i].used &&
		    (su_subscribers[i].count[SC_DRIVER] || su_subscribers[i].count[SC_RUNTIME]))
			return true;
	return false;
}

/* a call that a callback makes is not told */
void su_callback(unsigned domain, unsigned cbid, const void *data)
{
	if (calling && !sc_config.tells_within)
		return;
	calling = true;
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++)
		if (su_subscribers[i].used && su_subscribers[i].on[domain][cbid % SU_CBIDS])
			su_subscribers[i].function(su_subscribers[i].data,
						   (CUpti_CallbackDomain)domain, cbid, data);
	calling = false;
}

static const char *launched(const struct sc_call *call)
{
	const struct sc_function *function = NULL;

	if (call->domain == SC_DRIVER) {
		if (!strncmp(call->symbol, "cuLaunchKernelEx", 16))
			function = (void *)((const cuLaunchKernelEx_params *)call->params)->f;
		else if (!strncmp(call->symbol, "cuLaunchKernel", 14) ||
			 !strncmp(call->symbol, "cuLaunchCooperative", 19))
			function = (void *)((const cuLaunchKernel_params *)call->params)->f;
		return function ? function->name : NULL;
	}
	if (!sc_runtime_name || !call->params || strncmp(call->symbol, "cudaLaunch", 10) != 0)
		return NULL;
	if (!strncmp(call->symbol, "cudaLaunchKernelExC", 19))
		return sc_runtime_name(
			((const cudaLaunchKernelExC_v11060_params *)call->params)->func);
	if (!strncmp(call->symbol, "cudaLaunchKernel", 16) ||
	    !strncmp(call->symbol, "cudaLaunchCooperativeKernel", 27))
		return sc_runtime_name(((const cudaLaunchKernel_v7000_params *)call->params)->func);
	return NULL;
}

void su_call_back(struct sc_call *call, CUpti_ApiCallbackSite site)
{
	struct sc_context *context = sc_current();
	CUpti_CallbackData data = { .callbackSite = site,
				    .functionName = call->name,
				    .functionParams = call->params,
				    .functionReturnValue = site == CUPTI_API_EXIT ? call->ret
										  : NULL,
				    .symbolName = launched(call),
				    .context = (CUcontext)context,
				    .contextUid = context ? context->id : 0,
				    .correlationId = call->corr };

	if (calling && !sc_config.tells_within)
		return;
	calling = true;
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++) {
		if (!su_subscribers[i].used ||
		    !su_subscribers[i].on[call->domain][call->cbid % SU_CBIDS])
			continue;
		data.correlationData = &call->data[i];
		su_subscribers[i].function(su_subscribers[i].data,
					   (CUpti_CallbackDomain)call->domain, call->cbid, &data);
	}
	calling = false;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
			     void *userdata, bool multiple, const char *name)
{
	CUptiResult ret = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	bool allowed = true;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++)
		allowed &= !su_subscribers[i].used || (multiple && su_subscribers[i].multiple);
	for (unsigned i = 0; i < SU_SUBSCRIBERS && allowed; i++) {
		struct su_subscriber *subscriber = &su_subscribers[i];

		if (subscriber->used)
			continue;
		memset(subscriber, 0, sizeof(*subscriber));
		memset(&su_sessions[1 + i], 0, sizeof(su_sessions[0]));
		subscriber->function = callback;
		subscriber->data = userdata;
		subscriber->multiple = multiple;
		subscriber->used = true;
		if (i == 0)
			(void)snprintf(first_name, sizeof(first_name), "CUPTI for %s",
				       name ? name : "an older tool");
		*handle = (CUpti_SubscriberHandle)subscriber;
		ret = CUPTI_SUCCESS;
		break;
	}
	(void)pthread_mutex_unlock(&lock);
	su_hooks_start();
	return ret;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
			   void *userdata)
{
	SU_BEGIN();
	return subscribe(subscriber, callback, userdata, false, NULL);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
			      void *userdata, CUpti_SubscriberParams *pParams)
{
	CUptiResult ret;

	SU_BEGIN();
	if (!pParams || pParams->structSize < offsetof(CUpti_SubscriberParams, padding))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (pParams->oldSubscriberName && pParams->oldSubscriberSize)
		(void)snprintf(pParams->oldSubscriberName, pParams->oldSubscriberSize, "%s",
			       first_name);
	ret = subscribe(subscriber, callback, userdata, pParams->allowMultipleSubscribers,
			pParams->subscriberName);
	return ret;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	SU_BEGIN();
	if (!su_session_of(subscriber))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(su_session_of(subscriber)->kind, 0, sizeof(su_sessions[0].kind));
	((struct su_subscriber *)subscriber)->used = false;
	su_refresh();
	return CUPTI_SUCCESS;
}

static void enable(struct su_subscriber *subscriber, unsigned domain, unsigned cbid, bool on)
{
	if (subscriber->on[domain][cbid] != on)
		subscriber->count[domain] += on ? 1u : -1u;
	subscriber->on[domain][cbid] = on;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
				CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	SU_BEGIN();
	if (!su_session_of(subscriber) || domain < 1 || domain >= CUPTI_CB_DOMAIN_SIZE ||
	    cbid >= SU_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	enable((struct su_subscriber *)subscriber, domain, cbid, on);
	su_refresh();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle subscriber,
			      CUpti_CallbackDomain domain)
{
	SU_BEGIN();
	if (!su_session_of(subscriber) || domain < 1 || domain >= CUPTI_CB_DOMAIN_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (unsigned cbid = 1; cbid < SU_CBIDS; cbid++)
		enable((struct su_subscriber *)subscriber, domain, cbid, on);
	su_refresh();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t on, CUpti_SubscriberHandle subscriber)
{
	CUptiResult ret = CUPTI_SUCCESS;

	SU_BEGIN();
	for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE && !ret; domain++)
		ret = cuptiEnableDomain(on, subscriber, (CUpti_CallbackDomain)domain);
	return ret;
}

CUptiResult cuptiGetCallbackState(uint32_t *on, CUpti_SubscriberHandle subscriber,
				  CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	SU_BEGIN();
	if (!su_session_of(subscriber) || domain < 1 || domain >= CUPTI_CB_DOMAIN_SIZE ||
	    cbid >= SU_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*on = ((struct su_subscriber *)subscriber)->on[domain][cbid];
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(size_t *domainCount, CUpti_DomainTable *domainTable)
{
	static CUpti_CallbackDomain domains[] = {
		CUPTI_CB_DOMAIN_DRIVER_API,  CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_RESOURCE,
		CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_NVTX,	  CUPTI_CB_DOMAIN_STATE
	};

	SU_BEGIN();
	*domainCount = sizeof(domains) / sizeof(domains[0]);
	*domainTable = domains;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	SU_BEGIN();
	if (cbid >= SU_CBIDS ||
	    (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = (domain == CUPTI_CB_DOMAIN_DRIVER_API ? su_driver_callbacks
						      : su_runtime_callbacks)[cbid];
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
