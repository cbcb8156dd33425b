/*
 * Where events were put: into which stream, and when.
 *
 * A program may record an event again and again before anybody waits for it, and a wait is told of
 * later than it was made. So of all events together the newest recordings are remembered. A wait
 * that may have been for one that is forgotten gets none: an older one would be wrong.
 */
#include "cuda_waits.h"

static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct xs_cuda_place *a = (const void *)x, *b = (const void *)y;

	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	return a->tick < b->tick ? -1 : a->tick > b->tick;
}

static struct xs_cuda_place *last_by(const struct xs_cuda_places *places, uint64_t event,
				     uint64_t tick)
{
	const struct xs_cuda_place key = { .event = event, .tick = tick };
	struct xs_cuda_place *found = (void *)xs_tree_before(&places->tree, &key.node);

	return found && found->event == event ? found : NULL;
}

void xs_cuda_put_place(struct xs_cuda_places *places, uint64_t event, uint64_t tick, uint64_t queue)
{
	struct xs_cuda_place *place = last_by(places, event, tick);

	places->tree.compare = compare;
	if (place && place->tick == tick) { /* told again, for the next dump */
		place->queue = queue;
		return;
	}
	place = &places->place[places->count % XS_CUDA_PLACES];
	if (places->count++ >= XS_CUDA_PLACES) {
		xs_tree_take(&places->tree, &place->node);
		if (place->tick > places->forgotten)
			places->forgotten = place->tick;
	}
	*place = (struct xs_cuda_place){ .event = event, .tick = tick, .queue = queue };
	xs_tree_add(&places->tree, &place->node);
}

const struct xs_cuda_place *xs_cuda_place_of(const struct xs_cuda_places *places, uint64_t event,
					     uint64_t tick)
{
	const struct xs_cuda_place *found = last_by(places, event, tick);

	return found && found->tick > places->forgotten ? found : NULL;
}
