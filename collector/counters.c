/*
 * The counters of a thread: the pages of its events, and what has been counted.
 */

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "cpu_events.h"
#include "perf_page.h"
#include "self.h"
#include "sys.h"

#define SELF	0
#define ANY_CPU -1

/* ---- the pages of a thread ---- */

void xs_counters_close(struct xs_counters *counters)
{
	/* what a sealed process cannot undo stays, and is nobody's */
	for (uint32_t i = 0; i < counters->count; i++)
		(void)xs_sys(SYS_munmap, counters->of[i].page, XS_PAGE);
	counters->count = 0;
}

#if defined(__x86_64__)

/* The event counts as long as its page is mapped. False: it is not to be had. */
static bool open_one(struct xs_counters *counters, uint32_t event, int *fds)
{
	struct perf_event_attr attr;
	void *page;
	long fd;

	xs_cpu_event_attr(event, &attr);
	/* one group: the hardware counts all of them at the same times */
	fd = xs_sys_always(SYS_perf_event_open, &attr, SELF, ANY_CPU, counters->count ? fds[0] : -1,
			   PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	page = (void *)xs_sys_always(SYS_mmap, NULL, XS_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if ((uintptr_t)page >= (uintptr_t)-XS_PAGE) {
		(void)xs_sys_always(SYS_close, fd);
		return false;
	}
	fds[counters->count] = (int)fd;
	counters->of[counters->count].event = event;
	counters->of[counters->count++].page = page;
	return true;
}

void xs_counters_open(struct xs_counters *counters, uint32_t wanted)
{
	int fds[XS_COUNTERS];
	bool all = true;

	wanted &= XS_CPU_HARDWARE;
	xs_counters_close(counters); /* of a thread that has ended without a word */
	if (!wanted || !xs_sys_begin()) {
		if (wanted)
			xs_sys_end();
		return;
	}
	for (uint32_t event = 0; wanted >> event && all && counters->count < XS_COUNTERS; event++)
		if (wanted >> event & 1)
			all = open_one(counters, event, fds);
	for (uint32_t i = 0; i < counters->count; i++)
		(void)xs_sys_always(SYS_close, fds[i]);
	xs_sys_end();
	if (!all)
		xs_counters_close(counters);
}

static uint64_t read_counter(uint32_t number)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static uint64_t read_ticks(void)
{
	return xs_tick(true);
}

static void read_hardware(const struct xs_counters *counters, struct xs_counts *ret)
{
	static const struct xs_perf_instructions processor = { read_counter, read_ticks };
	struct xs_perf_count count;

	for (uint32_t i = 0; i < counters->count; i++) {
		if (!xs_perf_page_read(counters->of[i].page, &processor, &count))
			continue;
		if (!i) {
			ret->enabled = count.enabled;
			ret->running = count.running;
		}
		ret->known |= XS_CPU_BIT(counters->of[i].event);
		ret->value[counters->of[i].event] = count.value;
	}
}

#else

void xs_counters_open(struct xs_counters *counters, uint32_t wanted)
{
	(void)wanted;
	xs_counters_close(counters);
}

static void read_hardware(const struct xs_counters *counters, struct xs_counts *ret)
{
	(void)counters, (void)ret;
}

#endif

/* ---- the counts ---- */

#define OF_RUSAGE                                                           \
	(XS_CPU_BIT(XS_CPU_PAGE_FAULTS) | XS_CPU_BIT(XS_CPU_MINOR_FAULTS) | \
	 XS_CPU_BIT(XS_CPU_MAJOR_FAULTS) | XS_CPU_BIT(XS_CPU_CONTEXT_SWITCHES))

static void read_software(uint32_t wanted, struct xs_counts *ret)
{
	struct rusage usage;
	struct timespec time;

	if (wanted & OF_RUSAGE && !xs_sys(SYS_getrusage, RUSAGE_THREAD, &usage)) {
		ret->known |= OF_RUSAGE;
		ret->value[XS_CPU_MINOR_FAULTS] = (uint64_t)usage.ru_minflt;
		ret->value[XS_CPU_MAJOR_FAULTS] = (uint64_t)usage.ru_majflt;
		ret->value[XS_CPU_PAGE_FAULTS] = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
		ret->value[XS_CPU_CONTEXT_SWITCHES] = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	}
	if (wanted & XS_CPU_BIT(XS_CPU_TASK_CLOCK) &&
	    !xs_sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time)) {
		ret->known |= XS_CPU_BIT(XS_CPU_TASK_CLOCK);
		ret->value[XS_CPU_TASK_CLOCK] =
			(uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	}
}

void xs_counters_read(const struct xs_counters *counters, uint32_t wanted, bool begin,
		      struct xs_counts *ret)
{
	ret->known = 0;
	ret->enabled = ret->running = 0;
	if (!begin)
		read_hardware(counters, ret);
	read_software(wanted, ret);
	if (begin)
		read_hardware(counters, ret);
	ret->known &= wanted;
}
