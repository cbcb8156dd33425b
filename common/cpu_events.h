/*
 * What processors count, by the names that perf(1) has for it (--cpu-metrics). An event's number is
 * that of its bit in masks and records.
 */
#ifndef XS_CPU_EVENTS_H
#define XS_CPU_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xs_cpu_event {
	XS_CPU_CYCLES,
	XS_CPU_INSTRUCTIONS,
	XS_CPU_CACHE_REFERENCES,
	XS_CPU_CACHE_MISSES,
	XS_CPU_BRANCHES,
	XS_CPU_BRANCH_MISSES,
	XS_CPU_LLC_LOADS,
	XS_CPU_LLC_LOAD_MISSES,
	XS_CPU_L1_LOADS,
	XS_CPU_L1_LOAD_MISSES,
	XS_CPU_TLB_LOAD_MISSES,
	XS_CPU_TASK_CLOCK, /* from here on the kernel counts; ns */
	XS_CPU_PAGE_FAULTS,
	XS_CPU_MINOR_FAULTS,
	XS_CPU_MAJOR_FAULTS,
	XS_CPU_CONTEXT_SWITCHES,
	XS_CPU_MIGRATIONS,
	XS_CPU_EVENTS,
};

#define XS_CPU_BIT(event) (1u << (event))
#define XS_CPU_ALL	  (XS_CPU_BIT(XS_CPU_EVENTS) - 1)
#define XS_CPU_HARDWARE	  (XS_CPU_BIT(XS_CPU_TASK_CLOCK) - 1)
/* What is counted where no event is named. */
#define XS_CPU_DEFAULT                                                 \
	(XS_CPU_BIT(XS_CPU_CYCLES) | XS_CPU_BIT(XS_CPU_INSTRUCTIONS) | \
	 XS_CPU_BIT(XS_CPU_CACHE_MISSES))
#define XS_CPU_DEFAULT_SOFTWARE                                           \
	(XS_CPU_BIT(XS_CPU_TASK_CLOCK) | XS_CPU_BIT(XS_CPU_PAGE_FAULTS) | \
	 XS_CPU_BIT(XS_CPU_CONTEXT_SWITCHES) | XS_CPU_BIT(XS_CPU_MIGRATIONS))
/* The kernel does not tell a thread of these without a descriptor. */
#define XS_CPU_NOT_OF_TASKS XS_CPU_BIT(XS_CPU_MIGRATIONS)

struct perf_event_attr;

const char *xs_cpu_event_name(uint32_t event);
/* The event of this name, or of one of its other names; XS_CPU_EVENTS: there is none. */
uint32_t xs_cpu_event_find(const char *name, size_t length);
/*
 * How it is counted: of programs, not of the kernel for them, which is what users may see by
 * default. Of events of the kernel all is counted.
 */
void xs_cpu_event_attr(uint32_t event, struct perf_event_attr *ret);

#endif
