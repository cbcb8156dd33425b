#include "bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "envelope.h"

#define FIRST_SHIFT 20u /* a millisecond */
/*
 * quickest messages there and back: so far clocks can go apart in half of the time, and back,
 * unseen
 */
#define UNSEEN 4

/* ---- collecting ---- */

/* Makes parts twice as long; each two become one. */
static void lengthen(struct xm_bounds *bounds)
{
	struct xm_hull(*parts)[2] = bounds->parts;
	int64_t first = bounds->first >> 1;

	for (uint32_t i = 0; i < bounds->count; i++)
		for (int upper = 0; upper < 2; upper++) {
			uint32_t to = (uint32_t)(((bounds->first + i) >> 1) - first);
			struct xm_hull from = parts[i][upper];

			if (to == i)
				continue;
			memset(&parts[i][upper], 0, sizeof(from));
			if (!parts[to][upper].points) {
				parts[to][upper] = from;
				continue;
			}
			for (uint32_t k = 0; k < from.count; k++)
				xm_hull_add(&parts[to][upper], upper, from.points[k].x,
					    from.points[k].y);
			free(from.points);
		}
	bounds->first = first;
	bounds->shift++;
}

/* Moves the parts so that there are some in front of them. */
static void make_room_before(struct xm_bounds *bounds, uint32_t count)
{
	memmove(bounds->parts + count, bounds->parts,
		(bounds->count - count) * sizeof(*bounds->parts));
	memset(bounds->parts, 0, count * sizeof(*bounds->parts));
	bounds->first -= count;
}

static uint32_t used(const struct xm_bounds *bounds)
{
	uint32_t last = bounds->count;

	while (last && !bounds->parts[last - 1][0].count && !bounds->parts[last - 1][1].count)
		last--;
	return last;
}

void xm_bounds_add(struct xm_bounds *bounds, bool upper, int64_t x, int64_t y)
{
	int64_t part;

	if (!bounds->parts) {
		bounds->count = bounds->is_plain ? 1 : XM_PARTS;
		bounds->parts = calloc(bounds->count, sizeof(*bounds->parts));
		if (!bounds->parts) {
			bounds->count = 0;
			return; /* one bound fewer */
		}
		bounds->shift = bounds->is_plain ? 63 : FIRST_SHIFT;
		bounds->first = x >> bounds->shift;
	}
	while ((part = (x >> bounds->shift) - bounds->first) >= (int64_t)bounds->count ||
	       (part < 0 && part < (int64_t)used(bounds) - (int64_t)bounds->count))
		lengthen(bounds);
	if (part < 0) {
		make_room_before(bounds, (uint32_t)-part);
		part = 0;
	}
	xm_hull_add(&bounds->parts[part][upper], upper, x, y);
}

static void add_all(struct xm_hull *to, const struct xm_hull *from, bool upper)
{
	for (uint32_t i = 0; i < from->count; i++)
		xm_hull_add(to, upper, from->points[i].x, from->points[i].y);
}

void xm_bounds_tidy(struct xm_bounds *bounds)
{
	for (uint32_t i = 0; i < bounds->count; i++)
		for (int upper = 0; upper < 2; upper++) {
			xm_hull_tidy(&bounds->parts[i][upper], upper);
			add_all(&bounds->whole[upper], &bounds->parts[i][upper], upper);
		}
	for (int upper = 0; upper < 2; upper++)
		xm_hull_tidy(&bounds->whole[upper], upper);
}

void xm_bounds_free(struct xm_bounds *bounds)
{
	for (uint32_t i = 0; i < bounds->count; i++) {
		free(bounds->parts[i][0].points);
		free(bounds->parts[i][1].points);
	}
	free(bounds->whole[0].points);
	free(bounds->whole[1].points);
	free(bounds->parts);
	memset(bounds, 0, sizeof(*bounds));
}

/* ---- one line for some parts, another for the next ones ---- */

/*
 * The best way to cover the parts before this one: with as few lines and as few parts without one
 * as can be, and the widest gaps.
 */
struct way {
	uint32_t cost; /* lines, and parts without: in those the clock's pace changes */
	uint32_t from; /* the last line's first part; or the part without */
	bool has_line;
	long double gap;
};

static int64_t part_start(const struct xm_bounds *bounds, uint32_t part)
{
	return (int64_t)((uint64_t)(bounds->first + part) << bounds->shift);
}

static void take_better(struct way *way, struct way other)
{
	if (other.cost < way->cost || (other.cost == way->cost && other.gap > way->gap))
		*way = other;
}

/* ways[i] for all i up to `parts`. */
static void find_ways(const struct xm_bounds *bounds, uint32_t parts, struct way *ways)
{
	ways[0] = (struct way){ .gap = INFINITY };
	for (uint32_t i = 1; i <= parts; i++)
		ways[i].cost = UINT32_MAX;
	for (uint32_t from = 0; from < parts; from++) {
		struct xm_hull hulls[2] = { 0 };
		struct way way = { .cost = ways[from].cost + 1,
				   .from = from,
				   .gap = ways[from].gap };

		take_better(&ways[from + 1], way);
		way.has_line = true;
		for (uint32_t to = from + 1; to <= parts; to++) {
			for (int upper = 0; upper < 2; upper++) {
				add_all(&hulls[upper], &bounds->parts[to - 1][upper], upper);
				xm_hull_tidy(&hulls[upper], upper);
			}
			if (!hulls[0].count || !hulls[1].count)
				continue;
			way.gap = xm_hull_gap(&hulls[1], &hulls[0]);
			if (way.gap < 0)
				break;
			way.gap = way.gap < ways[from].gap ? way.gap : ways[from].gap;
			take_better(&ways[to], way);
		}
		free(hulls[0].points);
		free(hulls[1].points);
	}
}

/* The line of parts from `from` to `to`. */
static struct xm_line line_of(const struct xm_bounds *bounds, const struct xm_samples *all,
			      uint32_t from, uint32_t to)
{
	int64_t first = part_start(bounds, from), last = part_start(bounds, to);
	struct xm_hull hulls[2] = { 0 };
	struct xm_samples samples = { 0 };
	struct xm_line line = { 0 };

	for (int upper = 0; upper < 2; upper++) {
		for (uint32_t i = from; i < to; i++)
			add_all(&hulls[upper], &bounds->parts[i][upper], upper);
		xm_hull_tidy(&hulls[upper], upper);
	}
	for (uint32_t i = 0; all && i < all->count; i++)
		if (all->points[i].x >= first && all->points[i].x < last)
			samples.points[samples.count++] = all->points[i];
	(void)xm_hull_line(&hulls[1], &hulls[0], &samples, &line);
	free(hulls[0].points);
	free(hulls[1].points);
	return line;
}

static long double on(const struct xm_line *line, long double x)
{
	return line->at + line->slope * (x - (long double)line->from);
}

/* Does the line keep all bounds in this time? */
static bool keeps(const struct xm_bounds *bounds, const struct xm_line *line, long double from,
		  long double to)
{
	for (uint32_t i = 0; i < bounds->count; i++)
		for (int upper = 0; upper < 2; upper++) {
			const struct xm_hull *hull = &bounds->parts[i][upper];

			for (uint32_t k = 0; k < hull->count; k++) {
				long double x = (long double)hull->points[k].x,
					    beyond = on(line, x) - (long double)hull->points[k].y;

				if (x >= from && x <= to && (upper ? beyond > 0 : beyond < 0))
					return false;
			}
		}
	return true;
}

/*
 * Where one line becomes the other: where they meet, if that is between `from` and `to`, or if what
 * is between there and here leaves room for it; else on a way from one to the other.
 */
static void bend(const struct xm_bounds *bounds, struct xm_path *path, const struct xm_line *a,
		 const struct xm_line *b, long double from, long double to, long double start)
{
	long double meet = a->slope == b->slope
				   ? -INFINITY
				   : from + (on(b, from) - on(a, from)) / (a->slope - b->slope);
	long double about = ldexpl(1, (int)bounds->shift),
		    last = path->count ? path->knots[path->count - 1].x + start : -INFINITY;

	if (meet > last && (meet > to ? keeps(bounds, a, to, meet)
				      : meet > from || keeps(bounds, b, meet, from))) {
		xm_path_bend(path, meet - start, on(a, meet));
		return;
	}
	xm_path_bend(path, from - about / 4 - start, on(a, from - about / 4));
	xm_path_bend(path, to + about / 4 - start, on(b, to + about / 4));
}

/* False: lines of parts do not help either. */
static bool bent_path(const struct xm_bounds *bounds, const struct xm_samples *samples,
		      int64_t start, struct xm_path *ret, long double *ret_error)
{
	struct {
		uint32_t from, to;
	} pieces[XM_PARTS];
	uint32_t count = 0;
	struct way ways[XM_PARTS + 1];
	struct xm_line before = { 0 }, line;

	find_ways(bounds, used(bounds), ways);
	for (uint32_t to = used(bounds); to; to = ways[to].from)
		if (ways[to].has_line) {
			pieces[count].from = ways[to].from;
			pieces[count++].to = to;
		}
	if (!count)
		return false;
	ret->count = 0;
	*ret_error = 0;
	for (uint32_t i = count; i-- > 0; before = line) {
		line = line_of(bounds, samples, pieces[i].from, pieces[i].to);
		*ret_error = line.error > *ret_error ? line.error : *ret_error;
		if (i + 1 == count)
			ret->before = line.slope;
		else
			bend(bounds, ret, &before, &line,
			     (long double)part_start(bounds, pieces[i + 1].to),
			     (long double)part_start(bounds, pieces[i].from), (long double)start);
	}
	ret->after = before.slope;
	if (count == 1)
		xm_path_straight(ret, (long double)(before.from - start), before.at, before.slope);
	for (uint32_t i = 1; i < ret->count; i++) { /* a clock does not go backwards */
		long double x = ret->knots[i].x - ret->knots[i - 1].x,
			    y = ret->knots[i].y - ret->knots[i - 1].y;

		if (y <= -0.9L * x || y >= 0.9L * x)
			return false;
	}
	return ret->count;
}

/* ---- how far a line can be off ---- */

/* What a bound leaves to a path. */
static double left_by(const struct xm_path *path, struct xm_point p, int64_t start, bool upper)
{
	long double left = (long double)p.y - xm_path_at(path, (long double)(p.x - start));

	return (double)(upper ? left : -left);
}

/* The quickest message there and back that are known of one part; INFINITY: there is none. */
static double quickest(const struct xm_bounds *bounds, const struct xm_path *path, int64_t start)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < bounds->count; i++) {
		double left[2] = { INFINITY, INFINITY };

		for (int upper = 0; upper < 2; upper++)
			for (uint32_t k = 0; k < bounds->parts[i][upper].count; k++)
				left[upper] = fmin(left[upper],
						   left_by(path, bounds->parts[i][upper].points[k],
							   start, upper));
		least = fmin(least, left[0] + left[1]);
	}
	return least;
}

/* The time of the first bound and the last; false: there are none. */
static bool find_time(const struct xm_bounds *bounds, int64_t *ret_from, int64_t *ret_to)
{
	*ret_from = INT64_MAX;
	*ret_to = INT64_MIN;
	for (uint32_t i = 0; i < bounds->count; i++)
		for (int upper = 0; upper < 2; upper++) {
			const struct xm_hull *hull = &bounds->parts[i][upper];

			if (!hull->count)
				continue;
			*ret_from = hull->points[0].x < *ret_from ? hull->points[0].x : *ret_from;
			*ret_to = hull->points[hull->count - 1].x > *ret_to
					  ? hull->points[hull->count - 1].x
					  : *ret_to;
		}
	return *ret_from <= *ret_to;
}

double xm_bounds_unseen(const struct xm_bounds *bounds, const struct xm_path *path, int64_t start)
{
	int64_t from, to;
	double change = 0;

	if (find_time(bounds, &from, &to))
		change = UNSEEN * quickest(bounds, path, start) * path->count /
			 (double)(to - from + 1);
	return isfinite(change) && change > 0 ? change : 0;
}

double xm_bounds_error(const struct xm_bounds *bounds, const struct xm_path *path, int64_t start)
{
	struct xm_envelope sides[2] = { 0 };
	double change = xm_bounds_unseen(bounds, path, start);
	int64_t from, to;

	if (change == 0 || !find_time(bounds, &from, &to))
		return 0;
	for (uint32_t i = 0; i < bounds->count; i++)
		for (int upper = 0; upper < 2; upper++) {
			const struct xm_hull *hull = &bounds->parts[i][upper];

			for (uint32_t k = 0; k < hull->count; k++)
				xm_envelope_add(&sides[upper], hull->points[k].x,
						fmax(0,
						     left_by(path, hull->points[k], start, upper)),
						change);
		}
	return fmax(xm_envelope_latest(&sides[0], from, to, change),
		    xm_envelope_latest(&sides[1], from, to, change));
}

bool xm_bounds_path(const struct xm_bounds *bounds, const struct xm_samples *samples, int64_t start,
		    struct xm_line *line, struct xm_path *ret)
{
	if (line->gap < 0 && bent_path(bounds, samples, start, ret, &line->error))
		return true;
	xm_path_straight(ret, (long double)(line->from - start), line->at, line->slope);
	return false;
}
