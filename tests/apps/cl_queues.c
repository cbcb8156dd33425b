/*
 * Queues, one after the other: a command in each, waited for, and the queue is released.
 * cl_queues N
 */
#include "cl_app.h"

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	static char data[64];
	struct cl_app cl;
	cl_int error;
	cl_mem buffer;

	cl_app_open(&cl, "kernel void empty(int x) {}\n");
	buffer = cl_app_buffer(&cl, sizeof(data));
	for (int i = 0; i < count; i++) {
		cl_command_queue queue =
			clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &error);

		CHECK(error);
		CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL,
					   NULL));
		CHECK(clFinish(queue));
		CHECK(clReleaseCommandQueue(queue));
	}
	return 0;
}
