/*
 * Level Zero's commands in flight, and the events of ours that they own.
 *
 * Nodes are never freed, so that whoever holds a stale reference finds a node that has been used
 * again, which its count tells.
 */
#include "blocked.h"
#include "level_zero.h"
#include "options.h"

#define CHUNK	   64u	   /* nodes with one pool of events */
#define MAX_CHUNKS 262144u /* as many as links have bits for */

struct xs_ze_pool {
	struct xs_ze_pool *next;
	ze_event_pool_handle_t handle;
	uint32_t first; /* its nodes */
};

typedef _Atomic(struct xs_ze_node *) chunk_slot;
#define BLOCK 512u /* chunks whose places are made together */
static _Atomic(chunk_slot *) blocks[MAX_CHUNKS / BLOCK];
static _Atomic uint32_t chunk_count;

struct xs_ze_node *xs_ze_node_at(uint32_t index)
{
	uint32_t number = index / CHUNK % MAX_CHUNKS;
	chunk_slot *block = atomic_load_explicit(&blocks[number / BLOCK], memory_order_acquire);
	struct xs_ze_node *chunk =
		block ? atomic_load_explicit(&block[number % BLOCK], memory_order_acquire) : NULL;

	return chunk ? &chunk[index % CHUNK] : NULL;
}

/* ---- free ones, of each context ---- */

static void push_free(struct xs_ze_node *node)
{
	_Atomic uint64_t *list = &node->context->free_nodes;
	uint64_t top = atomic_load_explicit(list, memory_order_relaxed);

	do
		atomic_store_explicit(&node->next_free, (uint32_t)top, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(list, &top,
						      ((top >> 32) + 1) << 32 | (node->index + 1),
						      memory_order_release, memory_order_relaxed));
}

static struct xs_ze_node *pop_free(struct xs_ze_context *context)
{
	uint64_t top = atomic_load_explicit(&context->free_nodes, memory_order_acquire);

	while ((uint32_t)top) {
		struct xs_ze_node *node = xs_ze_node_at((uint32_t)top - 1);
		uint64_t next = node ? atomic_load_explicit(&node->next_free, memory_order_relaxed)
				     : 0;

		if (atomic_compare_exchange_weak_explicit(&context->free_nodes, &top,
							  ((top >> 32) + 1) << 32 | next,
							  memory_order_acquire,
							  memory_order_acquire))
			return node;
	}
	return NULL;
}

/* Where the nodes of a chunk are to be found; NULL: there is no memory. */
static chunk_slot *place_of(uint32_t chunk)
{
	chunk_slot *block = atomic_load_explicit(&blocks[chunk / BLOCK], memory_order_acquire),
		   *none = NULL;

	if (!block) {
		block = xs_arena(BLOCK * sizeof(*block));
		/* two threads at once: that of one is lost */
		if (block && !atomic_compare_exchange_strong(&blocks[chunk / BLOCK], &none, block))
			block = none;
	}
	return block ? &block[chunk % BLOCK] : NULL;
}

static bool make_nodes(struct xs_ze_context *context)
{
	ze_event_pool_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
				      .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE |
					       ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP,
				      .count = CHUNK };
	/* the driver may need system calls for a pool */
	struct xs_ze_node *nodes = xs_is_sealed() ? NULL : xs_arena(CHUNK * sizeof(*nodes));
	struct xs_ze_pool *pool = nodes ? xs_arena(sizeof(*pool)) : NULL;
	chunk_slot *place;
	uint32_t chunk;

	if (!nodes || !pool ||
	    xs_ze.zeEventPool.pfnCreate(context->handle, &desc, 0, NULL, &pool->handle))
		return false;
	chunk = atomic_fetch_add_explicit(&chunk_count, 1, memory_order_relaxed);
	place = chunk < MAX_CHUNKS ? place_of(chunk) : NULL;
	if (!place) {
		atomic_fetch_sub_explicit(&chunk_count, 1, memory_order_relaxed);
		(void)xs_ze.zeEventPool.pfnDestroy(pool->handle);
		return false;
	}
	pool->first = chunk * CHUNK;
	for (uint32_t i = 0; i < CHUNK; i++) {
		ze_event_desc_t event = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
					  .index = i,
					  .signal = ZE_EVENT_SCOPE_FLAG_HOST };

		nodes[i].index = pool->first + i;
		nodes[i].context = context;
		if (xs_ze.zeEvent.pfnCreate(pool->handle, &event, &nodes[i].own))
			nodes[i].own = NULL;
	}
	atomic_store_explicit(place, nodes, memory_order_release);
	xs_lock_robust(&context->lock);
	pool->next = context->pools;
	context->pools = pool;
	xs_unlock(&context->lock);
	for (uint32_t i = CHUNK; i--;)
		if (nodes[i].own)
			push_free(&nodes[i]);
	return true;
}

static bool more_nodes(struct xs_ze_context *context)
{
	struct xs_blocked blocked = xs_block();
	bool made = make_nodes(context);

	xs_unblock(blocked);
	return made;
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

	atomic_store_explicit(&node->state, xs_ze_state_of_next_use(state, XS_ZE_FREE),
			      memory_order_release);
	if (node->lost || node->context->dead)
		return;
	(void)xs_ze.zeEvent.pfnHostReset(node->own);
	push_free(node);
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

#define LINK_INDEX	 0xffffffu
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
