/*
 * Arrows from device work to the calls that waited for it, whatever the order is in which their
 * records are read.
 */
#include "device_record.h"
#include "drained.h"

#define MOMENTS 10
#define ITEMS	5

/* Both clocks, again and again some 10 us later. */
static struct {
	uint64_t tick, ns;
} at[MOMENTS];

static struct xs_ring *ring[3]; /* of the threads that wait, and of the device's commands */

static void take_moments(void)
{
	for (uint32_t i = 0; i < MOMENTS; i++) {
		while (i && xs_clock_ns(CLOCK_MONOTONIC) < at[i - 1].ns + 10000)
			;
		do { /* until no other thread has the processor in between */
			at[i].ns = xs_clock_ns(CLOCK_MONOTONIC);
			at[i].tick = tick();
		} while (xs_clock_ns(CLOCK_MONOTONIC) > at[i].ns + 2000);
	}
}

static void put_command(uint32_t id, uint32_t submit, uint32_t start, uint32_t end)
{
	struct xs_device_record r = device_record(0, 0);

	r.id = id;
	r.event.tick = at[submit].tick;
	r.event.flags = XS_DEVICE_FLAG_IN_ORDER;
	r.host_ticks = 1;
	r.queued = r.submit = at[submit].ns + 1;
	r.start = at[start].ns;
	r.end = at[end].ns;
	CHECK(put_device(&dir, ring[2], &r, true), "room");
}

static void put_wait(uint32_t thread, uint32_t start, uint32_t end, enum xs_waited kind,
		     uint64_t until)
{
	struct xs_waited_record *record;

	put_call(&dir, ring[thread], at[start].tick, at[end].tick - at[start].tick, thread, 0, 0);
	record = xs_ring_reserve(rundir_producer(ring[thread]), &dir.launch.mailbox->bell,
				 sizeof(*record), XS_ROLE_OTHER);
	*record = (struct xs_waited_record){ .event = { at[start].tick, 1, XS_WAITED,
							sizeof(*record) / 8, XS_SOURCE_OPENCL,
							(uint8_t)kind },
					     .until = until };
	xs_ring_commit(rundir_producer(ring[thread]), sizeof(*record));
}

/*
 * The first two commands are complete when the first call has waited for the second one of them;
 * the second call has waited for all.
 */
static void put(uint32_t item, enum xs_waited kind)
{
	switch (item) {
	case 0:
		put_command(1, 0, 1, 2);
		break;
	case 1:
		put_command(2, 1, 2, 3);
		break;
	case 2:
		put_command(3, 5, 7, 8);
		break;
	case 3:
		put_wait(0, 2, 4, kind, kind == XS_WAITED_COMMAND ? 2 : at[2].ns);
		break;
	default:
		put_wait(1, 6, 9, XS_WAITED_SUBMITTED, at[6].tick);
		break;
	}
}

/* How many arrows of that name end between the two moments of the trace's time. */
static uint32_t arrows_in(const struct trace *trace, uint64_t start, uint64_t end)
{
	uint32_t found = 0;

	for (const char *s = trace->text; (s = strstr(s, "{\"ph\":\"f\"")); s++) {
		const char *stop = strchr(s, '\n'), *ts = strstr(s, "\"ts\":"),
			   *name = strstr(s, "\"wait\"");
		unsigned long long us = 0, ns = 0;

		if (!stop || !name || name > stop || sscanf(ts, "\"ts\":%llu.%3llu", &us, &ns) != 2)
			continue;
		found += us * 1000 + ns >= start && us * 1000 + ns <= end;
	}
	return found;
}

/* looks: each record is read in a look of its own. */
static void in_this_order(const uint32_t order[ITEMS], enum xs_waited kind, bool looks)
{
	struct xs_options options = { .chrome_call = true,
				      .chrome_kernel = true,
				      .ring_size = XS_RING_MIN };
	const struct slice *call[2] = { NULL, NULL };
	struct xs_process *process;
	struct trace trace;

	open_all(&options, 3);
	for (uint32_t i = 0; i < 3; i++) {
		ring[i] = rundir_ring(file, i);
		put_thread(&dir, ring[i], 77 + i, "t");
	}
	take_moments();
	process = adopt();
	for (uint32_t i = 0; i < ITEMS; i++) {
		put(order[i], kind);
		xs_timeline_update(&dir.run.clock);
		(void)xs_process_read(process, true);
		if (looks)
			xs_process_commit(process);
	}
	finish(process);
	trace = load();
	for (size_t i = 0; i < trace.count; i++)
		if (trace.slices[i].tid == 77 || trace.slices[i].tid == 78)
			call[trace.slices[i].tid - 77] = &trace.slices[i];
	if (CHECK(call[0] && call[1], "no calls in %s", trace.text))
		CHECK(arrows_in(&trace, call[0]->start, call[0]->end) == 2 &&
			      arrows_in(&trace, call[1]->start, call[1]->end) == 1,
		      "order %u%u%u%u%u, kind %u: %u, %u arrows", order[0], order[1], order[2],
		      order[3], order[4], kind, arrows_in(&trace, call[0]->start, call[0]->end),
		      arrows_in(&trace, call[1]->start, call[1]->end));
	drop(&trace);
	close_all();
}

/* A look reads what there is of each thread, so a call is read in one that is not before another's.
 */
static bool comes_before(const uint32_t order[ITEMS], uint32_t first, uint32_t second)
{
	uint32_t i = 0;

	while (order[i] != first && order[i] != second)
		i++;
	return order[i] == first;
}

static void each_order(uint32_t order[ITEMS], uint32_t done, enum xs_waited kind)
{
	if (done == ITEMS) {
		in_this_order(order, kind, false);
		if (comes_before(order, 3, 4))
			in_this_order(order, kind, true);
	}
	for (uint32_t i = done; i < ITEMS; i++) {
		uint32_t first = order[done];

		order[done] = order[i];
		order[i] = first;
		each_order(order, done + 1, kind);
		order[i] = order[done];
		order[done] = first;
	}
}

static void by_its_number(void)
{
	each_order((uint32_t[ITEMS]){ 0, 1, 2, 3, 4 }, 0, XS_WAITED_COMMAND);
}

static void by_its_start(void)
{
	each_order((uint32_t[ITEMS]){ 0, 1, 2, 3, 4 }, 0, XS_WAITED_STARTED);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("a command that is named by its number", by_its_number);
	tap_run("a command that is named by its start", by_its_start);
	return tap_done();
}
