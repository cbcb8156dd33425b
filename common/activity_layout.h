/*
 * Where the members of CUPTI's records are. Each version of CUPTI only adds members at the end of a
 * record, from 8.0 to 13.5; so one table serves all, and the length of a record at run time tells
 * which members it has. gpu/cuda/layout.c compares this with the installed headers.
 */
#ifndef XS_ACTIVITY_LAYOUT_H
#define XS_ACTIVITY_LAYOUT_H

#include <stdint.h>
#include <string.h>

/* CUpti_ActivityKind */
#define XS_KIND_MEMCPY		  1
#define XS_KIND_MEMSET		  2
#define XS_KIND_KERNEL		  3
#define XS_KIND_DEVICE		  8
#define XS_KIND_CONCURRENT_KERNEL 10
#define XS_KIND_OVERHEAD	  17
#define XS_KIND_MEMCPY2		  22
#define XS_KIND_UNIFIED_MEMORY	  25
#define XS_KIND_CUDA_EVENT	  36
#define XS_KIND_SYNCHRONIZATION	  38
#define XS_KIND_EXTERNAL	  39
#define XS_KIND_MEMORY2		  49
#define XS_KIND_MEMORY_POOL	  50
#define XS_KIND_GRAPH_TRACE	  51
#define XS_KIND_JIT		  52
#define XS_KIND_DECOMPRESS	  54

/* M(record, member, offset, bytes) */
#define XS_CUDA_LAYOUT(M)                        \
	M(KERNEL, registersPerThread, 6, 2)      \
	M(KERNEL, start, 16, 8)                  \
	M(KERNEL, end, 24, 8)                    \
	M(KERNEL, deviceId, 40, 4)               \
	M(KERNEL, contextId, 44, 4)              \
	M(KERNEL, streamId, 48, 4)               \
	M(KERNEL, gridX, 52, 4)                  \
	M(KERNEL, gridY, 56, 4)                  \
	M(KERNEL, gridZ, 60, 4)                  \
	M(KERNEL, blockX, 64, 4)                 \
	M(KERNEL, blockY, 68, 4)                 \
	M(KERNEL, blockZ, 72, 4)                 \
	M(KERNEL, staticSharedMemory, 76, 4)     \
	M(KERNEL, dynamicSharedMemory, 80, 4)    \
	M(KERNEL, localMemoryPerThread, 84, 4)   \
	M(KERNEL, localMemoryTotal, 88, 4)       \
	M(KERNEL, correlationId, 92, 4)          \
	M(KERNEL, name, 104, 8)                  \
	M(KERNEL, queued, 120, 8)                \
	M(KERNEL, submitted, 128, 8)             \
	M(KERNEL, graphNodeId, 144, 8)           \
	M(KERNEL, graphId, 156, 4)               \
	M(KERNEL, channelID, 168, 4)             \
	M(KERNEL, channelType, 172, 4)           \
	M(KERNEL, clusterX, 176, 4)              \
	M(KERNEL, clusterY, 180, 4)              \
	M(KERNEL, clusterZ, 184, 4)              \
	M(MEMCPY, copyKind, 4, 1)                \
	M(MEMCPY, srcKind, 5, 1)                 \
	M(MEMCPY, dstKind, 6, 1)                 \
	M(MEMCPY, bytes, 8, 8)                   \
	M(MEMCPY, start, 16, 8)                  \
	M(MEMCPY, end, 24, 8)                    \
	M(MEMCPY, deviceId, 32, 4)               \
	M(MEMCPY, contextId, 36, 4)              \
	M(MEMCPY, streamId, 40, 4)               \
	M(MEMCPY, correlationId, 44, 4)          \
	M(MEMCPY, graphNodeId, 64, 8)            \
	M(MEMCPY, graphId, 72, 4)                \
	M(MEMCPY, channelID, 76, 4)              \
	M(MEMCPY, channelType, 80, 4)            \
	M(MEMCPY2, srcDeviceId, 44, 4)           \
	M(MEMCPY2, dstDeviceId, 52, 4)           \
	M(MEMCPY2, correlationId, 60, 4)         \
	M(MEMCPY2, graphNodeId, 72, 8)           \
	M(MEMCPY2, graphId, 80, 4)               \
	M(MEMSET, value, 4, 4)                   \
	M(MEMSET, bytes, 8, 8)                   \
	M(MEMSET, start, 16, 8)                  \
	M(MEMSET, end, 24, 8)                    \
	M(MEMSET, deviceId, 32, 4)               \
	M(MEMSET, contextId, 36, 4)              \
	M(MEMSET, streamId, 40, 4)               \
	M(MEMSET, correlationId, 44, 4)          \
	M(MEMSET, memoryKind, 50, 2)             \
	M(MEMSET, graphNodeId, 64, 8)            \
	M(MEMSET, graphId, 72, 4)                \
	M(MEMSET, channelID, 76, 4)              \
	M(OVERHEAD, overheadKind, 4, 4)          \
	M(OVERHEAD, start, 24, 8)                \
	M(OVERHEAD, end, 32, 8)                  \
	M(SYNCHRONIZATION, type, 4, 4)           \
	M(SYNCHRONIZATION, start, 8, 8)          \
	M(SYNCHRONIZATION, end, 16, 8)           \
	M(SYNCHRONIZATION, correlationId, 24, 4) \
	M(SYNCHRONIZATION, contextId, 28, 4)     \
	M(SYNCHRONIZATION, streamId, 32, 4)      \
	M(SYNCHRONIZATION, cudaEventId, 36, 4)   \
	M(CUDA_EVENT, correlationId, 4, 4)       \
	M(CUDA_EVENT, contextId, 8, 4)           \
	M(CUDA_EVENT, streamId, 12, 4)           \
	M(CUDA_EVENT, eventId, 16, 4)            \
	M(EXTERNAL, externalKind, 4, 4)          \
	M(EXTERNAL, externalId, 8, 8)            \
	M(EXTERNAL, correlationId, 16, 4)        \
	M(MEMORY2, memoryOperationType, 4, 4)    \
	M(MEMORY2, memoryKind, 8, 4)             \
	M(MEMORY2, bytes, 24, 8)                 \
	M(MEMORY2, timestamp, 32, 8)             \
	M(MEMORY_POOL, size, 40, 8)              \
	M(MEMORY_POOL, timestamp, 56, 8)         \
	M(MEMORY_POOL, utilizedSize, 64, 8)      \
	M(UNIFIED_MEMORY, counterKind, 4, 4)     \
	M(UNIFIED_MEMORY, value, 8, 8)           \
	M(UNIFIED_MEMORY, start, 16, 8)          \
	M(UNIFIED_MEMORY, end, 24, 8)            \
	M(UNIFIED_MEMORY, srcId, 40, 4)          \
	M(UNIFIED_MEMORY, dstId, 44, 4)          \
	M(GRAPH_TRACE, correlationId, 4, 4)      \
	M(GRAPH_TRACE, start, 8, 8)              \
	M(GRAPH_TRACE, end, 16, 8)               \
	M(GRAPH_TRACE, deviceId, 24, 4)          \
	M(GRAPH_TRACE, graphId, 28, 4)           \
	M(GRAPH_TRACE, contextId, 32, 4)         \
	M(GRAPH_TRACE, streamId, 36, 4)          \
	M(JIT, jitEntryType, 4, 4)               \
	M(JIT, jitOperationType, 8, 4)           \
	M(JIT, start, 16, 8)                     \
	M(JIT, end, 24, 8)                       \
	M(JIT, correlationId, 32, 4)             \
	M(DECOMPRESS, deviceId, 4, 4)            \
	M(DECOMPRESS, contextId, 8, 4)           \
	M(DECOMPRESS, streamId, 12, 4)           \
	M(DECOMPRESS, correlationId, 24, 4)      \
	M(DECOMPRESS, sourceBytes, 32, 8)        \
	M(DECOMPRESS, start, 48, 8)              \
	M(DECOMPRESS, end, 56, 8)

/* A member of a record of `size` bytes; 0 if this version of CUPTI does not have it. */
static inline uint64_t xs_cuda_take(const unsigned char *data, uint32_t size, uint32_t at,
				    uint32_t bytes)
{
	uint64_t value = 0;

	if (at + bytes <= size)
		memcpy(&value, data + at, bytes); /* little-endian, as all that CUDA runs on */
	return value;
}

enum {
#define XS_CUDA_PLACE(kind, member, at, bytes) \
	xs_at_##kind##_##member = (at), xs_bytes_##kind##_##member = (bytes),
	XS_CUDA_LAYOUT(XS_CUDA_PLACE)
#undef XS_CUDA_PLACE
};
/* Of the record in `data`, of `size` bytes. */
#define XS_CUDA_MEMBER(kind, member) \
	xs_cuda_take(data, size, xs_at_##kind##_##member, xs_bytes_##kind##_##member)

#endif
