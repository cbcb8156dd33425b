/*
 * Two events that say what an ITT task's begin and end say. (LTTng reads this file several times.)
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER xstrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_pair.h"

#if !defined(XSTRACE_BENCH_LTTNG_PAIR_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define XSTRACE_BENCH_LTTNG_PAIR_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(xstrace_bench, begin, LTTNG_UST_TP_ARGS(unsigned int, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned int, name, name)))

LTTNG_UST_TRACEPOINT_EVENT(xstrace_bench, end, LTTNG_UST_TP_ARGS(unsigned int, domain),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned int, domain,
								       domain)))

#endif

#include <lttng/tracepoint-event.h>
