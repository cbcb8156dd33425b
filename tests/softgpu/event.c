/*
 * Events and their pools, fences. What the device writes lies in the pool's memory, which another
 * process may map (IPC).
 */
#include "driver.h"
#include "ipc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sg_pool {
	ze_event_pool_flags_t flags;
	uint32_t count;
	ze_context_handle_t context;
	struct sg_slot *slots;
	struct sg_event *events;
	_Atomic uint32_t live;
	int fd; /* of IPC pools, else -1 */
	bool counts, opened;
	bool own; /* of one event, made and destroyed with it */
};

struct sg_fence {
	_Atomic uint32_t signalled;
	_Atomic uint64_t tick;
};

bool sg_event_reached(const struct sg_event *event, uint32_t wanted)
{
	return (int32_t)(atomic_load(&event->slot->state) - wanted) >= 0;
}

bool sg_event_ready(const struct sg_event *event)
{
	return event->counts ? sg_event_reached(event, atomic_load(&event->wanted))
			     : atomic_load(&event->slot->state) == 1;
}

void sg_event_asked(struct sg_event *event)
{
	if (event->counts)
		atomic_fetch_add(&event->wanted, 1);
}

void sg_event_signal(struct sg_event *event, const struct sg_span *span, uint32_t tiles,
		     uint64_t base)
{
	struct sg_slot *slot = event->slot;

	atomic_store_explicit(&slot->start, span->start, memory_order_relaxed);
	atomic_store_explicit(&slot->end, span->end, memory_order_relaxed);
	atomic_store_explicit(&slot->base, base, memory_order_relaxed);
	atomic_store_explicit(&slot->tiles, tiles, memory_order_relaxed);
	/* publishes the times; pairs with sg_event_ready() */
	if (event->counts)
		atomic_fetch_add(&slot->state, 1);
	else
		atomic_store(&slot->state, 1);
	sg_changed();
}

void sg_event_clear(struct sg_event *event)
{
	if (!event->counts)
		atomic_store(&event->slot->state, 0);
}

/*
 * A tile starts a tick after the one before it and the last ends at the end, so that no tile's
 * times are another's.
 */
void sg_event_result(const struct sg_event *event, int tile, ze_kernel_timestamp_result_t *result)
{
	const struct sg_slot *slot = event->slot;
	uint64_t start = atomic_load(&slot->start), end = atomic_load(&slot->end),
		 base = atomic_load(&slot->base);
	uint32_t tiles = atomic_load(&slot->tiles);

	if (tile >= 0 && tiles > 1 && end - start >= tiles) {
		start += (uint64_t)tile;
		end -= (uint64_t)tiles - 1 - (uint64_t)tile;
	}
	result->global.kernelStart = sg_kernel_ticks(start);
	result->global.kernelEnd = sg_kernel_ticks(end);
	result->context.kernelStart = sg_kernel_ticks(start - base);
	result->context.kernelEnd = sg_kernel_ticks(end - base);
}

static const void *find_desc(const void *chain, ze_structure_type_t wanted)
{
	for (const ze_base_desc_t *desc = chain; desc; desc = desc->pNext)
		if (desc->stype == wanted)
			return desc;
	return NULL;
}

static ze_result_t pool_make(struct sg_pool *pool)
{
	size_t size = pool->count * sizeof(struct sg_slot);

	pool->events = calloc(pool->count, sizeof(*pool->events));
	if (pool->fd >= 0)
		pool->slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, pool->fd, 0);
	else
		pool->slots = calloc(pool->count, sizeof(struct sg_slot));
	if (pool->events && pool->slots && pool->slots != MAP_FAILED)
		return SG_OK;
	free(pool->events);
	free(pool);
	return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

ze_result_t sg_zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *desc,
				 uint32_t count, ze_device_handle_t *devices,
				 ze_event_pool_handle_t *ret)
{
	struct sg_pool *pool;
	ze_result_t result;

	SG_ENTER_WITH(context, desc && ret && (!count || devices));
	if (sg_config.cancels)
		pthread_testcancel();
	if (!desc->count)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	if (desc->flags > 15 || (desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP &&
				 desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP))
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	pool->flags = desc->flags;
	pool->count = desc->count;
	pool->context = context;
	pool->fd = -1;
	pool->counts = find_desc(desc->pNext, ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC);
	if (pool->counts && (desc->flags & ZE_EVENT_POOL_FLAG_IPC)) {
		free(pool);
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	}
	if (desc->flags & ZE_EVENT_POOL_FLAG_IPC) {
		pool->fd = memfd_create("softgpu-events", MFD_CLOEXEC);
		if (pool->fd < 0 ||
		    ftruncate(pool->fd, (off_t)(desc->count * sizeof(struct sg_slot)))) {
			free(pool);
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		}
	}
	result = pool_make(pool);
	if (result == SG_OK)
		*ret = (ze_event_pool_handle_t)pool;
	return result;
}

static void pool_free(struct sg_pool *pool)
{
	if (atomic_load(&pool->live))
		sg_misuse("an event pool is destroyed before %u of its events",
			  atomic_load(&pool->live));
	if (pool->fd >= 0) {
		(void)munmap(pool->slots, pool->count * sizeof(struct sg_slot));
		(void)close(pool->fd);
	} else {
		free(pool->slots);
	}
	free(pool->events);
	free(pool);
}

ze_result_t sg_zeEventPoolDestroy(ze_event_pool_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	pool_free((struct sg_pool *)handle);
	return SG_OK;
}

ze_result_t sg_zeEventPoolGetIpcHandle(ze_event_pool_handle_t handle,
				       ze_ipc_event_pool_handle_t *ret)
{
	struct sg_pool *pool = (struct sg_pool *)handle;
	struct sg_ipc ipc = { .magic = SG_IPC_EVENTS, .pid = getpid() };

	SG_ENTER_WITH(handle, ret);
	if (pool->fd < 0)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	ipc.fd = pool->fd;
	ipc.size = pool->count;
	ipc.flags = pool->flags;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->data, &ipc, sizeof(ipc));
	return SG_OK;
}

ze_result_t sg_zeEventPoolOpenIpcHandle(ze_context_handle_t context,
					ze_ipc_event_pool_handle_t handle,
					ze_event_pool_handle_t *ret)
{
	struct sg_pool *pool;
	struct sg_ipc ipc;
	ze_result_t result;

	SG_ENTER_WITH(context, ret);
	memcpy(&ipc, handle.data, sizeof(ipc));
	if (ipc.magic != SG_IPC_EVENTS)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	pool->flags = ipc.flags;
	pool->count = (uint32_t)ipc.size;
	pool->context = context;
	pool->opened = true;
	pool->fd = sg_ipc_open(&ipc);
	if (pool->fd < 0) {
		free(pool);
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	}
	result = pool_make(pool);
	if (result == SG_OK)
		*ret = (ze_event_pool_handle_t)pool;
	return result;
}

ze_result_t sg_zeEventPoolCloseIpcHandle(ze_event_pool_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	if (!((struct sg_pool *)handle)->opened)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	pool_free((struct sg_pool *)handle);
	return SG_OK;
}

ze_result_t sg_zeEventPoolGetFlags(ze_event_pool_handle_t pool, ze_event_pool_flags_t *ret)
{
	SG_ENTER_WITH(pool, ret);
	*ret = ((const struct sg_pool *)pool)->flags;
	return SG_OK;
}

ze_result_t sg_zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t *desc,
			     ze_event_handle_t *ret)
{
	struct sg_pool *pool = (struct sg_pool *)handle;
	struct sg_event *event;

	SG_ENTER_WITH(handle, desc && ret);
	if (desc->index >= pool->count)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	event = &pool->events[desc->index];
	if (event->pool)
		sg_misuse("an event is created at index %u of its pool, where there is one",
			  desc->index);
	event->pool = pool;
	event->slot = &pool->slots[desc->index];
	event->counts = pool->counts;
	event->timed = pool->flags & (ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP |
				      ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP);
	event->shared = pool->fd >= 0;
	atomic_store(&event->users, 0);
	atomic_store(&event->wanted, 0);
	if (!pool->opened)
		atomic_store(&event->slot->state, 0);
	atomic_fetch_add(&pool->live, 1);
	*ret = (ze_event_handle_t)event;
	return SG_OK;
}

ze_result_t sg_zeEventDestroy(ze_event_handle_t handle)
{
	struct sg_event *event = (struct sg_event *)handle;
	struct sg_pool *pool;

	SG_ENTER();
	SG_HANDLE(handle);
	if (atomic_load(&event->users))
		sg_misuse("an event is destroyed while %u commands need it",
			  atomic_load(&event->users));
	pool = event->pool;
	atomic_fetch_sub(&pool->live, 1);
	event->pool = NULL;
	if (pool->own)
		pool_free(pool);
	return SG_OK;
}

/* A counter-based event that is in no pool of the program's. */
ze_result_t sg_zeEventCounterBasedCreate(ze_context_handle_t context, ze_device_handle_t device,
					 const ze_event_counter_based_desc_t *desc,
					 ze_event_handle_t *ret)
{
	ze_event_pool_counter_based_exp_desc_t counts = {
		.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC
	};
	ze_event_pool_desc_t pool_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
					   .pNext = &counts,
					   .count = 1 };
	ze_event_desc_t event_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC };
	ze_event_pool_handle_t pool;
	ze_result_t result;

	SG_ENTER_WITH(context && device, desc && ret);
	if (desc->flags & (ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP |
			   ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP))
		pool_desc.flags = ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
	result = sg_zeEventPoolCreate(context, &pool_desc, 0, NULL, &pool);
	if (result)
		return result;
	((struct sg_pool *)pool)->own = true;
	return sg_zeEventCreate(pool, &event_desc, ret);
}

/* By an older name, with the same flags. */
ze_result_t sg_zexCounterBasedEventCreate2(ze_context_handle_t context, ze_device_handle_t device,
					   const ze_event_counter_based_desc_t *desc,
					   ze_event_handle_t *ret)
{
	return sg_zeEventCounterBasedCreate(context, device, desc, ret);
}

ze_result_t sg_zeEventGetEventPool(ze_event_handle_t handle, ze_event_pool_handle_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	*ret = (ze_event_pool_handle_t)((struct sg_event *)handle)->pool;
	return SG_OK;
}

ze_result_t sg_zeEventHostSignal(ze_event_handle_t handle)
{
	struct sg_event *event = (struct sg_event *)handle;
	uint64_t now = sg_device_ticks();

	SG_ENTER();
	SG_HANDLE(handle);
	if (event->counts)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	sg_event_signal(event, &(struct sg_span){ .start = now, .end = now }, 0, 0);
	return SG_OK;
}

static bool event_ready(const void *event)
{
	return sg_event_ready(event);
}

static void event_seen(const struct sg_event *event)
{
	if (sg_config.virtual_clock)
		sg_virtual_seen(atomic_load(&event->slot->end));
}

ze_result_t sg_zeEventHostSynchronize(ze_event_handle_t handle, uint64_t timeout)
{
	struct sg_event *event = (struct sg_event *)handle;
	ze_result_t result;

	SG_ENTER();
	SG_HANDLE(handle);
	result = sg_wait(event_ready, event, timeout, event->shared);
	if (result == SG_OK)
		event_seen(event);
	return result;
}

ze_result_t sg_zeEventQueryStatus(ze_event_handle_t handle)
{
	const struct sg_event *event = (const struct sg_event *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (!sg_event_ready(event))
		return ZE_RESULT_NOT_READY;
	event_seen(event);
	return SG_OK;
}

ze_result_t sg_zeEventHostReset(ze_event_handle_t handle)
{
	struct sg_event *event = (struct sg_event *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (event->counts)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	sg_event_clear(event);
	return SG_OK;
}

ze_result_t sg_zeEventQueryKernelTimestamp(ze_event_handle_t handle,
					   ze_kernel_timestamp_result_t *ret)
{
	const struct sg_event *event = (const struct sg_event *)handle;

	SG_ENTER_WITH(handle, ret);
	if (!event->timed)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (!sg_event_ready(event))
		return ZE_RESULT_NOT_READY;
	sg_event_result(event, -1, ret);
	return SG_OK;
}

/* Of a whole device all its tiles, of one of its tiles that one. */
ze_result_t sg_zeEventQueryTimestampsExp(ze_event_handle_t handle, ze_device_handle_t device_handle,
					 uint32_t *count, ze_kernel_timestamp_result_t *ret)
{
	const struct sg_event *event = (const struct sg_event *)handle;
	const struct sg_device *device = (const struct sg_device *)device_handle;
	uint32_t tiles;

	SG_ENTER_WITH(handle && device_handle, count);
	if (!event->timed)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (!sg_event_ready(event))
		return ZE_RESULT_NOT_READY;
	tiles = atomic_load(&event->slot->tiles);
	if (tiles < 2 || device->tile >= 0)
		SG_GIVE(count, ret, 1,
			sg_event_result(event, tiles < 2 ? -1 : device->tile, &ret[i]));
	else
		SG_GIVE(count, ret, tiles, sg_event_result(event, (int)i, &ret[i]));
	return SG_OK;
}

ze_result_t sg_zeFenceCreate(ze_command_queue_handle_t queue, const ze_fence_desc_t *desc,
			     ze_fence_handle_t *ret)
{
	struct sg_fence *fence;

	SG_ENTER_WITH(queue, desc && ret);
	fence = calloc(1, sizeof(*fence));
	if (!fence)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	atomic_store(&fence->signalled, desc->flags & ZE_FENCE_FLAG_SIGNALED);
	*ret = (ze_fence_handle_t)fence;
	return SG_OK;
}

ze_result_t sg_zeFenceDestroy(ze_fence_handle_t fence)
{
	SG_ENTER();
	SG_HANDLE(fence);
	free(fence);
	return SG_OK;
}

void sg_fence_signal(struct sg_fence *fence, uint64_t tick)
{
	if (sg_device_lost())
		return;
	atomic_store(&fence->tick, tick);
	atomic_store(&fence->signalled, 1);
	sg_changed();
}

static bool fence_ready(const void *fence)
{
	return atomic_load(&((const struct sg_fence *)fence)->signalled);
}

static ze_result_t fence_wait(const struct sg_fence *fence, uint64_t timeout)
{
	ze_result_t result = sg_wait(fence_ready, fence, timeout, false);

	if (result == SG_OK && sg_config.virtual_clock)
		sg_virtual_seen(atomic_load(&fence->tick));
	return result;
}

ze_result_t sg_zeFenceHostSynchronize(ze_fence_handle_t fence, uint64_t timeout)
{
	SG_ENTER();
	SG_HANDLE(fence);
	return fence_wait((struct sg_fence *)fence, timeout);
}

ze_result_t sg_zeFenceQueryStatus(ze_fence_handle_t fence)
{
	SG_ENTER();
	SG_HANDLE(fence);
	return fence_wait((struct sg_fence *)fence, 0);
}

ze_result_t sg_zeFenceReset(ze_fence_handle_t fence)
{
	SG_ENTER();
	SG_HANDLE(fence);
	atomic_store(&((struct sg_fence *)fence)->signalled, 0);
	return SG_OK;
}
