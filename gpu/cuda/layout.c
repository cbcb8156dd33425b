/*
 * Does what the drain process knows of CUPTI's records (common/activity_layout.h) fit the installed
 * headers? Compiled, never called.
 */
#include <assert.h>
#include <cupti.h>
#if __has_include(<cupti_activity_deprecated.h>)
#include <cupti_activity_deprecated.h>
#endif
#include <stddef.h>

#include "activity_layout.h"

/* Each record as the headers have had it since CUDA 11 at least. */
#define RECORD_KERNEL	       CUpti_ActivityKernel8
#define RECORD_MEMCPY	       CUpti_ActivityMemcpy5
#define RECORD_MEMCPY2	       CUpti_ActivityMemcpyPtoP4
#define RECORD_MEMSET	       CUpti_ActivityMemset4
#define RECORD_OVERHEAD	       CUpti_ActivityOverhead
#define RECORD_CUDA_EVENT      CUpti_ActivityCudaEvent
#define RECORD_SYNCHRONIZATION CUpti_ActivitySynchronization
#define RECORD_EXTERNAL	       CUpti_ActivityExternalCorrelation
#define RECORD_MEMORY2	       CUpti_ActivityMemory2
#define RECORD_MEMORY_POOL     CUpti_ActivityMemoryPool2
#define RECORD_UNIFIED_MEMORY  CUpti_ActivityUnifiedMemoryCounter2
#define RECORD_GRAPH_TRACE     CUpti_ActivityGraphTrace
#define RECORD_JIT	       CUpti_ActivityJit
#if CUPTI_API_VERSION >= 26
#define RECORD_DECOMPRESS CUpti_ActivityMemDecompress
#else /* the headers do not have it */
typedef struct {
	char kind[4];
	uint32_t deviceId, contextId, streamId;
	uint64_t reserved;
	uint32_t correlationId, operations;
	uint64_t sourceBytes, more, start, end;
} RECORD_DECOMPRESS;
#endif

#define CHECK(kind, member, at, bytes)                                         \
	static_assert(offsetof(RECORD_##kind, member) == (at) &&               \
			      sizeof(((RECORD_##kind *)0)->member) == (bytes), \
		      #kind " " #member);
XS_CUDA_LAYOUT(CHECK)
