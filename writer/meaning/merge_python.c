#include "merge_python.h"

struct merging {
	const bool *entries;
	uint32_t python, pythons; /* python: the next one */
	int32_t *order;
	uint32_t count, room;
};

static void add(struct merging *merging, int32_t which)
{
	if (merging->count < merging->room)
		merging->order[merging->count++] = which;
}

/* Python's functions up to one that C has called. */
static void take_python(struct merging *merging)
{
	bool more = true;

	while (merging->python < merging->pythons && more) {
		more = !merging->entries[merging->python];
		add(merging, -1 - (int32_t)merging->python++);
	}
}

uint32_t xs_merge_python(const bool *loops, uint32_t natives, const bool *entries, uint32_t pythons,
			 int32_t *order, uint32_t room)
{
	struct merging merging = {
		.entries = entries, .pythons = pythons, .order = order, .room = room
	};

	for (uint32_t i = 0; i < natives; i++)
		if (loops[i] && merging.python < pythons)
			take_python(&merging);
		else
			add(&merging, (int32_t)i);
	while (merging.python < pythons)
		take_python(&merging);
	return merging.count;
}
