/*
 * The clock of records: the time stamp counter where the kernel itself trusts it, else
 * CLOCK_MONOTONIC.
 *
 * Reading: xs_tick(). Turning ticks into ns is the drain process's work: struct xs_timeline, which
 * is built as time goes on, never changes what it has once said, and is monotone: equal or later
 * tick, equal or later ns.
 */
#ifndef XS_CLOCK_H
#define XS_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#define XS_HAVE_TSC 1
#else
#define XS_HAVE_TSC 0
#endif

static inline uint64_t xs_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* use_tsc is the run's choice (struct xs_control), the same in all of its processes. */
static inline uint64_t xs_tick(bool use_tsc)
{
#if XS_HAVE_TSC
	if (__builtin_expect(use_tsc, 1))
		return __builtin_ia32_rdtsc(); /* <x86intrin.h> would be 60,000 lines more */
#endif
	(void)use_tsc;
	return xs_clock_ns(CLOCK_MONOTONIC);
}

/* Does the kernel use the time stamp counter for its own clock? */
bool xs_clock_tsc_usable(void);

/* Clocks that a timeline can be built for. */
enum xs_clock { XS_CLOCK_MONOTONIC, XS_CLOCK_TSC, XS_CLOCK_RAW };

/* One reading of two clocks, `tick` in the middle of two readings of CLOCK_MONOTONIC. */
struct xs_clock_pair {
	uint64_t tick;
	uint64_t mono; /* ns */
};
struct xs_clock_pair xs_clock_pair(enum xs_clock clock);

/* ns after `ns`, `slope` is ns per tick as a fixed-point number with 32 fraction bits. */
struct xs_segment {
	uint64_t tick, ns, slope;
};

struct xs_timeline {
	enum xs_clock clock;
	struct xs_clock_pair first; /* where the timeline begins */
	int64_t offset;		    /* result = CLOCK_MONOTONIC + offset */
	uint64_t next;		    /* tick at which a new segment is due */
	uint64_t looked;	    /* no later tick has been converted; 0: not known */
	/* ns, largest disagreement with the kernel's clock found at a new segment */
	uint64_t max_error;
	struct xs_segment *segments;
	size_t count, room;
};

/* Starts at `first`; results are CLOCK_MONOTONIC + offset in ns. 0 or -ENOMEM. */
int xs_timeline_init(struct xs_timeline *line, enum xs_clock clock, struct xs_clock_pair first,
		     int64_t offset);
/*
 * A timeline that goes on as another one did, of which the last `count` segments are known; it
 * cannot be updated. 0 or -errno.
 */
int xs_timeline_restore(struct xs_timeline *line, enum xs_clock clock,
			const struct xs_segment *segments, size_t count, int64_t offset);
void xs_timeline_fini(struct xs_timeline *line);

/* To be called before ticks that were read just now are converted; cheap when no segment is due. */
void xs_timeline_update(struct xs_timeline *line);
/*
 * Nothing later than now has been converted, and nothing will be before the next update. However
 * long it is until that (a process that is stopped, or sleeps), the time between is then told by
 * both its ends instead of by what was known before it.
 */
void xs_timeline_looked(struct xs_timeline *line);

/*
 * Ticks from `from` on, `length` of them, that lie on one segment, and for which numbers of 64 bits
 * are enough.
 */
struct xs_stretch {
	uint64_t from, length, ns, slope;
};
/* The one from `tick` on. length 0: there is none. It is good until the timeline is updated. */
struct xs_stretch xs_timeline_stretch(const struct xs_timeline *line, uint64_t tick);

/* ns of a tick on it: the same as xs_timeline_ns() */
static inline uint64_t xs_stretch_ns(const struct xs_stretch *stretch, uint64_t after_from)
{
	return stretch->ns + (after_from * stretch->slope >> 32);
}

/* ns of a tick before the last segment. */
uint64_t xs_timeline_past_ns(const struct xs_timeline *line, uint64_t tick);

/* ns of a tick, any tick; exact integer arithmetic. */
static inline uint64_t xs_timeline_ns(const struct xs_timeline *line, uint64_t tick)
{
	const struct xs_segment *last = &line->segments[line->count - 1];

	if (__builtin_expect(tick < last->tick, 0))
		return xs_timeline_past_ns(line, tick);
	return last->ns + (uint64_t)(((unsigned __int128)(tick - last->tick) * last->slope) >> 32);
}

/* How many ticks `ns` are now, about. */
static inline uint64_t xs_timeline_ticks(const struct xs_timeline *line, uint32_t ns)
{
	uint64_t slope = line->segments[line->count - 1].slope;

	return slope ? ((uint64_t)ns << 32) / slope : ns;
}

#endif
