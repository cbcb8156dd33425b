/* The activity API: what is enabled, for whom, and how its records are read. */
#include "profiler.h"

#include <string.h>
#include <time.h>

bool su_latency;

static __thread struct {
	uint64_t id[SU_EXTERNAL_DEPTH];
	unsigned depth;
} external[SU_EXTERNAL_KINDS];

/* SOFTCUDA_FAULT names functions of CUPTI as well */
int su_fault(const char *function)
{
	su_hooks_start();
	return atomic_load_explicit(&sc_slow_flags, memory_order_relaxed) & SC_FAULTS
		       ? sc_fault(function)
		       : -1;
}

static CUptiResult set_kind(struct su_session *session, CUpti_ActivityKind kind, bool on)
{
	if (!session)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (kind <= 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT)
		return CUPTI_ERROR_INVALID_KIND;
	if (!su_size(kind))
		return on ? CUPTI_ERROR_NOT_COMPATIBLE : CUPTI_SUCCESS;
	if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER && on && !su_unified())
		return CUPTI_ERROR_NOT_READY;
	session->kind[kind] = on;
	su_refresh();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	SU_BEGIN();
	return set_kind(&su_sessions[0], kind, true);
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	CUptiResult ret;

	SU_BEGIN();
	ret = set_kind(&su_sessions[0], kind, true);
	if (!ret)
		su_dump(kind);
	return ret;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	SU_BEGIN();
	return set_kind(&su_sessions[0], kind, false);
}

CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
				   CUpti_ActivityConfig *pActivityConfig)
{
	SU_BEGIN();
	if (pActivityConfig && pActivityConfig->fieldSelection.numFields)
		return CUPTI_ERROR_NOT_SUPPORTED;
	return set_kind(su_session_of(subscriber), kind, true);
}

CUptiResult cuptiActivityEnableAndDump_v2(CUpti_SubscriberHandle subscriber,
					  CUpti_ActivityKind kind,
					  CUpti_ActivityConfig *activityConfig)
{
	CUptiResult ret;

	SU_BEGIN();
	ret = cuptiActivityEnable_v2(subscriber, kind, activityConfig);
	if (!ret)
		su_dump(kind);
	return ret;
}

CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
				    CUpti_ActivityConfig *pActivityConfig)
{
	(void)pActivityConfig;
	SU_BEGIN();
	return set_kind(su_session_of(subscriber), kind, false);
}

static CUptiResult set_context(CUcontext context, CUpti_ActivityKind kind, bool on)
{
	struct su_session *session = &su_sessions[0];

	if (kind <= 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT)
		return CUPTI_ERROR_INVALID_KIND;
	for (unsigned i = 0; context && i < 16; i++) {
		if (session->contexts[i].context &&
		    session->contexts[i].context != (struct sc_context *)context)
			continue;
		session->contexts[i].on &= ~(1ull << kind);
		session->contexts[i].off &= ~(1ull << kind);
		*(on ? &session->contexts[i].on : &session->contexts[i].off) |= 1ull << kind;
		session->contexts[i].context = (struct sc_context *)context;
		su_refresh();
		return CUPTI_SUCCESS;
	}
	return CUPTI_ERROR_INVALID_CONTEXT;
}

CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
	SU_BEGIN();
	return set_context(context, kind, true);
}

CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
	SU_BEGIN();
	return set_context(context, kind, false);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
					   CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
	SU_BEGIN();
	if (!funcBufferRequested || !funcBufferCompleted)
		return CUPTI_ERROR_INVALID_PARAMETER;
	su_sessions[0].request = funcBufferRequested;
	su_sessions[0].complete = funcBufferCompleted;
	su_start_worker();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks_v2(
	CUpti_SubscriberHandle subscriber, CUpti_BuffersCallbackRequestFunc_v2 funcBufferRequested,
	CUpti_BuffersCallbackCompleteFunc_v2 funcBufferCompleted)
{
	SU_BEGIN();
	if (!su_session_of(subscriber) || !funcBufferRequested || !funcBufferCompleted)
		return CUPTI_ERROR_INVALID_PARAMETER;
	su_session_of(subscriber)->request_v2 = funcBufferRequested;
	su_session_of(subscriber)->complete_v2 = funcBufferCompleted;
	su_start_worker();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes,
				       CUpti_Activity **record)
{
	uint8_t *at = buffer;
	size_t size;

	SU_BEGIN();
	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record)
		at = (uint8_t *)*record + su_size((*record)->kind);
	if (at + sizeof(CUpti_Activity) > buffer + validBufferSizeBytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	size = su_size(((CUpti_Activity *)at)->kind);
	if (!size || at + size > buffer + validBufferSizeBytes)
		return CUPTI_ERROR_INVALID_KIND;
	*record = (CUpti_Activity *)at;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle subscriber, uint8_t *buffer,
					  size_t validBufferSizeBytes, CUpti_Activity **record)
{
	SU_BEGIN();
	if (!su_session_of(subscriber))
		return CUPTI_ERROR_INVALID_PARAMETER;
	return cuptiActivityGetNextRecord(buffer, validBufferSizeBytes, record);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId, size_t *dropped)
{
	(void)context, (void)streamId;
	SU_BEGIN();
	*dropped = atomic_exchange(&su_sessions[0].dropped, 0);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle subscriber,
						 CUcontext context, uint32_t streamId,
						 size_t *dropped)
{
	(void)context, (void)streamId;
	SU_BEGIN();
	if (!su_session_of(subscriber))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*dropped = atomic_exchange(&su_session_of(subscriber)->dropped, 0);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	SU_BEGIN();
	su_flush_all(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	nanosleep(&(struct timespec){ sc_config.flush_ms / 1000,
				      sc_config.flush_ms % 1000 * 1000000 },
		  NULL);
	return CUPTI_SUCCESS;
}

/* hands back what is full, which the worker does anyway */
CUptiResult cuptiActivityFlushPeriod(uint32_t time)
{
	(void)time;
	SU_BEGIN();
	return CUPTI_SUCCESS;
}

/* attributes are kept, and change nothing */
static uint64_t attributes[CUPTI_ACTIVITY_ATTR_COUNT];

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	SU_BEGIN();
	if (!valueSize || !value || attr >= CUPTI_ACTIVITY_ATTR_COUNT ||
	    *valueSize > sizeof(attributes[0]))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(&attributes[attr], value, *valueSize);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	SU_BEGIN();
	if (!valueSize || !value || attr >= CUPTI_ACTIVITY_ATTR_COUNT ||
	    *valueSize > sizeof(attributes[0]))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(value, &attributes[attr], *valueSize);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	SU_BEGIN();
	su_latency = enable;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp)
{
	SU_BEGIN();
	if (!funcTimestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	atomic_store(&sc_clock, funcTimestamp);
	return CUPTI_SUCCESS;
}

static CUptiResult set_call(struct su_session *session, unsigned domain, CUpti_CallbackId cbid,
			    bool on)
{
	if (!session || cbid >= SU_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	session->off[domain - SC_DRIVER][cbid] = !on;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	SU_BEGIN();
	return set_call(&su_sessions[0], SC_DRIVER, cbid, enable);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	SU_BEGIN();
	return set_call(&su_sessions[0], SC_RUNTIME, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle subscriber,
					    CUpti_CallbackId cbid, uint8_t enable)
{
	SU_BEGIN();
	return set_call(su_session_of(subscriber), SC_DRIVER, cbid, enable);
}

CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle subscriber,
					     CUpti_CallbackId cbid, uint8_t enable)
{
	SU_BEGIN();
	return set_call(su_session_of(subscriber), SC_RUNTIME, cbid, enable);
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	SU_BEGIN();
	if (kind <= 0 || (unsigned)kind >= SU_EXTERNAL_KINDS ||
	    external[kind].depth == SU_EXTERNAL_DEPTH)
		return CUPTI_ERROR_INVALID_PARAMETER;
	external[kind].id[external[kind].depth++] = id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
						  uint64_t *lastId)
{
	SU_BEGIN();
	if (kind <= 0 || (unsigned)kind >= SU_EXTERNAL_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!external[kind].depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	external[kind].depth--;
	if (lastId)
		*lastId = external[kind].id[external[kind].depth];
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle subscriber,
						      CUpti_ExternalCorrelationKind kind,
						      uint64_t id)
{
	SU_BEGIN();
	return su_session_of(subscriber) ? cuptiActivityPushExternalCorrelationId(kind, id)
					 : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle subscriber,
						     CUpti_ExternalCorrelationKind kind,
						     uint64_t *lastId)
{
	SU_BEGIN();
	return su_session_of(subscriber) ? cuptiActivityPopExternalCorrelationId(kind, lastId)
					 : CUPTI_ERROR_INVALID_PARAMETER;
}

void su_put_external(uint32_t corr)
{
	for (unsigned kind = 1; kind < SU_EXTERNAL_KINDS; kind++) {
		CUpti_ActivityExternalCorrelation record = {
			.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
			.externalKind = (CUpti_ExternalCorrelationKind)kind,
			.correlationId = corr,
		};

		if (!external[kind].depth)
			continue;
		record.externalId = external[kind].id[external[kind].depth - 1];
		su_put(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, NULL, &record);
	}
}
