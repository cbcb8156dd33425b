/*
 * What threads have written that may belong together. Their rings are read one after the other. So
 * it waits until all is read that was written before, and then comes in the order of its ticks.
 */
#ifndef XS_IN_TIME_H
#define XS_IN_TIME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A processor may read its clock before it has seen what it waited for, and no two clocks are quite
 * the same. So what one thread hands to another at once may seem to come to it earlier, by so much.
 */
#define XS_HANDED_NS 1000u

/* Lies in what waits. */
struct xs_timed {
	uint64_t tick;
	uint64_t number; /* no two have the same; of those of one tick the lower one comes first */
};

struct xs_in_time {
	struct xs_timed **list;
	uint32_t count, room;
};

/* Takes one that has waited; must add none. */
typedef void xs_timed_use(void *of, struct xs_timed *timed);

/*
 * Too many that wait go without what they wait for, the older half. False: there is no memory, and
 * `timed` was not added.
 */
bool xs_in_time_add(struct xs_in_time *waiting, struct xs_timed *timed, xs_timed_use *use,
		    void *of);
/* Those up to this tick: nothing that is still to be read lies before them. */
void xs_in_time_settle(struct xs_in_time *waiting, uint64_t until, xs_timed_use *use, void *of);
/* When nothing waits any more. */
void xs_in_time_free(struct xs_in_time *waiting);

#endif
