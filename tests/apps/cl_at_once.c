/*
 * Two threads use OpenCL for the first time at once, and try again where the runtime is not ready.
 */
#include "cl_app.h"

/* False: something is not there yet. */
static bool use(void)
{
	cl_platform_id platform;
	cl_command_queue queue;
	cl_device_id device;
	cl_context context;
	char bytes[64] = { 0 };
	cl_mem memory;
	cl_int err;
	bool done;

	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return false;
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	if (err)
		return false;
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
	if (err) {
		(void)clReleaseContext(context);
		return false;
	}
	memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(bytes), NULL, &err);
	done = !err && !clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof(bytes), bytes, 0,
					     NULL, NULL);
	(void)clReleaseMemObject(memory);
	(void)clReleaseCommandQueue(queue);
	(void)clReleaseContext(context);
	return done;
}

static void *work(void *unused)
{
	while (!use())
		sleep_ms(1);
	return unused;
}

int main(void)
{
	pthread_t other = start_thread(work, NULL);

	(void)work(NULL);
	pthread_join(other, NULL);
	printf("writes: 2\n");
	return 0;
}
