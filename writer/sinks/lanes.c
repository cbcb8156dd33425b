/*
 * Sub-tracks for work that overlaps: viewers drop slices of one track that overlap without nesting.
 */
#include <stdlib.h>
#include <string.h>

#include "lanes.h"

#define MEMORY	  8192u /* intervals remembered per lane */
#define LOOK_BACK 1024u /* of these, looked at for crossing */
#define DEPTH_MAX 100u	/* of folded slices: Perfetto leaves out what is deeper than 255 */
#define LANES_MAX 1024u /* each of them is looked at for what overlaps all before it */
/* of all lanes: beyond, each remembers no more than it does by then */
#define BYTES_MAX (256u << 20)

static size_t all_bytes;

/*
 * Interval number i. Where the last one was put there is a gap, since the next one will mostly be
 * put near it.
 */
static inline struct xs_interval *interval(const struct xs_lane *lane, uint32_t i)
{
	return &lane->taken[i < lane->gap ? i : i + lane->room - lane->count];
}

static void move_gap(struct xs_lane *lane, uint32_t to)
{
	uint32_t wide = lane->room - lane->count;
	struct xs_interval *gap, *at;

	if (to == lane->gap) /* also of a lane that has no memory yet */
		return;
	gap = lane->taken + lane->gap;
	at = lane->taken + to;
	if (to < lane->gap)
		memmove(at + wide, at, (lane->gap - to) * sizeof(*at));
	else
		memmove(gap, gap + wide, (to - lane->gap) * sizeof(*at));
	lane->gap = to;
}

/* How many begin before `end`; `at` do, and mostly no more. */
static uint32_t begun(const struct xs_lane *lane, uint32_t at, uint64_t end)
{
	uint32_t low = at, high = at;

	for (uint32_t step = 1; high < lane->count && interval(lane, high)->start < end;
	     step *= 2) {
		low = high + 1;
		high = lane->count - high > step ? high + step : lane->count;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (interval(lane, middle)->start < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Does [start, end] overlap an interval of the lane otherwise than by nesting? `at`: how many begin
 * before it.
 */
static bool crosses(const struct xs_lane *lane, uint32_t at, uint64_t start, uint64_t end,
		    bool folded)
{
	uint32_t first, depth = 0;

	if (start >= lane->latest)
		return false;
	first = begun(lane, at, end);
	/* what is not looked at may cross; and a lane on which too many are open is left at once */
	if (first > LOOK_BACK && interval(lane, first - LOOK_BACK - 1)->reach > start)
		return true;
	for (uint32_t i = first; i && interval(lane, i - 1)->reach > start; i--) {
		const struct xs_interval *other = interval(lane, i - 1);
		bool apart = other->end <= start || other->start >= end;
		bool inside = other->start >= start && other->end <= end,
		     around = other->start <= start && other->end >= end;

		if (!apart && !inside && !around)
			return true;
		/* of two that begin together the longer one must come first in the file */
		if (folded && !apart &&
		    (++depth >= DEPTH_MAX || (!around && other->start == start)))
			return true;
	}
	return false;
}

/* How many of the lane's intervals begin at or before `start`: mostly all, or all but a few. */
static uint32_t place(const struct xs_lane *lane, uint64_t start)
{
	uint32_t low = lane->count, high = low;

	for (uint32_t step = 1; low && interval(lane, low - 1)->start > start; step *= 2) {
		high = low;
		low = low > step ? low - step : 0;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (interval(lane, middle)->start > start)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Room for one more, which will be at `at`; the older half is forgotten where the lane may not
 * grow. Returns where it will be then; UINT32_MAX: no memory.
 */
static uint32_t make_room(struct xs_lane *lane, uint32_t at)
{
	uint32_t room = lane->room ? 2 * lane->room : 64, half = lane->count / 2;
	struct xs_interval *grown;

	if (lane->count < lane->room)
		return at;
	move_gap(lane, lane->count);
	if (lane->count == MEMORY || (lane->room && all_bytes >= BYTES_MAX)) {
		lane->forgotten = interval(lane, half - 1)->reach;
		memmove(lane->taken, lane->taken + half,
			(lane->count - half) * sizeof(*lane->taken));
		lane->count -= half;
		lane->gap = lane->count;
		return at > half ? at - half : 0;
	}
	grown = realloc(lane->taken, room * sizeof(*grown));
	if (!grown)
		return UINT32_MAX;
	all_bytes += (room - lane->room) * sizeof(*grown);
	lane->taken = grown;
	lane->room = room;
	return at;
}

static bool take(struct xs_lane *lane, uint64_t start, uint64_t end, enum xs_fit fit)
{
	uint32_t at;

	if (start < lane->forgotten && fit != XS_FIT_TRUSTED)
		return false;
	at = place(lane, start);
	if (fit == XS_FIT_NESTING || fit == XS_FIT_FOLDED
		    ? crosses(lane, at, start, end, fit == XS_FIT_FOLDED)
		    : (at && interval(lane, at - 1)->end > start) ||
			      (at < lane->count && interval(lane, at)->start < end))
		return false;
	at = make_room(lane, at);
	if (at == UINT32_MAX)
		return false;
	move_gap(lane, at);
	lane->taken[lane->gap++] = (struct xs_interval){ start, end, end };
	if (end > lane->latest)
		lane->latest = end;
	lane->count++;
	if (at && interval(lane, at - 1)->reach > end)
		interval(lane, at)->reach = interval(lane, at - 1)->reach;
	while (++at < lane->count && interval(lane, at)->reach < end)
		interval(lane, at)->reach = end;
	return true;
}

static bool is_taken(const struct xs_lane *lane, uint64_t time)
{
	uint32_t at = place(lane, time);

	return time < lane->forgotten || (at && interval(lane, at - 1)->end > time);
}

/*
 * Nothing fits on any lane that was not free just before `end`: a program may leave thousands open,
 * and each must not be a walk over all lanes.
 */
static void note_crowd(struct xs_lanes *lanes, uint64_t end)
{
	for (uint32_t i = 0; i < lanes->count; i++)
		if (!end || !is_taken(&lanes->lane[i], end - 1))
			return;
	lanes->crowded = end - 1;
}

struct xs_lane *xs_lanes_take(struct xs_lanes *lanes, uint64_t start, uint64_t end, enum xs_fit fit)
{
	struct xs_lane *grown;

	if (fit == XS_FIT_APART && lanes->crowded && start <= lanes->crowded &&
	    lanes->crowded < end)
		return NULL;
	/* where thousands overlap, most lanes are full: the first one is tried when it is free */
	if (fit == XS_FIT_FOLDED && lanes->count && lanes->lane[0].latest > start &&
	    take(&lanes->lane[lanes->last], start, end, fit))
		return &lanes->lane[lanes->last];
	for (uint32_t i = 0; i < lanes->count; i++)
		if (take(&lanes->lane[i], start, end, fit)) {
			lanes->last = i;
			return &lanes->lane[i];
		}
	grown = lanes->count < LANES_MAX ? realloc(lanes->lane, (lanes->count + 1) * sizeof(*grown))
					 : NULL;
	if (!grown) {
		if (lanes->count == LANES_MAX && fit == XS_FIT_APART)
			note_crowd(lanes, end);
		return NULL;
	}
	lanes->lane = grown;
	lanes->last = lanes->count;
	grown += lanes->count++;
	memset(grown, 0, sizeof(*grown));
	(void)take(grown, start, end, XS_FIT_TRUSTED);
	return grown;
}

void xs_lanes_fini(struct xs_lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->count; i++) {
		all_bytes -= lanes->lane[i].room * sizeof(struct xs_interval);
		free(lanes->lane[i].taken);
	}
	free(lanes->lane);
	memset(lanes, 0, sizeof(*lanes));
}
