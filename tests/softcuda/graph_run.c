/* Graphs are made from what streams capture, instantiated, and executed: by one command of the
 * stream, which executes the nodes. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static void tell(int cbid, struct sc_graph *graph, struct sc_exec *exec)
{
	struct sc_graph_told told = { .cbid = cbid, .graph = graph, .exec = exec };

	SC_TELL(graph, &told);
}

static void run_nodes(const struct sc_cmd *launch, const struct sc_graph *graph);

static void run_conditional(const struct sc_cmd *launch, const struct sc_node *node)
{
	struct sc_condition *condition = node->condition;

	switch (node->condition_type) {
	case CU_GRAPH_COND_TYPE_IF:
		if (condition->value)
			run_nodes(launch, node->bodies[0]);
		else if (node->body_count > 1)
			run_nodes(launch, node->bodies[1]);
		break;
	case CU_GRAPH_COND_TYPE_WHILE:
		while (condition->value)
			run_nodes(launch, node->bodies[0]);
		break;
	case CU_GRAPH_COND_TYPE_SWITCH:
		if (condition->value < node->body_count)
			run_nodes(launch, node->bodies[condition->value]);
		break;
	default:
		break;
	}
}

static void run_nodes(const struct sc_cmd *launch, const struct sc_graph *graph)
{
	for (const struct sc_node *node = graph->first; node; node = node->next) {
		struct sc_cmd cmd = node->cmd;

		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			run_conditional(launch, node);
		} else if (node->body_count) {
			run_nodes(launch, node->bodies[0]);
		} else {
			if (cmd.kind == SC_KERNEL)
				(void)sc_keep_args(&cmd);
			cmd.corr = launch->corr;
			cmd.thread = launch->thread;
			cmd.context = launch->context;
			cmd.stream = launch->stream;
			cmd.queued = launch->queued;
			cmd.submitted = launch->submitted;
			cmd.graph_id = launch->graph_id;
			cmd.source_graph_id = launch->source_graph_id;
			cmd.node_id = node->id;
			cmd.source_node_id = node->source_id;
			sc_execute(&cmd);
		}
	}
}

static void set_conditions(const struct sc_graph *graph)
{
	for (unsigned i = 0; i < graph->condition_count; i++)
		if (graph->conditions[i]->assign)
			graph->conditions[i]->value = graph->conditions[i]->initial;
}

void sc_graph_run(const struct sc_cmd *cmd)
{
	set_conditions(cmd->exec->graph);
	run_nodes(cmd, cmd->exec->graph);
}

SC_SHARED void softcuda_set_conditional(unsigned long long handle, unsigned value)
{
	((struct sc_condition *)(uintptr_t)handle)->value = value;
}

CUresult impl_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
					  unsigned long long flags)
{
	struct sc_exec *exec = calloc(1, sizeof(*exec));

	if (!hGraph)
		return CUDA_ERROR_INVALID_VALUE;
	exec->flags = flags;
	tell(SC_EXEC_CREATE, (struct sc_graph *)hGraph, exec);
	exec->graph = sc_graph_clone((struct sc_graph *)hGraph);
	exec->id = exec->graph->id;
	tell(SC_EXEC_CREATED, (struct sc_graph *)hGraph, exec);
	*phGraphExec = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return impl_cuGraphInstantiateWithFlags(phGraphExec, hGraph, instantiateParams->flags);
}

CUresult impl_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct sc_exec *exec = (struct sc_exec *)hGraphExec;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	tell(SC_EXEC_DESTROY, exec->graph, exec);
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	(void)hStream;
	return hGraph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult impl_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	struct sc_exec *exec = (struct sc_exec *)hGraph;
	struct sc_cmd cmd = { .kind = SC_GRAPH, .stream = sc_stream_of(hStream), .exec = exec };

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	cmd.graph_id = exec->id;
	cmd.source_graph_id = exec->graph->source_id;
	return sc_submit(&cmd);
}

/* the nodes of both are in the same order, or it cannot be done */
CUresult impl_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
				   CUgraphExecUpdateResultInfo *resultInfo)
{
	struct sc_graph *changed = sc_graph_clone((struct sc_graph *)hGraph);
	struct sc_node *to = ((struct sc_exec *)hGraphExec)->graph->first, *from = changed->first;

	resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (; to && from && to->type == from->type; to = to->next, from = from->next) {
		to->cmd = from->cmd;
		if (to->cmd.kind == SC_KERNEL)
			(void)sc_keep_args(&to->cmd);
	}
	if (to || from)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	resultInfo->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
						const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	uint64_t source = ((struct sc_node *)hNode)->id;
	CUDA_KERNEL_NODE_PARAMS_v3 params = { .func = NULL };

	memcpy(&params, nodeParams, sizeof(*nodeParams));
	for (struct sc_node *node = ((struct sc_exec *)hGraphExec)->graph->first; node;
	     node = node->next)
		if (node->source_id == source)
			return sc_node_kernel(node, &params);
	return CUDA_ERROR_INVALID_VALUE;
}

_Atomic unsigned sc_captures_broken;

/* what a stream is given while it captures: a node, after the one before */
CUresult sc_capture(struct sc_stream *stream, const struct sc_cmd *cmd)
{
	static const CUgraphNodeType types[SC_KINDS] = {
		[SC_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL, [SC_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
		[SC_PEER] = CU_GRAPH_NODE_TYPE_MEMCPY,	 [SC_SET] = CU_GRAPH_NODE_TYPE_MEMSET,
		[SC_HOST] = CU_GRAPH_NODE_TYPE_HOST,	 [SC_GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
	};
	struct sc_graph *graph = stream->capture;
	CUgraphNode before = (CUgraphNode)graph->last;
	struct sc_node *node;

	if (graph->breaks != atomic_load(&sc_captures_broken))
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (cmd->kind == SC_RECORD || cmd->kind == SC_WAIT)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	node = sc_node_add(graph, types[cmd->kind], &before, before != NULL);
	if (cmd->kind == SC_GRAPH) {
		node->bodies[0] = sc_graph_clone(cmd->exec->graph);
		node->body_count = 1;
		return CUDA_SUCCESS;
	}
	node->cmd = *cmd;
	return sc_keep_args(&node->cmd) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult impl_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	(void)mode;
	if (!stream)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	if (stream->capture || stream == stream->context->null_stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	stream->capture = sc_graph_make();
	stream->capture->breaks = atomic_load(&sc_captures_broken);
	tell(SC_GRAPH_CREATED, stream->capture, NULL);
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	struct sc_stream *stream = sc_stream_of(hStream);
	struct sc_graph *graph = stream ? stream->capture : NULL;

	if (!graph)
		return CUDA_ERROR_ILLEGAL_STATE;
	for (struct sc_stream *at = stream->context->streams; at; at = at->next)
		if (at->capture == graph)
			at->capture = NULL;
	if (graph->breaks != atomic_load(&sc_captures_broken)) {
		*phGraph = NULL;
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	*phGraph = (CUgraph)graph;
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	*captureStatus = stream && stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						   : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
					cuuint64_t *id_out, CUgraph *graph_out,
					const CUgraphNode **dependencies_out,
					const CUgraphEdgeData **edgeData_out,
					size_t *numDependencies_out)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	(void)impl_cuStreamIsCapturing(hStream, captureStatus_out);
	if (id_out)
		*id_out = stream && stream->capture ? stream->capture->id : 0;
	if (graph_out)
		*graph_out = stream ? (CUgraph)stream->capture : NULL;
	if (dependencies_out)
		*dependencies_out = NULL;
	if (edgeData_out)
		*edgeData_out = NULL;
	if (numDependencies_out)
		*numDependencies_out = 0;
	return CUDA_SUCCESS;
}
