/*
 * Lanes: rows of slices that do not overlap.
 */
#ifndef XS_LANES_H
#define XS_LANES_H

#include <stdbool.h>
#include <stdint.h>

struct xs_interval {
	uint64_t start, end;
	uint64_t reach; /* the latest end among this one and those before it */
};

/*
 * One row of slices that do not overlap. What is put there need not come in order of time, so it is
 * remembered.
 */
struct xs_lane {
	uint32_t tid;
	uint32_t count, room;
	struct xs_interval *taken; /* by start */
	uint32_t gap;		   /* so many are before the room that is left */
	uint64_t forgotten;	   /* nothing is known about what lies before it */
	uint64_t latest;	   /* end of all of them: what begins later crosses nothing */
};

struct xs_lanes {
	struct xs_lane *lane;
	uint32_t count;
	uint32_t last; /* taken: what comes after it is likely to fit there */
	/* a time at which every lane is taken, once there can be no more lanes; 0: none is known */
	uint64_t crowded;
};

enum xs_fit {
	XS_FIT_APART,	/* overlaps nothing */
	XS_FIT_NESTING, /* overlaps nothing but what it is inside of or around */
	/*
	 * as nesting, where many overlap: not deeper than viewers show, and around nothing that
	 * begins with it
	 */
	XS_FIT_FOLDED,
	XS_FIT_TRUSTED, /* as apart, and what is too long ago to be remembered is taken for free */
};
/*
 * The first lane where [start, end] fits; a new one (tid 0, to be named by the caller) if there is
 * none. NULL: no memory, or too many lanes.
 */
struct xs_lane *xs_lanes_take(struct xs_lanes *lanes, uint64_t start, uint64_t end,
			      enum xs_fit fit);
void xs_lanes_fini(struct xs_lanes *lanes);

#endif
