/*
 * Arrows between work of two queues, where one queue was told to wait for what was in the other.
 *
 * The arrow leads from the last work that was put into the one queue before a moment to the first
 * that was put into the other after a later one. Who tells of that tells when both have come. Of
 * all queues together the newest work is remembered. Where what is forgotten may be what the arrow
 * belongs to, there is none.
 */
#include <stdlib.h>

#include "chrome.h"
#include "device_record.h"
#include "tree.h"

#define PIECES 65536u

struct piece {
	struct xs_tree_node node; /* first; by source, queue, tick and number */
	uint64_t source, queue;
	uint64_t tick; /* of the call that put it there */
	uint64_t number;
	uint64_t start, end, pid, tid;
};

/*
 * What is never used of it is never there. Most programs have no queue that waits for another: the
 * tree grows from the first one on.
 */
struct xs_orders {
	struct xs_tree tree;
	bool searched;
	uint64_t count;	    /* of pieces, ever */
	uint64_t forgotten; /* the latest tick of those that have given their places */
	struct piece piece[PIECES];
};

static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct piece *a = (const void *)x, *b = (const void *)y;

	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* NULL: there is no memory. */
static struct xs_orders *orders_of(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->orders) {
		chrome->orders = calloc(1, sizeof(*chrome->orders));
		if (chrome->orders)
			chrome->orders->tree.compare = compare;
	}
	return chrome->orders;
}

/* The last one that was put there by then; NULL: it is not known. */
static const struct piece *last_by(const struct xs_orders *orders, uint64_t source, uint64_t queue,
				   uint64_t tick)
{
	const struct piece key = {
		.source = source, .queue = queue, .tick = tick, .number = UINT64_MAX
	};
	const struct piece *found = (void *)xs_tree_before(&orders->tree, &key.node);

	return found && found->source == source && found->queue == queue &&
			       found->tick > orders->forgotten
		       ? found
		       : NULL;
}

static const struct piece *first_after(const struct xs_orders *orders, uint64_t source,
				       uint64_t queue, uint64_t tick)
{
	const struct piece key = { .source = source, .queue = queue, .tick = tick + 1 };
	const struct piece *found = (void *)xs_tree_behind(&orders->tree, &key.node);

	return found && found->source == source && found->queue == queue &&
			       tick >= orders->forgotten
		       ? found
		       : NULL;
}

/* From now on they are to be found. */
static void search(struct xs_orders *orders)
{
	if (orders->searched)
		return;
	for (uint64_t i = 0; i < orders->count && i < PIECES; i++)
		xs_tree_add(&orders->tree, &orders->piece[i].node);
	orders->searched = true;
}

static void forget(struct xs_orders *orders, struct piece *piece)
{
	if (orders->searched)
		xs_tree_take(&orders->tree, &piece->node);
	if (piece->tick > orders->forgotten)
		orders->forgotten = piece->tick;
}

void xs_orders_read(struct xs_process *process, const struct xs_order *order)
{
	struct xs_orders *orders = orders_of(process);
	const struct piece *from, *to;

	if (!orders)
		return;
	search(orders);
	from = last_by(orders, order->source, order->from, order->until);
	to = first_after(orders, order->source, order->to, order->after);
	/* what begins sooner has not waited: the two belong to something else */
	if (!from || !to || from->start > to->start)
		return;
	xs_arrow_between(process, order->source, order->number,
			 &(struct xs_arrow_end){ from->pid, from->tid,
						 from->end - (from->end > from->start) },
			 &(struct xs_arrow_end){ to->pid, to->tid, to->start });
}

void xs_orders_work(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		    uint64_t tid)
{
	const struct xs_device_record *record = work->record;
	struct xs_orders *orders = record->event.tick ? orders_of(process) : NULL;
	struct piece *piece;

	if (!orders)
		return;
	piece = &orders->piece[orders->count % PIECES];
	if (orders->count >= PIECES)
		forget(orders, piece);
	*piece = (struct piece){ .source = record->event.source,
				 .queue = work->queue,
				 .tick = record->event.tick,
				 .number = orders->count++,
				 .start = work->start,
				 .end = work->end,
				 .pid = pid,
				 .tid = tid };
	if (orders->searched)
		xs_tree_add(&orders->tree, &piece->node);
}

void xs_orders_fini(struct xs_process *process)
{
	free(xs_chrome_of(process)->orders);
}
