/* Command queues and lists: their making, closing, resetting and execution. What is appended lies
 * in the list's own memory, which a reset only takes back: after the first round nothing is
 * allocated. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct sg_arena {
	struct sg_arena *next;
	size_t size, used;
	char data[] __attribute__((aligned(16)));
};

enum { ARENA_SIZE = 32768 };

static void *take(struct sg_list *list, size_t size)
{
	struct sg_arena *arena;
	void *ret;

	if (list->capture)
		list = list->capture;
	arena = list->arena;
	size = (size + 15) & ~(size_t)15;
	while (!arena || arena->size - arena->used < size) {
		if (!arena || !arena->next) {
			size_t room = size > ARENA_SIZE ? size : ARENA_SIZE;
			struct sg_arena *more = malloc(sizeof(*more) + room);

			if (!more)
				return NULL;
			more->next = NULL;
			more->size = room;
			*(arena ? &arena->next : &list->arena_first) = more;
			arena = more;
		} else {
			arena = arena->next;
		}
		arena->used = 0;
	}
	list->arena = arena;
	ret = arena->data + arena->used;
	arena->used += size;
	return ret;
}

void *sg_list_memory(struct sg_list *list, size_t size)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *ret;

	if (!sg_config.bears)
		return take(list, size);
	(void)pthread_mutex_lock(&lock);
	ret = take(list, size);
	(void)pthread_mutex_unlock(&lock);
	return ret;
}

void sg_list_rewind(struct sg_list *list)
{
	if (sg_config.bears)
		return; /* another thread may just be appending */
	list->arena = list->arena_first;
	if (list->arena)
		list->arena->used = 0;
}

ze_result_t sg_zeCommandQueueCreate(ze_context_handle_t context, ze_device_handle_t device,
				    const ze_command_queue_desc_t *desc,
				    ze_command_queue_handle_t *ret)
{
	struct sg_queue *queue;

	SG_ENTER_WITH(context && device, desc && ret);
	if (desc->mode > ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS ||
	    desc->priority > ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH)
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (desc->index >= sg_group_queues(desc->ordinal))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	queue = sg_queue_new((struct sg_device *)device, desc);
	if (!queue)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	*ret = (ze_command_queue_handle_t)queue;
	return SG_OK;
}

ze_result_t sg_zeCommandQueueDestroy(ze_command_queue_handle_t queue)
{
	SG_ENTER();
	SG_HANDLE(queue);
	sg_queue_destroy((struct sg_queue *)queue);
	return SG_OK;
}

static ze_result_t queue_wait(struct sg_queue *queue, uint64_t timeout)
{
	ze_result_t result = sg_wait(sg_queue_idle, queue, timeout, false);

	if (result == SG_OK && sg_config.virtual_clock)
		sg_virtual_seen(sg_queue_latest(queue));
	return result;
}

ze_result_t sg_zeCommandQueueSynchronize(ze_command_queue_handle_t queue, uint64_t timeout)
{
	SG_ENTER();
	SG_HANDLE(queue);
	return queue_wait((struct sg_queue *)queue, timeout);
}

ze_result_t sg_zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t handle, uint32_t count,
						 ze_command_list_handle_t *lists,
						 ze_fence_handle_t fence)
{
	struct sg_queue *queue = (struct sg_queue *)handle;

	SG_ENTER_WITH(handle, lists);
	if (!count)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	for (uint32_t i = 0; i < count; i++) {
		const struct sg_list *list = (const struct sg_list *)lists[i];

		if (!list || list->queue || !list->closed || list->device != queue->device)
			return ZE_RESULT_ERROR_INVALID_ARGUMENT;
		if (sg_group_computes(list->ordinal) && !sg_group_computes(queue->ordinal))
			return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
	}
	for (uint32_t i = 0; i < count; i++)
		sg_queue_push_list(queue, (struct sg_list *)lists[i]);
	if (fence)
		sg_queue_push_fence(queue, (struct sg_fence *)fence);
	sg_queue_go(queue);
	return SG_OK;
}

ze_result_t sg_list_new(ze_context_handle_t context, struct sg_device *device, uint32_t ordinal,
			uint32_t flags, bool in_order, struct sg_list **ret)
{
	struct sg_list *list = calloc(1, sizeof(*list));

	if (!list)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	list->context = context;
	list->device = device;
	list->ordinal = ordinal;
	list->flags = flags;
	list->in_order = in_order;
	*ret = list;
	return SG_OK;
}

ze_result_t sg_zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
				   const ze_command_list_desc_t *desc,
				   ze_command_list_handle_t *ret)
{
	SG_ENTER_WITH(context && device, desc && ret);
	if (desc->flags > 0x3f)
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (0 >= sg_group_queues(desc->commandQueueGroupOrdinal))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	return sg_list_new(context, (struct sg_device *)device, desc->commandQueueGroupOrdinal,
			   desc->flags, desc->flags & ZE_COMMAND_LIST_FLAG_IN_ORDER,
			   (struct sg_list **)ret);
}

ze_result_t sg_zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
					    const ze_command_queue_desc_t *desc,
					    ze_command_list_handle_t *ret)
{
	struct sg_list *list;
	ze_result_t result;

	SG_ENTER_WITH(context && device, desc && ret);
	if (desc->mode > ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS ||
	    desc->priority > ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH)
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (desc->index >= sg_group_queues(desc->ordinal))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	result = sg_list_new(context, (struct sg_device *)device, desc->ordinal, desc->flags,
			     desc->flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER, &list);
	if (result)
		return result;
	list->queue = sg_queue_new(list->device, desc);
	if (!list->queue) {
		free(list);
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	*ret = (ze_command_list_handle_t)list;
	return SG_OK;
}

ze_result_t sg_zeCommandListDestroy(ze_command_list_handle_t handle)
{
	struct sg_list *list = (struct sg_list *)handle;
	struct sg_arena *next;

	SG_ENTER();
	SG_HANDLE(handle);
	if (list->queue)
		sg_queue_destroy(list->queue);
	else if (atomic_load(&list->users))
		sg_misuse("a command list is destroyed with %u of its commands on their way",
			  atomic_load(&list->users));
	for (struct sg_arena *arena = list->arena_first; arena; arena = next) {
		next = arena->next;
		free(arena);
	}
	free(list->cmds);
	free(list);
	return SG_OK;
}

ze_result_t sg_zeCommandListClose(ze_command_list_handle_t handle)
{
	struct sg_list *list = (struct sg_list *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (list->queue)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	list->closed = true;
	return SG_OK;
}

ze_result_t sg_zeCommandListReset(ze_command_list_handle_t handle)
{
	struct sg_list *list = (struct sg_list *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (list->queue)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (atomic_load(&list->users))
		sg_misuse("a command list is reset with %u of its commands on their way",
			  atomic_load(&list->users));
	list->count = 0;
	list->closed = false;
	sg_list_rewind(list);
	return SG_OK;
}

ze_result_t sg_zeCommandListHostSynchronize(ze_command_list_handle_t handle, uint64_t timeout)
{
	struct sg_list *list = (struct sg_list *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	return list->queue ? queue_wait(list->queue, timeout) : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t sg_zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t handle,
							   uint32_t count,
							   ze_command_list_handle_t *lists,
							   ze_event_handle_t signal, uint32_t nwait,
							   ze_event_handle_t *wait)
{
	struct sg_list *immediate = (struct sg_list *)handle;
	ze_result_t result = SG_OK;

	SG_ENTER_WITH(handle, lists);
	if (!immediate->queue || immediate->capture || !count)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		const struct sg_list *list = (const struct sg_list *)lists[i];

		if (!list || list->queue || !list->closed || list->device != immediate->device)
			return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	}
	if (nwait)
		result = sg_zeCommandListAppendWaitOnEvents(handle, nwait, wait);
	for (uint32_t i = 0; i < count && !result; i++)
		sg_queue_push_list(immediate->queue, (struct sg_list *)lists[i]);
	if (signal && !result)
		result = sg_zeCommandListAppendSignalEvent(handle, signal);
	sg_queue_go(immediate->queue);
	return result;
}

ze_result_t sg_zeCommandListImmediateGetIndex(ze_command_list_handle_t handle, uint32_t *ret)
{
	const struct sg_list *list = (const struct sg_list *)handle;

	SG_ENTER_WITH(handle, ret);
	if (!list->queue)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	*ret = list->queue->index;
	return SG_OK;
}

/* What a queue or a list was made with. */
#define GETTER(function, handle_type, object_type, type, value)                        \
	ze_result_t sg_##function(handle_type handle, type *ret)                       \
	{                                                                              \
		const struct object_type *object = (const struct object_type *)handle; \
                                                                                       \
		SG_ENTER_WITH(handle, ret);                                            \
		*ret = (value);                                                        \
		return SG_OK;                                                          \
	}

GETTER(zeCommandQueueGetOrdinal, ze_command_queue_handle_t, sg_queue, uint32_t, object->ordinal)
GETTER(zeCommandQueueGetIndex, ze_command_queue_handle_t, sg_queue, uint32_t, object->index)
GETTER(zeCommandListGetDeviceHandle, ze_command_list_handle_t, sg_list, ze_device_handle_t,
       (ze_device_handle_t)object->device)
GETTER(zeCommandListGetContextHandle, ze_command_list_handle_t, sg_list, ze_context_handle_t,
       object->context)
GETTER(zeCommandListGetOrdinal, ze_command_list_handle_t, sg_list, uint32_t, object->ordinal)
GETTER(zeCommandListIsImmediate, ze_command_list_handle_t, sg_list, ze_bool_t,
       object->queue != NULL)
