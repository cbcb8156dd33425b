/*
 * The table of sinks: what is made of what was traced. A row for each, in the order in which they
 * are told, and closed: its number, and its functions (struct xs_sink xs_<name>_sink, sink.h), in a
 * file of its own that no other file names.
 */
#ifndef XS_SINKS_H
#define XS_SINKS_H

#include "traced.h"

#define XS_SINKS(SINK)                             \
	SINK(XS_SINK_CHROME, chrome)               \
	SINK(XS_SINK_CALL_LOG, call_log)           \
	SINK(XS_SINK_TIMELINE, timeline)           \
	SINK(XS_SINK_SUMMARY, summary)             \
	SINK(XS_SINK_STACKS, stacks)               \
	SINK(XS_SINK_EVENTS, events)               \
	SINK(XS_SINK_METRICS, metrics)             \
	SINK(XS_SINK_SAMPLES, samples)             \
	SINK(XS_SINK_KERNEL_STALLS, kernel_stalls) \
	SINK(XS_SINK_TASK_COUNTS, task_counts)     \
	SINK(XS_SINK_PROCESSORS, processors)       \
	SINK(XS_SINK_OPENMP, openmp)               \
	SINK(XS_SINK_PYTHON, python)               \
	SINK(XS_SINK_LIVE, live)

#define XS_NUMBER_OF(number, name) number,
enum xs_sink_number { XS_SINKS(XS_NUMBER_OF) XS_SINK_COUNT };
#undef XS_NUMBER_OF

_Static_assert(XS_SINK_COUNT <= XS_SINKS_MAX, "a process has room for the state of each");

#endif
