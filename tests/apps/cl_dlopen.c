/*
 * Not linked with OpenCL: finds the loader and each function by name at run time, as Python
 * modules, SYCL and many engines do. A preloaded symbol never sees such a program's calls.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include "app.h"

#define COUNT 256

static void *library;

static void *find(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return function;
}

/* calls the function of this name through the pointer that dlsym gave */
#define CALL(name) ((__typeof__(&name))find(#name))

static void check(cl_int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %d\n", what, err);
		exit(1);
	}
}

int main(void)
{
	const char *source = "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; }";
	cl_int data[COUNT], err;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem buffer;
	size_t global = COUNT;

	library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	for (int i = 0; i < COUNT; i++)
		data[i] = i;

	check(CALL(clGetPlatformIDs)(1, &platform, NULL), "platform");
	check(CALL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
	context = CALL(clCreateContext)(NULL, 1, &device, NULL, NULL, &err);
	check(err, "context");
	queue = CALL(clCreateCommandQueue)(context, device, 0, &err);
	check(err, "queue");
	program = CALL(clCreateProgramWithSource)(context, 1, &source, NULL, &err);
	check(err, "program");
	check(CALL(clBuildProgram)(program, 1, &device, NULL, NULL, NULL), "build");
	kernel = CALL(clCreateKernel)(program, "twice", &err);
	check(err, "kernel");
	buffer = CALL(clCreateBuffer)(context, CL_MEM_READ_WRITE, sizeof(data), NULL, &err);
	check(err, "buffer");
	check(CALL(clSetKernelArg)(kernel, 0, sizeof(buffer), &buffer), "argument");

	check(CALL(clEnqueueWriteBuffer)(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL,
					 NULL),
	      "write");
	check(CALL(clEnqueueNDRangeKernel)(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
	      "enqueue");
	check(CALL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL,
					NULL),
	      "read");
	for (int i = 0; i < COUNT; i++)
		if (data[i] != 2 * i)
			return 1;

	check(CALL(clReleaseMemObject)(buffer), "release buffer");
	check(CALL(clReleaseKernel)(kernel), "release kernel");
	check(CALL(clReleaseProgram)(program), "release program");
	check(CALL(clReleaseCommandQueue)(queue), "release queue");
	check(CALL(clReleaseContext)(context), "release context");
	printf("Results are CORRECT\n");
	printf("expected: 1 writes\nexpected: 1 kernels twice\nexpected: 1 kernels\n");
	printf("expected: 1 reads\n");
	return 0;
}
