/*
 * Between gpu/opencl.c (commands, the layer) and gpu/opencl_objects.c (devices, queues, kernels).
 */
#ifndef XS_OPENCL_H
#define XS_OPENCL_H

#include "opencl_wrap.h"

#define XS_CL_KERNEL_UNWANTED (1ull << 62) /* by --include-kernels or --exclude-kernels */

struct xs_cl_device {
	cl_device_id id;
	uint32_t name;
	uint8_t type; /* enum xs_device_type */
	bool unwanted; /* by --devices-to-sample */
};
extern struct xs_cl_device xs_cl_devices[];

struct xs_cl_queue {
	uint32_t serial;
	uint8_t device;       /* index in devices */
	bool profiled;        /* commands have times */
	bool profiling_added; /* by us: the application must not see it */
	bool in_order;
	uint32_t array_length;
	cl_queue_properties array[32]; /* as the application gave it, with its terminating 0 */
};

extern bool xs_cl_device;              /* device times are wanted */
extern uint64_t xs_cl_wanted_devices; /* a bit for each, --devices-to-sample */

/* Also a queue that came into being behind our back (an extension made it). NULL: not known. */
struct xs_cl_queue *xs_cl_queue_of(cl_command_queue handle);
/* Its name's id | its SIMD width << 32 | XS_CL_KERNEL_…; 0: unknown. */
uint64_t xs_cl_kernel_known(cl_kernel kernel, const struct xs_cl_queue *queue);

#endif
