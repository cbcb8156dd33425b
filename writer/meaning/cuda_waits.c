/*
 * What calls of CUDA have waited for: a stream, an event or all streams of a context.
 *
 * CUPTI's record of a wait has the number of the call, and that has the thread. The record of an
 * event says in which stream it lies, and its call where (cuda_events.c): work that was put there
 * before it is what a wait for the event is for, of a call or of another stream (cuda_streams.c).
 */
#include "cuda_waits.h"

#include <stdlib.h>
#include <string.h>

#include "activity_layout.h"
#include "cuda_activity.h"
#include "pauses.h"

#define MANY 64u /* of too many that are held back, so many are not any longer */

enum sync_type { SYNC_EVENT = 1, SYNC_STREAM_EVENT, SYNC_STREAM, SYNC_CONTEXT };

static struct xs_cuda_waits *waits_of(struct xs_cuda *cuda)
{
	if (!cuda->waits)
		cuda->waits = calloc(1, sizeof(*cuda->waits));
	return cuda->waits;
}

bool xs_cuda_event(struct xs_cuda *cuda, const unsigned char *data, uint32_t size)
{
	const struct xs_cuda_call *call =
		xs_cuda_call_of(cuda, (uint32_t)XS_CUDA_MEMBER(CUDA_EVENT, correlationId));
	struct xs_cuda_waits *waits = call ? waits_of(cuda) : NULL;
	uint64_t context = XS_CUDA_MEMBER(CUDA_EVENT, contextId) << 32;

	if (waits && !call->several)
		xs_cuda_put_place(&waits->places, context | XS_CUDA_MEMBER(CUDA_EVENT, eventId),
				  call->tick, context | XS_CUDA_MEMBER(CUDA_EVENT, streamId));
	return waits;
}

/* What an event is for; false: nothing is known of it. */
static bool find_event(const struct xs_cuda_places *places, struct xs_cuda_held *held)
{
	const struct xs_cuda_place *place = xs_cuda_place_of(places, held->event, held->wait.until);
	struct xs_wait *wait = &held->wait;

	if (place) {
		wait->queue = place->queue;
		wait->until = place->tick;
		return true;
	}
	/* it may be one that was forgotten: then it lies before the last of those */
	wait->whole = wait->unknown = true;
	if (wait->until > places->forgotten)
		wait->until = places->forgotten;
	return wait->until;
}

static void tell_held(struct xs_process *process, const struct xs_cuda_waits *waits,
		      struct xs_cuda_held *held)
{
	if (!held->event || find_event(&waits->places, held))
		XS_TELL_SINKS(process, wait, process, &held->wait);
}

static void tell_first(struct xs_process *process, struct xs_cuda_waits *waits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tell_held(process, waits, &waits->held[i]);
	waits->held_count -= count;
	memmove(waits->held, waits->held + count, waits->held_count * sizeof(*waits->held));
}

/* Work leads to the first call that has waited for it, whatever the order of their records is. */
static void hold(struct xs_process *process, struct xs_cuda_waits *waits,
		 const struct xs_cuda_held *held)
{
	uint32_t at;

	if (waits->held_count == XS_CUDA_HELD)
		tell_first(process, waits, MANY);
	at = waits->held_count++;
	for (; at && waits->held[at - 1].wait.start > held->wait.start; at--)
		waits->held[at] = waits->held[at - 1];
	waits->held[at] = *held;
	waits->held[at].until = process->cuda->records + XS_CUDA_LATE;
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
	wait.end = call->host_ticks
			   ? xs_process_ns(process, call->tick + xs_ticks_of(call->host_ticks))
			   : end + (uint64_t)process->cuda->offset;
	return wait;
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
	struct xs_cuda_held held = { .event = 0 };

	if (!waits || type < SYNC_EVENT || type > SYNC_CONTEXT)
		return true;
	if (!call)
		return false;
	if (call->several)
		return true;
	if (type == SYNC_STREAM_EVENT) {
		xs_cuda_stream_waits(&waits->streams,
				     context | XS_CUDA_MEMBER(SYNCHRONIZATION, streamId),
				     context | XS_CUDA_MEMBER(SYNCHRONIZATION, cudaEventId),
				     call->tick);
		return true;
	}
	held.wait = wait_of(process, call, XS_CUDA_MEMBER(SYNCHRONIZATION, end));
	held.wait.queue = context;
	held.wait.whole = type == SYNC_CONTEXT;
	if (type == SYNC_STREAM)
		held.wait.queue |= XS_CUDA_MEMBER(SYNCHRONIZATION, streamId);
	if (type == SYNC_EVENT)
		held.event = context | XS_CUDA_MEMBER(SYNCHRONIZATION, cudaEventId);
	if (held.wait.end >= held.wait.start && held.wait.end <= process->horizon &&
	    !is_cut(process, call, held.wait.end))
		hold(process, waits, &held);
	return true;
}
