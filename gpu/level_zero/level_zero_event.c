/*
 * Level Zero's event pools and events of the application: they are created so that they can tell
 * when a command ran, and the application goes on seeing what it asked for.
 */
#include "device_record.h"
#include "level_zero.h"

#ifndef ZE_API_VERSION_CURRENT_M /* older headers */
#define ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC ((ze_structure_type_t)0x00020014)
#endif

/*
 * What zeEventCounterBasedCreate is given (1.15), and the older function of Intel's driver: the
 * same layout, and flags.
 */
struct counter_desc {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
};
/* the device's, or those and the same by the host's clock */
#define COUNTER_TIMES (ZE_BIT(4) | ZE_BIT(5))
#if defined(ZE_API_VERSION_CURRENT_M) && ZE_API_VERSION_CURRENT_M >= ZE_MAKE_VERSION(1, 15)
typedef ze_event_counter_based_desc_t newer_desc;
#else
typedef void newer_desc;
#endif
#define POOL_TIMES (ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_BIT(3)) /* the same two */

static struct xs_handles pools = { .size = 4096 }; /* XS_ZE_EVENT_… */
static struct xs_handles events = { .size = 65536 };
static struct xs_handles homes = { .size = 65536 }; /* of events: their pool */
static struct xs_handles living = { .size = 4096 }; /* of pools: how many events they have */

_Atomic uint64_t *xs_ze_event_word(ze_event_handle_t event)
{
	return xs_handle_find(&events, event);
}

void xs_ze_event_told(ze_event_handle_t event, const struct xs_ze_node *node, uint32_t id)
{
	_Atomic uint64_t *word = xs_ze_event_word(event);
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;
	uint64_t told = id ? XS_ZE_EVENT_TOLD |
					(uint64_t)node->record.queue << XS_ZE_TOLD_QUEUE_SHIFT | id
			   : 0;

	if (word && xs_ze_event_link(value) == xs_ze_node_link(node))
		atomic_compare_exchange_strong(word, &value,
					       (value & ~XS_ZE_EVENT_LINK) |
						       (told &
							(XS_ZE_EVENT_TOLD | XS_ZE_EVENT_LINK)));
}

void xs_ze_event_forgets(_Atomic uint64_t *word)
{
	uint64_t value = atomic_load_explicit(word, memory_order_relaxed);

	if (value & XS_ZE_EVENT_TOLD)
		atomic_compare_exchange_strong(word, &value,
					       value & ~(XS_ZE_EVENT_TOLD | XS_ZE_EVENT_LINK));
}

void xs_ze_event_unlink(ze_event_handle_t event, const struct xs_ze_node *node)
{
	xs_ze_event_told(event, node, 0);
}

void xs_ze_node_link_event(struct xs_ze_node *node, ze_event_handle_t event)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);
	_Atomic uint64_t *word = xs_ze_event_word(event);

	node->event = event;
	atomic_store_explicit(&node->state, xs_ze_state_of_next_use(state, XS_ZE_PENDING),
			      memory_order_release);
	if (word)
		atomic_store_explicit(word,
				      (atomic_load_explicit(word, memory_order_relaxed) &
				       ~(XS_ZE_EVENT_LINK | XS_ZE_EVENT_TOLD)) |
					      xs_ze_node_link(node),
				      memory_order_release);
}

static bool counter_based(const ze_event_pool_desc_t *desc)
{
	for (const ze_base_desc_t *next = desc->pNext; next; next = next->pNext)
		if (next->stype == ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC)
			return true;
	return false;
}

/*
 * A pool that another process opens must be laid out as its flags say; who opens it does not know
 * ours.
 */
ze_result_t xs_hook_zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *desc,
				      uint32_t count, ze_device_handle_t *devices,
				      ze_event_pool_handle_t *pool)
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
	if (desc->flags & POOL_TIMES)
		word |= XS_ZE_EVENT_TIMED | XS_ZE_EVENT_ASKED;
	else if (!(desc->flags & ZE_EVENT_POOL_FLAG_IPC) && !(word & XS_ZE_EVENT_COUNTS)) {
		ours.flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
		result = xs_ze.zeEventPool.pfnCreate(context, &ours, count, devices, pool);
		if (!result)
			word |= XS_ZE_EVENT_TIMED | (desc->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE
							     ? 0
							     : XS_ZE_EVENT_UNSEEN);
	}
	if (result)
		result = xs_ze.zeEventPool.pfnCreate(context, desc, count, devices, pool);
	value = result ? NULL : xs_handle_add(&pools, *pool);
	if (value)
		atomic_store_explicit(value, word, memory_order_release);
	return result;
}

/* The loader's, NULL: it has none. A driver's own may know pools by other handles. */
static ze_result_t (*_Atomic pool_flags)(ze_event_pool_handle_t pool, ze_event_pool_flags_t *flags);

void xs_ze_pools_begin(void)
{
	atomic_store_explicit(&pool_flags, XS_REAL_zeEventPoolGetFlags, memory_order_relaxed);
}

/*
 * Another process's pool: if its flags cannot be read it stays unknown. The program may want its
 * times, which an event of ours would replace.
 */
ze_result_t xs_hook_zeEventPoolOpenIpcHandle(ze_context_handle_t context,
					     ze_ipc_event_pool_handle_t handle,
					     ze_event_pool_handle_t *pool)
{
	ze_result_t result = xs_ze.zeEventPool.pfnOpenIpcHandle(context, handle, pool);
	ze_result_t (*tell)(ze_event_pool_handle_t, ze_event_pool_flags_t *) =
		atomic_load_explicit(&pool_flags, memory_order_relaxed);
	ze_event_pool_flags_t flags = 0;
	_Atomic uint64_t *value;

	if (result || !xs_ze_device || !xs_ze_alive() || !tell || tell(*pool, &flags))
		return result;
	value = xs_handle_add(&pools, *pool);
	if (value)
		atomic_store_explicit(value,
				      XS_ZE_EVENT_KNOWN |
					      (flags & POOL_TIMES
						       ? XS_ZE_EVENT_TIMED | XS_ZE_EVENT_ASKED
						       : 0),
				      memory_order_release);
	return result;
}

/* As they would be without those that we added. */
ze_result_t xs_hook_zeEventPoolGetFlags(ze_event_pool_handle_t pool, ze_event_pool_flags_t *flags)
{
	ze_result_t result = XS_REAL_zeEventPoolGetFlags(pool, flags);
	_Atomic uint64_t *value = !result && xs_ze_device ? xs_handle_find(&pools, pool) : NULL;
	uint64_t word = value ? atomic_load_explicit(value, memory_order_relaxed) : 0;

	if (word & XS_ZE_EVENT_TIMED && !(word & XS_ZE_EVENT_ASKED))
		*flags &= ~(ze_event_pool_flags_t)(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP |
						   (word & XS_ZE_EVENT_UNSEEN
							    ? ZE_EVENT_POOL_FLAG_HOST_VISIBLE
							    : 0));
	return result;
}

static void event_ends(const void *event)
{
	xs_ze_event_ends((ze_event_handle_t)(uintptr_t)event);
}

/*
 * Programs destroy pools and forget their events: nobody may ask these for anything from then on.
 * Those that keep the order cost no walk.
 */
void xs_ze_pool_ends(ze_event_pool_handle_t pool)
{
	_Atomic uint64_t *count = xs_handle_find(&living, pool);

	if (count && atomic_load_explicit(count, memory_order_relaxed))
		xs_handle_each(&homes, (uintptr_t)pool, event_ends);
	xs_handle_remove(&living, pool);
	xs_handle_remove(&pools, pool);
}

static void move_in(ze_event_handle_t event, ze_event_pool_handle_t pool)
{
	_Atomic uint64_t *count = xs_handle_add(&living, pool);
	_Atomic uint64_t *home = count ? xs_handle_add(&homes, event) : NULL;

	if (!home)
		return;
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	atomic_store_explicit(home, (uintptr_t)pool, memory_order_release);
}

static void move_out(ze_event_handle_t event)
{
	void *pool = xs_handle_get(&homes, event);
	_Atomic uint64_t *count = pool ? xs_handle_find(&living, pool) : NULL;

	xs_handle_remove(&homes, event);
	if (count)
		atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
}

ze_result_t xs_hook_zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t *desc,
				  ze_event_handle_t *event)
{
	ze_result_t result = xs_ze.zeEvent.pfnCreate(pool, desc, event);
	_Atomic uint64_t *of_pool = !result && xs_ze_device ? xs_handle_find(&pools, pool) : NULL;
	_Atomic uint64_t *word = of_pool ? xs_handle_add(&events, *event) : NULL;

	if (word) {
		atomic_store_explicit(word, atomic_load_explicit(of_pool, memory_order_relaxed),
				      memory_order_release);
		move_in(*event, pool);
	}
	return result;
}

/* One of no pool. */
static ze_result_t counter_created(ze_result_t result, const struct counter_desc *desc,
				   const ze_event_handle_t *event)
{
	_Atomic uint64_t *word =
		!result && xs_ze_device && xs_ze_alive() ? xs_handle_add(&events, *event) : NULL;
	uint64_t value = XS_ZE_EVENT_KNOWN | XS_ZE_EVENT_COUNTS;

	if (desc && desc->flags & COUNTER_TIMES)
		value |= XS_ZE_EVENT_TIMED | XS_ZE_EVENT_ASKED;
	if (word)
		atomic_store_explicit(word, value, memory_order_release);
	return result;
}

ze_result_t xs_hook_zeEventCounterBasedCreate(ze_context_handle_t context,
					      ze_device_handle_t device, const newer_desc *desc,
					      ze_event_handle_t *event)
{
	return counter_created(XS_REAL_zeEventCounterBasedCreate(context, device, desc, event),
			       (const void *)desc, event);
}

ze_result_t xs_hook_zexCounterBasedEventCreate2(ze_context_handle_t context,
						ze_device_handle_t device, const void *desc,
						ze_event_handle_t *event)
{
	return counter_created(XS_REAL_zexCounterBasedEventCreate2(context, device, desc, event),
			       desc, event);
}

/* As it would be without the flag that we added. */
ze_result_t xs_hook_zeEventQueryKernelTimestamp(ze_event_handle_t event,
						ze_kernel_timestamp_result_t *times)
{
	_Atomic uint64_t *word = xs_ze_device ? xs_ze_event_word(event) : NULL;
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

	if (value & XS_ZE_EVENT_TIMED && !(value & XS_ZE_EVENT_ASKED))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	return xs_ze.zeEvent.pfnQueryKernelTimestamp(event, times);
}

/* The node that the event tells of, if it is still the same use of both. */
static struct xs_ze_node *node_of(ze_event_handle_t event)
{
	_Atomic uint64_t *word = xs_ze_event_word(event);
	uint64_t link = word ? xs_ze_event_link(atomic_load_explicit(word, memory_order_acquire))
			     : 0;

	return link ? xs_ze_node_linked(link) : NULL;
}

/* Another thread reads its times just now, which is quick: the event must not change under it. */
static void let_finish(struct xs_ze_node *node)
{
	uint32_t rounds = 0;

	while ((atomic_load_explicit(&node->state, memory_order_acquire) & 3) == XS_ZE_BUSY)
		if (!xs_wait_a_bit(&rounds))
			(void)xs_ze_node_abandon(node);
}

static void take_times(ze_event_handle_t event, bool destroyed)
{
	_Atomic uint64_t *word = xs_ze_alive() ? xs_ze_event_word(event) : NULL;
	struct xs_ze_node *node = word ? node_of(event) : NULL;
	struct xs_own_time time;

	if (!node) {
		if (word)
			xs_ze_event_forgets(word);
		return;
	}
	if (node->body) {
		xs_ze_body_event_ends(node, destroyed);
		return;
	}
	xs_own_time_begin(&time);
	if (!xs_ze_node_finish(node)) {
		let_finish(node);
		xs_ze_node_lost(node); /* its command may never have run */
	}
	xs_own_time_end(&time);
}

void xs_ze_event_ends(ze_event_handle_t event)
{
	take_times(event, true);
	move_out(event);
	xs_handle_remove(&events, event);
	xs_ze_capture_forgets(event);
}

void xs_ze_event_changes(ze_event_handle_t event)
{
	take_times(event, false);
}

/* The host does what its command was to do: from then on nothing tells of the command. */
void xs_ze_event_signalled(ze_event_handle_t event)
{
	_Atomic uint64_t *word = xs_ze_alive() ? xs_ze_event_word(event) : NULL;

	take_times(event, false);
	if (word)
		(void)atomic_fetch_or(word, XS_ZE_EVENT_HOST);
}

/* A call that began then and waited for the event has waited for the event's command. */
static void waited(ze_event_handle_t event, uint64_t began)
{
	_Atomic uint64_t *word = began ? xs_ze_event_word(event) : NULL;
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;
	struct xs_ze_node *node = word ? xs_ze_node_linked(xs_ze_event_link(value)) : NULL;
	struct xs_ze_submit submit;
	uint32_t queue;

	if (value & XS_ZE_EVENT_TOLD)
		xs_waited(XS_SOURCE_LEVEL_ZERO, began,
			  (value & XS_ZE_EVENT_LINK) >> XS_ZE_TOLD_QUEUE_SHIFT, XS_WAITED_COMMAND,
			  (uint32_t)value);
	else if (node && node->body && xs_ze_body_submit(node->body, &submit, &queue))
		xs_waited(XS_SOURCE_LEVEL_ZERO, began, queue, XS_WAITED_SUBMITTED, submit.tick);
}

void xs_ze_event_seen(ze_event_handle_t event, ze_result_t result, uint64_t began)
{
	struct xs_ze_node *node = !result && xs_ze_alive() ? node_of(event) : NULL;
	struct xs_ze_queue *queue = node ? node->queue : NULL;
	struct xs_own_time time;

	if (queue) { /* else the others of its list will be found complete later, with the list */
		xs_own_time_begin(&time);
		xs_ze_collect(queue);
		if (xs_recording())
			(void)xs_ze_node_finish(node); /* it may not be its turn */
		xs_ze_clock(queue->device);
		xs_own_time_end(&time);
	}
	if (!result && xs_ze_alive())
		waited(event, began);
}
