#include "uncertainty.h"

#include <math.h>
#include <stdlib.h>

#include "envelope.h"
#include "map.h"

#define MAX_PAIRS 65536u

struct pair {
	uint32_t first, second;
	double change;		     /* ns per ns by which the two can come to differ */
	int64_t from, to;	     /* the time of its messages */
	struct xm_envelope sides[2]; /* [0]: the first one's clock is late */
	double most[2];		     /* of these, at any time */
};

struct xm_uncertainty {
	struct xm_clocks *clocks;
	uint32_t count;
	/* each clock against its root, at most; those that are early behind them */
	double *late;
	double *change;	   /* of each clock: ns per ns by which its pace can be another */
	struct xf_map map; /* of pairs */
	struct pair *pairs;
	uint32_t room;
	bool any_bends;
};

static int64_t length_of(const struct xm_merge *merge)
{
	int64_t length = 1;

	for (uint32_t i = 0; i < merge->count; i++)
		if (merge->inputs[i].last - merge->inputs[i].first > length)
			length = merge->inputs[i].last - merge->inputs[i].first;
	return length;
}

static bool is_uneven(const struct xm_uncertainty *uncertainty, const struct xm_clock *clock)
{
	return clock->piece_count || (clock->violated && !uncertainty->any_bends);
}

/* By how much the pace of a clock can be another than is said. */
static double change_of(const struct xm_clock *clock, double length)
{
	if (clock->piece_count)
		return clock->change;
	/* one that ran evenly can be off by so much at the begin, and the other way at the end */
	return clock->unseen + 2 *
				       ((double)clock->violated +
					(clock->error == XM_NO_TIME ? 0 : (double)clock->error)) /
				       length;
}

struct xm_uncertainty *xm_uncertainty_create(struct xm_clocks *clocks, const struct xm_merge *merge)
{
	struct xm_uncertainty *uncertainty = calloc(1, sizeof(*uncertainty));
	double length = (double)length_of(merge);

	if (!uncertainty)
		return NULL;
	uncertainty->clocks = clocks;
	uncertainty->count = xm_clocks_count(clocks);
	uncertainty->change = calloc(uncertainty->count + 1, sizeof(*uncertainty->change));
	uncertainty->late = calloc(2 * (size_t)uncertainty->count + 1, sizeof(*uncertainty->late));
	xf_map_init(&uncertainty->map, MAX_PAIRS, MAX_PAIRS * 8);
	if (!uncertainty->change || !uncertainty->late) {
		xm_uncertainty_free(uncertainty);
		return NULL;
	}
	for (uint32_t i = 0; i < uncertainty->count; i++) {
		uncertainty->change[i] = change_of(xm_clock_at(clocks, i), length);
		uncertainty->any_bends |= xm_clock_at(clocks, i)->piece_count;
	}
	return uncertainty;
}

static struct pair *pair_of(struct xm_uncertainty *uncertainty, uint32_t a, uint32_t b,
			    int64_t time)
{
	uint32_t key[2] = { a < b ? a : b, a < b ? b : a }, known = uncertainty->map.count;
	uint32_t index = xf_map_add(&uncertainty->map, key, sizeof(key));
	struct pair *pair;

	if (index == XF_NONE || !xf_room_for(&uncertainty->pairs, &uncertainty->room, index,
					     sizeof(*uncertainty->pairs)))
		return NULL;
	pair = &uncertainty->pairs[index];
	if (index == known) {
		pair->first = key[0];
		pair->second = key[1];
		pair->change = uncertainty->change[a] + uncertainty->change[b];
		pair->from = pair->to = time;
	}
	pair->from = time < pair->from ? time : pair->from;
	pair->to = time > pair->to ? time : pair->to;
	return pair;
}

void xm_uncertainty_message(struct xm_uncertainty *uncertainty, uint32_t from, int64_t sent,
			    uint32_t to, int64_t seen)
{
	struct pair *pair = from == to ? NULL : pair_of(uncertainty, from, to, seen);
	double late = (double)(seen - sent); /* negative: it is early, by that */

	if (pair) /* clocks change since it was sent, too */
		xm_envelope_add(&pair->sides[from != pair->first], seen,
				late + fabs(late) * pair->change, pair->change);
}

static bool lower(double *value, double other)
{
	bool is_lower = other < *value;

	if (is_lower)
		*value = other;
	return is_lower;
}

/* One more pair of each way from the roots; false: the shortest ones are found. */
static bool go_on(struct xm_uncertainty *uncertainty)
{
	double *late = uncertainty->late, *early = late + uncertainty->count;
	bool changed = false;

	for (uint32_t i = 0; i < uncertainty->map.count && i < uncertainty->room; i++) {
		const struct pair *pair = &uncertainty->pairs[i];
		uint32_t a = pair->first, b = pair->second;

		changed |= lower(&late[a], late[b] + pair->most[0]) |
			   lower(&late[b], late[a] + pair->most[1]);
		changed |= lower(&early[a], early[b] + pair->most[1]) |
			   lower(&early[b], early[a] + pair->most[0]);
	}
	return changed;
}

void xm_uncertainty_solve(struct xm_uncertainty *uncertainty)
{
	uint32_t count = uncertainty->count;
	double *late = uncertainty->late, *early = late + count;

	for (uint32_t i = 0; i < count; i++) {
		const struct xm_clock *clock = xm_clock_at(uncertainty->clocks, i);

		late[i] = is_uneven(uncertainty, clock) || clock->error == XM_NO_TIME
				  ? INFINITY
				  : (double)clock->error;
		early[i] = late[i] = clock->root == i ? 0 : late[i];
	}
	for (uint32_t i = 0; i < uncertainty->map.count && i < uncertainty->room; i++)
		for (int k = 0; k < 2; k++) {
			struct pair *pair = &uncertainty->pairs[i];

			pair->most[k] = xm_envelope_latest(&pair->sides[k], pair->from, pair->to,
							   pair->change);
		}
	for (uint32_t round = 0; round < count && go_on(uncertainty); round++)
		;
	for (uint32_t i = 0; i < count; i++) {
		struct xm_clock *clock = xm_clock_at(uncertainty->clocks, i);
		double error = fmax(late[i], early[i]);

		if (is_uneven(uncertainty, clock) && clock->root != i &&
		    clock->error != XM_NO_TIME && error < 1e18)
			clock->error = (int64_t)ceil(error) + 1;
	}
}

void xm_uncertainty_free(struct xm_uncertainty *uncertainty)
{
	if (!uncertainty)
		return;
	free(uncertainty->pairs);
	free(uncertainty->change);
	free(uncertainty->late);
	xf_map_free(&uncertainty->map);
	free(uncertainty);
}
