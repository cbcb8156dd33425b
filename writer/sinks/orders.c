/*
 * Arrows between work of two queues, where one queue was told to wait for what was in the other.
 *
 * The arrow leads from the last work that was put into the one queue before a moment to the first
 * that was put into the other after a later one. Who tells of that tells when both have come. The
 * newest work of each queue is remembered; what is older gets no arrow.
 */
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "device_record.h"
#include "hash.h"

#define QUEUES	   512u /* a power of two; of two in one place the newer one is remembered */
#define REMEMBERED 128u /* work of a queue */

struct piece {
	uint64_t tick; /* of the call that put it there */
	uint64_t start, end, pid, tid;
};

struct queue {
	uint64_t key[2]; /* source, number */
	uint32_t count;	 /* ever */
	struct piece last[REMEMBERED];
};

struct xs_orders {
	uint32_t drawn;
	struct queue *queues[QUEUES];
};

static struct xs_orders *orders_of(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->orders)
		chrome->orders = calloc(1, sizeof(*chrome->orders));
	return chrome->orders;
}

/* NULL: it is not known, or there is no memory. */
static struct queue *queue_of(struct xs_orders *orders, uint64_t source, uint64_t number, bool make)
{
	uint64_t key[2] = { source, number };
	struct queue **at = &orders->queues[xs_hash(key, 2) % QUEUES];

	if (*at && !memcmp((*at)->key, key, sizeof(key)))
		return *at;
	if (!make)
		return NULL;
	if (!*at)
		*at = malloc(sizeof(**at));
	if (*at) {
		memset(*at, 0, sizeof(**at));
		memcpy((*at)->key, key, sizeof(key));
	}
	return *at;
}

/* The last one that was put there by then. */
static const struct piece *last_by(const struct queue *queue, uint64_t tick)
{
	const struct piece *found = NULL;

	for (uint32_t i = 0; i < queue->count && i < REMEMBERED; i++)
		if (queue->last[i].tick <= tick && (!found || queue->last[i].tick > found->tick))
			found = &queue->last[i];
	return found;
}

static const struct piece *first_after(const struct queue *queue, uint64_t tick)
{
	const struct piece *found = NULL;

	for (uint32_t i = 0; i < queue->count && i < REMEMBERED; i++)
		if (queue->last[i].tick > tick && (!found || queue->last[i].tick < found->tick))
			found = &queue->last[i];
	return found;
}

void xs_orders_read(struct xs_process *process, const struct xs_order *order)
{
	struct xs_orders *orders = orders_of(process);
	const struct queue *queue = orders ? queue_of(orders, order->source, order->from, false)
					   : NULL;
	const struct piece *from = queue ? last_by(queue, order->until) : NULL, *to;

	queue = from ? queue_of(orders, order->source, order->to, false) : NULL;
	to = queue ? first_after(queue, order->after) : NULL;
	/* what begins sooner has not waited: the two belong to something else */
	if (!to || from->start > to->start)
		return;
	xs_arrow_between(process, order->source, ++orders->drawn,
			 &(struct xs_arrow_end){ from->pid, from->tid,
						 from->end - (from->end > from->start) },
			 &(struct xs_arrow_end){ to->pid, to->tid, to->start });
}

void xs_orders_work(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		    uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	struct xs_orders *orders = record->event.tick ? orders_of(process) : NULL;
	struct queue *queue = orders ? queue_of(orders, record->event.source, work->queue, true)
				     : NULL;

	if (queue)
		queue->last[queue->count++ % REMEMBERED] = (struct piece){
			record->event.tick, work->start, work->end, pid, tid,
		};
}

void xs_orders_fini(struct xs_process *process)
{
	struct xs_orders *orders = xs_chrome_of(process)->orders;

	for (uint32_t i = 0; orders && i < QUEUES; i++)
		free(orders->queues[i]);
	free(orders);
}
