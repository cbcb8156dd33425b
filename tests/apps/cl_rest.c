/*
 * An OpenCL layer (OPENCL_LAYERS) between xstrace and the runtime: the first times that are asked
 * for take 400 ms longer, in which the thread may be cancelled. The first callback comes 100 ms
 * after they were asked for, from a thread of this layer: whoever has waited for the command asks
 * before it.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static union {
	cl_icd_dispatch known;
	void *entry[512];
} layer;
static cl_icd_dispatch real;
static struct {
	void(CL_CALLBACK *function)(cl_event event, cl_int status, void *data);
	void *data;
	cl_event event;
} first;
static atomic_bool called_back, asked;

static void rest(long milliseconds)
{
	struct timespec pause = { 0, milliseconds * 1000000 };

	(void)nanosleep(&pause, NULL);
}

static cl_int CL_API_CALL times(cl_event event, cl_profiling_info name, size_t size, void *value,
				size_t *size_ret)
{
	if (!atomic_exchange(&asked, true))
		rest(400);
	return real.clGetEventProfilingInfo(event, name, size, value, size_ret);
}

static void *call_late(void *unused)
{
	(void)unused;
	while (!atomic_load(&asked))
		rest(1);
	rest(100);
	first.function(first.event, CL_COMPLETE, first.data);
	return NULL;
}

static cl_int CL_API_CALL set_callback(cl_event event, cl_int status,
				       void(CL_CALLBACK *function)(cl_event, cl_int, void *),
				       void *data)
{
	pthread_t thread;

	if (atomic_exchange(&called_back, true))
		return real.clSetEventCallback(event, status, function, data);
	first.function = function;
	first.event = event;
	first.data = data;
	return pthread_create(&thread, NULL, call_late, NULL) ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

EXPORT cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (value && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
			  const cl_icd_dispatch **layer_ret)
{
	if (entries > sizeof(layer) / sizeof(void *))
		return CL_INVALID_VALUE;
	memcpy(&real, target, sizeof(real));
	memcpy(layer.entry, target, entries * sizeof(void *));
	layer.known.clGetEventProfilingInfo = times;
	layer.known.clSetEventCallback = set_callback;
	*entries_ret = entries;
	*layer_ret = &layer.known;
	return CL_SUCCESS;
}
