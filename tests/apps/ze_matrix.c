/*
 * Work for the device in every way that a program can give it, chosen by options, with results that
 *are checked and counts that are printed in one line: what was launched, in all executions, is what
 *a trace of it must show. ze_matrix [--list regular|immediate] [--in-order] [--synchronous]
 *[--events none|timed|plain|counter] [--sync queue|list|event|fence|none]
 *	          [--kernels N] [--copies N] [--fills N] [--regions N] [--barriers] [--chain]
 *[--device-reset] [--executions N]
 *	          [--kernel empty|spin|increment] [--us N] [--device N] [--tile N] [--engine
 *ORDINAL,INDEX] [--threads N] [--timestamps]
 *	          [--end destroy|return|_exit|abort|kill|wait|exec]
 */
#include "ze_app.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool immediate, in_order, synchronous, barriers, chain, device_reset, timestamps;
	unsigned kernels, copies, fills, regions, executions, us, device, ordinal, index, threads;
	int tile;
	const char *events, *sync, *kernel, *end;
} options = { .kernels = 4,
	      .executions = 1,
	      .threads = 1,
	      .tile = -1,
	      .events = "none",
	      .sync = "queue",
	      .kernel = "increment",
	      .end = "destroy" };

enum { COPY_BYTES = 4096, FILL_BYTES = 2048, PITCH = 256, WIDTH = 96, HEIGHT = 5 };

/*
 * One thread's work: a list, and for each command memory of its own, so that commands may run in
 * any order.
 */
struct work {
	const struct ze_app *app;
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_fence_handle_t fence;
	ze_event_pool_handle_t pool, done_pool;
	ze_event_handle_t *events, done;
	ze_kernel_handle_t kernel;
	uint32_t *counter;
	unsigned char *memory[3]; /* host, device, shared */
	unsigned commands, barriers, groups;
	pthread_t thread;
};

static unsigned work_commands(void)
{
	return options.kernels + options.copies + options.fills + options.regions;
}

static ze_event_handle_t next_event(struct work *work, ze_event_handle_t *wait, uint32_t *nwait)
{
	*nwait = 0;
	if (!work->events)
		return NULL;
	if (options.chain && work->commands) {
		*wait = work->events[work->commands - 1];
		*nwait = 1;
	}
	return work->events[work->commands++];
}

static void barrier(struct work *work)
{
	if (!options.barriers)
		return;
	ZE_CHECK(zeCommandListAppendBarrier(work->list, NULL, 0, NULL));
	work->barriers++;
}

static size_t slot(unsigned number)
{
	return (size_t)number * 2 * COPY_BYTES;
}

/*
 * Copies go from host to device, from device to shared memory, and so on around: number i from
 * memory i % 3 to the next.
 */
static void append(struct work *work)
{
	ze_event_handle_t wait, event;
	unsigned place = 0;
	uint32_t nwait;

	for (unsigned i = 0; i < options.kernels; i++) {
		ze_group_count_t groups = { 1 + i % 3, 1, 1 };

		event = next_event(work, &wait, &nwait);
		ZE_CHECK(zeCommandListAppendLaunchKernel(work->list, work->kernel, &groups, event,
							 nwait, &wait));
		work->groups += groups.groupCountX;
		barrier(work);
	}
	for (unsigned i = 0; i < options.copies; i++, place++) {
		event = next_event(work, &wait, &nwait);
		ZE_CHECK(zeCommandListAppendMemoryCopy(
			work->list, work->memory[(place + 1) % 3] + slot(place) + COPY_BYTES,
			work->memory[place % 3] + slot(place), COPY_BYTES, event, nwait, &wait));
		barrier(work);
	}
	for (unsigned i = 0; i < options.fills; i++, place++) {
		uint32_t pattern = 0x01020304 + place;

		event = next_event(work, &wait, &nwait);
		ZE_CHECK(zeCommandListAppendMemoryFill(work->list,
						       work->memory[1] + slot(place) + COPY_BYTES,
						       &pattern, sizeof(pattern), FILL_BYTES, event,
						       nwait, &wait));
		barrier(work);
	}
	for (unsigned i = 0; i < options.regions; i++, place++) {
		ze_copy_region_t to = { 0, 0, 0, WIDTH, HEIGHT, 0 },
				 from = { 16, 1, 0, WIDTH, HEIGHT, 0 };

		event = next_event(work, &wait, &nwait);
		ZE_CHECK(zeCommandListAppendMemoryCopyRegion(
			work->list, work->memory[1] + slot(place) + COPY_BYTES, &to, PITCH, 0,
			work->memory[0] + slot(place), &from, PITCH, 0, event, nwait, &wait));
		barrier(work);
	}
}

static void make_synchronous(struct work *work, const struct ze_app *app)
{
	ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					 .ordinal = options.ordinal,
					 .index = options.index,
					 .flags = options.in_order ? ZE_COMMAND_QUEUE_FLAG_IN_ORDER
								   : 0,
					 .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };

	if (options.immediate)
		ZE_CHECK(zeCommandListCreateImmediate(app->context, app->device, &desc,
						      &work->list));
	else
		ZE_CHECK(zeCommandQueueCreate(app->context, app->device, &desc, &work->queue));
}

static void prepare(struct work *work, const struct ze_app *app)
{
	size_t size = slot(options.copies + options.fills + options.regions) + 1;
	unsigned count = work_commands();

	work->app = app;
	if (options.synchronous)
		make_synchronous(work, app);
	else if (!options.immediate)
		work->queue = ze_app_queue(app, options.ordinal, options.index);
	if (!work->list)
		work->list = options.immediate
				     ? ze_app_immediate(app, options.ordinal, options.index,
							options.in_order)
				     : ze_app_list(app, options.ordinal, options.in_order);
	if (strcmp(options.events, "none") && count) {
		work->pool = ze_app_pool(app, count,
					 ZE_EVENT_POOL_FLAG_HOST_VISIBLE |
						 (!strcmp(options.events, "timed")
							  ? ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP
							  : 0),
					 !strcmp(options.events, "counter"));
		work->events = calloc(count, sizeof(*work->events));
		for (unsigned i = 0; i < count; i++)
			work->events[i] = ze_app_event(work->pool, i);
	}
	work->done_pool = ze_app_pool(app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	work->done = ze_app_event(work->done_pool, 0);
	if (!strcmp(options.sync, "fence")) {
		ze_fence_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_FENCE_DESC };

		ZE_CHECK(zeFenceCreate(work->queue, &desc, &work->fence));
	}
	work->kernel = ze_app_kernel(app, options.kernel);
	work->counter = ze_app_shared(app, sizeof(*work->counter));
	if (!strcmp(options.kernel, "increment"))
		ze_app_arg(work->kernel, 0, sizeof(work->counter), &work->counter);
	else if (!strcmp(options.kernel, "spin"))
		ze_app_arg(work->kernel, 0, sizeof(options.us), &options.us);
	work->memory[0] = ze_app_host(app, size);
	work->memory[1] = ze_app_device(app, size);
	work->memory[2] = ze_app_shared(app, size);
	/* the device's memory is the host's too here */
	for (size_t i = 0; i < size; i++)
		work->memory[0][i] = work->memory[1][i] = work->memory[2][i] =
			(unsigned char)(i * 7 + i / 251);
}

/* The events of the last execution stay as they are, for their times to be told. */
static void wait_for(struct work *work, bool last)
{
	if (!strcmp(options.sync, "fence")) {
		ZE_CHECK(zeFenceHostSynchronize(work->fence, UINT64_MAX));
		ZE_CHECK(zeFenceReset(work->fence));
	} else if (!strcmp(options.sync, "event")) {
		ZE_CHECK(zeEventHostSynchronize(work->done, UINT64_MAX));
		ZE_CHECK(zeEventHostReset(work->done));
	} else if (!strcmp(options.sync, "none")) {
		return;
	} else if (options.immediate) {
		ZE_CHECK(ze_app_list_sync(work->app, work->list, UINT64_MAX));
	} else {
		ZE_CHECK(zeCommandQueueSynchronize(work->queue, UINT64_MAX));
	}
	if (!work->events || last || options.device_reset || !strcmp(options.events, "counter"))
		return;
	for (unsigned i = 0; i < work->commands; i++)
		ZE_CHECK(zeEventHostReset(work->events[i]));
}

static void build(struct work *work)
{
	work->commands = 0;
	for (unsigned i = 0; options.device_reset && work->events && i < work_commands(); i++)
		ZE_CHECK(zeCommandListAppendEventReset(work->list, work->events[i]));
	append(work);
	if (!strcmp(options.sync, "event"))
		ZE_CHECK(zeCommandListAppendBarrier(work->list, work->done, 0, NULL));
	work->barriers += !strcmp(options.sync, "event");
}

static void *run(void *arg)
{
	struct work *work = arg;

	if (options.immediate) {
		for (unsigned i = 0; i < options.executions; i++) {
			build(work);
			wait_for(work, i + 1 == options.executions);
		}
		return NULL;
	}
	build(work);
	work->barriers *= options.executions;
	work->groups *= options.executions;
	ZE_CHECK(zeCommandListClose(work->list));
	for (unsigned i = 0; i < options.executions; i++) {
		ZE_CHECK(zeCommandQueueExecuteCommandLists(work->queue, 1, &work->list,
							   work->fence));
		wait_for(work, i + 1 == options.executions);
	}
	return NULL;
}

static bool right(const struct work *work)
{
	unsigned place = 0;

	if (!strcmp(options.kernel, "increment") && *work->counter != work->groups)
		return false;
	for (unsigned i = 0; i < options.copies; i++, place++)
		if (memcmp(work->memory[(place + 1) % 3] + slot(place) + COPY_BYTES,
			   work->memory[place % 3] + slot(place), COPY_BYTES))
			return false;
	for (unsigned i = 0; i < options.fills; i++, place++) {
		for (unsigned j = 0; j < FILL_BYTES / 4; j++) {
			uint32_t value;

			memcpy(&value,
			       work->memory[1] + slot(place) + COPY_BYTES + j * sizeof(value),
			       sizeof(value));
			if (value != 0x01020304 + place)
				return false;
		}
	}
	for (unsigned i = 0; i < options.regions; i++, place++)
		for (unsigned y = 0; y < HEIGHT; y++)
			if (memcmp(work->memory[1] + slot(place) + COPY_BYTES + y * PITCH,
				   work->memory[0] + slot(place) + (y + 1) * PITCH + 16, WIDTH))
				return false;
	return true;
}

static void times(const struct work *work)
{
	for (unsigned i = 0; options.timestamps && i < work->commands; i++) {
		ze_kernel_timestamp_result_t result;

		ZE_CHECK(zeEventQueryKernelTimestamp(work->events[i], &result));
		printf("%u: %llu %llu\n", i, (unsigned long long)result.global.kernelStart,
		       (unsigned long long)result.global.kernelEnd);
	}
}

static void destroy(struct work *work)
{
	if (work->fence)
		ZE_CHECK(zeFenceDestroy(work->fence));
	ZE_CHECK(zeCommandListDestroy(work->list));
	if (work->queue)
		ZE_CHECK(zeCommandQueueDestroy(work->queue));
	for (unsigned i = 0; work->events && i < work_commands(); i++)
		ZE_CHECK(zeEventDestroy(work->events[i]));
	if (work->pool)
		ZE_CHECK(zeEventPoolDestroy(work->pool));
	ZE_CHECK(zeEventDestroy(work->done));
	ZE_CHECK(zeEventPoolDestroy(work->done_pool));
	ZE_CHECK(zeKernelDestroy(work->kernel));
	for (int i = 0; i < 3; i++)
		ZE_CHECK(zeMemFree(work->app->context, work->memory[i]));
	ZE_CHECK(zeMemFree(work->app->context, work->counter));
	free(work->events);
}

enum {
	IN_ORDER = 256,
	BARRIERS,
	CHAIN,
	DEVICE_RESET,
	SYNCHRONOUS,
	TIMESTAMPS,
	LIST,
	EVENTS,
	SYNC,
	KERNELS,
	COPIES,
	FILLS,
	REGIONS,
	EXECUTIONS,
	KERNEL,
	US,
	DEVICE,
	TILE,
	ENGINE,
	THREADS,
	END
};

static void read_options(int argc, char **argv)
{
	static const struct option known[] = { { "in-order", 0, NULL, IN_ORDER },
					       { "barriers", 0, NULL, BARRIERS },
					       { "chain", 0, NULL, CHAIN },
					       { "device-reset", 0, NULL, DEVICE_RESET },
					       { "synchronous", 0, NULL, SYNCHRONOUS },
					       { "timestamps", 0, NULL, TIMESTAMPS },
					       { "list", 1, NULL, LIST },
					       { "events", 1, NULL, EVENTS },
					       { "sync", 1, NULL, SYNC },
					       { "kernels", 1, NULL, KERNELS },
					       { "copies", 1, NULL, COPIES },
					       { "fills", 1, NULL, FILLS },
					       { "regions", 1, NULL, REGIONS },
					       { "executions", 1, NULL, EXECUTIONS },
					       { "kernel", 1, NULL, KERNEL },
					       { "us", 1, NULL, US },
					       { "device", 1, NULL, DEVICE },
					       { "tile", 1, NULL, TILE },
					       { "engine", 1, NULL, ENGINE },
					       { "threads", 1, NULL, THREADS },
					       { "end", 1, NULL, END },
					       { NULL, 0, NULL, 0 } };
	bool *const flags[] = { &options.in_order,     &options.barriers,    &options.chain,
				&options.device_reset, &options.synchronous, &options.timestamps };
	unsigned *const numbers[] = { &options.kernels, &options.copies, &options.fills,
				      &options.regions, &options.executions };

	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (option >= IN_ORDER && option <= TIMESTAMPS)
			*flags[option - IN_ORDER] = true;
		else if (option >= KERNELS && option <= EXECUTIONS)
			*numbers[option - KERNELS] = (unsigned)atoi(optarg);
		else if (option == LIST)
			options.immediate = !strcmp(optarg, "immediate");
		else if (option == EVENTS)
			options.events = optarg;
		else if (option == SYNC)
			options.sync = optarg;
		else if (option == KERNEL)
			options.kernel = optarg;
		else if (option == US)
			options.us = (unsigned)atoi(optarg);
		else if (option == DEVICE)
			options.device = (unsigned)atoi(optarg);
		else if (option == TILE)
			options.tile = atoi(optarg);
		else if (option == ENGINE &&
			 sscanf(optarg, "%u,%u", &options.ordinal, &options.index) == 2)
			continue;
		else if (option == THREADS)
			options.threads = (unsigned)atoi(optarg);
		else if (option == END)
			options.end = optarg;
		else
			exit(2);
	}
	if (optind != argc || !options.threads ||
	    (options.timestamps && strcmp(options.events, "timed")) ||
	    (options.immediate && !strcmp(options.sync, "fence"))) {
		fprintf(stderr, "ze_matrix: options that do not go together\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct ze_app app;
	struct work *works;
	unsigned barriers = 0, all;
	bool fine = true;

	read_options(argc, argv);
	ze_app_open(&app, options.device, options.tile);
	works = calloc(options.threads, sizeof(*works));
	for (unsigned i = 0; i < options.threads; i++)
		prepare(&works[i], &app);
	for (unsigned i = 1; i < options.threads; i++)
		if (pthread_create(&works[i].thread, NULL, run, &works[i]))
			return 1;
	(void)run(&works[0]);
	for (unsigned i = 1; i < options.threads; i++)
		(void)pthread_join(works[i].thread, NULL);
	for (unsigned i = 0; i < options.threads; i++) {
		barriers += works[i].barriers;
		if (strcmp(options.sync, "none")) {
			fine &= right(&works[i]);
			times(&works[i]);
		}
	}
	all = options.threads * options.executions;
	printf("launched %u kernels %u copies %u fills %u regions %u barriers on %u %s lists: %s\n",
	       all * options.kernels, all * options.copies, all * options.fills,
	       all * options.regions, barriers, options.threads,
	       options.immediate ? "immediate" : "regular", fine ? "right" : "WRONG");
	(void)fflush(stdout);
	if (!strcmp(options.end, "_exit"))
		_exit(fine ? 0 : 1);
	if (!strcmp(options.end, "abort"))
		abort();
	if (!strcmp(options.end, "kill"))
		(void)raise(SIGKILL);
	if (!strcmp(options.end, "wait"))
		(void)getchar(); /* the session may be stopped meanwhile */
	if (!strcmp(options.end, "exec"))
		(void)execl("/bin/true", "true", NULL);
	if (!strcmp(options.end, "destroy")) {
		for (unsigned i = 0; i < options.threads; i++) {
			if (!strcmp(options.sync, "none"))
				ZE_CHECK(options.immediate
						 ? ze_app_list_sync(&app, works[i].list, UINT64_MAX)
						 : zeCommandQueueSynchronize(works[i].queue,
									     UINT64_MAX));
			destroy(&works[i]);
		}
		ze_app_close(&app);
		free(works);
	}
	return fine ? 0 : 1;
}
