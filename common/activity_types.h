/*
 * Kinds of activities, as Kineto numbers and names them (libkineto/include/ActivityType.h, its
 * traces' "cat"): enum xstrace_type of include/xstrace/xstrace.h has the same.
 */
#ifndef XS_ACTIVITY_TYPES_H
#define XS_ACTIVITY_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum xs_activity_type {
	XS_TYPE_CPU_OP = 0,
	XS_TYPE_USER_ANNOTATION = 1,
	XS_TYPE_GPU_USER_ANNOTATION = 2,
	XS_TYPE_GPU_MEMCPY = 3,
	XS_TYPE_GPU_MEMSET = 4,
	XS_TYPE_KERNEL = 5,
	XS_TYPE_CUDA_RUNTIME = 7,
	XS_TYPE_CUDA_DRIVER = 8,
	XS_TYPE_CPU_INSTANT_EVENT = 9,
	XS_TYPE_OVERHEAD = 11,
	XS_TYPE_CUDA_SYNC = 15,
	XS_TYPE_XPU_RUNTIME = 21,
	XS_TYPE_XPU_DRIVER = 22,
	XS_TYPE_COLLECTIVE_COMM = 23,
	XS_TYPE_COUNT = 29
};

/* NULL: there is no such type. */
static inline const char *xs_activity_type_text(uint32_t type)
{
	static const char *const names[XS_TYPE_COUNT] = {
		"cpu_op",
		"user_annotation",
		"gpu_user_annotation",
		"gpu_memcpy",
		"gpu_memset",
		"kernel",
		"external_correlation",
		"cuda_runtime",
		"cuda_driver",
		"cpu_instant_event",
		"python_function",
		"overhead",
		"mtia_runtime",
		"mtia_ccp_events",
		"mtia_insight",
		"cuda_sync",
		"cuda_event",
		"mtia_counters",
		"glow_runtime",
		"cuda_profiler_range",
		"hpu_op",
		"xpu_runtime",
		"xpu_driver",
		"collective_comm",
		"privateuse1_runtime",
		"privateuse1_driver",
		"xpu_scope_profiler",
		"xpu_sync",
		"hardware_counters",
	};

	return type < XS_TYPE_COUNT ? names[type] : NULL;
}

/* By its name, in letters of any case; -1: no type is called so. */
static inline int xs_activity_type_of(const char *name, size_t length)
{
	for (int type = 0; type < XS_TYPE_COUNT; type++) {
		const char *known = xs_activity_type_text((uint32_t)type);

		if (strlen(known) == length && !strncasecmp(known, name, length))
			return type;
	}
	return -1;
}

/* The name of a type; "cpu_op" where there is none. */
static inline const char *xs_activity_type_name(uint32_t type)
{
	const char *name = xs_activity_type_text(type);

	return name ? name : "cpu_op";
}

#endif
