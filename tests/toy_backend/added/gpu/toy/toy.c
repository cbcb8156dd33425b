/*
 * The toy API: a launch is over when its call returns.
 */
#include "xs_toy.h"

#include "collector.h"
#include "device_record.h"

__attribute__((visibility("default"))) void toyInject(struct toy_functions *functions);
__attribute__((visibility("default"))) void toyInject(struct toy_functions *functions)
{
	const struct xs_options *options = xs_collector_options();

	if (options)
		xs_toy_wrap(functions, xs_want_calls(options));
}

static void write_launch(const char *kernel, toy_queue queue, uint64_t tick, uint64_t queued,
			 uint64_t start, uint64_t end)
{
	static _Atomic uint32_t launches;
	uint32_t name = xs_name(kernel, 0), device = xs_name("toy device", 0);
	struct xs_device_record *record =
		xs_record_begin(sizeof(*record), XS_DEVICE, XS_SOURCE_TOY, 0, name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick;
	record->host_ticks = (uint32_t)(xs_tick(xs_use_tsc) - tick);
	record->tid = xs_thread_id();
	record->id = ++launches;
	record->queue = 1;
	record->queue_handle = (uint64_t)(uintptr_t)queue;
	record->device_name = device;
	record->device = 0;
	record->device_type = XS_DEVICE_GPU;
	record->work = XS_WORK_KERNEL;
	record->simd = 0;
	record->bytes = record->kernel = 0;
	record->tile = record->engine = record->engine_index = record->memory = 0;
	record->queued = record->submit = queued;
	record->start = start;
	record->end = end;
	for (unsigned i = 0; i < 3; i++)
		record->global[i] = record->local[i] = 1;
	xs_record_end(sizeof(*record));
}

toy_result xs_hook_toyLaunch(toy_queue queue, const char *kernel, uint64_t *start, uint64_t *end)
{
	uint64_t tick = xs_tick(xs_use_tsc), queued = xs_clock_ns(CLOCK_MONOTONIC);
	toy_result result = xs_toy_target.toyLaunch(queue, kernel, start, end);

	if (result == TOY_OK && xs_recording())
		write_launch(kernel, queue, tick, queued, *start, *end);
	return result;
}
