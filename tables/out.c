#include "out.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct xt_column slices[] = {
	[XT_SLICE_ID] = { "slice_id", XT_INT, false, false },
	[XT_SLICE_TRACK] = { "track_id", XT_INT, false, false },
	[XT_SLICE_PROCESS] = { "process_id", XT_INT, false, false },
	[XT_SLICE_CAT] = { "cat", XT_NAME, true, false },
	[XT_SLICE_NAME] = { "name", XT_NAME, false, false },
	[XT_SLICE_TS] = { "ts", XT_INT, false, false },
	[XT_SLICE_DUR] = { "dur", XT_INT, false, false },
	[XT_SLICE_SELF] = { "self", XT_INT, false, true },
	[XT_SLICE_DEPTH] = { "depth", XT_INT, false, false },
	[XT_SLICE_PARENT] = { "parent_id", XT_INT, true, false },
	[XT_SLICE_KIND] = { "kind", XT_NAME, false, false },
	[XT_SLICE_UNFINISHED] = { "unfinished", XT_FLAG, false, false },
	[XT_SLICE_BYTES] = { "bytes", XT_INT, true, false },
	[XT_SLICE_QUEUED] = { "queued", XT_INT, true, false },
	[XT_SLICE_SUBMITTED] = { "submitted", XT_INT, true, false },
};
static const struct xt_column args[] = {
	[XT_ARG_SLICE] = { "slice_id", XT_INT, false, false },
	[XT_ARG_KEY] = { "key", XT_NAME, false, false },
	[XT_ARG_VALUE] = { "value", XT_TEXT, false, false },
	[XT_ARG_NUMBER] = { "number", XT_DOUBLE, true, false },
};
static const struct xt_column flows[] = {
	[XT_FLOW_ID] = { "flow_id", XT_INT, false, false },
	[XT_FLOW_NAME] = { "name", XT_NAME, true, false },
	[XT_FLOW_CAT] = { "cat", XT_NAME, true, false },
	[XT_FLOW_FROM] = { "from_slice", XT_INT, true, false },
	[XT_FLOW_TO] = { "to_slice", XT_INT, true, false },
	[XT_FLOW_FROM_TS] = { "from_ts", XT_INT, true, false },
	[XT_FLOW_TO_TS] = { "to_ts", XT_INT, true, false },
};
static const struct xt_column counters[] = {
	[XT_COUNTER_ID] = { "counter_id", XT_INT, false, false },
	[XT_COUNTER_PROCESS] = { "process_id", XT_INT, false, false },
	[XT_COUNTER_TRACK] = { "track_id", XT_INT, true, false },
	[XT_COUNTER_NAME] = { "name", XT_NAME, false, false },
	[XT_COUNTER_KEY] = { "key", XT_NAME, false, false },
	[XT_COUNTER_TS] = { "ts", XT_INT, false, false },
	[XT_COUNTER_VALUE] = { "value", XT_DOUBLE, false, false },
};
static const struct xt_column marks[] = {
	[XT_MARK_TRACK] = { "track_id", XT_INT, true, false },
	[XT_MARK_PROCESS] = { "process_id", XT_INT, false, false },
	[XT_MARK_CAT] = { "cat", XT_NAME, true, false },
	[XT_MARK_NAME] = { "name", XT_NAME, false, false },
	[XT_MARK_TS] = { "ts", XT_INT, false, false },
	[XT_MARK_ARGS] = { "args", XT_TEXT, true, false },
};
static const struct xt_column processes[] = {
	[XT_PROCESS_ID] = { "process_id", XT_INT, false, false },
	[XT_PROCESS_PID] = { "pid", XT_INT, true, false },
	[XT_PROCESS_NAME] = { "name", XT_NAME, true, false },
	[XT_PROCESS_LABELS] = { "labels", XT_NAME, true, false },
	[XT_PROCESS_RANK] = { "rank", XT_INT, true, false },
	[XT_PROCESS_HOST] = { "host", XT_NAME, true, false },
	[XT_PROCESS_IS_DEVICE] = { "is_device", XT_FLAG, false, false },
};
static const struct xt_column threads[] = {
	[XT_THREAD_TRACK] = { "track_id", XT_INT, false, false },
	[XT_THREAD_PROCESS] = { "process_id", XT_INT, false, false },
	[XT_THREAD_TID] = { "tid", XT_INT, true, false },
	[XT_THREAD_NAME] = { "name", XT_NAME, true, false },
};
static const struct xt_column devices[] = {
	[XT_DEVICE_PROCESS] = { "process_id", XT_INT, false, false },
	[XT_DEVICE_NAME] = { "name", XT_NAME, true, false },
	[XT_DEVICE_PCI] = { "pci", XT_NAME, true, false },
	[XT_DEVICE_PROPERTIES] = { "properties", XT_TEXT, true, false },
};
static const struct xt_column metadata[] = {
	[XT_META_KEY] = { "key", XT_NAME, false, false },
	[XT_META_VALUE] = { "value", XT_TEXT, false, false },
};
static const struct xt_column traces[] = {
	[XT_TRACE_PATH] = { "path", XT_TEXT, false, false },
	[XT_TRACE_TOOL] = { "tool", XT_NAME, true, false },
	[XT_TRACE_VERSION] = { "version", XT_NAME, true, false },
	[XT_TRACE_HOST] = { "host", XT_NAME, true, false },
	[XT_TRACE_PID] = { "pid", XT_INT, true, false },
	[XT_TRACE_RANK] = { "rank", XT_INT, true, false },
	[XT_TRACE_WORLD] = { "world_size", XT_INT, true, false },
	[XT_TRACE_RUN] = { "run", XT_NAME, true, false },
	[XT_TRACE_BASE] = { "base_ns", XT_INT, false, false },
	[XT_TRACE_BEGIN] = { "begin_ns", XT_INT, true, false },
	[XT_TRACE_END] = { "end_ns", XT_INT, true, false },
	[XT_TRACE_ENDED] = { "ended", XT_NAME, true, false },
	[XT_TRACE_STATUS] = { "status", XT_INT, true, false },
	[XT_TRACE_LOST] = { "lost", XT_INT, true, false },
	[XT_TRACE_COMPLETE] = { "complete", XT_FLAG, false, false },
	[XT_TRACE_EVENTS] = { "events", XT_INT, false, false },
	[XT_TRACE_LEFT_OUT] = { "left_out", XT_INT, false, false },
};

#define TABLE(name) { offsetof(struct xt_out, name), #name, name, COUNT(name) }
static const struct {
	size_t place;
	const char *name;
	const struct xt_column *columns;
	unsigned count;
} tables[] = { TABLE(slices),	 TABLE(args),	 TABLE(flows),	 TABLE(counters), TABLE(marks),
	       TABLE(processes), TABLE(threads), TABLE(devices), TABLE(metadata), TABLE(traces) };

static struct xt_table **table_of(struct xt_out *out, size_t i)
{
	return (struct xt_table **)((char *)out + tables[i].place);
}

int xt_out_create(struct xt_out *out, int directory, unsigned workers)
{
	out->pool = xt_pool_create(workers, workers + 1);
	if (!out->pool)
		return -ENOMEM;
	for (size_t i = 0; i < COUNT(tables); i++) {
		*table_of(out, i) = xt_table_create(out->pool, directory, tables[i].name,
						    tables[i].columns, tables[i].count);
		if (!*table_of(out, i))
			return -errno;
	}
	return 0;
}

int xt_out_close(struct xt_out *out, int directory, int error)
{
	bool made[COUNT(tables)];
	char path[64];

	for (size_t i = 0; i < COUNT(tables); i++) {
		struct xt_table **table = table_of(out, i);
		int result = *table ? xt_table_close(*table) : 0;

		made[i] = *table;
		error = error ? error : result;
		*table = NULL;
	}
	xt_pool_free(out->pool);
	out->pool = NULL;
	for (size_t i = 0; error && i < COUNT(tables); i++) {
		(void)snprintf(path, sizeof(path), "%s.parquet", tables[i].name);
		if (made[i])
			(void)unlinkat(directory, path, 0);
	}
	return error;
}
