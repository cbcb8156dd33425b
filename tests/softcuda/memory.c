/* Memory of devices, of the host (pinned) and of both (managed): all of it is the host's; a table
 * knows whose a pointer is. */
#include "driver.h"

#include <cupti.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 1 << 16 };

static struct sc_block blocks[BLOCKS_MAX];
static unsigned block_count;
static _Atomic unsigned managed_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool sc_block_of(const void *at, struct sc_block *block)
{
	bool found = false;

	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < block_count && !found; i++) {
		found = (const char *)at >= (char *)blocks[i].at &&
			(const char *)at < (char *)blocks[i].at + blocks[i].bytes;
		if (found)
			*block = blocks[i];
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

static void tell(const struct sc_block *block, bool freed, struct sc_stream *stream)
{
	struct sc_allocated told = {
		.freed = freed, .block = *block, .context = sc_current(), .stream = stream
	};

	if (!sc_tool.allocated)
		return;
	told.time = sc_now();
	SC_TELL(allocated, &told);
}

static CUresult allocate(void **at, size_t bytes, uint8_t kind, struct sc_stream *stream, bool pool)
{
	struct sc_context *context = sc_current();
	struct sc_block block = {
		.bytes = bytes, .kind = kind, .pooled = pool, .device = -1, .location = -1
	};

	if (!context)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind != SC_PINNED) {
		block.device = context->device->ordinal;
		if (atomic_fetch_add(&context->device->used, bytes) + bytes > sc_config.memory) {
			atomic_fetch_sub(&context->device->used, bytes);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (kind == SC_MANAGED)
		atomic_fetch_add(&managed_count, 1);
	block.at = aligned_alloc(256, (bytes + 255) / 256 * 256);
	(void)pthread_mutex_lock(&lock);
	if (block.at && block_count < BLOCKS_MAX)
		blocks[block_count++] = block;
	(void)pthread_mutex_unlock(&lock);
	if (!block.at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*at = block.at;
	tell(&block, false, stream);
	return CUDA_SUCCESS;
}

/* says where it was, and that it moves; false: it is there */
static bool move(const void *at, int to, struct sc_migrated *migrated)
{
	bool moved = false;

	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < block_count; i++) {
		if ((const char *)at < (char *)blocks[i].at ||
		    (const char *)at >= (char *)blocks[i].at + blocks[i].bytes)
			continue;
		moved = blocks[i].kind == SC_MANAGED && blocks[i].location != to;
		migrated->from = blocks[i].location;
		migrated->to = blocks[i].location = to;
		migrated->block = blocks[i];
		migrated->bytes = blocks[i].bytes;
	}
	(void)pthread_mutex_unlock(&lock);
	return moved;
}

static void migrate(const void *at, int to, bool fault, struct sc_stream *stream)
{
	struct sc_migrated migrated = { .fault = fault, .stream = stream };

	migrated.start = sc_now();
	if (!move(at, to, &migrated))
		return;
	migrated.end = sc_now() + 1;
	sc_log_note("migrated %llu bytes from %d to %d", (unsigned long long)migrated.bytes,
		    migrated.from, migrated.to);
	SC_TELL(migrated, &migrated);
}

void sc_managed_used(const struct sc_cmd *cmd)
{
	if (!atomic_load_explicit(&managed_count, memory_order_relaxed) || !cmd->args)
		return;
	for (unsigned i = 0; i < cmd->function->info.arg_count; i++)
		if (cmd->function->info.arg_sizes[i] == sizeof(void *))
			migrate(*(void **)cmd->args[i], cmd->context->device->ordinal, true,
				cmd->stream);
}

CUresult impl_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
				    unsigned int flags, CUstream hStream)
{
	struct sc_stream *stream = sc_stream_of(hStream);
	struct sc_block block;

	(void)count, (void)flags;
	if (!stream || !sc_block_of((void *)devPtr, &block) || block.kind != SC_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	(void)sc_stream_drain(stream);
	migrate((void *)devPtr, location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1,
		false, stream);
	return CUDA_SUCCESS;
}

CUresult impl_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
			     CUmemLocation location)
{
	(void)count, (void)advice, (void)location;
	return devPtr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult release(void *at, struct sc_stream *stream)
{
	struct sc_block block = { .at = NULL };

	if (!at)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < block_count; i++) {
		if (blocks[i].at == at) {
			block = blocks[i];
			blocks[i] = blocks[--block_count];
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	if (!block.at)
		return CUDA_ERROR_INVALID_VALUE;
	if (block.device >= 0)
		atomic_fetch_sub(&sc_devices[block.device].used, block.bytes);
	tell(&block, true, stream);
	free(at);
	return CUDA_SUCCESS;
}

/* a call that frees waits for what may still use the memory */
static void drain_all(void)
{
	struct sc_context *context = sc_current();

	for (struct sc_stream *at = context ? context->streams : NULL; at; at = at->next)
		(void)sc_stream_drain(at);
}

CUresult impl_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return allocate((void **)dptr, bytesize, SC_ON_DEVICE, NULL, false);
}

CUresult impl_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
				 size_t Height, unsigned int ElementSizeBytes)
{
	(void)ElementSizeBytes;
	*pPitch = (WidthInBytes + 511) / 512 * 512;
	return impl_cuMemAlloc_v2(dptr, *pPitch * Height);
}

CUresult impl_cuMemFree_v2(CUdeviceptr dptr)
{
	drain_all();
	return release((void *)dptr, NULL);
}

CUresult impl_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	(void)flags;
	return allocate((void **)dptr, bytesize, SC_MANAGED, NULL, false);
}

CUresult impl_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	(void)Flags;
	return allocate(pp, bytesize, SC_PINNED, NULL, false);
}

CUresult impl_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return impl_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult impl_cuMemFreeHost(void *p)
{
	drain_all();
	return release(p, NULL);
}

CUresult impl_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return allocate((void **)dptr, bytesize, SC_ON_DEVICE, sc_stream_of(hStream), true);
}

CUresult impl_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	if (stream)
		(void)sc_stream_drain(stream);
	return release((void *)dptr, stream);
}

CUresult impl_cuMemGetInfo_v2(size_t *free_, size_t *total)
{
	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	*total = sc_config.memory;
	*free_ = sc_config.memory - sc_current()->device->used;
	return CUDA_SUCCESS;
}

CUresult impl_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct sc_block block;

	if (!sc_block_of((void *)dptr, &block))
		return CUDA_ERROR_INVALID_VALUE;
	if (pbase)
		*pbase = (CUdeviceptr)block.at;
	if (psize)
		*psize = block.bytes;
	return CUDA_SUCCESS;
}

CUresult impl_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	(void)Flags;
	*pdptr = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

CUresult impl_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct sc_block block;

	if (!sc_block_of((void *)ptr, &block))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = block.kind == SC_PINNED ? CU_MEMORYTYPE_HOST
							    : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = (void *)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = block.kind == SC_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = block.device;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
