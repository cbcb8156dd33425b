/*
 * What a record of CUPTI means: work on a device, in the host's time, with the call that it came
 * from; or something beside it, on a row or counter of its own.
 */
#include <string.h>

#include "cuda_activity.h"
#include "names.h"
#include "work.h"
#include "activity_layout.h"
#include "device_record.h"

struct piece {
	struct xs_device_record record;
	struct xs_work work;
	uint64_t start, end, queued, submitted; /* ns as CUPTI tells them */
	uint64_t graph, node;
	uint32_t correlation, context, stream;
	bool kernel;
	struct xs_fact facts[XS_FACTS_MAX];
	uint32_t fact_count;
};

/* Host memory that is not pinned is the system's, as unitrace has it. */
static uint8_t memory_of(uint64_t kind)
{
	static const uint8_t memory[] = { XS_MEMORY_UNKNOWN, XS_MEMORY_SYSTEM, XS_MEMORY_HOST,
					  XS_MEMORY_DEVICE,  XS_MEMORY_DEVICE, XS_MEMORY_SHARED,
					  XS_MEMORY_DEVICE,  XS_MEMORY_SHARED };

	return kind < sizeof(memory) ? memory[kind] : XS_MEMORY_UNKNOWN;
}

static void add_fact(struct piece *piece, const char *key, uint64_t value)
{
	if (piece->fact_count < XS_FACTS_MAX)
		piece->facts[piece->fact_count++] = (struct xs_fact){ key, value };
}

static void add_if(struct piece *piece, const char *key, uint64_t value)
{
	if (value)
		add_fact(piece, key, value);
}

static void read_kernel(struct xs_cuda *cuda, struct piece *piece, const unsigned char *data,
			uint32_t size)
{
	struct xs_device_record *record = &piece->record;

	piece->kernel = true;
	piece->start = XS_CUDA_MEMBER(KERNEL, start);
	piece->end = XS_CUDA_MEMBER(KERNEL, end);
	piece->queued = XS_CUDA_MEMBER(KERNEL, queued);
	piece->submitted = XS_CUDA_MEMBER(KERNEL, submitted);
	piece->correlation = (uint32_t)XS_CUDA_MEMBER(KERNEL, correlationId);
	piece->context = (uint32_t)XS_CUDA_MEMBER(KERNEL, contextId);
	piece->stream = (uint32_t)XS_CUDA_MEMBER(KERNEL, streamId);
	piece->graph = XS_CUDA_MEMBER(KERNEL, graphId);
	piece->node = XS_CUDA_MEMBER(KERNEL, graphNodeId);
	record->device = (uint8_t)XS_CUDA_MEMBER(KERNEL, deviceId);
	record->work = XS_WORK_KERNEL;
	record->event.name = xs_cuda_name_of(cuda, XS_CUDA_MEMBER(KERNEL, name));
	record->local[0] = XS_CUDA_MEMBER(KERNEL, blockX);
	record->local[1] = XS_CUDA_MEMBER(KERNEL, blockY);
	record->local[2] = XS_CUDA_MEMBER(KERNEL, blockZ);
	record->global[0] = XS_CUDA_MEMBER(KERNEL, gridX) * record->local[0];
	record->global[1] = XS_CUDA_MEMBER(KERNEL, gridY) * record->local[1];
	record->global[2] = XS_CUDA_MEMBER(KERNEL, gridZ) * record->local[2];
	piece->work.shape = record->global;
	add_fact(piece, "registers", XS_CUDA_MEMBER(KERNEL, registersPerThread));
	add_fact(piece, "static_shared", XS_CUDA_MEMBER(KERNEL, staticSharedMemory));
	add_fact(piece, "dynamic_shared", XS_CUDA_MEMBER(KERNEL, dynamicSharedMemory));
	add_if(piece, "local_per_thread", XS_CUDA_MEMBER(KERNEL, localMemoryPerThread));
	add_if(piece, "local_total", XS_CUDA_MEMBER(KERNEL, localMemoryTotal));
	if (XS_CUDA_MEMBER(KERNEL, channelType)) {
		add_fact(piece, "channel", XS_CUDA_MEMBER(KERNEL, channelID));
		add_fact(piece, "channel_type", XS_CUDA_MEMBER(KERNEL, channelType));
	}
	if (XS_CUDA_MEMBER(KERNEL, clusterX)) {
		add_fact(piece, "cluster", XS_CUDA_MEMBER(KERNEL, clusterX));
		add_fact(piece, NULL, XS_CUDA_MEMBER(KERNEL, clusterY));
		add_fact(piece, NULL, XS_CUDA_MEMBER(KERNEL, clusterZ));
	}
}

static void read_copy(struct piece *piece, const unsigned char *data, uint32_t size, bool peer)
{
	struct xs_device_record *record = &piece->record;
	uint64_t kind = XS_CUDA_MEMBER(MEMCPY, copyKind);

	piece->start = XS_CUDA_MEMBER(MEMCPY, start);
	piece->end = XS_CUDA_MEMBER(MEMCPY, end);
	piece->context = (uint32_t)XS_CUDA_MEMBER(MEMCPY, contextId);
	piece->stream = (uint32_t)XS_CUDA_MEMBER(MEMCPY, streamId);
	piece->correlation = (uint32_t)(peer ? XS_CUDA_MEMBER(MEMCPY2, correlationId)
					     : XS_CUDA_MEMBER(MEMCPY, correlationId));
	piece->graph = peer ? XS_CUDA_MEMBER(MEMCPY2, graphId) : XS_CUDA_MEMBER(MEMCPY, graphId);
	piece->node = peer ? XS_CUDA_MEMBER(MEMCPY2, graphNodeId)
			   : XS_CUDA_MEMBER(MEMCPY, graphNodeId);
	record->device = (uint8_t)XS_CUDA_MEMBER(MEMCPY, deviceId);
	record->work = XS_WORK_COPY;
	record->bytes = XS_CUDA_MEMBER(MEMCPY, bytes);
	record->memory = (uint8_t)(memory_of(XS_CUDA_MEMBER(MEMCPY, srcKind)) << 4 |
				   memory_of(XS_CUDA_MEMBER(MEMCPY, dstKind)));
	record->event.name = XS_WORK_OF_COPY + (kind <= 10 ? (uint32_t)kind : 0);
	if (peer) {
		add_fact(piece, "from_device", XS_CUDA_MEMBER(MEMCPY2, srcDeviceId));
		add_fact(piece, "to_device", XS_CUDA_MEMBER(MEMCPY2, dstDeviceId));
	} else if (XS_CUDA_MEMBER(MEMCPY, channelType)) {
		add_fact(piece, "channel", XS_CUDA_MEMBER(MEMCPY, channelID));
	}
	if (piece->end > piece->start) /* bytes per ns are GB/s */
		add_fact(piece, "MB/s",
			 (uint64_t)((unsigned __int128)record->bytes * 1000u /
				    (piece->end - piece->start)));
}

static void read_set(struct piece *piece, const unsigned char *data, uint32_t size)
{
	struct xs_device_record *record = &piece->record;

	piece->start = XS_CUDA_MEMBER(MEMSET, start);
	piece->end = XS_CUDA_MEMBER(MEMSET, end);
	piece->context = (uint32_t)XS_CUDA_MEMBER(MEMSET, contextId);
	piece->stream = (uint32_t)XS_CUDA_MEMBER(MEMSET, streamId);
	piece->correlation = (uint32_t)XS_CUDA_MEMBER(MEMSET, correlationId);
	piece->graph = XS_CUDA_MEMBER(MEMSET, graphId);
	piece->node = XS_CUDA_MEMBER(MEMSET, graphNodeId);
	record->device = (uint8_t)XS_CUDA_MEMBER(MEMSET, deviceId);
	record->work = XS_WORK_FILL;
	record->bytes = XS_CUDA_MEMBER(MEMSET, bytes);
	record->memory = memory_of(XS_CUDA_MEMBER(MEMSET, memoryKind));
	record->event.name = XS_WORK_OF_MEMSET;
	add_fact(piece, "value", XS_CUDA_MEMBER(MEMSET, value));
}

static void read_graph(struct piece *piece, const unsigned char *data, uint32_t size)
{
	piece->start = XS_CUDA_MEMBER(GRAPH_TRACE, start);
	piece->end = XS_CUDA_MEMBER(GRAPH_TRACE, end);
	piece->context = (uint32_t)XS_CUDA_MEMBER(GRAPH_TRACE, contextId);
	piece->stream = (uint32_t)XS_CUDA_MEMBER(GRAPH_TRACE, streamId);
	piece->correlation = (uint32_t)XS_CUDA_MEMBER(GRAPH_TRACE, correlationId);
	piece->graph = XS_CUDA_MEMBER(GRAPH_TRACE, graphId);
	piece->record.device = (uint8_t)XS_CUDA_MEMBER(GRAPH_TRACE, deviceId);
	piece->record.work = XS_WORK_OTHER;
	piece->record.event.name = XS_WORK_OF_GRAPH;
}

static void read_decompression(struct piece *piece, const unsigned char *data, uint32_t size)
{
	piece->start = XS_CUDA_MEMBER(DECOMPRESS, start);
	piece->end = XS_CUDA_MEMBER(DECOMPRESS, end);
	piece->context = (uint32_t)XS_CUDA_MEMBER(DECOMPRESS, contextId);
	piece->stream = (uint32_t)XS_CUDA_MEMBER(DECOMPRESS, streamId);
	piece->correlation = (uint32_t)XS_CUDA_MEMBER(DECOMPRESS, correlationId);
	piece->record.device = (uint8_t)XS_CUDA_MEMBER(DECOMPRESS, deviceId);
	piece->record.work = XS_WORK_OTHER;
	piece->record.bytes = XS_CUDA_MEMBER(DECOMPRESS, sourceBytes);
	piece->record.event.name = XS_WORK_OF_DECOMPRESSION;
}

/* Has the process, or its run, ever not recorded? Then a call may be missing for that reason. */
static bool was_paused(const struct xs_process *process)
{
	return atomic_load_explicit(&process->run->control->paused_ever, memory_order_acquire) &
		       (XS_PAUSE_ALL | XS_PART_CUDA) ||
	       atomic_load_explicit(&process->file->pauses.count, memory_order_acquire);
}

static uint64_t in_trace(const struct xs_cuda *cuda, uint64_t ns)
{
	return ns + (uint64_t)cuda->offset;
}

/* False: the times are none of this run's. */
static bool place(struct xs_process *process, struct piece *piece, const struct xs_cuda_call *call)
{
	const struct xs_cuda *cuda = process->cuda;
	struct xs_work *work = &piece->work;

	work->start = in_trace(cuda, piece->start);
	work->end = in_trace(cuda, piece->end);
	if (work->start > process->horizon || work->end > process->horizon ||
	    work->end < work->start || work->start < xs_process_ns(process, process->run->began))
		return false;
	work->host_start = call ? xs_process_ns(process, call->tick) : work->start;
	work->host_end = call ? xs_process_ns(process, call->tick + xs_ticks_of(call->host_ticks))
			      : work->start;
	/* two clocks agree to some hundred ns at best */
	if (work->start < work->host_start) {
		work->end += work->host_start - work->start;
		work->start = work->host_start;
	}
	work->queued = piece->queued ? in_trace(cuda, piece->queued) : work->host_start;
	if (work->queued < work->host_start || work->queued > work->start)
		work->queued = work->host_start;
	work->submit = piece->submitted ? in_trace(cuda, piece->submitted) : work->host_end;
	if (work->submit < work->queued)
		work->submit = work->queued;
	if (work->submit > work->start)
		work->submit = work->start;
	return true;
}

/* Of a kernel that was counted nobody tells when it ran. */
static void place_in_call(struct xs_process *process, struct piece *piece,
			  const struct xs_cuda_call *call)
{
	struct xs_work *work = &piece->work;

	work->host_start = work->queued = work->start = xs_process_ns(process, call->tick);
	work->host_end = work->submit = work->end =
		xs_process_ns(process, call->tick + xs_ticks_of(call->host_ticks));
}

static void complete(struct xs_process *process, struct piece *piece,
		     const struct xs_cuda_call *call)
{
	struct xs_cuda *cuda = process->cuda;
	struct xs_device_record *record = &piece->record;
	uint32_t device = record->device % XS_ACTIVITY_DEVICES;

	/* what the driver says of the function counts; graphs have many */
	if (piece->kernel && call && call->launch && call->name)
		record->event.name = call->name;
	record->event.kind = XS_DEVICE;
	record->event.source = cuda->source;
	record->event.flags = XS_DEVICE_FLAG_IN_ORDER;
	if (!piece->kernel || !record->event.name)
		record->event.flags |= XS_DEVICE_FLAG_FUNCTION;
	record->event.tick = call ? call->tick : 0;
	record->host_ticks = call ? call->host_ticks : 0;
	record->tid = call ? call->tid : 0;
	record->id = xs_cuda_number(process);
	record->queue = piece->stream;
	record->queue_handle = (uint64_t)piece->context << 32 | piece->stream;
	record->device_name =
		atomic_load_explicit(&cuda->file->device[device].name, memory_order_acquire);
	if (!record->device_name)
		record->device_name = xs_cuda_text(cuda, XS_TEXT_DEVICE);
	record->device_type = XS_DEVICE_GPU;
	add_fact(piece, "correlation", piece->correlation);
	add_if(piece, "graph", piece->graph);
	add_if(piece, "graph_node", piece->node);
	if (call && call->external) {
		add_fact(piece, "external_kind", call->external - 1u);
		add_fact(piece, "external_id", call->external_id);
	}
	piece->work.record = record;
	piece->work.queue = record->queue_handle;
	piece->work.named = xs_cuda_named(process, record);
	if (call)
		xs_cuda_follows(process, record->queue_handle, call->tick);
	piece->work.facts = piece->facts;
	piece->work.fact_count = piece->fact_count;
	piece->work.linked = call && !call->alone &&
			     !xs_cuda_is_past(process, piece->work.host_start);
}

static bool device_wanted(const struct xs_process *process, uint32_t device)
{
	uint64_t wanted = process->run->options->cuda_devices;

	return device >= 64 || wanted >> device & 1;
}

enum outcome {
	OUTCOME_LATER,
	OUTCOME_LEFT_OUT,
	OUTCOME_NO_TIME, /* nor any later; what was counted of it is counted as not found */
	OUTCOME_UNTIMED,
	OUTCOME_SHOWN
};

/* Work on a device. */
static enum outcome show_work(struct xs_process *process, struct piece *piece, bool last)
{
	struct xs_cuda *cuda = process->cuda;
	const struct xs_cuda_call *call = xs_cuda_call_of(cuda, piece->correlation);
	bool timed = piece->start && piece->end;

	if (!call && !last)
		return OUTCOME_LATER;
	if (!call && was_paused(process))
		return OUTCOME_LEFT_OUT; /* it was made while nothing was recorded */
	/* no time could be had, or it has not ended */
	if (!timed && cuda->for_later)
		return OUTCOME_LEFT_OUT;
	xs_cuda_ended(cuda, piece->correlation, piece->kernel);
	if (call && call->several)
		call = NULL;
	if (!timed && !(call && piece->kernel && !piece->graph && xs_cuda_is_counted(process))) {
		cuda->untimed++;
		return OUTCOME_NO_TIME;
	}
	if (!device_wanted(process, piece->record.device))
		return OUTCOME_LEFT_OUT;
	if (!timed) {
		place_in_call(process, piece, call);
	} else if (!place(process, piece, call)) {
		process->impossible++;
		return OUTCOME_LEFT_OUT;
	}
	if (xs_cuda_is_past(process, piece->work.end))
		return OUTCOME_LEFT_OUT;
	complete(process, piece, call);
	if (!xs_work_wanted(process->run, &piece->record.event))
		return OUTCOME_LEFT_OUT;
	if (!timed)
		return OUTCOME_UNTIMED;
	xs_work_show(process, &piece->work);
	return OUTCOME_SHOWN;
}

static bool show(struct xs_process *process, struct piece *piece, bool last)
{
	enum outcome outcome = show_work(process, piece, last);

	if (outcome != OUTCOME_LATER && outcome != OUTCOME_NO_TIME && piece->kernel &&
	    !piece->graph)
		xs_cuda_ran(process, piece->correlation,
			    outcome == OUTCOME_LEFT_OUT ? NULL : &piece->work,
			    outcome == OUTCOME_SHOWN);
	return outcome != OUTCOME_LATER;
}

bool xs_cuda_record(struct xs_process *process, const unsigned char *data, uint32_t size, bool last)
{
	struct piece piece;
	uint32_t kind;

	memcpy(&kind, data, sizeof(kind));
	memset(&piece.record, 0, sizeof(piece.record));
	memset(&piece.work, 0, sizeof(piece.work));
	piece.queued = piece.submitted = piece.graph = piece.node = 0;
	piece.kernel = false;
	piece.fact_count = 0;
	switch (kind) {
	case XS_KIND_KERNEL:
	case XS_KIND_CONCURRENT_KERNEL:
		read_kernel(process->cuda, &piece, data, size);
		return show(process, &piece, last);
	case XS_KIND_MEMCPY:
	case XS_KIND_MEMCPY2:
		read_copy(&piece, data, size, kind == XS_KIND_MEMCPY2);
		return show(process, &piece, last);
	case XS_KIND_MEMSET:
		read_set(&piece, data, size);
		return show(process, &piece, last);
	case XS_KIND_GRAPH_TRACE:
		read_graph(&piece, data, size);
		return show(process, &piece, last);
	case XS_KIND_DECOMPRESS:
		read_decompression(&piece, data, size);
		return show(process, &piece, last);
	case XS_KIND_EXTERNAL:
		xs_cuda_external(process, (uint32_t)XS_CUDA_MEMBER(EXTERNAL, correlationId),
				 (uint8_t)XS_CUDA_MEMBER(EXTERNAL, externalKind),
				 XS_CUDA_MEMBER(EXTERNAL, externalId));
		return true;
	default:
		return xs_cuda_beside(process, kind, data, size, last);
	}
}
