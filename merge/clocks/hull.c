#include "hull.h"

#include <math.h>
#include <stdlib.h>

#define STEEPEST       1e-3L /* 1000 ppm; quartzes stay below 100 */
#define FIRST_ROOM     16u
#define ENOUGH_SAMPLES 8u

static int by_place(const void *a, const void *b)
{
	const struct xm_point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return p->y < q->y ? -1 : p->y > q->y;
}

void xm_hull_tidy(struct xm_hull *hull, bool upper)
{
	struct xm_point *p = hull->points;
	uint32_t kept = 0;

	if (!hull->count)
		return;
	qsort(p, hull->count, sizeof(*p), by_place);
	for (uint32_t i = 0; i < hull->count; i++) {
		if (kept && p[kept - 1].x == p[i].x) {
			if (upper) /* sorted: the first is the tightest */
				continue;
			kept--;
		}
		while (kept > 1) {
			__int128 cross = (__int128)(p[kept - 1].x - p[kept - 2].x) *
						 (p[i].y - p[kept - 2].y) -
					 (__int128)(p[kept - 1].y - p[kept - 2].y) *
						 (p[i].x - p[kept - 2].x);

			if (upper ? cross > 0 : cross < 0)
				break;
			kept--;
		}
		p[kept++] = p[i];
	}
	hull->count = kept;
}

void xm_hull_add(struct xm_hull *hull, bool upper, int64_t x, int64_t y)
{
	if (hull->count == hull->room) {
		struct xm_point *grown;

		xm_hull_tidy(hull, upper);
		if (hull->count >= hull->room / 2) {
			uint32_t room = hull->room ? 2 * hull->room : FIRST_ROOM;

			grown = realloc(hull->points, room * sizeof(*grown));
			if (!grown)
				return; /* one bound fewer */
			hull->points = grown;
			hull->room = room;
		}
	}
	hull->points[hull->count++] = (struct xm_point){ x, y };
}

/* With this slope: the least of the upper bounds, or the greatest of the lower ones, at `from`. */
static long double bound(const struct xm_hull *hull, bool upper, long double slope, int64_t from)
{
	long double best = upper ? INFINITY : -INFINITY;

	for (uint32_t i = 0; i < hull->count; i++) {
		long double at = (long double)hull->points[i].y -
				 slope * (long double)(hull->points[i].x - from);

		if (upper ? at < best : at > best)
			best = at;
	}
	return best;
}

void xm_samples_add(struct xm_samples *samples, int64_t x, int64_t y)
{
	if (samples->count == XM_SAMPLES) { /* every second one goes */
		for (uint32_t i = 0; i < XM_SAMPLES / 2; i++)
			samples->points[i] = samples->points[2 * i];
		samples->count /= 2;
		samples->stride *= 2;
	}
	if (!samples->stride)
		samples->stride = 1;
	if (samples->seen++ % samples->stride == 0)
		samples->points[samples->count++] = (struct xm_point){ x, y };
}

static int by_value(const void *a, const void *b)
{
	long double p = *(const long double *)a, q = *(const long double *)b;

	return p < q ? -1 : p > q;
}

/* The median of the slopes between all samples; false: too few. */
static bool usual_slope(const struct xm_samples *samples, long double *ret)
{
	long double *slopes = malloc(sizeof(*slopes) * XM_SAMPLES * XM_SAMPLES / 2);
	size_t count = 0;

	for (uint32_t i = 0; slopes && samples->count >= ENOUGH_SAMPLES && i < samples->count; i++)
		for (uint32_t k = 0; k < i; k++) {
			struct xm_point a = samples->points[k], b = samples->points[i];

			if (a.x != b.x)
				slopes[count++] =
					(long double)(b.y - a.y) / (long double)(b.x - a.x);
		}
	if (count) {
		qsort(slopes, count, sizeof(*slopes), by_value);
		*ret = slopes[count / 2];
	}
	free(slopes);
	return count;
}

static long double usual_place(const struct xm_samples *samples, const struct xm_line *line)
{
	long double places[XM_SAMPLES];

	for (uint32_t i = 0; i < samples->count; i++)
		places[i] = (long double)samples->points[i].y -
			    line->slope * (long double)(samples->points[i].x - line->from);
	qsort(places, samples->count, sizeof(*places), by_value);
	return (places[samples->count / 2] + places[(samples->count - 1) / 2]) / 2;
}

struct problem {
	const struct xm_hull *uppers, *lowers;
	int64_t from;
};

static long double gap(const struct problem *problem, long double slope)
{
	return bound(problem->uppers, true, slope, problem->from) -
	       bound(problem->lowers, false, slope, problem->from);
}

/* The gap is a concave function of the slope. */
static long double widest(const struct problem *problem)
{
	long double low = -STEEPEST, high = STEEPEST;

	for (int i = 0; i < 120; i++) {
		long double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (gap(problem, a) < gap(problem, b))
			low = a;
		else
			high = b;
	}
	return (low + high) / 2;
}

long double xm_hull_gap(const struct xm_hull *uppers, const struct xm_hull *lowers)
{
	struct problem problem = { uppers, lowers, uppers->points[0].x };

	return gap(&problem, widest(&problem));
}

/* The last slope from `good` to `limit` that leaves a gap. */
static long double last_good(const struct problem *problem, long double good, long double limit)
{
	if (gap(problem, limit) >= 0)
		return limit;
	for (int i = 0; i < 120; i++) {
		long double middle = (good + limit) / 2;

		if (gap(problem, middle) >= 0)
			good = middle;
		else
			limit = middle;
	}
	return good;
}

/*
 * How far a line that keeps all bounds can be above (or below) `line` at x: concave in the slope,
 * too.
 */
static long double farthest(const struct problem *problem, const struct xm_line *line, int64_t x,
			    bool above, long double low, long double high)
{
	long double chosen = line->at + line->slope * (long double)(x - line->from), far = 0;

	for (int i = 0; i < 120; i++) {
		long double slopes[2] = { low + (high - low) / 3, high - (high - low) / 3 },
			    values[2];

		for (int k = 0; k < 2; k++) {
			long double at = bound(above ? problem->uppers : problem->lowers, above,
					       slopes[k], problem->from) +
					 slopes[k] * (long double)(x - problem->from);

			values[k] = above ? at - chosen : chosen - at;
			far = values[k] > far ? values[k] : far;
		}
		if (values[0] < values[1])
			low = slopes[0];
		else
			high = slopes[1];
	}
	return far;
}

/* Bounds from one side alone: the line touches them, along the longest side of the hull. */
static void touch(const struct xm_hull *hull, bool upper, struct xm_line *line)
{
	int64_t longest = 0;

	line->slope = 0;
	for (uint32_t i = 1; i < hull->count; i++) {
		int64_t dx = hull->points[i].x - hull->points[i - 1].x;
		long double slope =
			(long double)(hull->points[i].y - hull->points[i - 1].y) / (long double)dx;

		if (dx > longest && dx > 1000000000 && slope < STEEPEST && slope > -STEEPEST) {
			longest = dx;
			line->slope = slope;
		}
	}
	line->at = bound(hull, upper, line->slope, line->from) + (upper ? -1 : 1);
	line->gap = INFINITY;
	line->error = -1;
}

bool xm_hull_line(const struct xm_hull *uppers, const struct xm_hull *lowers,
		  const struct xm_samples *samples, struct xm_line *line)
{
	struct problem problem = { uppers, lowers, 0 };
	int64_t first = INT64_MAX, last = INT64_MIN;
	long double flattest, low, high, usual;

	for (int k = 0; k < 2; k++) {
		const struct xm_hull *hull = k ? lowers : uppers;

		if (!hull->count)
			continue;
		first = hull->points[0].x < first ? hull->points[0].x : first;
		last = hull->points[hull->count - 1].x > last ? hull->points[hull->count - 1].x
							      : last;
	}
	if (first > last)
		return false;
	problem.from = line->from = first + (last - first) / 2;
	if (!uppers->count || !lowers->count) {
		touch(uppers->count ? uppers : lowers, uppers->count, line);
		return true;
	}
	/* a drift is assumed only where the bounds want one: little is known from a short time */
	line->slope = widest(&problem);
	line->gap = gap(&problem, line->slope);
	flattest = gap(&problem, 0);
	if (flattest >= line->gap / 2 && flattest >= 0) {
		line->slope = 0;
		line->gap = flattest;
	}
	/*
	 * where ranks wait for each other bounds are wide, but the waiting ends for all of them at
	 * once
	 */
	if (samples && usual_slope(samples, &usual) && gap(&problem, usual) >= 0) {
		line->slope = last - first > 1000000000 ? usual : line->slope;
		line->gap = gap(&problem, line->slope);
	}
	line->at = (bound(uppers, true, line->slope, line->from) +
		    bound(lowers, false, line->slope, line->from)) /
		   2;
	low = bound(lowers, false, line->slope, line->from);
	high = bound(uppers, true, line->slope, line->from);
	if (samples && samples->count && low <= high) {
		usual = usual_place(samples, line);
		line->at = usual < low ? low : usual > high ? high : usual;
	}
	line->error = -line->gap / 2;
	if (line->gap < 0)
		return true;
	low = last_good(&problem, line->slope, -STEEPEST);
	high = last_good(&problem, line->slope, STEEPEST);
	for (int k = 0; k < 4; k++) {
		long double far = farthest(&problem, line, k & 1 ? last : first, k & 2, low, high);

		line->error = far > line->error ? far : line->error;
	}
	return true;
}
