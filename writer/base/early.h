/*
 * Ends whose begins are still to be read from another ring, in the order in which they were read.
 *
 * A begin is in its ring before its end is. So the pass over all rings behind the one that has read
 * the end has read its begin: what still waits then has none. It began while nothing was recorded,
 * or there was no room for it.
 */
#ifndef XS_EARLY_H
#define XS_EARLY_H

#include <stddef.h>
#include <stdint.h>

struct xs_early {
	struct xs_early *older, *newer;
	uint32_t pass; /* in which it was read */
};

struct xs_earlies {
	struct xs_early *oldest, *newest;
	uint32_t pass; /* so many are over */
};

static inline void xs_early_add(struct xs_earlies *list, struct xs_early *end)
{
	*end = (struct xs_early){ .older = list->newest, .pass = list->pass };
	*(end->older ? &end->older->newer : &list->oldest) = end;
	list->newest = end;
}

static inline void xs_early_take(struct xs_earlies *list, struct xs_early *end)
{
	*(end->older ? &end->older->newer : &list->oldest) = end->newer;
	*(end->newer ? &end->newer->older : &list->newest) = end->older;
}

/* One that has no begin, which is to be taken; NULL: none is known to have none. */
static inline struct xs_early *xs_early_next(const struct xs_earlies *list)
{
	return list->oldest && list->pass - list->oldest->pass >= 2 ? list->oldest : NULL;
}

#endif
