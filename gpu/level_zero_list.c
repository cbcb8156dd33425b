/*
 * Level Zero's queues and lists, and the commands of immediate lists.
 */
#include "level_zero.h"

/* of newer headers; older loaders hand them on */
#define LIST_IN_ORDER (1u << 3)
#define QUEUE_IN_ORDER (1u << 1)

static struct xs_handles queues = { .size = 16384 }; /* struct xs_ze_queue * */
static struct xs_handles lists = { .size = 1 << 18 }; /* struct xs_ze_list * */
static struct xs_ze_spare spare_lists;
static _Atomic(struct xs_ze_queue *) all_queues;
static _Atomic uint32_t queue_serial;

struct xs_ze_list *xs_ze_list_of(ze_command_list_handle_t list)
{
	return xs_handle_get(&lists, list);
}

static struct xs_ze_queue *queues_first(void)
{
	return atomic_load_explicit(&all_queues, memory_order_acquire);
}

static struct xs_ze_queue *new_queue(struct xs_ze_context *context, struct xs_ze_device_info *device,
				     const ze_command_queue_desc_t *desc, const void *shown)
{
	struct xs_ze_queue *queue, *unused;

	/* ended ones are used again, once nothing of them is on its way */
	for (queue = queues_first(); queue; queue = queue->next) {
		bool ended = true;

		if (!queue->first && queue->head == atomic_load(&queue->tail) &&
		    atomic_compare_exchange_strong(&queue->ended, &ended, false))
			break;
	}
	unused = queue;
	if (!queue)
		queue = xs_arena(sizeof(*queue));
	if (!queue)
		return NULL;
	queue->context = context;
	queue->device = device;
	queue->serial = atomic_fetch_add_explicit(&queue_serial, 1, memory_order_relaxed) + 1;
	queue->ordinal = desc->ordinal;
	queue->index = desc->index;
	queue->in_order = desc->flags & QUEUE_IN_ORDER;
	queue->shown_handle = (uint64_t)(uintptr_t)shown;
	if (unused)
		return queue;
	queue->head = &queue->stub;
	atomic_store_explicit(&queue->tail, &queue->stub, memory_order_relaxed);
	queue->next = queues_first();
	while (!atomic_compare_exchange_weak_explicit(&all_queues, &queue->next, queue, memory_order_release, memory_order_acquire))
		;
	return queue;
}

static void add_list(ze_context_handle_t context_handle, ze_device_handle_t device_handle, ze_command_list_handle_t handle,
		     const ze_command_queue_desc_t *immediate, uint32_t ordinal, bool in_order)
{
	struct xs_ze_context *context = xs_ze_context_of(context_handle);
	struct xs_ze_device_info *device = context ? xs_ze_device_of(context, device_handle) : NULL;
	_Atomic uint64_t *value = device ? xs_handle_add(&lists, handle) : NULL;
	struct xs_ze_list *list = value ? xs_ze_take_spare(&spare_lists, sizeof(*list)) : NULL;
	struct xs_ze_node *node;

	if (!list)
		return;
	list->context = context;
	list->device = device;
	list->ordinal = ordinal;
	list->in_order = in_order;
	if (immediate)
		list->queue = new_queue(context, device, immediate, handle);
	else
		list->body = xs_ze_body_new(list);
	if (!list->queue && !list->body)
		return;
	atomic_store_explicit(value, (uint64_t)(uintptr_t)list, memory_order_release);
	/* the first events are made here and not at the first command */
	node = xs_ze_node_get(context);
	if (node)
		xs_ze_node_put(node);
	xs_ze_clock(device);
}

ze_result_t xs_hook_zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device, const ze_command_list_desc_t *desc,
					ze_command_list_handle_t *list)
{
	ze_result_t result = xs_ze.zeCommandList.pfnCreate(context, device, desc, list);

	if (!result && xs_ze_device && xs_ze_alive())
		add_list(context, device, *list, NULL, desc->commandQueueGroupOrdinal, desc->flags & LIST_IN_ORDER);
	return result;
}

ze_result_t xs_hook_zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
						 const ze_command_queue_desc_t *desc, ze_command_list_handle_t *list)
{
	ze_result_t result = xs_ze.zeCommandList.pfnCreateImmediate(context, device, desc, list);

	if (!result && xs_ze_device && xs_ze_alive())
		add_list(context, device, *list, desc, desc->ordinal, desc->flags & QUEUE_IN_ORDER);
	return result;
}

ze_result_t xs_hook_zeCommandQueueCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
					 const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *handle)
{
	ze_result_t result = xs_ze.zeCommandQueue.pfnCreate(context_handle, device_handle, desc, handle);
	struct xs_ze_context *context = !result && xs_ze_device && xs_ze_alive() ? xs_ze_context_of(context_handle) : NULL;
	struct xs_ze_device_info *device = context ? xs_ze_device_of(context, device_handle) : NULL;
	_Atomic uint64_t *value = device ? xs_handle_add(&queues, *handle) : NULL;
	struct xs_ze_queue *queue = value ? new_queue(context, device, desc, *handle) : NULL;

	if (queue) {
		queue->handle = *handle;
		atomic_store_explicit(value, (uint64_t)(uintptr_t)queue, memory_order_release);
	}
	return result;
}

struct xs_ze_queue *xs_ze_queue_of(ze_command_queue_handle_t queue)
{
	return xs_handle_get(&queues, queue);
}

/* ---- commands of an immediate list ---- */

void xs_ze_push(struct xs_ze_queue *queue, struct xs_ze_node *node)
{
	struct xs_ze_node *before;

	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	before = atomic_exchange_explicit(&queue->tail, node, memory_order_acq_rel);
	/* pairs with the acquire in xs_ze_collect() */
	atomic_store_explicit(&before->next, node, memory_order_release);
	/* who never waits for anything gets events back all the same */
	if (__builtin_expect((atomic_fetch_add_explicit(&queue->appended, 1, memory_order_relaxed) + 1) % 64 == 0, 0)) {
		xs_ze_collect(queue);
		xs_ze_clock(queue->device);
	}
}

void xs_ze_collect(struct xs_ze_queue *queue)
{
	struct xs_ze_node *next, *old;

	if (atomic_flag_test_and_set_explicit(&queue->collecting, memory_order_acquire))
		return; /* another thread is at it */
	while ((next = atomic_load_explicit(&queue->head->next, memory_order_acquire)) && xs_ze_node_finish(next)) {
		old = queue->head;
		queue->head = next;
		if (old != &queue->stub)
			xs_ze_node_put(old);
	}
	atomic_flag_clear_explicit(&queue->collecting, memory_order_release);
}

/* The list is no more: what is not complete by now (the device is lost, or the application did not wait) tells nothing any more. */
static void abandon(struct xs_ze_queue *queue)
{
	struct xs_ze_node *next;
	uint64_t state;

	xs_ze_collect(queue);
	while ((next = atomic_load_explicit(&queue->head->next, memory_order_acquire))) {
		state = atomic_load_explicit(&next->state, memory_order_acquire);
		/* the device may still signal its event, which cannot be used again */
		if ((state & 3) == XS_ZE_PENDING && atomic_compare_exchange_strong(&next->state, &state, (state & ~3ull) | XS_ZE_DONE))
			next->lost = true;
		xs_ze_collect(queue);
		sched_yield(); /* or another thread is at it */
	}
}

void xs_ze_list_seen(ze_command_list_handle_t handle, ze_result_t result)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;

	if (!list || !list->queue)
		return;
	xs_ze_collect(list->queue);
	xs_ze_clock(list->device);
}

void xs_ze_queue_seen(ze_command_queue_handle_t handle, ze_result_t result)
{
	struct xs_ze_queue *queue = !result && xs_ze_alive() ? xs_ze_queue_of(handle) : NULL;

	if (!queue)
		return;
	xs_ze_collect_executions(queue);
	xs_ze_clock(queue->device);
}

void xs_ze_list_ends(ze_command_list_handle_t handle, bool destroyed)
{
	struct xs_ze_list *list = xs_ze_list_of(handle);

	if (!list || !xs_ze_alive())
		return;
	if (list->queue && destroyed) {
		abandon(list->queue);
		list->queue->ended = true;
	} else if (list->body) {
		xs_ze_body_drop(list->body);
		list->body = destroyed ? NULL : xs_ze_body_new(list);
	}
	if (destroyed || (!list->queue && !list->body)) {
		xs_handle_remove(&lists, handle);
		xs_ze_give_spare(&spare_lists, list);
	}
}

void xs_ze_queue_ends(ze_command_queue_handle_t handle)
{
	struct xs_ze_queue *queue = xs_ze_queue_of(handle);

	if (!queue || !xs_ze_alive())
		return;
	xs_ze_collect_last(queue);
	xs_ze_abandon_executions(queue);
	queue->handle = NULL;
	queue->ended = true;
	xs_handle_remove(&queues, handle);
}

static void collect_queues(const struct xs_ze_context *context)
{
	for (struct xs_ze_queue *queue = queues_first(); queue; queue = queue->next) {
		if (queue->ended || (context && queue->context != context) || queue->context->dead)
			continue;
		xs_ze_collect(queue);
		xs_ze_collect_last(queue);
		xs_ze_clock(queue->device);
	}
}

void xs_ze_collect_context(struct xs_ze_context *context)
{
	if (xs_ze_alive())
		collect_queues(context);
}

/* At exit: what the device has finished by now. */
void xs_ze_collect_all(void)
{
	if (xs_ze_alive())
		collect_queues(NULL);
}
