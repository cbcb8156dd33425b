/*
 * The tables, and their columns in their order: docs/QUERY.md says what they mean.
 */
#ifndef XT_OUT_H
#define XT_OUT_H

#include "pool.h"
#include "table.h"

enum {
	XT_SLICE_ID,
	XT_SLICE_TRACK,
	XT_SLICE_PROCESS,
	XT_SLICE_CAT,
	XT_SLICE_NAME,
	XT_SLICE_TS,
	XT_SLICE_DUR,
	XT_SLICE_SELF,
	XT_SLICE_DEPTH,
	XT_SLICE_PARENT,
	XT_SLICE_KIND,
	XT_SLICE_UNFINISHED,
	XT_SLICE_BYTES,
	XT_SLICE_QUEUED,
	XT_SLICE_SUBMITTED,
};
enum { XT_ARG_SLICE, XT_ARG_KEY, XT_ARG_VALUE, XT_ARG_NUMBER };
enum {
	XT_FLOW_ID,
	XT_FLOW_NAME,
	XT_FLOW_CAT,
	XT_FLOW_FROM,
	XT_FLOW_TO,
	XT_FLOW_FROM_TS,
	XT_FLOW_TO_TS,
};
enum {
	XT_COUNTER_ID,
	XT_COUNTER_PROCESS,
	XT_COUNTER_TRACK,
	XT_COUNTER_NAME,
	XT_COUNTER_KEY,
	XT_COUNTER_TS,
	XT_COUNTER_VALUE,
};
enum {
	XT_MARK_TRACK,
	XT_MARK_PROCESS,
	XT_MARK_CAT,
	XT_MARK_NAME,
	XT_MARK_TS,
	XT_MARK_ARGS,
};

enum {
	XT_PROCESS_ID,
	XT_PROCESS_PID,
	XT_PROCESS_NAME,
	XT_PROCESS_LABELS,
	XT_PROCESS_RANK,
	XT_PROCESS_HOST,
	XT_PROCESS_IS_DEVICE,
};
enum { XT_THREAD_TRACK, XT_THREAD_PROCESS, XT_THREAD_TID, XT_THREAD_NAME };
enum { XT_DEVICE_PROCESS, XT_DEVICE_NAME, XT_DEVICE_PCI, XT_DEVICE_PROPERTIES };
enum { XT_META_KEY, XT_META_VALUE };
enum {
	XT_TRACE_PATH,
	XT_TRACE_TOOL,
	XT_TRACE_VERSION,
	XT_TRACE_HOST,
	XT_TRACE_PID,
	XT_TRACE_RANK,
	XT_TRACE_WORLD,
	XT_TRACE_RUN,
	XT_TRACE_BASE,
	XT_TRACE_BEGIN,
	XT_TRACE_END,
	XT_TRACE_ENDED,
	XT_TRACE_STATUS,
	XT_TRACE_LOST,
	XT_TRACE_COMPLETE,
	XT_TRACE_EVENTS,
	XT_TRACE_LEFT_OUT,
};

struct xt_out {
	struct xt_pool *pool;
	struct xt_table *slices, *args, *flows, *counters, *marks;
	struct xt_table *processes, *threads, *devices, *metadata, *traces;
};

/* Creates all of them. 0 or -errno. */
int xt_out_create(struct xt_out *out, int directory, unsigned workers);
/*
 * Ends all of them; where something has failed (error, else 0) or fails now, the files are removed.
 * 0 or the first -errno.
 */
int xt_out_close(struct xt_out *out, int directory, int error);

#endif
