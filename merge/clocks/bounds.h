/*
 * The bounds between two clocks over the time of a trace. Clocks that run evenly need their hull
 * alone; for others there is a hull for each part of the time, and of the lines of parts that
 * follow each other one that bends is made.
 */
#ifndef XM_BOUNDS_H
#define XM_BOUNDS_H

#include "hull.h"
#include "path.h"

#define XM_PARTS 32u

struct xm_bounds {
	struct xm_hull whole[2];    /* since xm_bounds_tidy(); [1]: upper bounds */
	struct xm_hull (*parts)[2]; /* each 2^shift ns long, or NULL */
	uint32_t count;		    /* of parts; 1 if is_plain */
	int64_t first;		    /* the first part's time >> shift */
	unsigned shift;
	bool is_plain; /* set before the first one: one part for all time, for want of memory */
};

/* As xm_hull_add(). */
void xm_bounds_add(struct xm_bounds *bounds, bool upper, int64_t x, int64_t y);
void xm_bounds_tidy(struct xm_bounds *bounds);
/*
 * How far the second clock is ahead, in the first one's time since `start`. `line` is that of all
 * bounds (xm_hull_line() of `whole`); where it does not keep them the path bends, which is said,
 * and line->error becomes that of the worst piece.
 */
bool xm_bounds_path(const struct xm_bounds *bounds, const struct xm_samples *samples, int64_t start,
		    struct xm_line *line, struct xm_path *ret);
/*
 * By how much (ns per ns) the clocks' paces can have changed along a path without the bounds
 * telling; 0: nothing is known.
 */
double xm_bounds_unseen(const struct xm_bounds *bounds, const struct xm_path *path, int64_t start);
/*
 * How far a path without bends can be off then, between the first bound and the last; 0: nothing is
 * known.
 */
double xm_bounds_error(const struct xm_bounds *bounds, const struct xm_path *path, int64_t start);
void xm_bounds_free(struct xm_bounds *bounds);

#endif
