#include "mend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MAX_CELLS     (1u << 20)
#define MAX_KNOTS     (4u << 20) /* of all clocks together */
#define FIRST_PARTS   1024u
#define FEWEST_PARTS  64u
#define DIVIDED	      8	   /* parts that one becomes */
#define SHORTEST      4096 /* ns */
#define MOST_LOOKS    6u
#define MOST_SWEEPS   2000u
#define FEWEST_SWEEPS 100u
#define ENOUGH	      200000000u /* cells looked at in all sweeps */
/* ns: what arrives so much later than it was sent is kept by no change that is made here */
#define FARTHEST     10000000
#define MARGIN	     4.0  /* ns: for times that are whole ns */
#define STEEPEST     2e-3 /* as two clocks are slewed, each way */
#define NEARLY_STILL 0.5  /* as they are set */

/*
 * Of the messages of two clocks that were sent in one part and seen in another (mostly the same):
 * the one that arrives earliest after it was sent.
 */
struct cell {
	uint32_t from, to;   /* clocks */
	uint32_t sent, seen; /* parts */
};

struct xm_mend {
	struct xm_clocks *clocks;
	uint32_t clock_count, looks;
	int64_t *times; /* where parts begin, and the last one's end */
	uint32_t parts;
	bool *bad; /* of each part: something in it is still too early */
	bool is_ready;
	double worst;	   /* at the last look */
	struct xf_map map; /* of cells */
	/* of each cell: ns by which it is too early; negative: it arrives later than it was sent */
	double *early;
	uint32_t early_room;
	double *moved; /* [clock][part]: ns at the part's begin */
	bool *is_used; /* alike: there are messages in the part that begins or ends there */
	/* those of all clocks in their order; the first one of each clock, and their number */
	uint32_t *used, *first;
};

static double *knots_of(const struct xm_mend *mend, uint32_t clock)
{
	return mend->moved + (size_t)clock * (mend->parts + 1);
}

/* ---- parts ---- */

static uint32_t part_of(const struct xm_mend *mend, int64_t time)
{
	uint32_t low = 0, high = mend->parts;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (mend->times[middle] <= time)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void forget(struct xm_mend *mend)
{
	free(mend->moved);
	free(mend->is_used);
	free(mend->used);
	free(mend->bad);
	xf_map_free(&mend->map);
}

/* For parts that are new. */
static bool restart(struct xm_mend *mend)
{
	size_t knots = (size_t)mend->clock_count * (mend->parts + 1);

	forget(mend);
	mend->moved = calloc(knots, sizeof(*mend->moved));
	mend->is_used = calloc(knots, sizeof(*mend->is_used));
	mend->used = calloc(knots, sizeof(*mend->used));
	mend->bad = calloc(mend->parts, sizeof(*mend->bad));
	xf_map_init(&mend->map, MAX_CELLS, (size_t)MAX_CELLS * sizeof(struct cell));
	mend->is_ready = mend->moved && mend->is_used && mend->used && mend->bad;
	return mend->is_ready;
}

/* Divides the parts that are bad; false: there are none, or they are short enough, or too many. */
static bool divide(struct xm_mend *mend)
{
	uint32_t parts = 0, next = 0;
	int64_t *times;

	for (uint32_t i = 0; i < mend->parts; i++) {
		mend->bad[i] = mend->bad[i] && mend->times[i + 1] - mend->times[i] > SHORTEST;
		parts += mend->bad[i] ? DIVIDED : 1;
	}
	if (parts == mend->parts || (uint64_t)(parts + 1) * mend->clock_count > MAX_KNOTS)
		return false;
	times = malloc((parts + 1) * sizeof(*times));
	if (!times)
		return false;
	for (uint32_t i = 0; i < mend->parts; i++) {
		int64_t length = mend->times[i + 1] - mend->times[i];

		for (int k = 0; k < (mend->bad[i] ? DIVIDED : 1); k++)
			times[next++] = mend->times[i] + length / DIVIDED * k;
	}
	times[parts] = mend->times[mend->parts];
	free(mend->times);
	mend->times = times;
	mend->parts = parts;
	return restart(mend);
}

struct xm_mend *xm_mend_create(struct xm_clocks *clocks, const struct xm_merge *merge)
{
	struct xm_mend *mend;
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint32_t parts = FIRST_PARTS;
	bool is_even = true;

	for (uint32_t i = 0; i < xm_clocks_count(clocks); i++)
		is_even &= !xm_clock_at(clocks, i)->piece_count &&
			   !xm_clock_at(clocks, i)->violated;
	if (is_even)
		return NULL;
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = &merge->inputs[i];
		const struct xm_clock *clock = xm_clocks_of(clocks, input);

		if (input->first > input->last || !input->has_base)
			continue;
		first = xm_true_time(clock, input->first) < first
				? xm_true_time(clock, input->first)
				: first;
		last = xm_true_time(clock, input->last) > last ? xm_true_time(clock, input->last)
							       : last;
	}
	mend = calloc(1, sizeof(*mend));
	if (!mend || first > last || last - first < FEWEST_PARTS)
		goto fail;
	mend->clocks = clocks;
	mend->clock_count = xm_clocks_count(clocks);
	while (parts > FEWEST_PARTS && ((uint64_t)parts * xm_clocks_pairs(clocks) * 4 > MAX_CELLS ||
					(uint64_t)parts * mend->clock_count * 8 > MAX_KNOTS ||
					(last - first) / parts < SHORTEST))
		parts /= 2;
	mend->parts = parts;
	mend->times = malloc((parts + 1) * sizeof(*mend->times));
	mend->first = calloc(mend->clock_count + 1, sizeof(*mend->first));
	if (!mend->times || !mend->first || !restart(mend))
		goto fail;
	for (uint32_t i = 0; i <= parts; i++)
		mend->times[i] = first + (int64_t)(((__int128)(last - first) + 1) * i / parts);
	return mend;
fail:
	xm_mend_free(mend);
	return NULL;
}

static void use(struct xm_mend *mend, uint32_t clock, uint32_t part)
{
	bool *knots = mend->is_used + (size_t)clock * (mend->parts + 1);

	knots[part] = knots[part + 1] = true;
}

void xm_mend_message(struct xm_mend *mend, uint32_t from, int64_t sent, uint32_t to, int64_t seen)
{
	struct cell key = { from, to, 0, 0 };
	uint32_t known = mend->map.count, index;
	double early = (double)(sent - seen);

	if (from == to || early < -FARTHEST)
		return;
	key.sent = part_of(mend, sent);
	key.seen = part_of(mend, seen);
	index = xf_map_add(&mend->map, &key, sizeof(key));
	if (index == XF_NONE)
		return; /* one that may stay too early, and will be counted then */
	if (!xf_room_for(&mend->early, &mend->early_room, index, sizeof(*mend->early)))
		return;
	if (index != known && early <= mend->early[index])
		return;
	mend->early[index] = early;
	use(mend, from, key.sent);
	use(mend, to, key.seen);
}

/* ---- moving clocks ---- */

/*
 * Moves the sender's clock back and the receiver's ahead where they must be. By how much it was too
 * early.
 */
static double keep(struct xm_mend *mend, uint32_t index)
{
	size_t length;
	const struct cell *cell = xf_map_key(&mend->map, index, &length);
	double *from = knots_of(mend, cell->from) + cell->sent,
	       *to = knots_of(mend, cell->to) + cell->seen, lacking;

	from += from[1] > from[0];
	to += to[1] < to[0];
	lacking = *from + mend->early[index] + MARGIN - *to;
	if (lacking <= 0)
		return 0;
	/* and a bit more, so that it comes to an end */
	if (xm_clock_at(mend->clocks, cell->from)->root == cell->from)
		*to += lacking + 1;
	else if (xm_clock_at(mend->clocks, cell->to)->root == cell->to)
		*from -= lacking + 1;
	else
		*from -= lacking / 2 + 1, *to += lacking / 2 + 1;
	return lacking;
}

/* No clock's pace changes by more than it can from one knot to another. */
static void smooth(const struct xm_mend *mend, double *knots, uint32_t a, uint32_t b,
		   double steepest)
{
	double most = steepest * (double)(mend->times[b] - mend->times[a]),
	       rise = knots[b] - knots[a];
	double beyond = rise > most ? rise - most : rise < -most ? rise + most : 0;

	knots[a] += beyond / 2;
	knots[b] -= beyond / 2;
}

/* The largest amount by which something was too early before. */
static double sweep(struct xm_mend *mend, bool backwards, double steepest)
{
	uint32_t count = mend->map.count < mend->early_room ? mend->map.count : mend->early_room;
	double worst = 0;

	for (uint32_t i = 0; i < count; i++)
		worst = fmax(worst, keep(mend, backwards ? count - 1 - i : i));
	for (uint32_t clock = 0; clock < mend->clock_count; clock++) {
		const uint32_t *used = mend->used + mend->first[clock];
		uint32_t pairs = mend->first[clock + 1] - mend->first[clock];

		if (xm_clock_at(mend->clocks, clock)->root == clock)
			continue;
		for (uint32_t i = 0; i + 1 < pairs; i++) {
			uint32_t k = backwards ? pairs - 2 - i : i;

			smooth(mend, knots_of(mend, clock), used[k], used[k + 1], steepest);
		}
	}
	return worst;
}

/* Finds the knots at messages: at the others a clock moves as it must between those. */
static void find_used(struct xm_mend *mend)
{
	uint32_t count = 0;

	for (uint32_t clock = 0; clock < mend->clock_count; clock++) {
		const bool *is_used = mend->is_used + (size_t)clock * (mend->parts + 1);

		mend->first[clock] = count;
		for (uint32_t k = 0; k <= mend->parts; k++)
			if (is_used[k])
				mend->used[count++] = k;
	}
	mend->first[mend->clock_count] = count;
}

/* Marks the parts in which something is still too early; how much, at worst. */
static double mark(struct xm_mend *mend)
{
	double worst = 0;

	for (uint32_t i = 0; i < mend->map.count && i < mend->early_room; i++) {
		size_t length;
		const struct cell *cell = xf_map_key(&mend->map, i, &length);
		double *from = knots_of(mend, cell->from) + cell->sent,
		       *to = knots_of(mend, cell->to) + cell->seen;
		double lacking = fmax(from[0], from[1]) + mend->early[i] - fmin(to[0], to[1]);

		if (lacking <= 0)
			continue;
		worst = fmax(worst, lacking);
		mend->bad[cell->sent] = mend->bad[cell->seen] = true;
	}
	return worst;
}

/* ---- the clocks as they are then ---- */

/*
 * Between knots that are used, and on both sides of them, a clock moves evenly; and never so that
 * it goes backwards.
 */
static void fill(const struct xm_mend *mend, uint32_t clock)
{
	const uint32_t *used = mend->used + mend->first[clock],
		       count = mend->first[clock + 1] - mend->first[clock];
	double *knots = knots_of(mend, clock);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t a = i ? used[i - 1] : 0, b = used[i];
		double most = NEARLY_STILL * (double)(mend->times[b] - mend->times[a]), rise;

		if (!i)
			knots[0] = knots[b];
		rise = knots[b] - knots[a];
		if (i && fabs(rise) > most)
			knots[b] = knots[a] + (rise > 0 ? most : -most);
		for (uint32_t k = a + 1; k < b; k++)
			knots[k] = knots[a] + (knots[b] - knots[a]) *
						      (double)(mend->times[k] - mend->times[a]) /
						      (double)(mend->times[b] - mend->times[a]);
	}
	for (uint32_t k = count ? used[count - 1] + 1 : 0; count && k <= mend->parts; k++)
		knots[k] = knots[k - 1];
}

/* How far the true time moves. */
static double moved_at(const struct xm_mend *mend, const double *knots, int64_t time)
{
	uint32_t part = part_of(mend, time);
	int64_t from = mend->times[part], length = mend->times[part + 1] - from;
	double at = time < from		   ? 0
		    : time - from > length ? 1
					   : (double)(time - from) / (double)length;

	return knots[part] + (knots[part + 1] - knots[part]) * at;
}

/* The clock's own time at which it is this true time. */
static int64_t own_time(const struct xm_clock *clock, int64_t time)
{
	int64_t low = INT64_MIN / 4, high = INT64_MAX / 4;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (xm_true_time(clock, middle) < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_time(const void *a, const void *b)
{
	const struct xm_piece *p = a, *q = b;

	return p->from < q->from ? -1 : p->from > q->from;
}

/* Bends a clock where its pieces begin, and where it was moved. 0 or -ENOMEM. */
static int bend(const struct xm_mend *mend, uint32_t index)
{
	struct xm_clock *clock = xm_clock_at(mend->clocks, index);
	const uint32_t *used = mend->used + mend->first[index],
		       used_count = mend->first[index + 1] - mend->first[index];
	struct xm_piece *pieces = malloc((used_count + clock->piece_count + 1) * sizeof(*pieces));
	double drift = clock->piece_count ? clock->pieces[clock->piece_count - 1].drift
					  : clock->drift,
	       most = 0;
	const double *knots = knots_of(mend, index);
	uint32_t count = 0, kept = 0;

	if (!pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < clock->piece_count; i++)
		pieces[count++].from = clock->pieces[i].from;
	for (uint32_t i = 0; i < used_count; i++) {
		most = fmax(most, fabs(knots[used[i]]));
		if (knots[used[i]] != 0 || (i && knots[used[i - 1]] != 0) ||
		    (i + 1 < used_count && knots[used[i + 1]] != 0))
			pieces[count++].from = own_time(clock, mend->times[used[i]]);
	}
	qsort(pieces, count, sizeof(*pieces), by_time);
	for (uint32_t i = 0; i < count; i++) {
		int64_t from = pieces[i].from, time = xm_true_time(clock, from);

		if (kept && pieces[kept - 1].from == from)
			continue;
		pieces[kept++] = (struct xm_piece){
			from, time - from + (int64_t)floor(moved_at(mend, knots, time) + 0.5), drift
		};
	}
	for (uint32_t i = 0; i + 1 < kept; i++)
		pieces[i].drift = (double)(pieces[i + 1].offset - pieces[i].offset) /
				  (double)(pieces[i + 1].from - pieces[i].from);
	clock->offset += (int64_t)floor(knots[0] + 0.5);
	clock->error += clock->error == XM_NO_TIME ? 0 : (int64_t)ceil(most);
	free(clock->pieces);
	clock->pieces = pieces;
	clock->piece_count = kept;
	return 0;
}

/* How much too early something still is. */
static double settle(struct xm_mend *mend, double steepest)
{
	uint32_t most = ENOUGH / (mend->map.count + 1), still = 0;

	find_used(mend);
	most = most < FEWEST_SWEEPS ? FEWEST_SWEEPS : most > MOST_SWEEPS ? MOST_SWEEPS : most;
	for (uint32_t n = 0; n < most && still < 2; n++)
		still = sweep(mend, n & 1, steepest) > 0 ? 0 : still + 1;
	return mark(mend);
}

bool xm_mend_solve(struct xm_mend *mend)
{
	double before = 0, worst = settle(mend, STEEPEST);

	for (uint32_t i = 0; i < mend->map.count && i < mend->early_room; i++)
		before = fmax(before, mend->early[i]);
	/* shorter parts help while they help */
	if (worst > 0 && ++mend->looks < MOST_LOOKS &&
	    (mend->looks == 1 || worst < 0.9 * mend->worst) && divide(mend)) {
		mend->worst = worst;
		return false;
	}
	if (!mend->is_ready)
		return true; /* no memory: the clocks stay as they are */
	if (worst > 0)
		worst = settle(mend, NEARLY_STILL);
	if (worst > before)
		return true; /* so do they if it gets no better */
	for (uint32_t i = 0; i < mend->clock_count; i++) {
		struct xm_clock *clock = xm_clock_at(mend->clocks, i);

		fill(mend, i);
		if (clock->root == i || bend(mend, i) == 0)
			clock->violated = (uint64_t)ceil(worst);
	}
	return true;
}

void xm_mend_free(struct xm_mend *mend)
{
	if (!mend)
		return;
	forget(mend);
	free(mend->times);
	free(mend->early);
	free(mend->first);
	free(mend);
}
