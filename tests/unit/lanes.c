/*
 * Lanes: what is put on one may nest, or lies apart, as it was asked for; and no lane is taken
 * where there was one that fits.
 */
#include "tap.h"
#include "lanes.h"

enum { COUNT = 600, LANES = COUNT };

static struct xs_interval put[LANES][COUNT];
static uint32_t filled[LANES];

static bool fits(const struct xs_interval *a, uint64_t start, uint64_t end, enum xs_fit fit)
{
	bool apart = a->end <= start || a->start >= end;
	bool nests = (a->start <= start && a->end >= end) || (a->start >= start && a->end <= end);

	return apart || (fit == XS_FIT_NESTING && nests);
}

static bool fits_on(uint32_t lane, uint64_t start, uint64_t end, enum xs_fit fit)
{
	for (uint32_t i = 0; i < filled[lane]; i++)
		if (!fits(&put[lane][i], start, end, fit))
			return false;
	return true;
}

static void at_random(enum xs_fit fit, unsigned long long seed, uint32_t span)
{
	struct xs_lanes lanes = { .count = 0 };

	memset(filled, 0, sizeof(filled));
	for (int i = 0; i < COUNT; i++) {
		uint64_t start = 1 + tap_random(&seed) % 1000,
			 end = start + 1 + tap_random(&seed) % span;
		const struct xs_lane *lane = xs_lanes_take(&lanes, start, end, fit);
		uint32_t at = (uint32_t)(lane - lanes.lane), first = 0;

		while (!fits_on(first, start, end, fit))
			first++;
		if (!CHECK(at == first, "%u to %u is on lane %u, and the first that fits is %u",
			   (unsigned)start, (unsigned)end, at, first))
			break;
		put[at][filled[at]++] = (struct xs_interval){ .start = start, .end = end };
	}
	CHECK(lanes.count > 1, "%u lanes", lanes.count);
	xs_lanes_fini(&lanes);
}

static void apart(void)
{
	for (unsigned round = 0; round < 60; round++)
		at_random(XS_FIT_APART, round, 1 + round * 10);
}

static void nesting(void)
{
	for (unsigned round = 0; round < 60; round++)
		at_random(XS_FIT_NESTING, round, 2 + round * 10);
}

enum { MANY = 20000, SOURCES = 4 };

static struct one {
	uint64_t start, end;
	uint32_t lane;
} many[MANY];

/* by lane and start, the longer one first */
static int compare(const void *a_, const void *b_)
{
	const struct one *a = a_, *b = b_;

	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end;
}

static bool all_nest(void)
{
	static uint64_t open[MANY];
	uint32_t depth = 0;

	qsort(many, MANY, sizeof(*many), compare);
	for (uint32_t i = 0; i < MANY; i++) {
		if (i && many[i].lane != many[i - 1].lane)
			depth = 0;
		while (depth && open[depth - 1] <= many[i].start)
			depth--;
		if (depth && open[depth - 1] < many[i].end)
			return false;
		open[depth++] = many[i].end;
	}
	return true;
}

/*
 * As rings are read: all of one thread, then all of the next one. A long one lies far before others
 * that begin within it, with thousands of short ones between.
 */
static void far_back(void)
{
	for (unsigned long long seed = 1; seed <= 5; seed++) {
		unsigned long long random = seed;
		struct xs_lanes lanes = { .count = 0 };

		for (uint32_t i = 0; i < MANY; i++) {
			uint64_t start = 1 + i % (MANY / SOURCES) * 10 + tap_random(&random) % 9,
				 end = start + 1 +
				       tap_random(&random) % (tap_random(&random) % 50 ? 5 : 30000);
			const struct xs_lane *lane =
				xs_lanes_take(&lanes, start, end, XS_FIT_NESTING);

			many[i] = (struct one){ start, end, (uint32_t)(lane - lanes.lane) };
		}
		CHECK(all_nest(), "slices overlap without nesting, seed %llu", seed);
		xs_lanes_fini(&lanes);
	}
}

/* Of a thread that was not running for a while, beside thousands of others' in that time. */
static void long_ago(void)
{
	enum { BETWEEN = 3000 };
	struct xs_lanes lanes = { .count = 0 };
	const struct xs_lane *lane = xs_lanes_take(&lanes, 10, 10 + 10 * BETWEEN, XS_FIT_NESTING);

	for (uint64_t i = 2; i < BETWEEN; i++) {
		lane = xs_lanes_take(&lanes, 10 * i, 10 * i + 5, XS_FIT_NESTING);
		if (i < 1000 && !CHECK(lane == &lanes.lane[0], "one inside is on another lane"))
			break;
	}
	lane = xs_lanes_take(&lanes, 10 * BETWEEN, 20 + 10 * BETWEEN, XS_FIT_NESTING);
	CHECK(lane != &lanes.lane[0], "one crosses what began %d intervals ago", BETWEEN);
	xs_lanes_fini(&lanes);
}

static uint64_t put_many(struct xs_lanes *lanes, uint64_t from, uint32_t count)
{
	for (; count--; from += 2)
		(void)xs_lanes_take(lanes, from, from + 1, XS_FIT_NESTING);
	return from;
}

/* A lane remembers so many, and forgets the older half: of one that lasts longer, the end counts.
 */
static void forgotten(void)
{
	struct xs_lanes lanes = { .count = 0 };
	uint64_t begin = put_many(&lanes, 2, 3900), end = begin + 100000;

	(void)xs_lanes_take(&lanes, begin, end, XS_FIT_NESTING);
	(void)put_many(&lanes, begin, 500);
	(void)put_many(&lanes, end, 5000);
	CHECK(xs_lanes_take(&lanes, end - 1, end + 1, XS_FIT_NESTING) != &lanes.lane[0],
	      "one crosses what is forgotten");
	xs_lanes_fini(&lanes);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("apart", apart);
	tap_run("nesting", nesting);
	tap_run("far back", far_back);
	tap_run("long ago", long_ago);
	tap_run("forgotten", forgotten);
	return tap_done();
}
