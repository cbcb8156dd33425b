/*
 * Ends of arrows whose other end has not been met, in a table of sets.
 */
#include "halves.h"

#include <stdlib.h>

#define SETS 256u
#define WAYS 4u

enum {
	START = 1,
	END = 2,
	WHOLE = START | END,
};

/* Arrows that were met last: an arrow's identity, whose lowest bits are which ends it has. */
struct xm_halves {
	uint64_t sets[SETS][WAYS]; /* 0: free */
};

/* Without the lowest bits, and not 0. */
static uint64_t identity_of(const struct xf_event *event)
{
	return (xf_arrow_hash(event, event->id) | 4) & ~(uint64_t)WHOLE;
}

static uint64_t end_of(const struct xf_event *event)
{
	return event->ph.p[1] == 's' ? START : END;
}

/* Its place; if it has none: NULL, or one that may be had. */
static uint64_t *find(struct xm_halves *halves, uint64_t identity, bool puts)
{
	uint64_t *set = halves->sets[identity >> 40 & (SETS - 1)], *best = NULL;

	for (unsigned i = 0; i < WAYS; i++) {
		if ((set[i] & ~(uint64_t)WHOLE) == identity)
			return &set[i];
		/* an end without a start may be one more of an arrow that was whole */
		if (!set[i] || (set[i] & WHOLE) == WHOLE || (!best && set[i] & END))
			best = &set[i];
	}
	return puts ? best : NULL;
}

void xm_half_met(struct xm_halves **halves, const struct xf_event *event)
{
	uint64_t identity = identity_of(event), *arrow;

	if (!*halves)
		*halves = calloc(1, sizeof(**halves));
	arrow = *halves ? find(*halves, identity, true) : NULL;
	if (!arrow)
		return;
	if ((*arrow & ~(uint64_t)WHOLE) != identity)
		*arrow = identity;
	*arrow |= end_of(event);
}

bool xm_half_is(struct xm_halves *halves, const struct xf_event *event)
{
	uint64_t *arrow = find(halves, identity_of(event), false);

	if (!arrow)
		return false;
	if ((*arrow & WHOLE) == end_of(event))
		return true;
	*arrow |= WHOLE; /* where only a further end of it was remembered */
	return false;
}
