/* Graphs for CUPTI: their ids, callbacks, and a record of each launch. */
#include "profiler.h"
#include "graph.h"

static void told(const struct sc_graph_told *what)
{
	CUpti_GraphData data = { .graph = (CUgraph)what->graph,
				 .originalGraph = (CUgraph)what->original,
				 .node = (CUgraphNode)what->node,
				 .originalNode = (CUgraphNode)what->original_node,
				 .dependency = (CUgraphNode)what->dependency,
				 .graphExec = (CUgraphExec)what->exec };
	CUpti_ResourceData resource = { .context = (CUcontext)sc_current(),
					.resourceDescriptor = &data };

	if (!su_hears(CUPTI_CB_DOMAIN_RESOURCE, (unsigned)what->cbid))
		return;
	if (what->node)
		data.nodeType = what->node->type;
	su_callback(CUPTI_CB_DOMAIN_RESOURCE, (unsigned)what->cbid, &resource);
}

void su_put_graph(const struct sc_cmd *cmd)
{
	CUpti_ActivityGraphTrace2 record = { .kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE };

	record.correlationId = cmd->corr;
	record.start = cmd->start;
	record.end = cmd->end;
	record.deviceId = record.endDeviceId = (uint32_t)cmd->context->device->ordinal;
	record.contextId = record.endContextId = cmd->context->id;
	record.streamId = cmd->stream->id;
	record.graphId = cmd->graph_id;
	su_put(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, cmd->context, &record);
}

void su_put_host(const struct sc_cmd *cmd)
{
	CUpti_ActivityGraphHostNode node = { .kind = CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE };
	CUpti_ActivityHostLaunch launch = { .kind = CUPTI_ACTIVITY_KIND_HOST_LAUNCH };

	if (cmd->graph_id && su_wants(CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE, cmd->context)) {
		node.streamId = cmd->stream->id;
		node.contextId = cmd->context->id;
		node.deviceId = (uint32_t)cmd->context->device->ordinal;
		node.correlationId = cmd->corr;
		node.graphId = cmd->graph_id;
		node.graphNodeId = cmd->node_id;
		node.processId = sc_pid;
		node.threadId = sc_thread();
		node.start = cmd->start;
		node.end = cmd->end;
		su_put(CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE, cmd->context, &node);
	} else if (!cmd->graph_id && su_wants(CUPTI_ACTIVITY_KIND_HOST_LAUNCH, cmd->context)) {
		launch.streamId = cmd->stream->id;
		launch.contextId = cmd->context->id;
		launch.deviceId = (uint32_t)cmd->context->device->ordinal;
		launch.correlationId = cmd->corr;
		launch.processId = sc_pid;
		launch.threadId = sc_thread();
		launch.start = cmd->start;
		launch.end = cmd->end;
		su_put(CUPTI_ACTIVITY_KIND_HOST_LAUNCH, cmd->context, &launch);
	}
}

void su_tell_graphs(struct sc_tool *tool)
{
	tool->graph = told;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
	SU_BEGIN();
	if (!node || !nodeId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*nodeId = ((struct sc_node *)node)->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
	SU_BEGIN();
	if (!graph || !pId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*pId = ((struct sc_graph *)graph)->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
	SU_BEGIN();
	if (!graphExec || !pId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*pId = ((struct sc_exec *)graphExec)->id;
	return CUPTI_SUCCESS;
}
