/*
 * A thread leaves in the middle of clFinish(), when its command is complete, and the others go on.
 * cl_left HOW	cancel, jump; under cl_rest.so
 */
#include "cl_app.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

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

	cl_app_open(&cl, "kernel void empty(int x) {}\n");
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &error);
	CHECK(error);
	buffer = cl_app_buffer(&cl, sizeof(data));
	(void)sigaction(SIGUSR1, &action, NULL);
	REQUIRE(!pthread_create(&thread, NULL, leave, NULL));
	(void)usleep(250000);
	REQUIRE(!(argc > 1 && !strcmp(argv[1], "jump") ? pthread_kill(thread, SIGUSR1)
						       : pthread_cancel(thread)));
	REQUIRE(!pthread_join(thread, NULL));
	(void)usleep(500000); /* the callback has come, and is through */
	for (int i = 0; i < 100; i++)
		work();
	printf("went on, with %ld ms of processor time\n", (long)clock() * 1000 / CLOCKS_PER_SEC);
	return 0;
}
