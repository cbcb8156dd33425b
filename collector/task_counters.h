/*
 * What processors have counted for a task, on its own thread (--cpu-metrics).
 *
 * A program may close all descriptors and get our number for a file of its own, so a thread keeps
 * none: what the kernel counts comes by getrusage() and a clock, what the hardware counts by an
 * instruction, from a page of the event that stays mapped while its descriptor is closed at once.
 * The thread gets such pages with its ring, and gives them back with it.
 *
 * Tasks that are counted take the long way (XS_GATE_SLOW), so all others are as they were.
 */
#ifndef XS_TASK_COUNTERS_H
#define XS_TASK_COUNTERS_H

#include "collector.h"
#include "task_record.h"

/* Do tasks of this process, which has joined, have such counts? */
static inline bool xs_counting(void)
{
	return __builtin_expect(xs_options_of_run()->cpu_events_of_tasks != 0, 0);
}

/*
 * Records a task's begin, or its end at `tick`, with what the thread has counted by then. ids: the
 * task's and its parent's; NULL: it has none. `domain`: its id.
 */
void xs_counted_begin(uint32_t name, const struct xs_id *ids);
void xs_counted_end(uint32_t domain, uint64_t tick);

#endif
