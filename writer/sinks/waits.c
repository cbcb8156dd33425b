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
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "device_record.h"
#include "hash.h"
#include "pauses.h"

#define ROOM_LEAST \
	2048u /* for commands of a queue that no call has waited for: each may have it, */
#define ROOM_MOST  131072u /* and one that much, for a pass reads them before it reads the call, */
#define ROOM_ALL   (1u << 18) /* while all have less than that */
#define FAR	   64u	      /* so many places is a command put before others that came sooner */
#define NAMED_FAR  1024u      /* among so many of the newest is a named command looked for */
#define CALLS	   64u	      /* of a queue, that are remembered */
#define DRAWN	   64u /* commands that have their arrows and may still be named; a power of two */
#define PATIENCE   1024u /* so many commands later a named one is not expected any more */
#define HELD	   64u
#define QUEUES_MAX 2048u
#define BUCKETS	   QUEUES_MAX
#define WHOLE	   0x100u /* beside the source: what has waited for all queues of a context */
#define CLOSE	   20000u /* ns; clocks of a host and of a device agree so well, where it counts */

/* What a call may name a command by. */
struct name {
	uint64_t raw_start; /* when it started, as its record says it */
	uint32_t id;
};

struct command {
	struct name name;
	uint64_t tick;	     /* when it was submitted: the call that did began then, … */
	uint64_t put;	     /* … and by then it surely was */
	uint64_t start, end; /* ns */
	uint64_t pid, tid;   /* its track */
	bool in_order;
};

struct call {
	uint64_t until, start, end; /* until: as in xs_waited_record; ns */
	uint32_t tid, since;	    /* since: how many commands had been read */
	uint8_t kind;		    /* enum xs_waited */
};

struct queue {
	struct queue *next;	  /* of the bucket */
	struct queue *busy_next;  /* of those with pending commands */
	struct queue **busy_link; /* NULL: it has none */
	uint64_t key[2];	  /* its source, its number */
	bool used;		  /* since the hand came by */
	struct command *pending;
	uint32_t first, count, room; /* of pending */
	/*
	 * Calls that waited for all up to a tick, by their ends. Each waited for more than those
	 * before it: another is the first one of nothing.
	 */
	struct call calls[CALLS];
	struct call forgotten;	  /* no call that was forgotten waited for more, or ended later */
	struct call named[CALLS]; /* that waited for a command which has not come yet */
	uint32_t call_count, named_count;
	uint32_t commands;	  /* read, ever */
	struct name drawn[DRAWN]; /* the newest ones that got their arrows */
	uint32_t drawn_count;	  /* ever */
};

/*
 * Programs make and release queues all their lives. When there are too many, one that was not used
 * for a while gives its place: a hand goes round, and passes those that were used since it came by.
 */
struct xs_waits {
	struct xs_wait held[HELD]; /* of this look, by their ends: threads are read one by one */
	uint32_t held_count;
	uint32_t count, hand;
	uint32_t room;	       /* of all queues */
	bool whole;	       /* a call has waited for all queues of a context */
	struct call forgotten; /* as in struct queue, of queues that have given their places */
	struct queue *busy;
	struct queue *queues[QUEUES_MAX];
	struct queue *bucket[BUCKETS];
};

static void put_busy(struct xs_waits *waits, struct queue *queue)
{
	if (queue->busy_link)
		return;
	queue->busy_next = waits->busy;
	queue->busy_link = &waits->busy;
	if (waits->busy)
		waits->busy->busy_link = &queue->busy_next;
	waits->busy = queue;
}

static void take_busy(struct queue *queue)
{
	if (!queue->busy_link)
		return;
	*queue->busy_link = queue->busy_next;
	if (queue->busy_next)
		queue->busy_next->busy_link = queue->busy_link;
	queue->busy_link = NULL;
}

static void add_forgotten(struct call *all, const struct call *call)
{
	if (call->until > all->until)
		all->until = call->until;
	if (call->end > all->end)
		all->end = call->end;
}

static void forget(struct xs_waits *waits, struct queue *queue)
{
	struct queue **link = &waits->bucket[xs_hash(queue->key, 2) % BUCKETS];

	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	take_busy(queue);
	add_forgotten(&waits->forgotten, &queue->forgotten);
	if (queue->call_count)
		add_forgotten(&waits->forgotten, &queue->calls[queue->call_count - 1]);
	waits->room -= queue->room;
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
static struct xs_waits *waits_of(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->waits)
		chrome->waits = calloc(1, sizeof(*chrome->waits));
	return chrome->waits;
}

/* NULL: it is not known. */
static struct queue *find_queue(struct xs_waits *waits, const uint64_t key[2])
{
	struct queue *queue = waits->bucket[xs_hash(key, 2) % BUCKETS];

	while (queue && memcmp(queue->key, key, sizeof(queue->key)) != 0)
		queue = queue->next;
	if (queue)
		queue->used = true;
	return queue;
}

/* Known, or made now; NULL: there is no memory. */
static struct queue *queue_of(struct xs_process *process, uint64_t source, uint64_t number)
{
	uint64_t key[2] = { source, number };
	struct xs_waits *waits = waits_of(process);
	struct queue *queue = waits ? find_queue(waits, key) : NULL, **bucket;

	if (queue || !waits)
		return queue;
	queue = place_for_one(waits);
	if (!queue)
		return NULL;
	bucket = &waits->bucket[xs_hash(key, 2) % BUCKETS];
	memcpy(queue->key, key, sizeof(key));
	queue->forgotten = waits->forgotten; /* it may have been one of them */
	queue->next = *bucket;
	queue->used = true;
	*bucket = queue;
	return queue;
}

static uint64_t context_of(uint64_t number)
{
	return number >> 32 << 32;
}

/* Where the calls are that have waited for its whole context; NULL: there were none. */
static const struct queue *whole_of(struct xs_waits *waits, const struct queue *queue)
{
	uint64_t key[2] = { queue->key[0] | WHOLE, context_of(queue->key[1]) };

	return waits->whole ? find_queue(waits, key) : NULL;
}

/*
 * From the work's last moment to the call's, for the work has ended when the call returns; clocks
 * may be some ns apart.
 */
static void draw(struct xs_process *process, const struct queue *queue,
		 const struct command *command, const struct call *call)
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
}

/*
 * Has the call waited for it? A call that submits takes its time: when the one that waits began in
 * that time, it counts if the command was complete by its end.
 */
static bool has_waited(const struct call *call, const struct command *command)
{
	return call->until >= command->tick &&
	       (call->until >= command->put || call->end + CLOSE >= command->end);
}

/* The first call, of those remembered, that has waited for it; NULL: none. */
static const struct call *first_of(const struct queue *queue, const struct command *command)
{
	uint32_t low = 0, high = queue->call_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (queue->calls[middle].until < command->tick)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < queue->call_count && !has_waited(&queue->calls[low], command))
		low++;
	return low < queue->call_count ? &queue->calls[low] : NULL;
}

/* Of those that have waited for the queue or for its context. whole: NULL: none has. */
static const struct call *call_for(const struct queue *queue, const struct queue *whole,
				   const struct command *command)
{
	const struct call *one = first_of(queue, command),
			  *other = whole ? first_of(whole, command) : NULL;

	return !one || (other && other->end < one->end) ? other : one;
}

/* May a call have waited for it that is not remembered any more? */
static bool is_forgotten(const struct queue *queue, const struct queue *whole,
			 const struct command *command)
{
	return has_waited(&queue->forgotten, command) ||
	       (whole && has_waited(&whole->forgotten, command));
}

/* Has any call come that began after it was submitted? */
static bool is_due(const struct queue *queue, const struct queue *whole,
		   const struct command *command)
{
	return (queue->call_count && queue->calls[queue->call_count - 1].until >= command->tick) ||
	       (whole && whole->call_count &&
		whole->calls[whole->call_count - 1].until >= command->tick);
}

static void remember(struct queue *queue, const struct call *call)
{
	struct call *calls = queue->calls;
	uint32_t at, behind;

	if (queue->call_count == CALLS) {
		queue->call_count /= 2;
		add_forgotten(&queue->forgotten, &calls[CALLS / 2 - 1]);
		memmove(calls, calls + CALLS / 2, queue->call_count * sizeof(*calls));
	}
	at = queue->call_count;
	while (at && calls[at - 1].end > call->end)
		at--;
	if (at && calls[at - 1].until >= call->until)
		return;
	for (behind = at; behind < queue->call_count && calls[behind].until <= call->until;)
		behind++;
	memmove(calls + at + 1, calls + behind, (queue->call_count - behind) * sizeof(*calls));
	calls[at] = *call;
	queue->call_count = queue->call_count - (behind - at) + 1;
}

/* May a call that ended before this one have waited for it, as for what is before a command? */
static bool is_open(const struct queue *queue, const struct command *command,
		    const struct call *call)
{
	for (uint32_t i = 0; command->in_order && i < queue->named_count; i++)
		if (queue->named[i].end < call->end && command->end <= queue->named[i].end)
			return true;
	return false;
}

static void draw_one(struct xs_process *process, struct queue *queue, const struct command *command,
		     const struct call *call)
{
	draw(process, queue, command, call);
	queue->drawn[queue->drawn_count++ % DRAWN] = command->name;
}

/* No command waits. One that had many gives its memory back. */
static void rest(struct xs_waits *waits, struct queue *queue)
{
	take_busy(queue);
	if (queue->room <= ROOM_LEAST)
		return;
	waits->room -= queue->room;
	free(queue->pending);
	queue->pending = NULL;
	queue->first = queue->room = 0;
}

/* To those that wait for a call, as far as it is known which one was the first. */
static void settle(struct xs_process *process, struct queue *queue)
{
	const struct queue *whole = whole_of(xs_chrome_of(process)->waits, queue);
	uint32_t at = 0, kept = 0;

	for (; at < queue->count; at++) {
		struct command *command = &queue->pending[queue->first + at];
		const struct call *call = call_for(queue, whole, command);

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
		rest(xs_chrome_of(process)->waits, queue);
}

static bool is_named(const struct name *name, const struct call *call)
{
	return (call->kind == XS_WAITED_COMMAND ? name->id : name->raw_start) == call->until;
}

/* The call has waited for all that were submitted by then. */
static void waited_until(struct xs_process *process, struct queue *queue, struct call call,
			 uint64_t tick)
{
	call.until = tick;
	call.kind = XS_WAITED_SUBMITTED;
	remember(queue, &call);
	settle(process, queue);
}

/* The call has waited for this command, which is not among the pending ones. */
static void waited_for(struct xs_process *process, struct queue *queue,
		       const struct command *command, const struct call *call)
{
	draw_one(process, queue, command, call);
	if (command->in_order)
		waited_until(process, queue, *call, command->tick);
}

static bool was_drawn(const struct queue *queue, const struct call *call)
{
	for (uint32_t i = 0; i < DRAWN && i < queue->drawn_count; i++)
		if (is_named(&queue->drawn[i], call))
			return true;
	return false;
}

static void forget_named(struct queue *queue, uint32_t which)
{
	queue->named_count--;
	memmove(queue->named + which, queue->named + which + 1,
		(queue->named_count - which) * sizeof(*queue->named));
}

static void waited_named(struct xs_process *process, struct queue *queue, const struct call *call)
{
	for (uint32_t behind = 0; behind < queue->count && behind < NAMED_FAR; behind++) {
		struct command *at = &queue->pending[queue->first + queue->count - 1 - behind],
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
	if (queue->named_count == CALLS)
		forget_named(queue, 0);
	queue->named[queue->named_count] = *call;
	queue->named[queue->named_count++].since = queue->commands;
}

/* The call that has waited for just this one, and is forgotten with it. */
static bool take_named(struct queue *queue, const struct command *command, struct call *ret_call)
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

static bool may_grow(const struct xs_waits *waits, const struct queue *queue)
{
	return queue->room < ROOM_LEAST || (queue->room < ROOM_MOST && waits->room < ROOM_ALL);
}

/* Room behind the last one; the oldest ones go, if there are too many. False: no memory. */
static bool make_room(struct xs_process *process, struct queue *queue)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;
	uint32_t room = queue->room ? 2 * queue->room : 16;
	struct command *grown;

	if (queue->first + queue->count < queue->room)
		return true;
	if (queue->count > queue->room / 2 && !may_grow(waits, queue)) {
		uint32_t left_out = queue->count - queue->room / 4;

		process->omitted[XS_OMIT_ARROWS] += left_out;
		queue->first += left_out;
		queue->count -= left_out;
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
	waits->room += room - queue->room;
	queue->pending = grown;
	queue->room = room;
	return true;
}

static void keep(struct xs_process *process, struct queue *queue, const struct command *command)
{
	struct command *end;
	uint32_t later = 0;

	if (!make_room(process, queue))
		return;
	end = queue->pending + queue->first + queue->count;
	while (later < queue->count && later < FAR && end[-1 - (int)later].tick > command->tick)
		later++;
	memmove(end - later + 1, end - later, later * sizeof(*end));
	end[-(int)later] = *command;
	queue->count++;
	put_busy(xs_chrome_of(process)->waits, queue);
}

/* The call has waited for all queues of a context. */
static void tell_whole(struct xs_process *process, const struct xs_wait *wait,
		       const struct call *call)
{
	struct queue *whole = queue_of(process, wait->source | WHOLE, context_of(wait->queue));
	struct xs_waits *waits = waits_of(process);

	if (!whole)
		return;
	waits->whole = true;
	if (wait->unknown)
		add_forgotten(&whole->forgotten, call);
	else
		remember(whole, call);
	for (struct queue *queue = waits->busy, *next; queue; queue = next) {
		next = queue->busy_next;
		if (queue->key[0] == wait->source && context_of(queue->key[1]) == whole->key[1])
			settle(process, queue);
	}
}

static void tell(struct xs_process *process, const struct xs_wait *wait)
{
	struct call call = { wait->until, wait->start, wait->end, wait->tid, 0, wait->kind };
	struct queue *queue;

	if (wait->whole) {
		tell_whole(process, wait, &call);
		return;
	}
	queue = queue_of(process, wait->source, wait->queue);
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
	struct xs_waits *waits = waits_of(process);
	uint32_t at;

	if (!waits)
		return;
	if (waits->held_count == HELD)
		tell_first(process, waits, HELD / 2);
	for (at = waits->held_count++; at && waits->held[at - 1].end > wait->end; at--)
		waits->held[at] = waits->held[at - 1];
	waits->held[at] = *wait;
}

static struct command command_of(const struct xs_work *work, uint64_t pid, uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	struct command command = {
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
static void waited_itself(struct xs_process *process, struct queue *queue,
			  const struct xs_work *work, const struct command *command)
{
	const struct xs_device_record *record = work->record;
	const struct call call = { .start = work->host_start,
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
static void wait_for_call(struct xs_process *process, struct queue *queue,
			  const struct command *command)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;
	const struct queue *whole = whole_of(waits, queue);
	const struct call *first = call_for(queue, whole, command);

	if (is_forgotten(queue, whole, command))
		return;
	if (first && !is_open(queue, command, first))
		draw_one(process, queue, command, first);
	else
		keep(process, queue, command);
}

void xs_waits_command(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		      uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	const struct command command = command_of(work, pid, tid);
	/* of what was submitted by a call that is not known, nobody knows who waited for it */
	struct queue *queue = command.tick ? queue_of(process, record->event.source, work->queue)
					   : NULL;
	struct call call;

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

void xs_waits_fini(struct xs_process *process)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;

	for (uint32_t i = 0; waits && i < waits->count; i++) {
		free(waits->queues[i]->pending);
		free(waits->queues[i]);
	}
	free(waits);
}
