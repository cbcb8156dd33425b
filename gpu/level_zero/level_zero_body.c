/*
 * What Level Zero executes as a whole, a regular list or a graph: its commands in their order, and
 * where the times of its last execution are copied to when it is executed again before they were
 * read.
 */
#include "blocked.h"
#include "level_zero_execute.h"
#include "level_zero_metrics.h"

static struct xs_spare bodies, slots;

/* ---- where times are copied to ---- */

static void slot_destroy(struct xs_ze_body *body, struct xs_ze_slot *slot)
{
	if (!body->context->dead) {
		if (slot->list)
			(void)xs_ze.zeCommandList.pfnDestroy(slot->list);
		if (slot->times)
			(void)xs_ze.zeMem.pfnFree(body->context->handle, slot->times);
	}
	xs_spare_give(&slots, slot);
}

#define COPIED_AT_ONCE 32u

bool xs_ze_append_copies(ze_command_list_handle_t list, const struct xs_ze_body *body,
			 const struct xs_ze_slot *slot)
{
	ze_event_handle_t events[COPIED_AT_ONCE];
	uint32_t n = 0, done = 0;

	if (xs_ze.zeCommandList.pfnAppendBarrier(list, NULL, 0, NULL))
		return false;
	for (struct xs_ze_node *node = body->first; node;) {
		events[n++] = node->event;
		if (slot->resets && node->saved &&
		    xs_ze.zeCommandList.pfnAppendMemoryCopy(
			    list, &slot->times[body->count + done + n - 1], node->saved,
			    sizeof(*node->saved), NULL, 0, NULL))
			return false;
		node = atomic_load_explicit(&node->next, memory_order_relaxed);
		if (n < COPIED_AT_ONCE && node)
			continue;
		if (xs_ze.zeCommandList.pfnAppendQueryKernelTimestamps(list, n, events,
								       &slot->times[done], NULL,
								       NULL, 0, NULL))
			return false;
		done += n;
		n = 0;
	}
	return !xs_ze.zeCommandList.pfnAppendBarrier(list, NULL, 0, NULL);
}

/* What the driver gives for it. */
static bool slot_make(const struct xs_ze_body *body, struct xs_ze_slot *slot)
{
	ze_command_list_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
					.commandQueueGroupOrdinal = body->ordinal };
	ze_host_mem_alloc_desc_t memory = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	size_t size =
		(slot->resets ? 3 : 1) * (size_t)body->count * sizeof(ze_kernel_timestamp_result_t);
	void *times = NULL;

	if (xs_ze.zeMem.pfnAllocHost(body->context->handle, &memory, size, 64, &times))
		return false;
	slot->times = times;
	return body->graph ||
	       (!xs_ze.zeCommandList.pfnCreate(body->context->handle, body->device->handle, &desc,
					       &slot->list) &&
		xs_ze_append_copies(slot->list, body, slot) &&
		!xs_ze.zeCommandList.pfnClose(slot->list));
}

struct xs_ze_slot *xs_ze_slot_get(struct xs_ze_body *body)
{
	bool resets = body->resets, made;
	struct xs_ze_slot *slot;
	struct xs_blocked blocked;

	for (;;) {
		xs_lock_robust(&xs_ze_execute_lock);
		slot = body->idle;
		if (slot)
			body->idle = slot->next;
		xs_unlock(&xs_ze_execute_lock);
		if (!slot || (slot->resets == resets && slot->changes == body->changes))
			break;
		/* made before the first reset, or it reads other events */
		slot_destroy(body, slot);
	}
	/* the driver may need system calls for the memory of a new one */
	if (slot || xs_is_sealed())
		return slot;
	slot = xs_spare_take_zeroed(&slots, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->resets = resets;
	slot->changes = body->changes;
	blocked = xs_block();
	made = slot_make(body, slot);
	if (!made)
		slot_destroy(body, slot);
	xs_unblock(blocked);
	return made ? slot : NULL;
}

/* ---- bodies ---- */

struct xs_ze_body *xs_ze_body_new(struct xs_ze_list *list)
{
	struct xs_ze_body *body = xs_spare_take_zeroed(&bodies, sizeof(*body));

	if (!body)
		return NULL;
	body->context = list->context;
	body->device = list->device;
	body->ordinal = list->ordinal;
	body->users = 1;
	return body;
}

void xs_ze_body_add(struct xs_ze_body *body, struct xs_ze_node *node)
{
	if (body->graph) /* several threads may append what becomes one graph */
		xs_lock_robust(&xs_ze_execute_lock);
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	if (body->last)
		atomic_store_explicit(&body->last->next, node, memory_order_relaxed);
	else
		body->first = node;
	body->last = node;
	body->measured |= node->query != NULL;
	body->count++;
	if (body->graph)
		xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_body_raced(struct xs_ze_body *body)
{
	uint32_t count = 0;

	xs_lock_robust(&xs_ze_execute_lock);
	for (const struct xs_ze_node *node = body->first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed))
		count++;
	body->count = count;
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_body_untimed(struct xs_ze_body *body)
{
	xs_lock_robust(&xs_ze_execute_lock); /* several threads may append what becomes one graph */
	body->untimed++;
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_body_hold(struct xs_ze_body *body)
{
	xs_lock_robust(&xs_ze_execute_lock);
	body->users++;
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_body_unused(struct xs_ze_list *list, ze_command_list_handle_t handle)
{
	struct xs_ze_query *query = list->begun;

	list->begun = NULL;
	if (handle)
		query = xs_ze_query_end(query, handle, false);
	if (query)
		xs_ze_query_keep(&list->body->unused, query);
}

struct xs_ze_node *xs_ze_body_command(struct xs_ze_body *body, uint64_t command)
{
	struct xs_ze_node *node = body->first;

	while (node && node->command != command)
		node = atomic_load_explicit(&node->next, memory_order_relaxed);
	return node;
}

void xs_ze_body_changes(struct xs_ze_body *body)
{
	struct xs_ze_queue *queue;

	xs_lock_robust(&xs_ze_execute_lock);
	body->changes++;
	queue = body->live ? body->live->queue : NULL;
	xs_unlock(&xs_ze_execute_lock);
	if (queue)
		xs_ze_collect_executions_last(queue);
}

void xs_ze_body_saves(struct xs_ze_body *body)
{
	body->resets = true;
}

void xs_ze_body_shares(struct xs_ze_body *body)
{
	body->shares = true;
}

void xs_ze_body_drop(struct xs_ze_body *body)
{
	struct xs_ze_node *next;
	struct xs_ze_slot *slot;
	uint32_t users;

	xs_lock_robust(&xs_ze_execute_lock);
	users = --body->users;
	xs_unlock(&xs_ze_execute_lock);
	if (users)
		return;
	for (struct xs_ze_node *node = body->first; node; node = next) {
		next = atomic_load_explicit(&node->next, memory_order_relaxed);
		if (node->event != node->own)
			xs_ze_event_unlink(node->event, node);
		if (node->query && !body->context->dead)
			xs_ze_query_put(node->query);
		xs_ze_node_put(node);
	}
	if (!body->context->dead)
		xs_ze_queries_put(body->unused);
	while ((slot = body->idle)) {
		body->idle = slot->next;
		slot_destroy(body, slot);
	}
	xs_spare_give(&bodies, body);
}
