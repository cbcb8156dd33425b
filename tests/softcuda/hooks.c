/* What the driver tells, and the records and callbacks that come of it. */
#include "counters.h"

#include <string.h>

static bool wants_driver, wants_runtime;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(struct sc_call *call)
{
	bool heard = su_hears(call->domain, call->cbid);
	bool wanted = call->domain == SC_DRIVER ? wants_driver : wants_runtime;

	call->told = heard || wanted;
	memset(call->data, 0, sizeof(call->data));
	if (heard)
		su_call_back(call, CUPTI_API_ENTER);
	su_ranges_begin(call);
	/* before what the call puts on a device */
	if (wanted && !call->outer && su_wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, NULL))
		su_put_external(call->corr);
	if (wanted)
		call->start = sc_now();
}

static void put_call(const struct sc_call *call, unsigned kind)
{
	CUpti_ActivityAPI record = { .kind = (CUpti_ActivityKind)kind,
				     .cbid = call->cbid,
				     .start = call->start,
				     .end = sc_now(),
				     .processId = sc_pid,
				     .threadId = sc_thread(),
				     .correlationId = call->corr,
				     .returnValue = (uint32_t)*call->ret };

	if (su_sessions[0].off[call->domain - SC_DRIVER][call->cbid])
		return;
	su_put(kind, NULL, &record);
}

static void leave(struct sc_call *call)
{
	su_ranges_end(call);
	if (call->domain == SC_DRIVER ? wants_driver : wants_runtime)
		put_call(call, call->domain == SC_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
							 : CUPTI_ACTIVITY_KIND_RUNTIME);
	if (su_hears(call->domain, call->cbid))
		su_call_back(call, CUPTI_API_EXIT);
}

static void put_kernel(const struct sc_cmd *cmd, unsigned kind)
{
	CUpti_ActivityKernel13 record = { .kind = (CUpti_ActivityKind)kind };

	if (!su_ranged(cmd->context)) {
		record.start = cmd->start;
		record.end = record.completed = cmd->end;
	}
	record.deviceId = (uint32_t)cmd->context->device->ordinal;
	record.contextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.gridX = (int)cmd->grid[0];
	record.gridY = (int)cmd->grid[1];
	record.gridZ = (int)cmd->grid[2];
	record.blockX = (int)cmd->block[0];
	record.blockY = (int)cmd->block[1];
	record.blockZ = (int)cmd->block[2];
	record.clusterX = cmd->cluster[0];
	record.clusterY = cmd->cluster[1];
	record.clusterZ = cmd->cluster[2];
	record.registersPerThread = (uint16_t)cmd->function->info.registers;
	record.staticSharedMemory = (int)cmd->function->info.static_shared;
	record.dynamicSharedMemory = (int)cmd->shared;
	record.sharedMemoryExecuted = cmd->shared + cmd->function->info.static_shared;
	record.localMemoryPerThread = cmd->function->info.local_bytes;
	record.localMemoryTotal_v2 = record.localMemoryTotal =
		cmd->function->info.local_bytes * cmd->block[0] * cmd->grid[0];
	record.correlationId = cmd->corr;
	record.name = cmd->function->name;
	if (su_latency) {
		record.queued = cmd->queued;
		record.submitted = cmd->submitted;
	}
	record.graphNodeId = cmd->node_id;
	record.graphId = cmd->graph_id;
	record.sourceGraphNodeId = cmd->source_node_id;
	record.sourceGraphId = cmd->source_graph_id;
	record.channelID = cmd->stream->id % 8;
	record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
	record.priority = cmd->stream->priority;
	su_put(kind, cmd->context, &record);
}

static void put_copy(const struct sc_cmd *cmd)
{
	CUpti_ActivityMemcpy7 record = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY };

	record.copyKind = cmd->copy_kind;
	record.srcKind = cmd->from_kind;
	record.dstKind = cmd->to_kind;
	record.flags = cmd->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	record.bytes = cmd->bytes;
	record.start = cmd->start;
	record.end = cmd->end;
	record.deviceId = (uint32_t)cmd->context->device->ordinal;
	record.contextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.correlationId = cmd->corr;
	record.graphNodeId = cmd->node_id;
	record.graphId = cmd->graph_id;
	record.sourceGraphNodeId = cmd->source_node_id;
	record.sourceGraphId = cmd->source_graph_id;
	record.channelID = 8 + cmd->stream->id % 2;
	record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
	record.copyCount = 1;
	su_put(CUPTI_ACTIVITY_KIND_MEMCPY, cmd->context, &record);
}

static void put_peer(const struct sc_cmd *cmd)
{
	CUpti_ActivityMemcpyPtoP4 record = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY2 };

	record.copyKind = cmd->copy_kind;
	record.srcKind = cmd->from_kind;
	record.dstKind = cmd->to_kind;
	record.flags = cmd->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	record.bytes = cmd->bytes;
	record.start = cmd->start;
	record.end = cmd->end;
	record.deviceId = (uint32_t)cmd->context->device->ordinal;
	record.contextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.srcDeviceId = (uint32_t)cmd->from_device;
	record.dstDeviceId = (uint32_t)cmd->to_device;
	record.srcContextId = record.dstContextId = cmd->context->id;
	record.correlationId = cmd->corr;
	record.graphNodeId = cmd->node_id;
	record.graphId = cmd->graph_id;
	record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
	su_put(CUPTI_ACTIVITY_KIND_MEMCPY2, cmd->context, &record);
}

static void put_set(const struct sc_cmd *cmd)
{
	CUpti_ActivityMemset5 record = { .kind = CUPTI_ACTIVITY_KIND_MEMSET };

	record.value = cmd->value;
	record.bytes = cmd->bytes;
	record.start = cmd->start;
	record.end = cmd->end;
	record.deviceId = (uint32_t)cmd->context->device->ordinal;
	record.contextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.correlationId = cmd->corr;
	record.flags = cmd->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
	record.memoryKind = cmd->to_kind;
	record.graphNodeId = cmd->node_id;
	record.graphId = cmd->graph_id;
	record.sourceGraphNodeId = cmd->source_node_id;
	record.sourceGraphId = cmd->source_graph_id;
	record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
	su_put(CUPTI_ACTIVITY_KIND_MEMSET, cmd->context, &record);
}

static void executed(const struct sc_cmd *cmd)
{
	su_ranges_executed(cmd);
	su_sampling_executed(cmd);
	if (cmd->node_id && su_wants(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, cmd->context))
		return; /* the graph is told as one */
	if (cmd->kind == SC_KERNEL && cmd->graph_id && su_ranged(cmd->context))
		return;
	switch (cmd->kind) {
	case SC_KERNEL:
		if (su_wants(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, cmd->context))
			put_kernel(cmd, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
		else if (su_wants(CUPTI_ACTIVITY_KIND_KERNEL, cmd->context))
			put_kernel(cmd, CUPTI_ACTIVITY_KIND_KERNEL);
		break;
	case SC_COPY:
		if (su_wants(CUPTI_ACTIVITY_KIND_MEMCPY, cmd->context))
			put_copy(cmd);
		break;
	case SC_PEER:
		if (su_wants(CUPTI_ACTIVITY_KIND_MEMCPY2, cmd->context))
			put_peer(cmd);
		break;
	case SC_SET:
		if (su_wants(CUPTI_ACTIVITY_KIND_MEMSET, cmd->context))
			put_set(cmd);
		break;
	case SC_GRAPH:
		if (su_wants(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, cmd->context))
			su_put_graph(cmd);
		break;
	case SC_HOST:
		su_put_host(cmd);
		break;
	default:
		break;
	}
}

void su_refresh(void)
{
	bool device = false;

	(void)pthread_mutex_lock(&lock);
	wants_driver = su_wants(CUPTI_ACTIVITY_KIND_DRIVER, NULL);
	wants_runtime = su_wants(CUPTI_ACTIVITY_KIND_RUNTIME, NULL);
	for (unsigned i = 0; i < SU_SESSIONS; i++) {
		for (unsigned kind = 1; kind < SU_KINDS; kind++)
			device |= su_sessions[i].kind[kind];
		for (unsigned c = 0; c < 16; c++)
			device |= su_sessions[i].contexts[c].on != 0;
	}
	sc_flag(SC_CALLS, wants_driver || wants_runtime || su_hears_calls() || su_ranging());
	sc_flag(SC_DEVICE, device || su_ranging() || su_sampling());
	(void)pthread_mutex_unlock(&lock);
}

static void start(void)
{
	su_watch_fork();
	sc_tool = (struct sc_tool){ .enter = enter, .leave = leave, .executed = executed };
	su_tell_objects(&sc_tool);
	su_tell_graphs(&sc_tool);
}

void su_hooks_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, start);
}
