#include "clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "hull.h"

#define MAX_PAIRS 65536u

/* The clocks first < second; bounds on how far the second is ahead. */
struct pair {
	uint32_t first, second;
	struct xm_hull uppers, lowers;
	struct xm_samples *samples;
	struct xm_line line;
	bool has_line;
};

struct pairs {
	struct xm_map map;
	struct pair *all;
	uint32_t room;
};

struct xm_clocks {
	struct pairs of_inputs, of_clocks;
	uint32_t count;
	struct xm_clock *all;
	/* solving: true time = (1 + drift) * (t - start) + offset + start; low, high: bounds on the offset with this drift */
	long double *offset, *drift, *error, *low, *high;
	int64_t start;
};

struct xm_clocks *xm_clocks_create(uint32_t inputs)
{
	struct xm_clocks *clocks = calloc(1, sizeof(*clocks));

	if (!clocks)
		return NULL;
	clocks->all = calloc(inputs + 1, sizeof(*clocks->all));
	xm_map_init(&clocks->of_inputs.map, MAX_PAIRS, MAX_PAIRS * 8);
	xm_map_init(&clocks->of_clocks.map, MAX_PAIRS, MAX_PAIRS * 8);
	return clocks;
}

static struct pair *pair_of(struct pairs *pairs, uint32_t a, uint32_t b)
{
	uint32_t key[2] = { a < b ? a : b, a < b ? b : a };
	uint32_t index = xm_map_add(&pairs->map, key, sizeof(key));

	if (index == XM_NONE)
		return NULL;
	if (index >= pairs->room) {
		uint32_t room = pairs->room ? 2 * pairs->room : 64;
		struct pair *grown = realloc(pairs->all, room * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + pairs->room, 0, (room - pairs->room) * sizeof(*grown));
		pairs->all = grown;
		pairs->room = room;
	}
	pairs->all[index].first = key[0];
	pairs->all[index].second = key[1];
	return &pairs->all[index];
}

static void message(struct pairs *pairs, uint32_t from, int64_t sent, uint32_t to, int64_t seen)
{
	struct pair *pair = from == to ? NULL : pair_of(pairs, from, to);

	if (!pair)
		return;
	if (pair->first == from)
		xm_hull_add(&pair->uppers, true, sent, seen - sent);
	else
		xm_hull_add(&pair->lowers, false, seen, sent - seen);
}

void xm_clocks_message(struct xm_clocks *clocks, uint32_t from, int64_t sent, uint32_t to, int64_t seen)
{
	message(&clocks->of_inputs, from, sent, to, seen);
}

static void together(struct pairs *pairs, uint32_t a, int64_t a_time, uint32_t b, int64_t b_time)
{
	struct pair *pair = a == b ? NULL : pair_of(pairs, a, b);

	if (!pair)
		return;
	if (!pair->samples)
		pair->samples = calloc(1, sizeof(*pair->samples));
	if (!pair->samples)
		return;
	if (pair->first == a)
		xm_samples_add(pair->samples, a_time, b_time - a_time);
	else
		xm_samples_add(pair->samples, b_time, a_time - b_time);
}

void xm_clocks_together(struct xm_clocks *clocks, uint32_t a, int64_t a_time, uint32_t b, int64_t b_time)
{
	together(&clocks->of_inputs, a, a_time, b, b_time);
}

/* Can the two clocks be the same? */
static bool agree(const struct pair *pair)
{
	for (uint32_t i = 0; i < pair->uppers.count; i++)
		if (pair->uppers.points[i].y < 0)
			return false;
	for (uint32_t i = 0; i < pair->lowers.count; i++)
		if (pair->lowers.points[i].y > 0)
			return false;
	return true;
}

/* Gives inputs their clocks: one for each host; one for each rank (or input) of a host whose inputs contradict each other. */
static void share(struct xm_clocks *clocks, struct xm_merge *merge)
{
	struct xm_map names, broken;
	char key[300];

	xm_map_init(&names, UINT32_MAX - 1, UINT32_MAX);
	xm_map_init(&broken, UINT32_MAX - 1, UINT32_MAX);
	for (uint32_t i = 0; i < clocks->of_inputs.map.count && i < clocks->of_inputs.room; i++) {
		const struct pair *pair = &clocks->of_inputs.all[i];
		const char *host = merge->inputs[pair->first].host;

		if (!strcmp(host, merge->inputs[pair->second].host) && !agree(pair))
			(void)xm_map_add(&broken, host, strlen(host));
	}
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = merge->order[i];
		bool own = !input->host[0] || xm_map_find(&broken, input->host, strlen(input->host)) != XM_NONE;

		if (own && input->rank >= 0 && input->host[0])
			(void)snprintf(key, sizeof(key), "%s %lld", input->host, (long long)input->rank);
		else if (own)
			(void)snprintf(key, sizeof(key), " %u", i);
		else
			(void)snprintf(key, sizeof(key), "%s", input->host);
		input->clock = xm_map_add(&names, key, strlen(key));
		if (input->clock == XM_NONE)
			input->clock = 0;
	}
	clocks->count = names.count;
	xm_map_free(&names);
	xm_map_free(&broken);
}

/* Bounds between inputs become bounds between their clocks. */
static void collect(struct xm_clocks *clocks, struct xm_merge *merge)
{
	for (uint32_t i = 0; i < clocks->of_inputs.map.count && i < clocks->of_inputs.room; i++) {
		const struct pair *pair = &clocks->of_inputs.all[i];
		uint32_t first = merge->inputs[pair->first].clock, second = merge->inputs[pair->second].clock;

		for (uint32_t k = 0; k < pair->uppers.count; k++) {
			struct xm_point p = pair->uppers.points[k];

			message(&clocks->of_clocks, first, p.x, second, p.x + p.y);
		}
		for (uint32_t k = 0; k < pair->lowers.count; k++) {
			struct xm_point p = pair->lowers.points[k];

			message(&clocks->of_clocks, second, p.x + p.y, first, p.x);
		}
		for (uint32_t k = 0; pair->samples && k < pair->samples->count; k++) {
			struct xm_point p = pair->samples->points[k];

			together(&clocks->of_clocks, first, p.x, second, p.x + p.y);
		}
	}
	for (uint32_t i = 0; i < clocks->of_clocks.map.count && i < clocks->of_clocks.room; i++) {
		struct pair *pair = &clocks->of_clocks.all[i];

		xm_hull_tidy(&pair->uppers, true);
		xm_hull_tidy(&pair->lowers, false);
		pair->has_line = xm_hull_line(&pair->uppers, &pair->lowers, pair->samples, &pair->line);
	}
}

/* The tightest bounds between a clock that is tied and one that is not; NULL: no more. */
static const struct pair *tightest(const struct xm_clocks *c)
{
	const struct pair *best = NULL;

	for (uint32_t i = 0; i < c->of_clocks.map.count; i++) {
		const struct pair *pair = &c->of_clocks.all[i];

		if (pair->has_line && c->all[pair->first].is_tied != c->all[pair->second].is_tied &&
		    (!best || fabsl(pair->line.gap) < fabsl(best->line.gap)))
			best = pair;
	}
	return best;
}

/* Ties clocks to the first; those that nothing ties to it, to the first among themselves. */
static void tie(struct xm_clocks *c)
{
	for (uint32_t root = 0; root < c->count; root++) {
		const struct pair *pair;

		if (c->all[root].is_tied)
			continue;
		c->all[root].is_tied = true;
		c->all[root].root = root;
		while ((pair = tightest(c))) {
			uint32_t known = c->all[pair->first].is_tied ? pair->first : pair->second;
			uint32_t other = known == pair->first ? pair->second : pair->first;
			long double slope = pair->line.slope;
			/* how far the second is ahead when the first shows c->start */
			long double at = pair->line.at + slope * (long double)(c->start - pair->line.from);

			if (known == pair->first) {
				c->drift[other] = (1 + c->drift[known]) / (1 + slope) - 1;
				c->offset[other] = c->offset[known] - at * (1 + c->drift[other]);
			} else {
				c->drift[other] = (1 + c->drift[known]) * (1 + slope) - 1;
				c->offset[other] = c->offset[known] + at * (1 + c->drift[known]);
			}
			c->error[other] = pair->line.error < 0 || c->error[known] < 0 ? -1 : c->error[known] + pair->line.error;
			c->all[other].is_tied = true;
			c->all[other].is_sampled = pair->samples;
			c->all[other].root = root;
		}
	}
}

/*
 * With the drifts fixed, each direction of each pair says: offset of the receiver's clock >= the sender's + weight. Longest paths from the first clock
 * give the lowest offsets that keep all of this, longest paths to it the highest; the middle of the two keeps it as well.
 */
static long double weight(const struct xm_clocks *c, const struct pair *pair, bool forwards)
{
	const struct xm_hull *hull = forwards ? &pair->uppers : &pair->lowers;
	long double most = -INFINITY;

	for (uint32_t i = 0; i < hull->count; i++) {
		long double x = (long double)(hull->points[i].x - c->start), y = (long double)hull->points[i].y, w;

		/* x by the first clock, x + y by the second */
		w = (1 + c->drift[pair->first]) * x - (1 + c->drift[pair->second]) * (x + y);
		w = forwards ? w : -w;
		most = w > most ? w : most;
	}
	return most;
}

static bool relax(struct xm_clocks *c, const long double *weights, long double slack, bool to_first, long double *best)
{
	uint32_t pairs = c->of_clocks.map.count;
	bool changed = true;

	for (uint32_t i = 0; i < c->count; i++)
		best[i] = c->all[i].root == i ? 0 : -INFINITY;
	for (uint32_t round = 0; changed && round <= c->count; round++) {
		changed = false;
		for (uint32_t i = 0; i < 2 * pairs; i++) {
			const struct pair *pair = &c->of_clocks.all[i / 2];
			uint32_t from = (i & 1) == to_first ? pair->first : pair->second;
			uint32_t to = from == pair->first ? pair->second : pair->first;
			long double far = best[from] + weights[i] - slack;

			if (weights[i] > -INFINITY && far > best[to] + 1e-3L) {
				best[to] = far;
				changed = true;
			}
		}
	}
	return !changed;
}

/*
 * Offsets that were chosen one by one move until all bounds are kept together: later, which never breaks an upper bound; or earlier, what
 * has upper bounds alone.
 */
static void settle(struct xm_clocks *c, const long double *weights, long double slack)
{
	bool changed = true;

	for (uint32_t round = 0; changed && round <= c->count; round++) {
		changed = false;
		for (uint32_t i = 0; i < 2 * c->of_clocks.map.count; i++) {
			const struct pair *pair = &c->of_clocks.all[i / 2];
			uint32_t from = i & 1 ? pair->second : pair->first, to = i & 1 ? pair->first : pair->second;
			long double lacking = c->offset[from] + weights[i] - slack - c->offset[to];

			if (weights[i] == -INFINITY || lacking <= 1e-3L)
				continue;
			changed = true;
			if (c->high[to] > -INFINITY && c->low[from] == -INFINITY)
				c->offset[from] -= lacking + 1;
			else
				c->offset[to] += lacking;
		}
	}
}

static void balance(struct xm_clocks *c)
{
	uint32_t pairs = c->of_clocks.map.count;
	long double *weights = calloc(2 * (size_t)pairs + 1, sizeof(*weights)), slack = 0, low = 0, high = 1;
	long double *tied = calloc(c->count + 1, sizeof(*tied));

	if (!weights || !tied) {
		free(weights);
		free(tied);
		return;
	}
	for (uint32_t i = 0; i < pairs; i++) {
		weights[2 * i] = weight(c, &c->of_clocks.all[i], true);
		weights[2 * i + 1] = weight(c, &c->of_clocks.all[i], false);
	}
	if (!relax(c, weights, 0, false, c->low)) {
		/* clocks that did not run evenly: break all bounds alike, and as little as can be */
		while (!relax(c, weights, high, false, c->low) && high < 1e18L)
			high *= 2;
		for (int i = 0; i < 60; i++) {
			long double middle = (low + high) / 2;

			if (relax(c, weights, middle, false, c->low))
				high = middle;
			else
				low = middle;
		}
		slack = high;
		(void)relax(c, weights, slack, false, c->low);
	}
	(void)relax(c, weights, slack, true, c->high);
	for (uint32_t i = 0; i < c->count; i++) {
		long double chosen = c->offset[i];

		c->all[i].violated = (uint64_t)ceill(slack);
		if (c->all[i].root == i)
			continue;
		if (c->low[i] > -INFINITY && c->high[i] > -INFINITY && c->all[i].is_sampled)
			chosen = chosen < c->low[i] ? c->low[i] : chosen > -c->high[i] ? -c->high[i] : chosen;
		else if (c->low[i] > -INFINITY && c->high[i] > -INFINITY)
			chosen = (c->low[i] - c->high[i]) / 2;
		else
			c->error[i] = -1;
		tied[i] = c->offset[i];
		c->offset[i] = chosen;
	}
	settle(c, weights, slack);
	for (uint32_t i = 0; i < c->count; i++)
		if (c->error[i] >= 0 && c->all[i].root != i)
			c->error[i] += fabsl(c->offset[i] - tied[i]);
	free(tied);
	free(weights);
}

int xm_clocks_solve(struct xm_clocks *c, struct xm_merge *merge, bool sync)
{
	size_t count;

	for (uint32_t i = 0; i < c->of_inputs.map.count && i < c->of_inputs.room; i++) {
		xm_hull_tidy(&c->of_inputs.all[i].uppers, true);
		xm_hull_tidy(&c->of_inputs.all[i].lowers, false);
	}
	share(c, merge);
	count = c->count;
	c->offset = calloc(5 * count + 5, sizeof(*c->offset));
	if (!c->all || !c->offset)
		return -ENOMEM;
	c->drift = c->offset + count;
	c->error = c->drift + count;
	c->low = c->error + count;
	c->high = c->low + count;
	c->start = INT64_MAX;
	for (uint32_t i = 0; i < merge->count; i++)
		if (merge->inputs[i].first <= merge->inputs[i].last && merge->inputs[i].first < c->start)
			c->start = merge->inputs[i].first;
	for (uint32_t i = 0; i < count; i++) {
		c->all[i].start = c->start;
		c->all[i].error = XM_NO_TIME;
	}
	if (!sync || c->start == INT64_MAX || !count)
		return 0;
	collect(c, merge);
	tie(c);
	balance(c);
	for (uint32_t i = 0; i < count; i++) {
		if (c->all[i].root == i) {
			c->all[i].error = i ? XM_NO_TIME : 0;
			continue;
		}
		c->all[i].offset = (int64_t)floorl(c->offset[i] + 0.5L);
		c->all[i].drift = (double)c->drift[i];
		if (c->error[i] >= 0)
			c->all[i].error = (int64_t)ceill(c->error[i]) + 1;
	}
	return 0;
}

const struct xm_clock *xm_clocks_of(const struct xm_clocks *clocks, const struct xm_input *input)
{
	return &clocks->all[input->clock];
}

static void free_pairs(struct pairs *pairs)
{
	for (uint32_t i = 0; i < pairs->room; i++) {
		free(pairs->all[i].uppers.points);
		free(pairs->all[i].lowers.points);
		free(pairs->all[i].samples);
	}
	free(pairs->all);
	xm_map_free(&pairs->map);
}

void xm_clocks_free(struct xm_clocks *clocks)
{
	if (!clocks)
		return;
	free_pairs(&clocks->of_inputs);
	free_pairs(&clocks->of_clocks);
	free(clocks->all);
	free(clocks->offset);
	free(clocks);
}
