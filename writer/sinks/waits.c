/*
 * Arrows from device work to the call that waited for it.
 *
 * A call is followed by what it waited for: all of a queue up to some moment, or one command, with
 * which in an ordered queue all before it are complete. Commands wait here for such a call, those
 * of a queue in the order in which they were submitted; and since the two come from different
 * rings, calls wait for commands, too. Both are bounded: what is too old gets no arrow.
 */
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "hash.h"
#include "pauses.h"

#define PENDING_MAX 1024u /* commands of a queue that no call has waited for */
#define FAR	    64u	  /* so many places is a command put before others that came sooner */
#define SOME	    4u	  /* calls looked at before it is asked whether all are later */
#define CALLS	    64u	  /* of a queue, that are remembered; a power of two */
#define QUEUES_MAX  2048u
#define BUCKETS	    QUEUES_MAX

struct command {
	/* when it was submitted; when it started, as its record says it */
	uint64_t tick, raw_start;
	uint64_t start, end; /* ns */
	uint64_t pid, tid;   /* its track */
	uint32_t id;
	bool in_order;
};

struct call {
	uint64_t until, start, end; /* until: as in xs_waited_record; ns */
	uint32_t tid;
	uint8_t kind; /* enum xs_waited */
};

struct queue {
	struct queue *next; /* of the bucket */
	uint64_t key[2];    /* its source, its number */
	bool used;	    /* since the hand came by */
	struct command *pending;
	uint32_t first, count, room;	  /* of pending */
	struct call calls[CALLS];	  /* that waited for all up to a tick */
	struct call named[CALLS];	  /* that waited for a command which has not come yet */
	uint32_t call_count, named_count; /* ever */
	uint64_t least;			  /* `until` of all in calls, … */
	uint32_t least_of;		  /* … when these were so many, ever */
};

/*
 * Programs make and release queues all their lives. When there are too many, one that was not used
 * for a while gives its place: a hand goes round, and passes those that were used since it came by.
 */
struct xs_waits {
	uint32_t count, hand;
	struct queue *queues[QUEUES_MAX];
	struct queue *bucket[BUCKETS];
};

static void forget(struct xs_waits *waits, struct queue *queue)
{
	struct queue **link = &waits->bucket[xs_hash(queue->key, 2) % BUCKETS];

	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	free(queue->pending);
	memset(queue, 0, sizeof(*queue));
}

/* NULL: there is no memory. */
static struct queue *place_for_one(struct xs_waits *waits)
{
	struct queue *queue;

	if (waits->count < QUEUES_MAX) {
		queue = calloc(1, sizeof(*queue));
		if (queue)
			waits->queues[waits->count++] = queue;
		return queue;
	}
	for (;; waits->queues[waits->hand]->used = false, waits->hand++) {
		waits->hand %= QUEUES_MAX;
		if (!waits->queues[waits->hand]->used)
			break;
	}
	queue = waits->queues[waits->hand++];
	forget(waits, queue);
	return queue;
}

/* NULL: there is no memory. */
static struct queue *queue_of(struct xs_process *process, uint8_t source, uint64_t number)
{
	uint64_t key[2] = { source, number };
	struct xs_chrome *chrome = xs_chrome_of(process);
	struct queue **bucket, *queue;

	if (!chrome->waits)
		chrome->waits = calloc(1, sizeof(*chrome->waits));
	if (!chrome->waits)
		return NULL;
	bucket = &chrome->waits->bucket[xs_hash(key, 2) % BUCKETS];
	for (queue = *bucket; queue; queue = queue->next)
		if (!memcmp(queue->key, key, sizeof(key)))
			break;
	if (!queue) {
		queue = place_for_one(chrome->waits);
		if (!queue)
			return NULL;
		memcpy(queue->key, key, sizeof(key));
		queue->next = *bucket;
		*bucket = queue;
	}
	queue->used = true;
	return queue;
}

/*
 * From the work's last moment to the call's, for the work has ended when the call returns; clocks
 * may be some ns apart.
 */
static void draw(struct xs_process *process, const struct command *command, const struct call *call)
{
	struct xs_arrow arrow = {
		.kind = XS_ARROW_WAIT,
		.host = call->end - (call->end > call->start),
		.device = command->end - (command->end > command->start),
		.after = call->end,
		.pid = command->pid,
		.tid = command->tid,
		.id = command->id,
		.host_tid = call->tid,
	};

	if (arrow.device > arrow.host)
		arrow.device = arrow.host;
	if (arrow.device >= command->start)
		xs_arrow_put(process, &arrow);
}

/* The call has waited for all that were submitted by then. */
static void waited_until(struct xs_process *process, struct queue *queue, struct call call,
			 uint64_t tick)
{
	call.until = tick;
	call.kind = XS_WAITED_SUBMITTED;
	queue->calls[queue->call_count++ % CALLS] = call;
	for (; queue->count && queue->pending[queue->first].tick <= tick;
	     queue->first++, queue->count--)
		draw(process, &queue->pending[queue->first], &call);
}

static bool is_named(const struct command *command, const struct call *call)
{
	return call->kind == XS_WAITED_COMMAND ? command->id == call->until
					       : command->raw_start == call->until;
}

/* The call has waited for this command, which is not among the pending ones. */
static void waited_for(struct xs_process *process, struct queue *queue,
		       const struct command *command, const struct call *call)
{
	draw(process, command, call);
	if (command->in_order)
		waited_until(process, queue, *call, command->tick);
}

static void waited_named(struct xs_process *process, struct queue *queue, const struct call *call)
{
	for (uint32_t behind = 0; behind < queue->count; behind++) {
		struct command *at = &queue->pending[queue->first + queue->count - 1 - behind],
			       found = *at;

		if (!is_named(&found, call))
			continue;
		memmove(at, at + 1, behind * sizeof(*at));
		queue->count--;
		waited_for(process, queue, &found, call);
		return;
	}
	queue->named[queue->named_count++ % CALLS] = *call;
}

static uint32_t remembered(const struct queue *queue)
{
	return queue->call_count < CALLS ? queue->call_count : CALLS;
}

/* The least moment up to which a remembered call has waited. */
static uint64_t least_of(struct queue *queue)
{
	uint32_t count = remembered(queue);

	if (queue->least_of != queue->call_count) {
		queue->least = UINT64_MAX;
		for (uint32_t i = 0; i < count; i++)
			if (queue->calls[i].until < queue->least)
				queue->least = queue->calls[i].until;
		queue->least_of = queue->call_count;
	}
	return queue->least;
}

/* The first call, of those remembered, that has waited for it; NULL: none. */
static const struct call *call_for(struct queue *queue, uint64_t tick)
{
	const struct call *first = NULL;
	uint32_t count = remembered(queue);

	for (uint32_t i = 1; i <= count; i++) {
		const struct call *call = &queue->calls[(queue->call_count - i) % CALLS];

		if (call->until < tick)
			break;
		first = call;
		/* often the calls' ring is read first, and all are later */
		if (i == SOME && least_of(queue) >= tick)
			return &queue->calls[(queue->call_count - count) % CALLS];
	}
	return first;
}

/* The call that has waited for just this one, and is forgotten with it. */
static bool take_named(struct queue *queue, const struct command *command, struct call *ret_call)
{
	for (uint32_t i = 1; i <= CALLS && i <= queue->named_count; i++) {
		struct call *call = &queue->named[(queue->named_count - i) % CALLS];

		if (!is_named(command, call))
			continue;
		*ret_call = *call;
		*call = queue->named[(queue->named_count - 1) % CALLS];
		queue->named_count--;
		return true;
	}
	return false;
}

/* Room behind the last one; the oldest one goes, if there are too many. False: no memory. */
static bool make_room(struct queue *queue)
{
	uint32_t room = queue->room ? 2 * queue->room : 16;
	struct command *grown;

	if (queue->first + queue->count < queue->room)
		return true;
	if (queue->count == PENDING_MAX) {
		queue->first += PENDING_MAX / 2;
		queue->count -= PENDING_MAX / 2;
	}
	if (queue->count <= queue->room / 2 && queue->room) {
		memmove(queue->pending, queue->pending + queue->first,
			queue->count * sizeof(*queue->pending));
		queue->first = 0;
		return true;
	}
	grown = realloc(queue->pending, room * sizeof(*grown));
	if (!grown)
		return false;
	queue->pending = grown;
	queue->room = room;
	return true;
}

static void keep(struct queue *queue, const struct command *command)
{
	struct command *end;
	uint32_t later = 0;

	if (!make_room(queue))
		return;
	end = queue->pending + queue->first + queue->count;
	while (later < queue->count && later < FAR && end[-1 - (int)later].tick > command->tick)
		later++;
	memmove(end - later + 1, end - later, later * sizeof(*end));
	end[-(int)later] = *command;
	queue->count++;
}

void xs_waits_command(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		      uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	struct command command = {
		.tick = record->event.flags & XS_DEVICE_FLAG_TICKS ? record->submit
								   : record->event.tick,
		.raw_start = record->start,
		.start = work->start,
		.end = work->end,
		.pid = pid,
		.tid = tid,
		.id = record->id,
		.in_order = record->event.flags & XS_DEVICE_FLAG_IN_ORDER,
	};
	struct queue *queue = queue_of(process, record->event.source, work->queue);
	const struct call *first;
	struct call call;

	if (!queue)
		return;
	first = call_for(queue, command.tick);
	if (record->event.flags & XS_DEVICE_FLAG_WAITED) {
		call = (struct call){ .start = work->host_start,
				      .end = work->host_end,
				      .tid = record->tid };
		/* a call that a pause cut short is shown up to there */
		if (work->linked && xs_process_paused_after(process, record->event.tick) >=
					    record->event.tick + record->host_ticks)
			waited_for(process, queue, &command, &call);
	} else if (queue->named_count && take_named(queue, &command, &call)) {
		waited_for(process, queue, &command, &call);
	} else if (first) {
		draw(process, &command, first);
	} else {
		keep(queue, &command);
	}
}

void xs_waits_read(struct xs_process *process, const struct xs_wait *wait)
{
	struct call call = { wait->until, wait->start, wait->end, wait->tid, wait->kind };
	struct queue *queue = queue_of(process, wait->source, wait->queue);

	if (!queue)
		return;
	if (call.kind == XS_WAITED_SUBMITTED)
		waited_until(process, queue, call, call.until);
	else
		waited_named(process, queue, &call);
}

void xs_waits_fini(struct xs_process *process)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;

	for (uint32_t i = 0; waits && i < waits->count; i++) {
		free(waits->queues[i]->pending);
		free(waits->queues[i]);
	}
	free(waits);
}
