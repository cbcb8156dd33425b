/*
 * A line that may bend: how far one clock is ahead of another, or of the true time, as a function
 * of its time.
 */
#ifndef XM_PATH_H
#define XM_PATH_H

#include <stdbool.h>
#include <stdint.h>

#define XM_KNOTS 96u

struct xm_path {
	uint32_t count; /* at least 1; the knots ascend */
	struct {
		long double x, y;
	} knots[XM_KNOTS];
	long double before, after; /* slopes on both sides of all knots */
};

static inline void xm_path_straight(struct xm_path *path, long double x, long double y,
				    long double slope)
{
	path->count = 1;
	path->knots[0].x = x;
	path->knots[0].y = y;
	path->before = path->after = slope;
}

/*
 * One more knot behind the others; what has no room, or is not behind them, is left out: the line
 * does not bend there.
 */
static inline void xm_path_bend(struct xm_path *path, long double x, long double y)
{
	if (path->count && (path->count == XM_KNOTS || x < path->knots[path->count - 1].x + 1))
		return;
	path->knots[path->count].x = x;
	path->knots[path->count++].y = y;
}

/* Slopes on both sides of a knot. */
static inline bool xm_path_bends_at(const struct xm_path *path, uint32_t i)
{
	long double before = path->before, after = path->after, room = 1e9L;

	if (i) {
		room = path->knots[i].x - path->knots[i - 1].x;
		before = (path->knots[i].y - path->knots[i - 1].y) / room;
	}
	if (i + 1 < path->count) {
		long double x = path->knots[i + 1].x - path->knots[i].x;

		after = (path->knots[i + 1].y - path->knots[i].y) / x;
		room = x < room ? x : room;
	}
	return (before - after) * room > 1e-3L || (after - before) * room > 1e-3L;
}

/* Forgets knots where nothing bends; one stays. */
static inline void xm_path_tidy(struct xm_path *path)
{
	for (uint32_t i = 0; i < path->count && path->count > 1;) {
		if (xm_path_bends_at(path, i)) {
			i++;
			continue;
		}
		for (uint32_t k = i + 1; k < path->count; k++)
			path->knots[k - 1] = path->knots[k];
		path->count--;
	}
	if (path->count == 1 && !xm_path_bends_at(path, 0))
		path->after = path->before;
}

static inline long double xm_path_at(const struct xm_path *path, long double x)
{
	uint32_t last = path->count - 1, i = 1;

	if (x <= path->knots[0].x)
		return path->knots[0].y + path->before * (x - path->knots[0].x);
	if (x >= path->knots[last].x)
		return path->knots[last].y + path->after * (x - path->knots[last].x);
	while (path->knots[i].x < x)
		i++;
	return path->knots[i - 1].y + (path->knots[i].y - path->knots[i - 1].y) *
					      (x - path->knots[i - 1].x) /
					      (path->knots[i].x - path->knots[i - 1].x);
}

#endif
