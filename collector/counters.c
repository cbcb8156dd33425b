#include "counters.h"

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

/* A thread's counts; `known`: of which events. */
struct counts {
	uint32_t known;
	uint64_t enabled, running;
	uint64_t value[XS_CPU_EVENTS];
};

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
	fd = xs_sys_always(SYS_perf_event_open, &attr, SELF, ANY_CPU,
			   counters->count ? fds[0] : -1, PERF_FLAG_FD_CLOEXEC);
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

void xs_counters_open(struct xs_counters *counters)
{
	uint32_t wanted = xs_options_of_run()->cpu_events_of_tasks & XS_CPU_HARDWARE;
	int fds[XS_COUNTERS];
	bool all = true;

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

static void read_hardware(const struct xs_counters *counters, struct counts *ret)
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

void xs_counters_open(struct xs_counters *counters)
{
	xs_counters_close(counters);
}

static void read_hardware(const struct xs_counters *counters, struct counts *ret)
{
	(void)counters, (void)ret;
}

#endif

/* ---- the counts ---- */

#define OF_RUSAGE                                                          \
	(XS_CPU_BIT(XS_CPU_PAGE_FAULTS) | XS_CPU_BIT(XS_CPU_MINOR_FAULTS) | \
	 XS_CPU_BIT(XS_CPU_MAJOR_FAULTS) | XS_CPU_BIT(XS_CPU_CONTEXT_SWITCHES))

static void read_software(uint32_t wanted, struct counts *ret)
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

/* The hardware's last at a begin and first at an end: our own work is not the task's. */
static void read_counts(uint32_t wanted, bool begin, struct counts *ret)
{
	const struct xs_counters *own = xs_slot_counters(xs_tls.slot);

	ret->known = 0;
	ret->enabled = ret->running = 0;
	if (!begin)
		read_hardware(own, ret);
	read_software(wanted, ret);
	if (begin)
		read_hardware(own, ret);
	ret->known &= wanted;
}

/* ---- records ---- */

static void put(struct xs_cpu_record *record, uint32_t size, const struct counts *counts,
		uint32_t wanted, uint64_t tick)
{
	uint32_t at = 0;

	record->event = (struct xs_event){ .tick = tick,
					   .name = wanted & counts->known,
					   .kind = XS_CPU,
					   .words = (uint8_t)(size / 8),
					   .source = XS_SOURCE_ITT };
	record->enabled = counts->enabled;
	record->running = counts->running;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (counts->known >> event & 1)
			record->value[at++] = counts->value[event];
	/* the last word may be nobody's */
	while (sizeof(*record) + 8 * at < size)
		record->value[at++] = 0;
}

/* In one piece: what the ring needs for it is had before the counters are read. */
void xs_counted_begin(uint32_t name, const struct xs_id *ids)
{
	uint32_t wanted = xs_options_of_run()->cpu_events_of_tasks & XS_CPU_ALL;
	uint32_t before = XS_CPU_SIZE((uint32_t)__builtin_popcount(wanted)),
		 own = ids ? sizeof(struct xs_task_record) : sizeof(struct xs_event);
	char *record = xs_record_reserve(before + own, XS_ROLE_BEGIN);
	struct xs_task_record *task = (void *)(record + before);
	struct counts counts;

	if (!record)
		return;
	task->event.name = name;
	task->event.kind = ids ? XS_TASK : XS_BEGIN;
	task->event.words = (uint8_t)(own / 8);
	task->event.source = XS_SOURCE_ITT;
	task->event.flags = 0;
	if (ids) {
		task->id = ids[0];
		task->parent = ids[1];
	}
	task->event.tick = xs_tick(xs_use_tsc);
	read_counts(wanted, true, &counts);
	put((void *)record, before, &counts, wanted, task->event.tick);
	xs_record_end(before + own);
}

void xs_counted_end(uint32_t domain, uint64_t tick)
{
	uint32_t wanted = xs_options_of_run()->cpu_events_of_tasks & XS_CPU_ALL;
	uint32_t before = XS_CPU_SIZE((uint32_t)__builtin_popcount(wanted));
	struct counts counts;
	struct xs_event *end;
	char *record;

	read_counts(wanted, false, &counts);
	record = xs_record_reserve(before + sizeof(*end), XS_ROLE_END);
	if (!record)
		return;
	end = (void *)(record + before);
	*end = (struct xs_event){ .tick = tick,
				  .name = domain,
				  .kind = XS_END,
				  .words = sizeof(*end) / 8,
				  .source = XS_SOURCE_ITT };
	put((void *)record, before, &counts, wanted, tick);
	xs_record_end(before + sizeof(*end));
}
