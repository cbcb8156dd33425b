/* Devices, contexts, streams, modules, memory and waits: their records and callbacks, and the ids
 * by which CUPTI calls them. */
#include "profiler.h"

#include <stdio.h>
#include <string.h>

static void put_device(const struct sc_device *device)
{
	CUpti_ActivityDevice6 record = { .kind = CUPTI_ACTIVITY_KIND_DEVICE };

	record.globalMemoryBandwidth = 4800000000;
	record.globalMemorySize = sc_config.memory;
	record.numThreadsPerWarp = 32;
	record.coreClockRate = 1000000;
	record.numMemcpyEngines = 2;
	record.numMultiprocessors = 4;
	record.maxThreadsPerBlock = 1024;
	record.computeCapabilityMajor = 9;
	record.maxWarpsPerMultiprocessor = 64;
	record.maxRegistersPerBlock = 65536;
	record.maxRegistersPerMultiprocessor = 65536;
	record.maxSharedMemoryPerBlock = 49152;
	record.maxSharedMemoryPerMultiprocessor = 233472;
	record.id = (uint32_t)device->ordinal;
	record.uuid = device->uuid;
	record.name = device->name;
	record.isCudaVisible = 1;
	record.isMigEnabled = sc_config.mig != 0;
	if (sc_config.mig) {
		record.gpuInstanceId = sc_config.mig;
		record.computeInstanceId = 0;
		record.migUuid = device->uuid;
		record.migUuid.bytes[0] = (char)0xa0;
	}
	su_put(CUPTI_ACTIVITY_KIND_DEVICE, NULL, &record);
}

static void put_devices(void)
{
	for (unsigned i = 0; i < sc_config.devices; i++)
		put_device(&sc_devices[i]);
}

static void put_context(const struct sc_context *context)
{
	CUpti_ActivityContext4 record = { .kind = CUPTI_ACTIVITY_KIND_CONTEXT };

	record.contextId = context->id;
	record.deviceId = (uint32_t)context->device->ordinal;
	record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
	record.nullStreamId = (uint16_t)context->null_stream->id;
	record.numMultiprocessors = 4;
	record.processId = sc_pid;
	su_put(CUPTI_ACTIVITY_KIND_CONTEXT, context, &record);
}

static void put_stream(const struct sc_stream *stream)
{
	CUpti_ActivityStream record = { .kind = CUPTI_ACTIVITY_KIND_STREAM };

	record.contextId = stream->context->id;
	record.streamId = stream->id;
	record.priority = (uint32_t)stream->priority;
	record.flag = stream->flags & CU_STREAM_NON_BLOCKING
			      ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
			      : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
	record.correlationId = sc_correlation();
	su_put(CUPTI_ACTIVITY_KIND_STREAM, stream->context, &record);
}

/* what is there already */
void su_dump(unsigned kind)
{
	if (kind == CUPTI_ACTIVITY_KIND_DEVICE && !sc_ready())
		put_devices();
	for (struct sc_context *context = sc_contexts; context; context = context->next) {
		if (kind == CUPTI_ACTIVITY_KIND_CONTEXT)
			put_context(context);
		for (struct sc_stream *at = context->streams; at; at = at->next)
			if (kind == CUPTI_ACTIVITY_KIND_STREAM)
				put_stream(at);
	}
}

static void put_module(const struct sc_context *context, const struct sc_module *module)
{
	CUpti_ActivityModule record = { .kind = CUPTI_ACTIVITY_KIND_MODULE,
					.contextId = context ? context->id : 0,
					.id = module->id };

	su_put(CUPTI_ACTIVITY_KIND_MODULE, context, &record);
}

static void resource(int cbid, struct sc_context *context, struct sc_stream *stream, void *what)
{
	CUpti_ModuleResourceData of_module = { .moduleId = 0 };
	CUpti_ResourceData data = { .context = (CUcontext)context, .resourceDescriptor = what };

	if (stream)
		data.resourceHandle.stream = (CUstream)stream;
	if (cbid == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED &&
	    su_wants(CUPTI_ACTIVITY_KIND_DEVICE, NULL))
		put_devices();
	if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED &&
	    su_wants(CUPTI_ACTIVITY_KIND_CONTEXT, context))
		put_context(context);
	if (cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED &&
	    su_wants(CUPTI_ACTIVITY_KIND_STREAM, context))
		put_stream(stream);
	if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED ||
	    cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
		of_module.moduleId = ((struct sc_module *)what)->id;
		data.resourceDescriptor = &of_module;
		if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED &&
		    su_wants(CUPTI_ACTIVITY_KIND_MODULE, context))
			put_module(context, what);
	}
	if (su_hears(CUPTI_CB_DOMAIN_RESOURCE, (unsigned)cbid))
		su_callback(CUPTI_CB_DOMAIN_RESOURCE, (unsigned)cbid, &data);
}

static void synced(const struct sc_synced *told)
{
	CUpti_SynchronizeData data = { .context = (CUcontext)told->context,
				       .stream = (CUstream)told->stream };
	CUpti_ActivitySynchronization2 record = { .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION };
	unsigned cbid = told->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
				? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED
			: told->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE
				? CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED
				: 0;

	if (cbid && su_hears(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid))
		su_callback(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
	if (!su_wants(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, told->context))
		return;
	record.type = (CUpti_ActivitySynchronizationType)told->type;
	record.start = told->start;
	record.end = told->end;
	record.correlationId = sc_correlation();
	record.contextId = told->context->id;
	record.streamId = told->stream ? told->stream->id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
	record.cudaEventId = told->event ? told->event->id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
	record.cudaEventSyncId = told->event ? told->event->sync_id : 0;
	record.returnValue = (uint32_t)told->result;
	su_put(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, told->context, &record);
}

static void allocated(const struct sc_allocated *told)
{
	CUpti_ActivityMemory4 record = { .kind = CUPTI_ACTIVITY_KIND_MEMORY2 };

	if (!su_wants(CUPTI_ACTIVITY_KIND_MEMORY2, told->context))
		return;
	record.memoryOperationType = told->freed ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
						 : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
	record.memoryKind = (CUpti_ActivityMemoryKind)told->block.kind;
	record.correlationId = sc_correlation();
	record.address = (uint64_t)(uintptr_t)told->block.at;
	record.bytes = told->block.bytes;
	record.timestamp = told->time;
	record.processId = sc_pid;
	record.deviceId = told->block.device < 0 ? CUPTI_INVALID_DEVICE_ID
						 : (uint32_t)told->block.device;
	record.contextId = told->context ? told->context->id : 0;
	record.streamId = told->stream ? told->stream->id : 0;
	record.isAsync = told->stream != NULL;
	if (told->block.pooled) {
		record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
		record.memoryPoolConfig.address = 0x700000000000;
		record.memoryPoolConfig.utilizedSize = told->block.bytes;
	}
	su_put(CUPTI_ACTIVITY_KIND_MEMORY2, told->context, &record);
}

static void recorded(const struct sc_event *event, const struct sc_cmd *cmd)
{
	CUpti_ActivityCudaEvent3 record = { .kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT };

	if (!su_wants(CUPTI_ACTIVITY_KIND_CUDA_EVENT, cmd->context))
		return;
	record.correlationId = cmd->corr;
	record.contextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.eventId = event->id;
	record.deviceId = (uint32_t)cmd->context->device->ordinal;
	record.deviceTimestamp = cmd->start;
	record.cudaEventSyncId = event->sync_id;
	su_put(CUPTI_ACTIVITY_KIND_CUDA_EVENT, cmd->context, &record);
}

static void compiled(const struct sc_module *module, uint64_t start, uint64_t end)
{
	CUpti_ActivityJit2 record = { .kind = CUPTI_ACTIVITY_KIND_JIT };

	if (!su_wants(CUPTI_ACTIVITY_KIND_JIT, NULL))
		return;
	record.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
	record.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
	record.start = start;
	record.end = end;
	record.correlationId = sc_correlation();
	record.jitOperationCorrelationId = module->id;
	record.processId = sc_pid;
	record.threadId = sc_thread();
	su_put(CUPTI_ACTIVITY_KIND_JIT, NULL, &record);
}

/* what the client wants to be told of managed memory, by kind */
static _Atomic unsigned configured;

bool su_unified(void)
{
	return atomic_load(&configured);
}

static void put_counter(const struct sc_migrated *told, CUpti_ActivityUnifiedMemoryCounterKind kind,
			uint64_t value)
{
	CUpti_ActivityUnifiedMemoryCounter3 record = {
		.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER
	};

	if (!(atomic_load(&configured) >> kind & 1))
		return;
	record.counterKind = kind;
	record.value = value;
	record.start = told->start;
	record.end = told->end;
	record.address = (uint64_t)(uintptr_t)told->block.at;
	record.srcId = (uint32_t)told->from; /* -1 is CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID */
	record.dstId = (uint32_t)told->to;
	record.streamId = told->stream ? told->stream->id : 0;
	record.processId = sc_pid;
	su_put(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, NULL, &record);
}

static void migrated(const struct sc_migrated *told)
{
	if (!su_wants(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, NULL))
		return;
	if (told->fault)
		put_counter(told, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT, 1);
	put_counter(told,
		    told->to < 0 ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH
		    : told->from < 0
			    ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD
			    : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD,
		    told->bytes);
}

CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
	CUpti_ActivityUnifiedMemoryCounterConfig *config, uint32_t count)
{
	SU_BEGIN();
	if (!config || !count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (uint32_t i = 0; i < count; i++) {
		if (config[i].kind >= CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT)
			return CUPTI_ERROR_INVALID_PARAMETER;
		if (config[i].deviceId >= sc_config.devices)
			return CUPTI_ERROR_INVALID_DEVICE;
		if (config[i].enable)
			atomic_fetch_or(&configured, 1u << config[i].kind);
	}
	return CUPTI_SUCCESS;
}

static void pool(const struct sc_pool *of, int operation)
{
	CUpti_ActivityMemoryPool3 record = { .kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL };

	if (!su_wants(CUPTI_ACTIVITY_KIND_MEMORY_POOL, NULL))
		return;
	record.memoryPoolOperationType = (CUpti_ActivityMemoryPoolOperationType)operation;
	record.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
	record.correlationId = sc_correlation();
	record.processId = sc_pid;
	record.deviceId = (uint32_t)of->device;
	record.minBytesToKeep = of->kept;
	record.address = (uint64_t)(uintptr_t)of;
	record.size = record.utilizedSize = of->used;
	record.releaseThreshold = of->threshold;
	record.timestamp = sc_now();
	su_put(CUPTI_ACTIVITY_KIND_MEMORY_POOL, NULL, &record);
}

void su_tell_objects(struct sc_tool *tool)
{
	tool->resource = resource;
	tool->synced = synced;
	tool->allocated = allocated;
	tool->recorded = recorded;
	tool->compiled = compiled;
	tool->migrated = migrated;
	tool->pool = pool;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
	SU_BEGIN();
	*version = su_version();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
	SU_BEGIN();
	*timestamp = sc_now();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle subscriber, uint64_t *timestamp)
{
	(void)subscriber;
	return cuptiGetTimestamp(timestamp);
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
	static __thread char text[64];

	SU_BEGIN();
	(void)snprintf(text, sizeof(text), "%s%u", result ? "CUPTI_ERROR_" : "CUPTI_SUCCESS ",
		       (unsigned)result);
	*str = text;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
	return cuptiGetResultString(result, str);
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
	SU_BEGIN();
	if (!context)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*contextId = ((struct sc_context *)context)->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
	const struct sc_context *of = context ? (struct sc_context *)context : sc_current();

	SU_BEGIN();
	if (!of)
		return CUPTI_ERROR_INVALID_DEVICE;
	*deviceId = (uint32_t)of->device->ordinal;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
			       uint32_t *streamId)
{
	const struct sc_stream *of = (uintptr_t)stream > 2 ? (struct sc_stream *)stream
				     : context ? ((struct sc_context *)context)->null_stream
					       : sc_stream_of(stream);

	(void)perThreadStream;
	SU_BEGIN();
	if (!of)
		return CUPTI_ERROR_INVALID_STREAM;
	*streamId = of->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
	return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

CUptiResult cuptiGetCudaEventId(CUevent event, uint32_t *pEventId)
{
	SU_BEGIN();
	if (!event || !pEventId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*pEventId = ((struct sc_event *)event)->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceSupported(CUdevice dev, int *support)
{
	(void)dev;
	SU_BEGIN();
	*support = 1;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetStructSize(CUpti_ActivityKind activityKind, uint32_t version,
				       size_t *activityStructSize)
{
	SU_BEGIN();
	if (version && version < 130000)
		return CUPTI_ERROR_NOT_SUPPORTED;
	*activityStructSize = su_record_size(activityKind, version ? version : su_version());
	return *activityStructSize ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiFinalize(void)
{
	SU_BEGIN();
	su_flush_all(true);
	for (unsigned i = 0; i < SU_SESSIONS; i++)
		memset(su_sessions[i].kind, 0, sizeof(su_sessions[i].kind));
	for (unsigned i = 0; i < SU_SUBSCRIBERS; i++)
		su_subscribers[i].used = false;
	su_refresh();
	return CUPTI_SUCCESS;
}
