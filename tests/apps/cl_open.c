/*
 * Commands that are in flight when the process ends, and others that are complete.
 *	cl_open COMPLETE OPEN END	END: return, _exit, kill, exec; quick; release; fork
 * What is open waits for a user event that nobody sets; quick: another thread sets it, just when
 *main has returned; release: queue and context are released before; fork: a child that is forked
 *returns, then the process calls _exit.
 */
#include "cl_app.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static cl_event gate;

static void *open_later(void *unused)
{
	const struct timespec moment = { .tv_nsec = 3000000 };

	(void)unused;
	(void)nanosleep(&moment, NULL);
	(void)clSetUserEventStatus(gate, CL_COMPLETE);
	return NULL;
}

int main(int argc, char **argv)
{
	int complete = atoi(argv[1]), open = atoi(argv[2]);
	const cl_queue_properties unordered[] = { CL_QUEUE_PROPERTIES,
						  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
	const char *end = argc > 3 ? argv[3] : "return";
	cl_command_queue queue;
	static char data[64];
	struct cl_app cl;
	pthread_t thread;
	cl_event *done = calloc((size_t)complete + 1, sizeof(*done));
	cl_mem buffer;
	cl_int error;

	cl_app_open(&cl, "kernel void empty(int x) {}\n");
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, unordered, &error);
	CHECK(error);
	buffer = cl_app_buffer(&cl, sizeof(data));
	gate = clCreateUserEvent(cl.context, &error);
	CHECK(error);
	for (int i = 0; i < open; i++)
		CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 1, &gate,
					   NULL));
	for (int i = 0; i < complete; i++)
		CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL,
					   &done[i]));
	CHECK(clFlush(queue));
	if (complete)
		CHECK(clWaitForEvents((cl_uint)complete, done));
	printf("ready\n");
	(void)fflush(stdout);
	if (!strcmp(end, "_exit"))
		_exit(0);
	if (!strcmp(end, "kill"))
		(void)raise(SIGKILL);
	if (!strcmp(end, "exec"))
		(void)execl("/bin/true", "true", NULL);
	if (!strcmp(end, "quick"))
		REQUIRE(!pthread_create(&thread, NULL, open_later, NULL));
	if (!strcmp(end, "release")) {
		CHECK(clReleaseCommandQueue(queue));
		CHECK(clReleaseContext(cl.context));
	}
	if (!strcmp(end, "fork") && !fork())
		return 0;
	if (!strcmp(end, "fork")) {
		(void)wait(NULL);
		_exit(0);
	}
	return 0;
}
