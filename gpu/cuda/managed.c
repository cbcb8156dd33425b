/*
 * Managed memory: what CUPTI tells of its migrations and faults is asked for device by device.
 */
#include "xs_cuda.h"

/* What CUPTI is to tell of managed memory, on a device. False: it cannot (yet). */
static bool configure(uint32_t device, const uint8_t *kinds, uint32_t count)
{
	CUpti_ActivityUnifiedMemoryCounterConfig config[4] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
		config[i].kind = (CUpti_ActivityUnifiedMemoryCounterKind)kinds[i];
		config[i].deviceId = device;
		config[i].enable = 1;
	}
	return xs_cupti.ActivityConfigureUnifiedMemoryCounter &&
	       !xs_cupti.ActivityConfigureUnifiedMemoryCounter(config, count);
}

static bool enable(void)
{
	static const uint8_t usual[] = {
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
	};
	static const uint8_t rest[] = {
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD,
	};
	uint32_t device = 0;

	for (; device < XS_ACTIVITY_DEVICES && configure(device, usual, sizeof(usual)); device++)
		for (uint32_t i = 0; i < sizeof(rest); i++)
			(void)configure(device, rest + i, 1); /* not every device has them */
	return device && !xs_cuda_enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
}

static _Atomic bool awaits_context;

void xs_cuda_enable_managed(void)
{
	awaits_context = !enable();
}

void xs_cuda_context_made(void)
{
	if (atomic_exchange(&awaits_context, false) && !atomic_load(&xs_cupti.stage))
		(void)enable();
}

bool xs_cuda_awaits_context(void)
{
	return awaits_context;
}
