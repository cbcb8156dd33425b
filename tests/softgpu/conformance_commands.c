/* Commands: the order in which they run, the events that they signal, and the times of those. */
#include "conformance.h"

#include <pthread.h>

static struct ze_app app;

/* The virtual clock's default: work takes 1000 ns, at 1 GHz 1000 ticks; anything else one. */
static void virtual_open(void)
{
	settings("SOFTGPU_SYNC", "1", "SOFTGPU_CLOCK", "virtual", "SOFTGPU_FREQUENCY", "1000000000",
		 "SOFTGPU_FIRST_TICK", "5000", NULL);
	ze_app_open(&app, 0, -1);
}

static void given_times(void)
{
	ze_command_list_handle_t list;
	ze_event_pool_handle_t pool;
	ze_kernel_handle_t kernel;
	ze_event_handle_t events[4];

	settings("SOFTGPU_DURATION_NS", "empty=700,copy=300", NULL);
	virtual_open();
	list = ze_app_immediate(&app, 0, 0, true);
	pool = ze_app_pool(&app, 4, TIMED, false);
	for (uint32_t i = 0; i < 4; i++)
		events[i] = ze_app_event(pool, i);
	kernel = ze_app_kernel(&app, "empty");
	launch(list, kernel, events[0], NULL);
	ZE_CHECK(zeCommandListAppendMemoryCopy(list, ze_app_device(&app, 64), ze_app_host(&app, 64),
					       64, events[1], 0, NULL));
	ZE_CHECK(zeCommandListAppendBarrier(list, events[2], 0, NULL));
	ZE_CHECK(zeCommandListAppendMemoryFill(list, ze_app_device(&app, 64), "x", 1, 64, events[3],
					       0, NULL));
	CHECK(times_of(events[0]).kernelStart == 5000 && times_of(events[0]).kernelEnd == 5700);
	CHECK(times_of(events[1]).kernelStart == 5700 && times_of(events[1]).kernelEnd == 6000);
	CHECK(times_of(events[2]).kernelStart == 6000 && times_of(events[2]).kernelEnd == 6001);
	CHECK(times_of(events[3]).kernelStart == 6001 && times_of(events[3]).kernelEnd == 7001);
}

/*
 * Two workers: what has no reason to wait starts with what is there; a barrier, an event and an
 * in-order list are reasons.
 */
static void overlap(void)
{
	ze_command_list_handle_t list;
	ze_event_pool_handle_t pool;
	ze_kernel_handle_t kernel;
	ze_event_handle_t e[6];

	settings("SOFTGPU_WORKERS", "4", NULL);
	virtual_open();
	list = ze_app_immediate(&app, 0, 0, false);
	pool = ze_app_pool(&app, 6, TIMED, false);
	for (uint32_t i = 0; i < 6; i++)
		e[i] = ze_app_event(pool, i);
	kernel = ze_app_kernel(&app, "empty");
	launch(list, kernel, e[0], NULL);
	launch(list, kernel, e[1], NULL);
	launch(list, kernel, e[2], e[1]);
	ZE_CHECK(zeCommandListAppendBarrier(list, e[3], 0, NULL));
	launch(list, kernel, e[4], NULL);
	launch(list, kernel, e[5], NULL);
	CHECK(times_of(e[0]).kernelStart == 5000 && times_of(e[1]).kernelStart == 5000);
	CHECK(times_of(e[2]).kernelStart == 6000);
	CHECK(times_of(e[3]).kernelStart == 7000 && times_of(e[3]).kernelEnd == 7001);
	CHECK(times_of(e[4]).kernelStart == 7001 && times_of(e[5]).kernelStart == 7001);
}

static void host_sees_ends(void)
{
	ze_command_list_handle_t lists[2];
	ze_event_pool_handle_t pool;
	ze_kernel_handle_t kernel;
	ze_event_handle_t e[2];
	uint64_t host, device;

	virtual_open();
	for (int i = 0; i < 2; i++)
		lists[i] = ze_app_immediate(&app, 0, (uint32_t)i, false);
	pool = ze_app_pool(&app, 2, TIMED, false);
	for (uint32_t i = 0; i < 2; i++)
		e[i] = ze_app_event(pool, i);
	kernel = ze_app_kernel(&app, "empty");
	launch(lists[0], kernel, e[0], NULL);
	ZE_CHECK(zeEventHostSynchronize(e[0], UINT64_MAX));
	ZE_CHECK(zeDeviceGetGlobalTimestamps(app.device, &host, &device));
	CHECK(device == 6000, "%llu", (unsigned long long)device);
	launch(lists[1], kernel, e[1], NULL);
	CHECK(times_of(e[1]).kernelStart == 6000);
}

static void wraps(void)
{
	ze_command_list_handle_t list;
	ze_event_handle_t event;

	settings("SOFTGPU_SYNC", "1", "SOFTGPU_CLOCK", "virtual", "SOFTGPU_FREQUENCY", "1000000000",
		 "SOFTGPU_FIRST_TICK", "0xffffff00", NULL);
	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	event = ze_app_event(ze_app_pool(&app, 1, TIMED, false), 0);
	launch(list, ze_app_kernel(&app, "empty"), event, NULL);
	CHECK(times_of(event).kernelStart == 0xffffff00 &&
	      times_of(event).kernelEnd == 1000 - 0x100);
}

/*
 * A real clock: the kernel really takes its time, by both clocks, and a given duration is exact in
 * ticks and spent.
 */
static void real_time(void)
{
	ze_device_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 },
			       old = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
	uint64_t host[2], device[2], ticks, least = 0;
	ze_command_list_handle_t list;
	ze_kernel_handle_t spin;
	ze_event_handle_t e[2];
	ze_event_pool_handle_t pool;
	int64_t off;

	settings("SOFTGPU_DURATION_NS", "empty=300000", NULL);
	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeDeviceGetProperties(app.device, &properties));
	ZE_CHECK(zeDeviceGetProperties(app.device, &old));
	CHECK(properties.timerResolution == 19200000 && old.timerResolution == 52);
	CHECK(properties.kernelTimestampValidBits == 32 && properties.timestampValidBits == 64);
	list = ze_app_immediate(&app, 0, 0, true);
	pool = ze_app_pool(&app, 2, TIMED, false);
	e[0] = ze_app_event(pool, 0);
	e[1] = ze_app_event(pool, 1);
	spin = ze_app_kernel(&app, "spin");
	spin_for(spin, 2000);
	ZE_CHECK(zeDeviceGetGlobalTimestamps(app.device, &host[0], &device[0]));
	launch(list, spin, e[0], NULL);
	launch(list, ze_app_kernel(&app, "empty"), e[1], NULL);
	ZE_CHECK(zeEventHostSynchronize(e[1], UINT64_MAX));
	ZE_CHECK(zeDeviceGetGlobalTimestamps(app.device, &host[1], &device[1]));
	ticks = times_of(e[0]).kernelEnd - times_of(e[0]).kernelStart;
	CHECK(ticks >= 38400, "%llu", (unsigned long long)ticks);
	CHECK(times_of(e[1]).kernelEnd - times_of(e[1]).kernelStart == 5760);
	least = 38400 + 5760;
	CHECK(device[1] - device[0] >= least, "%llu", (unsigned long long)(device[1] - device[0]));
	CHECK((uint32_t)(times_of(e[1]).kernelEnd - (uint32_t)device[0]) <= device[1] - device[0]);
	off = (int64_t)(device[1] - device[0]) - (int64_t)((host[1] - host[0]) * 192 / 10000);
	CHECK(off >= -2 && off <= 2, "%lld", (long long)off);
}

static void drift(void)
{
	uint64_t host[2], device[2];
	double ppm;

	settings("SOFTGPU_DRIFT_PPM", "500", NULL);
	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeDeviceGetGlobalTimestamps(app.device, &host[0], &device[0]));
	(void)usleep(50000);
	ZE_CHECK(zeDeviceGetGlobalTimestamps(app.device, &host[1], &device[1]));
	ppm = ((double)(device[1] - device[0]) / ((double)(host[1] - host[0]) * 0.0192) - 1) * 1e6;
	CHECK(ppm > 495 && ppm < 505, "%g", ppm);
}

static void regular_lists(void)
{
	enum { EXECUTIONS = 20 };
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	ze_fence_desc_t fence_desc = { .stype = ZE_STRUCTURE_TYPE_FENCE_DESC };
	ze_fence_handle_t fence;
	uint32_t *counter;

	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 3);
	list = ze_app_list(&app, 0, false);
	kernel = ze_app_kernel(&app, "increment");
	counter = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	for (int i = 0; i < 7; i++)
		launch(list, kernel, NULL, NULL);
	CHECK(*counter == 0, "a regular list runs before it is executed");
	ZE_CHECK(zeCommandListClose(list));
	/* the same list many times without a wait */
	for (int i = 0; i < EXECUTIONS; i++)
		execute(queue, list);
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	CHECK(*counter == 7 * EXECUTIONS, "%u", *counter);
	ZE_CHECK(zeCommandListReset(list));
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListClose(list));
	ZE_CHECK(zeFenceCreate(queue, &fence_desc, &fence));
	IS(zeFenceQueryStatus(fence), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
	ZE_CHECK(zeFenceHostSynchronize(fence, UINT64_MAX));
	IS(zeFenceQueryStatus(fence), ZE_RESULT_SUCCESS);
	ZE_CHECK(zeFenceReset(fence));
	IS(zeFenceQueryStatus(fence), ZE_RESULT_NOT_READY);
	CHECK(*counter == 7 * EXECUTIONS + 1);
	ZE_CHECK(zeFenceDestroy(fence));
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandQueueDestroy(queue));
}

/*
 * An event that is reset on the device as its list is executed again, and its times copied there
 * before they are lost.
 */
static void device_reset_and_query(void)
{
	enum { EXECUTIONS = 5 };
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_kernel_timestamp_result_t *results;
	ze_event_handle_t event;
	uint64_t *stamps, before = 0;

	virtual_open();
	queue = ze_app_queue(&app, 0, 0);
	list = ze_app_list(&app, 0, false);
	event = ze_app_event(ze_app_pool(&app, 1, TIMED, false), 0);
	results = ze_app_host(&app, 4 * sizeof(*results));
	stamps = ze_app_host(&app, sizeof(*stamps));
	ZE_CHECK(zeCommandListAppendEventReset(list, event));
	launch(list, ze_app_kernel(&app, "empty"), event, NULL);
	ZE_CHECK(zeCommandListAppendQueryKernelTimestamps(list, 1, &event, results,
							  (size_t[]){ sizeof(*results) }, NULL, 1,
							  &event));
	ZE_CHECK(zeCommandListAppendWriteGlobalTimestamp(list, stamps, NULL, 0, NULL));
	ZE_CHECK(zeCommandListClose(list));
	for (int i = 0; i < EXECUTIONS; i++) {
		execute(queue, list);
		ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
		CHECK(results[1].global.kernelEnd - results[1].global.kernelStart == 1000);
		CHECK(results[1].global.kernelStart > before &&
		      *stamps >= results[1].global.kernelEnd);
		CHECK(results[1].context.kernelEnd == results[1].global.kernelEnd - 5000,
		      "the context's clock starts with its queue");
		before = *stamps;
	}
	CHECK(results[0].global.kernelEnd == 0);
}

static void events(void)
{
	ze_command_list_handle_t list;
	ze_kernel_timestamp_result_t result;
	ze_event_handle_t plain, other;
	ze_event_pool_handle_t pool;
	uint32_t count = 1;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	pool = ze_app_pool(&app, 2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	plain = ze_app_event(pool, 0);
	other = ze_app_event(pool, 1);
	IS(zeEventQueryStatus(plain), ZE_RESULT_NOT_READY);
	IS(zeEventHostSynchronize(plain, 1000000), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeEventHostSignal(plain));
	IS(zeEventHostSynchronize(plain, 0), ZE_RESULT_SUCCESS);
	ZE_CHECK(zeEventHostReset(plain));
	launch(list, ze_app_kernel(&app, "empty"), other, plain);
	IS(zeEventHostSynchronize(other, 2000000), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeEventHostSignal(plain)); /* the host lets the device go on */
	IS(zeEventHostSynchronize(other, UINT64_MAX), ZE_RESULT_SUCCESS);
	IS(zeEventQueryKernelTimestamp(other, &result), ZE_RESULT_ERROR_INVALID_ARGUMENT);
	IS(zeEventQueryTimestampsExp(other, app.device, &count, &result),
	   ZE_RESULT_ERROR_INVALID_ARGUMENT);
	ZE_CHECK(zeCommandListAppendEventReset(list, other));
	ZE_CHECK(zeCommandListAppendSignalEvent(list, plain));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	IS(zeEventQueryStatus(other), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeCommandListAppendWaitOnEvents(list, 1, &other));
	launch(list, ze_app_kernel(&app, "empty"), NULL, NULL);
	IS(ze_app_list_sync(&app, list, 1000000), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeEventHostSignal(other));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeEventDestroy(plain));
	ZE_CHECK(zeEventDestroy(other));
	ZE_CHECK(zeEventPoolDestroy(pool));
}

/* The same without a worker: what waits goes on when the thread that can let it calls. */
static void events_sync(void)
{
	settings("SOFTGPU_SYNC", "1", NULL);
	events();
}

static void counter_events(void)
{
	ze_command_list_handle_t lists[2];
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t regular;
	ze_kernel_handle_t kernel;
	ze_event_handle_t event;
	uint32_t *counter;

	ze_app_open(&app, 0, -1);
	lists[0] = ze_app_immediate(&app, 0, 0, true);
	lists[1] = ze_app_immediate(&app, 0, 1, false);
	event = ze_app_event(ze_app_pool(&app, 1, TIMED, true), 0);
	kernel = ze_app_kernel(&app, "increment");
	counter = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	IS(zeEventQueryStatus(event), ZE_RESULT_SUCCESS);
	for (int i = 0; i < 50; i++)
		launch(lists[0], kernel, event, NULL); /* no reset in between */
	ZE_CHECK(zeEventHostSynchronize(event, UINT64_MAX));
	CHECK(*counter == 50);
	CHECK(times_of(event).kernelEnd > times_of(event).kernelStart);
	IS(zeEventHostReset(event), ZE_RESULT_ERROR_INVALID_ARGUMENT);
	IS(zeCommandListAppendEventReset(lists[0], event), ZE_RESULT_ERROR_INVALID_ARGUMENT);
	IS(zeCommandListAppendSignalEvent(lists[1], event), ZE_RESULT_ERROR_INVALID_ARGUMENT);
	regular = ze_app_list(&app, 0, true);
	queue = ze_app_queue(&app, 0, 0);
	launch(regular, kernel, event, NULL);
	ZE_CHECK(zeCommandListClose(regular));
	for (int i = 0; i < 10; i++)
		execute(queue, regular);
	launch(lists[1], kernel, NULL, event);
	ZE_CHECK(ze_app_list_sync(&app, lists[1], UINT64_MAX));
	CHECK(*counter == 61, "%u", *counter);
}

static void tiles(void)
{
	ze_kernel_timestamp_result_t results[4], whole;
	ze_device_handle_t tile[2];
	ze_command_list_handle_t list;
	ze_device_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
	ze_event_handle_t event;
	uint32_t count = 0;

	settings("SOFTGPU_TILES", "2", "SOFTGPU_DEVICES", "3", NULL);
	virtual_open();
	ZE_CHECK(zeDeviceGet(app.driver, &count, NULL));
	CHECK(count == 3);
	count = 0;
	ZE_CHECK(zeDeviceGetSubDevices(app.device, &count, NULL));
	CHECK(count == 2);
	ZE_CHECK(zeDeviceGetSubDevices(app.device, &count, tile));
	ZE_CHECK(zeDeviceGetProperties(tile[1], &properties));
	CHECK(properties.flags & ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE);
	CHECK(properties.subdeviceId == 1);
	list = ze_app_immediate(&app, 0, 0, true);
	event = ze_app_event(ze_app_pool(&app, 1, TIMED, false), 0);
	launch(list, ze_app_kernel(&app, "empty"), event, NULL);
	ZE_CHECK(zeEventQueryKernelTimestamp(event, &whole));
	count = 0;
	ZE_CHECK(zeEventQueryTimestampsExp(event, app.device, &count, NULL));
	CHECK(count == 2);
	ZE_CHECK(zeEventQueryTimestampsExp(event, app.device, &count, results));
	CHECK(results[0].global.kernelStart == whole.global.kernelStart &&
	      results[0].global.kernelEnd == whole.global.kernelEnd - 1);
	CHECK(results[1].global.kernelStart == whole.global.kernelStart + 1 &&
	      results[1].global.kernelEnd == whole.global.kernelEnd);
	count = 1;
	ZE_CHECK(zeEventQueryTimestampsExp(event, tile[1], &count, results));
	CHECK(count == 1 && results[0].global.kernelEnd == whole.global.kernelEnd &&
	      results[0].global.kernelStart == whole.global.kernelStart + 1);
}

static void copy_engines(void)
{
	ze_command_queue_group_properties_t groups[4];
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t regular, immediate, compute;
	ze_command_queue_handle_t queue;
	uint32_t count = 4;
	char *to, *from;

	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeDeviceGetCommandQueueGroupProperties(app.device, &count, groups));
	CHECK(count == 3 && groups[0].numQueues == 4 && groups[1].numQueues == 1 &&
	      groups[2].numQueues == 2);
	CHECK(groups[0].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE);
	CHECK(groups[1].flags == ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY);
	to = ze_app_device(&app, 100);
	from = ze_app_host(&app, 100);
	memset(from, 7, 100);
	queue = ze_app_queue(&app, 1, 0);
	regular = ze_app_list(&app, 1, false);
	immediate = ze_app_immediate(&app, 2, 1, false);
	compute = ze_app_list(&app, 0, false);
	IS(zeCommandListAppendLaunchKernel(regular, ze_app_kernel(&app, "empty"), &one, NULL, 0,
					   NULL),
	   ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
	IS(zeCommandListAppendLaunchKernel(immediate, ze_app_kernel(&app, "empty"), &one, NULL, 0,
					   NULL),
	   ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
	ZE_CHECK(zeCommandListAppendMemoryCopy(regular, to, from, 50, NULL, 0, NULL));
	ZE_CHECK(zeCommandListClose(regular));
	ZE_CHECK(zeCommandListClose(compute));
	IS(zeCommandQueueExecuteCommandLists(queue, 1, &compute, NULL),
	   ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
	execute(queue, regular);
	ZE_CHECK(zeCommandListAppendMemoryCopy(immediate, to + 50, from + 50, 50, NULL, 0, NULL));
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	CHECK(!memcmp(to, from, 100));
}

/* Threads that each have a list, and one event that all wait for. */
static void *thread_work(void *arg)
{
	ze_command_list_handle_t list = ze_app_immediate(&app, 0, 0, false);
	ze_kernel_handle_t kernel = ze_app_kernel(&app, "increment");
	ze_event_pool_handle_t pool = ze_app_pool(&app, 1, TIMED, false);
	ze_event_handle_t mine = ze_app_event(pool, 0);
	uint32_t *counter = ze_app_shared(&app, 4);
	ze_event_handle_t start = arg;

	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	launch(list, kernel, NULL, start);
	for (int i = 0; i < 200; i++) {
		launch(list, kernel, mine, NULL);
		ZE_CHECK(zeEventHostSynchronize(mine, UINT64_MAX));
		ZE_CHECK(zeEventHostReset(mine));
	}
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	CHECK(*counter == 201);
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ZE_CHECK(zeEventDestroy(mine));
	ZE_CHECK(zeEventPoolDestroy(pool));
	ZE_CHECK(zeMemFree(app.context, counter));
	return NULL;
}

static void threads(void)
{
	ze_event_handle_t start;
	pthread_t ids[4];

	ze_app_open(&app, 0, -1);
	start = ze_app_event(ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_create(&ids[i], NULL, thread_work, start);
	(void)usleep(2000);
	ZE_CHECK(zeEventHostSignal(start));
	for (int i = 0; i < 4; i++)
		(void)pthread_join(ids[i], NULL);
}

static void threads_sync(void)
{
	settings("SOFTGPU_SYNC", "1", NULL);
	threads();
}

#define BY_NAME(function) ((__typeof__(&function))ze_app_function(&app, #function))

static void lists_in_immediate(void)
{
	ze_command_list_handle_t immediate, list;
	ze_kernel_handle_t kernel;
	ze_event_handle_t done;
	uint32_t *counter;

	ze_app_open(&app, 0, -1);
	immediate = ze_app_immediate(&app, 0, 0, true);
	list = ze_app_list(&app, 0, true);
	kernel = ze_app_kernel(&app, "increment");
	counter = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	for (int i = 0; i < 3; i++)
		launch(list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListClose(list));
	done = ze_app_event(ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false), 0);
	ZE_CHECK(BY_NAME(zeCommandListImmediateAppendCommandListsExp)(immediate, 1, &list, NULL, 0,
								      NULL));
	ZE_CHECK(BY_NAME(zeCommandListImmediateAppendCommandListsExp)(immediate, 1, &list, done, 0,
								      NULL));
	ZE_CHECK(zeEventHostSynchronize(done, UINT64_MAX));
	CHECK(*counter == 6);
}

static void counter_event_without_pool(void)
{
	ze_event_counter_based_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
					       .flags = ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE };
	const ze_group_count_t one = { 1, 1, 1 };
	ze_kernel_timestamp_result_t result;
	ze_command_list_handle_t list;
	ze_event_handle_t event;

	settings("SOFTGPU_STRICT", "1", NULL);
	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	for (int timed = 0; timed < 2; timed++) {
		desc.flags |= timed ? ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP : 0;
		ZE_CHECK(
			BY_NAME(zeEventCounterBasedCreate)(app.context, app.device, &desc, &event));
		ZE_CHECK(BY_NAME(zeCommandListAppendLaunchKernelWithParameters)(
			list, ze_app_kernel(&app, "empty"), &one, NULL, event, 0, NULL));
		ZE_CHECK(zeEventHostSynchronize(event, UINT64_MAX));
		IS(zeEventQueryKernelTimestamp(event, &result),
		   timed ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT);
		ZE_CHECK(zeEventDestroy(event));
	}
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
}

static void mutable_commands(void)
{
	ze_mutable_command_id_exp_desc_t id_desc = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC
	};
	ze_mutable_kernel_argument_exp_desc_t arg = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
		.argSize = sizeof(void *)
	};
	ze_mutable_group_count_exp_desc_t count = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC, .pNext = &arg
	};
	ze_mutable_commands_exp_desc_t desc = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC, .pNext = &count
	};
	const ze_group_count_t five = { 5, 1, 1 };
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_event_handle_t event;
	ze_kernel_handle_t kernel;
	uint32_t *counters[2];
	uint64_t id;

	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 0);
	list = ze_app_list(&app, 0, false);
	kernel = ze_app_kernel(&app, "increment");
	event = ze_app_event(ze_app_pool(&app, 1, TIMED, false), 0);
	for (int i = 0; i < 2; i++)
		counters[i] = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counters[0]), &counters[0]);
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(BY_NAME(zeCommandListGetNextCommandIdExp)(list, &id_desc, &id));
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListClose(list));
	execute(queue, list);
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	CHECK(*counters[0] == 2);
	arg.commandId = count.commandId = id;
	arg.pArgValue = &counters[1];
	count.pGroupCount = &five;
	ZE_CHECK(BY_NAME(zeCommandListUpdateMutableCommandsExp)(list, &desc));
	ZE_CHECK(BY_NAME(zeCommandListUpdateMutableCommandSignalEventExp)(list, id, event));
	ZE_CHECK(zeCommandListClose(list));
	execute(queue, list);
	ZE_CHECK(zeEventHostSynchronize(event, UINT64_MAX));
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	CHECK(*counters[0] == 3 && *counters[1] == 5);
	arg.commandId = count.commandId = 77;
	IS(BY_NAME(zeCommandListUpdateMutableCommandsExp)(list, &desc),
	   ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

static void graphs(void)
{
	ze_executable_graph_handle_t executable;
	ze_command_list_handle_t list;
	ze_graph_handle_t graph;
	ze_kernel_handle_t kernel;
	uint32_t *counter;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	kernel = ze_app_kernel(&app, "increment");
	counter = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	IS(BY_NAME(zeCommandListIsGraphCaptureEnabledExt)(list), ZE_RESULT_QUERY_FALSE);
	ZE_CHECK(BY_NAME(zeCommandListBeginGraphCaptureExt)(list, NULL));
	IS(BY_NAME(zeCommandListIsGraphCaptureEnabledExt)(list), ZE_RESULT_QUERY_TRUE);
	for (int i = 0; i < 3; i++)
		launch(list, kernel, NULL, NULL);
	ZE_CHECK(BY_NAME(zeCommandListEndGraphCaptureExt)(list, NULL, &graph));
	IS(BY_NAME(zeGraphIsEmptyExt)(graph), ZE_RESULT_QUERY_FALSE);
	ZE_CHECK(BY_NAME(zeGraphInstantiateExt)(graph, NULL, &executable));
	ZE_CHECK(BY_NAME(zeGraphDestroyExt)(graph));
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	CHECK(*counter == 2, "what is captured is not executed: %u", *counter);
	for (int i = 0; i < 4; i++)
		ZE_CHECK(BY_NAME(zeCommandListAppendGraphExt)(list, executable, NULL, NULL, 0,
							      NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	CHECK(*counter == 14, "%u", *counter);
	ZE_CHECK(BY_NAME(zeExecutableGraphDestroyExt)(executable));
}

/* A list that waits for an event of a captured one is captured too, until the capture ends. */
static void forks(void)
{
	ze_event_handle_t forked, joined;
	ze_executable_graph_handle_t executable;
	ze_command_list_handle_t list, other;
	ze_kernel_handle_t kernel;
	ze_graph_handle_t graph;
	uint32_t *counter;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	other = ze_app_immediate(&app, 0, 1, true);
	forked = ze_app_event(ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false), 0);
	joined = ze_app_event(ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false), 0);
	kernel = ze_app_kernel(&app, "increment");
	counter = ze_app_shared(&app, 4);
	ze_app_arg(kernel, 0, sizeof(counter), &counter);
	for (int join = 0; join < 2; join++) {
		ZE_CHECK(BY_NAME(zeCommandListBeginGraphCaptureExt)(list, NULL));
		launch(list, kernel, forked, NULL);
		launch(other, kernel, NULL, NULL);
		IS(BY_NAME(zeCommandListIsGraphCaptureEnabledExt)(other), ZE_RESULT_QUERY_FALSE);
		ZE_CHECK(zeCommandListAppendWaitOnEvents(other, 1, &forked));
		IS(BY_NAME(zeCommandListIsGraphCaptureEnabledExt)(other), ZE_RESULT_QUERY_TRUE);
		launch(other, kernel, joined, NULL);
		if (join)
			ZE_CHECK(zeCommandListAppendWaitOnEvents(list, 1, &joined));
		IS(BY_NAME(zeCommandListEndGraphCaptureExt)(list, NULL, &graph),
		   join ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS);
		IS(BY_NAME(zeCommandListIsGraphCaptureEnabledExt)(other), ZE_RESULT_QUERY_FALSE);
	}
	ZE_CHECK(ze_app_list_sync(&app, other, UINT64_MAX));
	CHECK(*counter == 2, "what is captured is not executed: %u", *counter);
	ZE_CHECK(BY_NAME(zeGraphInstantiateExt)(graph, NULL, &executable));
	for (int i = 0; i < 3; i++)
		ZE_CHECK(BY_NAME(zeCommandListAppendGraphExt)(list, executable, NULL, NULL, 0,
							      NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	CHECK(*counter == 8, "%u", *counter);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("given durations give exact times", given_times);
	tap_run("what has no reason to wait overlaps", overlap);
	tap_run("the virtual clock follows what the host has seen", host_sees_ends);
	tap_run("kernel timestamps wrap", wraps);
	tap_run("the real clock", real_time);
	tap_run("a clock that drifts", drift);
	tap_run("regular lists, executed again, reset; fences", regular_lists);
	tap_run("events reset and asked on the device", device_reset_and_query);
	tap_run("events of host and device", events);
	tap_run("events of host and device, on one thread", events_sync);
	tap_run("counter-based events", counter_events);
	tap_run("tiles and their times", tiles);
	tap_run("copy engines", copy_engines);
	tap_run("threads", threads);
	tap_run("threads that run the commands themselves", threads_sync);
	tap_run("regular lists appended to an immediate one", lists_in_immediate);
	tap_run("a counter-based event without a pool", counter_event_without_pool);
	tap_run("commands changed after they were appended", mutable_commands);
	tap_run("graphs", graphs);
	tap_run("graphs captured from several lists", forks);
	return tap_done();
}
