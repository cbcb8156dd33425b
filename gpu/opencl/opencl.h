/*
 * Between opencl_target.c (the functions below us), opencl_objects.c (devices, queues, kernels),
 * opencl.c (commands) and opencl_layer.c.
 */
#ifndef XS_OPENCL_H
#define XS_OPENCL_H

#include "opencl_wrap.h"

struct xs_cl_device {
	cl_device_id id;
	uint32_t name;
	uint8_t type;	 /* enum xs_device_type */
	bool unwanted;	 /* by --devices-to-sample */
	bool sub_groups; /* it can be asked for their size */
};
extern struct xs_cl_device xs_cl_devices[];

struct xs_cl_queue {
	cl_command_queue handle;
	uint32_t serial;
	uint8_t device;	      /* index in devices */
	bool profiled;	      /* commands have times */
	bool profiling_added; /* by us: the application must not see it */
	bool in_order;
	uint32_t array_length;
	cl_queue_properties array[32]; /* as the application gave it, with its terminating 0 */
};

#define XS_CL_SIZES 4u /* a power of two */

struct xs_cl_kernel {
	uint32_t name;
	bool unwanted; /* by --include-kernels or --exclude-kernels */
	/*
	 * preferred multiple of a work group's size, which work items that run in step do not
	 * exceed; 0: unknown
	 */
	uint8_t simd;
	_Atomic bool simd_known;
	_Atomic uint32_t recent, sizes_count;			/* sizes_count: ever */
	_Atomic(const struct xs_cl_sizes *) sizes[XS_CL_SIZES]; /* that it was launched in */
};

extern bool xs_cl_times;	      /* device times are wanted */
extern bool xs_cl_enqueues;	      /* record the calls that enqueue commands */
extern uint64_t xs_cl_wanted_devices; /* a bit for each, --devices-to-sample */

/* Sets these, and what the wrappers look at. */
void xs_cl_want(const struct xs_options *options);
/* Before the first command: the process and its threads tell when they end. */
void xs_cl_commands_init(void);
/* Records what is complete. */
void xs_cl_harvest_all(void);
/* At exit(): the same, and what is about to be complete. */
extern void (*xs_cl_last_chance)(void);

/* Also a queue that came into being behind our back (an extension made it). NULL: not known. */
struct xs_cl_queue *xs_cl_queue_of(cl_command_queue handle);
/* NULL: not known. */
struct xs_cl_kernel *xs_cl_kernel_of(cl_kernel handle, const struct xs_cl_queue *queue);
/*
 * A copy of the sizes that lives as long as the process; NULL: the kernel was launched in too many.
 */
const struct xs_cl_sizes *xs_cl_sizes_of(struct xs_cl_kernel *kernel,
					 const struct xs_cl_sizes *sizes, cl_kernel handle,
					 const struct xs_cl_device *device);

#endif
