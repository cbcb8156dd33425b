/*
 * Regular lists that are executed by being appended to an immediate one, and graphs: what is
 * appended to an immediate list while it is captured is kept, to be executed as a whole. Both are
 * bodies, whose executions an event of ours behind them tells complete.
 */
#include "level_zero_execute.h"
#include "level_zero_metrics.h"

#ifdef ZE_RECORD_REPLAY_GRAPH_EXT_NAME
typedef ze_executable_graph_handle_t executable_graph;
#else /* older headers */
typedef void *executable_graph;
#endif

/* struct xs_ze_body * */
static struct xs_handles graphs = { .size = 256 }, executables = { .size = 256 };

/* Tells when the batch is complete: an event behind all that is in the list by now. */
static void mark(struct xs_ze_batch *batch, const struct xs_ze_list *immediate,
		 ze_command_list_handle_t handle)
{
	struct xs_ze_node *node;
	ze_result_t result;

	if (batch->submission->users < 2)
		return; /* nobody waits for it */
	node = batch->submission->node = xs_ze_node_get(immediate->context);
	result = !node ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
		 : immediate->in_order
			 ? xs_ze.zeCommandList.pfnAppendSignalEvent(handle, node->own)
			 : xs_ze.zeCommandList.pfnAppendBarrier(handle, node->own, 0, NULL);
	batch->submission->failed = result != ZE_RESULT_SUCCESS;
}

/* next NULL: by the older of the two functions. */
static ze_result_t call(ze_command_list_handle_t handle, uint32_t count,
			ze_command_list_handle_t *lists, const void *const *next,
			ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	return next ? XS_REAL_zeCommandListImmediateAppendCommandListsWithParameters(handle, count,
										     lists, *next,
										     signal, nwait,
										     wait)
		    : XS_REAL_zeCommandListImmediateAppendCommandListsExp(handle, count, lists,
									  signal, nwait, wait);
}

static ze_result_t append(ze_command_list_handle_t handle, uint32_t count,
			  ze_command_list_handle_t *lists, const void *const *next,
			  ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_list *immediate =
		xs_ze_device && xs_ze_alive() && lists ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_batch batch;
	ze_result_t result;

	xs_ze_batch_begin(&batch, immediate && !immediate->body ? immediate->queue : NULL, count);
	if (!batch.submission) {
		result = call(handle, count, lists, next, signal, nwait, wait);
		xs_ze_batch_end(&batch, result);
		return result;
	}
	for (uint32_t i = 0; i < count; i++)
		xs_ze_batch_list(&batch, lists[i]);
	xs_ze_batch_ready(&batch);
	result = call(handle, batch.count, batch.list, next, signal, nwait, wait);
	xs_ze_batch_called(&batch);
	if (!result)
		mark(&batch, immediate, handle);
	xs_ze_batch_end(&batch, result);
	return result;
}

static ze_result_t append_all(ze_command_list_handle_t handle, uint32_t count,
			      ze_command_list_handle_t *lists, const void *const *next,
			      ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	ze_result_t result = ZE_RESULT_SUCCESS;

	for (; lists && count > XS_ZE_LISTS && !result;
	     count -= XS_ZE_LISTS, lists += XS_ZE_LISTS, nwait = 0, wait = NULL)
		result = append(handle, XS_ZE_LISTS, lists, next, NULL, nwait, wait);
	return result ? result : append(handle, count, lists, next, signal, nwait, wait);
}

ze_result_t xs_hook_zeCommandListImmediateAppendCommandListsExp(
	ze_command_list_handle_t handle, uint32_t count, ze_command_list_handle_t *lists,
	ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	return append_all(handle, count, lists, NULL, signal, nwait, wait);
}

ze_result_t xs_hook_zeCommandListImmediateAppendCommandListsWithParameters(
	ze_command_list_handle_t handle, uint32_t count, ze_command_list_handle_t *lists,
	const void *next, ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	return append_all(handle, count, lists, &next, signal, nwait, wait);
}

/* ---- graphs ---- */

_Atomic uint32_t xs_ze_captures;
static struct xs_ze_body *captures; /* that go on */
/* events that a captured list signals: the number of the capture */
static struct xs_handles signalled = { .size = 256 };

/* The list's commands go into the body from here on. With the lock held. */
static void join(struct xs_ze_list *list, struct xs_ze_body *body)
{
	list->body = body;
	list->captured = body->captured;
	body->captured = list;
}

/* The list is captured no more. With the lock held. */
static void leave(struct xs_ze_list *list)
{
	struct xs_ze_list **link = &list->body->captured;

	while (*link && *link != list)
		link = &(*link)->captured;
	if (*link)
		*link = list->captured;
	list->body = NULL;
	list->captured = NULL;
}

/* With the lock held. */
static void capture_ends(struct xs_ze_body *body)
{
	struct xs_ze_body **link = &captures;

	while (*link && *link != body)
		link = &(*link)->next_capture;
	if (!*link)
		return;
	*link = body->next_capture;
	body->capture = 0;
	atomic_fetch_sub_explicit(&xs_ze_captures, 1, memory_order_relaxed);
}

void xs_ze_capture_begins(ze_command_list_handle_t handle, const void *graph, ze_result_t result)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	static uint64_t count;
	struct xs_ze_body *body;

	if (!list || !list->queue || list->body)
		return;
	list->graph = graph;
	body = xs_ze_body_new(list);
	list->untimed = !body; /* what is captured must not take nodes of the queue */
	if (!body)
		return;
	body->graph = true;
	xs_lock_robust(&xs_ze_execute_lock);
	body->capture = ++count;
	body->number = (uint32_t)count;
	body->next_capture = captures;
	captures = body;
	join(list, body);
	atomic_fetch_add_explicit(&xs_ze_captures, 1, memory_order_relaxed);
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_capture_follow(ze_command_list_handle_t handle, ze_event_handle_t signal, uint32_t nwait,
			  const ze_event_handle_t *wait)
{
	struct xs_ze_list *list = xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	_Atomic uint64_t *number;

	if (!list || !list->queue)
		return;
	list->captured_now = false;
	for (uint32_t i = 0; wait && i < nwait && !list->body; i++) {
		number = xs_handle_find(&signalled, wait[i]);
		if (!number)
			continue;
		xs_lock_robust(&xs_ze_execute_lock);
		for (struct xs_ze_body *body = captures; body && !list->body;
		     body = body->next_capture)
			if (body->capture == atomic_load_explicit(number, memory_order_relaxed)) {
				body->users++;
				join(list, body);
				list->captured_now = true;
			}
		xs_unlock(&xs_ze_execute_lock);
	}
	if (!signal)
		return;
	number = list->body ? xs_handle_add(&signalled, signal)
			    : xs_handle_find(&signalled, signal);
	if (number)
		atomic_store_explicit(number, list->body ? list->body->capture : 0,
				      memory_order_relaxed);
}

void xs_ze_capture_forgets(ze_event_handle_t event)
{
	xs_handle_remove(&signalled, event);
}

void xs_ze_capture_abandons(struct xs_ze_list *list)
{
	struct xs_ze_body *body = list->body;

	xs_lock_robust(&xs_ze_execute_lock);
	leave(list);
	if (!body->captured)
		capture_ends(body);
	xs_unlock(&xs_ze_execute_lock);
	xs_ze_body_drop(body);
}

void xs_ze_capture_spread(ze_command_list_handle_t handle, ze_result_t result)
{
	struct xs_ze_list *list =
		result && atomic_load_explicit(&xs_ze_captures, memory_order_relaxed)
			? xs_ze_list_of(handle)
			: NULL;

	if (list && list->captured_now && list->body)
		xs_ze_capture_abandons(list);
}

void xs_ze_capture_ends(ze_command_list_handle_t handle, const void *graph, ze_result_t result)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_body *body = list && list->queue ? list->body : NULL;
	_Atomic uint64_t *value = body ? xs_handle_add(&graphs, graph ? graph : list->graph) : NULL;

	if (!list || !list->queue)
		return;
	list->untimed = false;
	if (!body)
		return;
	if (value)
		atomic_store_explicit(value, (uint64_t)(uintptr_t)body, memory_order_release);
	xs_lock_robust(&xs_ze_execute_lock);
	while (body->captured) {
		leave(body->captured);
		body->users--;
	}
	/* the graph; without a value it is never given back: it may still be executed */
	body->users++;
	capture_ends(body);
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_graph_instantiated(const void *graph, const void *executable, ze_result_t result)
{
	struct xs_ze_body *body = !result && xs_ze_alive() ? xs_handle_get(&graphs, graph) : NULL;
	_Atomic uint64_t *value = body ? xs_handle_add(&executables, executable) : NULL;

	if (!value)
		return;
	xs_ze_body_hold(body);
	atomic_store_explicit(value, (uint64_t)(uintptr_t)body, memory_order_release);
}

static void ends(struct xs_handles *handles, const void *handle)
{
	struct xs_ze_body *body = xs_ze_alive() ? xs_handle_get(handles, handle) : NULL;

	if (!body)
		return;
	xs_handle_remove(handles, handle);
	xs_ze_body_drop(body);
}

void xs_ze_graph_ends(const void *graph)
{
	ends(&graphs, graph);
}

void xs_ze_executable_ends(const void *executable)
{
	ends(&executables, executable);
}

typedef ze_result_t (*append_function)(ze_command_list_handle_t handle, executable_graph executable,
				       const void *next, ze_event_handle_t signal, uint32_t nwait,
				       ze_event_handle_t *wait);

/* A graph is executed as the driver sees fit: it is measured as a whole, if there are kernels. */
static struct xs_ze_query *begin_query(const struct xs_ze_list *immediate,
				       const struct xs_ze_batch *batch,
				       ze_command_list_handle_t handle, uint32_t nwait,
				       ze_event_handle_t *wait)
{
	const struct xs_ze_node *node = immediate->meter && batch->first ? batch->first->body->first
									 : NULL;

	while (node && !node->record.kernel)
		node = atomic_load_explicit(&node->next, memory_order_relaxed);
	return node ? xs_ze_query_begin(immediate->meter, handle, nwait, wait) : NULL;
}

static ze_result_t append_graph(append_function real, ze_command_list_handle_t handle,
				executable_graph executable, const void *next,
				ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_list *immediate = xs_ze_device && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_body *body =
		immediate && !immediate->body ? xs_handle_get(&executables, executable) : NULL;
	struct xs_ze_batch batch;
	struct xs_ze_query *query;
	struct xs_ze_slot *slot;
	ze_result_t result;

	xs_ze_batch_begin(&batch, body && (body->count || body->untimed) ? immediate->queue : NULL,
			  0);
	if (!batch.submission)
		return real(handle, executable, next, signal, nwait, wait);
	slot = xs_ze_batch_body(&batch, body);
	if (slot)
		(void)xs_ze_append_copies(handle, body, slot);
	query = begin_query(immediate, &batch, handle, nwait, wait);
	xs_ze_batch_ready(&batch);
	result = real(handle, executable, next, signal, nwait, wait);
	xs_ze_batch_called(&batch);
	if (query)
		batch.first->query = xs_ze_query_end(query, handle, true);
	if (!result)
		mark(&batch, immediate, handle);
	xs_ze_batch_end(&batch, result);
	return result;
}

ze_result_t xs_hook_zeCommandListAppendGraphExt(ze_command_list_handle_t handle,
						executable_graph executable, const void *next,
						ze_event_handle_t signal, uint32_t nwait,
						ze_event_handle_t *wait)
{
	return append_graph(XS_REAL_zeCommandListAppendGraphExt, handle, executable, next, signal,
			    nwait, wait);
}

ze_result_t xs_hook_zeCommandListAppendGraphExp(ze_command_list_handle_t handle, void *executable,
						const void *next, ze_event_handle_t signal,
						uint32_t nwait, ze_event_handle_t *wait)
{
	return append_graph((append_function)XS_REAL_zeCommandListAppendGraphExp, handle,
			    executable, next, signal, nwait, wait);
}
