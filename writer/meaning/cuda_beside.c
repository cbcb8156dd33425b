/*
 * What CUPTI tells beside work on devices: its own overhead, who waited for what, compilations at
 * run time, memory that is allocated, and managed memory that moves. Each has a row, or a counter.
 */
#include <string.h>

#include "cuda_activity.h"
#include "pauses.h"
#include "activity_layout.h"
#include "task_record.h"

static uint64_t in_trace(const struct xs_cuda *cuda, uint64_t ns)
{
	return ns + (uint64_t)cuda->offset;
}

/* False: the time is none of this run's, or nothing was recorded then. */
static bool is_possible(const struct xs_process *process, uint64_t ns)
{
	return ns <= process->horizon && !xs_process_was_paused(process, ns) &&
	       ns >= xs_process_ns(process, process->run->began) && !xs_cuda_is_past(process, ns);
}

/* What is told of it; keys are constants. */
struct arguments {
	struct xs_fact fact[8];
	uint32_t count;
};

static void put_argument(struct arguments *arguments, const char *key, uint64_t value)
{
	if (arguments->count < sizeof(arguments->fact) / sizeof(arguments->fact[0]))
		arguments->fact[arguments->count++] = (struct xs_fact){ key, value };
}

static void show(struct xs_process *process, enum xs_activity_text row, enum xs_activity_text name,
		 uint64_t start, uint64_t end, struct arguments *arguments)
{
	const struct xs_cuda *cuda = process->cuda;
	const struct xs_aside aside = { .row = xs_cuda_text(cuda, row),
					.name = xs_cuda_text(cuda, name),
					.start = in_trace(cuda, start),
					.end = in_trace(cuda, end),
					.facts = arguments->fact,
					.fact_count = arguments->count };

	if (start && aside.end >= aside.start && is_possible(process, aside.start) &&
	    is_possible(process, aside.end))
		XS_TELL_SINKS(process, aside, process, &aside);
}

static void overhead(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	struct arguments arguments = { .count = 0 };
	uint64_t kind = XS_CUDA_MEMBER(OVERHEAD, overheadKind);
	enum xs_activity_text name = XS_TEXT_OVERHEAD;

	if (kind == 1)
		name = XS_TEXT_OVERHEAD_COMPILER;
	else if (kind >> 16 >= 1 && kind >> 16 <= 6)
		name = XS_TEXT_OVERHEAD_COMPILER + (enum xs_activity_text)(kind >> 16);
	show(process, XS_TEXT_OVERHEAD_ROW, name, XS_CUDA_MEMBER(OVERHEAD, start),
	     XS_CUDA_MEMBER(OVERHEAD, end), &arguments);
}

static void synchronization(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	struct arguments arguments = { .count = 0 };
	uint64_t type = XS_CUDA_MEMBER(SYNCHRONIZATION, type);
	uint32_t stream = (uint32_t)XS_CUDA_MEMBER(SYNCHRONIZATION, streamId);
	uint32_t event = (uint32_t)XS_CUDA_MEMBER(SYNCHRONIZATION, cudaEventId);

	put_argument(&arguments, "context", XS_CUDA_MEMBER(SYNCHRONIZATION, contextId));
	if (stream != UINT32_MAX) /* CUPTI's number for none */
		put_argument(&arguments, "stream", stream);
	if (event != UINT32_MAX && type <= 2)
		put_argument(&arguments, "event", event);
	put_argument(&arguments, "correlation", XS_CUDA_MEMBER(SYNCHRONIZATION, correlationId));
	show(process, XS_TEXT_SYNC_ROW,
	     XS_TEXT_SYNC + (enum xs_activity_text)(type <= 4 ? type : 0),
	     XS_CUDA_MEMBER(SYNCHRONIZATION, start), XS_CUDA_MEMBER(SYNCHRONIZATION, end),
	     &arguments);
}

static void compilation(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	struct arguments arguments = { .count = 0 };
	uint64_t entry = XS_CUDA_MEMBER(JIT, jitEntryType);

	put_argument(&arguments, "operation", XS_CUDA_MEMBER(JIT, jitOperationType));
	put_argument(&arguments, "correlation", XS_CUDA_MEMBER(JIT, correlationId));
	show(process, XS_TEXT_JIT_ROW,
	     XS_TEXT_JIT + (enum xs_activity_text)(entry <= 2 ? entry : 0),
	     XS_CUDA_MEMBER(JIT, start), XS_CUDA_MEMBER(JIT, end), &arguments);
}

/* ---- counters ---- */

static void count(struct xs_process *process, enum xs_activity_text text, int64_t value,
		  uint64_t timestamp)
{
	struct xs_counter_record record = { .event = { .name = xs_cuda_text(process->cuda, text),
						       .flags = XS_VALUE_S64 } };
	uint64_t ns = in_trace(process->cuda, timestamp);

	record.value.s = value;
	if (timestamp && is_possible(process, ns))
		XS_TELL_SINKS(process, counter, process, &record, ns);
}

static void allocation(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	uint64_t kind = XS_CUDA_MEMBER(MEMORY2, memoryKind),
		 operation = XS_CUDA_MEMBER(MEMORY2, memoryOperationType);
	enum xs_activity_text text = kind == 2		      ? XS_TEXT_USED_PINNED
				     : kind == 5 || kind == 7 ? XS_TEXT_USED_MANAGED
							      : XS_TEXT_USED_DEVICE;
	uint64_t bytes = XS_CUDA_MEMBER(MEMORY2, bytes);
	uint64_t used = (uint64_t)process->cuda->used[text];

	if (operation != 1 && operation != 2)
		return;
	used += operation == 1 ? bytes : 0 - bytes;
	/* what was allocated before it was recorded may be released */
	if ((int64_t)used < 0)
		used = 0;
	process->cuda->used[text] = (int64_t)used;
	count(process, text, (int64_t)used, XS_CUDA_MEMBER(MEMORY2, timestamp));
}

static void pool(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	uint64_t used = XS_CUDA_MEMBER(MEMORY_POOL, utilizedSize);

	count(process, XS_TEXT_USED_POOL,
	      (int64_t)(used ? used : XS_CUDA_MEMBER(MEMORY_POOL, size)),
	      XS_CUDA_MEMBER(MEMORY_POOL, timestamp));
}

static void managed(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	static const enum xs_activity_text names[] = {
		[1] = XS_TEXT_MIGRATION_HTOD, [2] = XS_TEXT_MIGRATION_DTOH,
		[3] = XS_TEXT_CPU_FAULTS,     [4] = XS_TEXT_GPU_FAULTS,
		[5] = XS_TEXT_THRASHING,      [8] = XS_TEXT_MIGRATION_DTOD,
	};
	struct arguments arguments = { .count = 0 };
	uint64_t kind = XS_CUDA_MEMBER(UNIFIED_MEMORY, counterKind),
		 start = XS_CUDA_MEMBER(UNIFIED_MEMORY, start),
		 end = XS_CUDA_MEMBER(UNIFIED_MEMORY, end);

	if (kind >= sizeof(names) / sizeof(names[0]) || !names[kind])
		return;
	/* the value of a fault on the host is where its instruction lies (seen of CUPTI 13.0) */
	put_argument(&arguments, kind <= 2 || kind == 8 ? "bytes" : "count",
		     kind == 3 ? 1 : XS_CUDA_MEMBER(UNIFIED_MEMORY, value));
	put_argument(&arguments, "from", XS_CUDA_MEMBER(UNIFIED_MEMORY, srcId));
	put_argument(&arguments, "to", XS_CUDA_MEMBER(UNIFIED_MEMORY, dstId));
	show(process, XS_TEXT_MIGRATION_ROW, names[kind], start, end ? end : start, &arguments);
}

bool xs_cuda_beside(struct xs_process *process, uint32_t kind, const unsigned char *data,
		    uint32_t size, bool last)
{
	switch (kind) {
	case XS_KIND_OVERHEAD:
		overhead(process, data, size);
		break;
	case XS_KIND_SYNCHRONIZATION:
		if (!xs_cuda_waited(process, data, size) && !last)
			return false;
		synchronization(process, data, size);
		break;
	case XS_KIND_CUDA_EVENT:
		return xs_cuda_event(process->cuda, data, size) || last;
	case XS_KIND_JIT:
		compilation(process, data, size);
		break;
	case XS_KIND_MEMORY2:
		allocation(process, data, size);
		break;
	case XS_KIND_MEMORY_POOL:
		pool(process, data, size);
		break;
	case XS_KIND_UNIFIED_MEMORY:
		managed(process, data, size);
		break;
	default:
		break;
	}
	return true;
}
