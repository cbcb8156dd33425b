#include "envelope.h"

#include <math.h>
#include <string.h>

/* Between two points, each of which says less than the other at its own time. */
static double between(const struct xm_known *a, const struct xm_known *b, double change)
{
	return (a->most + b->most + change * (double)(b->time - a->time)) / 2;
}

/*
 * A later point may have shown that the first says nothing: so the worst can be too much, never too
 * little.
 */
static void forget_first(struct xm_envelope *envelope, double change)
{
	struct xm_known *points = envelope->points;

	envelope->worst = fmax(envelope->worst, between(points, points + 1, change));
	envelope->count--;
	memmove(points, points + 1, envelope->count * sizeof(*points));
}

void xm_envelope_add(struct xm_envelope *envelope, int64_t time, double most, double change)
{
	struct xm_known *last = envelope->points + envelope->count - 1;

	if (envelope->count && time < last->time) { /* what it says a bit later */
		most += change * (double)(last->time - time);
		time = last->time;
	}
	if (envelope->count && most >= last->most + change * (double)(time - last->time))
		return; /* known */
	while (envelope->count && last->most >= most + change * (double)(time - last->time)) {
		envelope->count--;
		last--;
	}
	if (envelope->count == XM_ENVELOPE_POINTS) {
		if (!envelope->has_more)
			envelope->first = envelope->points[0];
		envelope->has_more = true;
		forget_first(envelope, change);
	}
	envelope->points[envelope->count++] = (struct xm_known){ time, most };
}

double xm_envelope_latest(struct xm_envelope *envelope, int64_t from, int64_t to, double change)
{
	const struct xm_known *first = envelope->has_more ? &envelope->first : envelope->points,
			      *last = envelope->points;
	double worst;

	if (!envelope->count)
		return INFINITY;
	worst = first->most + change * (double)(first->time - from);
	while (envelope->count > 1)
		forget_first(envelope, change);
	worst = fmax(worst, last->most + change * (double)(to - last->time));
	return fmax(worst, envelope->worst);
}
