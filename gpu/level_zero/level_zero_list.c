/*
 * Level Zero's queues and lists, and the commands of immediate lists.
 */
#include "device_record.h"
#include "level_zero_metrics.h"

/* of newer headers; older loaders hand them on */
#define LIST_IN_ORDER  (1u << 3)
#define QUEUE_IN_ORDER (1u << 1)

static struct xs_handles queues = { .size = 4096 }; /* struct xs_ze_queue * */
struct xs_handles xs_ze_lists = { .size = 16384 };
static struct xs_spare spare_lists;
static _Atomic(struct xs_ze_queue *) all_queues;
static _Atomic uint32_t queue_serial;

static struct xs_ze_queue *queues_first(void)
{
	return atomic_load_explicit(&all_queues, memory_order_acquire);
}

static struct xs_ze_queue *new_queue(struct xs_ze_context *context,
				     struct xs_ze_device_info *device,
				     const ze_command_queue_desc_t *desc, const void *shown)
{
	struct xs_ze_queue *queue, *unused;

	/* ended ones are used again, once nothing of them is on its way */
	for (queue = queues_first(); queue; queue = queue->next) {
		bool ended = true;

		if (!queue->first && !atomic_load(&queue->done) &&
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
	queue->meter = xs_ze_meter_of(context, device);
	queue->serial = atomic_fetch_add_explicit(&queue_serial, 1, memory_order_relaxed) + 1;
	queue->ordinal = desc->ordinal;
	queue->index = desc->index;
	queue->shown_handle = (uint64_t)(uintptr_t)shown;
	queue->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
	queue->flags = queue->ordinal < 64 && device->copy_only >> queue->ordinal & 1
			       ? XS_DEVICE_FLAG_COPY_ENGINE
			       : 0;
	if (unused)
		return queue;
	queue->next = queues_first();
	while (!atomic_compare_exchange_weak_explicit(&all_queues, &queue->next, queue,
						      memory_order_release, memory_order_acquire))
		;
	return queue;
}

static void add_list(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
		     ze_command_list_handle_t handle, const ze_command_queue_desc_t *immediate,
		     uint32_t ordinal, bool in_order)
{
	struct xs_ze_context *context = xs_ze_context_of(context_handle);
	struct xs_ze_device_info *device = context ? xs_ze_device_of(context, device_handle) : NULL;
	_Atomic uint64_t *value = device ? xs_handle_add(&xs_ze_lists, handle) : NULL;
	struct xs_ze_list *list = value ? xs_spare_take_zeroed(&spare_lists, sizeof(*list)) : NULL;
	struct xs_ze_node *node;

	if (!list)
		return;
	list->context = context;
	list->device = device;
	list->meter = xs_ze_meter_of(context, device);
	list->ordinal = ordinal;
	list->in_order = in_order;
	if (immediate)
		list->queue = new_queue(context, device, immediate, handle);
	else
		list->body = xs_ze_body_new(list);
	if (!list->queue && !list->body)
		return;
	list->flags = (uint8_t)(XS_DEVICE_FLAG_TICKS | XS_DEVICE_FLAG_FUNCTION |
				(in_order ? XS_DEVICE_FLAG_IN_ORDER : 0) |
				(list->queue ? list->queue->flags : 0));
	if (list->queue && list->queue->synchronous)
		list->flags |= XS_DEVICE_FLAG_WAITED;
	atomic_store_explicit(value, (uint64_t)(uintptr_t)list, memory_order_release);
	/* the first events are made here and not at the first command */
	node = xs_ze_node_get(context);
	if (node)
		xs_ze_node_put(node);
	xs_ze_clock(device);
}

ze_result_t xs_hook_zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
					const ze_command_list_desc_t *desc,
					ze_command_list_handle_t *list)
{
	ze_result_t result = xs_ze.zeCommandList.pfnCreate(context, device, desc, list);

	if (!result && xs_ze_device && xs_ze_alive())
		add_list(context, device, *list, NULL, desc->commandQueueGroupOrdinal,
			 desc->flags & LIST_IN_ORDER);
	return result;
}

ze_result_t xs_hook_zeCommandListCreateImmediate(ze_context_handle_t context,
						 ze_device_handle_t device,
						 const ze_command_queue_desc_t *desc,
						 ze_command_list_handle_t *list)
{
	ze_result_t result = xs_ze.zeCommandList.pfnCreateImmediate(context, device, desc, list);

	if (!result && xs_ze_device && xs_ze_alive())
		add_list(context, device, *list, desc, desc->ordinal, desc->flags & QUEUE_IN_ORDER);
	return result;
}

ze_result_t xs_hook_zeCommandQueueCreate(ze_context_handle_t context_handle,
					 ze_device_handle_t device_handle,
					 const ze_command_queue_desc_t *desc,
					 ze_command_queue_handle_t *handle)
{
	ze_result_t result =
		xs_ze.zeCommandQueue.pfnCreate(context_handle, device_handle, desc, handle);
	struct xs_ze_context *context =
		!result && xs_ze_device && xs_ze_alive() ? xs_ze_context_of(context_handle) : NULL;
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

/*
 * One more node, behind the last one. The thread that collects reads that one's `next` only when
 * there is something behind it.
 */
struct xs_ze_node *xs_ze_grow(struct xs_ze_queue *queue)
{
	struct xs_ze_node *node = xs_ze_node_get(queue->context),
			  *last = atomic_load_explicit(&queue->newest, memory_order_relaxed);

	if (!node)
		return NULL;
	node->queue = queue;
	node->body = NULL;
	node->saved = NULL;
	xs_ze_record_queue(&node->record, queue);
	queue->size++;
	if (last) {
		atomic_store_explicit(&node->next,
				      atomic_load_explicit(&last->next, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&last->next, node, memory_order_relaxed);
		return node;
	}
	/* the first one is never used as long as it is alone */
	atomic_store_explicit(&node->next, node, memory_order_relaxed);
	atomic_store_explicit(&queue->done, node, memory_order_relaxed);
	atomic_store_explicit(&queue->newest, node, memory_order_release);
	return xs_ze_grow(queue);
}

/*
 * The driver may have the node that was to be pushed, whose event it then signals at any time. And
 * an event of the program may have been linked with it.
 */
void xs_ze_append_left(struct xs_ze_list *list)
{
	struct xs_ze_queue *queue = list->queue;
	struct xs_ze_node *newest =
				  queue ? atomic_load_explicit(&queue->newest, memory_order_relaxed)
					: NULL,
			  *node = newest ? atomic_load_explicit(&newest->next, memory_order_relaxed)
					 : NULL;

	if (list->body)
		xs_ze_body_raced(list->body);
	if (!node || node == newest ||
	    node == atomic_load_explicit(&queue->done, memory_order_acquire))
		return;
	atomic_store_explicit(&newest->next,
			      atomic_load_explicit(&node->next, memory_order_relaxed),
			      memory_order_relaxed);
	queue->size--;
	node->lost = true;
	atomic_store_explicit(&node->state,
			      xs_ze_state_of_next_use(atomic_load_explicit(&node->state,
									   memory_order_relaxed),
						      XS_ZE_FREE),
			      memory_order_release);
}

/*
 * Is no longer in flight; true: the device may still signal its event, or another thread read it.
 */
static bool give_up(struct xs_ze_node *node)
{
	uint32_t rounds = 0;
	uint64_t state;

	if (node->event == node->own)
		return true;
	do
		state = atomic_load_explicit(&node->state, memory_order_acquire);
	/* another thread reads its times */
	while ((state & 3) == XS_ZE_BUSY && xs_wait_a_bit(&rounds));
	if ((state & 3) == XS_ZE_DONE ||
	    !atomic_compare_exchange_strong(&node->state, &state, xs_ze_state(state, XS_ZE_DONE)))
		return false;
	xs_ze_event_unlink(node->event, node);
	return true;
}

static bool is_told(const struct xs_ze_node *node)
{
	return node->event != node->own &&
	       (atomic_load_explicit(&node->state, memory_order_acquire) & 3) == XS_ZE_DONE;
}

void xs_ze_queue_mend(struct xs_ze_queue *queue)
{
	struct xs_ze_look outer;

	xs_ze_collect_others(queue);
	if (!xs_ze_collect_begin(queue, &outer))
		return; /* another time */
	/*
	 * Those that are not complete by now are told at the end. No node is used again: the device
	 * may still signal its event, for one of two commands.
	 */
	atomic_store_explicit(&queue->newest, NULL, memory_order_relaxed);
	atomic_store_explicit(&queue->done, NULL, memory_order_relaxed);
	atomic_store_explicit(&queue->raced, false, memory_order_relaxed);
	queue->size = 0;
	xs_ze_collect_end(queue, &outer);
}

/*
 * The list is destroyed: the times of commands that are not complete by now (lost device, or the
 * application did not wait) cannot be read.
 */
static void abandon(struct xs_ze_queue *queue)
{
	struct xs_ze_node *node, *next, *last, *head;
	uint32_t rounds = 0, left = xs_ze_queue_most(queue);
	struct xs_ze_look outer;
	bool alone;

	while (!(alone = xs_ze_collect_begin(queue, &outer)) && xs_wait_a_bit(&rounds))
		; /* another thread has it */
	last = atomic_load_explicit(&queue->newest, memory_order_acquire);
	head = atomic_load_explicit(&queue->done, memory_order_relaxed);
	/* and that thread has left in the middle: all stays as it is, and is never used again */
	if (!alone) {
		while (head != last && left--) {
			head = atomic_load_explicit(&head->next, memory_order_relaxed);
			xs_commands_untimed(!is_told(head));
		}
		return;
	}
	for (; head != last && left--; head = next) {
		next = atomic_load_explicit(&head->next, memory_order_relaxed);
		next->lost = give_up(next);
		if (next->lost)
			xs_commands_untimed(1);
	}
	node = last;
	atomic_store_explicit(&queue->newest, NULL, memory_order_relaxed);
	atomic_store_explicit(&queue->done, NULL, memory_order_relaxed);
	/* each once, whatever form they have; none that two commands may signal */
	while (node && node->queue == queue) {
		next = atomic_load_explicit(&node->next, memory_order_relaxed);
		node->queue = NULL;
		node->lost |= atomic_load_explicit(&queue->raced, memory_order_relaxed);
		xs_ze_node_put(node);
		node = next;
	}
	atomic_store_explicit(&queue->raced, false, memory_order_relaxed);
	queue->size = 0;
	/* a jump has left them there, and nothing is recorded now: they are no next queue's */
	xs_commands_untimed(queue->batch.count);
	queue->batch.count = 0;
	xs_ze_collect_end(queue, &outer);
}

/* What is complete of one queue. True: not all of it. */
static bool collect_one(struct xs_ze_queue *queue)
{
	xs_ze_collect(queue);
	xs_ze_collect_executions(queue);
	return queue->first ||
	       atomic_load_explicit(&queue->done, memory_order_relaxed) !=
		       atomic_load_explicit(&queue->newest, memory_order_relaxed) ||
	       (queue->meter && atomic_load(&queue->meter->pending_count));
}

static bool is_of(const struct xs_ze_queue *queue, const struct xs_ze_context *context)
{
	return !queue->ended && (!context || queue->context == context) && !queue->context->dead;
}

/*
 * For the last time, of one queue, or of all of a context (NULL: of all contexts): what is in
 * flight gets one time together, so that a program of many lists ends as soon as one of few.
 */
static void collect_last(struct xs_ze_queue *only, const struct xs_ze_context *context)
{
	struct xs_ze_queue *first = only ? only : queues_first(), *queue,
			   *end = only ? only->next : NULL;
	uint64_t deadline = xs_ze_last_chance();
	struct xs_own_time time;
	uint32_t rounds = 0;
	bool pending;

	xs_own_time_begin(&time);
	do {
		pending = false;
		for (queue = first; queue != end; queue = queue->next)
			if (is_of(queue, context))
				pending |= collect_one(queue);
	} while (pending && xs_ze_wait_on(deadline, &rounds));
	for (queue = first; queue != end; queue = queue->next) {
		if (!is_of(queue, context))
			continue;
		xs_ze_collect_others(queue);
		xs_ze_clock(queue->device);
	}
	xs_own_time_end(&time);
}

void xs_ze_list_seen(ze_command_list_handle_t handle, ze_result_t result, uint64_t began)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	struct xs_own_time time;

	if (!list || !list->queue)
		return;
	xs_own_time_begin(&time);
	xs_ze_collect(list->queue);
	xs_ze_collect_executions(list->queue);
	xs_waited(XS_SOURCE_LEVEL_ZERO, began, list->queue->serial, XS_WAITED_SUBMITTED, began);
	xs_ze_clock(list->device);
	xs_own_time_end(&time);
}

void xs_ze_queue_seen(ze_command_queue_handle_t handle, ze_result_t result, uint64_t began)
{
	struct xs_ze_queue *queue = !result && xs_ze_alive() ? xs_ze_queue_of(handle) : NULL;
	struct xs_own_time time;

	if (!queue)
		return;
	xs_own_time_begin(&time);
	xs_ze_collect_executions(queue);
	xs_waited(XS_SOURCE_LEVEL_ZERO, began, queue->serial, XS_WAITED_SUBMITTED, began);
	xs_ze_clock(queue->device);
	xs_own_time_end(&time);
}

void xs_ze_list_ends(ze_command_list_handle_t handle, bool destroyed)
{
	struct xs_ze_list *list = xs_ze_list_of(handle);

	if (!list || !xs_ze_alive())
		return;
	if (list->body && list->queue)
		xs_ze_capture_abandons(list);
	else if (list->begun)
		xs_ze_body_unused(list, NULL);
	if (list->body && !list->queue)
		xs_ze_body_drop(list->body);
	list->body = destroyed || list->queue ? NULL : xs_ze_body_new(list);
	if (list->queue && destroyed) {
		collect_last(list->queue, NULL);
		xs_ze_abandon_executions(list->queue);
		abandon(list->queue);
		list->queue->ended = true;
	}
	if (destroyed || (!list->queue && !list->body)) {
		xs_handle_remove(&xs_ze_lists, handle);
		xs_spare_give(&spare_lists, list);
	}
}

void xs_ze_queue_ends(ze_command_queue_handle_t handle)
{
	struct xs_ze_queue *queue = xs_ze_queue_of(handle);

	if (!queue || !xs_ze_alive())
		return;
	collect_last(queue, NULL);
	xs_ze_abandon_executions(queue);
	queue->handle = NULL;
	queue->ended = true;
	xs_handle_remove(&queues, handle);
}

void xs_ze_collect_context(struct xs_ze_context *context)
{
	if (xs_ze_alive())
		collect_last(NULL, context);
}

/* At exit: what the device has finished by now. */
void xs_ze_collect_all(void)
{
	if (xs_ze_alive() && !xs_is_sealed())
		collect_last(NULL, NULL);
}

void xs_ze_lists_executed(ze_command_queue_handle_t handle, ze_result_t result, uint64_t began)
{
	struct xs_ze_queue *queue = began && !result && xs_ze_alive() ? xs_ze_queue_of(handle)
								      : NULL;

	if (queue && queue->synchronous)
		xs_waited(XS_SOURCE_LEVEL_ZERO, began, queue->serial, XS_WAITED_SUBMITTED,
			  xs_tick(xs_use_tsc));
}
