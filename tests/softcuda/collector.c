/*
 * A small client of CUPTI, for the tests of the software CUDA: what it is told it writes, a line
 *for each record and each call, into the file that COLLECTOR_LOG names. The driver loads it:
 *	CUDA_INJECTION64_PATH=softcuda_collector.so
 *
 *	COLLECTOR_KINDS		activity kinds, numbers separated by commas (all that there are)
 *	COLLECTOR_BUFFER	bytes of a buffer (65536)
 *	COLLECTOR_REFUSE	every N-th buffer is refused
 *	COLLECTOR_CALLS=1	callbacks of every call and resource as well
 *	COLLECTOR_SUBSCRIBER=1	all of it by the _v2 calls of a subscriber
 *	COLLECTOR_CLOCK=1	CUPTI is to stamp in CLOCK_MONOTONIC_RAW
 */
#include <cupti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *out;
static size_t buffer_bytes = 65536;
static unsigned refuse_every;
static _Atomic unsigned requests;
static uint32_t version;
static CUpti_SubscriberHandle subscriber;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list args;

	(void)pthread_mutex_lock(&lock);
	va_start(args, format);
	(void)vfprintf(out, format, args);
	va_end(args);
	(void)fputc('\n', out);
	(void)pthread_mutex_unlock(&lock);
}

#define U64(value) (unsigned long long)(value)

static void say_kernel(const CUpti_ActivityKernel7 *k)
{
	bool graphs = version >= 17;

	say("kernel\t%s\t%u\t%llu\t%llu\t%u\t%u\t%u\t%u\t%llu\t%d,%d,%d\t%d,%d,%d\t%d", k->name,
	    k->correlationId, U64(k->start), U64(k->end), k->deviceId, k->contextId, k->streamId,
	    graphs ? k->graphId : 0, graphs ? U64(k->graphNodeId) : 0, k->gridX, k->gridY, k->gridZ,
	    k->blockX, k->blockY, k->blockZ, k->dynamicSharedMemory);
}

static void say_copy(const CUpti_ActivityMemcpy5 *m)
{
	bool graphs = version >= 17;

	say("copy\t%u\t%u\t%llu\t%llu\t%u\t%u\t%u\t%u\t%llu\t%llu", m->copyKind, m->correlationId,
	    U64(m->start), U64(m->end), m->deviceId, m->contextId, m->streamId,
	    graphs ? m->graphId : 0, graphs ? U64(m->graphNodeId) : 0, U64(m->bytes));
}

static void say_set(const CUpti_ActivityMemset4 *m)
{
	bool graphs = version >= 17;

	say("set\t%u\t%u\t%llu\t%llu\t%u\t%u\t%u\t%u\t%llu\t%llu", m->value, m->correlationId,
	    U64(m->start), U64(m->end), m->deviceId, m->contextId, m->streamId,
	    graphs ? m->graphId : 0, graphs ? U64(m->graphNodeId) : 0, U64(m->bytes));
}

static void say_peer(const CUpti_ActivityMemcpyPtoP4 *m)
{
	say("peer\t%u\t%u\t%llu\t%llu\t%u\t%u\t%u\t%u\t%u\t%llu", m->copyKind, m->correlationId,
	    U64(m->start), U64(m->end), m->deviceId, m->contextId, m->streamId, m->srcDeviceId,
	    m->dstDeviceId, U64(m->bytes));
}

static void say_api(const char *domain, const CUpti_ActivityAPI *a)
{
	say("%s\t%u\t%u\t%llu\t%llu\t%u\t%u", domain, a->cbid, a->correlationId, U64(a->start),
	    U64(a->end), a->threadId, a->returnValue);
}

static void say_marker(const CUpti_ActivityMarker2 *m)
{
	say("marker\t%u\t%u\t%llu\t%s\t%s", m->flags, m->id, U64(m->timestamp),
	    m->name ? m->name : "-", m->domain ? m->domain : "-");
}

static void say_other(const CUpti_Activity *record)
{
	const CUpti_ActivityExternalCorrelation *e = (const void *)record;
	const CUpti_ActivitySynchronization *s = (const void *)record;
	const CUpti_ActivityMemory2 *m = (const void *)record;
	const CUpti_ActivityMemoryPool *p = (const void *)record;
	const CUpti_ActivityGraphTrace *g = (const void *)record;
	const CUpti_ActivityDevice4 *d = (const void *)record;
	const CUpti_ActivityStream *t = (const void *)record;
	const CUpti_ActivityContext *c = (const void *)record;
	const CUpti_ActivityUnifiedMemoryCounter2 *u = (const void *)record;

	switch ((int)record->kind) {
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		say("external\t%u\t%u\t%llu", e->externalKind, e->correlationId,
		    U64(e->externalId));
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		say("sync\t%u\t%u\t%llu\t%llu\t%u\t%u\t%u", s->type, s->correlationId,
		    U64(s->start), U64(s->end), s->contextId, s->streamId, s->cudaEventId);
		break;
	case CUPTI_ACTIVITY_KIND_MEMORY2:
		say("memory\t%u\t%u\t%u\t%llu", m->memoryOperationType, m->memoryKind,
		    m->correlationId, U64(m->bytes));
		break;
	case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
		say("pool\t%u\t%u", p->memoryPoolOperationType, p->deviceId);
		break;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		say("graph\t%u\t%u\t%llu\t%llu\t%u\t%u\t%u", g->graphId, g->correlationId,
		    U64(g->start), U64(g->end), g->deviceId, g->contextId, g->streamId);
		break;
	case CUPTI_ACTIVITY_KIND_DEVICE:
		say("device\t%u\t%s\t%02x%02x", d->id, d->name, (unsigned char)d->uuid.bytes[0],
		    (unsigned char)d->uuid.bytes[15]);
		break;
	case CUPTI_ACTIVITY_KIND_STREAM:
		say("stream\t%u\t%u\t%u", t->streamId, t->contextId, t->priority);
		break;
	case CUPTI_ACTIVITY_KIND_CONTEXT:
		say("context\t%u\t%u\t%u", c->contextId, c->deviceId, c->nullStreamId);
		break;
	case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
		say("managed\t%u\t%llu\t%llu\t%llu\t%u\t%u", u->counterKind, U64(u->value),
		    U64(u->start), U64(u->end), u->srcId, u->dstId);
		break;
	default:
		say("other\t%u", record->kind);
	}
}

static void say_record(const CUpti_Activity *record)
{
	switch ((int)record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		say_kernel((const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		say_copy((const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		say_peer((const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		say_set((const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
		say_api("runtime", (const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_DRIVER:
		say_api("driver", (const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MARKER:
		say_marker((const void *)record);
		break;
	default:
		say_other(record);
	}
}

static void read_buffer(uint8_t *buffer, size_t valid)
{
	CUpti_Activity *record = NULL;
	size_t count = 0;
	CUptiResult result;

	while (!(result = cuptiActivityGetNextRecord(buffer, valid, &record))) {
		say_record(record);
		count++;
	}
	say("buffer\t%zu\t%zu\t%d", valid, count, (int)result);
	free(buffer);
}

static void requested(uint8_t **buffer, size_t *size, size_t *records)
{
	*records = 0;
	*buffer = NULL;
	if (refuse_every && (atomic_fetch_add(&requests, 1) + 1) % refuse_every == 0)
		return;
	*size = buffer_bytes;
	*buffer = aligned_alloc(8, buffer_bytes);
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
		      size_t valid)
{
	(void)context, (void)stream, (void)size;
	read_buffer(buffer, valid);
}

static void requested_v2(uint8_t **buffer, size_t *size, size_t *records,
			 CUpti_BufferCallbackRequestInfo *info)
{
	(void)info;
	requested(buffer, size, records);
}

static void completed_v2(uint8_t *buffer, size_t size, size_t valid,
			 CUpti_BufferCallbackCompleteInfo *info)
{
	(void)size, (void)info;
	read_buffer(buffer, valid);
}

static void heard(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *told)
{
	const CUpti_CallbackData *call = told;
	const CUpti_NvtxData *nvtx = told;

	(void)data;
	if (domain == CUPTI_CB_DOMAIN_NVTX) {
		say("nvtx\t%s", nvtx->functionName);
	} else if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
		say("%s\t%d\t%s\t%u\t%s\t%d",
		    call->callbackSite == CUPTI_API_ENTER ? "enter" : "exit", domain,
		    call->functionName, call->correlationId,
		    call->symbolName ? call->symbolName : "-",
		    call->functionReturnValue ? *(int *)call->functionReturnValue : -1);
		if (call->callbackSite == CUPTI_API_ENTER)
			*call->correlationData = call->correlationId;
		else if (*call->correlationData != call->correlationId)
			say("wrong\tcorrelationData");
	} else {
		say("callback\t%d\t%u", domain, cbid);
	}
}

static uint64_t raw_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void stop(void)
{
	size_t dropped = 0;

	(void)cuptiActivityFlushAll(1);
	if (subscriber && getenv("COLLECTOR_SUBSCRIBER"))
		(void)cuptiActivityGetNumDroppedRecords_v2(subscriber, NULL, 0, &dropped);
	else
		(void)cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	say("dropped\t%zu", dropped);
	(void)fflush(out);
}

/* Without it CUPTI tells nothing of managed memory. */
static void configure_managed(void)
{
	for (int kind = 1; kind < CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; kind++) {
		CUpti_ActivityUnifiedMemoryCounterConfig config = {
			.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
			.kind = (CUpti_ActivityUnifiedMemoryCounterKind)kind,
			.enable = 1,
		};

		(void)cuptiActivityConfigureUnifiedMemoryCounter(&config, 1);
	}
}

static void enable_kinds(bool by_subscriber)
{
	const char *list = getenv("COLLECTOR_KINDS");

	configure_managed();
	for (int kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++) {
		char padded[256], wanted[16];
		CUptiResult result;

		(void)snprintf(padded, sizeof(padded), ",%s,", list ? list : "");
		(void)snprintf(wanted, sizeof(wanted), ",%d,", kind);
		if (list ? !strstr(padded, wanted)
			 : kind == CUPTI_ACTIVITY_KIND_KERNEL ||
				    kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
			continue;
		result = by_subscriber ? cuptiActivityEnable_v2(subscriber,
								(CUpti_ActivityKind)kind, NULL)
				       : cuptiActivityEnable((CUpti_ActivityKind)kind);
		if (result && result != CUPTI_ERROR_NOT_COMPATIBLE)
			say("failed\tcuptiActivityEnable\t%d", (int)result);
	}
}

static CUptiResult subscribe(bool by_subscriber)
{
	CUpti_SubscriberParams params = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
					  .subscriberName = "collector",
					  .allowMultipleSubscribers = 1 };

	return by_subscriber ? cuptiSubscribe_v2(&subscriber, heard, NULL, &params)
			     : cuptiSubscribe(&subscriber, heard, NULL);
}

__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	bool by_subscriber = getenv("COLLECTOR_SUBSCRIBER") != NULL;
	const char *path = getenv("COLLECTOR_LOG");
	CUptiResult result;

	out = path ? fopen(path, "a") : NULL;
	if (!out)
		return 1;
	if (getenv("COLLECTOR_BUFFER"))
		buffer_bytes = (size_t)atol(getenv("COLLECTOR_BUFFER"));
	if (getenv("COLLECTOR_REFUSE"))
		refuse_every = (unsigned)atoi(getenv("COLLECTOR_REFUSE"));
	result = cuptiGetVersion(&version);
	say("version\t%u\t%d", version, (int)result);
	if (getenv("COLLECTOR_CLOCK"))
		(void)cuptiActivityRegisterTimestampCallback(raw_clock);
	if (by_subscriber || getenv("COLLECTOR_CALLS")) {
		result = subscribe(by_subscriber);
		if (result)
			say("failed\tcuptiSubscribe\t%d", (int)result);
		else if (getenv("COLLECTOR_CALLS"))
			(void)cuptiEnableAllDomains(1, subscriber);
	}
	if (by_subscriber)
		(void)cuptiActivityRegisterCallbacks_v2(subscriber, requested_v2, completed_v2);
	else
		(void)cuptiActivityRegisterCallbacks(requested, completed);
	enable_kinds(by_subscriber);
	(void)cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 42);
	(void)atexit(stop);
	return 1;
}
