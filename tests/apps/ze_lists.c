/*
 * A regular list, executed again and again: ns for each of its commands, the driver executing on
 *the calling thread. ze_lists [EXECUTIONS [KERNELS]]
 */
#include "ze_app.h"

#include <time.h>

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned executions = argc > 1 ? (unsigned)atoi(argv[1]) : 1000,
		 kernels = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	struct ze_app app;
	double begin;

	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 0);
	list = ze_app_list(&app, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	for (unsigned i = 0; i < kernels; i++)
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
	ZE_CHECK(zeCommandListClose(list));
	begin = now();
	for (unsigned i = 0; i < executions; i++)
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	printf("command %.2f\n", (now() - begin) / executions / kernels);
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandQueueDestroy(queue));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	return 0;
}
