/*
 * When device work took place, on the time line of the trace.
 *
 * Two ways. OpenCL tells ns of a clock that it does not name: it is recognised, or kept within
 * bounds that every command gives. Level Zero tells ticks of a clock that the traced process has
 * looked at now and then (struct xs_device_pairs): from these looks a chain of straight segments is
 * made, continuous and never changed once used, as the host's own timeline.
 */
#include <stdlib.h>
#include <string.h>

#include "device_clock.h"
#include "device_record.h"

/* Clocks agree better than that; what began so long before it was submitted did not. */
#define DISAGREE_NS 100000u

struct xs_device_clock {
	/* one that tells ns */
	bool known;
	int candidate;	/* enum in device_clock.c */
	int64_t offset; /* unknown clock: result = device ns + offset */
	/* one that counts */
	uint32_t looks, bits, kernel_bits; /* looks: at it so far */
	uint64_t frequency;
	uint64_t nominal; /* ns of a tick, 32 fraction bits */
	uint64_t first_tick, first_ns, first_width;
	struct xs_segment *segments;
	size_t count, room;
};

/* NULL: no memory. */
static struct xs_device_clock *clocks_of(struct xs_process *process)
{
	if (!process->device_clocks)
		process->device_clocks = calloc(XS_DEVICES, sizeof(*process->device_clocks));
	return process->device_clocks;
}

static uint64_t ns_of(const struct xs_process *process, uint64_t tick)
{
	return xs_timeline_ns(&process->run->clock, tick);
}

/* ---- a clock without a name ---- */

enum { CLOCK_IS_MONO, CLOCK_IS_RAW, CLOCK_CANDIDATES };

static uint64_t device_ns(const struct xs_process *process, const struct xs_device_clock *clock,
			  uint64_t ns)
{
	switch (clock->candidate) {
	case CLOCK_IS_MONO:
		return ns + (uint64_t)process->mono_offset;
	case CLOCK_IS_RAW:
		return xs_timeline_ns(&process->run->raw, ns);
	default:
		return ns + (uint64_t)clock->offset;
	}
}

/*
 * What every command tells: its "queued" time lies between the begin and the end of the call that
 * enqueued it. A clock that always agrees with one of the kernel's is that clock; otherwise the
 * offset is kept within these bounds, which also follows its drift.
 */
static void follow(const struct xs_process *process, struct xs_device_clock *clock, uint64_t queued,
		   uint64_t before, uint64_t after)
{
	const uint64_t slack = 5000;

	for (; clock->candidate < CLOCK_CANDIDATES; clock->candidate++) {
		uint64_t ns = device_ns(process, clock, queued);

		if (ns + slack >= before && ns <= after + slack)
			return;
	}
	if (!clock->known)
		clock->offset = (int64_t)(before - queued);
	clock->known = true;
	if (queued + (uint64_t)clock->offset < before)
		clock->offset = (int64_t)(before - queued);
	else if (queued + (uint64_t)clock->offset > after)
		clock->offset = (int64_t)(after - queued);
}

/*
 * Two clocks agree to some hundred ns at best. Its length is the device's own, so all of it moves.
 */
static void not_before(struct xs_work *work, uint64_t ns)
{
	if (work->start >= ns)
		return;
	work->end += ns - work->start;
	work->start = ns;
}

/* Its call returned when it had ended, so far as the clocks agree: it lies in that call. */
static void within_call(struct xs_work *work, uint64_t from)
{
	uint64_t late = work->end > work->host_end ? work->end - work->host_end : 0;

	if (late > DISAGREE_NS)
		return;
	if (late > work->start - from)
		late = work->start - from;
	work->start -= late;
	work->end -= late;
}

static void named_times(struct xs_process *process, struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_device_clock *clock = &process->device_clocks[record->device % XS_DEVICES];

	follow(process, clock, record->queued, work->host_start, work->host_end);
	work->queued = device_ns(process, clock, record->queued);
	work->submit = device_ns(process, clock, record->submit);
	work->start = device_ns(process, clock, record->start);
	work->end = device_ns(process, clock, record->end);
	/* a runtime's own times need not be in order */
	if (work->submit < work->queued)
		work->submit = work->queued;
	if (work->start < work->submit)
		work->start = work->submit;
	if (work->end < work->start)
		work->end = work->start;
	not_before(work, work->host_start);
}

/* ---- a clock that counts ---- */

static uint64_t mask_of(uint32_t bits)
{
	return bits && bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
}

/* The first value from `low` on that has the bits of `value`. */
static uint64_t unwrapped(uint64_t low, uint64_t value, uint64_t mask)
{
	return low + ((value - low) & mask);
}

static uint64_t on_segment(const struct xs_segment *s, uint64_t tick)
{
	if (tick >= s->tick)
		return s->ns + (uint64_t)(((unsigned __int128)(tick - s->tick) * s->slope) >> 32);
	return s->ns -
	       (uint64_t)((((unsigned __int128)(s->tick - tick) * s->slope) + 0xffffffffu) >> 32);
}

static const struct xs_segment *segment_of(const struct xs_device_clock *clock, uint64_t value,
					   bool by_ns)
{
	size_t low = 0, high = clock->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if ((by_ns ? clock->segments[middle].ns : clock->segments[middle].tick) <= value)
			low = middle;
		else
			high = middle;
	}
	return &clock->segments[low];
}

static uint64_t tick_of(const struct xs_device_clock *clock, uint64_t ns)
{
	const struct xs_segment *s = segment_of(clock, ns, true);

	return ns >= s->ns
		       ? s->tick + (uint64_t)(((unsigned __int128)(ns - s->ns) << 32) / s->slope)
		       : s->tick - (uint64_t)(((unsigned __int128)(s->ns - ns) << 32) / s->slope);
}

#define SEGMENTS_MAX 65536u

static void append(struct xs_device_clock *clock, struct xs_segment segment)
{
	if (clock->count == SEGMENTS_MAX) { /* the older half is about what was shown long ago */
		clock->count /= 2;
		memmove(clock->segments, clock->segments + clock->count,
			clock->count * sizeof(*clock->segments));
	}
	if (clock->count == clock->room) {
		size_t room = clock->room ? 2 * clock->room : 16;
		struct xs_segment *grown = realloc(clock->segments, room * sizeof(*grown));

		if (!grown)
			return; /* the last segment goes on */
		clock->segments = grown;
		clock->room = room;
	}
	clock->segments[clock->count++] = segment;
}

/*
 * One more look at the clock. Its own frequency counts until looks that lie far enough apart prove
 * another one: what a look is uncertain by (the time that it took) must not become drift.
 */
static void look(struct xs_process *process, struct xs_device_clock *clock,
		 const struct xs_device_pair *pair)
{
	uint64_t before = ns_of(process, pair->before), after = ns_of(process, pair->after);
	uint64_t host = before + (after - before) / 2,
		 width = (after - before) / 2 + (clock->nominal >> 32) + 1;
	struct xs_segment fresh = { .slope = clock->nominal };
	uint64_t elapsed, ticks, horizon, measured, bound;
	int64_t error;

	if (after < before)
		return;
	if (!clock->count) {
		clock->first_tick = fresh.tick = pair->device & mask_of(clock->bits);
		clock->first_ns = fresh.ns = host;
		clock->first_width = width;
		append(clock, fresh);
		return;
	}
	fresh.tick = tick_of(clock, host);
	/* by a sixteenth of its period it may be behind what is expected */
	fresh.tick = clock->bits && clock->bits < 64
			     ? unwrapped(fresh.tick - (mask_of(clock->bits) >> 4), pair->device,
					 mask_of(clock->bits))
			     : pair->device;
	if (fresh.tick <= clock->segments[clock->count - 1].tick || host <= clock->first_ns)
		return;
	ticks = fresh.tick - clock->first_tick;
	elapsed = host - clock->first_ns;
	if (elapsed >> 62)
		return;
	measured = (uint64_t)(((unsigned __int128)elapsed << 32) / ticks);
	bound = (uint64_t)(((unsigned __int128)(width + clock->first_width) << 32) / ticks);
	if (measured > clock->nominal + bound || measured + bound < clock->nominal)
		fresh.slope = measured;
	fresh.ns = on_segment(&clock->segments[clock->count - 1], fresh.tick);
	horizon = elapsed < 1000000000u ? elapsed + 1 : 1000000000u;
	error = (int64_t)(host - fresh.ns);
	/* only what is more than uncertainty, and never so much that time would stand still */
	error = error > (int64_t)width	  ? error - (int64_t)width
		: error < -(int64_t)width ? error + (int64_t)width
					  : 0;
	if (error > (int64_t)horizon / 2)
		error = (int64_t)horizon / 2;
	if (error < -(int64_t)horizon / 2)
		error = -(int64_t)horizon / 2;
	if (fresh.slope > UINT64_MAX / 4)
		return;
	fresh.slope =
		(uint64_t)((unsigned __int128)fresh.slope * (horizon + (uint64_t)error) / horizon);
	if (fresh.slope)
		append(clock, fresh);
}

void xs_device_clocks_update(struct xs_process *process)
{
	struct xs_process_clocks *clocks =
		process->first.map && clocks_of(process) ? xs_clocks_of(process->first.map) : NULL;

	for (uint32_t i = 0; clocks && i < XS_CLOCKS; i++) {
		const struct xs_device_pairs *pairs = &clocks->device[i];
		struct xs_device_clock *clock = &process->device_clocks[i];
		/* pairs with the release in the collector */
		uint32_t count = atomic_load_explicit(&pairs->count, memory_order_acquire);

		/*
		 * devices are numbered in the order in which they are seen; those that are sampled,
		 * as --device-list does
		 */
		if (!count && !xs_process_is(process, process->run->control->metrics_pid))
			break;
		if (count == clock->looks)
			continue;
		if (!clock->nominal) {
			uint64_t frequency = __atomic_load_n(&pairs->frequency, __ATOMIC_RELAXED);

			/* also what a hostile process may have written */
			if (!frequency || frequency > 1000000000000u)
				continue;
			clock->nominal =
				(uint64_t)(((unsigned __int128)1000000000u << 32) / frequency);
			clock->frequency = frequency;
			clock->bits = pairs->bits;
			clock->kernel_bits = pairs->kernel_bits;
		}
		if (count - clock->looks > XS_DEVICE_PAIRS)
			clock->looks = count - XS_DEVICE_PAIRS; /* the oldest are gone */
		for (; clock->looks != count; clock->looks++) {
			struct xs_device_pair pair = pairs->last[clock->looks % XS_DEVICE_PAIRS];

			look(process, clock, &pair);
		}
	}
}

/*
 * A program may use an event again that it has not reset. Then its times are those of a former use,
 * or the beginning of one use and the end of another.
 */
static bool is_of_former_use(const struct xs_process *process, const struct xs_work *work,
			     uint64_t length, uint64_t mask)
{
	return length > mask >> 1 || work->end > process->horizon ||
	       (work->start < work->submit && work->submit - work->start > DISAGREE_NS);
}

static bool counted_times(struct xs_process *process, struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_device_clock *clock = &process->device_clocks[record->device % XS_DEVICES];
	uint64_t mask, start, end, length;
	const struct xs_segment *segment;

	xs_device_clocks_update(process);
	if (!clock->count)
		return false;
	mask = mask_of(clock->kernel_bits);
	work->queued = work->host_start;
	work->submit = ns_of(process, record->submit);
	if (work->submit < work->queued)
		work->submit = work->queued;
	start = tick_of(clock, work->submit);
	/*
	 * by a sixteenth of the period the clocks may disagree; a command that waits longer than
	 * the rest of it is shown too early
	 */
	if (mask != UINT64_MAX)
		start = unwrapped(start - (mask >> 4), record->start, mask);
	else
		start = record->start;
	end = start + ((record->end - record->start) & mask);
	segment = segment_of(clock, start, false);
	work->start = on_segment(segment, start);
	work->end = on_segment(segment_of(clock, end, false), end);
	/* both ends are rounded; the length is to be that of its ticks */
	length = (uint64_t)(((unsigned __int128)(end - start) * segment->slope) >> 32);
	if (work->end == work->start + length + 1)
		work->end--;
	if (work->end < work->start)
		work->end = work->start;
	if (is_of_former_use(process, work, (record->end - record->start) & mask, mask))
		return false;
	not_before(work, work->submit);
	if (record->event.flags & XS_DEVICE_FLAG_WAITED)
		within_call(work, work->submit);
	return true;
}

bool xs_device_times(struct xs_process *process, struct xs_work *work)
{
	if (!clocks_of(process))
		return false;
	if (work->record->event.flags & XS_DEVICE_FLAG_TICKS)
		return counted_times(process, work);
	named_times(process, work);
	return true;
}

bool xs_device_moment(struct xs_process *process, uint32_t device, uint64_t ticks, uint64_t *ret_ns)
{
	const struct xs_device_clock *clock;

	if (!clocks_of(process))
		return false;
	clock = &process->device_clocks[device % XS_DEVICES];
	xs_device_clocks_update(process);
	if (!clock->count)
		return false;
	*ret_ns = on_segment(segment_of(clock, ticks, false), ticks);
	return true;
}

uint32_t xs_device_bits(const struct xs_process *process, uint32_t device)
{
	return process->device_clocks ? process->device_clocks[device % XS_DEVICES].kernel_bits : 0;
}

uint64_t xs_device_frequency(const struct xs_process *process, uint32_t device)
{
	return process->device_clocks ? process->device_clocks[device % XS_DEVICES].frequency : 0;
}

void xs_device_clocks_fini(struct xs_process *process)
{
	for (uint32_t i = 0; process->device_clocks && i < XS_DEVICES; i++)
		free(process->device_clocks[i].segments);
	free(process->device_clocks);
	process->device_clocks = NULL;
}
