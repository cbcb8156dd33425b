/* The runtime's graphs: its structures are turned into the driver's. */
#include "runtime_api.h"

#include <string.h>

cudaError_t impl_cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuGraphCreate(pGraph, flags));
}

cudaError_t impl_cudaGraphDestroy(cudaGraph_t graph)
{
	return SC_WITH_CONTEXT(cuGraphDestroy(graph));
}

cudaError_t impl_cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
	return SC_WITH_CONTEXT(cuGraphClone(pGraphClone, originalGraph));
}

static CUDA_KERNEL_NODE_PARAMS kernel_of(const struct cudaKernelNodeParams *params)
{
	return (CUDA_KERNEL_NODE_PARAMS){ .func = sc_kernel_of(params->func),
					  .gridDimX = params->gridDim.x,
					  .gridDimY = params->gridDim.y,
					  .gridDimZ = params->gridDim.z,
					  .blockDimX = params->blockDim.x,
					  .blockDimY = params->blockDim.y,
					  .blockDimZ = params->blockDim.z,
					  .sharedMemBytes = params->sharedMemBytes,
					  .kernelParams = params->kernelParams };
}

cudaError_t impl_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					const cudaGraphNode_t *pDependencies,
					size_t numDependencies,
					const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params = kernel_of(pNodeParams);

	return SC_WITH_CONTEXT(
		cuGraphAddKernelNode(pGraphNode, graph, pDependencies, numDependencies, &params));
}

cudaError_t impl_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
						  const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params = kernel_of(pNodeParams);

	return SC_WITH_CONTEXT(cuGraphExecKernelNodeSetParams(hGraphExec, node, &params));
}

cudaError_t impl_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					  const cudaGraphNode_t *pDependencies,
					  size_t numDependencies, void *dst, const void *src,
					  size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy = { .WidthInBytes = count, .Height = 1, .Depth = 1 };

	copy.srcMemoryType = kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
			     : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice
				     ? CU_MEMORYTYPE_DEVICE
				     : CU_MEMORYTYPE_UNIFIED;
	copy.dstMemoryType = kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
			     : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice
				     ? CU_MEMORYTYPE_DEVICE
				     : CU_MEMORYTYPE_UNIFIED;
	copy.srcHost = src;
	copy.srcDevice = (CUdeviceptr)src;
	copy.dstHost = dst;
	copy.dstDevice = (CUdeviceptr)dst;
	return SC_WITH_CONTEXT(cuGraphAddMemcpyNode(pGraphNode, graph, pDependencies,
						    numDependencies, &copy,
						    (CUcontext)sc_current()));
}

cudaError_t impl_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					const cudaGraphNode_t *pDependencies,
					size_t numDependencies,
					const struct cudaMemsetParams *pMemsetParams)
{
	CUDA_MEMSET_NODE_PARAMS params = { .dst = (CUdeviceptr)pMemsetParams->dst,
					   .pitch = pMemsetParams->pitch,
					   .value = pMemsetParams->value,
					   .elementSize = pMemsetParams->elementSize,
					   .width = pMemsetParams->width,
					   .height = pMemsetParams->height };

	return SC_WITH_CONTEXT(cuGraphAddMemsetNode(pGraphNode, graph, pDependencies,
						    numDependencies, &params,
						    (CUcontext)sc_current()));
}

cudaError_t impl_cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
				      const cudaGraphNode_t *pDependencies, size_t numDependencies,
				      const struct cudaHostNodeParams *pNodeParams)
{
	CUDA_HOST_NODE_PARAMS params = { .fn = pNodeParams->fn, .userData = pNodeParams->userData };

	return SC_WITH_CONTEXT(
		cuGraphAddHostNode(pGraphNode, graph, pDependencies, numDependencies, &params));
}

cudaError_t impl_cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
				       const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
	return SC_WITH_CONTEXT(
		cuGraphAddEmptyNode(pGraphNode, graph, pDependencies, numDependencies));
}

cudaError_t impl_cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					    const cudaGraphNode_t *pDependencies,
					    size_t numDependencies, cudaGraph_t childGraph)
{
	return SC_WITH_CONTEXT(cuGraphAddChildGraphNode(pGraphNode, graph, pDependencies,
							numDependencies, childGraph));
}

cudaError_t impl_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
						  cudaGraph_t graph,
						  unsigned int defaultLaunchValue,
						  unsigned int flags)
{
	return SC_WITH_CONTEXT(
		cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)pHandle_out, graph,
					       (CUcontext)sc_current(), defaultLaunchValue, flags));
}

/* of the kinds that have no function of their own */
cudaError_t impl_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
				  const cudaGraphNode_t *pDependencies,
				  const cudaGraphEdgeData *dependencyData, size_t numDependencies,
				  struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams params;
	cudaError_t error;

	(void)dependencyData;
	if (nodeParams->type != cudaGraphNodeTypeConditional)
		return cudaErrorNotSupported;
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = nodeParams->conditional.handle;
	params.conditional.type = (CUgraphConditionalNodeType)nodeParams->conditional.type;
	params.conditional.size = nodeParams->conditional.size;
	error = SC_WITH_CONTEXT(
		cuGraphAddNode(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
	nodeParams->conditional.phGraph_out = params.conditional.phGraph_out;
	return error;
}

cudaError_t impl_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					  const cudaGraphNode_t *to,
					  const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
	(void)edgeData;
	return SC_WITH_CONTEXT(cuGraphAddDependencies(graph, from, to, NULL, numDependencies));
}

cudaError_t impl_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
	return SC_WITH_CONTEXT(cuGraphGetNodes(graph, nodes, numNodes));
}

cudaError_t impl_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
				      unsigned long long flags)
{
	return SC_WITH_CONTEXT(cuGraphInstantiate(pGraphExec, graph, flags));
}

cudaError_t impl_cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
					       unsigned long long flags)
{
	return SC_WITH_CONTEXT(cuGraphInstantiate(pGraphExec, graph, flags));
}

cudaError_t impl_cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
				     cudaGraphExecUpdateResultInfo *resultInfo)
{
	return SC_WITH_CONTEXT(
		cuGraphExecUpdate(hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo));
}

cudaError_t impl_cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	return SC_WITH_CONTEXT(cuGraphExecDestroy(graphExec));
}

cudaError_t impl_cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuGraphUpload(graphExec, stream));
}

cudaError_t impl_cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuGraphLaunch(graphExec, stream));
}

cudaError_t impl_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return SC_WITH_CONTEXT(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t impl_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	return SC_WITH_CONTEXT(cuStreamEndCapture(stream, pGraph));
}

cudaError_t impl_cudaStreamIsCapturing(cudaStream_t stream,
				       enum cudaStreamCaptureStatus *pCaptureStatus)
{
	return SC_WITH_CONTEXT(
		cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)pCaptureStatus));
}
