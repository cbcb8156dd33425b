/*
 * Level Zero's commands in flight, the events of ours that they own, and their records.
 *
 * Nodes are never freed, so that whoever holds a stale reference finds a node that has been used again, which its count tells.
 */
#include "level_zero.h"
#include "options.h"

#define CHUNK 64u /* nodes with one pool of events */
#define MAX_CHUNKS 32768u

struct xs_ze_pool {
	struct xs_ze_pool *next;
	ze_event_pool_handle_t handle;
	uint32_t first; /* its nodes */
};

static _Atomic(struct xs_ze_node *) chunks[MAX_CHUNKS];
static _Atomic uint32_t chunk_count, work_serial;

struct xs_ze_node *xs_ze_node_at(uint32_t index)
{
	struct xs_ze_node *chunk = atomic_load_explicit(&chunks[index / CHUNK % MAX_CHUNKS], memory_order_acquire);

	return chunk ? &chunk[index % CHUNK] : NULL;
}

uint32_t xs_ze_next_id(void)
{
	return atomic_fetch_add_explicit(&work_serial, 1, memory_order_relaxed) + 1;
}

/* ---- memory of our own that is used again ---- */

void *xs_ze_take_spare(struct xs_ze_spare *spare, size_t size)
{
	void **found;

	xs_ze_lock(&spare->lock);
	found = spare->first;
	if (found)
		spare->first = *found;
	xs_ze_unlock(&spare->lock);
	if (!found)
		return xs_arena(size);
	return memset(found, 0, size);
}

void xs_ze_give_spare(struct xs_ze_spare *spare, void *memory)
{
	xs_ze_lock(&spare->lock);
	*(void **)memory = spare->first;
	spare->first = memory;
	xs_ze_unlock(&spare->lock);
}

/* ---- free ones, of each context ---- */

static void push_free(struct xs_ze_node *node)
{
	_Atomic uint64_t *list = &node->context->free_nodes;
	uint64_t top = atomic_load_explicit(list, memory_order_relaxed);

	do
		atomic_store_explicit(&node->next_free, (uint32_t)top, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(list, &top, ((top >> 32) + 1) << 32 | (node->index + 1), memory_order_release,
						      memory_order_relaxed));
}

static struct xs_ze_node *pop_free(struct xs_ze_context *context)
{
	uint64_t top = atomic_load_explicit(&context->free_nodes, memory_order_acquire);

	while ((uint32_t)top) {
		struct xs_ze_node *node = xs_ze_node_at((uint32_t)top - 1);
		uint64_t next = node ? atomic_load_explicit(&node->next_free, memory_order_relaxed) : 0;

		if (atomic_compare_exchange_weak_explicit(&context->free_nodes, &top, ((top >> 32) + 1) << 32 | next,
							  memory_order_acquire, memory_order_acquire))
			return node;
	}
	return NULL;
}

static bool more_nodes(struct xs_ze_context *context)
{
	ze_event_pool_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
				      .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP,
				      .count = CHUNK };
	struct xs_ze_node *nodes = xs_arena(CHUNK * sizeof(*nodes));
	struct xs_ze_pool *pool = xs_arena(sizeof(*pool));
	uint32_t chunk;

	if (!nodes || !pool || xs_ze.zeEventPool.pfnCreate(context->handle, &desc, 0, NULL, &pool->handle))
		return false;
	chunk = atomic_fetch_add_explicit(&chunk_count, 1, memory_order_relaxed);
	if (chunk >= MAX_CHUNKS) {
		atomic_fetch_sub_explicit(&chunk_count, 1, memory_order_relaxed);
		(void)xs_ze.zeEventPool.pfnDestroy(pool->handle);
		return false;
	}
	pool->first = chunk * CHUNK;
	for (uint32_t i = 0; i < CHUNK; i++) {
		ze_event_desc_t event = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = i, .signal = ZE_EVENT_SCOPE_FLAG_HOST };

		nodes[i].index = pool->first + i;
		nodes[i].context = context;
		if (xs_ze.zeEvent.pfnCreate(pool->handle, &event, &nodes[i].own))
			nodes[i].own = NULL;
	}
	atomic_store_explicit(&chunks[chunk], nodes, memory_order_release);
	xs_ze_lock(&context->lock);
	pool->next = context->pools;
	context->pools = pool;
	xs_ze_unlock(&context->lock);
	for (uint32_t i = CHUNK; i--;)
		if (nodes[i].own)
			push_free(&nodes[i]);
	return true;
}

struct xs_ze_node *xs_ze_node_get(struct xs_ze_context *context)
{
	struct xs_ze_node *node = pop_free(context);

	if (__builtin_expect(!node, 0)) {
		if (context->dead || !more_nodes(context))
			return NULL;
		node = pop_free(context);
	}
	return node;
}

void xs_ze_node_put(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);

	if (node->lost) {
		xs_ze_node_drop(node);
		return;
	}

	/* what still refers to this use of it finds another count */
	atomic_store_explicit(&node->state, ((state >> 2) + 1) << 2 | XS_ZE_FREE, memory_order_release);
	if (node->context->dead)
		return;
	if ((node->event == node->own || node->saved) && (state & 3) != XS_ZE_FREE)
		(void)xs_ze.zeEvent.pfnHostReset(node->own);
	push_free(node);
}

/* Its event must not be used again, and the node goes with it. */
void xs_ze_node_drop(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);

	atomic_store_explicit(&node->state, ((state >> 2) + 1) << 2 | XS_ZE_FREE, memory_order_release);
}

void xs_ze_context_pools_destroy(struct xs_ze_context *context)
{
	for (struct xs_ze_pool *pool = context->pools; pool; pool = pool->next) {
		for (uint32_t i = 0; i < CHUNK; i++) {
			struct xs_ze_node *node = xs_ze_node_at(pool->first + i);

			if (node->own)
				(void)xs_ze.zeEvent.pfnDestroy(node->own);
			if (node->memory)
				(void)xs_ze.zeMem.pfnFree(context->handle, node->memory);
		}
		(void)xs_ze.zeEventPool.pfnDestroy(pool->handle);
	}
	context->pools = NULL;
}

/* ---- the way from an event to its node ---- */

#define LINK_INDEX 0xffffffu
#define LINK_COUNT_SHIFT 24

uint64_t xs_ze_node_link(const struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);

	return ((state >> 2) << LINK_COUNT_SHIFT | (node->index + 1)) & XS_ZE_EVENT_LINK;
}

struct xs_ze_node *xs_ze_node_linked(uint64_t link)
{
	uint32_t index = (uint32_t)link & LINK_INDEX;
	struct xs_ze_node *node = index ? xs_ze_node_at(index - 1) : NULL;

	return node && xs_ze_node_link(node) == (link & XS_ZE_EVENT_LINK) ? node : NULL;
}

/* ---- records ---- */

static void write_record(const struct xs_ze_node *node, const struct xs_device_record *times, uint8_t tile)
{
	uint32_t size = node->record.event.words * 8u;
	struct xs_device_record *record = xs_record_begin(size, XS_DEVICE, XS_SOURCE_LEVEL_ZERO, node->record.event.flags,
							  node->record.event.name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = node->record.event.tick;
	memcpy((char *)record + sizeof(record->event), (const char *)&node->record + sizeof(record->event), size - sizeof(record->event));
	record->event.flags |= times->event.flags;
	record->id = times->id;
	record->queue = times->queue;
	record->queue_handle = times->queue_handle;
	record->engine = times->engine;
	record->engine_index = times->engine_index;
	record->queued = node->record.event.tick;
	record->submit = times->submit;
	record->start = times->start;
	record->end = times->end;
	record->tile = tile;
	xs_record_end(size);
}

void xs_ze_node_record(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times, bool of_event, uint64_t submit,
		       const struct xs_ze_queue *queue, uint32_t id)
{
	const struct xs_ze_device_info *device = queue->device;
	struct xs_device_record varying = {
		.event.flags = queue->ordinal < 64 && device->copy_only >> queue->ordinal & 1 ? XS_FLAG_COPY_ENGINE : 0,
		.id = id,
		.queue = queue->serial,
		.queue_handle = queue->shown_handle,
		.engine = (uint8_t)(queue->ordinal + 1),
		.engine_index = (uint8_t)queue->index,
		.submit = submit,
		.start = times->global.kernelStart,
		.end = times->global.kernelEnd,
	};
	ze_kernel_timestamp_result_t tiles[XS_ZE_TILES];
	uint32_t count = XS_ZE_TILES;

	/* what the device copied away is one pair of times; only the event itself tells of tiles */
	if (device->tiles && xs_options_of_run()->separate_tiles && of_event && xs_ze.zeEventExp.pfnQueryTimestampsExp &&
	    !xs_ze.zeEventExp.pfnQueryTimestampsExp(node->event, device->handle, &count, tiles)) {
		for (uint32_t i = 0; i < count && i < XS_ZE_TILES; i++) {
			if (i)
				varying.id = xs_ze_next_id();
			varying.start = tiles[i].global.kernelStart;
			varying.end = tiles[i].global.kernelEnd;
			write_record(node, &varying, (uint8_t)(i + 1));
		}
		return;
	}
	write_record(node, &varying, device->tile);
}

bool xs_ze_node_finish(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_acquire);
	ze_kernel_timestamp_result_t times;
	ze_result_t result;

	if ((state & 3) != XS_ZE_PENDING)
		return (state & 3) == XS_ZE_DONE;
	if (!atomic_compare_exchange_strong(&node->state, &state, (state & ~3ull) | XS_ZE_BUSY))
		return (state & 3) == XS_ZE_DONE;
	if (node->saved) {
		result = xs_ze.zeEvent.pfnQueryStatus(node->own);
		times = *node->saved;
	} else {
		result = xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, &times);
	}
	if (result == ZE_RESULT_NOT_READY) {
		atomic_store_explicit(&node->state, state, memory_order_release);
		return false;
	}
	if (!result)
		xs_ze_node_record(node, &times, !node->saved, node->record.event.tick, node->queue, node->record.id);
	if (node->event != node->own)
		xs_ze_event_unlink(node->event, node);
	atomic_store_explicit(&node->state, (state & ~3ull) | XS_ZE_DONE, memory_order_release);
	return true;
}
