/*
 * One command, on whatever thread executes it: what it does, when by the device's clock, and the
 * signal of its event.
 */
#include "driver.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t commands;

/* Local memory is the executing thread's own. */
static const unsigned char *local_args(const struct sg_cmd *cmd, unsigned char *args)
{
	static _Thread_local struct {
		unsigned char *memory;
		size_t size;
	} local;
	size_t used = 0;

	if (cmd->local > local.size) {
		free(local.memory);
		local.memory = malloc(cmd->local);
		local.size = cmd->local;
	}
	memcpy(args, cmd->args, (size_t)cmd->kernel->args * SOFTGPU_ARG_SIZE);
	for (uint32_t i = 0; i < cmd->kernel->args; i++) {
		uint64_t size;

		memcpy(&size, args + (size_t)i * SOFTGPU_ARG_SIZE + 8, sizeof(size));
		if (size < SG_LOCAL_MARK)
			continue;
		memcpy(args + (size_t)i * SOFTGPU_ARG_SIZE, &(void *){ local.memory + used },
		       sizeof(void *));
		used += size - SG_LOCAL_MARK;
	}
	return args;
}

static void kernel(struct sg_device *device, const struct sg_cmd *cmd)
{
	unsigned char args[SOFTGPU_ARG_SIZE * SOFTGPU_ARGS_MAX] __attribute__((aligned(16)));
	struct softgpu_group group = { .args = cmd->args };
	void (*const run)(const struct softgpu_group *) = cmd->kernel->run;

	memcpy(group.count, cmd->groups, sizeof(group.count));
	memcpy(group.size, cmd->size, sizeof(group.size));
	if (cmd->local)
		group.args = local_args(cmd, args);
	if (cmd->indirect)
		memcpy(group.count, cmd->indirect, sizeof(group.count));
	for (group.id[2] = 0; group.id[2] < group.count[2]; group.id[2]++)
		for (group.id[1] = 0; group.id[1] < group.count[1]; group.id[1]++)
			for (group.id[0] = 0; group.id[0] < group.count[0]; group.id[0]++)
				run(&group);
	atomic_fetch_add_explicit(&device->root->launches, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&device->root->groups,
				  (uint64_t)group.count[0] * group.count[1] * group.count[2],
				  memory_order_relaxed);
}

static void fill(const struct sg_cmd *cmd)
{
	char *to = cmd->dst;

	if (cmd->pattern_size == 1) {
		memset(to, *(const char *)cmd->src, cmd->bytes);
		return;
	}
	for (size_t done = 0; done < cmd->bytes; done += cmd->pattern_size)
		memcpy(to + done, cmd->src,
		       cmd->bytes - done < cmd->pattern_size ? cmd->bytes - done
							     : cmd->pattern_size);
}

static void region(const struct sg_cmd *cmd)
{
	const struct sg_region *r = &cmd->region;

	for (uint32_t z = 0; z < r->depth; z++)
		for (uint32_t y = 0; y < r->height; y++)
			memmove((char *)cmd->dst + z * r->dst_slice + y * r->dst_pitch,
				(const char *)cmd->src + z * r->src_slice + y * r->src_pitch,
				r->width);
}

static void query(const struct sg_cmd *cmd)
{
	for (uint32_t i = 0; i < cmd->count; i++) {
		ze_kernel_timestamp_result_t result;

		sg_event_result(cmd->events[i], -1, &result);
		memcpy((char *)cmd->dst + (cmd->offsets ? cmd->offsets[i] : i * sizeof(result)),
		       &result, sizeof(result));
	}
}

static void execute(struct sg_queue *queue, struct sg_cmd *cmd, const struct sg_span *span)
{
	switch (cmd->op) {
	case SG_KERNEL:
		kernel(queue->device, cmd);
		break;
	case SG_COPY:
		memmove(cmd->dst, cmd->src, cmd->bytes);
		break;
	case SG_FILL:
		fill(cmd);
		break;
	case SG_REGION:
		region(cmd);
		break;
	case SG_RESET:
		sg_event_clear(cmd->event);
		break;
	case SG_TIMESTAMP:
		memcpy(cmd->dst, &span->start, sizeof(uint64_t));
		break;
	case SG_QUERY_TIMESTAMPS:
		query(cmd);
		break;
	case SG_CALL:
		cmd->call(cmd, queue->device, span);
		break;
	case SG_BARRIER:
	case SG_SIGNAL:
	case SG_WAIT:
	case SG_FENCE:
	case SG_LIST_END:
		break;
	}
}

static uint64_t given_ticks(const struct sg_cmd *cmd)
{
	static const char *const kinds[] = { NULL,	  "copy",   "fill", "copy",
					     "barrier",	  "signal", "wait", "reset",
					     "timestamp", "query",  "call" };
	bool work = cmd->op <= SG_REGION || cmd->op == SG_CALL;
	uint64_t ns = soft_duration_ns(cmd->op == SG_KERNEL ? cmd->name : kinds[cmd->op],
				       sg_config.virtual_clock ? (work ? 1000 : 1) : UINT64_MAX);

	return ns == UINT64_MAX ? 0 : sg_ticks_of(ns);
}

/*
 * When the command starts if it waits for nothing but what it must wait for, and one of the queue's
 * workers.
 */
static void virtual_span(struct sg_queue *queue, bool in_order, const struct sg_cmd *cmd,
			 struct sg_span *span)
{
	uint32_t worker = 0;

	(void)pthread_mutex_lock(&queue->virtual_lock);
	span->start = sg_virtual_now();
	if (span->start < queue->barrier)
		span->start = queue->barrier;
	if ((cmd->after_all || in_order) && span->start < queue->latest)
		span->start = queue->latest;
	for (uint32_t i = 0; i < cmd->nwait; i++) {
		uint64_t end = atomic_load(&cmd->wait[i]->slot->end);

		if (span->start < end)
			span->start = end;
	}
	for (uint32_t i = 1; i < sg_config.workers; i++)
		if (queue->slots[i] < queue->slots[worker])
			worker = i;
	if (span->start < queue->slots[worker])
		span->start = queue->slots[worker];
	span->end = span->start + given_ticks(cmd);
	queue->slots[worker] = span->end;
	if (queue->latest < span->end)
		queue->latest = span->end;
	if (cmd->before_all || in_order)
		queue->barrier = span->end;
	(void)pthread_mutex_unlock(&queue->virtual_lock);
}

void sg_users(const struct sg_cmd *cmd, struct sg_list *list, int change)
{
	if (cmd->signal)
		atomic_fetch_add(&cmd->signal->users, (uint32_t)change);
	for (uint32_t i = 0; i < cmd->nwait; i++)
		atomic_fetch_add(&cmd->wait[i]->users, (uint32_t)change);
	if (list)
		atomic_fetch_add(&list->users, (uint32_t)change);
}

void sg_run(struct sg_queue *queue, struct sg_list *list, struct sg_cmd *cmd, uint64_t execution,
	    bool counted)
{
	uint64_t sequence = atomic_fetch_add_explicit(&commands, 1, memory_order_relaxed) + 1;
	struct sg_device *device = queue->device;
	uint32_t tiles = device->tile < 0 ? device->tiles : 0;
	struct sg_span span;
	int place = -1;

	if (cmd->op == SG_KERNEL && sg_streaming())
		place = sg_stream_begin(device);
	span.start_ns = sg_now_ns();
	if (sg_config.virtual_clock) {
		virtual_span(queue, list->in_order, cmd, &span);
		execute(queue, cmd, &span);
		span.end_ns = sg_now_ns();
	} else {
		uint64_t given = sg_config.durations ? given_ticks(cmd) : 0;

		span.start = sg_ticks_at(span.start_ns);
		execute(queue, cmd, &span);
		if (given) {
			span.end = span.start + given;
			sg_wait_for_tick(span.end);
			span.end_ns = sg_now_ns();
		} else {
			span.end_ns = sg_now_ns();
			span.end = sg_ticks_at(span.end_ns);
			/* a command takes time, even where the clock is too coarse to show it */
			if (span.end <= span.start)
				span.end = span.start + 1;
		}
	}
	if (cmd->op == SG_KERNEL)
		atomic_fetch_add_explicit(&device->root->busy, span.end - span.start,
					  memory_order_relaxed);
	if (place >= 0)
		sg_stream_end(place, device, cmd, &span);
	if (sg_logging)
		sg_log(sequence, queue, list, cmd, execution, &span);
	/* once the event is signalled, the program may free it, the list and the command */
	if (counted)
		sg_users(cmd, list, -1);
	if (sg_faults)
		sg_fault_finish(sequence, cmd->signal, &span, tiles, queue->base);
	else if (cmd->signal)
		sg_event_signal(cmd->signal, &span, tiles, queue->base);
}
