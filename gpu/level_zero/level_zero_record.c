/*
 * The records of Level Zero's commands: of one, or of many of a queue at once.
 */
#include "device_record.h"
#include "level_zero_metrics.h"
#include "options.h"

static _Atomic uint32_t work_serial;

uint32_t xs_ze_next_ids(uint32_t count)
{
	return atomic_fetch_add_explicit(&work_serial, count, memory_order_relaxed) + 1;
}

/*
 * Submitted by that call. If we did not see the command being appended, it is shown as if the call
 * had appended it, too.
 */
static inline void submitted(struct xs_device_record *record, const struct xs_ze_submit *submit)
{
	record->submit = submit->tick;
	record->submitter = submit->tid;
	if (record->tid)
		return;
	record->tid = submit->tid;
	record->event.tick = submit->tick;
}

/*
 * The record of one execution: the command's, and what only this execution has. False: nothing is
 * written.
 */
static inline bool write_record(const struct xs_device_record *from,
				const ze_kernel_timestamp_result_t *times,
				const struct xs_ze_submit *submit, uint32_t id)
{
	uint32_t size = from->event.words * 8u;
	struct xs_device_record *record = xs_record_reserve(size, XS_ROLE_OTHER);

	if (!record)
		return false;
	/* sizes that the compiler knows: no call */
	memcpy(record, from, XS_DEVICE_RECORD_SHORT);
	if (size > XS_DEVICE_RECORD_SHORT)
		memcpy((char *)record + XS_DEVICE_RECORD_SHORT,
		       (const char *)from + XS_DEVICE_RECORD_SHORT,
		       sizeof(*from) - XS_DEVICE_RECORD_SHORT);
	/* who appends to the list at the same time may have changed it */
	record->event.words = (uint8_t)(size / 8);
	record->id = id;
	if (submit)
		submitted(record, submit);
	record->start = times->global.kernelStart;
	record->end = times->global.kernelEnd;
	xs_record_end(size);
	return true;
}

/*
 * What the device copied away is one pair of times; only the event itself tells of tiles. False: it
 * does not.
 */
static __attribute__((noinline)) bool record_tiles(const struct xs_device_record *from,
						   ze_event_handle_t event,
						   const struct xs_ze_device_info *device,
						   const struct xs_ze_submit *submit, uint32_t id)
{
	struct xs_device_record of_tile = *from;
	ze_kernel_timestamp_result_t tiles[XS_ZE_TILES];
	uint32_t count = XS_ZE_TILES;
	bool written = false;

	if (!xs_options_of_run()->separate_tiles || !xs_ze.zeEventExp.pfnQueryTimestampsExp ||
	    xs_ze.zeEventExp.pfnQueryTimestampsExp(event, device->handle, &count, tiles) || !count)
		return false;
	for (uint32_t i = 0; i < count && i < XS_ZE_TILES; i++) {
		of_tile.tile = (uint8_t)(i + 1);
		written = write_record(&of_tile, &tiles[i], submit, i ? xs_ze_next_ids(1) : id);
	}
	xs_commands_end(1, written);
	return true;
}

void xs_ze_record_queue(struct xs_device_record *record, const struct xs_ze_queue *queue)
{
	const struct xs_ze_device_info *device = queue->device;

	record->event.flags |= queue->flags;
	record->queue_handle = queue->shown_handle;
	record->device = device->index;
	record->device_name = device->name;
	record->device_type = device->type;
	record->tile = device->tile;
	record->engine = (uint8_t)(queue->ordinal + 1);
	record->engine_index = (uint8_t)queue->index;
	atomic_signal_fence(memory_order_release);
	record->queue = queue->serial;
}

/* What was counted while it ran is told of the same record. */
static __attribute__((noinline)) void tell_query(const struct xs_ze_node *node,
						 const struct xs_device_record *from,
						 const ze_kernel_timestamp_result_t *times,
						 uint32_t holds, const struct xs_ze_submit *submit,
						 uint32_t id)
{
	struct xs_device_record work = *from;

	work.id = id;
	work.start = times->global.kernelStart;
	work.end = times->global.kernelEnd;
	if (submit)
		submitted(&work, submit);
	if (!(holds & XS_ZE_QUERY_HOLDS))
		xs_count_unmeasured(1);
	else if (node->body)
		xs_ze_query_executed(node->query, &work);
	else
		xs_ze_query_told(node->query, &work);
}

void xs_ze_node_record(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
		       uint32_t holds, const struct xs_ze_submit *submit,
		       const struct xs_ze_queue *queue, uint32_t id)
{
	const struct xs_device_record *from = &node->record;
	struct xs_device_record copy;

	if (__builtin_expect(from->queue != queue->serial, 0)) {
		/* a list that was first executed in another queue */
		copy = *from;
		copy.event.flags &= (uint8_t)~XS_DEVICE_FLAG_COPY_ENGINE;
		xs_ze_record_queue(&copy, queue);
		from = &copy;
	}
	if (__builtin_expect(queue->device->tiles == 0, 1) || !(holds & XS_ZE_EVENT_HOLDS) ||
	    !record_tiles(from, node->event ? node->event : node->own, queue->device, submit, id))
		xs_commands_end(1, write_record(from, times, submit, id));
	if (__builtin_expect(node->query != NULL, 0))
		tell_query(node, from, times, holds, submit, id);
}

/* ---- many of them as one record ---- */

static_assert(XS_ZE_FINISHED <= XS_COMMANDS_MAX, "fits a record");

/*
 * A record's beginning; the newest of its commands says what they have in common. submit: as in the
 * record.
 */
static inline void commands_begin(struct xs_commands_record *record, uint32_t count, uint32_t size,
				  const struct xs_device_record *newest,
				  const struct xs_ze_submit *submit)
{
	*record = (struct xs_commands_record){
		.event = { .tick = newest->event.tick,
			   .name = newest->device_name,
			   .kind = XS_COMMANDS,
			   .words = (uint8_t)(size / 8),
			   .source = XS_SOURCE_LEVEL_ZERO,
			   .flags = newest->event.flags & (uint8_t)~XS_DEVICE_FLAG_FUNCTION },
		.queue_handle = newest->queue_handle,
		.queue = newest->queue,
		.id = xs_ze_next_ids(count),
		.submit = submit ? submit->tick : 0,
		.submitter = (submit ? submit->tid : 0) & 0xffffff,
		.count = count & 0x3f,
		.device_type = newest->device_type & 3,
		.device = newest->device,
		.tile = newest->tile,
		.engine = newest->engine,
		.engine_index = newest->engine_index,
	};
}

static inline uint32_t commands_size(uint32_t count)
{
	return (uint32_t)(sizeof(struct xs_commands_record) + count * sizeof(struct xs_command));
}

static inline void command_tell(struct xs_command *command, const struct xs_ze_node *node,
				const ze_kernel_timestamp_result_t *times)
{
	command->tick = node->record.event.tick;
	command->start = times->global.kernelStart;
	command->length = (uint32_t)(times->global.kernelEnd - times->global.kernelStart);
	command->host_ticks = node->record.host_ticks;
	command->shape = node->shape;
	command->tid = node->record.tid;
}

/* Else it has a record of its own. */
static inline bool can_share(const struct xs_ze_node *node,
			     const ze_kernel_timestamp_result_t *times,
			     const struct xs_ze_queue *queue)
{
	return __builtin_expect(node->shape && !node->query &&
					times->global.kernelEnd - times->global.kernelStart <=
						UINT32_MAX &&
					!queue->device->tiles &&
					node->record.queue == queue->serial && node->record.tid &&
					!(node->record.event.flags & XS_DEVICE_FLAG_ALONE),
				1);
}

void xs_ze_finished_write(struct xs_ze_finished *batch, const struct xs_device_record *newest,
			  const struct xs_ze_submit *submit)
{
	uint32_t count = batch->count < XS_ZE_FINISHED ? batch->count : XS_ZE_FINISHED,
		 size = commands_size(count);
	struct xs_commands_record *record;

	/* who leaves by a jump from here on has written them, or they are missing: never twice */
	batch->count = 0;
	atomic_signal_fence(memory_order_release);
	record = xs_record_reserve_many(size, count);
	if (record) {
		commands_begin(record, count, size, newest, submit);
		memcpy(record->command, batch->command, count * sizeof(batch->command[0]));
		xs_record_end(size);
	}
	xs_commands_end(count, record);
}

void xs_ze_finished_add(struct xs_ze_finished *batch, const struct xs_ze_node *node,
			const ze_kernel_timestamp_result_t *times,
			const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	if (!can_share(node, times, queue)) {
		xs_ze_node_record(node, times, XS_ZE_EVENT_HOLDS | XS_ZE_QUERY_HOLDS, submit, queue,
				  xs_ze_next_ids(1));
		return;
	}
	command_tell(&batch->command[batch->count % XS_ZE_FINISHED], node, times);
	atomic_signal_fence(memory_order_release);
	if (__builtin_expect(++batch->count >= XS_ZE_FINISHED, 0))
		xs_ze_finished_write(batch, &node->record, submit);
}

/* Their times are in their events. */
static void record_by_events(const struct xs_ze_node *first, const struct xs_ze_submit *submit,
			     const struct xs_ze_queue *queue)
{
	const struct xs_ze_node *newest = first;
	ze_kernel_timestamp_result_t times;
	struct xs_ze_finished batch;

	batch.count = 0;
	for (const struct xs_ze_node *node = first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed)) {
		if (xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, &times)) {
			xs_commands_untimed(1);
			continue;
		}
		xs_ze_finished_add(&batch, node, &times, submit, queue);
		newest = node;
	}
	if (batch.count)
		xs_ze_finished_write(&batch, &newest->record, submit);
}

/* So many commands in a row, in the ring at once: no driver is asked. */
static void write_row(const struct xs_ze_node *node, const struct xs_ze_node *newest,
		      const ze_kernel_timestamp_result_t *times, uint32_t count,
		      const struct xs_ze_submit *submit)
{
	uint32_t size = commands_size(count);
	struct xs_commands_record *record = xs_record_reserve_many(size, count);

	if (record) {
		commands_begin(record, count, size, &newest->record, submit);
		for (uint32_t i = 0; i < count;
		     i++, node = atomic_load_explicit(&node->next, memory_order_relaxed))
			command_tell(&record->command[i], node, &times[i]);
		xs_record_end(size);
	}
	xs_commands_end(count, record);
}

/* How many from here on share a record, and the last of them. */
static uint32_t row_length(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
			   const struct xs_ze_queue *queue, const struct xs_ze_node **ret_newest)
{
	uint32_t count = 0;

	while (node && count < XS_COMMANDS_MAX && xs_ze_is_set(&times[count]) &&
	       can_share(node, &times[count], queue)) {
		*ret_newest = node;
		node = atomic_load_explicit(&node->next, memory_order_relaxed);
		count++;
	}
	return count;
}

static void record_saved(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
			 const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	const struct xs_ze_node *newest;
	uint32_t row;

	for (; node; node = atomic_load_explicit(&newest->next, memory_order_relaxed)) {
		newest = node;
		row = row_length(node, times, queue, &newest);
		if (row)
			write_row(node, newest, times, row, submit);
		else if (xs_ze_is_set(times))
			xs_ze_node_record(node, times, 0, submit, queue, xs_ze_next_ids(1));
		else
			xs_commands_untimed(1);
		times += row ? row : 1;
	}
}

void xs_ze_nodes_record(const struct xs_ze_node *first, const ze_kernel_timestamp_result_t *saved,
			const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	if (saved)
		record_saved(first, saved, submit, queue);
	else
		record_by_events(first, submit, queue);
}
