/*
 * One event for many commands, and no reset between them.
 *	ze_again HOW N	N times: two launches with the event
 * HOW: signalled, the host asks the event and then the list; host, the host signals the event while
 *they run; gone, both have ended, nobody has asked, and the pool is destroyed
 */
#include "ze_app.h"

#include <string.h>
#include <unistd.h>

enum { EVENTS = 20000 }; /* of a pool: its memory goes back to the system with it */

int main(int argc, char **argv)
{
	const ze_group_count_t one = { 1, 1, 1 };
	const char *how = argv[1];
	int count = argc > 2 ? atoi(argv[2]) : 1;
	ze_event_pool_handle_t pool = NULL;
	ze_command_list_handle_t list;
	ze_event_handle_t event = NULL;
	ze_kernel_handle_t kernel;
	struct ze_app app;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	for (int i = 0; i < count; i++) {
		if (!pool) {
			pool = ze_app_pool(&app, EVENTS, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
			event = ze_app_event(pool, 0);
		}
		for (int k = 0; k < 2; k++) {
			ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, event, 0,
								 NULL));
			if (!strcmp(how, "signalled"))
				(void)zeEventQueryStatus(event);
		}
		if (!strcmp(how, "host"))
			ZE_CHECK(zeEventHostSignal(event));
		if (!strcmp(how, "gone")) {
			(void)usleep(50000);
			ZE_CHECK(zeEventPoolDestroy(pool));
			pool = NULL;
		}
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	}
	printf("went on\n");
	return 0;
}
