/*
 * Calls that fail, each in its own way, and what they return: a program that lives with errors must
 * get the same ones when traced.
 */
#include "ze_app.h"

#define SHOW(what, call) printf("%s: 0x%x\n", what, (unsigned)(call))

static struct ze_app app;

static void objects(void)
{
	ze_command_queue_desc_t queue = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					  .ordinal = 99 };
	ze_kernel_desc_t kernel_desc = { .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC,
					 .pKernelName = "no_such_kernel" };
	ze_module_desc_t module_desc = { .stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
					 .format = ZE_MODULE_FORMAT_IL_SPIRV,
					 .inputSize = 8,
					 .pInputModule = (const uint8_t *)"not one" };
	ze_event_pool_handle_t pool = ze_app_pool(&app, 2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	ze_event_pool_desc_t pool_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC };
	ze_event_desc_t event_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 2 };
	ze_module_build_log_handle_t log = NULL;
	ze_command_queue_handle_t no_queue;
	ze_event_pool_handle_t no_pool;
	ze_module_handle_t no_module;
	ze_kernel_handle_t no_kernel;
	ze_event_handle_t no_event;

	SHOW("queue of no group", zeCommandQueueCreate(app.context, app.device, &queue, &no_queue));
	queue.ordinal = 0;
	queue.mode = 77;
	SHOW("queue of no mode", zeCommandQueueCreate(app.context, app.device, &queue, &no_queue));
	SHOW("kernel of no name", zeKernelCreate(app.module, &kernel_desc, &no_kernel));
	SHOW("module of no code",
	     zeModuleCreate(app.context, app.device, &module_desc, &no_module, &log));
	if (log) {
		size_t size = 0;

		SHOW("its build log", zeModuleBuildLogGetString(log, &size, NULL));
		printf("build log: %s\n", size > 1 ? "says why" : "EMPTY");
		ZE_CHECK(zeModuleBuildLogDestroy(log));
	}
	module_desc.inputSize = 0;
	SHOW("module of no bytes",
	     zeModuleCreate(app.context, app.device, &module_desc, &no_module, NULL));
	SHOW("pool of no events", zeEventPoolCreate(app.context, &pool_desc, 0, NULL, &no_pool));
	SHOW("event past its pool", zeEventCreate(pool, &event_desc, &no_event));
	ZE_CHECK(zeEventPoolDestroy(pool));
}

static void memory(void)
{
	ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	void *pointer, *inside;
	size_t size;

	SHOW("memory of no size", zeMemAllocHost(app.context, &desc, 0, 0, &pointer));
	SHOW("memory beyond measure",
	     zeMemAllocHost(app.context, &desc, (size_t)1 << 60, 0, &pointer));
	SHOW("alignment of 3", zeMemAllocHost(app.context, &desc, 64, 3, &pointer));
	pointer = ze_app_host(&app, 64);
	inside = (char *)pointer + 8;
	SHOW("free inside an allocation", zeMemFree(app.context, inside));
	SHOW("range of no allocation", zeMemGetAddressRange(app.context, &desc, &inside, &size));
	ZE_CHECK(zeMemFree(app.context, pointer));
}

static void commands(void)
{
	ze_command_list_handle_t list = ze_app_list(&app, 0, false),
				 copies = ze_app_list(&app, 1, false);
	ze_command_list_handle_t immediate = ze_app_immediate(&app, 0, 0, false);
	ze_event_pool_handle_t plain_pool =
		ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	ze_event_pool_handle_t timed_pool =
		ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, false);
	ze_event_handle_t plain = ze_app_event(plain_pool, 0), timed = ze_app_event(timed_pool, 0);
	ze_command_queue_handle_t queue = ze_app_queue(&app, 0, 0);
	ze_kernel_handle_t kernel = ze_app_kernel(&app, "spin");
	const ze_group_count_t one = { 1, 1, 1 };
	ze_kernel_timestamp_result_t times;
	char *bytes = ze_app_host(&app, 256);
	uint32_t us = 0;

	SHOW("argument past the last", zeKernelSetArgumentValue(kernel, 1, sizeof(us), &us));
	SHOW("argument too large", zeKernelSetArgumentValue(kernel, 0, 4096, &us));
	SHOW("group of nothing", zeKernelSetGroupSize(kernel, 0, 1, 1));
	SHOW("group too large", zeKernelSetGroupSize(kernel, 1024, 1024, 1));
	ze_app_arg(kernel, 0, sizeof(us), &us);
	SHOW("kernel on a copy engine",
	     zeCommandListAppendLaunchKernel(copies, kernel, &one, NULL, 0, NULL));
	SHOW("pattern of 3 bytes",
	     zeCommandListAppendMemoryFill(list, bytes, "abc", 3, 256, NULL, 0, NULL));
	SHOW("execution of an open list", zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	SHOW("execution of no list", zeCommandQueueExecuteCommandLists(queue, 0, &list, NULL));
	ZE_CHECK(zeCommandListClose(list));
	SHOW("append to a closed list",
	     zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
	SHOW("execution of an immediate list",
	     zeCommandQueueExecuteCommandLists(queue, 1, &immediate, NULL));
	SHOW("reset of an immediate list", zeCommandListReset(immediate));
	SHOW("an event that is not ready", zeEventQueryStatus(plain));
	SHOW("its wait for 1 ms", zeEventHostSynchronize(plain, 1000000));
	SHOW("times of an event without", zeEventQueryKernelTimestamp(plain, &times));
	SHOW("times of an event that is not ready", zeEventQueryKernelTimestamp(timed, &times));
	SHOW("one launch that works",
	     zeCommandListAppendLaunchKernel(immediate, kernel, &one, timed, 0, NULL));
	ZE_CHECK(zeEventHostSynchronize(timed, UINT64_MAX));
	SHOW("and its times", zeEventQueryKernelTimestamp(timed, &times));
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandListDestroy(copies));
	ZE_CHECK(zeCommandListDestroy(immediate));
	ZE_CHECK(zeEventDestroy(plain));
	ZE_CHECK(zeEventDestroy(timed));
	ZE_CHECK(zeEventPoolDestroy(plain_pool));
	ZE_CHECK(zeEventPoolDestroy(timed_pool));
	ZE_CHECK(zeCommandQueueDestroy(queue));
	ZE_CHECK(zeKernelDestroy(kernel));
	ZE_CHECK(zeMemFree(app.context, bytes));
}

int main(void)
{
	void *address;

	ze_app_open(&app, 0, -1);
	objects();
	memory();
	commands();
	SHOW("no such function",
	     zeDriverGetExtensionFunctionAddress(app.driver, "zeNothingOfTheKind", &address));
	ze_app_close(&app);
	return 0;
}
