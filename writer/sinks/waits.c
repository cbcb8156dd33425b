/*
 * Arrows from device work to the first call that waited for it.
 *
 * A call is followed by what it waited for: all of a queue up to some moment, or one command, with
 * which in an ordered queue all before it are complete. Commands wait here for such a call, those
 * of a queue in the order in which they were submitted; and since the two come from different
 * rings, calls wait for commands, too. While a call waits for a command that has not come, what may
 * lie before that command in an ordered queue is not given to later calls. A call may also have
 * waited for all queues of a context: such calls are remembered as those of a queue are.
 *
 * All is bounded: what is too old gets no arrow, and neither does what a call may have waited for
 * that is not remembered any more.
 */
#include <string.h>

#include "chrome.h"
#include "device_record.h"
#include "pauses.h"
#include "waits.h"

/* Of a queue's commands so many, at most, are passed over for one call. */
#define LOOKED_AT 1024u
#define PATIENCE  1024u	 /* so many commands later a named one is not expected any more */
#define CLOSE	  20000u /* ns; clocks of a host and of a device agree so well, where it counts */

/*
 * From the work's last moment to the call's, for the work has ended when the call returns; clocks
 * may be some ns apart.
 */
static void draw(struct xs_process *process, const struct xs_wait_queue *queue,
		 const struct xs_wait_command *command, const struct xs_wait_call *call)
{
	struct xs_arrow arrow = {
		.kind = XS_ARROW_WAIT,
		.host = call->end - (call->end > call->start),
		.device = command->end - (command->end > command->start),
		.after = call->end,
		.pid = command->pid,
		.tid = command->tid,
		.id = command->name.id,
		.host_tid = call->tid,
		.source = (uint8_t)queue->key[0],
	};

	if (arrow.device > arrow.host)
		arrow.device = arrow.host;
	if (arrow.device >= command->start)
		xs_arrow_put(process, &arrow);
	else /* by their clocks it began after the call: they disagree by more than the call took */
		process->omitted[XS_OMIT_ARROWS]++;
}

/*
 * Has the call waited for it? A call that submits takes its time: when the one that waits began in
 * that time, it counts if the command was complete by its end.
 */
static bool has_waited(const struct xs_wait_call *call, const struct xs_wait_command *command)
{
	return call->until >= command->tick &&
	       (call->until >= command->put || call->end + CLOSE >= command->end);
}

/* The first call, of those remembered, that has waited for it, as all later ones have; NULL: none.
 */
static const struct xs_wait_call *first_of(const struct xs_wait_queue *queue,
					   const struct xs_wait_command *command)
{
	uint32_t low = 0, high = queue->call_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (!has_waited(&queue->calls[middle], command))
			low = middle + 1;
		else
			high = middle;
	}
	return low < queue->call_count ? &queue->calls[low] : NULL;
}

/* Of those that have waited for the queue or for its context. whole: NULL: none has. */
static const struct xs_wait_call *call_for(const struct xs_wait_queue *queue,
					   const struct xs_wait_queue *whole,
					   const struct xs_wait_command *command)
{
	const struct xs_wait_call *one = first_of(queue, command),
				  *other = whole ? first_of(whole, command) : NULL;

	return !one || (other && other->end < one->end) ? other : one;
}

/* May a call have waited for it that is not remembered any more? */
static bool is_forgotten(const struct xs_wait_queue *queue, const struct xs_wait_queue *whole,
			 const struct xs_wait_command *command)
{
	return has_waited(&queue->forgotten, command) ||
	       (whole && has_waited(&whole->forgotten, command));
}

/* Has any call come that began after it was submitted? */
static bool is_due(const struct xs_wait_queue *queue, const struct xs_wait_queue *whole,
		   const struct xs_wait_command *command)
{
	return (queue->call_count && queue->calls[queue->call_count - 1].until >= command->tick) ||
	       (whole && whole->call_count &&
		whole->calls[whole->call_count - 1].until >= command->tick);
}

/* May a call that ended before this one have waited for it, as for what is before a command? */
static bool is_open(const struct xs_wait_queue *queue, const struct xs_wait_command *command,
		    const struct xs_wait_call *call)
{
	for (uint32_t i = 0; command->in_order && i < queue->named_count; i++)
		if (queue->named[i].end < call->end && command->end <= queue->named[i].end)
			return true;
	return false;
}

static void draw_one(struct xs_process *process, struct xs_wait_queue *queue,
		     const struct xs_wait_command *command, const struct xs_wait_call *call)
{
	draw(process, queue, command, call);
	queue->drawn[queue->drawn_count++ % XS_WAIT_DRAWN] = command->name;
}

/* To those that wait for a call, as far as it is known which one was the first. */
static void settle(struct xs_process *process, struct xs_wait_queue *queue)
{
	const struct xs_wait_queue *whole = xs_wait_whole_of(xs_chrome_of(process)->waits, queue);
	uint32_t at = 0, kept = 0;

	for (; at < queue->count && kept < LOOKED_AT; at++) {
		struct xs_wait_command *command = &queue->pending[queue->first + at];
		const struct xs_wait_call *call = call_for(queue, whole, command);

		if (!is_due(queue, whole, command) || (call && is_open(queue, command, call)))
			break;
		if (is_forgotten(queue, whole, command))
			continue;
		if (call)
			draw_one(process, queue, command, call);
		else
			queue->pending[queue->first + kept++] = *command;
	}
	/* what stays lies before the rest */
	if (kept && kept < at)
		memmove(&queue->pending[queue->first + at - kept], &queue->pending[queue->first],
			kept * sizeof(*queue->pending));
	queue->first += at - kept;
	queue->count -= at - kept;
	if (!queue->count)
		xs_wait_rest(xs_chrome_of(process)->waits, queue);
}

static bool is_named(const struct xs_wait_name *name, const struct xs_wait_call *call)
{
	return (call->kind == XS_WAITED_COMMAND ? name->id : name->raw_start) == call->until;
}

/* The call has waited for all that were submitted by then. */
static void waited_until(struct xs_process *process, struct xs_wait_queue *queue,
			 struct xs_wait_call call, uint64_t tick)
{
	call.until = tick;
	call.kind = XS_WAITED_SUBMITTED;
	xs_wait_remember(xs_chrome_of(process)->waits, queue, &call);
	settle(process, queue);
}

/* The call has waited for this command, which is not among the pending ones. */
static void waited_for(struct xs_process *process, struct xs_wait_queue *queue,
		       const struct xs_wait_command *command, const struct xs_wait_call *call)
{
	draw_one(process, queue, command, call);
	if (command->in_order)
		waited_until(process, queue, *call, command->tick);
}

static bool was_drawn(const struct xs_wait_queue *queue, const struct xs_wait_call *call)
{
	for (uint32_t i = 0; i < XS_WAIT_DRAWN && i < queue->drawn_count; i++)
		if (is_named(&queue->drawn[i], call))
			return true;
	return false;
}

static void forget_named(struct xs_wait_queue *queue, uint32_t which)
{
	queue->named_count--;
	memmove(queue->named + which, queue->named + which + 1,
		(queue->named_count - which) * sizeof(*queue->named));
}

static void waited_named(struct xs_process *process, struct xs_wait_queue *queue,
			 const struct xs_wait_call *call)
{
	for (uint32_t behind = 0; behind < queue->count && behind < LOOKED_AT; behind++) {
		struct xs_wait_command
			*at = &queue->pending[queue->first + queue->count - 1 - behind],
			found = *at;

		if (!is_named(&found.name, call))
			continue;
		memmove(at, at + 1, behind * sizeof(*at));
		queue->count--;
		waited_for(process, queue, &found, call);
		return;
	}
	if (was_drawn(queue, call))
		return;
	if (queue->named_count == XS_WAIT_NAMED)
		forget_named(queue, 0);
	queue->named[queue->named_count] = *call;
	queue->named[queue->named_count++].since = queue->commands;
}

/* The call that has waited for just this one, and is forgotten with it. */
static bool take_named(struct xs_wait_queue *queue, const struct xs_wait_command *command,
		       struct xs_wait_call *ret_call)
{
	for (uint32_t i = queue->named_count; i; i--) {
		if (!is_named(&command->name, &queue->named[i - 1]))
			continue;
		*ret_call = queue->named[i - 1];
		forget_named(queue, i - 1);
		return true;
	}
	return false;
}

/* The call has waited for all queues of a context. */
static void tell_whole(struct xs_process *process, const struct xs_wait *wait,
		       const struct xs_wait_call *call)
{
	struct xs_wait_queue *whole = xs_wait_queue_of(process, wait->source | XS_WAIT_WHOLE,
						       xs_wait_context_of(wait->queue));
	struct xs_waits *waits = xs_waits_of(process);

	if (!whole)
		return;
	waits->whole = true;
	if (wait->unknown)
		xs_wait_forgotten(&whole->forgotten, call);
	else
		xs_wait_remember(waits, whole, call);
	for (struct xs_wait_queue *queue = waits->busy, *next; queue; queue = next) {
		next = queue->busy_next;
		if (queue->key[0] == wait->source &&
		    xs_wait_context_of(queue->key[1]) == whole->key[1])
			settle(process, queue);
	}
}

static void tell(struct xs_process *process, const struct xs_wait *wait)
{
	struct xs_wait_call call = {
		wait->until, wait->start, wait->end, wait->tid, 0, wait->kind
	};
	struct xs_wait_queue *queue;

	if (wait->whole) {
		tell_whole(process, wait, &call);
		return;
	}
	queue = xs_wait_queue_of(process, wait->source, wait->queue);
	if (!queue)
		return;
	if (call.kind == XS_WAITED_SUBMITTED)
		waited_until(process, queue, call, call.until);
	else
		waited_named(process, queue, &call);
}

static void tell_first(struct xs_process *process, struct xs_waits *waits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tell(process, &waits->held[i]);
	waits->held_count -= count;
	memmove(waits->held, waits->held + count, waits->held_count * sizeof(*waits->held));
}

void xs_waits_read(struct xs_process *process, const struct xs_wait *wait)
{
	struct xs_waits *waits = xs_waits_of(process);
	uint32_t at;

	if (!waits)
		return;
	if (waits->held_count == XS_WAIT_HELD)
		tell_first(process, waits, XS_WAIT_HELD / 2);
	for (at = waits->held_count++; at && waits->held[at - 1].end > wait->end; at--)
		waits->held[at] = waits->held[at - 1];
	waits->held[at] = *wait;
}

static struct xs_wait_command command_of(const struct xs_work *work, uint64_t pid, uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	struct xs_wait_command command = {
		.name = { .raw_start = record->start, .id = record->id },
		.tick = record->event.tick,
		.put = record->event.tick + xs_ticks_of(record->host_ticks),
		.start = work->start,
		.end = work->end,
		.pid = pid,
		.tid = tid,
		.in_order = record->event.flags & XS_DEVICE_FLAG_IN_ORDER,
	};

	if (record->event.flags & XS_DEVICE_FLAG_TICKS)
		command.tick = command.put = record->submit;
	return command;
}

/* Its own call has waited for it. */
static void waited_itself(struct xs_process *process, struct xs_wait_queue *queue,
			  const struct xs_work *work, const struct xs_wait_command *command)
{
	const struct xs_device_record *record = work->record;
	const struct xs_wait_call call = { .start = work->host_start,
					   .end = work->host_end,
					   .tid = record->tid };

	/* a call that a pause cut short is shown up to there */
	if (!work->linked || xs_process_paused_after(process, record->event.tick) <
				     record->event.tick + xs_ticks_of(record->host_ticks))
		return;
	draw_one(process, queue, command, &call);
	if (command->in_order) /* an earlier call may have waited for those before it */
		xs_waits_read(process, &(struct xs_wait){ .source = record->event.source,
							  .kind = XS_WAITED_SUBMITTED,
							  .tid = call.tid,
							  .queue = work->queue,
							  .until = command->tick,
							  .start = call.start,
							  .end = call.end });
}

/* To the first call that has waited for it, now if it is known, or later. */
static void wait_for_call(struct xs_process *process, struct xs_wait_queue *queue,
			  const struct xs_wait_command *command)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;
	const struct xs_wait_queue *whole = xs_wait_whole_of(waits, queue);
	const struct xs_wait_call *first = call_for(queue, whole, command);

	if (is_forgotten(queue, whole, command))
		return;
	if (first && !is_open(queue, command, first))
		draw_one(process, queue, command, first);
	else
		xs_wait_keep(process, queue, command);
}

void xs_waits_command(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		      uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	const struct xs_wait_command command = command_of(work, pid, tid);
	/* of what was submitted by a call that is not known, nobody knows who waited for it */
	struct xs_wait_queue *queue =
		command.tick ? xs_wait_queue_of(process, record->event.source, work->queue) : NULL;
	struct xs_wait_call call;

	if (!queue)
		return;
	queue->commands++;
	if (queue->named_count && queue->commands - queue->named[0].since > PATIENCE) {
		forget_named(queue, 0);
		settle(process, queue);
	}
	if (record->event.flags & XS_DEVICE_FLAG_WAITED) {
		waited_itself(process, queue, work, &command);
	} else if (take_named(queue, &command, &call)) {
		waited_for(process, queue, &command, &call);
		settle(process, queue);
	} else {
		wait_for_call(process, queue, &command);
	}
}

void xs_waits_looked(struct xs_process *process)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;

	if (waits && waits->held_count)
		tell_first(process, waits, waits->held_count);
}

void xs_waits_end(struct xs_process *process)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;

	xs_waits_looked(process);
	for (uint32_t i = 0; waits && i < waits->count; i++) {
		waits->queues[i]->named_count = 0;
		settle(process, waits->queues[i]);
	}
}
