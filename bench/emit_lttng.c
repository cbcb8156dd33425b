/*
 * The same pair as two events of LTTng-UST.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_pair.h"

#include "emit.h"

void emit_init(void)
{
}

void emit_pairs(long count)
{
	for (long i = 0; i < count; i++) {
		lttng_ust_tracepoint(xstrace_bench, begin, 7);
		lttng_ust_tracepoint(xstrace_bench, end, 1);
	}
}
