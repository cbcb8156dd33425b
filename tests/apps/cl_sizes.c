/*
 * A kernel that is launched in many sizes, each by a thread of its own, one after the other, and by
 *a handle of its own.
 *
 *	cl_sizes [SIZES]	default 300; launched with 1 to SIZES work items, and once more
 *backwards
 */
#include "cl_app.h"

static const char source[] = "kernel void grow(global int *c) { c[get_global_id(0)] += 1; }\n"
			     "kernel void other(global int *c) { c[get_global_id(0)] += 1; }\n";

static struct cl_app cl;
static cl_command_queue queue;
static cl_mem buffer;
static cl_kernel grow;

static void launch(cl_kernel kernel, size_t size)
{
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
	CHECK(clFinish(queue));
}

static void *body(void *argument)
{
	size_t size = (size_t)(uintptr_t)argument;
	cl_kernel kernel = cl_app_kernel(&cl, "other"); /* its handle comes again and again */

	CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	launch(grow, size);
	launch(kernel, size);
	CHECK(clReleaseKernel(kernel));
	return NULL;
}

int main(int argc, char **argv)
{
	long sizes = argc > 1 ? atol(argv[1]) : 300;
	cl_int *mapped, err;

	cl_app_open(&cl, source);
	queue = clCreateCommandQueue(cl.context, cl.device, 0, &err);
	CHECK(err);
	buffer = cl_app_buffer(&cl, (size_t)sizes * sizeof(cl_int));
	mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0,
				    (size_t)sizes * sizeof(cl_int), 0, NULL, NULL, &err);
	CHECK(err);
	memset(mapped, 0, (size_t)sizes * sizeof(cl_int));
	CHECK(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
	grow = cl_app_kernel(&cl, "grow");
	CHECK(clSetKernelArg(grow, 0, sizeof(buffer), &buffer));
	for (long i = 0; i < 2 * sizes; i++) {
		long size = i < sizes ? i + 1 : 2 * sizes - i;

		(void)pthread_join(start_thread(body, (void *)(uintptr_t)size), NULL);
	}
	mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0,
				    (size_t)sizes * sizeof(cl_int), 0, NULL, NULL, &err);
	CHECK(err);
	for (long i = 0; i < sizes; i++)
		REQUIRE(mapped[i] == (cl_int)(4 * (sizes - i)));
	CHECK(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
	CHECK(clFinish(queue));
	printf("expected: %ld kernels grow\nexpected: %ld kernels other\n", 2 * sizes, 2 * sizes);
	CHECK(clReleaseKernel(grow));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseCommandQueue(queue));
	cl_app_close(&cl);
	return 0;
}
