/* What can be appended to a list. In a regular list it is kept; in an immediate one it is executed:
 * on the calling thread at once, where that is how commands run and nothing holds it back, and else
 * by way of the queue. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/*
 * A command in the list's memory with its events, for the caller to fill in; sg_append_end() puts
 * it where it belongs.
 */
ze_result_t sg_append_begin(ze_command_list_handle_t handle, enum sg_op op, const char *name,
			    const struct sg_wanted *wanted, struct sg_cmd **ret)
{
	struct sg_list *list = (struct sg_list *)handle;
	struct sg_cmd *cmd;

	SG_HANDLE(handle);
	if (wanted->nwait && !wanted->wait)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	for (uint32_t i = 0; list->queue && i < wanted->nwait; i++)
		if (wanted->wait[i])
			sg_capture_wait(list, (const struct sg_event *)wanted->wait[i]);
	if (list->capture)
		list = list->capture;
	if (list->closed)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (wanted->signal && wanted->signal->counts && !list->in_order)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	/* pairs with the release after the queue's last command */
	if (list->queue && !atomic_load_explicit(&list->queue->pending, memory_order_acquire))
		sg_list_rewind(list);
	cmd = sg_list_memory(list, sizeof(*cmd));
	if (!cmd)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	cmd->op = op;
	cmd->after_all = cmd->before_all = false;
	cmd->nwait = wanted->nwait;
	cmd->signal = wanted->signal;
	cmd->wait = NULL;
	cmd->name = name;
	cmd->bytes = 0;
	if (wanted->nwait) {
		cmd->wait = sg_list_memory(list, wanted->nwait * sizeof(*cmd->wait));
		if (!cmd->wait)
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		for (uint32_t i = 0; i < wanted->nwait; i++) {
			SG_HANDLE(wanted->wait[i]);
			cmd->wait[i] = (struct sg_event *)wanted->wait[i];
		}
	}
	*ret = cmd;
	return SG_OK;
}

static ze_result_t add(struct sg_list *list, struct sg_cmd *cmd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SOFTGPU_BEARS */
	ze_result_t result = SG_OK;

	(void)pthread_mutex_lock(&lock);
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity ? list->capacity * 2 : 32;
		struct sg_cmd **cmds = realloc(list->cmds, capacity * sizeof(*cmds));

		if (cmds) {
			list->cmds = cmds;
			list->capacity = capacity;
		} else {
			result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		}
	}
	if (!result)
		list->cmds[list->count++] = cmd;
	(void)pthread_mutex_unlock(&lock);
	return result;
}

ze_result_t sg_append_end(ze_command_list_handle_t handle, struct sg_cmd *cmd)
{
	struct sg_list *list = (struct sg_list *)handle;
	struct sg_queue *queue;
	bool ready = true;

	if (list->capture) {
		sg_capture_appended(list, cmd->signal);
		list = list->capture;
	}
	queue = list->queue;
	if (!queue)
		return add(list, cmd);
	list->executions++;
	if (sg_config.sync && !atomic_load_explicit(&queue->pending, memory_order_relaxed)) {
		for (uint32_t i = 0; i < cmd->nwait; i++)
			ready &= sg_event_ready(cmd->wait[i]);
		if (ready) {
			if (cmd->signal)
				sg_event_asked(cmd->signal);
			sg_run(queue, list, cmd, list->executions, false);
			return SG_OK;
		}
	}
	sg_queue_push(queue, list, cmd, list->executions);
	sg_queue_go(queue);
	return SG_OK;
}

#define WANTED() (&(struct sg_wanted){ (struct sg_event *)signal, nwait, wait })
#define BEGIN(op_, name_)                                                               \
	do {                                                                            \
		ze_result_t begin_ = sg_append_begin(list, op_, name_, WANTED(), &cmd); \
		if (begin_)                                                             \
			return begin_;                                                  \
	} while (0)

ze_result_t sg_zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t signal,
					  uint32_t nwait, ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	BEGIN(SG_BARRIER, "zeCommandListAppendBarrier");
	/* with events to wait for, it waits for those alone */
	cmd->after_all = !nwait;
	cmd->before_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t list, uint32_t count,
						      const size_t *sizes, const void **ranges,
						      ze_event_handle_t signal, uint32_t nwait,
						      ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_POINTER(!count || (sizes && ranges));
	BEGIN(SG_BARRIER, "zeCommandListAppendMemoryRangesBarrier");
	cmd->after_all = !nwait;
	cmd->before_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendSignalEvent(ze_command_list_handle_t list,
					      ze_event_handle_t signal)
{
	const uint32_t nwait = 0;
	ze_event_handle_t *wait = NULL;
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_HANDLE(signal);
	BEGIN(SG_SIGNAL, "zeCommandListAppendSignalEvent");
	cmd->after_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendWaitOnEvents(ze_command_list_handle_t list, uint32_t nwait,
					       ze_event_handle_t *wait)
{
	const ze_event_handle_t signal = NULL;
	struct sg_cmd *cmd;

	SG_ENTER();
	BEGIN(SG_WAIT, "zeCommandListAppendWaitOnEvents");
	cmd->before_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendEventReset(ze_command_list_handle_t list, ze_event_handle_t event)
{
	const ze_event_handle_t signal = NULL;
	const uint32_t nwait = 0;
	ze_event_handle_t *wait = NULL;
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_HANDLE(event);
	if (((struct sg_event *)event)->counts)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	BEGIN(SG_RESET, "zeCommandListAppendEventReset");
	cmd->event = (struct sg_event *)event;
	cmd->after_all = cmd->before_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t list, uint64_t *to,
						       ze_event_handle_t signal, uint32_t nwait,
						       ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_POINTER(to);
	BEGIN(SG_TIMESTAMP, "zeCommandListAppendWriteGlobalTimestamp");
	cmd->dst = to;
	cmd->after_all = true;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t list,
							uint32_t count, ze_event_handle_t *events,
							void *to, const size_t *offsets,
							ze_event_handle_t signal, uint32_t nwait,
							ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_POINTER(events && to);
	BEGIN(SG_QUERY_TIMESTAMPS, "zeCommandListAppendQueryKernelTimestamps");
	cmd->dst = to;
	cmd->count = count;
	cmd->bytes = count * sizeof(ze_kernel_timestamp_result_t);
	cmd->events = sg_list_memory((struct sg_list *)list, count * sizeof(*cmd->events));
	cmd->offsets = NULL;
	if (!cmd->events)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < count; i++)
		cmd->events[i] = (struct sg_event *)events[i];
	if (offsets) {
		size_t *copy = sg_list_memory((struct sg_list *)list, count * sizeof(*copy));

		if (!copy)
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		cmd->offsets = memcpy(copy, offsets, count * sizeof(*copy));
	}
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void *to,
					     const void *from, size_t size,
					     ze_event_handle_t signal, uint32_t nwait,
					     ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_POINTER(to && from);
	BEGIN(SG_COPY, "zeCommandListAppendMemoryCopy");
	cmd->dst = to;
	cmd->src = from;
	cmd->bytes = size;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendMemoryCopyFromContext(ze_command_list_handle_t list, void *to,
							ze_context_handle_t context,
							const void *from, size_t size,
							ze_event_handle_t signal, uint32_t nwait,
							ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;

	SG_ENTER_WITH(context, to && from);
	BEGIN(SG_COPY, "zeCommandListAppendMemoryCopyFromContext");
	cmd->dst = to;
	cmd->src = from;
	cmd->bytes = size;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void *to,
					     const void *pattern, size_t pattern_size, size_t size,
					     ze_event_handle_t signal, uint32_t nwait,
					     ze_event_handle_t *wait)
{
	struct sg_cmd *cmd;
	void *copy;

	SG_ENTER();
	SG_POINTER(to && pattern);
	if (!pattern_size || pattern_size > 128 || (pattern_size & (pattern_size - 1)))
		return ZE_RESULT_ERROR_INVALID_SIZE;
	BEGIN(SG_FILL, "zeCommandListAppendMemoryFill");
	copy = sg_list_memory((struct sg_list *)list, pattern_size);
	if (!copy)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	cmd->dst = to;
	cmd->src = memcpy(copy, pattern, pattern_size);
	cmd->pattern_size = pattern_size;
	cmd->bytes = size;
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendMemoryCopyRegion(
	ze_command_list_handle_t list, void *to, const ze_copy_region_t *to_region,
	uint32_t to_pitch, uint32_t to_slice, const void *from, const ze_copy_region_t *from_region,
	uint32_t from_pitch, uint32_t from_slice, ze_event_handle_t signal, uint32_t nwait,
	ze_event_handle_t *wait)
{
	uint32_t depth;
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_POINTER(to && from && to_region && from_region);
	depth = to_region->depth ? to_region->depth : 1;
	if (to_region->width != from_region->width || to_region->height != from_region->height ||
	    to_region->depth != from_region->depth)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	BEGIN(SG_REGION, "zeCommandListAppendMemoryCopyRegion");
	cmd->dst = (char *)to + to_region->originX + (size_t)to_region->originY * to_pitch +
		   (size_t)to_region->originZ * to_slice;
	cmd->src = (const char *)from + from_region->originX +
		   (size_t)from_region->originY * from_pitch +
		   (size_t)from_region->originZ * from_slice;
	cmd->region = (struct sg_region){ to_region->width, to_region->height, depth,	  to_pitch,
					  to_slice,	    from_pitch,	       from_slice };
	cmd->bytes = (uint64_t)to_region->width * to_region->height * depth;
	return sg_append_end(list, cmd);
}

/* Hints: nothing to do, and nothing that is executed. */
ze_result_t sg_zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t list, const void *pointer,
						 size_t size)
{
	SG_ENTER_WITH(list, pointer);
	(void)size;
	return SG_OK;
}

ze_result_t sg_zeCommandListAppendMemAdvise(ze_command_list_handle_t list,
					    ze_device_handle_t device, const void *pointer,
					    size_t size, ze_memory_advice_t advice)
{
	SG_ENTER_WITH(list && device, pointer);
	(void)size;
	(void)advice;
	return SG_OK;
}

static ze_result_t launch(ze_command_list_handle_t list, ze_kernel_handle_t handle,
			  const ze_group_count_t *groups, bool indirect, ze_event_handle_t signal,
			  uint32_t nwait, ze_event_handle_t *wait)
{
	const struct sg_kernel *kernel = (const struct sg_kernel *)handle;
	size_t args;
	struct sg_cmd *cmd;

	SG_HANDLE(list && handle);
	SG_POINTER(groups);
	if (!sg_group_computes(((struct sg_list *)list)->ordinal))
		return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
	BEGIN(SG_KERNEL, kernel->entry->name);
	args = (size_t)kernel->entry->args * SOFTGPU_ARG_SIZE;
	cmd->kernel = kernel->entry;
	cmd->indirect = indirect ? groups : NULL;
	cmd->groups[0] = indirect ? 0 : groups->groupCountX;
	cmd->groups[1] = indirect ? 0 : groups->groupCountY;
	cmd->groups[2] = indirect ? 0 : groups->groupCountZ;
	memcpy(cmd->size, kernel->size, sizeof(cmd->size));
	cmd->local = kernel->local;
	cmd->args = NULL;
	if (args) {
		cmd->args = sg_list_memory((struct sg_list *)list, args);
		if (!cmd->args)
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		memcpy(cmd->args, kernel->args, args);
	}
	return sg_append_end(list, cmd);
}

ze_result_t sg_zeCommandListAppendLaunchKernel(ze_command_list_handle_t list,
					       ze_kernel_handle_t kernel,
					       const ze_group_count_t *groups,
					       ze_event_handle_t signal, uint32_t nwait,
					       ze_event_handle_t *wait)
{
	SG_ENTER();
	return launch(list, kernel, groups, false, signal, nwait, wait);
}

ze_result_t sg_zeCommandListAppendLaunchKernelWithParameters(
	ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t *groups,
	const void *next, ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	SG_ENTER();
	return launch(list, kernel, groups, false, signal, nwait, wait);
}

ze_result_t sg_zeCommandListAppendLaunchKernelWithArguments(
	ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t groups,
	const ze_group_size_t size, void **args, const void *next, ze_event_handle_t signal,
	uint32_t nwait, ze_event_handle_t *wait)
{
	ze_result_t result =
		sg_zeKernelSetGroupSize(kernel, size.groupSizeX, size.groupSizeY, size.groupSizeZ);

	SG_ENTER();
	SG_HANDLE(list && kernel);
	for (uint32_t i = 0; i < ((struct sg_kernel *)kernel)->entry->args && !result; i++) {
		SG_POINTER(args && args[i]);
		result = sg_zeKernelSetArgumentValue(kernel, i, sizeof(void *), args[i]);
	}
	return result ? result : launch(list, kernel, &groups, false, signal, nwait, wait);
}

ze_result_t sg_zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void *to,
							   const void *from, size_t size,
							   const void *next,
							   ze_event_handle_t signal, uint32_t nwait,
							   ze_event_handle_t *wait)
{
	SG_ENTER();
	return sg_zeCommandListAppendMemoryCopy(list, to, from, size, signal, nwait, wait);
}

ze_result_t sg_zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void *to,
							   const void *pattern, size_t pattern_size,
							   size_t size, const void *next,
							   ze_event_handle_t signal, uint32_t nwait,
							   ze_event_handle_t *wait)
{
	SG_ENTER();
	return sg_zeCommandListAppendMemoryFill(list, to, pattern, pattern_size, size, signal,
						nwait, wait);
}

ze_result_t sg_zeCommandListImmediateAppendCommandListsWithParameters(
	ze_command_list_handle_t immediate, uint32_t count, ze_command_list_handle_t *lists,
	const void *next, ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	SG_ENTER();
	return sg_zeCommandListImmediateAppendCommandListsExp(immediate, count, lists, signal,
							      nwait, wait);
}

ze_result_t sg_zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t list,
							  ze_kernel_handle_t kernel,
							  const ze_group_count_t *groups,
							  ze_event_handle_t signal, uint32_t nwait,
							  ze_event_handle_t *wait)
{
	SG_ENTER();
	return launch(list, kernel, groups, false, signal, nwait, wait);
}

ze_result_t sg_zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t list,
						       ze_kernel_handle_t kernel,
						       const ze_group_count_t *groups,
						       ze_event_handle_t signal, uint32_t nwait,
						       ze_event_handle_t *wait)
{
	SG_ENTER();
	return launch(list, kernel, groups, true, signal, nwait, wait);
}
