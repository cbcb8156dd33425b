#include "waits.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

/*
 * Commands that no call has waited for. Each queue has room for the least; since a pass may read
 * many before it reads the call, one may grow to the most while all together have less than that.
 */
#define ROOM_LEAST 2048u
#define ROOM_MOST  131072u
#define ROOM_ALL   (1u << 18)
/* The same of calls: commands that other threads tell of are read after many of them. */
#define CALLS_LEAST 64u
#define CALLS_MOST  4096u
#define CALLS_ALL   (1u << 17)
#define FAR	    64u /* so many places is a command put before others that came sooner */

static void put_busy(struct xs_waits *waits, struct xs_wait_queue *queue)
{
	if (queue->busy_link)
		return;
	queue->busy_next = waits->busy;
	queue->busy_link = &waits->busy;
	if (waits->busy)
		waits->busy->busy_link = &queue->busy_next;
	waits->busy = queue;
}

static void take_busy(struct xs_wait_queue *queue)
{
	if (!queue->busy_link)
		return;
	*queue->busy_link = queue->busy_next;
	if (queue->busy_next)
		queue->busy_next->busy_link = queue->busy_link;
	queue->busy_link = NULL;
}

void xs_wait_forgotten(struct xs_wait_call *all, const struct xs_wait_call *call)
{
	if (call->until > all->until)
		all->until = call->until;
	if (call->end > all->end)
		all->end = call->end;
}

static void forget(struct xs_waits *waits, struct xs_wait_queue *queue)
{
	struct xs_wait_queue **link = &waits->bucket[xs_hash(queue->key, 2) % XS_WAIT_BUCKETS];

	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	take_busy(queue);
	xs_wait_forgotten(&waits->forgotten, &queue->forgotten);
	if (queue->call_count)
		xs_wait_forgotten(&waits->forgotten, &queue->calls[queue->call_count - 1]);
	waits->room -= queue->room;
	waits->call_room -= queue->call_room;
	free(queue->pending);
	free(queue->calls);
	memset(queue, 0, sizeof(*queue));
}

/* NULL: there is no memory. */
static struct xs_wait_queue *place_for_one(struct xs_waits *waits)
{
	struct xs_wait_queue *queue;

	if (waits->count < XS_WAIT_QUEUES_MAX) {
		queue = calloc(1, sizeof(*queue));
		if (queue)
			waits->queues[waits->count++] = queue;
		return queue;
	}
	for (;; waits->queues[waits->hand]->used = false, waits->hand++) {
		waits->hand %= XS_WAIT_QUEUES_MAX;
		if (!waits->queues[waits->hand]->used)
			break;
	}
	queue = waits->queues[waits->hand++];
	forget(waits, queue);
	return queue;
}

struct xs_waits *xs_waits_of(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->waits)
		chrome->waits = calloc(1, sizeof(*chrome->waits));
	return chrome->waits;
}

/* NULL: it is not known. */
static struct xs_wait_queue *find_queue(struct xs_waits *waits, const uint64_t key[2])
{
	struct xs_wait_queue *queue = waits->bucket[xs_hash(key, 2) % XS_WAIT_BUCKETS];

	while (queue && memcmp(queue->key, key, sizeof(queue->key)) != 0)
		queue = queue->next;
	if (queue)
		queue->used = true;
	return queue;
}

struct xs_wait_queue *xs_wait_queue_of(struct xs_process *process, uint64_t source, uint64_t number)
{
	uint64_t key[2] = { source, number };
	struct xs_waits *waits = xs_waits_of(process);
	struct xs_wait_queue *queue = waits ? find_queue(waits, key) : NULL, **bucket;

	if (queue || !waits)
		return queue;
	queue = place_for_one(waits);
	if (!queue)
		return NULL;
	bucket = &waits->bucket[xs_hash(key, 2) % XS_WAIT_BUCKETS];
	memcpy(queue->key, key, sizeof(key));
	queue->forgotten = waits->forgotten; /* it may have been one of them */
	queue->next = *bucket;
	queue->used = true;
	*bucket = queue;
	return queue;
}

const struct xs_wait_queue *xs_wait_whole_of(struct xs_waits *waits,
					     const struct xs_wait_queue *queue)
{
	uint64_t key[2] = { queue->key[0] | XS_WAIT_WHOLE, xs_wait_context_of(queue->key[1]) };

	return waits->whole ? find_queue(waits, key) : NULL;
}

static bool grow_calls(struct xs_waits *waits, struct xs_wait_queue *queue)
{
	uint32_t room = queue->call_room ? 2 * queue->call_room : CALLS_LEAST;
	struct xs_wait_call *grown;

	if (queue->call_room && (room > CALLS_MOST || waits->call_room >= CALLS_ALL))
		return false;
	grown = realloc(queue->calls, room * sizeof(*grown));
	if (!grown)
		return false;
	waits->call_room += room - queue->call_room;
	queue->calls = grown;
	queue->call_room = room;
	return true;
}

void xs_wait_remember(struct xs_waits *waits, struct xs_wait_queue *queue,
		      const struct xs_wait_call *call)
{
	uint32_t at, behind, half = queue->call_room / 2;
	struct xs_wait_call *calls;

	if (queue->call_count == queue->call_room && !grow_calls(waits, queue)) {
		if (!half) {
			xs_wait_forgotten(&queue->forgotten, call);
			return;
		}
		xs_wait_forgotten(&queue->forgotten, &queue->calls[half - 1]);
		queue->call_count -= half;
		memmove(queue->calls, queue->calls + half,
			queue->call_count * sizeof(*queue->calls));
	}
	calls = queue->calls;
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

static bool may_grow(const struct xs_waits *waits, const struct xs_wait_queue *queue)
{
	return queue->room < ROOM_LEAST || (queue->room < ROOM_MOST && waits->room < ROOM_ALL);
}

/* Room behind the last one; the oldest ones go, if there are too many. False: no memory. */
static bool make_room(struct xs_process *process, struct xs_wait_queue *queue)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;
	uint32_t room = queue->room ? 2 * queue->room : 16;
	struct xs_wait_command *grown;

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

void xs_wait_keep(struct xs_process *process, struct xs_wait_queue *queue,
		  const struct xs_wait_command *command)
{
	struct xs_wait_command *end;
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

void xs_wait_rest(struct xs_waits *waits, struct xs_wait_queue *queue)
{
	take_busy(queue);
	if (queue->room <= ROOM_LEAST)
		return;
	waits->room -= queue->room;
	free(queue->pending);
	queue->pending = NULL;
	queue->first = queue->room = 0;
}

void xs_waits_fini(struct xs_process *process)
{
	struct xs_waits *waits = xs_chrome_of(process)->waits;

	for (uint32_t i = 0; waits && i < waits->count; i++) {
		free(waits->queues[i]->pending);
		free(waits->queues[i]->calls);
		free(waits->queues[i]);
	}
	free(waits);
}
