#include "counted.h"

#include <stdlib.h>

#include "run.h"
#include "sink.h"
#include "task_record.h"

/* The thread's counts, up to the begin or end that its next record is. */
struct xs_counts {
	uint64_t tick;
	struct xs_counted counted;
};

/* False: it cannot be what it says. */
static bool take(const struct xs_cpu_record *record, uint32_t size, struct xs_counted *ret)
{
	uint32_t known = record->event.name, at = 0;

	if (known & ~XS_CPU_ALL || size < XS_CPU_SIZE((uint32_t)__builtin_popcount(known)))
		return false;
	*ret = (struct xs_counted){ .known = known,
				    .enabled = record->enabled,
				    .running = record->running };
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (known >> event & 1)
			ret->value[event] = record->value[at++];
	return true;
}

void xs_counted_read(struct xs_track *track, const struct xs_cpu_record *record, uint32_t size)
{
	struct xs_process *process = track->process;
	struct xs_counted counted;
	struct xs_looked looked;

	if (size < sizeof(*record) || !take(record, size, &counted))
		return;
	if (record->event.flags & XS_CPU_FLAG_ALL) {
		looked.ns = xs_process_ns(process, record->event.tick);
		looked.counted = counted;
		if (xs_process_is(process, process->run->control->processors_pid))
			XS_TELL_SINKS(process, looked, process, &looked);
		return;
	}
	if (!track->counts)
		track->counts = malloc(sizeof(*track->counts));
	if (!track->counts)
		return;
	track->counts->tick = record->event.tick;
	track->counts->counted = counted;
	track->counts_due = true;
}

/* Is what came before the record's? It is no other's then. */
static bool claim(struct xs_track *track, const struct xs_event *event)
{
	bool due = track->counts_due;

	track->counts_due = false;
	return due && track->counts->tick == event->tick;
}

void xs_counted_begins(struct xs_track *track, const struct xs_event *event, struct xs_open *task)
{
	if (claim(track, event) && task && xs_extra_of(track->process, task))
		task->extra->counted = track->counts->counted;
}

/* Where others had the counters for a part of the time, it is taken to be like the rest. */
static uint64_t scaled(uint64_t count, uint64_t enabled, uint64_t running)
{
	unsigned __int128 all = (unsigned __int128)count * enabled;

	return running ? (uint64_t)(all / running) : count;
}

/* What was counted between both. */
static void subtract(struct xs_counted *from, const struct xs_counted *to)
{
	uint64_t enabled = to->enabled - from->enabled, running = to->running - from->running;
	bool some = to->enabled >= from->enabled && to->running >= from->running &&
		    running <= enabled && (running || !enabled);

	from->known &= to->known;
	if (!some) /* never while the task ran */
		from->known &= ~XS_CPU_HARDWARE;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++) {
		if (to->value[event] < from->value[event])
			from->known &= ~XS_CPU_BIT(event); /* it began anew */
		from->value[event] = to->value[event] - from->value[event];
		if (XS_CPU_BIT(event) & XS_CPU_HARDWARE && running < enabled)
			from->value[event] = scaled(from->value[event], enabled, running);
	}
	from->enabled = enabled;
	from->running = running;
}

static void add_args(struct xs_process *process, struct xs_open *task)
{
	struct {
		struct xs_args_record record;
		struct {
			struct xs_arg arg;
			uint64_t value;
		} of[XS_CPU_EVENTS + 1];
	} args = { .record = { .event = { .kind = XS_ARGS } } };
	const struct xs_counted *counted = &task->extra->counted;
	const uint32_t *names = process->run->control->cpu_names;
	uint32_t at = 0;
	double rate;

	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++) {
		if (!(counted->known >> event & 1))
			continue;
		args.of[at].arg =
			(struct xs_arg){ .key = names[event], .count = 1, .type = XS_VALUE_U64 };
		args.of[at++].value = counted->value[event];
	}
	if (xs_counted_ipc(counted, &rate)) {
		args.of[at].arg = (struct xs_arg){ .key = names[XS_CPU_EVENTS],
						   .count = 1,
						   .type = XS_VALUE_DOUBLE };
		memcpy(&args.of[at++].value, &rate, sizeof(rate));
	}
	xs_extra_add_args(process, task, &args.record, at * (uint32_t)sizeof(args.of[0]));
}

void xs_counted_ends(struct xs_track *track, const struct xs_event *event, struct xs_open *task)
{
	struct xs_counted *counted = task->extra ? &task->extra->counted : NULL;

	if (!claim(track, event) || !counted) {
		if (counted)
			counted->known = 0;
		return;
	}
	subtract(counted, &track->counts->counted);
	if (counted->known)
		add_args(track->process, task);
}
