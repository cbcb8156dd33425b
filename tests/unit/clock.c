/*
 * The timeline on simulated clocks: the two ways in which common/clock.c reads time are replaced
 * here, and its source is included, so that hours of drift, steps and jitter pass in milliseconds.
 */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "tap.h"

static double now_ns = 5e12; /* the kernel's monotonic clock */
static double raw_ppm;	     /* by how much CLOCK_MONOTONIC_RAW is faster */
static double ghz = 2.9453;  /* the counter's true frequency */
static uint64_t counter = 123456789012345ull;
static double fraction; /* of a tick, not counted yet */
static unsigned jitter; /* ns that a reading takes at most, beside 20 */
static unsigned long long seed = 7;

static void pass(double ns)
{
	double ticks = ns * ghz + fraction;

	counter += (uint64_t)ticks;
	fraction = ticks - floor(ticks);
	now_ns += ns;
}

static uint64_t fake_tsc(void)
{
	pass(10);
	return counter;
}

static int fake_clock(clockid_t clock, struct timespec *ts)
{
	double ns = clock == CLOCK_MONOTONIC_RAW ? now_ns * (1 + raw_ppm * 1e-6) : now_ns;

	pass(10 + (jitter ? tap_random(&seed) % jitter : 0));
	ts->tv_sec = (time_t)(ns / 1e9);
	ts->tv_nsec = (long)(ns - (double)ts->tv_sec * 1e9);
	return 0;
}

#define __builtin_ia32_rdtsc()	 fake_tsc()
#define clock_gettime(clock, ts) fake_clock(clock, ts)
#include "../../common/clock.c"
#undef clock_gettime

#define OFFSET (-3000000000000ll)

static struct xs_timeline line;

static void start(enum xs_clock clock)
{
	CHECK(!xs_timeline_init(&line, clock, xs_clock_pair(clock), OFFSET), "init");
}

static uint64_t true_ns(void)
{
	return (uint64_t)(now_ns + (double)OFFSET);
}

static uint64_t ns(uint64_t tick)
{
	return xs_timeline_ns(&line, tick);
}

/* A tick on a stretch becomes what it becomes without; where it has none, nothing is promised. */
static void on_stretch(uint64_t tick)
{
	const struct xs_stretch stretch = xs_timeline_stretch(&line, tick);
	uint64_t last = stretch.from + stretch.length - 1;

	if (!stretch.length)
		return;
	CHECK(tick - stretch.from < stretch.length, "a stretch without its tick");
	CHECK(xs_stretch_ns(&stretch, tick - stretch.from) == ns(tick), "tick %" PRIu64, tick);
	CHECK(xs_stretch_ns(&stretch, 0) == ns(stretch.from), "first of a stretch");
	CHECK(xs_stretch_ns(&stretch, stretch.length - 1) == ns(last), "last of a stretch");
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * Lets time pass in steps, looks at the error, and sees to it that nothing that was said is ever
 * said otherwise.
 */
static uint64_t go(double seconds, double step_ns)
{
	static struct {
		uint64_t tick, ns;
	} said[4096];
	size_t count = 0;
	uint64_t worst = 0, last_tick, last;

	xs_timeline_update(&line);
	last_tick = counter;
	last = ns(counter);
	for (double t = 0; t < seconds * 1e9; t += step_ns) {
		uint64_t tick, value;

		pass(step_ns * (0.5 + (tap_random(&seed) % 1000) / 1000.0));
		xs_timeline_update(&line);
		tick = counter;
		value = ns(tick);
		if (distance(value, true_ns()) > worst)
			worst = distance(value, true_ns());
		CHECK(value >= last, "%" PRIu64 " ticks later it is %" PRIu64 " ns earlier",
		      tick - last_tick, last - value);
		last = value;
		last_tick = tick;
		if (tap_random(&seed) % 16 == 0 && count < 4096) {
			said[count].tick = tick;
			said[count++].ns = value;
		}
		if (tap_random(&seed) % 2)
			xs_timeline_looked(&line);
		if (tap_failures > 20)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		CHECK(ns(said[i].tick) == said[i].ns, "what was %" PRIu64 " is %" PRIu64 " now",
		      said[i].ns, ns(said[i].tick));
		on_stretch(said[i].tick);
	}
	CHECK(!count || xs_timeline_stretch(&line, said[count - 1].tick).length, "no stretch");
	return worst;
}

/*
 * Every tick of all segments' surroundings: no step back, no jump of more than a tick's length and
 * rounding.
 */
static void seams(void)
{
	uint64_t most = (uint64_t)(1 / ghz) + 2;

	for (size_t i = 1; i < line.count; i++) {
		uint64_t seam = line.segments[i].tick;

		for (uint64_t tick = seam - 100; tick < seam + 100; tick++) {
			CHECK(ns(tick) <= ns(tick + 1) && ns(tick + 1) - ns(tick) <= most,
			      "segment %zu, tick %" PRId64 ": %" PRId64 " ns", i,
			      (int64_t)(tick - seam), (int64_t)(ns(tick + 1) - ns(tick)));
			on_stretch(tick);
		}
	}
	/*
	 * before the first segment too: a record may be older than the run's first pair of readings
	 */
	for (uint64_t tick = line.first.tick - 1000; tick < line.first.tick + 1000; tick++)
		CHECK(ns(tick) <= ns(tick + 1) && ns(tick + 1) - ns(tick) <= most, "tick %" PRId64,
		      (int64_t)(tick - line.first.tick));
}

/*
 * What is at least 1 ns apart is so in the trace, too, wherever it lies: no slice gets lost between
 * two roundings.
 */
static void no_slice_vanishes(void)
{
	static const double frequencies[] = { 0.4, 0.9, 1.1, 1.9, 2.9453, 5.7 };

	for (size_t i = 0; i < sizeof(frequencies) / sizeof(frequencies[0]); i++) {
		uint64_t ticks, first;

		ghz = frequencies[i];
		start(XS_CLOCK_TSC);
		first = line.first.tick;
		ticks = (uint64_t)ceil(4294967296.0 / (double)line.segments[0].slope);
		for (uint64_t tick = first - 200; tick < first + 200; tick++)
			CHECK(ns(tick) < ns(tick + ticks),
			      "%.1f GHz, tick %" PRId64 ": %" PRIu64 " ticks are nothing", ghz,
			      (int64_t)(tick - first), ticks);
		xs_timeline_fini(&line);
	}
}

static void steady(void)
{
	static const double frequencies[] = { 0.024, 1.0, 2.9453, 5.7 };

	for (size_t i = 0; i < sizeof(frequencies) / sizeof(frequencies[0]); i++) {
		uint64_t worst;

		ghz = frequencies[i];
		start(XS_CLOCK_TSC);
		worst = go(0.005, 2000);
		CHECK(worst < 3000, "%.1f GHz, the first 5 ms: %" PRIu64 " ns off", ghz, worst);
		worst = go(100, 3e6);
		CHECK(worst < 3000, "%.1f GHz, 100 s: %" PRIu64 " ns off", ghz, worst);
		(void)go(1, 1e7);
		worst = go(3600, 5e7);
		CHECK(worst < 300, "%.1f GHz, an hour: %" PRIu64 " ns off", ghz, worst);
		CHECK(line.count < 4000, "%zu segments", line.count);
		seams();
		CHECK(line.max_error < 3000, "the largest error found is %" PRIu64, line.max_error);
		xs_timeline_fini(&line);
	}
}

static void jittery(void)
{
	uint64_t worst;

	jitter = 2000;
	start(XS_CLOCK_TSC);
	(void)go(2, 1e6);
	worst = go(600, 2e7);
	CHECK(worst < 4000, "%" PRIu64 " ns off", worst);
	seams();
	xs_timeline_fini(&line);
}

/* NTP slews the kernel's clock: 500 ppm is the most that it does. */
static void slewed(void)
{
	uint64_t worst;

	start(XS_CLOCK_TSC);
	(void)go(60, 1e7);
	ghz /= 1.0005;
	worst = go(20, 1e7);
	CHECK(worst < 1500000, "%" PRIu64 " ns off while it follows", worst);
	CHECK(line.max_error > 10000, "and it is told: %" PRIu64, line.max_error);
	worst = go(600, 1e7);
	CHECK(worst < 1000000, "%" PRIu64 " ns off", worst);
	seams();
	xs_timeline_fini(&line);
}

/*
 * A suspended or stopped machine: the counter or the clock jumps; time still never runs backwards.
 */
static void jumps(void)
{
	for (int way = 0; way < 3; way++) {
		start(XS_CLOCK_TSC);
		(void)go(10, 1e7);
		if (way == 0)
			now_ns += 5e9; /* the counter stood still */
		else if (way == 1)
			counter += 15000000000ull; /* the clock did */
		else
			pass(86400e9); /* nobody looked for a day */
		(void)go(120, 1e7);
		(void)go(3600, 5e8);
		seams();
		xs_timeline_fini(&line);
	}
}

static void raw_clock(void)
{
	uint64_t worst;

	raw_ppm = 120;
	start(XS_CLOCK_RAW);
	worst = 0;
	for (int i = 0; i < 5000; i++) {
		uint64_t raw;

		pass(i < 2000 ? 1e6 : 1e7);
		xs_timeline_update(&line);
		raw = xs_clock_ns(CLOCK_MONOTONIC_RAW);
		if (i > 2000 && distance(ns(raw), true_ns()) > worst)
			worst = distance(ns(raw), true_ns());
	}
	CHECK(line.count > 3, "it has segments");
	CHECK(worst < 2000, "%" PRIu64 " ns off", worst);
	xs_timeline_fini(&line);
}

/* The clock is not looked at for some seconds soon after its start: what was in that time? */
static void held_up(void)
{
	static const enum xs_clock clocks[] = { XS_CLOCK_TSC, XS_CLOCK_RAW };

	for (size_t i = 0; i < 2; i++) {
		uint64_t ticks[100], truth[100], looked, before, worst = 0;

		jitter = 200;
		start(clocks[i]);
		(void)(clocks[i] == XS_CLOCK_TSC ? go(0.006, 1e5) : 0);
		xs_timeline_looked(&line);
		looked = line.looked;
		before = ns(looked);
		for (int k = 0; k < 100; k++) {
			pass(3e7);
			truth[k] = true_ns();
			ticks[k] = read_clock(clocks[i]);
		}
		xs_timeline_update(&line);
		for (int k = 0; k < 100; k++)
			if (distance(ns(ticks[k]), truth[k]) > worst)
				worst = distance(ns(ticks[k]), truth[k]);
		CHECK(worst < 2000, "%" PRIu64 " ns off", worst);
		CHECK(ns(looked) == before, "what was said stays");
		if (clocks[i] == XS_CLOCK_TSC)
			seams();
		xs_timeline_fini(&line);
	}
	jitter = 0;
}

static void monotonic_clock(void)
{
	start(XS_CLOCK_MONOTONIC);
	for (int i = 0; i < 1000; i++) {
		uint64_t tick;

		pass(1e6 + i);
		xs_timeline_update(&line);
		tick = (uint64_t)now_ns;
		CHECK(ns(tick) == tick + (uint64_t)OFFSET, "exact");
	}
	CHECK(line.count == 1 && line.max_error == 0, "one segment");
	xs_timeline_fini(&line);
}

/* Far from where the clock was looked at: no overflow, in order. */
static void far_ticks(void)
{
	uint64_t last = 0;

	start(XS_CLOCK_TSC);
	(void)go(5, 1e7);
	for (int days = -1; days < 365 * 10; days += 30) {
		double ticks = days * 86400e9 * ghz;
		uint64_t tick = line.first.tick +
				(days < 0 ? 0 - (uint64_t)-ticks / 1000 : (uint64_t)ticks);
		uint64_t value = ns(tick);

		CHECK(days < 0 || value >= last, "day %d", days);
		if (days >= 0)
			CHECK(distance(value,
				       (uint64_t)((double)line.segments[0].ns + days * 86400e9)) <=
				      (uint64_t)(days + 1) * 86400000000ull,
			      "day %d: %" PRIu64, days, value);
		last = days < 0 ? 0 : value;
	}
	CHECK(ns(0) != 0 || true, "any tick has an answer");
	(void)ns(UINT64_MAX);
	xs_timeline_fini(&line);
}

/*
 * A run directory from before a reboot, or a hostile one: any pair may stand at the beginning. No
 * division by zero, no endless loop.
 */
static void wrong_beginnings(void)
{
	static const struct xs_clock_pair firsts[] = {
		{ 0, 0 },
		{ UINT64_MAX, 0 },
		{ 0, UINT64_MAX },
		{ UINT64_MAX, UINT64_MAX },
		{ 1, 5000000000000000ull },
		{ 1ull << 63, 1 },
	};

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		(void)xs_timeline_init(&line, XS_CLOCK_TSC, firsts[i], 0);
		for (int k = 0; k < 100; k++) {
			pass(1e8);
			xs_timeline_update(&line);
			(void)ns(counter);
			on_stretch(counter);
		}
		xs_timeline_fini(&line);
	}
	(void)xs_timeline_init(&line, XS_CLOCK_TSC,
			       (struct xs_clock_pair){ .tick = counter + 30000000000ull,
						       .mono = (uint64_t)now_ns + 10000000000ull },
			       0);
	for (int k = 0; k < 1000; k++) {
		pass(2e7);
		xs_timeline_update(&line);
		(void)ns(counter);
	}
	xs_timeline_fini(&line);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("no slice vanishes", no_slice_vanishes);
	tap_run("steady", steady);
	tap_run("readings that take long", jittery);
	tap_run("a slewed clock", slewed);
	tap_run("jumps", jumps);
	tap_run("CLOCK_MONOTONIC_RAW", raw_clock);
	tap_run("nobody looks", held_up);
	tap_run("CLOCK_MONOTONIC", monotonic_clock);
	tap_run("ticks far away", far_ticks);
	tap_run("wrong beginnings", wrong_beginnings);
	return tap_done();
}
