/*
 * What calls of CUDA have waited for: a stream, an event or all streams of a context.
 *
 * CUPTI's record of a wait has the number of the call, and that has the thread. The record of an
 * event says in which stream it lies, and its call where: work that was put there before it is what
 * a wait for the event is for, of a call or of another stream. Tables have a fixed size; what finds
 * no place gets no arrow.
 */
#include <stdlib.h>
#include <string.h>

#include "activity_layout.h"
#include "cuda_activity.h"
#include "device_record.h"
#include "hash.h"
#include "pauses.h"

#define QUEUES	 512u
#define CONTEXTS 64u   /* waits for a context that are remembered; a power of two */
#define EVENTS	 1024u /* a power of two */
#define TIMES	 64u   /* an event is put into streams again and again */
#define HELD	 256u  /* waits that are held back … */
#define LATE	 128u  /* … until so many records more were read: they come in any order */
#define MANY	 64u   /* of too many, so many are not held back any longer */
#define STREAMS	 128u  /* streams that wait; of too many the oldest go */

enum sync_type { SYNC_EVENT = 1, SYNC_STREAM_EVENT, SYNC_STREAM, SYNC_CONTEXT };

/* Where an event was put. */
struct place {
	uint64_t tick, queue;
};

struct event {
	uint64_t id; /* context << 32 | event */
	uint32_t count;
	struct place places[TIMES]; /* the newest ones */
};

/* wait.until: of an event, when the call began */
struct held {
	struct xs_wait wait;
	uint64_t until; /* which record */
	uint64_t event; /* as in struct event; 0: it is for none */
	bool context;	/* it is for all streams of one */
};

/*
 * A stream waits for an event. Where the event lies is known when it is complete, so at the latest
 * with the first work that follows the wait.
 */
struct stream_wait {
	uint64_t queue, event, tick; /* of the call */
	uint64_t until;		     /* which record, as above; UINT64_MAX: nothing has followed */
};

struct xs_cuda_waits {
	struct stream_wait streams[STREAMS]; /* the oldest first */
	uint32_t stream_count;
	struct held held[HELD]; /* in the order of their starts */
	uint32_t held_count;
	uint64_t queues[2 * QUEUES]; /* those that work was put into + 1, by their hash */
	uint32_t queue_count;
	struct xs_wait contexts[CONTEXTS]; /* queue: context << 32 */
	uint32_t context_count;		   /* ever */
	struct event events[EVENTS];
};

static struct xs_cuda_waits *waits_of(struct xs_cuda *cuda)
{
	if (!cuda->waits)
		cuda->waits = calloc(1, sizeof(*cuda->waits));
	return cuda->waits;
}

static void wait_for(struct xs_process *process, const struct xs_wait *wait, uint64_t queue)
{
	struct xs_wait told = *wait;

	told.queue = queue;
	XS_TELL_SINKS(process, wait, process, &told);
}

/* A wait for its context may have been read before the first work of this stream. */
static void catch_up(struct xs_process *process, const struct xs_cuda_waits *waits, uint64_t queue)
{
	uint32_t first = waits->context_count > CONTEXTS ? waits->context_count - CONTEXTS : 0;

	for (uint32_t i = first; i < waits->context_count; i++) {
		const struct xs_wait *wait = &waits->contexts[i % CONTEXTS];

		if (wait->queue >> 32 == queue >> 32)
			wait_for(process, wait, queue);
	}
}

void xs_cuda_queue(struct xs_process *process, uint64_t queue)
{
	struct xs_cuda_waits *waits = waits_of(process->cuda);
	uint64_t *at;

	if (!waits)
		return;
	for (uint32_t i = xs_hash(&queue, 1);; i++) {
		at = &waits->queues[i % (2 * QUEUES)];
		if (*at == queue + 1)
			return;
		if (!*at)
			break;
	}
	if (waits->queue_count == QUEUES)
		return;
	waits->queue_count++;
	*at = queue + 1;
	catch_up(process, waits, queue);
}

/* NULL: it is not known, or another has its place. */
static struct event *event_of(struct xs_cuda_waits *waits, uint64_t id, bool make)
{
	struct event *event = &waits->events[xs_hash(&id, 1) % EVENTS];

	if (event->id != id || !event->count) {
		if (!make)
			return NULL;
		*event = (struct event){ .id = id };
	}
	return event;
}

bool xs_cuda_event(struct xs_cuda *cuda, const unsigned char *data, uint32_t size)
{
	const struct xs_cuda_call *call =
		xs_cuda_call_of(cuda, (uint32_t)XS_CUDA_MEMBER(CUDA_EVENT, correlationId));
	struct xs_cuda_waits *waits = call ? waits_of(cuda) : NULL;
	uint64_t context = XS_CUDA_MEMBER(CUDA_EVENT, contextId) << 32;
	struct event *event;

	if (!waits)
		return false;
	event = event_of(waits, context | XS_CUDA_MEMBER(CUDA_EVENT, eventId), true);
	event->places[event->count++ % TIMES] =
		(struct place){ .tick = call->tick,
				.queue = context | XS_CUDA_MEMBER(CUDA_EVENT, streamId) };
	return true;
}

/* Where it was put last, before the call that waits; NULL: that is not known (yet). */
static const struct place *place_of(struct xs_cuda_waits *waits, uint64_t id, uint64_t tick)
{
	const struct event *event = event_of(waits, id, false);
	const struct place *found = NULL;

	for (uint32_t i = 0; event && i < TIMES && i < event->count; i++)
		if (event->places[i].tick <= tick &&
		    (!found || event->places[i].tick > found->tick))
			found = &event->places[i];
	return found;
}

static void wait_for_context(struct xs_process *process, const struct xs_wait *wait)
{
	struct xs_cuda_waits *waits = process->cuda->waits;

	waits->contexts[waits->context_count++ % CONTEXTS] = *wait;
	for (uint32_t i = 0; i < 2 * QUEUES; i++)
		if (waits->queues[i] && (waits->queues[i] - 1) >> 32 == wait->queue >> 32)
			wait_for(process, wait, waits->queues[i] - 1);
}

static void tell_held(struct xs_process *process, struct xs_cuda_waits *waits, struct held *held)
{
	if (held->event) {
		const struct place *place = place_of(waits, held->event, held->wait.until);

		if (!place)
			return;
		held->wait.queue = place->queue;
		held->wait.until = place->tick;
	}
	if (held->context)
		wait_for_context(process, &held->wait);
	else
		wait_for(process, &held->wait, held->wait.queue);
}

static void tell_first(struct xs_process *process, struct xs_cuda_waits *waits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tell_held(process, waits, &waits->held[i]);
	waits->held_count -= count;
	memmove(waits->held, waits->held + count, waits->held_count * sizeof(*waits->held));
}

/* Work leads to the first call that has waited for it, whatever the order of their records is. */
static void hold(struct xs_process *process, struct xs_cuda_waits *waits, const struct held *held)
{
	uint32_t at;

	if (waits->held_count == HELD)
		tell_first(process, waits, MANY);
	at = waits->held_count++;
	for (; at && waits->held[at - 1].wait.start > held->wait.start; at--)
		waits->held[at] = waits->held[at - 1];
	waits->held[at] = *held;
	waits->held[at].until = process->cuda->records + LATE;
}

void xs_cuda_tell_waits(struct xs_process *process, bool all)
{
	struct xs_cuda_waits *waits = process->cuda->waits;
	uint32_t count = 0;

	/* an event among those that wait for their calls may be what a wait is for */
	if (!waits || (process->cuda->orphan_count && !all))
		return;
	while (count < waits->held_count &&
	       (all || waits->held[count].until <= process->cuda->records))
		count++;
	if (count)
		tell_first(process, waits, count);
}

/* The call, if it is to be waited with; its own end is not known if it is the driver's own. */
static struct xs_wait wait_of(const struct xs_process *process, const struct xs_cuda_call *call,
			      uint64_t end)
{
	struct xs_wait wait = { .source = process->cuda->source,
				.kind = XS_WAITED_SUBMITTED,
				.tid = call->tid,
				.until = call->tick };

	wait.start = xs_process_ns(process, call->tick);
	wait.end = call->host_ticks ? xs_process_ns(process, call->tick + call->host_ticks)
				    : end + (uint64_t)process->cuda->offset;
	return wait;
}

/* ---- streams that wait ---- */

static void tell_stream(struct xs_process *process, struct xs_cuda_waits *waits, uint32_t at)
{
	const struct stream_wait wait = waits->streams[at];
	const struct place *place = place_of(waits, wait.event, wait.tick);
	struct xs_order order = { .source = process->cuda->source,
				  .to = wait.queue,
				  .after = wait.tick };

	waits->stream_count--;
	memmove(&waits->streams[at], &waits->streams[at + 1],
		(waits->stream_count - at) * sizeof(wait));
	if (!place || place->queue == wait.queue)
		return;
	order.from = place->queue;
	order.until = place->tick;
	XS_TELL_SINKS(process, order, process, &order);
}

void xs_cuda_tell_streams(struct xs_process *process, bool all)
{
	struct xs_cuda_waits *waits = process->cuda->waits;

	for (uint32_t i = waits ? waits->stream_count : 0; i; i--)
		if (all || waits->streams[i - 1].until <= process->cuda->records)
			tell_stream(process, waits, i - 1);
}

void xs_cuda_follows(struct xs_process *process, uint64_t queue, uint64_t tick)
{
	struct xs_cuda_waits *waits = process->cuda->waits;

	for (uint32_t i = 0; waits && i < waits->stream_count; i++)
		if (waits->streams[i].queue == queue && tick > waits->streams[i].tick &&
		    waits->streams[i].until == UINT64_MAX)
			waits->streams[i].until = process->cuda->records + LATE;
}

static void stream_waits(struct xs_process *process, const struct stream_wait *wait)
{
	struct xs_cuda_waits *waits = process->cuda->waits;

	if (waits->stream_count == STREAMS)
		tell_stream(process, waits, 0);
	waits->streams[waits->stream_count++] = *wait;
}

/* A call that lasts until after a pause has a slice that ends at it. */
static bool is_cut(const struct xs_process *process, const struct xs_cuda_call *call, uint64_t end)
{
	uint64_t off = xs_process_paused_after(process, call->tick);

	return off != UINT64_MAX && xs_process_ns(process, off) <= end;
}

bool xs_cuda_waited(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	struct xs_cuda *cuda = process->cuda;
	const struct xs_cuda_call *call =
		xs_cuda_call_of(cuda, (uint32_t)XS_CUDA_MEMBER(SYNCHRONIZATION, correlationId));
	uint64_t context = XS_CUDA_MEMBER(SYNCHRONIZATION, contextId) << 32,
		 type = XS_CUDA_MEMBER(SYNCHRONIZATION, type);
	struct xs_cuda_waits *waits = waits_of(cuda);
	struct held held = { .context = type == SYNC_CONTEXT };

	if (!waits || type < SYNC_EVENT || type > SYNC_CONTEXT)
		return true;
	if (!call)
		return false;
	if (type == SYNC_STREAM_EVENT) {
		const struct stream_wait wait = {
			.queue = context | XS_CUDA_MEMBER(SYNCHRONIZATION, streamId),
			.event = context | XS_CUDA_MEMBER(SYNCHRONIZATION, cudaEventId),
			.tick = call->tick,
			.until = UINT64_MAX,
		};

		stream_waits(process, &wait);
		return true;
	}
	held.wait = wait_of(process, call, XS_CUDA_MEMBER(SYNCHRONIZATION, end));
	held.wait.queue = context;
	if (type == SYNC_STREAM)
		held.wait.queue |= XS_CUDA_MEMBER(SYNCHRONIZATION, streamId);
	if (type == SYNC_EVENT)
		held.event = context | XS_CUDA_MEMBER(SYNCHRONIZATION, cudaEventId);
	if (held.wait.end >= held.wait.start && held.wait.end <= process->horizon &&
	    !is_cut(process, call, held.wait.end))
		hold(process, waits, &held);
	return true;
}
