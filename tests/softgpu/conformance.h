/*
 * What the tests of the software GPU begin with. Each is a process of its own (tap.h), so each has
 * settings of its own.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "tap.h"
#include "ze_app.h"

/* NAME, VALUE, ... , NULL: set before the driver is loaded */
static inline void settings(const char *name, ...)
{
	va_list args;

	va_start(args, name);
	for (; name; name = va_arg(args, const char *))
		(void)setenv(name, va_arg(args, const char *), 1);
	va_end(args);
}

#define IS(call, expected) CHECK((call) == (expected), "%s is not %s", #call, #expected)

static inline void launch(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
			  ze_event_handle_t signal, ze_event_handle_t wait)
{
	const ze_group_count_t one = { 1, 1, 1 };

	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, signal, wait ? 1 : 0,
						 wait ? &wait : NULL));
}

static inline void spin_for(ze_kernel_handle_t kernel, uint32_t us)
{
	ze_app_arg(kernel, 0, sizeof(us), &us);
}

static inline ze_kernel_timestamp_data_t times_of(ze_event_handle_t event)
{
	ze_kernel_timestamp_result_t result;

	ZE_CHECK(zeEventQueryKernelTimestamp(event, &result));
	return result.global;
}

static inline void execute(ze_command_queue_handle_t queue, ze_command_list_handle_t list)
{
	ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
}

enum { TIMED = ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_HOST_VISIBLE };

#endif
