/* The runtime's memory, copies, streams and events: each is a call of the driver. */
#include "runtime_api.h"

#include <string.h>

cudaError_t impl_cudaMalloc(void **devPtr, size_t size)
{
	return SC_WITH_CONTEXT(cuMemAlloc((CUdeviceptr *)devPtr, size));
}

cudaError_t impl_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	return SC_WITH_CONTEXT(cuMemAllocPitch((CUdeviceptr *)devPtr, pitch, width, height, 4));
}

cudaError_t impl_cudaFree(void *devPtr)
{
	return SC_WITH_CONTEXT(cuMemFree((CUdeviceptr)devPtr));
}

cudaError_t impl_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags));
}

cudaError_t impl_cudaMallocHost(void **ptr, size_t size)
{
	return SC_WITH_CONTEXT(cuMemHostAlloc(ptr, size, 0));
}

cudaError_t impl_cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuMemHostAlloc(pHost, size, flags));
}

cudaError_t impl_cudaFreeHost(void *ptr)
{
	return SC_WITH_CONTEXT(cuMemFreeHost(ptr));
}

cudaError_t impl_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	return SC_WITH_CONTEXT(cuMemAllocAsync((CUdeviceptr *)devPtr, size, hStream));
}

cudaError_t impl_cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	return SC_WITH_CONTEXT(cuMemFreeAsync((CUdeviceptr)devPtr, hStream));
}

cudaError_t impl_cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
	CUmemPoolProps props = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
					       .id = poolProps->location.id } };

	return SC_WITH_CONTEXT(cuMemPoolCreate((CUmemoryPool *)memPool, &props));
}

cudaError_t impl_cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	return SC_WITH_CONTEXT(cuMemPoolDestroy((CUmemoryPool)memPool));
}

cudaError_t impl_cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	return SC_WITH_CONTEXT(cuMemPoolTrimTo((CUmemoryPool)memPool, minBytesToKeep));
}

cudaError_t impl_cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
					 cudaStream_t stream)
{
	return SC_WITH_CONTEXT(
		cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, size, (CUmemoryPool)memPool, stream));
}

cudaError_t impl_cudaMemGetInfo(size_t *free_, size_t *total)
{
	return SC_WITH_CONTEXT(cuMemGetInfo(free_, total));
}

static CUresult copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD((CUdeviceptr)dst, src, count);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH(dst, (CUdeviceptr)src, count);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoD((CUdeviceptr)dst, (CUdeviceptr)src, count);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cuMemcpy((CUdeviceptr)dst, (CUdeviceptr)src, count);
	}
	return (CUresult)cudaErrorInvalidMemcpyDirection;
}

static CUresult copy_async(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			   cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync((CUdeviceptr)dst, src, count, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync(dst, (CUdeviceptr)src, count, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync((CUdeviceptr)dst, (CUdeviceptr)src, count, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cuMemcpyAsync((CUdeviceptr)dst, (CUdeviceptr)src, count, stream);
	}
	return (CUresult)cudaErrorInvalidMemcpyDirection;
}

cudaError_t impl_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	return SC_WITH_CONTEXT(copy(dst, src, count, kind));
}

cudaError_t impl_cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
				 cudaStream_t stream)
{
	return SC_WITH_CONTEXT(copy_async(dst, src, count, kind, stream));
}

cudaError_t impl_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind)
{
	return SC_WITH_CONTEXT(copy((char *)(uintptr_t)symbol + offset, src, count, kind));
}

cudaError_t impl_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind)
{
	return SC_WITH_CONTEXT(copy(dst, (const char *)symbol + offset, count, kind));
}

cudaError_t impl_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
				     size_t count, cudaStream_t stream)
{
	CUcontext to, from;

	if (cuDevicePrimaryCtxRetain(&to, dstDevice) || cuDevicePrimaryCtxRetain(&from, srcDevice))
		return cudaErrorInvalidDevice;
	return SC_WITH_CONTEXT(
		cuMemcpyPeerAsync((CUdeviceptr)dst, to, (CUdeviceptr)src, from, count, stream));
}

cudaError_t impl_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
				size_t count)
{
	CUcontext to, from;

	if (cuDevicePrimaryCtxRetain(&to, dstDevice) || cuDevicePrimaryCtxRetain(&from, srcDevice))
		return cudaErrorInvalidDevice;
	return SC_WITH_CONTEXT(cuMemcpyPeer((CUdeviceptr)dst, to, (CUdeviceptr)src, from, count));
}

cudaError_t impl_cudaMemPrefetchAsync(const void *devPtr, size_t count,
				      struct cudaMemLocation location, unsigned int flags,
				      cudaStream_t stream)
{
	CUmemLocation where = { .type = (CUmemLocationType)location.type, .id = location.id };

	return SC_WITH_CONTEXT(
		cuMemPrefetchAsync((CUdeviceptr)devPtr, count, where, flags, stream));
}

cudaError_t impl_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
			       struct cudaMemLocation location)
{
	CUmemLocation where = { .type = (CUmemLocationType)location.type, .id = location.id };

	return SC_WITH_CONTEXT(
		cuMemAdvise((CUdeviceptr)devPtr, count, (CUmem_advise)advice, where));
}

cudaError_t impl_cudaMemset(void *devPtr, int value, size_t count)
{
	return SC_WITH_CONTEXT(cuMemsetD8((CUdeviceptr)devPtr, (unsigned char)value, count));
}

cudaError_t impl_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return SC_WITH_CONTEXT(
		cuMemsetD8Async((CUdeviceptr)devPtr, (unsigned char)value, count, stream));
}

cudaError_t impl_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	struct sc_block block;

	memset(attributes, 0, sizeof(*attributes));
	if (!sc_block_of(ptr, &block))
		return cudaSuccess;
	attributes->type = block.kind == SC_PINNED    ? cudaMemoryTypeHost
			   : block.kind == SC_MANAGED ? cudaMemoryTypeManaged
						      : cudaMemoryTypeDevice;
	attributes->device = block.device < 0 ? 0 : block.device;
	attributes->devicePointer = attributes->hostPointer = (void *)(uintptr_t)ptr;
	return cudaSuccess;
}

cudaError_t impl_cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
					      int priority)
{
	return SC_WITH_CONTEXT(cuStreamCreateWithPriority(pStream, flags, priority));
}

cudaError_t impl_cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuStreamCreate(pStream, flags));
}

cudaError_t impl_cudaStreamCreate(cudaStream_t *pStream)
{
	return SC_WITH_CONTEXT(cuStreamCreate(pStream, 0));
}

cudaError_t impl_cudaStreamDestroy(cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuStreamDestroy(stream));
}

cudaError_t impl_cudaStreamSynchronize(cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuStreamSynchronize(stream));
}

cudaError_t impl_cudaStreamQuery(cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuStreamQuery(stream));
}

cudaError_t impl_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t impl_cudaEventCreate(cudaEvent_t *event)
{
	return SC_WITH_CONTEXT(cuEventCreate(event, 0));
}

cudaError_t impl_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return SC_WITH_CONTEXT(cuEventCreate(event, flags));
}

cudaError_t impl_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return SC_WITH_CONTEXT(cuEventRecord(event, stream));
}

cudaError_t impl_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					  unsigned int flags)
{
	return SC_WITH_CONTEXT(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t impl_cudaEventSynchronize(cudaEvent_t event)
{
	return SC_WITH_CONTEXT(cuEventSynchronize(event));
}

cudaError_t impl_cudaEventQuery(cudaEvent_t event)
{
	return SC_WITH_CONTEXT(cuEventQuery(event));
}

cudaError_t impl_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return SC_WITH_CONTEXT(cuEventElapsedTime(ms, start, end));
}

cudaError_t impl_cudaEventDestroy(cudaEvent_t event)
{
	return SC_WITH_CONTEXT(cuEventDestroy(event));
}
