/*
 * Numbers and names that need nothing else.
 */
#include <string.h>

#include "activity_types.h"
#include "version.h"
#include "xstrace/xstrace.h"

_Static_assert((int)XSTRACE_TYPES == (int)XS_TYPE_COUNT, "the same types on both sides");

static bool privateuse1;

const char *xstrace_result_text(int result)
{
	static const char *const texts[] = {
		[XSTRACE_OK] = "done",
		[XSTRACE_OFF] = "nothing is traced",
		[XSTRACE_JOINED] = "the events are in the launcher's trace",
		[XSTRACE_BAD_STATE] = "not at this time",
		[XSTRACE_BAD_ARGUMENT] = "no such value",
		[XSTRACE_NO_MEMORY] = "no memory",
		[XSTRACE_IO] = "a file cannot be used",
		[XSTRACE_TIMEOUT] = "no answer in time",
	};

	return (unsigned)result < sizeof(texts) / sizeof(texts[0]) ? texts[result] : "unknown";
}

const char *xstrace_version(void)
{
	return XS_VERSION;
}

const char *xstrace_type_name(int type)
{
	return type < 0 ? NULL : xs_activity_type_text((uint32_t)type);
}

int xstrace_type_of(const char *name)
{
	for (int i = 0; name && i < XSTRACE_TYPES; i++)
		if (!strcmp(xstrace_type_name(i), name))
			return i;
	return -1;
}

void xstrace_set_privateuse1(bool in_use)
{
	__atomic_store_n(&privateuse1, in_use, __ATOMIC_RELAXED);
}

int xstrace_device_type_of(int type)
{
	bool private = __atomic_load_n(&privateuse1, __ATOMIC_RELAXED);

	switch (type) {
	case XSTRACE_GPU_MEMCPY:
	case XSTRACE_GPU_MEMSET:
	case XSTRACE_CONCURRENT_KERNEL:
	case XSTRACE_CUDA_SYNC:
	case XSTRACE_GPU_USER_ANNOTATION:
	case XSTRACE_CUDA_PROFILER_RANGE:
		return private ? XSTRACE_DEVICE_PRIVATEUSE1 : XSTRACE_DEVICE_CUDA;
	case XSTRACE_MTIA_CCP_EVENTS:
		return private ? XSTRACE_DEVICE_PRIVATEUSE1 : XSTRACE_DEVICE_MTIA;
	case XSTRACE_HPU_OP:
		return XSTRACE_DEVICE_HPU;
	default:
		return XSTRACE_DEVICE_CPU;
	}
}
