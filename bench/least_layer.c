/*
 * An OpenCL layer (OPENCL_LAYERS) that does what no tracer can do without, and nothing else: what
 * xstrace costs over it is ours, what it costs itself is the runtime's and the machine's.
 *
 * A call reads the clock twice and stores 32 bytes in memory of its thread. A kernel gets a queue
 * with profiling, an event, a callback, and its four times are read and stored there.
 */
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"

#define EXPORT __attribute__((visibility("default")))
#define SPANS  1024u /* a thread's memory; the first ones are overwritten */

struct span {
	uint64_t words[4];
};
static __thread struct span spans[SPANS];
static __thread unsigned next;

static union {
	cl_icd_dispatch known;
	void *entry[512];
} layer;
static cl_icd_dispatch real;

static struct span *take_span(void)
{
	return &spans[next++ % SPANS];
}

#define RECORDED(number, call)                                                                  \
	do {                                                                                    \
		uint64_t begin = xs_tick(true);                                                 \
		cl_int result = call;                                                           \
                                                                                                \
		*take_span() = (struct span){ { begin, xs_tick(true) - begin, (uint64_t)result, \
						number } };                                     \
		return result;                                                                  \
	} while (0)

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info name, size_t size,
					  void *value, size_t *size_ret)
{
	RECORDED(1, real.clGetDeviceInfo(device, name, size, value, size_ret));
}

static cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t size,
					 const void *value)
{
	RECORDED(2, real.clSetKernelArg(kernel, index, size, value));
}

static cl_int CL_API_CALL retain(cl_mem object)
{
	RECORDED(3, real.clRetainMemObject(object));
}

static cl_int CL_API_CALL release(cl_mem object)
{
	RECORDED(4, real.clReleaseMemObject(object));
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
						 cl_command_queue_properties properties,
						 cl_int *error)
{
	return real.clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE,
					 error);
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *data)
{
	struct span *span = take_span();

	(void)status;
	(void)data;
	for (unsigned i = 0; i < 4; i++)
		(void)real.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i,
						   sizeof(span->words[i]), &span->words[i], NULL);
	(void)real.clReleaseEvent(event);
}

static cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
				  const size_t *offset, const size_t *global, const size_t *local,
				  cl_uint count, const cl_event *list, cl_event *given)
{
	cl_event event;
	cl_int result = real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
						    local, count, list, &event);

	if (result)
		return result;
	if (given) {
		*given = event;
		(void)real.clRetainEvent(event);
	}
	(void)real.clSetEventCallback(event, CL_COMPLETE, on_complete, NULL);
	return result;
}

EXPORT cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	(void)size_ret;
	if (name != CL_LAYER_API_VERSION || !value || size < sizeof(version))
		return CL_INVALID_VALUE;
	memcpy(value, &version, sizeof(version));
	return CL_SUCCESS;
}

EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
			  const cl_icd_dispatch **layer_ret)
{
	size_t bytes = entries * sizeof(void *);

	if (bytes < sizeof(real) || bytes > sizeof(layer))
		return CL_INVALID_VALUE;
	memcpy(&real, target, sizeof(real));
	memcpy(layer.entry, target, bytes);
	layer.known.clGetDeviceInfo = get_device_info;
	layer.known.clSetKernelArg = set_kernel_arg;
	layer.known.clRetainMemObject = retain;
	layer.known.clReleaseMemObject = release;
	layer.known.clCreateCommandQueue = create_queue;
	layer.known.clEnqueueNDRangeKernel = enqueue;
	*entries_ret = entries;
	*layer_ret = &layer.known;
	return CL_SUCCESS;
}
