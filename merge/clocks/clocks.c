#include "clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "mpi_call.h"
#include "pairs.h"

#define ROUNDING 2 /* ns: what times that are whole ns can break of a bound */

struct xm_clocks {
	struct xm_pairs of_inputs, of_clocks;
	uint32_t count;
	struct xm_clock *all;
	/*
	 * solving: true time = t + path(t - start) + offset, with path(0) = 0; low, high: bounds on
	 * the offset with this path
	 */
	struct xm_path *paths;
	long double *offset, *error, *low, *high;
	int64_t start;
};

struct xm_clocks *xm_clocks_create(uint32_t inputs)
{
	struct xm_clocks *clocks = calloc(1, sizeof(*clocks));

	if (!clocks)
		return NULL;
	clocks->all = calloc(inputs + 1, sizeof(*clocks->all));
	xm_pairs_init(&clocks->of_inputs);
	xm_pairs_init(&clocks->of_clocks);
	return clocks;
}

void xm_clocks_message(struct xm_clocks *clocks, const struct xm_function *function,
		       const struct xm_input *from, int64_t sent, const struct xm_input *to,
		       int64_t seen)
{
	struct xm_pair *pair =
		xm_pairs_message(&clocks->of_inputs, from->index, sent, to->index, seen);
	uint32_t number = xm_function_number(function);

	if (!pair)
		return;
	pair->calls[number / 64] |= 1ull << number % 64;
	if (sent - seen > pair->proof.early)
		pair->proof = (struct xm_proof){ function, from, to, sent, sent - seen };
}

void xm_clocks_together(struct xm_clocks *clocks, uint32_t a, int64_t a_time, uint32_t b,
			int64_t b_time)
{
	xm_pairs_together(&clocks->of_inputs, a, a_time, b, b_time);
}

/*
 * Is it certain that the two have not one clock? What each says of its own error can be both; ranks
 * of one run have one error, if any, and times that are whole ns.
 */
static bool is_proven(const struct xm_merge *merge, const struct xm_pair *pair)
{
	const struct xm_input *first = &merge->inputs[pair->first],
			      *second = &merge->inputs[pair->second];
	int64_t error = ROUNDING;

	if (strcmp(first->run, second->run))
		error += (first->clock_error > 0 ? first->clock_error : 0) +
			 (second->clock_error > 0 ? second->clock_error : 0);
	return pair->proof.early > error;
}

/* By what a clock is tied to others, and why it is not that of its host. */
static void note_evidence(struct xm_clocks *clocks, const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < clocks->of_inputs.map.count && i < clocks->of_inputs.room; i++) {
		const struct xm_pair *pair = &clocks->of_inputs.all[i];
		const struct xm_input *ends[2] = { &merge->inputs[pair->first],
						   &merge->inputs[pair->second] };

		if (ends[0]->clock == ends[1]->clock)
			continue;
		for (int k = 0; k < 2; k++) {
			struct xm_clock *clock = &clocks->all[ends[k]->clock];

			clock->calls[0] |= pair->calls[0];
			clock->calls[1] |= pair->calls[1];
			if (ends[0]->host[0] && !strcmp(ends[0]->host, ends[1]->host) &&
			    pair->proof.early > clock->proof.early)
				clock->proof = pair->proof;
		}
	}
}

/*
 * Gives inputs their clocks: one for each host; one for each rank (or input) of a host whose inputs
 * contradict each other.
 */
static void share(struct xm_clocks *clocks, struct xm_merge *merge)
{
	struct xf_map names, broken;
	char key[300];

	xf_map_init(&names, UINT32_MAX - 1, UINT32_MAX);
	xf_map_init(&broken, UINT32_MAX - 1, UINT32_MAX);
	for (uint32_t i = 0; i < clocks->of_inputs.map.count && i < clocks->of_inputs.room; i++) {
		const struct xm_pair *pair = &clocks->of_inputs.all[i];
		const char *host = merge->inputs[pair->first].host;

		if (!strcmp(host, merge->inputs[pair->second].host) && is_proven(merge, pair))
			(void)xf_map_add(&broken, host, strlen(host));
	}
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = merge->order[i];
		bool own = !input->host[0] ||
			   xf_map_find(&broken, input->host, strlen(input->host)) != XF_NONE;

		if (own && input->rank >= 0 && input->host[0])
			(void)snprintf(key, sizeof(key), "%s %lld", input->host,
				       (long long)input->rank);
		else if (own)
			(void)snprintf(key, sizeof(key), " %u", i);
		else
			(void)snprintf(key, sizeof(key), "%s", input->host);
		input->clock = xf_map_add(&names, key, strlen(key));
		if (input->clock == XF_NONE)
			input->clock = 0;
	}
	clocks->count = names.count;
	note_evidence(clocks, merge);
	xf_map_free(&names);
	xf_map_free(&broken);
}

/* The bounds of part `part` of two inputs bound their clocks. */
static void collect_part(struct xm_clocks *clocks, const struct xm_pair *pair, uint32_t first,
			 uint32_t second, uint32_t part)
{
	for (int upper = 0; upper < 2; upper++) {
		const struct xm_hull *hull = &pair->bounds.parts[part][upper];

		for (uint32_t k = 0; k < hull->count; k++) {
			struct xm_point p = hull->points[k];

			if (upper)
				(void)xm_pairs_message(&clocks->of_clocks, first, p.x, second,
						       p.x + p.y);
			else
				(void)xm_pairs_message(&clocks->of_clocks, second, p.x + p.y, first,
						       p.x);
		}
	}
}

static void collect(struct xm_clocks *clocks, struct xm_merge *merge)
{
	for (uint32_t i = 0; i < clocks->of_inputs.map.count && i < clocks->of_inputs.room; i++) {
		const struct xm_pair *pair = &clocks->of_inputs.all[i];
		uint32_t first = merge->inputs[pair->first].clock,
			 second = merge->inputs[pair->second].clock;

		for (uint32_t part = 0; part < pair->bounds.count; part++)
			collect_part(clocks, pair, first, second, part);
		for (uint32_t k = 0; pair->samples && k < pair->samples->count; k++) {
			struct xm_point p = pair->samples->points[k];

			xm_pairs_together(&clocks->of_clocks, first, p.x, second, p.x + p.y);
		}
	}
	for (uint32_t i = 0; i < clocks->of_clocks.map.count && i < clocks->of_clocks.room; i++) {
		struct xm_pair *pair = &clocks->of_clocks.all[i];

		xm_bounds_tidy(&pair->bounds);
		pair->has_line = xm_hull_line(&pair->bounds.whole[1], &pair->bounds.whole[0],
					      pair->samples, &pair->line);
	}
}

/* The tightest bounds between a clock that is tied and one that is not; NULL: no more. */
static struct xm_pair *tightest(const struct xm_clocks *c)
{
	struct xm_pair *best = NULL;

	for (uint32_t i = 0; i < c->of_clocks.map.count; i++) {
		struct xm_pair *pair = &c->of_clocks.all[i];

		if (pair->has_line && c->all[pair->first].is_tied != c->all[pair->second].is_tied &&
		    (!best || fabsl(pair->line.gap) < fabsl(best->line.gap)))
			best = pair;
	}
	return best;
}

/* The time of a clock at which another shows `x`, being ahead by `ahead`. */
static long double before_ahead(const struct xm_path *ahead, long double x)
{
	long double t = x;

	for (int i = 0; i < 60; i++)
		t = x - xm_path_at(ahead, t);
	return t;
}

/*
 * How far the second clock of a pair (which shows `ahead` more) has to be corrected where the first
 * is corrected by `known`; or the first, where the second is. Bends where one of the two does.
 */
static void chain(const struct xm_path *ahead, const struct xm_path *known, bool second,
		  struct xm_path *ret)
{
	uint32_t a = 0, k = 0;

	ret->count = 0;
	while (a < ahead->count || k < known->count) {
		long double xa = a < ahead->count ? ahead->knots[a].x : INFINITY, xk = INFINITY, x,
			    y;

		if (k < known->count)
			xk = second ? known->knots[k].x : before_ahead(ahead, known->knots[k].x);
		x = xa < xk ? xa : xk;
		a += xa <= xk;
		k += xk <= xa;
		y = xm_path_at(ahead, x);
		if (second)
			xm_path_bend(ret, x + y, xm_path_at(known, x) - y);
		else
			xm_path_bend(ret, x, y + xm_path_at(known, x + y));
	}
	ret->before = second ? (known->before - ahead->before) / (1 + ahead->before)
			     : ahead->before + known->before * (1 + ahead->before);
	ret->after = second ? (known->after - ahead->after) / (1 + ahead->after)
			    : ahead->after + known->after * (1 + ahead->after);
	xm_path_tidy(ret);
}

static void tie_one(struct xm_clocks *c, struct xm_pair *pair)
{
	uint32_t known = c->all[pair->first].is_tied ? pair->first : pair->second;
	uint32_t other = known == pair->first ? pair->second : pair->first;
	struct xm_path corrected = c->paths[known], ahead, *path = &c->paths[other];

	for (uint32_t i = 0; i < corrected.count; i++)
		corrected.knots[i].y += c->offset[known];
	if (!xm_bounds_path(&pair->bounds, pair->samples, c->start, &pair->line, &ahead) &&
	    pair->line.error >= 0)
		pair->line.error =
			fmaxl(pair->line.error, xm_bounds_error(&pair->bounds, &ahead, c->start));
	c->all[other].unseen =
		c->all[known].unseen + xm_bounds_unseen(&pair->bounds, &ahead, c->start);
	chain(&ahead, &corrected, other == pair->second, path);
	c->offset[other] = xm_path_at(path, 0);
	for (uint32_t i = 0; i < path->count; i++)
		path->knots[i].y -= c->offset[other];
	c->error[other] = pair->line.error < 0 || c->error[known] < 0
				  ? -1
				  : c->error[known] + pair->line.error;
	c->all[other].is_tied = true;
	c->all[other].is_sampled = pair->samples;
	c->all[other].root = c->all[known].root;
}

/* Ties clocks to the first; those that nothing ties to it, to the first among themselves. */
static void tie(struct xm_clocks *c)
{
	for (uint32_t root = 0; root < c->count; root++) {
		struct xm_pair *pair;

		if (c->all[root].is_tied)
			continue;
		c->all[root].is_tied = true;
		c->all[root].root = root;
		xm_path_straight(&c->paths[root], 0, 0, 0);
		while ((pair = tightest(c)))
			tie_one(c, pair);
	}
}

/*
 * With the paths fixed, each direction of each pair says: offset of the receiver's clock >= the
 * sender's + weight. Longest paths from the first clock give the lowest offsets that keep all of
 * this, longest paths to it the highest; the middle of the two keeps it as well.
 */
static long double weight(const struct xm_clocks *c, const struct xm_pair *pair, bool forwards)
{
	long double most = -INFINITY;

	for (uint32_t part = 0; part < pair->bounds.count; part++) {
		const struct xm_hull *hull = &pair->bounds.parts[part][forwards];

		for (uint32_t i = 0; i < hull->count; i++) {
			long double x = (long double)(hull->points[i].x - c->start),
				    y = (long double)hull->points[i].y, w;

			/* x by the first clock, x + y by the second */
			w = xm_path_at(&c->paths[pair->first], x) -
			    xm_path_at(&c->paths[pair->second], x + y) - y;
			w = (forwards ? w : -w) + ROUNDING;
			most = w > most ? w : most;
		}
	}
	return most;
}

static bool relax(struct xm_clocks *c, const long double *weights, long double slack, bool to_first,
		  long double *best)
{
	uint32_t pairs = c->of_clocks.map.count;
	bool changed = true;

	for (uint32_t i = 0; i < c->count; i++)
		best[i] = c->all[i].root == i ? 0 : -INFINITY;
	for (uint32_t round = 0; changed && round <= c->count; round++) {
		changed = false;
		for (uint32_t i = 0; i < 2 * pairs; i++) {
			const struct xm_pair *pair = &c->of_clocks.all[i / 2];
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
 * Offsets that were chosen one by one move until all bounds are kept together: later, which never
 * breaks an upper bound; or earlier, what has upper bounds alone.
 */
static void settle(struct xm_clocks *c, const long double *weights, long double slack)
{
	bool changed = true;

	for (uint32_t round = 0; changed && round <= c->count; round++) {
		changed = false;
		for (uint32_t i = 0; i < 2 * c->of_clocks.map.count; i++) {
			const struct xm_pair *pair = &c->of_clocks.all[i / 2];
			uint32_t from = i & 1 ? pair->second : pair->first,
				 to = i & 1 ? pair->first : pair->second;
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
	long double *weights = calloc(2 * (size_t)pairs + 1, sizeof(*weights)), slack = 0, low = 0,
		    high = 1;
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
		/*
		 * clocks that did not run evenly: break all bounds alike, and as little as can be
		 */
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

		c->all[i].violated = slack > ROUNDING ? (uint64_t)ceill(slack) : 0;
		if (c->all[i].root == i)
			continue;
		if (c->low[i] > -INFINITY && c->high[i] > -INFINITY && c->all[i].is_sampled)
			chosen = chosen < c->low[i]	? c->low[i]
				 : chosen > -c->high[i] ? -c->high[i]
							: chosen;
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

double xm_clock_change(const struct xm_clock *clock)
{
	double least = clock->drift, most = clock->drift;

	for (uint32_t i = 0; i < clock->piece_count; i++) {
		least = fmin(least, clock->pieces[i].drift);
		most = fmax(most, clock->pieces[i].drift);
	}
	return most - least;
}

/* The path of a clock, as it is used. 0 or -ENOMEM. */
static int publish(struct xm_clock *clock, const struct xm_path *path, long double offset)
{
	clock->offset = (int64_t)floorl(offset + xm_path_at(path, 0) + 0.5L);
	clock->drift = (double)path->before;
	if (path->count == 1 && path->before == path->after)
		return 0;
	/* the first line is that in front of all knots, so that it goes through the start, too */
	clock->offset =
		(int64_t)floorl(offset + path->knots[0].y - path->before * path->knots[0].x + 0.5L);
	clock->pieces = calloc(path->count, sizeof(*clock->pieces));
	if (!clock->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < path->count; i++) {
		long double x = floorl(path->knots[i].x), slope = path->after;

		if (i + 1 < path->count)
			slope = (path->knots[i + 1].y - path->knots[i].y) /
				(path->knots[i + 1].x - path->knots[i].x);
		clock->pieces[i] =
			(struct xm_piece){ clock->start + (int64_t)x,
					   (int64_t)floorl(offset + xm_path_at(path, x) + 0.5L),
					   (double)slope };
	}
	clock->piece_count = path->count;
	clock->change = xm_clock_change(clock) + clock->unseen;
	return 0;
}

static int64_t first_time(const struct xm_merge *merge)
{
	int64_t first = INT64_MAX;

	for (uint32_t i = 0; i < merge->count; i++)
		if (merge->inputs[i].first <= merge->inputs[i].last &&
		    merge->inputs[i].first < first)
			first = merge->inputs[i].first;
	return first;
}

int xm_clocks_solve(struct xm_clocks *c, struct xm_merge *merge, bool sync)
{
	size_t count;

	for (uint32_t i = 0; i < c->of_inputs.map.count && i < c->of_inputs.room; i++)
		xm_bounds_tidy(&c->of_inputs.all[i].bounds);
	share(c, merge);
	count = c->count;
	c->offset = calloc(4 * count + 4, sizeof(*c->offset));
	c->paths = calloc(count + 1, sizeof(*c->paths));
	if (!c->all || !c->offset || !c->paths)
		return -ENOMEM;
	c->error = c->offset + count;
	c->low = c->error + count;
	c->high = c->low + count;
	c->start = first_time(merge);
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
		if (publish(&c->all[i], &c->paths[i], c->offset[i]) < 0)
			return -ENOMEM;
		if (c->error[i] >= 0)
			c->all[i].error = (int64_t)ceill(c->error[i]) + 1;
	}
	return 0;
}

const struct xm_clock *xm_clocks_of(const struct xm_clocks *clocks, const struct xm_input *input)
{
	return &clocks->all[input->clock];
}

struct xm_clock *xm_clock_at(struct xm_clocks *clocks, uint32_t index)
{
	return &clocks->all[index];
}

uint32_t xm_clocks_count(const struct xm_clocks *clocks)
{
	return clocks->count;
}

uint32_t xm_clocks_pairs(const struct xm_clocks *clocks)
{
	return clocks->of_clocks.map.count;
}

void xm_clocks_free(struct xm_clocks *clocks)
{
	if (!clocks)
		return;
	xm_pairs_free(&clocks->of_inputs);
	xm_pairs_free(&clocks->of_clocks);
	for (uint32_t i = 0; i < clocks->count; i++)
		free(clocks->all[i].pieces);
	free(clocks->all);
	free(clocks->paths);
	free(clocks->offset);
	free(clocks);
}
