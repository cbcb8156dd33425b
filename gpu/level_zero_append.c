/*
 * Regular lists that are executed by being appended to an immediate one, and graphs: what is appended to an immediate list while it is
 * captured is kept, to be executed as a whole. Both are bodies, whose executions an event of ours behind them tells complete.
 */
#include "level_zero_execute.h"

#ifdef ZE_RECORD_REPLAY_GRAPH_EXT_NAME
typedef ze_executable_graph_handle_t executable_graph;
#else /* older headers */
typedef void *executable_graph;
#endif

static struct xs_handles graphs = { .size = 256 }, executables = { .size = 256 }; /* struct xs_ze_body * */

/* Tells when the batch is complete: an event behind all that is in the list by now. */
static void mark(struct xs_ze_batch *batch, const struct xs_ze_list *immediate, ze_command_list_handle_t handle)
{
	struct xs_ze_node *node;
	ze_result_t result;

	if (batch->submission->users < 2)
		return; /* nobody waits for it */
	node = batch->submission->node = xs_ze_node_get(immediate->context);
	result = !node ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
		 : immediate->in_order ? xs_ze.zeCommandList.pfnAppendSignalEvent(handle, node->own)
				       : xs_ze.zeCommandList.pfnAppendBarrier(handle, node->own, 0, NULL);
	batch->submission->failed = result != ZE_RESULT_SUCCESS;
}

static ze_result_t append(ze_command_list_handle_t handle, uint32_t count, ze_command_list_handle_t *lists, ze_event_handle_t signal,
			  uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_list *immediate = xs_ze_device && xs_ze_alive() && lists ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_batch batch;
	ze_result_t result;

	xs_ze_batch_begin(&batch, immediate && !immediate->body ? immediate->queue : NULL);
	if (!batch.submission)
		return XS_REAL_zeCommandListImmediateAppendCommandListsExp(handle, count, lists, signal, nwait, wait);
	for (uint32_t i = 0; i < count; i++)
		xs_ze_batch_list(&batch, lists[i]);
	result = XS_REAL_zeCommandListImmediateAppendCommandListsExp(handle, batch.count, batch.list, signal, nwait, wait);
	if (!result)
		mark(&batch, immediate, handle);
	xs_ze_batch_end(&batch, result);
	return result;
}

ze_result_t xs_hook_zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t handle, uint32_t count,
								ze_command_list_handle_t *lists, ze_event_handle_t signal, uint32_t nwait,
								ze_event_handle_t *wait)
{
	ze_result_t result = ZE_RESULT_SUCCESS;

	for (; lists && count > XS_ZE_LISTS && !result; count -= XS_ZE_LISTS, lists += XS_ZE_LISTS, nwait = 0, wait = NULL)
		result = append(handle, XS_ZE_LISTS, lists, NULL, nwait, wait);
	return result ? result : append(handle, count, lists, signal, nwait, wait);
}

/* ---- graphs ---- */

void xs_ze_capture_begins(ze_command_list_handle_t handle, const void *graph, ze_result_t result)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;

	if (!list || !list->queue || list->body)
		return;
	list->body = xs_ze_body_new(list);
	list->graph = graph;
	list->untimed = !list->body; /* what is captured must not take nodes of the queue */
	if (list->body)
		list->body->graph = true;
}

void xs_ze_capture_ends(ze_command_list_handle_t handle, const void *graph, ze_result_t result)
{
	struct xs_ze_list *list = !result && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	_Atomic uint64_t *value = list && list->body && list->queue ? xs_handle_add(&graphs, graph ? graph : list->graph) : NULL;

	if (!list || !list->queue)
		return;
	if (value)
		atomic_store_explicit(value, (uint64_t)(uintptr_t)list->body, memory_order_release);
	list->body = NULL; /* without a value it is never given back: the graph may still be executed */
	list->untimed = false;
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

ze_result_t xs_hook_zeCommandListAppendGraphExt(ze_command_list_handle_t handle, executable_graph executable, const void *next,
						ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_list *immediate = xs_ze_device && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_body *body = immediate && !immediate->body ? xs_handle_get(&executables, executable) : NULL;
	struct xs_ze_batch batch;
	struct xs_ze_slot *slot;
	ze_result_t result;

	xs_ze_batch_begin(&batch, body && body->count ? immediate->queue : NULL);
	if (!batch.submission)
		return XS_REAL_zeCommandListAppendGraphExt(handle, executable, next, signal, nwait, wait);
	slot = xs_ze_batch_body(&batch, body);
	if (slot)
		(void)xs_ze_append_copies(handle, body, slot);
	result = XS_REAL_zeCommandListAppendGraphExt(handle, executable, next, signal, nwait, wait);
	if (!result)
		mark(&batch, immediate, handle);
	xs_ze_batch_end(&batch, result);
	return result;
}
