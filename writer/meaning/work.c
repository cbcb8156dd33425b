#include "work.h"

#include <string.h>

#include "device_clock.h"
#include "device_record.h"
#include "sink.h"

static bool lost_something(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_ring *ring = process->tracks[i]->ring;

		if (atomic_load_explicit(&ring->lost, memory_order_relaxed) ||
		    atomic_load_explicit(&ring->overwritten, memory_order_relaxed))
			return true;
	}
	return false;
}

void xs_work_show(struct xs_process *process, struct xs_work *work)
{
	if (work->end < work->start || work->end > process->horizon) {
		process->impossible++;
		return;
	}
	work->linked &= !lost_something(process);
	XS_TELL_SINKS(process, work, process, work);
	if (work->end > process->last_ns)
		process->last_ns = work->end;
}

void xs_device_work_read(struct xs_process *process, const struct xs_device_record *record,
			 uint32_t size)
{
	struct xs_work work = { .record = record, .queue = record->queue };

	if (size < XS_DEVICE_RECORD_SHORT ||
	    (record->work == XS_WORK_KERNEL && size < sizeof(*record) &&
	     !(record->event.flags & XS_DEVICE_FLAG_FUNCTION)))
		return;
	if (!xs_work_wanted(process->run, &record->event))
		return;
	if (size >= sizeof(*record))
		work.shape = record->global;
	work.host_start = xs_process_ns(process, record->event.tick);
	work.host_end =
		xs_process_ns(process, record->event.tick + xs_ticks_of(record->host_ticks));
	if (!xs_device_times(process, &work)) {
		process->untimed_here++;
		return;
	}
	work.linked = !(record->event.flags & XS_DEVICE_FLAG_ALONE);
	xs_work_show(process, &work);
}

void xs_commands_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_commands_record *commands = (const void *)event;
	uint32_t count = size < sizeof(*commands) ? 0
						  : (uint32_t)((size - sizeof(*commands)) /
							       sizeof(commands->command[0])),
		 length;
	struct xs_device_record record = { .event = { .kind = XS_DEVICE,
						      .source = event->source } };
	struct xs_shape shape;

	if (count > commands->count)
		count = commands->count;
	for (uint32_t i = 0; i < count; i++) {
		const struct xs_command *command = &commands->command[i];
		const struct xs_string *text = xs_string(process->run->strings,
							 process->run->strings_size, command->shape,
							 &length);

		if (!text || text->scope != XS_SHAPE_SCOPE || length != sizeof(shape))
			continue;
		memcpy(&shape, text->text, sizeof(shape));
		record.event.tick = command->tick;
		record.event.name = shape.name;
		record.event.flags = event->flags | shape.flags;
		if (record.event.flags & XS_DEVICE_FLAG_TICKS)
			record.submitter = commands->submitter;
		else
			record.queued = command->tick;
		record.host_ticks = command->host_ticks;
		record.tid = command->tid;
		record.id = commands->id + i;
		record.queue = commands->queue;
		record.queue_handle = commands->queue_handle;
		record.device_name = event->name;
		record.device = commands->device;
		record.device_type = commands->device_type;
		record.work = shape.work;
		record.simd = shape.simd;
		record.submit = commands->submit ? commands->submit : command->tick;
		record.start = command->start;
		record.end = command->start + command->length;
		record.bytes = shape.bytes;
		record.tile = commands->tile;
		record.engine = commands->engine;
		record.engine_index = commands->engine_index;
		record.memory = (uint8_t)shape.memory;
		record.kernel = shape.kernel;
		memcpy(record.global, shape.global, sizeof(record.global));
		memcpy(record.local, shape.local, sizeof(record.local));
		xs_device_work_read(process, &record,
				    shape.words * 8u < sizeof(record) ? shape.words * 8u
								      : sizeof(record));
	}
	track->records += count;
	process->kinds[XS_DEVICE] += count;
}
