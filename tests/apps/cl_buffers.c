/*
 * A command buffer of three launches of one kernel and one of another, run N times.
 * cl_buffers N [null|held] [own|given]
 *
 * held: the application has the event; where it asked for times, it tells them: "ran START END".
 * given: the queue is named when the buffer is run, else it is the buffer's own.
 * The last line is the sum of all values. Before it: where the extension's functions lie.
 */
#include <dlfcn.h>

#include "cl_app.h"
#include <CL/cl_ext.h>

#define COUNT 1024u

static const char source[] = "kernel void add(global int *x, int y) { x[get_global_id(0)] += y; }\n"
			     "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; }\n";

static struct cl_app cl;

static void *function(const char *name)
{
	void *address = clGetExtensionFunctionAddressForPlatform(cl.platform, name);
	const char *file;
	Dl_info info;

	REQUIRE(address);
	REQUIRE(dladdr(address, &info) && info.dli_fname);
	file = strrchr(info.dli_fname, '/');
	printf("%s %s\n", name, file ? file + 1 : info.dli_fname);
	return address;
}
#define FUNCTION(name) ((name##_fn)function(#name))

static void fill(cl_command_buffer_khr list, cl_mem data)
{
	clCommandNDRangeKernelKHR_fn launch = FUNCTION(clCommandNDRangeKernelKHR);
	cl_kernel add = cl_app_kernel(&cl, "add"), twice = cl_app_kernel(&cl, "twice");
	const size_t count = COUNT;

	for (cl_int i = 1; i <= 4; i++) {
		cl_kernel kernel = i == 2 ? twice : add;

		CHECK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &data));
		if (kernel == add)
			CHECK(clSetKernelArg(kernel, 1, sizeof(i), &i));
		CHECK(launch(list, NULL, NULL, kernel, 1, NULL, &count, NULL, 0, NULL, NULL, NULL));
	}
	CHECK(clReleaseKernel(add));
	CHECK(clReleaseKernel(twice));
}

static void tell(cl_event event)
{
	cl_ulong start, end;

	CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
				      NULL));
	CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL));
	printf("ran %lu %lu\n", start, end);
	CHECK(clReleaseEvent(event));
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1;
	bool held = argc > 2 && !strcmp(argv[2], "held"),
	     given = argc > 3 && !strcmp(argv[3], "given");
	const cl_queue_properties profiled[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
						 0 };
	static int values[COUNT];
	long sum = 0;
	cl_command_queue queue;
	cl_command_buffer_khr list;
	cl_event event;
	cl_mem data;
	cl_int error;

	cl_app_open(&cl, source);
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, held ? profiled : NULL,
						   &error);
	CHECK(error);
	data = cl_app_buffer(&cl, sizeof(values));
	CHECK(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, sizeof(values), values, 0, NULL, NULL));
	list = FUNCTION(clCreateCommandBufferKHR)(1, &queue, NULL, &error);
	CHECK(error);
	fill(list, data);
	CHECK(FUNCTION(clFinalizeCommandBufferKHR)(list));
	(void)function("clCommandCopyBufferKHR");
	for (int i = 0; i < times; i++) {
		clEnqueueCommandBufferKHR_fn run = (clEnqueueCommandBufferKHR_fn)
			clGetExtensionFunctionAddressForPlatform(cl.platform,
								 "clEnqueueCommandBufferKHR");

		REQUIRE(run);
		CHECK(run(given, given ? &queue : NULL, list, 0, NULL, held ? &event : NULL));
		CHECK(clFinish(queue));
		if (held)
			tell(event);
	}
	CHECK(FUNCTION(clReleaseCommandBufferKHR)(list));
	CHECK(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof(values), values, 0, NULL, NULL));
	for (unsigned i = 0; i < COUNT; i++)
		sum += values[i];
	printf("sum %ld\n", sum);
	CHECK(clReleaseCommandQueue(queue));
	CHECK(clReleaseMemObject(data));
	cl_app_close(&cl);
	return 0;
}
