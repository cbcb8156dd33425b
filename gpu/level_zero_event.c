/*
 * Level Zero's event pools and events of the application: they are created so that they can tell when a command ran, and the application
 * goes on seeing what it asked for.
 */
#include "level_zero.h"

#ifndef ZE_API_VERSION_CURRENT_M /* older headers */
#define ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC ((ze_structure_type_t)0x00020014)
#endif

static struct xs_handles pools = { .size = 4096 };  /* XS_ZE_EVENT_… */
static struct xs_handles events = { .size = 65536 };

_Atomic uint64_t *xs_ze_event_word(ze_event_handle_t event)
{
	return xs_handle_find(&events, event);
}

/* The event tells of the node no more. */
void xs_ze_event_unlink(ze_event_handle_t event, const struct xs_ze_node *node)
{
	_Atomic uint64_t *word = xs_ze_event_word(event);
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

	if (word && (value & XS_ZE_EVENT_LINK) == xs_ze_node_link(node))
		atomic_compare_exchange_strong(word, &value, value & ~XS_ZE_EVENT_LINK);
}

static bool counter_based(const ze_event_pool_desc_t *desc)
{
	for (const ze_base_desc_t *next = desc->pNext; next; next = next->pNext)
		if (next->stype == ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC)
			return true;
	return false;
}

/* A pool that another process opens must be laid out as its flags say; who opens it does not know ours. */
ze_result_t xs_hook_zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *desc, uint32_t count,
				      ze_device_handle_t *devices, ze_event_pool_handle_t *pool)
{
	ze_result_t result = ZE_RESULT_ERROR_UNINITIALIZED;
	uint64_t word = XS_ZE_EVENT_KNOWN;
	ze_event_pool_desc_t ours;
	_Atomic uint64_t *value;

	if (!xs_ze_device || !desc || !xs_ze_alive())
		return xs_ze.zeEventPool.pfnCreate(context, desc, count, devices, pool);
	ours = *desc;
	if (counter_based(desc))
		word |= XS_ZE_EVENT_COUNTS;
	if (desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP)
		word |= XS_ZE_EVENT_TIMED | XS_ZE_EVENT_ASKED;
	else if (!(desc->flags & ZE_EVENT_POOL_FLAG_IPC) && !(word & XS_ZE_EVENT_COUNTS)) {
		ours.flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
		result = xs_ze.zeEventPool.pfnCreate(context, &ours, count, devices, pool);
		if (!result)
			word |= XS_ZE_EVENT_TIMED;
	}
	if (result)
		result = xs_ze.zeEventPool.pfnCreate(context, desc, count, devices, pool);
	value = result ? NULL : xs_handle_add(&pools, *pool);
	if (value)
		atomic_store_explicit(value, word, memory_order_release);
	return result;
}

void xs_ze_pool_ends(ze_event_pool_handle_t pool)
{
	xs_handle_remove(&pools, pool);
}

ze_result_t xs_hook_zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t *desc, ze_event_handle_t *event)
{
	ze_result_t result = xs_ze.zeEvent.pfnCreate(pool, desc, event);
	_Atomic uint64_t *of_pool = !result && xs_ze_device ? xs_handle_find(&pools, pool) : NULL;
	_Atomic uint64_t *word = of_pool ? xs_handle_add(&events, *event) : NULL;

	if (word)
		atomic_store_explicit(word, atomic_load_explicit(of_pool, memory_order_relaxed), memory_order_release);
	return result;
}

/* As it would be without the flag that we added. */
ze_result_t xs_hook_zeEventQueryKernelTimestamp(ze_event_handle_t event, ze_kernel_timestamp_result_t *times)
{
	_Atomic uint64_t *word = xs_ze_device ? xs_ze_event_word(event) : NULL;
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : XS_ZE_EVENT_ASKED;

	if (!(value & XS_ZE_EVENT_ASKED))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	return xs_ze.zeEvent.pfnQueryKernelTimestamp(event, times);
}

/* The node that the event tells of, if it is still the same use of both. */
static struct xs_ze_node *node_of(ze_event_handle_t event)
{
	_Atomic uint64_t *word = xs_ze_event_word(event);
	uint64_t link = word ? atomic_load_explicit(word, memory_order_acquire) & XS_ZE_EVENT_LINK : 0;

	return link ? xs_ze_node_linked(link) : NULL;
}

/* Another thread reads its times just now, which is quick: the event must not change under it. */
static void let_finish(const struct xs_ze_node *node)
{
	while ((atomic_load_explicit(&node->state, memory_order_acquire) & 3) == XS_ZE_BUSY)
		sched_yield();
}

static void take_times(ze_event_handle_t event, bool destroyed)
{
	struct xs_ze_node *node = xs_ze_alive() ? node_of(event) : NULL;
	uint64_t state;

	if (!node)
		return;
	if (node->body) {
		xs_ze_body_event_ends(node, destroyed);
		return;
	}
	if (!xs_ze_node_finish(node)) {
		let_finish(node);
		state = atomic_load_explicit(&node->state, memory_order_relaxed);
		/* its command may never have run; nobody can tell its times any more */
		if (!node->saved && (state & 3) == XS_ZE_PENDING &&
		    atomic_compare_exchange_strong(&node->state, &state, (state & ~3ull) | XS_ZE_DONE))
			xs_count_untimed(1);
	}
}

void xs_ze_event_ends(ze_event_handle_t event)
{
	take_times(event, true);
	xs_handle_remove(&events, event);
	xs_ze_capture_forgets(event);
}

void xs_ze_event_changes(ze_event_handle_t event)
{
	take_times(event, false);
}

void xs_ze_event_seen(ze_event_handle_t event, ze_result_t result)
{
	struct xs_ze_node *node = !result && xs_ze_alive() ? node_of(event) : NULL;
	struct xs_ze_queue *queue;

	if (!node)
		return;
	queue = node->queue;
	if (!queue) /* the others of its list will be found complete later, with the list */
		return;
	xs_ze_collect(queue);
	(void)xs_ze_node_finish(node); /* it may not be its turn */
	xs_ze_clock(queue->device);
}
