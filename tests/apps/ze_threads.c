/*
 * Threads that all record, execute and reset a list of their own, at once:
 *	ze_threads THREADS ROUNDS
 * Says how many kernels there were, and how many microseconds that took.
 */
#include "ze_app.h"

#include <pthread.h>
#include <time.h>

#define THREADS_MAX 64
#define KERNELS	    5

static struct ze_app app;
static int rounds;

static void *run(void *unused)
{
	ze_kernel_handle_t kernel = ze_app_kernel(&app, "empty");
	ze_command_queue_handle_t queue = ze_app_queue(&app, 0, 0);
	ze_command_list_handle_t list = ze_app_list(&app, 0, false);
	ze_group_count_t one = { 1, 1, 1 };

	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < KERNELS; k++)
			ZE_CHECK(
				zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(zeCommandListClose(list));
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
		ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
		ZE_CHECK(zeCommandListReset(list));
	}
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandQueueDestroy(queue));
	ZE_CHECK(zeKernelDestroy(kernel));
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 1;
	pthread_t threads[THREADS_MAX];
	struct timespec begin, end;

	rounds = argc > 2 ? atoi(argv[2]) : 1;
	ze_app_open(&app, 0, -1);
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < count; i++)
		(void)pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	ze_app_close(&app);
	printf("kernels: %d\nus: %ld\n", count * rounds * KERNELS,
	       (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
	return 0;
}
