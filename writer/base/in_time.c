#include "in_time.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 65536u

static int by_time(const void *x, const void *y)
{
	const struct xs_timed *a = *(struct xs_timed *const *)x, *b = *(struct xs_timed *const *)y;

	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void sort(struct xs_in_time *waiting)
{
	if (waiting->count)
		qsort(waiting->list, waiting->count, sizeof(*waiting->list), by_time);
}

void xs_in_time_settle(struct xs_in_time *waiting, uint64_t until, xs_timed_use *use, void *of)
{
	uint32_t settled = 0;

	sort(waiting);
	while (settled < waiting->count && waiting->list[settled]->tick <= until)
		use(of, waiting->list[settled++]);
	waiting->count -= settled;
	if (waiting->count && settled)
		memmove(waiting->list, waiting->list + settled,
			waiting->count * sizeof(*waiting->list));
}

static bool make_room(struct xs_in_time *waiting, xs_timed_use *use, void *of)
{
	uint32_t room = waiting->room ? 2 * waiting->room : 64;
	struct xs_timed **grown;

	if (waiting->count < waiting->room)
		return true;
	grown = room <= WAITING_MAX ? realloc(waiting->list, room * sizeof(*grown)) : NULL;
	if (grown) {
		waiting->list = grown;
		waiting->room = room;
	} else if (waiting->count) {
		sort(waiting);
		xs_in_time_settle(waiting, waiting->list[waiting->count / 2]->tick, use, of);
	}
	return waiting->count < waiting->room;
}

bool xs_in_time_add(struct xs_in_time *waiting, struct xs_timed *timed, xs_timed_use *use, void *of)
{
	if (!make_room(waiting, use, of))
		return false;
	waiting->list[waiting->count++] = timed;
	return true;
}

void xs_in_time_free(struct xs_in_time *waiting)
{
	free(waiting->list);
	*waiting = (struct xs_in_time){ 0 };
}
