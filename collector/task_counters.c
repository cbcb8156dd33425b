#include "task_counters.h"

#include "self.h"
#include "task_record.h"

static void put(struct xs_cpu_record *record, uint32_t size, const struct xs_counts *counts,
		uint32_t wanted, uint64_t tick)
{
	uint32_t at = 0;

	record->event = (struct xs_event){ .tick = tick,
					   .name = wanted & counts->known,
					   .kind = XS_CPU,
					   .words = (uint8_t)(size / 8),
					   .source = XS_SOURCE_ITT };
	record->enabled = counts->enabled;
	record->running = counts->running;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (counts->known >> event & 1)
			record->value[at++] = counts->value[event];
	/* the last word may be nobody's */
	while (sizeof(*record) + 8 * at < size)
		record->value[at++] = 0;
}

/* In one piece: what the ring needs for it is had before the counters are read. */
void xs_counted_begin(uint32_t name, const struct xs_id *ids)
{
	uint32_t wanted = xs_options_of_run()->cpu_events_of_tasks & XS_CPU_ALL;
	uint32_t before = XS_CPU_SIZE((uint32_t)__builtin_popcount(wanted)),
		 own = ids ? sizeof(struct xs_task_record) : sizeof(struct xs_event);
	char *record = xs_record_reserve(before + own, XS_ROLE_BEGIN);
	struct xs_task_record *task = (void *)(record + before);
	struct xs_counts counts;

	if (!record)
		return;
	task->event.name = name;
	task->event.kind = ids ? XS_TASK : XS_BEGIN;
	task->event.words = (uint8_t)(own / 8);
	task->event.source = XS_SOURCE_ITT;
	task->event.flags = 0;
	if (ids) {
		task->id = ids[0];
		task->parent = ids[1];
	}
	task->event.tick = xs_tick(xs_use_tsc);
	xs_counters_read(xs_slot_counters(xs_tls.slot), wanted, true, &counts);
	put((void *)record, before, &counts, wanted, task->event.tick);
	xs_record_end(before + own);
}

void xs_counted_end(uint32_t domain, uint64_t tick)
{
	uint32_t wanted = xs_options_of_run()->cpu_events_of_tasks & XS_CPU_ALL;
	uint32_t before = XS_CPU_SIZE((uint32_t)__builtin_popcount(wanted));
	struct xs_counts counts = { .known = 0 };
	struct xs_event *end;
	char *record;

	if (xs_ready()) /* a thread without a ring has begun nothing */
		xs_counters_read(xs_slot_counters(xs_tls.slot), wanted, false, &counts);
	record = xs_record_reserve(before + sizeof(*end), XS_ROLE_END);
	if (!record)
		return;
	end = (void *)(record + before);
	*end = (struct xs_event){ .tick = tick,
				  .name = domain,
				  .kind = XS_END,
				  .words = sizeof(*end) / 8,
				  .source = XS_SOURCE_ITT };
	put((void *)record, before, &counts, wanted, tick);
	xs_record_end(before + sizeof(*end));
}
