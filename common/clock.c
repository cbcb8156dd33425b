/*
 * Ticks to nanoseconds.
 *
 * A timeline is a chain of straight segments. A new one begins where the last one stands at that
 * moment (so there is no jump), and its slope is the frequency seen since the start, corrected so
 * that the error found now is gone when the next one is due. What has been converted once is
 * converted the same way for ever: slices that touch keep touching.
 */
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool xs_clock_tsc_usable(void)
{
#if XS_HAVE_TSC
	char name[8] = "";
	ssize_t n;
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	/* it takes it only while it runs at one rate in all states and agrees between processors */
	return n >= 3 && !memcmp(name, "tsc", 3);
#else
	return false;
#endif
}

static uint64_t read_clock(enum xs_clock clock)
{
	return clock == XS_CLOCK_RAW ? xs_clock_ns(CLOCK_MONOTONIC_RAW)
				     : xs_tick(clock == XS_CLOCK_TSC);
}

struct xs_clock_pair xs_clock_pair(enum xs_clock clock)
{
	struct xs_clock_pair best = { 0, 0 };
	uint64_t width = UINT64_MAX;

	if (clock == XS_CLOCK_MONOTONIC) {
		best.tick = best.mono = xs_clock_ns(CLOCK_MONOTONIC);
		return best;
	}
	for (int i = 0; i < 6; i++) {
		uint64_t before = xs_clock_ns(CLOCK_MONOTONIC);
		uint64_t tick = read_clock(clock);
		uint64_t after = xs_clock_ns(CLOCK_MONOTONIC);

		if (after - before < width) {
			width = after - before;
			best.tick = tick;
			best.mono = before + width / 2;
		}
	}
	return best;
}

static uint64_t slope_of(uint64_t ns, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}

static uint64_t on_segment(const struct xs_segment *s, uint64_t tick)
{
	if (tick >= s->tick)
		return s->ns + (uint64_t)(((unsigned __int128)(tick - s->tick) * s->slope) >> 32);
	/* before the first segment: rounded down, to stay monotone */
	return s->ns -
	       (uint64_t)((((unsigned __int128)(s->tick - tick) * s->slope) + 0xffffffffu) >> 32);
}

static int append(struct xs_timeline *line, struct xs_segment segment)
{
	if (line->count == line->room) {
		size_t room = line->room ? 2 * line->room : 64;
		struct xs_segment *grown = realloc(line->segments, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM; /* the last segment simply goes on */
		line->segments = grown;
		line->room = room;
	}
	line->segments[line->count++] = segment;
	return 0;
}

int xs_timeline_init(struct xs_timeline *line, enum xs_clock clock, struct xs_clock_pair first,
		     int64_t offset)
{
	struct xs_clock_pair now = first;
	struct xs_segment segment;

	memset(line, 0, sizeof(*line));
	line->clock = clock;
	line->first = first;
	line->offset = offset;
	segment.tick = first.tick;
	segment.ns = first.mono + (uint64_t)offset;
	segment.slope = (uint64_t)1 << 32;
	if (clock != XS_CLOCK_MONOTONIC) {
		/*
		 * at 20 ns of reading error, 200 us give a frequency to 100 ppm, for the first
		 * milliseconds
		 */
		while (now.mono >= first.mono && now.mono - first.mono < 200000)
			now = xs_clock_pair(clock);
		/* not so in a run directory from before a reboot */
		if (now.tick > first.tick && now.mono > first.mono)
			segment.slope = slope_of(now.mono - first.mono, now.tick - first.tick);
	}
	line->next = now.tick;
	return append(line, segment);
}

int xs_timeline_restore(struct xs_timeline *line, enum xs_clock clock,
			const struct xs_segment *segments, size_t count, int64_t offset)
{
	memset(line, 0, sizeof(*line));
	line->clock = clock;
	line->offset = offset;
	line->next = UINT64_MAX;
	if (!count)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (append(line, segments[i]) < 0)
			return -ENOMEM;
	return 0;
}

void xs_timeline_fini(struct xs_timeline *line)
{
	free(line->segments);
	memset(line, 0, sizeof(*line));
}

void xs_timeline_looked(struct xs_timeline *line)
{
	if (line->clock != XS_CLOCK_MONOTONIC)
		line->looked = read_clock(line->clock);
}

/*
 * After a time in which nobody looked, longer than the last segment was meant for: it has become a
 * straight line from its beginning to `now`. What was known before is not good enough: the first
 * ms tell the frequency to some ppm, which is some us after a second. slope: as seen since the
 * start; the line's is never far from it, whatever was done to the kernel's clock.
 */
static void join_up(struct xs_timeline *line, uint64_t looked, struct xs_clock_pair now,
		    uint64_t slope)
{
	const struct xs_segment *last = &line->segments[line->count - 1];
	struct xs_segment between = { .tick = looked };
	uint64_t target = now.mono + (uint64_t)line->offset;

	if (looked <= last->tick || looked >= now.tick || line->next <= last->tick ||
	    now.tick - looked <= line->next - last->tick)
		return;
	between.ns = on_segment(last, between.tick);
	between.slope = target > between.ns ? slope_of(target - between.ns, now.tick - between.tick)
					    : 0;
	if (between.slope < slope / 2)
		between.slope = slope / 2;
	if (between.slope > slope + slope / 2)
		between.slope = slope + slope / 2;
	if (between.slope)
		(void)append(line, between);
}

void xs_timeline_update(struct xs_timeline *line)
{
	uint64_t elapsed, horizon, looked = line->looked;
	struct xs_clock_pair now;
	struct xs_segment fresh;
	int64_t error, correction;

	line->looked = 0; /* whatever comes of this, ticks are converted after it */
	if (line->clock == XS_CLOCK_MONOTONIC || read_clock(line->clock) < line->next)
		return;
	now = xs_clock_pair(line->clock);
	if (now.tick <= line->first.tick || now.mono < line->first.mono + 200000)
		return;
	elapsed = now.mono - line->first.mono;
	/* a segment at 1, 2, 4, ... ms, later one a second: few enough to keep all of them */
	horizon = elapsed < 1000000000u ? elapsed : 1000000000u;
	fresh.tick = now.tick;
	fresh.slope = slope_of(elapsed, now.tick - line->first.tick);
	join_up(line, looked, now, fresh.slope);
	fresh.ns = on_segment(&line->segments[line->count - 1], now.tick);
	error = (int64_t)(now.mono + (uint64_t)line->offset - fresh.ns);
	if (line->count > 1 && (uint64_t)llabs(error) > line->max_error)
		line->max_error = (uint64_t)llabs(error);
	/*
	 * bounded, so that time never stands still or runs backwards, whatever was done to the
	 * kernel's clock
	 */
	correction = error;
	if (correction > (int64_t)horizon / 2)
		correction = (int64_t)horizon / 2;
	if (correction < -(int64_t)horizon / 2)
		correction = -(int64_t)horizon / 2;
	fresh.slope = (uint64_t)((unsigned __int128)fresh.slope * (horizon + (uint64_t)correction) /
				 horizon);
	if (fresh.slope && !append(line, fresh))
		line->next =
			now.tick + (uint64_t)(((unsigned __int128)horizon << 32) / fresh.slope);
}

/* The segment on which the tick lies; the first one, if it is before that. */
static size_t segment_of(const struct xs_timeline *line, uint64_t tick)
{
	const struct xs_segment *s = line->segments;
	size_t low = 0, high = line->count;

	/* mostly it is one of the last, and the same as before: no step of this is a surprise */
	for (unsigned i = 0; i < 16 && high > 1 && tick < s[high - 1].tick; i++)
		high--;
	if (tick >= s[high - 1].tick)
		return high - 1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s[middle].tick <= tick)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t xs_timeline_past_ns(const struct xs_timeline *line, uint64_t tick)
{
	return on_segment(&line->segments[segment_of(line, tick)], tick);
}

struct xs_stretch xs_timeline_stretch(const struct xs_timeline *line, uint64_t tick)
{
	size_t at = segment_of(line, tick);
	const struct xs_segment *s = &line->segments[at];
	struct xs_stretch stretch = { s->tick, UINT64_MAX / (s->slope ? s->slope : 1), s->ns,
				      s->slope };

	if (at + 1 < line->count && s[1].tick - s->tick < stretch.length)
		stretch.length = s[1].tick - s->tick;
	if (tick - s->tick >= stretch.length)
		stretch.length = 0;
	return stretch;
}
