/* Graphs and their nodes. What is removed stays in memory, as something may still be executed by
 * it. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static _Atomic uint32_t last_id;

static void tell(int cbid, struct sc_graph *graph, struct sc_graph *original, struct sc_node *node,
		 struct sc_node *original_node)
{
	struct sc_graph_told told = { .cbid = cbid,
				      .graph = graph,
				      .original = original,
				      .node = node,
				      .original_node = original_node };

	SC_TELL(graph, &told);
}

struct sc_graph *sc_graph_make(void)
{
	struct sc_graph *graph = calloc(1, sizeof(*graph));

	graph->id = atomic_fetch_add(&last_id, 1) + 1;
	return graph;
}

static void edge_add(struct sc_graph *graph, struct sc_node *from, struct sc_node *to)
{
	struct sc_edge *edge = malloc(sizeof(*edge));
	struct sc_graph_told told = {
		.cbid = SC_DEPENDENCY_CREATED, .graph = graph, .node = to, .dependency = from
	};

	*edge = (struct sc_edge){ graph->edges, from, to };
	graph->edges = edge;
	SC_TELL(graph, &told);
}

struct sc_node *sc_node_add(struct sc_graph *graph, CUgraphNodeType type, const CUgraphNode *after,
			    size_t count)
{
	struct sc_node *node = calloc(1, sizeof(*node));

	node->graph = graph;
	node->type = type;
	node->id = (uint64_t)graph->id << 32 | ++graph->node_ids;
	node->cmd.kind = SC_EMPTY;
	tell(SC_NODE_CREATE, graph, NULL, node, NULL);
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	tell(SC_NODE_CREATED, graph, NULL, node, NULL);
	for (size_t i = 0; i < count; i++)
		edge_add(graph, (struct sc_node *)after[i], node);
	return node;
}

static bool waits_for_another(const struct sc_graph *graph, const struct sc_node *node)
{
	for (const struct sc_edge *edge = graph->edges; edge; edge = edge->next)
		if (edge->to == node && !edge->from->placed)
			return true;
	return false;
}

/* the next node whose dependencies are in place; those that were added first come first */
static struct sc_node *next_in_order(struct sc_graph *graph)
{
	for (struct sc_node *node = graph->first; node; node = node->next)
		if (!node->placed && !waits_for_another(graph, node))
			return node;
	return NULL;
}

static void node_clone(struct sc_graph *graph, struct sc_node *original)
{
	struct sc_node *node = calloc(1, sizeof(*node));

	*node = *original;
	node->next = NULL;
	node->graph = graph;
	node->id = (uint64_t)graph->id << 32 | ++graph->node_ids;
	node->source_id = original->id;
	if (node->cmd.kind == SC_KERNEL && original->cmd.args == original->cmd.arg_at)
		(void)sc_keep_args(&node->cmd);
	original->clone = node;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	tell(SC_NODE_CLONED, graph, original->graph, node, original);
	for (unsigned i = 0; i < node->body_count; i++)
		node->bodies[i] = sc_graph_clone(original->bodies[i]);
}

/* its nodes are in an order that keeps their dependencies */
struct sc_graph *sc_graph_clone(struct sc_graph *original)
{
	struct sc_graph *graph = sc_graph_make();

	graph->source_id = original->id;
	memcpy(graph->conditions, original->conditions, sizeof(graph->conditions));
	graph->condition_count = original->condition_count;
	for (struct sc_node *node = original->first; node; node = node->next)
		node->placed = false;
	tell(SC_GRAPH_CLONED, graph, original, NULL, NULL);
	for (struct sc_node *node; (node = next_in_order(original));) {
		node->placed = true;
		node_clone(graph, node);
	}
	for (struct sc_edge *edge = original->edges; edge; edge = edge->next)
		edge_add(graph, edge->from->clone, edge->to->clone);
	return graph;
}

CUresult impl_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	(void)flags;
	*phGraph = (CUgraph)sc_graph_make();
	tell(SC_GRAPH_CREATED, (struct sc_graph *)*phGraph, NULL, NULL, NULL);
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphDestroy(CUgraph hGraph)
{
	tell(SC_GRAPH_DESTROY, (struct sc_graph *)hGraph, NULL, NULL, NULL);
	return hGraph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult impl_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	*phGraphClone = (CUgraph)sc_graph_clone((struct sc_graph *)originalGraph);
	return CUDA_SUCCESS;
}

CUresult sc_node_kernel(struct sc_node *node, const CUDA_KERNEL_NODE_PARAMS_v3 *params)
{
	struct sc_function *function =
		sc_function_of(params->func ? params->func : (CUfunction)params->kern);

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	node->cmd.kind = SC_KERNEL;
	node->cmd.function = function;
	memcpy(node->cmd.grid, &params->gridDimX, sizeof(node->cmd.grid));
	memcpy(node->cmd.block, &params->blockDimX, sizeof(node->cmd.block));
	node->cmd.shared = params->sharedMemBytes;
	node->cmd.args = params->kernelParams;
	return sc_keep_args(&node->cmd) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult impl_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
				      const CUgraphNode *dependencies, size_t numDependencies,
				      const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS_v3 params = { .func = NULL };
	struct sc_node *node = sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_KERNEL,
					   dependencies, numDependencies);

	memcpy(&params, nodeParams, sizeof(*nodeParams));
	*phGraphNode = (CUgraphNode)node;
	return sc_node_kernel(node, &params);
}

static CUresult node_copy(struct sc_node *node, const CUDA_MEMCPY3D *copy)
{
	static const uint8_t kinds[2][2] = { { 9, 1 }, { 2, 8 } }; /* from, to; 1: the device's */
	struct sc_block block;
	bool from = copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
	bool to = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE;

	node->cmd.kind = SC_COPY;
	node->cmd.from = from ? (void *)copy->srcDevice : copy->srcHost;
	node->cmd.to = to ? (void *)copy->dstDevice : copy->dstHost;
	node->cmd.bytes = copy->WidthInBytes * (copy->Height ? copy->Height : 1) *
			  (copy->Depth ? copy->Depth : 1);
	if (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
		node->cmd.from = (void *)copy->srcDevice;
		from = sc_block_of(node->cmd.from, &block) && block.kind != SC_PINNED;
	}
	if (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
		node->cmd.to = (void *)copy->dstDevice;
		to = sc_block_of(node->cmd.to, &block) && block.kind != SC_PINNED;
	}
	node->cmd.copy_kind = kinds[from][to];
	node->cmd.from_kind = from ? SC_ON_DEVICE : SC_PAGEABLE;
	node->cmd.to_kind = to ? SC_ON_DEVICE : SC_PAGEABLE;
	node->cmd.async = true;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				   const CUgraphNode *dependencies, size_t numDependencies,
				   const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct sc_node *node = sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_MEMCPY,
					   dependencies, numDependencies);

	(void)ctx;
	*phGraphNode = (CUgraphNode)node;
	return node_copy(node, copyParams);
}

CUresult impl_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				   const CUgraphNode *dependencies, size_t numDependencies,
				   const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct sc_node *node = sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_MEMSET,
					   dependencies, numDependencies);

	(void)ctx;
	node->cmd.kind = SC_SET;
	node->cmd.to = (void *)memsetParams->dst;
	node->cmd.to_kind = SC_ON_DEVICE;
	node->cmd.value = memsetParams->value;
	node->cmd.value_size = memsetParams->elementSize;
	node->cmd.bytes = memsetParams->elementSize * memsetParams->width *
			  (memsetParams->height ? memsetParams->height : 1);
	*phGraphNode = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				 const CUgraphNode *dependencies, size_t numDependencies,
				 const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct sc_node *node = sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_HOST,
					   dependencies, numDependencies);

	node->cmd.kind = SC_HOST;
	node->cmd.host = nodeParams->fn;
	node->cmd.host_data = nodeParams->userData;
	*phGraphNode = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				  const CUgraphNode *dependencies, size_t numDependencies)
{
	*phGraphNode = (CUgraphNode)sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_EMPTY,
						dependencies, numDependencies);
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				       const CUgraphNode *dependencies, size_t numDependencies,
				       CUgraph childGraph)
{
	struct sc_node *node = sc_node_add((struct sc_graph *)hGraph, CU_GRAPH_NODE_TYPE_GRAPH,
					   dependencies, numDependencies);

	node->bodies[0] = sc_graph_clone((struct sc_graph *)childGraph);
	node->body_count = 1;
	*phGraphNode = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	*phGraph = (CUgraph)((struct sc_node *)hNode)->bodies[0];
	return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult impl_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
					     CUcontext ctx, unsigned int defaultLaunchValue,
					     unsigned int flags)
{
	struct sc_graph *graph = (struct sc_graph *)hGraph;
	struct sc_condition *condition;

	(void)ctx;
	if (graph->condition_count == SC_BODIES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	condition = calloc(1, sizeof(*condition));
	condition->initial = defaultLaunchValue;
	condition->assign = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
	graph->conditions[graph->condition_count++] = condition;
	*pHandle_out = (CUgraphConditionalHandle)(uintptr_t)condition;
	return CUDA_SUCCESS;
}

static CUresult node_conditional(struct sc_node *node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	static __thread CUgraph bodies[SC_BODIES_MAX];

	if (params->size > SC_BODIES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	node->condition = (struct sc_condition *)(uintptr_t)params->handle;
	node->condition_type = params->type;
	node->body_count = params->size;
	for (unsigned i = 0; i < params->size; i++) {
		node->bodies[i] = sc_graph_make();
		tell(SC_GRAPH_CREATED, node->bodies[i], NULL, NULL, NULL);
		bodies[i] = (CUgraph)node->bodies[i];
	}
	params->phGraph_out = bodies;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
				const CUgraphNode *dependencies,
				const CUgraphEdgeData *dependencyData, size_t numDependencies,
				CUgraphNodeParams *nodeParams)
{
	struct sc_node *node;

	(void)dependencyData;
	switch ((int)nodeParams->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
	case CU_GRAPH_NODE_TYPE_EMPTY:
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return impl_cuGraphAddChildGraphNode(phGraphNode, hGraph, dependencies,
						     numDependencies, nodeParams->graph.graph);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	node = sc_node_add((struct sc_graph *)hGraph, nodeParams->type, dependencies,
			   numDependencies);
	*phGraphNode = (CUgraphNode)node;
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return sc_node_kernel(node, &nodeParams->kernel);
	return nodeParams->type == CU_GRAPH_NODE_TYPE_EMPTY
		       ? CUDA_SUCCESS
		       : node_conditional(node, &nodeParams->conditional);
}

CUresult impl_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
					const CUgraphNode *to, const CUgraphEdgeData *edgeData,
					size_t numDependencies)
{
	(void)edgeData;
	for (size_t i = 0; i < numDependencies; i++)
		edge_add((struct sc_graph *)hGraph, (struct sc_node *)from[i],
			 (struct sc_node *)to[i]);
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	size_t count = 0;

	for (struct sc_node *node = ((struct sc_graph *)hGraph)->first; node; node = node->next) {
		if (nodes && count < *numNodes)
			nodes[count] = (CUgraphNode)node;
		count++;
	}
	*numNodes = count;
	return CUDA_SUCCESS;
}

CUresult impl_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	*type = ((struct sc_node *)hNode)->type;
	return CUDA_SUCCESS;
}
