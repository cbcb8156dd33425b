/* Pools of memory: what was allocated from one is counted, and given back at once. */
#include "driver.h"

#include <stdlib.h>

CUresult impl_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct sc_pool *made;

	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	made = calloc(1, sizeof(*made));
	made->device = poolProps->location.id;
	*pool = (CUmemoryPool)made;
	SC_TELL(pool, made, SC_POOL_CREATED);
	return CUDA_SUCCESS;
}

CUresult impl_cuMemPoolDestroy(CUmemoryPool pool)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	SC_TELL(pool, (struct sc_pool *)pool, SC_POOL_DESTROYED);
	return CUDA_SUCCESS;
}

CUresult impl_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	((struct sc_pool *)pool)->kept = minBytesToKeep;
	SC_TELL(pool, (struct sc_pool *)pool, SC_POOL_TRIMMED);
	return CUDA_SUCCESS;
}

CUresult impl_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
				      CUstream hStream)
{
	CUresult ret = cuMemAllocAsync(dptr, bytesize, hStream);

	if (!ret && pool)
		((struct sc_pool *)pool)->used += bytesize;
	return ret;
}
