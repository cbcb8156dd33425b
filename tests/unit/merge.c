/*
 * The parts of xstrace-merge that have no file of their own to look at: numbers and texts, lines
 * between bounds, sorting on disk.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bounds.h"
#include "json_check.h"
#include "map.h"
#include "own_slice.h"
#include "scan.h"
#include "sort.h"
#include "tap.h"

static void times(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = { { "0", 0 },
		     { "1.5", 1500 },
		     { "57183514172.873", 57183514172873 },
		     { "86399999999.999", 86399999999999 },
		     { "1795246672748226.250000", 1795246672748226250 },
		     { "-2.001", -2001 },
		     { "0.0004", 0 },
		     { "0.0005", 0 },
		     { "0.00050001", 1 },
		     { "0.0015", 2 },
		     { "0.0025", 2 },
		     { "1.2e5", 120000000 },
		     { "12E-1", 1200 },
		     { "1e3", 1000000 },
		     { "1234567890123.4565", 1234567890123456 },
		     { "0.000000000000000000000001", 0 } };
	static const char *const bad[] = {
		"", "\"1\"", "1e99", "99999999999999999999", "null", "-", "9223372036854775.808"
	};
	int64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char padded[XF_SLACK + 64] = "";

		strcpy(padded, good[i].text);
		CHECK(xf_nanoseconds((struct xf_text){ padded, strlen(good[i].text) }, &ns) &&
			      ns == good[i].ns,
		      "%s is %" PRId64, good[i].text, ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char padded[XF_SLACK + 64] = "";

		strcpy(padded, bad[i]);
		CHECK(!xf_nanoseconds((struct xf_text){ padded, strlen(bad[i]) }, &ns),
		      "%s is no time", bad[i]);
	}
}

/*
 * What the scanner takes is JSON, and what is JSON it takes; with every byte replaced by some
 * others.
 */
static void values_are_judged_rightly(void)
{
	static const char sample[] = "{\"a\":[1,-2.5e+3,true,null],\"b\":{\"c\":"
				     "\"x\\n\\u00e9\xc3\xa9\",\"d\":[]},\"e\":0}";
	static const char bytes[] = "\"\\{}[]:,.eE+-01xtn \x01\xff";
	size_t n = sizeof(sample) - 1;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
			char text[sizeof(sample) + XF_SLACK] = { 0 };
			const char *stop, *why;
			enum xf_scan result;
			size_t at;

			memcpy(text, sample, n);
			text[i] = bytes[k];
			result = xf_scan_value(text, text + n, &stop, &why);
			CHECK((result == XF_OK && stop == text + n) <= json_check(text, n, &at),
			      "%s is no JSON", text);
			if (result == XF_DIRTY && stop == text + n) {
				char repaired[6 * sizeof(sample)];
				size_t length = (size_t)(xf_repair(repaired, text, n) - repaired);

				CHECK(json_check(repaired, length, &at), "repaired to %.*s",
				      (int)length, repaired);
			}
		}
}

static void lines_keep_all_bounds(void)
{
	unsigned long long seed = 7;

	for (int round = 0; round < 20; round++) {
		double slope = ((double)(tap_random(&seed) % 2000) - 1000) * 2e-7;
		int64_t at = (int64_t)(tap_random(&seed) % 1000000) * 20000;
		struct xm_hull uppers = { 0 }, lowers = { 0 };
		struct xm_line line;

		for (int i = 0; i < 5000; i++) {
			int64_t x = (int64_t)i * 20000000, y = at + (int64_t)(slope * (double)x);

			xm_hull_add(&uppers, true, x,
				    y + 1000 + (int64_t)(tap_random(&seed) % 20000));
			xm_hull_add(&lowers, false, x + 50,
				    y - 1000 - (int64_t)(tap_random(&seed) % 20000));
		}
		xm_hull_tidy(&uppers, true);
		xm_hull_tidy(&lowers, false);
		CHECK(uppers.count < 100 && lowers.count < 100, "%u and %u points stay",
		      uppers.count, lowers.count);
		CHECK(xm_hull_line(&uppers, &lowers, NULL, &line), "a line");
		CHECK(line.gap > 0 && line.error > 0 && line.error < 20000, "gap %Lf, error %Lf",
		      line.gap, line.error);
		for (int i = 0; i < 5000; i += 499) {
			long double x = (long double)i * 20000000,
				    truth = (long double)at + (long double)slope * x;
			long double found = line.at + line.slope * (x - (long double)line.from);

			CHECK(fabsl(found - truth) <= line.error + 1, "off by %Lf, not at most %Lf",
			      found - truth, line.error);
		}
		free(uppers.points);
		free(lowers.points);
	}
}

/*
 * Bounds in parts of the time hold all that was given, in whatever order it comes; what bends is
 * found.
 */
static void paths_bend_where_clocks_do(void)
{
	enum { MANY = 6000 };
	unsigned long long seed = 11;

	for (int round = 0; round < 24; round++) {
		/* before and after the bend, in ppm; every third clock has none */
		double slopes[2] = { (double)(tap_random(&seed) % 200) - 100,
				     (double)(tap_random(&seed) % 200) + 150 };
		int64_t begin = ((int64_t)(tap_random(&seed) % 2000) - 1000) * 1000000007,
			length = 1000000000ll << round % 7;
		int64_t bend = begin + length / 4 +
			       length / 2000 * (int64_t)(tap_random(&seed) % 1000),
			last = begin + length;
		struct xm_bounds bounds = { .is_plain = round >= 21 };
		struct xm_path path;
		struct xm_line line;
		int64_t worst = 0;
		bool bends = round % 3;

		for (int i = 0; i < MANY; i++) {
			int64_t x =
				begin + length / 1000000 * (int64_t)(tap_random(&seed) % 1000000);
			double ahead = bends && x > bend ? slopes[1] : slopes[0];
			int64_t y = 5000000 + (int64_t)((double)(x - bend) * ahead * 1e-6),
				more = 1000 + (int64_t)(tap_random(&seed) % 9000);

			if (i < 2) /* the ends are there */
				x = i ? last : begin,
				y = 5000000 +
				    (int64_t)((double)(x - bend) *
					      (bends && i ? slopes[1] : slopes[0]) * 1e-6);
			xm_bounds_add(&bounds, i & 1, x, i & 1 ? y + more : y - more);
		}
		xm_bounds_tidy(&bounds);
		CHECK(xm_hull_line(&bounds.whole[1], &bounds.whole[0], NULL, &line), "a line");
		CHECK(xm_bounds_path(&bounds, NULL, begin, &line, &path) ==
			      (bends && !bounds.is_plain),
		      "round %d: bends: %d", round, bends);
		for (int64_t x = begin; x <= last; x += length / 97) {
			double ahead = bends && x > bend ? slopes[1] : slopes[0];
			double off = fabs((double)xm_path_at(&path, (long double)(x - begin)) -
					  5e6 - (double)(x - bend) * ahead * 1e-6);

			worst = (int64_t)off > worst ? (int64_t)off : worst;
		}
		/*
		 * half of a part at its end may be told wrong, and no more than bounds are wide
		 * elsewhere
		 */
		if (!bounds.is_plain)
			CHECK(worst < 12000,
			      "round %d: off by %" PRId64 " ns, bends: %d, knots: %u", round, worst,
			      bends, path.count);
		CHECK(bends || path.count == 1, "what does not bend is straight");
		xm_bounds_free(&bounds);
	}
}

static void records_come_in_order(void)
{
	struct xm_sort *sort = xm_sort_create(memfd_create("runs", MFD_CLOEXEC));
	struct xm_key_of_record last = { 0 };
	unsigned long long seed = 3, sum = 0;
	struct xm_record record;
	uint32_t count = 0;
	char data[400];

	if (!sort)
		return;
	memset(data, 'x', sizeof(data));
	for (uint32_t i = 0; i < 400000; i++) {
		struct xm_key_of_record key = { tap_random(&seed) % 3, 0, tap_random(&seed) % 1000,
						2000 };

		memcpy(data, &i, 4);
		if (xm_sort_add(sort, &key, data, 4 + tap_random(&seed) % 300))
			break;
		sum += i;
	}
	CHECK(!xm_sort_start(sort), "started");
	while (xm_sort_next(sort, &record) > 0) {
		uint32_t i;

		memcpy(&i, record.data, 4);
		sum -= i;
		if (record.key.track < last.track ||
		    (record.key.track == last.track && record.key.start < last.start))
			break;
		last = record.key;
		count++;
	}
	CHECK(count == 400000 && !sum, "%u records in order", count);
	xm_sort_free(sort);
}

static void maps_keep_their_limits(void)
{
	struct xf_map map;

	xf_map_init(&map, 1000, 100000);
	for (uint32_t i = 0; i < 2000; i++)
		CHECK(xf_map_add(&map, &i, sizeof(i)) == (i < 1000 ? i : XF_NONE), "number of %u",
		      i);
	for (uint32_t i = 0; i < 2000; i++)
		CHECK(xf_map_find(&map, &i, sizeof(i)) == (i < 1000 ? i : XF_NONE), "found %u", i);
	xf_map_free(&map);
}

static bool is_same(const struct xf_event *a, const struct xf_event *b)
{
	const struct xf_text *left = &a->ph, *right = &b->ph;

	for (size_t i = 0; i < offsetof(struct xf_event, others) / sizeof(*left); i++)
		if (left[i].n != right[i].n || (left[i].n && left[i].p != right[i].p))
			return false;
	return a->own_pid == b->own_pid && a->own_tid == b->own_tid && a->own_ts == b->own_ts &&
	       a->own_dur == b->own_dur && a->own_rest.p == b->own_rest.p &&
	       a->own_rest.n == b->own_rest.n && a->other_count == b->other_count;
}

/* One after the other, as many as not with a byte that does not belong there. */
static void slices_are_alike_to_the_one_before(void)
{
	static const char strange[] = "0123456789.,:\"{}x\xff\n";
	unsigned taken = 0, random = 1, at, ids[2] = { 7, 7 };
	struct xf_event event, wanted;
	struct xf_own own = { 0 };
	uint64_t ts = 57183514172873;
	bool is_alike = true;
	char text[512] = "";

	for (unsigned i = 0; i < 400000 && is_alike; i++) {
		const char *end = NULL, *wanted_end = NULL;
		bool is_taken, is_wanted;
		int length;

		random = random * 1664525 + 1013904223;
		at = random >> 8;
		ts = at % 64 ? ts + at % 9999999 : at % 1000000000;
		if (!(at % 50))
			ids[at / 50 % 2] = at % 3 ? at % 100 : 3000000000 + at % 1000;
		length = snprintf(text, sizeof(text) - 200,
				  "{\"ph\":\"X\",\"tid\":%u,\"pid\":%u,\"ts\":%" PRIu64
				  ".%03u,\"dur\":%u.%03u,\"cat\":\"cpu_op\",\"name\":\"a\"%s}",
				  ids[0], ids[1], ts / 1000, (unsigned)(ts % 1000),
				  at % 7 ? at % 2000 : at, at % 1000,
				  at % 5 ? "" : ",\"args\":{\"a\":[1,2]}");
		memset(text + length, 0, sizeof(text) - (size_t)length);
		if (at % 3 == 0)
			text[at / 3 % (unsigned)length] =
				strange[at / 1000 % (sizeof(strange) - 1)];
		is_taken = xf_own_next(text, text + 400, &own, &event, &end);
		is_wanted = xf_own_slice(text, text + 400, &wanted, &wanted_end);
		taken += is_taken;
		is_alike = is_taken == is_wanted && is_taken == event.is_own &&
			   (!is_taken || (end == wanted_end && is_same(&event, &wanted)));
	}
	CHECK(is_alike, "%s", text);
	CHECK(taken > 200000 && taken < 390000, "%u slices", taken);
}

int main(void)
{
	tap_run("slices are alike to the one before", slices_are_alike_to_the_one_before);
	tap_run("times", times);
	tap_run("values are judged rightly", values_are_judged_rightly);
	tap_run("lines keep all bounds", lines_keep_all_bounds);
	tap_run("paths bend where clocks do", paths_bend_where_clocks_do);
	tap_run("records come in order", records_come_in_order);
	tap_run("maps keep their limits", maps_keep_their_limits);
	return tap_done();
}
