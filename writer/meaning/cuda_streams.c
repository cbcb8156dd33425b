/*
 * Streams that wait for events of others.
 *
 * The record of such a wait comes with its call, while what it is for, and what waits, may run much
 * later: a host may be thousands of commands ahead. So each is kept until work has followed in its
 * stream, and a little longer, as records come in any order. Of too many the oldest go, untold.
 */
#include "cuda_activity.h"
#include "cuda_waits.h"

static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct xs_cuda_stream_wait *a = (const void *)x, *b = (const void *)y;

	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static void append(struct xs_cuda_stream_list *list, struct xs_cuda_stream_wait *wait)
{
	wait->next = NULL;
	wait->back = list->last;
	if (list->last)
		list->last->next = wait;
	else
		list->first = wait;
	list->last = wait;
}

static void unlink_from(struct xs_cuda_stream_list *list, struct xs_cuda_stream_wait *wait)
{
	if (wait->back)
		wait->back->next = wait->next;
	else
		list->first = wait->next;
	if (wait->next)
		wait->next->back = wait->back;
	else
		list->last = wait->back;
}

/* No work is to follow it any more, or the first that does is known. */
static void stop_waiting(struct xs_cuda_streams *streams, struct xs_cuda_stream_wait *wait)
{
	unlink_from(&streams->waiting, wait);
	xs_tree_take(&streams->tree, &wait->node);
}

static struct xs_cuda_stream_wait *new_wait(struct xs_cuda_streams *streams)
{
	struct xs_cuda_stream_wait *wait = streams->spare;

	if (wait) {
		streams->spare = wait->next;
	} else if (streams->used < XS_CUDA_STREAMS) {
		wait = &streams->wait[streams->used++];
	} else if (streams->waiting.first) {
		wait = streams->waiting.first;
		stop_waiting(streams, wait);
	} else {
		wait = streams->followed.first;
		unlink_from(&streams->followed, wait);
	}
	return wait;
}

void xs_cuda_stream_waits(struct xs_cuda_streams *streams, uint64_t queue, uint64_t event,
			  uint64_t tick)
{
	struct xs_cuda_stream_wait *wait = new_wait(streams);

	streams->tree.compare = compare;
	*wait = (struct xs_cuda_stream_wait){
		.queue = queue,
		.event = event,
		.tick = tick,
		.serial = streams->serial++,
	};
	xs_tree_add(&streams->tree, &wait->node);
	append(&streams->waiting, wait);
}

void xs_cuda_follows(struct xs_process *process, uint64_t queue, uint64_t tick)
{
	const struct xs_cuda_stream_wait key = { .queue = queue };
	struct xs_cuda_waits *waits = process->cuda->waits;
	struct xs_cuda_stream_wait *wait;

	while (waits && waits->streams.waiting.first) {
		wait = (void *)xs_tree_behind(&waits->streams.tree, &key.node);
		if (!wait || wait->queue != queue || wait->tick >= tick)
			break;
		stop_waiting(&waits->streams, wait);
		wait->until = process->cuda->records + XS_CUDA_LATE;
		append(&waits->streams.followed, wait);
	}
}

static void give_back(struct xs_cuda_streams *streams, struct xs_cuda_stream_wait *wait)
{
	wait->next = streams->spare;
	streams->spare = wait;
}

static void tell(struct xs_process *process, const struct xs_cuda_stream_wait *wait)
{
	const struct xs_cuda_place *place =
		xs_cuda_place_of(&process->cuda->waits->places, wait->event, wait->tick);
	struct xs_order order = { .source = process->cuda->source,
				  .to = wait->queue,
				  .after = wait->tick };

	if (!place || place->queue == wait->queue)
		return;
	order.from = place->queue;
	order.until = place->tick;
	order.number = xs_cuda_number(process);
	XS_TELL_SINKS(process, order, process, &order);
}

void xs_cuda_tell_streams(struct xs_process *process, bool all)
{
	struct xs_cuda_waits *waits = process->cuda->waits;
	struct xs_cuda_streams *streams = waits ? &waits->streams : NULL;
	struct xs_cuda_stream_wait *wait;

	while (streams && streams->followed.first) {
		wait = streams->followed.first;
		if (!all && wait->until > process->cuda->records)
			break;
		tell(process, wait);
		unlink_from(&streams->followed, wait);
		give_back(streams, wait);
	}
	/* a later dump has their records again */
	while (all && streams && streams->waiting.first) {
		wait = streams->waiting.first;
		stop_waiting(streams, wait);
		give_back(streams, wait);
	}
}
