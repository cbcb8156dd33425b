/*
 * A thread leaves in the middle of clFinish(), when its command is complete, and the others go on.
 * cl_left HOW	cancel, jump; under cl_rest.so
 *
 * A thread is cancelled while it waits for a command that never begins. The runtime's locks for it
 * stay held. The program never asks for that command again.
 * cl_left HOW	finish, event, read
 */
#include "cl_app.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static cl_context context;
static cl_command_queue queue;
static cl_mem buffer;
static char data[64];
static sigjmp_buf back;

static void on_signal(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void work(void)
{
	CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
	CHECK(clFinish(queue));
}

static void *wait_for_ever(void *how)
{
	cl_int error;
	cl_event gate = clCreateUserEvent(context, &error), event;
	cl_bool is_read = !strcmp(how, "read");

	CHECK(error);
	if (is_read)
		(void)clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 1, &gate,
					  NULL);
	CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 1, &gate,
				   &event));
	if (!strcmp(how, "event"))
		CHECK(clWaitForEvents(1, &event));
	CHECK(clFinish(queue));
	return NULL;
}

static void *leave(void *unused)
{
	(void)unused;
	if (!sigsetjmp(back, 1))
		work();
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct cl_app cl;
	pthread_t thread;
	cl_int error;
	bool waits;

	cl_app_open(&cl, "kernel void empty(int x) {}\n");
	context = cl.context;
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &error);
	CHECK(error);
	buffer = cl_app_buffer(&cl, sizeof(data));
	waits = argc > 1 && strcmp(argv[1], "cancel") != 0 && strcmp(argv[1], "jump") != 0;
	(void)sigaction(SIGUSR1, &action, NULL);
	REQUIRE(!pthread_create(&thread, NULL, waits ? wait_for_ever : leave, argv[1]));
	(void)usleep(250000);
	REQUIRE(!(argc > 1 && !strcmp(argv[1], "jump") ? pthread_kill(thread, SIGUSR1)
						       : pthread_cancel(thread)));
	REQUIRE(!pthread_join(thread, NULL));
	if (waits) {
		puts("went on");
		return 0;
	}
	(void)usleep(500000); /* the callback has come, and is through */
	for (int i = 0; i < 100; i++)
		work();
	printf("went on, with %ld ms of processor time\n", (long)clock() * 1000 / CLOCKS_PER_SEC);
	return 0;
}
