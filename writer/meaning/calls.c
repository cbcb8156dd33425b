/*
 * -c: what a call was given and what it gave, which up to three records say: XS_CALL_IN when it
 * begins, XS_CALL when it ends, XS_CALL_OUT behind that. What its arguments point to is in the
 * third, and is wanted when it begins: so the order of reading (drain/order.c) waits for it a
 * little. The rings are all the memory that this takes.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "copy.h"

#define LOOK_AHEAD 64u /* records: of calls that a call makes in turn */
#define DEPTH	   16u
#define WORDS	   40u

/* A call that a thread is in. */
struct entered {
	uint32_t function; /* source << 24 | number */
	uint32_t count;
	uint64_t start; /* ns */
	bool complete;	/* what was given was known when it began */
	uint64_t words[WORDS];
};

struct xs_calls {
	uint32_t depth; /* of `entered`; deeper calls are counted, not kept */
	uint64_t last;	/* tick of the newest record that was read */
	struct entered entered[DEPTH];
};

static struct xs_calls *calls_of(struct xs_track *track)
{
	if (!track->calls)
		track->calls = calloc(1, sizeof(*track->calls));
	return track->calls;
}

static uint32_t key_of(const struct xs_event *event)
{
	return (uint32_t)event->source << 24 | (event->name & 0xffffff);
}

/* ---- looking ahead in the ring ---- */

struct sight {
	bool ended; /* the call's end was found, and what follows it */
	/* in the caller's room; NULL: there are none, or they were not wanted */
	const struct xs_values_record *values;
};

/* Will a record of values follow the call's end? */
static bool values_follow(const struct xs_event *event)
{
	const struct xs_function *function = xs_function_of(event->source, event->name, NULL);

	return function && function->values && !(event->flags & XS_CALL_FLAG_FAILED);
}

static bool may_come_before_values(const struct xs_event *event)
{
	/* a command may have completed at once, and is told before */
	return event->kind == XS_PAD || event->kind == XS_DEVICE || event->kind == XS_COMMANDS ||
	       event->kind == XS_WAITED;
}

/* room: for the values; NULL: they are not wanted. */
static struct sight values_behind(const struct xs_track *track, const struct xs_event *call,
				  uint64_t pos, uint64_t head, struct xs_record *room)
{
	struct sight sight = { .ended = true };
	struct xs_record next;
	uint32_t size;

	if (!values_follow(call))
		return sight;
	size = xs_record_at(&next, track, pos, head, XS_RECORD_GLANCE);
	for (unsigned i = 0; size && may_come_before_values(&next.event) && i < LOOK_AHEAD; i++) {
		pos += size;
		size = xs_record_at(&next, track, pos, head, XS_RECORD_GLANCE);
	}
	sight.ended = size != 0;
	if (!size || !room)
		return sight;
	size = xs_record_at(room, track, pos, head, XS_RECORD_MAX);
	if (size >= sizeof(*sight.values) && room->event.kind == XS_CALL_OUT &&
	    key_of(&room->event) == key_of(call))
		sight.values = &room->values;
	return sight;
}

/* From behind a call's XS_CALL_IN on: its end. room: as above. */
static struct sight end_of(const struct xs_track *track, const struct xs_event *in, uint64_t pos,
			   uint64_t head, struct xs_record *room)
{
	struct xs_record record;
	const struct xs_event *event = &record.event;
	uint32_t size, inner = 0;

	for (unsigned i = 0; i < LOOK_AHEAD; i++, pos += size) {
		size = xs_record_at(&record, track, pos, head, XS_RECORD_GLANCE);
		if (!size)
			return (struct sight){ .ended = false };
		if (event->kind == XS_CALL && !inner && size >= sizeof(struct xs_call_record))
			return key_of(event) == key_of(in)
				       ? values_behind(track, event, pos + size, head, room)
				       : (struct sight){ .ended = true };
		inner += event->kind == XS_CALL_IN;
		inner -= event->kind == XS_CALL && inner;
	}
	return (struct sight){ .ended = true };
}

/* ---- calls ---- */

static struct xs_given given_of(const struct entered *entered,
				const struct xs_values_record *values)
{
	return (struct xs_given){ .start = entered->start,
				  .words = entered->words,
				  .count = entered->count,
				  .values = values,
				  .complete = entered->complete,
				  .begun = true };
}

void xs_calls_begin(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_function *function = xs_function_of(event->source, event->name, NULL);
	bool wanted = xs_call_wanted(process->run, event);
	struct xs_calls *calls = calls_of(track);
	uint32_t count = (size - (uint32_t)sizeof(*event)) / 8;
	struct sight sight = { .ended = true };
	struct entered *entered, deeper;
	struct xs_given given;
	struct xs_record out;

	if (!calls)
		return;
	if (!function) {
		given = (struct xs_given){ .start = xs_process_ns(process, event->tick) };
		if (wanted)
			XS_TELL_SINKS(process, call_begin, track, event, &given);
		return;
	}
	count = count < function->words ? count : function->words;
	count = count < WORDS ? count : WORDS;
	if (function->values)
		sight = end_of(track, event, track->pos + size, track->head, &out);
	entered = calls->depth++ < DEPTH ? &calls->entered[calls->depth - 1] : &deeper;
	entered->function = key_of(event);
	entered->count = count;
	entered->start = xs_process_ns(process, event->tick);
	entered->complete = sight.ended;
	memcpy(entered->words, event + 1, count * sizeof(entered->words[0]));
	given = given_of(entered, sight.values);
	if (wanted)
		XS_TELL_SINKS(process, call_begin, track, event, &given);
}

/*
 * The innermost call of the function; what was deeper has lost its end. NULL: its beginning is
 * lost.
 */
static struct entered *leave(struct xs_calls *calls, const struct xs_event *call)
{
	if (calls->depth > DEPTH) {
		calls->depth--;
		return NULL;
	}
	for (uint32_t i = calls->depth; i; i--) {
		if (calls->entered[i - 1].function != key_of(call))
			continue;
		calls->depth = i - 1;
		return &calls->entered[i - 1];
	}
	return NULL;
}

bool xs_calls_end(struct xs_track *track, const struct xs_call_record *call, struct xs_given *ret)
{
	static struct xs_record out;
	struct xs_calls *calls = calls_of(track);
	const struct entered *entered;
	struct sight sight;

	if (!calls)
		return false;
	entered = leave(calls, &call->event);
	sight = values_behind(track, &call->event, track->pos + call->event.words * 8u, track->head,
			      &out);
	*ret = entered ? given_of(entered, sight.values)
		       : (struct xs_given){ .values = sight.values };
	return true;
}

void xs_calls_finish(struct xs_track *track, uint64_t end)
{
	struct xs_calls *calls = track->calls;
	uint32_t depth = !calls ? 0 : calls->depth < DEPTH ? calls->depth : DEPTH;

	while (depth--) {
		const struct entered *entered = &calls->entered[depth];
		const struct xs_event event = { .source = (uint8_t)(entered->function >> 24),
						.name = entered->function & 0xffffff };

		if (xs_call_wanted(track->process->run, &event))
			XS_TELL_SINKS(track->process, call_left, track, &event, entered->start,
				      end);
	}
	xs_calls_forget(track);
}

void xs_calls_forget(struct xs_track *track)
{
	free(track->calls);
	track->calls = NULL;
}

/* ---- the order of reading ---- */

uint64_t xs_calls_time_of(struct xs_track *track, const struct xs_record *record, uint32_t size)
{
	const struct xs_event *event = &record->event;
	struct xs_calls *calls = calls_of(track);
	uint64_t last = calls ? calls->last : 0, time = last;

	if (event->tick > track->latest)
		return last;
	if (event->kind == XS_CALL_IN)
		time = event->tick;
	else if (event->kind == XS_CALL && size >= sizeof(struct xs_call_record) &&
		 xs_track_believes(track, event, record->call.duration))
		time = event->tick + record->call.duration;
	if (calls && time > calls->last)
		calls->last = time;
	return time;
}

bool xs_calls_incomplete(const struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	if (event->kind == XS_CALL_IN) {
		const struct xs_function *function =
			xs_function_of(event->source, event->name, NULL);

		return function && function->values &&
		       !end_of(track, event, track->pos + size, track->head, NULL).ended;
	}
	if (event->kind == XS_CALL && size >= sizeof(struct xs_call_record))
		return !values_behind(track, event, track->pos + size, track->head, NULL).ended;
	return false;
}
