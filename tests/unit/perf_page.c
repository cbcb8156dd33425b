/*
 * A counter read from its event's page: a made-up page, and functions in the place of the
 * instructions.
 */
#include <inttypes.h>
#include <linux/perf_event.h>

#include "perf_page.h"
#include "tap.h"

static struct perf_event_mmap_page page;
static uint64_t counter, ticks;
static uint32_t asked, looks, quiet_after;

static uint64_t read_counter(uint32_t number)
{
	asked = number;
	/* the kernel takes the counter away, and puts what it had into the page */
	if (looks++ < quiet_after) {
		page.lock += 2;
		page.offset += 1000;
	}
	return counter;
}

static uint64_t read_ticks(void)
{
	return ticks;
}

static const struct xs_perf_instructions processor = { read_counter, read_ticks };

static void make(uint32_t index, uint16_t width)
{
	memset(&page, 0, sizeof(page));
	page.cap_user_rdpmc = 1;
	page.index = index;
	page.pmc_width = width;
	page.offset = 5000;
	page.time_enabled = 700;
	page.time_running = 600;
	looks = quiet_after = 0;
	asked = UINT32_MAX;
}

static void expect(uint64_t value, uint64_t enabled, uint64_t running)
{
	struct xs_perf_count count = { 0, 0, 0 };

	if (!CHECK(xs_perf_page_read(&page, &processor, &count), "not read"))
		return;
	CHECK(count.value == value, "%" PRIu64 " and not %" PRIu64, count.value, value);
	CHECK(count.enabled == enabled && count.running == running, "%" PRIu64 ", %" PRIu64,
	      count.enabled, count.running);
}

static void values(void)
{
	make(4, 48);
	counter = 123;
	expect(5123, 700, 600);
	CHECK(asked == 3, "counter %u", asked);
	/* fixed counters have numbers from 1 << 30 on */
	make((1u << 30) + 1, 48);
	expect(5123, 700, 600);
	CHECK(asked == 1u << 30, "counter %u", asked);
}

/* The kernel lets counters begin below 0: what is above the width says nothing. */
static void signs(void)
{
	make(1, 48);
	counter = (UINT64_C(1) << 48) - 2000;
	expect(3000, 700, 600);
	make(1, 48);
	counter = UINT64_C(0xabcd000000000000) | 7;
	expect(5007, 700, 600);
	make(1, 64);
	counter = UINT64_MAX;
	expect(4999, 700, 600);
}

/* Not on the processor just now: the page has all. */
static void not_running(void)
{
	make(0, 48);
	page.cap_user_time = 1;
	page.time_mult = 1;
	ticks = 50;
	expect(5000, 750, 600);
	CHECK(asked == UINT32_MAX, "counter %u was read", asked);
}

static void times(void)
{
	make(2, 48);
	counter = 0;
	page.cap_user_time = 1;
	page.time_shift = 10;
	page.time_mult = 512; /* 2 ticks are 1 ns */
	page.time_offset = 30;
	ticks = 1024 * 3 + 100;
	expect(5000, 700 + 30 + 1536 + 50, 600 + 30 + 1536 + 50);
	/* the clock has so many bits */
	page.cap_user_time_short = 1;
	page.time_mask = 0xff;
	page.time_cycles = 0x1000;
	ticks = 0x50;
	expect(5000, 700 + 30 + (0x1050 >> 1), 600 + 30 + (0x1050 >> 1));
}

/* The kernel writes between the reading of both halves: all is read anew. */
static void changes(void)
{
	make(1, 48);
	counter = 1;
	quiet_after = 3;
	expect(8001, 700, 600);
	CHECK(looks == 4, "%u looks", looks);
}

static void no_end(void)
{
	struct xs_perf_count count;

	make(1, 48);
	quiet_after = UINT32_MAX;
	CHECK(!xs_perf_page_read(&page, &processor, &count), "what was read is torn");
	/* the kernel is in the middle of its writing */
	make(1, 48);
	page.lock = 1;
	CHECK(!xs_perf_page_read(&page, &processor, &count), "what was read is torn");
}

/* The instruction would end the program. */
static void forbidden(void)
{
	static const uint16_t widths[] = { 0, 65 };
	struct xs_perf_count count;

	make(1, 48);
	page.cap_user_rdpmc = 0;
	CHECK(!xs_perf_page_read(&page, &processor, &count), "read");
	CHECK(asked == UINT32_MAX, "the instruction was used");
	for (int i = 0; i < 2; i++) {
		make(1, widths[i]);
		CHECK(!xs_perf_page_read(&page, &processor, &count) && asked == UINT32_MAX,
		      "a counter of %u bits", widths[i]);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("values", values);
	tap_run("signs", signs);
	tap_run("not running", not_running);
	tap_run("times", times);
	tap_run("changes", changes);
	tap_run("no end", no_end);
	tap_run("forbidden", forbidden);
	return tap_done();
}
