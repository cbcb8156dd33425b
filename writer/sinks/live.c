/*
 * The sink of --top: counts what has ended, by name, device and process, in all and in the last
 * seconds. It is open only while somebody looks (drain/viewers.c). A second is one of those in
 * which records are read: of when something has happened, a picture that is made each second needs
 * to know no more.
 *
 * Its memory is bounded: what finds no room is counted in the row that is called "(others)".
 */
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "hash.h"
#include "live.h"
#include "mpi_record.h"
#include "names.h"
#include "sink.h"
#include "sinks.h"
#include "threads.h"
#include "track.h"

/* ---- the last seconds ---- */

static uint32_t place_of(struct xs_live_recent *recent, uint64_t second)
{
	/* what lies between the newest and now is empty */
	for (uint64_t s = recent->second + 1; s <= second && s <= recent->second + XS_LIVE_SECONDS;
	     s++) {
		recent->of[s % XS_LIVE_SECONDS] = (struct xs_live_sum){ 0, 0 };
		recent->also[s % XS_LIVE_SECONDS] = 0;
	}
	recent->second = second;
	return (uint32_t)(second % XS_LIVE_SECONDS);
}

void xs_live_add(struct xs_live_recent *recent, uint64_t second, uint64_t count, uint64_t ns,
		 uint64_t also)
{
	uint32_t place = recent->second == second ? (uint32_t)(second % XS_LIVE_SECONDS)
						  : place_of(recent, second);

	recent->of[place].count += count;
	recent->of[place].ns += ns;
	recent->also[place] += also;
}

struct xs_live_sum xs_live_recent(const struct xs_live_recent *recent, uint64_t second,
				  uint64_t *ret_also)
{
	struct xs_live_sum sum = { 0, 0 };

	*ret_also = 0;
	for (uint64_t back = 0; back < XS_LIVE_SECONDS && back <= recent->second; back++) {
		uint64_t at = recent->second - back;

		if (at + XS_LIVE_SECONDS <= second)
			break;
		sum.count += recent->of[at % XS_LIVE_SECONDS].count;
		sum.ns += recent->of[at % XS_LIVE_SECONDS].ns;
		*ret_also += recent->also[at % XS_LIVE_SECONDS];
	}
	return sum;
}

/* ---- names ---- */

static bool is_of(const struct xs_live_entry *entry, uint8_t kind, uint32_t id)
{
	return entry->id == id && entry->kind == kind;
}

/* Never NULL: what finds no room is one of the others. */
static struct xs_live_entry *entry_of(struct xs_live *live, uint8_t kind, uint8_t source,
				      uint32_t id)
{
	uint32_t slot = xs_hash_id(id + kind) % XS_LIVE_ENTRIES;
	struct xs_live_entry *entry;

	while ((entry = &live->entries[slot])->id) {
		if (is_of(entry, kind, id))
			return entry;
		slot = (slot + 1) % XS_LIVE_ENTRIES;
	}
	if (live->used >= XS_LIVE_ENTRIES * 3 / 4 && id != UINT32_MAX)
		return entry_of(live, kind, source, UINT32_MAX);
	live->used++;
	entry->id = id;
	entry->kind = kind;
	entry->source = source;
	entry->recent.second = live->second;
	return entry;
}

static void count(struct xs_process *process, enum xs_live_kind kind, uint8_t source, uint32_t id,
		  uint64_t ns, uint64_t bytes)
{
	struct xs_live *live = process->run->live;
	struct xs_live_entry *entry;

	if (!id)
		return;
	entry = entry_of(live, (uint8_t)kind, source, id);
	entry->all.count++;
	entry->all.ns += ns;
	entry->also += bytes;
	xs_live_add(&entry->recent, live->second, 1, ns, bytes);
}

/* ---- what is told ---- */

static struct xs_live_calls *calls_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_LIVE];
}

static void add_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		count(track->process, XS_LIVE_TASK, 0, tasks[i].name, tasks[i].end - tasks[i].start,
		      0);
}

static void add_slice(struct xs_process *process, const struct xs_slice *slice)
{
	if (!slice->unfinished)
		count(process, XS_LIVE_TASK, 0, slice->task->name.id,
		      slice->end > slice->task->start ? slice->end - slice->task->start : 0, 0);
}

static void count_call(struct xs_process *process, uint8_t source, uint32_t name, uint64_t ns)
{
	struct xs_live_calls *calls = calls_of(process);

	count(process, XS_LIVE_CALL, source, name, ns, 0);
	calls->all.count++;
	calls->all.ns += ns;
	xs_live_add(&calls->recent, process->run->live->second, 1, ns, 0);
}

static void add_call(struct xs_track *track, const struct xs_call *call)
{
	count_call(track->process, call->event->source, call->name, call->end - call->start);
}

static void add_mpi_call(struct xs_track *track, const struct xs_mpi_call *call)
{
	if (!(call->event->flags & XS_MPI_FLAG_INSIDE) && !call->unfinished)
		count_call(track->process, call->event->source, call->name,
			   call->end - call->start);
}

static void add_wait(struct xs_process *process, const struct xs_wait *wait)
{
	struct xs_live_calls *calls = calls_of(process);
	uint64_t ns = wait->end > wait->start ? wait->end - wait->start : 0;

	calls->waited += ns;
	xs_live_add(&calls->recent, process->run->live->second, 0, 0, ns);
}

/* In place of one of a process that has ended; NULL: there is none. */
static struct xs_live_unit *find_over(struct xs_live *live)
{
	for (uint32_t i = 0; i < live->units; i++)
		if (live->unit[i].over)
			return &live->unit[i];
	return NULL;
}

static struct xs_live_unit *unit_of(struct xs_process *process,
				    const struct xs_device_record *record)
{
	struct xs_live *live = process->run->live;
	struct xs_live_unit *unit;

	for (uint32_t i = 0; i < live->units; i++) {
		unit = &live->unit[i];
		if (unit->serial == process->serial && unit->device == record->device &&
		    unit->name == record->device_name)
			return unit;
	}
	unit = live->units < XS_LIVE_DEVICES ? &live->unit[live->units++] : find_over(live);
	if (!unit)
		return NULL;
	*unit = (struct xs_live_unit){ .pid = process->pid,
				       .serial = process->serial,
				       .name = record->device_name,
				       .device = record->device,
				       .recent.second = live->second };
	return unit;
}

static int by_start(const void *a, const void *b)
{
	const struct xs_live_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void xs_live_settle(struct xs_live *live, struct xs_live_unit *unit)
{
	uint64_t busy = 0;

	qsort(unit->span, unit->span_count, sizeof(unit->span[0]), by_start);
	for (uint32_t i = 0; i < unit->span_count; i++) {
		const struct xs_live_span *span = &unit->span[i];
		uint64_t from = span->start > unit->until ? span->start : unit->until;

		if (span->end <= from)
			continue;
		busy += span->end - from;
		unit->until = span->end;
	}
	unit->span_count = 0;
	unit->busy += busy;
	xs_live_add(&unit->recent, live->second, 0, 0, busy);
}

/* Commands of several queues may run at once. */
static void occupy(struct xs_process *process, const struct xs_work *work, uint64_t ns)
{
	struct xs_live_unit *unit = unit_of(process, work->record);
	struct xs_live *live = process->run->live;

	if (!unit)
		return;
	unit->all.count++;
	unit->all.ns += ns;
	xs_live_add(&unit->recent, live->second, 1, ns, 0);
	unit->span[unit->span_count++] = (struct xs_live_span){ work->start, work->end };
	if (unit->span_count == XS_LIVE_SPANS)
		xs_live_settle(live, unit);
}

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	uint64_t ns = work->end > work->start ? work->end - work->start : 0;
	uint32_t id = record->event.flags & XS_DEVICE_FLAG_FUNCTION
			      ? xs_function_id(record->event.source, record->event.name)
			      : record->event.name;

	count(process, record->work == XS_WORK_KERNEL ? XS_LIVE_KERNEL : XS_LIVE_COPY,
	      record->event.source, id, ns, record->bytes);
	occupy(process, work, ns);
}

static bool wanted(const struct xs_run *run)
{
	return run->live;
}

static bool open_live(struct xs_process *process)
{
	struct xs_live_calls *calls = calloc(1, sizeof(*calls));

	if (calls)
		*calls = (struct xs_live_calls){
			.recent.second = process->run->live->second,
			.seen = xs_process_events(process),
			.events.second = process->run->live->second,
		};
	process->sink[XS_SINK_LIVE] = calls;
	return calls;
}

static void drop_live(struct xs_process *process)
{
	free(calls_of(process));
}

static bool close_live(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_live *live = process->run->live;

	(void)end, (void)status;
	for (uint32_t i = 0; i < live->units; i++)
		live->unit[i].over |= live->unit[i].serial == process->serial;
	drop_live(process);
	return false; /* nothing that stays */
}

const struct xs_sink xs_live_sink = {
	.wanted = wanted,
	.open = open_live,
	.tasks = add_tasks,
	.slice = add_slice,
	.call = add_call,
	.work = add_work,
	.wait = add_wait,
	.mpi_call = add_mpi_call,
	.close = close_live,
	.drop = drop_live,
};
