/*
 * One event for many commands, and no reset between them.
 *	ze_again HOW N	N times: two launches with the event
 * HOW: signalled, the host asks the event and then the list; host, the host signals the event while
 * they run; gone, both have ended, nobody has asked, and the pool is destroyed. Of regular lists:
 * lists, each in one of its own; apart, the same, and the host waits for the first; together, both
 * in one; immediate, the second in an immediate list. in-order: those lists are.
 */
#include "ze_app.h"

#include <string.h>
#include <unistd.h>

enum { EVENTS = 20000 }; /* of a pool: its memory goes back to the system with it */

static const ze_group_count_t one = { 1, 1, 1 };

static ze_command_list_handle_t launches(const struct ze_app *app, bool in_order, int count,
					 ze_kernel_handle_t kernel, ze_event_handle_t event)
{
	ze_command_list_handle_t list = ze_app_list(app, 0, in_order);

	while (count--)
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, event, 0, NULL));
	ZE_CHECK(zeCommandListClose(list));
	return list;
}

static void regular(const struct ze_app *app, const char *how, bool in_order, int count,
		    ze_command_list_handle_t immediate, ze_kernel_handle_t kernel)
{
	ze_event_pool_handle_t pool = ze_app_pool(app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	ze_event_handle_t event = ze_app_event(pool, 0);
	bool together = !strcmp(how, "together"), at_once = !strcmp(how, "immediate");
	ze_command_queue_handle_t queue = ze_app_queue(app, 0, 0);
	ze_command_list_handle_t first = launches(app, in_order, 1 + together, kernel, event),
				 second = launches(app, in_order, 1, kernel, event);

	for (int i = 0; i < count; i++) {
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &first, NULL));
		if (strcmp(how, "lists") != 0 && !at_once)
			ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
		if (at_once)
			ZE_CHECK(zeCommandListAppendLaunchKernel(immediate, kernel, &one, event, 0,
								 NULL));
		else if (!together)
			ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &second, NULL));
		ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
		ZE_CHECK(ze_app_list_sync(app, immediate, UINT64_MAX));
	}
	printf("went on\n");
}

int main(int argc, char **argv)
{
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
	if (strcmp(how, "signalled") != 0 && strcmp(how, "host") != 0 && strcmp(how, "gone") != 0) {
		regular(&app, how, argc > 3, count, list, kernel);
		return 0;
	}
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
