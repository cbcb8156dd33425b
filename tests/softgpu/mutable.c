/* Commands of regular lists that are changed after they were appended, and graphs: what is appended
 * to an immediate list while it is captured, kept as a list of its own to be executed again and
 * again. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

ze_result_t sg_zeCommandListGetNextCommandIdExp(ze_command_list_handle_t handle,
						const ze_mutable_command_id_exp_desc_t *desc,
						uint64_t *ret)
{
	const struct sg_list *list = (const struct sg_list *)handle;

	SG_ENTER_WITH(handle, desc && ret);
	if (list->queue || list->closed)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	*ret = list->count + 1;
	return SG_OK;
}

static struct sg_cmd *command(struct sg_list *list, uint64_t id)
{
	return !list->queue && id && id <= list->count ? list->cmds[id - 1] : NULL;
}

/* After a change the list wants to be closed again. */
static void changed(struct sg_list *list)
{
	if (atomic_load(&list->users))
		sg_misuse("commands are changed with %u of their list's on their way",
			  atomic_load(&list->users));
	list->closed = false;
}

static ze_result_t change(struct sg_list *list, const ze_base_desc_t *desc)
{
	const ze_mutable_kernel_argument_exp_desc_t *arg = (const void *)desc;
	const ze_mutable_group_count_exp_desc_t *count = (const void *)desc;
	const ze_mutable_group_size_exp_desc_t *size = (const void *)desc;
	struct sg_cmd *cmd = command(list, arg->commandId); /* at one place in all of them */

	if (!cmd || cmd->op != SG_KERNEL)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	switch ((uint32_t)desc->stype) {
	case (uint32_t)ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC:
		if (arg->argIndex >= cmd->kernel->args)
			return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
		if (!arg->argSize || arg->argSize > SOFTGPU_ARG_SIZE || !arg->pArgValue)
			return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
		memcpy(cmd->args + (size_t)arg->argIndex * SOFTGPU_ARG_SIZE, arg->pArgValue,
		       arg->argSize);
		return SG_OK;
	case (uint32_t)ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC:
		memcpy(cmd->groups, count->pGroupCount, sizeof(cmd->groups));
		return SG_OK;
	case (uint32_t)ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC:
		cmd->size[0] = size->groupSizeX;
		cmd->size[1] = size->groupSizeY;
		cmd->size[2] = size->groupSizeZ;
		return SG_OK;
	default:
		return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
	}
}

ze_result_t sg_zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t handle,
						     const ze_mutable_commands_exp_desc_t *desc)
{
	ze_result_t result = SG_OK;

	SG_ENTER_WITH(handle, desc);
	changed((struct sg_list *)handle);
	for (const ze_base_desc_t *next = desc->pNext; next && !result; next = next->pNext)
		result = change((struct sg_list *)handle, next);
	return result;
}

ze_result_t sg_zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t handle,
							       uint64_t id,
							       ze_event_handle_t signal)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_HANDLE(handle);
	cmd = command((struct sg_list *)handle, id);
	if (!cmd)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	changed((struct sg_list *)handle);
	cmd->signal = (struct sg_event *)signal;
	return SG_OK;
}

ze_result_t sg_zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t handle,
							      uint64_t id, uint32_t count,
							      ze_event_handle_t *events)
{
	struct sg_cmd *cmd;

	SG_ENTER();
	SG_HANDLE(handle);
	cmd = command((struct sg_list *)handle, id);
	if (!cmd || count != cmd->nwait || (count && !events))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	changed((struct sg_list *)handle);
	for (uint32_t i = 0; i < count; i++)
		cmd->wait[i] = (struct sg_event *)events[i];
	return SG_OK;
}

struct graph {
	ze_context_handle_t context;
	struct sg_list *list; /* NULL before there is anything in it */
	uint32_t holders;     /* itself and what was made of it */
};

static void graph_release(struct graph *graph)
{
	if (--graph->holders)
		return;
	if (graph->list)
		(void)sg_zeCommandListDestroy((ze_command_list_handle_t)graph->list);
	free(graph);
}

void sg_capture_wait(struct sg_list *list, const struct sg_event *event)
{
	if (!event->captured || (list->capture && list->capture != event->captured))
		return;
	if (event->captured_from != list && event->captured_from->last == event)
		event->captured_from->joined = true;
	if (list->capture)
		return;
	list->capture = event->captured;
	list->forks = event->captured->forks;
	event->captured->forks = list;
	/* the order in which they were appended respects the events, in each execution */
	event->captured->in_order = true;
}

void sg_capture_appended(struct sg_list *list, struct sg_event *signal)
{
	list->joined = false;
	list->last = signal;
	if (!signal)
		return;
	signal->captured = list->capture;
	signal->captured_from = list;
}

/* Nothing is captured into it any more. Returns whether all forks had been joined. */
static bool capture_ends(struct sg_list *graph)
{
	bool joined = true;

	for (struct sg_list *next, *list = graph->forks; list; list = next) {
		next = list->forks;
		joined &= list->joined;
		list->capture = list->forks = NULL;
	}
	for (uint32_t i = 0; i < graph->count; i++)
		if (graph->cmds[i]->signal)
			graph->cmds[i]->signal->captured = NULL;
	graph->forks = NULL;
	graph->closed = true;
	return joined;
}

ze_result_t sg_zeGraphCreateExt(ze_context_handle_t context, const void *next,
				ze_graph_handle_t *ret)
{
	struct graph *graph;

	SG_ENTER_WITH(context, ret);
	graph = calloc(1, sizeof(*graph));
	if (!graph)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	graph->context = context;
	graph->holders = 1;
	*ret = (ze_graph_handle_t)graph;
	return SG_OK;
}

ze_result_t sg_zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t handle,
						     ze_graph_handle_t graph_handle,
						     const void *next)
{
	struct sg_list *list = (struct sg_list *)handle;
	struct graph *graph = (struct graph *)graph_handle;
	ze_result_t result;

	SG_ENTER();
	SG_HANDLE(handle && graph_handle);
	if (!list->queue || list->capture || graph->list)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	result = sg_list_new(list->context, list->device, list->ordinal, list->flags,
			     list->in_order, &graph->list);
	if (!result)
		list->capture = graph->list;
	return result;
}

ze_result_t sg_zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t handle, const void *next)
{
	struct sg_list *list = (struct sg_list *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (!list->queue || list->capture)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	/* it belongs to the graph that the end of the capture makes */
	return sg_list_new(list->context, list->device, list->ordinal, list->flags, list->in_order,
			   &list->capture);
}

ze_result_t sg_zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	return ((struct sg_list *)handle)->capture ? ZE_RESULT_QUERY_TRUE : ZE_RESULT_QUERY_FALSE;
}

/* Without a place for the graph, it is the one that the capture went into. */
ze_result_t sg_zeCommandListEndGraphCaptureExt(ze_command_list_handle_t handle, const void *next,
					       ze_graph_handle_t *ret)
{
	struct sg_list *list = (struct sg_list *)handle;
	ze_result_t result = SG_OK;

	SG_ENTER();
	SG_HANDLE(handle);
	if (!list->capture)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (ret) {
		result = sg_zeGraphCreateExt(list->context, NULL, ret);
		if (!result)
			((struct graph *)*ret)->list = list->capture;
	}
	if (!capture_ends(list->capture))
		result = ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS;
	list->capture = NULL;
	return result;
}

ze_result_t sg_zeGraphIsEmptyExt(ze_graph_handle_t handle)
{
	const struct graph *graph = (const struct graph *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	return graph->list && graph->list->count ? ZE_RESULT_QUERY_FALSE : ZE_RESULT_QUERY_TRUE;
}

ze_result_t sg_zeGraphDestroyExt(ze_graph_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	graph_release((struct graph *)handle);
	return SG_OK;
}

/* What is executed is the graph itself, which nothing can change any more. */
struct executable {
	struct graph *graph;
};

ze_result_t sg_zeGraphInstantiateExt(ze_graph_handle_t handle, const void *next,
				     ze_executable_graph_handle_t *ret)
{
	struct graph *graph = (struct graph *)handle;
	struct executable *executable;

	SG_ENTER_WITH(handle, ret);
	if (!graph->list || !graph->list->closed)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	executable = calloc(1, sizeof(*executable));
	if (!executable)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	executable->graph = graph;
	graph->holders++;
	*ret = (ze_executable_graph_handle_t)executable;
	return SG_OK;
}

ze_result_t sg_zeExecutableGraphGetSourceGraphExt(ze_executable_graph_handle_t handle,
						  ze_graph_handle_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	*ret = (ze_graph_handle_t)((struct executable *)handle)->graph;
	return SG_OK;
}

ze_result_t sg_zeExecutableGraphDestroyExt(ze_executable_graph_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	graph_release(((struct executable *)handle)->graph);
	free(handle);
	return SG_OK;
}

ze_result_t sg_zeCommandListAppendGraphExt(ze_command_list_handle_t list,
					   ze_executable_graph_handle_t handle, const void *next,
					   ze_event_handle_t signal, uint32_t nwait,
					   ze_event_handle_t *wait)
{
	ze_command_list_handle_t graph;

	SG_ENTER();
	SG_HANDLE(list && handle);
	if (((struct sg_list *)list)->capture)
		return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
	graph = (ze_command_list_handle_t)((struct executable *)handle)->graph->list;
	return sg_zeCommandListImmediateAppendCommandListsExp(list, 1, &graph, signal, nwait, wait);
}

/* ---- the same by older names ---- */

ze_result_t sg_zeGraphCreateExp(ze_context_handle_t context, ze_graph_handle_t *ret, void *next)
{
	return sg_zeGraphCreateExt(context, next, ret);
}

ze_result_t sg_zeCommandListBeginCaptureIntoGraphExp(ze_command_list_handle_t list,
						     ze_graph_handle_t graph, const void *next)
{
	return sg_zeCommandListBeginCaptureIntoGraphExt(list, graph, next);
}

ze_result_t sg_zeCommandListBeginGraphCaptureExp(ze_command_list_handle_t list, const void *next)
{
	return sg_zeCommandListBeginGraphCaptureExt(list, next);
}

ze_result_t sg_zeCommandListEndGraphCaptureExp(ze_command_list_handle_t list,
					       ze_graph_handle_t *ret, const void *next)
{
	return sg_zeCommandListEndGraphCaptureExt(list, next, ret);
}

ze_result_t sg_zeCommandListInstantiateGraphExp(ze_graph_handle_t graph,
						ze_executable_graph_handle_t *ret, const void *next)
{
	return sg_zeGraphInstantiateExt(graph, next, ret);
}

ze_result_t sg_zeCommandListAppendGraphExp(ze_command_list_handle_t list,
					   ze_executable_graph_handle_t executable,
					   const void *next, ze_event_handle_t signal,
					   uint32_t nwait, ze_event_handle_t *wait)
{
	return sg_zeCommandListAppendGraphExt(list, executable, next, signal, nwait, wait);
}

ze_result_t sg_zeGraphDestroyExp(ze_graph_handle_t graph)
{
	return sg_zeGraphDestroyExt(graph);
}

ze_result_t sg_zeExecutableGraphDestroyExp(ze_executable_graph_handle_t executable)
{
	return sg_zeExecutableGraphDestroyExt(executable);
}
