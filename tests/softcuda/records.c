/* How long a record of each kind is, by the version of CUPTI: each version's structure begins as
 * the former one does. Where the headers do not tell in which version a structure came, it is the
 * first that is known to have it. */
#include "profiler.h"

#define ROW(kind, since, type) { CUPTI_ACTIVITY_KIND_##kind, since, sizeof(CUpti_Activity##type) }

/* newest first */
static const struct {
	unsigned kind;
	uint32_t since;
	size_t size;
} rows[] = {
	ROW(CONCURRENT_KERNEL, 130500, Kernel13),
	ROW(CONCURRENT_KERNEL, 130200, Kernel12),
	ROW(CONCURRENT_KERNEL, 130100, Kernel11),
	ROW(CONCURRENT_KERNEL, 130000, Kernel10),
	ROW(CONCURRENT_KERNEL, 19, Kernel9),
	ROW(CONCURRENT_KERNEL, 18, Kernel8),
	ROW(CONCURRENT_KERNEL, 17, Kernel7),
	ROW(CONCURRENT_KERNEL, 15, Kernel6),
	ROW(CONCURRENT_KERNEL, 13, Kernel5),
	ROW(CONCURRENT_KERNEL, 10, Kernel4),
	ROW(CONCURRENT_KERNEL, 0, Kernel3),
	ROW(MEMCPY, 130500, Memcpy7),
	ROW(MEMCPY, 26, Memcpy6),
	ROW(MEMCPY, 17, Memcpy5),
	ROW(MEMCPY, 14, Memcpy4),
	ROW(MEMCPY, 13, Memcpy3),
	ROW(MEMCPY, 0, Memcpy),
	ROW(MEMCPY2, 17, MemcpyPtoP4),
	ROW(MEMCPY2, 14, MemcpyPtoP3),
	ROW(MEMCPY2, 13, MemcpyPtoP2),
	ROW(MEMCPY2, 0, MemcpyPtoP),
	ROW(MEMSET, 130500, Memset5),
	ROW(MEMSET, 17, Memset4),
	ROW(MEMSET, 14, Memset3),
	ROW(MEMSET, 13, Memset2),
	ROW(MEMSET, 0, Memset),
	ROW(MEMORY2, 26, Memory4),
	ROW(MEMORY2, 16, Memory3),
	ROW(MEMORY2, 0, Memory2),
	ROW(MEMORY_POOL, 130500, MemoryPool3),
	ROW(MEMORY_POOL, 16, MemoryPool2),
	ROW(MEMORY_POOL, 0, MemoryPool),
	ROW(DEVICE, 130500, Device6),
	ROW(DEVICE, 19, Device5),
	ROW(DEVICE, 17, Device4),
	ROW(DEVICE, 0, Device3),
	ROW(CONTEXT, 130200, Context4),
	ROW(CONTEXT, 130000, Context3),
	ROW(CONTEXT, 26, Context2),
	ROW(CONTEXT, 0, Context),
	ROW(SYNCHRONIZATION, 26, Synchronization2),
	ROW(SYNCHRONIZATION, 0, Synchronization),
	ROW(CUDA_EVENT, 130500, CudaEvent3),
	ROW(CUDA_EVENT, 26, CudaEvent2),
	ROW(CUDA_EVENT, 0, CudaEvent),
	ROW(OVERHEAD, 24, Overhead3),
	ROW(OVERHEAD, 20, Overhead2),
	ROW(OVERHEAD, 0, Overhead),
	ROW(UNIFIED_MEMORY_COUNTER, 26, UnifiedMemoryCounter3),
	ROW(UNIFIED_MEMORY_COUNTER, 0, UnifiedMemoryCounter2),
	ROW(MARKER, 0, Marker2),
	ROW(MARKER_DATA, 130100, MarkerData2),
	ROW(MARKER_DATA, 0, MarkerData),
	ROW(GRAPH_TRACE, 22, GraphTrace2),
	ROW(GRAPH_TRACE, 0, GraphTrace),
	ROW(JIT, 24, Jit2),
	ROW(JIT, 0, Jit),
	ROW(DRIVER, 0, API),
	ROW(RUNTIME, 0, API),
	ROW(STREAM, 0, Stream),
	ROW(NAME, 0, Name),
	ROW(EXTERNAL_CORRELATION, 0, ExternalCorrelation),
	ROW(GRAPH_HOST_NODE, 130000, GraphHostNode),
	ROW(HOST_LAUNCH, 130000, HostLaunch),
	ROW(MODULE, 0, Module),
	ROW(FUNCTION, 0, Function),
};

size_t su_record_size(unsigned kind, uint32_t version)
{
	if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
		kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].kind == kind && version >= rows[i].since)
			return (rows[i].size + 7) / 8 * 8;
	return 0;
}

uint32_t su_version(void)
{
	if (sc_config.cupti_version)
		return (uint32_t)sc_config.cupti_version;
	return SC_CUDA_MAJOR == 12 ? 28 : CUPTI_API_VERSION;
}

static size_t sizes[SU_KINDS];

static void fill(void)
{
	for (unsigned kind = 0; kind < SU_KINDS; kind++)
		sizes[kind] = su_record_size(kind, su_version());
}

/* of this version */
size_t su_size(unsigned kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, fill);
	return kind < SU_KINDS ? sizes[kind] : 0;
}
