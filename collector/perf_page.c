#include "perf_page.h"

#include <linux/perf_event.h>
#include <stdatomic.h>

#define LOOKS 64u

/* ns since the page's times were written */
static uint64_t passed(const volatile struct perf_event_mmap_page *page, uint64_t ticks)
{
	uint64_t high, low;
	uint16_t shift = page->time_shift;

	if (page->cap_user_time_short)
		ticks = page->time_cycles + ((ticks - page->time_cycles) & page->time_mask);
	high = ticks >> shift;
	low = ticks & (((uint64_t)1 << shift) - 1);
	return page->time_offset + high * page->time_mult + (low * page->time_mult >> shift);
}

static bool look(const volatile struct perf_event_mmap_page *page,
		 const struct xs_perf_instructions *processor, struct xs_perf_count *ret)
{
	uint32_t number = page->index, unused;
	uint64_t count, time;

	ret->value = (uint64_t)page->offset;
	ret->enabled = page->time_enabled;
	ret->running = page->time_running;
	if (!page->cap_user_rdpmc || !page->pmc_width || page->pmc_width > 64)
		return false;
	if (page->cap_user_time && page->time_shift < 64) {
		time = passed(page, processor->ticks());
		ret->enabled += time;
		ret->running += number ? time : 0;
	}
	if (number) {
		/* the counter has that many bits, and its sign is that of the highest */
		unused = 64u - page->pmc_width;
		count = processor->counter(number - 1) << unused;
		ret->value += (uint64_t)((int64_t)count >> unused);
	}
	return true;
}

bool xs_perf_page_read(const struct perf_event_mmap_page *page,
		       const struct xs_perf_instructions *processor, struct xs_perf_count *ret)
{
	const volatile struct perf_event_mmap_page *volatile_page = page;
	uint32_t lock;
	bool may;

	for (uint32_t i = 0; i < LOOKS; i++) {
		lock = volatile_page->lock;
		atomic_signal_fence(memory_order_seq_cst); /* the kernel writes on this processor */
		may = look(volatile_page, processor, ret);
		atomic_signal_fence(memory_order_seq_cst);
		if (!(lock & 1) && volatile_page->lock == lock)
			return may;
	}
	return false;
}
