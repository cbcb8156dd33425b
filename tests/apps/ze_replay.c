/*
 * Work that is executed by other ways than lists in queues and commands in immediate lists:
 *	ze_replay lists|graph|fork|mutable|newer|imported|ipc|opened|counter [EXECUTIONS]
 *[--in-order] [--event] [--older] [--into] [--step] [--numbers] lists: a regular list appended to
 *an immediate one; graph: captured from an immediate list; fork: from two, the second of which
 *waits for the first one; mutable: a regular list that is changed between its executions; newer:
 *lists, kernels, copies and fills by the functions of versions 1.14 and 1.16; ipc: events of a pool
 *that another process may open; opened: of one that was opened; counter: events that count, of no
 *pool. --older: graphs by the functions that Intel's driver had first; --into: and captured into
 *one that was made before. --numbers (mutable): commands that are no kernels have numbers, too.
 *--step (lists, graph): waits for a line before it makes what is executed, and before it executes
 *that. Prints how many kernels and groups were launched.
 */
#include "ze_app.h"

#include <string.h>

enum { KERNELS = 3, AFTER = 100 };

static struct ze_app app;
static ze_kernel_handle_t kernel;
static ze_command_list_handle_t immediate;
static unsigned executions = 4, launched, groups;
static bool in_order, older, steps, into, numbers;
static ze_event_handle_t event;

#define FUNCTION(name) ((__typeof__(&name))ze_app_function(&app, #name))

static void launch(ze_command_list_handle_t list, unsigned count, unsigned times,
		   ze_event_handle_t signal)
{
	ze_group_count_t size = { count, 1, 1 };

	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &size, signal, 0, NULL));
	launched += times;
	groups += times * count;
}

static void wait_for_event(void)
{
	if (!event)
		return;
	ZE_CHECK(zeEventHostSynchronize(event, UINT64_MAX));
	ZE_CHECK(zeEventHostReset(event));
}

/* --step: says so, and goes on with the next line that it is given. */
static void step(const char *what)
{
	if (!steps)
		return;
	puts(what);
	(void)fflush(stdout);
	for (int c = getchar(); c != '\n' && c != EOF;)
		c = getchar();
}

/* Nodes that were free are used again. */
static void launch_more(void)
{
	for (unsigned i = 0; i < AFTER; i++)
		launch(immediate, 1, 1, NULL);
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
}

static void lists(void)
{
	ze_command_list_handle_t list = ze_app_list(&app, 0, in_order);

	step("begin");
	for (unsigned i = 0; i < KERNELS; i++)
		launch(list, i + 1, executions, NULL);
	ZE_CHECK(zeCommandListClose(list));
	step("made");
	for (unsigned i = 0; i < executions; i++) {
		launch(immediate, 1, 1, NULL);
		ZE_CHECK(FUNCTION(zeCommandListImmediateAppendCommandListsExp)(immediate, 1, &list,
									       event, 0, NULL));
		wait_for_event();
	}
	launch_more();
	ZE_CHECK(zeCommandListDestroy(list));
}

static void newer(void)
{
	ze_command_list_handle_t list = ze_app_list(&app, 0, in_order);
	char *memory = ze_app_device(&app, 96), *host = ze_app_host(&app, 96);

	ZE_CHECK(FUNCTION(zeCommandListAppendMemoryFillWithParameters)(list, memory, "x", 1, 32,
								       NULL, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
	ZE_CHECK(FUNCTION(zeCommandListAppendLaunchKernelWithParameters)(
		list, kernel, &(ze_group_count_t){ 2, 1, 1 }, NULL, NULL, 0, NULL));
	launched += executions;
	groups += 2 * executions;
	ZE_CHECK(FUNCTION(zeCommandListAppendLaunchKernelWithArguments)(
		list, kernel, (ze_group_count_t){ 3, 1, 1 }, (ze_group_size_t){ 16, 1, 1 }, NULL,
		NULL, NULL, 0, NULL));
	launched += executions;
	groups += 3 * executions;
	ZE_CHECK(zeCommandListClose(list));
	for (unsigned i = 0; i < executions; i++) {
		ZE_CHECK(FUNCTION(zeCommandListImmediateAppendCommandListsWithParameters)(
			immediate, 1, &list, NULL, event, 0, NULL));
		wait_for_event();
	}
	ZE_CHECK(zeCommandListAppendBarrier(immediate, NULL, 0, NULL));
	ZE_CHECK(FUNCTION(zeCommandListAppendMemoryCopyWithParameters)(immediate, host, memory, 24,
								       NULL, NULL, 0, NULL));
	launch_more();
	ZE_CHECK(zeCommandListDestroy(list));
	printf("%.24s\n", host);
	ZE_CHECK(zeMemFree(app.context, memory));
	ZE_CHECK(zeMemFree(app.context, host));
}

static ze_graph_handle_t into_graph;

static void begin_capture(void)
{
	if (into) {
		ZE_CHECK(FUNCTION(zeGraphCreateExp)(app.context, &into_graph, NULL));
		ZE_CHECK(FUNCTION(zeCommandListBeginCaptureIntoGraphExp)(immediate, into_graph,
									 NULL));
		return;
	}
	ZE_CHECK(older ? FUNCTION(zeCommandListBeginGraphCaptureExp)(immediate, NULL)
		       : FUNCTION(zeCommandListBeginGraphCaptureExt)(immediate, NULL));
}

static ze_graph_handle_t end_capture(void)
{
	ze_graph_handle_t graph = NULL;

	if (into) {
		ZE_CHECK(FUNCTION(zeCommandListEndGraphCaptureExp)(immediate, NULL, NULL));
		return into_graph;
	}
	ZE_CHECK(older ? FUNCTION(zeCommandListEndGraphCaptureExp)(immediate, &graph, NULL)
		       : FUNCTION(zeCommandListEndGraphCaptureExt)(immediate, NULL, &graph));
	return graph;
}

static ze_executable_graph_handle_t instantiate(ze_graph_handle_t graph)
{
	ze_executable_graph_handle_t executable;

	ZE_CHECK(older ? FUNCTION(zeCommandListInstantiateGraphExp)(graph, &executable, NULL)
		       : FUNCTION(zeGraphInstantiateExt)(graph, NULL, &executable));
	return executable;
}

static void append_graph(ze_executable_graph_handle_t executable)
{
	ZE_CHECK(older ? FUNCTION(zeCommandListAppendGraphExp)(immediate, executable, NULL, event,
							       0, NULL)
		       : FUNCTION(zeCommandListAppendGraphExt)(immediate, executable, NULL, event,
							       0, NULL));
	wait_for_event();
}

static void destroy(ze_graph_handle_t graph, ze_executable_graph_handle_t executable)
{
	ZE_CHECK(older ? FUNCTION(zeExecutableGraphDestroyExp)(executable)
		       : FUNCTION(zeExecutableGraphDestroyExt)(executable));
	ZE_CHECK(older ? FUNCTION(zeGraphDestroyExp)(graph) : FUNCTION(zeGraphDestroyExt)(graph));
}

static void graph(void)
{
	ze_graph_handle_t captured;
	ze_executable_graph_handle_t executable;

	launch(immediate, 1, 1, NULL);
	step("begin");
	begin_capture();
	for (unsigned i = 0; i < KERNELS; i++)
		launch(immediate, i + 1, executions, NULL);
	captured = end_capture();
	step("made");
	launch_more();
	executable = instantiate(captured);
	for (unsigned i = 0; i < executions; i++)
		append_graph(executable);
	launch_more();
	destroy(captured, executable);
}

static void launch_after(ze_command_list_handle_t list, ze_event_handle_t signal,
			 ze_event_handle_t wait)
{
	ze_group_count_t size = { 5, 1, 1 };

	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &size, signal, 1, &wait));
	launched += executions;
	groups += executions * 5;
}

/*
 * Two lists of which one is captured, the second from a wait for the first one's event on; and a
 * third that waits for nothing.
 */
static void fork_and_join(void)
{
	ze_event_pool_handle_t pool = ze_app_pool(&app, 3, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	ze_command_list_handle_t second = ze_app_immediate(&app, 0, 1, in_order),
				 third = ze_app_immediate(&app, 0, 2, in_order);
	ze_executable_graph_handle_t executable;
	ze_event_handle_t events[3], none;
	ze_graph_handle_t captured;

	for (uint32_t i = 0; i < 3; i++)
		events[i] = ze_app_event(pool, i);
	none = events[2];
	launch(second, 1, 1, NULL);
	begin_capture();
	launch(second, 2, 1, NULL); /* not yet captured */
	launch(immediate, 3, executions, events[0]);
	launch(third, 2, 1, none);
	launch_after(second, NULL, events[0]);
	launch(second, 4, executions, NULL);
	ZE_CHECK(zeCommandListAppendBarrier(second, events[1], 0, NULL));
	launch_after(immediate, NULL, events[1]);
	captured = end_capture();
	launch(second, 6, 1, NULL); /* no longer */
	launch_more();
	executable = instantiate(captured);
	for (unsigned i = 0; i < executions; i++) {
		append_graph(executable);
		launch(second, 7, 1, NULL);
	}
	launch_more();
	ZE_CHECK(ze_app_list_sync(&app, second, UINT64_MAX));
	ZE_CHECK(ze_app_list_sync(&app, third, UINT64_MAX));
	destroy(captured, executable);
	ZE_CHECK(zeCommandListDestroy(third));
	ZE_CHECK(zeCommandListDestroy(second));
	for (uint32_t i = 0; i < 3; i++)
		ZE_CHECK(zeEventDestroy(events[i]));
	ZE_CHECK(zeEventPoolDestroy(pool));
}

static void execute(ze_command_queue_handle_t queue, ze_command_list_handle_t list)
{
	ZE_CHECK(zeCommandListClose(list));
	for (unsigned i = 0; i < executions; i++)
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
}

static void mutable(void)
{
	ze_command_queue_handle_t queue = ze_app_queue(&app, 0, 0);
	ze_command_list_handle_t list = ze_app_list(&app, 0, in_order);
	ze_mutable_command_id_exp_desc_t id_desc = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC, .flags = 3
	};
	ze_group_count_t more = { 7, 2, 1 };
	ze_mutable_group_count_exp_desc_t count = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC, .pGroupCount = &more
	};
	ze_mutable_commands_exp_desc_t change = {
		.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC, .pNext = &count
	};
	uint64_t id;

	for (int i = 0; numbers && i < 5; i++) {
		ZE_CHECK(FUNCTION(zeCommandListGetNextCommandIdExp)(list, &id_desc, &id));
		ZE_CHECK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
	}
	launch(list, 1, 4 * executions, NULL);
	ZE_CHECK(FUNCTION(zeCommandListGetNextCommandIdExp)(list, &id_desc, &id));
	launch(list, 2, executions, NULL);
	launch(list, 3, 4 * executions, NULL);
	execute(queue, list);
	count.commandId = id;
	ZE_CHECK(FUNCTION(zeCommandListUpdateMutableCommandsExp)(list, &change));
	execute(queue, list);
	/* an event of the program's takes the place of none, and none its place again */
	ZE_CHECK(FUNCTION(zeCommandListUpdateMutableCommandSignalEventExp)(list, id, event));
	execute(queue, list);
	if (event)
		wait_for_event();
	ZE_CHECK(FUNCTION(zeCommandListUpdateMutableCommandSignalEventExp)(list, id, NULL));
	execute(queue, list);
	launched += 3 * executions;
	groups += 3 * executions * 14;
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandQueueDestroy(queue));
}

/* Times are those of the last command that signalled it, or refused. */
static void query(ze_event_handle_t shared, bool timed)
{
	ze_kernel_timestamp_result_t times;
	ze_result_t result = zeEventQueryKernelTimestamp(shared, &times);

	if (timed ? result || times.global.kernelEnd <= times.global.kernelStart
		  : result != ZE_RESULT_ERROR_INVALID_ARGUMENT)
		ze_app_fail(__FILE__, __LINE__, "times of an event", result);
}

/* --event: with times. */
static void ipc(bool opened)
{
	ze_event_pool_flags_t flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_IPC,
			      seen;
	ze_event_pool_handle_t pool, made;
	ze_ipc_event_pool_handle_t handle;
	ze_event_handle_t shared;

	flags |= event ? ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP : 0;
	pool = made = ze_app_pool(&app, 1, flags, false);
	if (opened) {
		ZE_CHECK(zeEventPoolGetIpcHandle(made, &handle));
		ZE_CHECK(zeEventPoolOpenIpcHandle(app.context, handle, &pool));
	}
	ZE_CHECK(FUNCTION(zeEventPoolGetFlags)(pool, &seen));
	if (seen != flags)
		ze_app_fail(__FILE__, __LINE__, "flags of the pool", ZE_RESULT_ERROR_UNKNOWN);
	shared = ze_app_event(pool, 0);
	for (unsigned i = 0; i < executions; i++) {
		launch(immediate, 1, 1, shared);
		ZE_CHECK(zeEventHostSynchronize(shared, UINT64_MAX));
		query(shared, event);
		ZE_CHECK(zeEventHostReset(shared));
	}
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	ZE_CHECK(zeEventDestroy(shared));
	if (opened)
		ZE_CHECK(zeEventPoolCloseIpcHandle(pool));
	ZE_CHECK(zeEventPoolDestroy(made));
}

/*
 * --event: with times. Each event by both functions that make such, signalled again before and
 * after anybody looked.
 */
static void counter(void)
{
	ze_event_counter_based_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
					       .flags = ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE };
	ze_command_list_handle_t list = ze_app_list(&app, 0, true);
	ze_command_queue_handle_t queue = ze_app_queue(&app, 0, 0);
	ze_event_handle_t events[2];

	desc.flags |= event ? ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP : 0;
	ZE_CHECK(FUNCTION(zeEventCounterBasedCreate)(app.context, app.device, &desc, &events[0]));
	ZE_CHECK(FUNCTION(zexCounterBasedEventCreate2)(app.context, app.device, &desc, &events[1]));
	for (unsigned i = 0; i < executions; i++) {
		launch(immediate, 1, 1, events[i & 1]);
		ZE_CHECK(zeEventHostSynchronize(events[i & 1], UINT64_MAX));
		query(events[i & 1], event);
	}
	for (unsigned i = 0; i < executions; i++)
		launch(immediate, 2 + i % 5, 1, events[i & 1]);
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	for (unsigned i = 0; i < 2 * KERNELS; i++)
		launch(list, i + 1, executions, i ? events[i & 1] : NULL);
	execute(queue, list);
	for (unsigned i = 0; i < 2; i++) {
		ZE_CHECK(zeEventHostSynchronize(events[i], UINT64_MAX));
		ZE_CHECK(zeEventDestroy(events[i]));
	}
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeCommandQueueDestroy(queue));
}

/*
 * Memory of the program's own, which the driver is told of; and a question that older headers do
 * not know.
 */
static void imported(void)
{
	static char own[4096];
	char *memory = ze_app_device(&app, 96);
	ze_bool_t is_immediate = 0;

	ZE_CHECK(FUNCTION(zexDriverImportExternalPointer)(app.driver, own, sizeof(own)));
	ZE_CHECK(zeCommandListAppendMemoryCopy(immediate, memory, own, 64, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	ZE_CHECK(FUNCTION(zexDriverReleaseImportedPointer)(app.driver, own));
	ZE_CHECK(FUNCTION(zeCommandListIsImmediate)(immediate, &is_immediate));
	printf("immediate: %d\n", is_immediate);
	ZE_CHECK(zeMemFree(app.context, memory));
}

int main(int argc, char **argv)
{
	ze_event_pool_handle_t pool = NULL;
	const char *mode = argc > 1 ? argv[1] : "";

	ze_app_open(&app, 0, -1);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--in-order"))
			in_order = true;
		else if (!strcmp(argv[i], "--older"))
			older = true;
		else if (!strcmp(argv[i], "--into"))
			into = older = true;
		else if (!strcmp(argv[i], "--numbers"))
			numbers = true;
		else if (!strcmp(argv[i], "--step"))
			steps = true;
		else if (!strcmp(argv[i], "--event"))
			pool = ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
		else
			executions = (unsigned)atoi(argv[i]);
	}
	event = pool ? ze_app_event(pool, 0) : NULL;
	kernel = ze_app_kernel(&app, "empty");
	immediate = ze_app_immediate(&app, 0, 0, in_order);
	if (!strcmp(mode, "lists"))
		lists();
	else if (!strcmp(mode, "graph"))
		graph();
	else if (!strcmp(mode, "imported"))
		imported();
	else if (!strcmp(mode, "newer"))
		newer();
	else if (!strcmp(mode, "fork"))
		fork_and_join();
	else if (!strcmp(mode, "mutable"))
		mutable();
	else if (!strcmp(mode, "counter"))
		counter();
	else
		ipc(!strcmp(mode, "opened"));
	printf("%u kernels %u groups\n", launched, groups);
	ZE_CHECK(zeCommandListDestroy(immediate));
	ZE_CHECK(zeKernelDestroy(kernel));
	if (event) {
		ZE_CHECK(zeEventDestroy(event));
		ZE_CHECK(zeEventPoolDestroy(pool));
	}
	ze_app_close(&app);
	return 0;
}
