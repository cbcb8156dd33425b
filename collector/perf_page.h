/*
 * Reads a hardware counter without a system call, from the page of its event that the kernel keeps
 * for this (struct perf_event_mmap_page in linux/perf_event.h, whose comments say how).
 */
#ifndef XS_PERF_PAGE_H
#define XS_PERF_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct perf_event_mmap_page;

struct xs_perf_count {
	uint64_t value;
	/* ns: for how long it was to count, and did; others may have wanted the counters, too */
	uint64_t enabled, running;
};

/* What the processor is asked for; a test has others. */
struct xs_perf_instructions {
	uint64_t (*counter)(uint32_t number);
	uint64_t (*ticks)(void); /* the time stamp counter */
};

/*
 * False: the page does not allow it, or the kernel was writing at each of many looks. At once
 * before the instruction another thread may be switched to; the kernel tells by `lock`.
 */
bool xs_perf_page_read(const struct perf_event_mmap_page *page,
		       const struct xs_perf_instructions *processor, struct xs_perf_count *ret);

#endif
