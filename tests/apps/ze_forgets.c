/*
 * A program that destroys a pool of events and forgets the events, whose commands have ended.
 *	ze_forgets N	N times: one launch with an event of the pool, one without
 */
#include "ze_app.h"

#include <unistd.h>

enum { EVENTS = 20000 }; /* of a pool: its memory goes back to the system with it */

int main(int argc, char **argv)
{
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	struct ze_app app;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
		ze_event_pool_handle_t pool =
			ze_app_pool(&app, EVENTS, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);

		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, ze_app_event(pool, 0),
							 0, NULL));
		(void)usleep(50000); /* it has ended, and nobody has asked */
		ZE_CHECK(zeEventPoolDestroy(pool));
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	}
	printf("went on\n");
	return 0;
}
