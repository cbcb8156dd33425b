/*
 * Between the generated OpenCL wrappers (interpose/generate.py) and what they call.
 */
#ifndef XS_OPENCL_WRAP_H
#define XS_OPENCL_WRAP_H

#include <string.h>

#include <CL/cl_icd.h>

#include "call_values.h"
#include "opencl_functions.h"
#include "own_time.h"

struct xs_cl_queue;

/* Of a kernel's launch, as xs_device_record has them. */
struct xs_cl_sizes {
	uint64_t global[3], local[3];
	uint8_t simd; /* of a copy that is kept: work items that run in step; 0: unknown */
};

/* An enqueue call in flight. */
struct xs_cl_work {
	struct xs_call call;
	struct xs_own_time time;
	const struct xs_cl_queue *queue; /* NULL: no device times wanted or possible */
	cl_event *event;		 /* where the runtime stores the event */
	cl_event own;			 /* used when the application wants none */
	cl_event before;		 /* a marker of ours ahead of it; NULL: none */
	bool untimed;			 /* they are wanted, and not possible */
	bool blocking;			 /* the call returns when the command is complete */
	uint32_t function;
	uint32_t name; /* of a command that is no kernel's launch; 0: the function's */
	uint8_t work;  /* enum xs_device_class */
	/* NULL: unknown, or no kernel's launch; the next two are its then */
	struct xs_cl_kernel *kernel;
	const struct xs_cl_sizes *sizes; /* NULL: `launched` is their only copy */
	struct xs_cl_sizes launched;
};

extern cl_icd_dispatch xs_cl_target; /* the functions below us */
extern bool xs_cl_calls;	     /* record the calls that are hooked for other reasons too */
extern bool xs_cl_kernel_calls;	     /* those that have to do with kernels, and other commands */
extern bool xs_cl_waits;	     /* record for what calls have waited */

/* *event is redirected to work->own when the application passed NULL. False: not recorded. */
bool xs_cl_enter(struct xs_cl_work *work, cl_command_queue queue, uint32_t function, uint8_t class,
		 cl_event **event);
/* *event is given back when the kernel is not to be shown. */
void xs_cl_kernel(struct xs_cl_work *work, cl_kernel kernel, cl_event **event);
/* The call has succeeded: its sizes. */
void xs_cl_launched(struct xs_cl_work *work, cl_kernel kernel, cl_uint dimensions,
		    const size_t *global, const size_t *local);
/* Directly before the call: what was done since it began is ours. */
static inline void xs_cl_ready(struct xs_cl_work *work)
{
	work->time.tick = work->call.tick; /* it may have begun anew */
	if (work->queue)
		xs_own_time_end(&work->time);
}
/* Of a command buffer: what it is called, and a marker ahead of it. */
void xs_cl_buffer(struct xs_cl_work *work, cl_command_buffer_khr handle, cl_uint wait_count,
		  const cl_event *waits);
void xs_cl_leave(struct xs_cl_work *work, int64_t result, bool failed, uint64_t bytes);
/* The call has waited for all of a queue; for events. */
void xs_cl_finished(cl_command_queue queue, const struct xs_call *call);
void xs_cl_waited_for(cl_uint count, const cl_event *events, const struct xs_call *call);
/* A command buffer has come into being, on these queues; a kernel was put into it. */
void xs_cl_buffer_made(cl_command_buffer_khr handle, cl_uint queue_count,
		       const cl_command_queue *queues);
void xs_cl_buffer_kernel(cl_command_buffer_khr handle, cl_kernel kernel);
/* On which queue it runs: the first of these, or of its own. NULL: not known. */
cl_command_queue xs_cl_buffer_queue(cl_command_buffer_khr handle, cl_uint queue_count,
				    const cl_command_queue *queues);
uint64_t xs_cl_region(const size_t *region);
uint64_t xs_cl_image(cl_mem image, const size_t *region);

/*
 * Generated: puts the wrappers into a layer's table, all of them or those that device times need.
 */
void xs_cl_wrap(cl_icd_dispatch *layer, bool all);
/* Generated: the wrapper of an extension function found at `real`, or `real`. */
void *xs_cl_wrap_extension(const char *name, void *real, bool all);

cl_int xs_hook_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
			      cl_device_id *devices, cl_uint *count);
cl_command_queue xs_hook_clCreateCommandQueue(cl_context context, cl_device_id device,
					      cl_command_queue_properties properties,
					      cl_int *errcode_ret);
cl_command_queue xs_hook_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							    const cl_queue_properties *properties,
							    cl_int *errcode_ret);
cl_int xs_hook_clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info name,
				     size_t size, void *value, size_t *size_ret);
cl_int xs_hook_clGetEventInfo(cl_event event, cl_event_info name, size_t size, void *value,
			      size_t *size_ret);
cl_int xs_hook_clGetEventProfilingInfo(cl_event event, cl_profiling_info name, size_t size,
				       void *value, size_t *size_ret);
cl_kernel xs_hook_clCreateKernel(cl_program program, const char *name, cl_int *errcode_ret);
cl_int xs_hook_clCreateKernelsInProgram(cl_program program, cl_uint count, cl_kernel *kernels,
					cl_uint *count_ret);
cl_kernel xs_hook_clCloneKernel(cl_kernel source, cl_int *errcode_ret);
cl_int xs_hook_clFinish(cl_command_queue queue);
cl_int xs_hook_clWaitForEvents(cl_uint count, const cl_event *events);

/* Here and not behind the wrappers: what it returns is one of them. */
static inline void *xs_hook_clGetExtensionFunctionAddress(const char *name)
{
	void *real = xs_cl_target.clGetExtensionFunctionAddress(name);

	return real && name ? xs_cl_wrap_extension(name, real, xs_cl_calls) : real;
}

static inline void *xs_hook_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								     const char *name)
{
	void *real = xs_cl_target.clGetExtensionFunctionAddressForPlatform(platform, name);

	return real && name ? xs_cl_wrap_extension(name, real, xs_cl_calls) : real;
}

#endif
