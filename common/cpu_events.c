#include "cpu_events.h"

#include <linux/perf_event.h>
#include <string.h>

#define CACHE(what, result)                                              \
	(PERF_COUNT_HW_CACHE_##what | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define HARD(what)  PERF_TYPE_HARDWARE, PERF_COUNT_HW_##what
#define SOFT(what)  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##what
#define CACHED(...) PERF_TYPE_HW_CACHE, CACHE(__VA_ARGS__)

static const struct {
	const char *name, *other;
	uint32_t type, config;
} events[XS_CPU_EVENTS] = {
	[XS_CPU_CYCLES] = { "cycles", "cpu-cycles", HARD(CPU_CYCLES) },
	[XS_CPU_INSTRUCTIONS] = { "instructions", NULL, HARD(INSTRUCTIONS) },
	[XS_CPU_CACHE_REFERENCES] = { "cache-references", NULL, HARD(CACHE_REFERENCES) },
	[XS_CPU_CACHE_MISSES] = { "cache-misses", NULL, HARD(CACHE_MISSES) },
	[XS_CPU_BRANCHES] = { "branches", "branch-instructions", HARD(BRANCH_INSTRUCTIONS) },
	[XS_CPU_BRANCH_MISSES] = { "branch-misses", NULL, HARD(BRANCH_MISSES) },
	[XS_CPU_LLC_LOADS] = { "LLC-loads", NULL, CACHED(LL, ACCESS) },
	[XS_CPU_LLC_LOAD_MISSES] = { "LLC-load-misses", NULL, CACHED(LL, MISS) },
	[XS_CPU_L1_LOADS] = { "L1-dcache-loads", NULL, CACHED(L1D, ACCESS) },
	[XS_CPU_L1_LOAD_MISSES] = { "L1-dcache-load-misses", NULL, CACHED(L1D, MISS) },
	[XS_CPU_TLB_LOAD_MISSES] = { "dTLB-load-misses", NULL, CACHED(DTLB, MISS) },
	[XS_CPU_TASK_CLOCK] = { "task-clock", NULL, SOFT(TASK_CLOCK) },
	[XS_CPU_PAGE_FAULTS] = { "page-faults", "faults", SOFT(PAGE_FAULTS) },
	[XS_CPU_MINOR_FAULTS] = { "minor-faults", NULL, SOFT(PAGE_FAULTS_MIN) },
	[XS_CPU_MAJOR_FAULTS] = { "major-faults", NULL, SOFT(PAGE_FAULTS_MAJ) },
	[XS_CPU_CONTEXT_SWITCHES] = { "context-switches", "cs", SOFT(CONTEXT_SWITCHES) },
	[XS_CPU_MIGRATIONS] = { "cpu-migrations", "migrations", SOFT(CPU_MIGRATIONS) },
};

const char *xs_cpu_event_name(uint32_t event)
{
	return events[event].name;
}

static bool is(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && !memcmp(name, text, length);
}

uint32_t xs_cpu_event_find(const char *name, size_t length)
{
	uint32_t i;

	for (i = 0; i < XS_CPU_EVENTS; i++)
		if (is(events[i].name, name, length) || is(events[i].other, name, length))
			break;
	return i;
}

void xs_cpu_event_attr(uint32_t event, struct perf_event_attr *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = sizeof(*ret);
	ret->type = events[event].type;
	ret->config = events[event].config;
	ret->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (XS_CPU_BIT(event) & XS_CPU_HARDWARE)
		ret->exclude_kernel = ret->exclude_hv = 1;
}
