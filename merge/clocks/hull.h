/*
 * Bounds on how far two clocks are apart, as points (x, y) on convex hulls: at x by the first
 * clock, the second one is ahead by at most y (upper bounds, of messages from the first to the
 * second) or at least y (lower bounds). Only hulls matter for straight lines, so that few points
 * stay of many messages.
 */
#ifndef XM_HULL_H
#define XM_HULL_H

#include <stdbool.h>
#include <stdint.h>

struct xm_point {
	int64_t x, y;
};

struct xm_hull {
	struct xm_point *points;
	uint32_t count, room;
};

/*
 * Moments that were about the same for both clocks: not sure, but near. Of many, some are kept,
 * evenly spread.
 */
#define XM_SAMPLES 128
struct xm_samples {
	struct xm_point points[XM_SAMPLES];
	uint32_t count;
	uint64_t seen, stride;
};

void xm_samples_add(struct xm_samples *samples, int64_t x, int64_t y);

/* upper: y is an upper bound, the hull's lower side is kept. */
void xm_hull_add(struct xm_hull *hull, bool upper, int64_t x, int64_t y);
/* Brings the points into their order, and drops those that bound nothing. */
void xm_hull_tidy(struct xm_hull *hull, bool upper);

/* A line that keeps all bounds: ahead(x) = at + slope * (x - from). */
struct xm_line {
	long double at, slope;
	int64_t from;
	/*
	 * how far any other such line can be off, in the time of the points; negative: bounded from
	 * one side only
	 */
	long double error;
	/* negative: no line keeps all bounds, and the best breaks them by half of this */
	long double gap;
};

/* Hulls are tidied, samples may be NULL; false: there is no point at all. */
bool xm_hull_line(const struct xm_hull *uppers, const struct xm_hull *lowers,
		  const struct xm_samples *samples, struct xm_line *ret);

/* The widest gap that a line between these bounds can have, as xm_line's; both are there. */
long double xm_hull_gap(const struct xm_hull *uppers, const struct xm_hull *lowers);

#endif
