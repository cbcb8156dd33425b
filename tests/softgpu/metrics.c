/*
 * Metric groups, queries and streamers. What is measured follows from what is executed, so that a
 * test can predict it: a device's counters of launches, groups and ticks in kernels, and, while a
 * streamer is open, a history of which kernel ran when.
 */
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct metric compute[] = {
	{ "GpuTime", "Time that the measurement took", "ns", ZET_METRIC_TYPE_DURATION,
	  ZET_VALUE_TYPE_UINT64 },
	{ "QueryBeginTime", "When the measurement began, by the device's clock", "ns",
	  ZET_METRIC_TYPE_TIMESTAMP, ZET_VALUE_TYPE_UINT64 },
	{ "GpuCoreClocks", "Cycles of the device's core, which runs at 1 GHz", "cycles",
	  ZET_METRIC_TYPE_EVENT, ZET_VALUE_TYPE_UINT64 },
	{ "XVE_ACTIVE", "Part of the time in which a kernel ran", "percent", ZET_METRIC_TYPE_RATIO,
	  ZET_VALUE_TYPE_FLOAT32 },
	{ "KernelLaunches", "Kernels that ended", "events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "WorkGroups", "Work-groups of those kernels", "events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "AvgGpuCoreFrequencyMHz", "Frequency of the device's core", "MHz", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT32 },
	{ "XVE_STALL", "Part of the time in which no kernel ran", "percent", ZET_METRIC_TYPE_RATIO,
	  ZET_VALUE_TYPE_FLOAT32 },
	{ "GPU_MEMORY_BYTE_READ", "64 bytes for each work-group", "bytes",
	  ZET_METRIC_TYPE_THROUGHPUT, ZET_VALUE_TYPE_UINT64 },
	{ "GPU_MEMORY_BYTE_READ_RATE", "The same for each ns", "GBpS", ZET_METRIC_TYPE_RATIO,
	  ZET_VALUE_TYPE_FLOAT64 },
	{ "ContextIdValid", "A kernel ended", "(null)", ZET_METRIC_TYPE_FLAG,
	  ZET_VALUE_TYPE_BOOL8 },
};

static const struct metric stalls[] = {
	{ "IP", "Address of the instruction, in units of 8 bytes", "Address",
	  ZET_METRIC_TYPE_IP_EXP, ZET_VALUE_TYPE_UINT64 },
	{ "Active", "Samples that ran", "Events", ZET_METRIC_TYPE_EVENT, ZET_VALUE_TYPE_UINT64 },
	{ "ControlStall", "Samples stalled by control flow", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "PipeStall", "Samples stalled by a full pipe", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "SendStall", "Samples stalled by a message", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "DistStall", "Samples stalled by a dependency", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "SbidStall", "Samples stalled by a scoreboard", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "SyncStall", "Samples stalled by a barrier", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "InstrFetchStall", "Samples stalled by instructions on their way", "Events",
	  ZET_METRIC_TYPE_EVENT, ZET_VALUE_TYPE_UINT64 },
	{ "OtherStall", "Samples stalled by anything else", "Events", ZET_METRIC_TYPE_EVENT,
	  ZET_VALUE_TYPE_UINT64 },
};

static const struct metric memory[] = {
	{ "GpuTime", "Time that the measurement took", "ns", ZET_METRIC_TYPE_DURATION,
	  ZET_VALUE_TYPE_UINT64 },
	{ "QueryBeginTime", "When the measurement began, by the device's clock", "ns",
	  ZET_METRIC_TYPE_TIMESTAMP, ZET_VALUE_TYPE_UINT64 },
	{ "L3_BYTE_READ", "128 bytes for each work-group", "bytes", ZET_METRIC_TYPE_THROUGHPUT,
	  ZET_VALUE_TYPE_UINT64 },
	{ "L3_BUSY", "Part of the time in which a kernel ran", "percent", ZET_METRIC_TYPE_RATIO,
	  ZET_VALUE_TYPE_FLOAT64 },
};

#define METRICS(array) .metrics = (array), .count = sizeof(array) / sizeof((array)[0])

enum { GROUPS = 7 };
static const struct metric_group kinds[GROUPS] = {
	{ .name = "ComputeBasic",
	  .description = "Kernels, by query",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED,
	  METRICS(compute) },
	{ .name = "ComputeBasic",
	  .description = "Kernels, by time",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED,
	  METRICS(compute) },
	{ .name = "EuStallSampling",
	  .description = "Where kernels stall",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED,
	  METRICS(stalls),
	  .stalls = true },
	{ .name = "MemoryProfile",
	  .description = "Memory, by time",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED,
	  .domain = 1,
	  METRICS(memory),
	  .memory = true },
	{ .name = "MemoryTwin",
	  .description = "The same, by the same counters",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED,
	  .domain = 1,
	  METRICS(memory),
	  .memory = true },
	{ .name = "MemoryProfile",
	  .description = "Memory, by query",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED,
	  .domain = 1,
	  METRICS(memory),
	  .memory = true },
	{ .name = "MemoryTwin",
	  .description = "The same, by query and by the same counters",
	  .sampling = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED,
	  .domain = 1,
	  METRICS(memory),
	  .memory = true },
};
static struct metric_group groups[SG_DEVICES_MAX][GROUPS];

/* SOFTGPU_METRICS=none: no group; empty: groups without metrics. */
static bool lacks(const char *what)
{
	const char *value = getenv("SOFTGPU_METRICS");

	return value && !strcmp(value, what);
}

static void groups_make(void)
{
	for (uint32_t i = 0; i < SG_DEVICES_MAX; i++) {
		for (uint32_t j = 0; j < GROUPS; j++) {
			groups[i][j] = kinds[j];
			groups[i][j].device = sg_device_number(i);
			if (lacks("empty"))
				groups[i][j].count = 0;
		}
	}
}

ze_result_t sg_zetMetricGroupGet(zet_device_handle_t handle, uint32_t *count,
				 zet_metric_group_handle_t *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct sg_device *device = (const struct sg_device *)handle;
	const char *enabled = getenv("ZET_ENABLE_METRICS");

	SG_ENTER_WITH(handle, count);
	/* drivers want to be asked before they start */
	if (!enabled || strcmp(enabled, "1"))
		return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
	(void)pthread_once(&once, groups_make);
	SG_GIVE(count, ret, lacks("none") ? 0 : GROUPS,
		ret[i] = (zet_metric_group_handle_t)&groups[device->id][i]);
	return SG_OK;
}

ze_result_t sg_zetMetricGroupGetProperties(zet_metric_group_handle_t handle,
					   zet_metric_group_properties_t *ret)
{
	const struct metric_group *group = (const struct metric_group *)handle;

	SG_ENTER_WITH(handle, ret);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", group->name);
	(void)snprintf(ret->description, sizeof(ret->description), "%s", group->description);
	ret->samplingType = group->sampling;
	ret->domain = group->domain;
	ret->metricCount = group->count;
	for (ze_base_properties_t *more = ret->pNext; more; more = more->pNext) {
		if ((uint32_t)more->stype ==
		    (uint32_t)ZET_STRUCTURE_TYPE_METRIC_GLOBAL_TIMESTAMPS_RESOLUTION_EXP) {
			zet_metric_global_timestamps_resolution_exp_t *resolution =
				(zet_metric_global_timestamps_resolution_exp_t *)more;

			resolution->timerResolution = sg_config.frequency;
			resolution->timestampValidBits = sg_config.metric_bits;
		}
	}
	return SG_OK;
}

ze_result_t sg_zetMetricGet(zet_metric_group_handle_t handle, uint32_t *count,
			    zet_metric_handle_t *ret)
{
	const struct metric_group *group = (const struct metric_group *)handle;

	SG_ENTER_WITH(handle, count);
	SG_GIVE(count, ret, group->count,
		ret[i] = (zet_metric_handle_t)(uintptr_t)&group->metrics[i]);
	return SG_OK;
}

ze_result_t sg_zetMetricGetProperties(zet_metric_handle_t handle, zet_metric_properties_t *ret)
{
	const struct metric *metric = (const struct metric *)handle;

	SG_ENTER_WITH(handle, ret);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", metric->name);
	(void)snprintf(ret->description, sizeof(ret->description), "%s", metric->description);
	(void)snprintf(ret->component, sizeof(ret->component), "GPU");
	(void)snprintf(ret->resultUnits, sizeof(ret->resultUnits), "%s", metric->unit);
	ret->tierNumber = 1;
	ret->metricType = metric->type;
	ret->resultType = metric->result;
	return SG_OK;
}

static void compute_values(const struct metric_group *group, const struct report *report,
			   zet_typed_value_t *values)
{
	uint64_t ticks = report->end - report->start, ns = sg_ns_of(ticks);

	values[0].value.ui64 = ns;
	values[1].value.ui64 =
		sg_ns_of(report->start & (UINT64_MAX >> (64 - sg_config.metric_bits)));
	if (group->programmed) {
		sg_programmed_values(group, report, values);
		return;
	}
	if (group->memory) {
		values[2].value.ui64 = 128 * report->groups;
		values[3].value.fp64 = ticks ? (double)report->busy * 100 / (double)ticks : 0;
		return;
	}
	values[2].value.ui64 = ns;
	values[3].value.fp32 = ticks ? (float)((double)report->busy * 100 / (double)ticks) : 0;
	values[4].value.ui64 = report->launches;
	values[5].value.ui64 = report->groups;
	values[6].value.ui32 = 1000;
	values[7].value.fp32 = 100 - values[3].value.fp32;
	values[8].value.ui64 = 64 * report->groups;
	values[9].value.fp64 = ns ? (double)values[8].value.ui64 / (double)ns : 0;
	values[10].value.b8 = report->launches != 0;
}

ze_result_t sg_zetMetricGroupCalculateMultipleMetricValuesExp(
	zet_metric_group_handle_t handle, zet_metric_group_calculation_type_t type, size_t size,
	const uint8_t *data, uint32_t *sets, uint32_t *total, uint32_t *counts,
	zet_typed_value_t *values)
{
	const struct metric_group *group = (const struct metric_group *)handle;
	uint32_t have = (uint32_t)(size / sizeof(struct report)) * group->count;

	SG_ENTER_WITH(handle, data && sets && total);
	if (type > ZET_METRIC_GROUP_CALCULATION_TYPE_MAX_METRIC_VALUES)
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (size % sizeof(struct report))
		return ZE_RESULT_ERROR_INVALID_SIZE;
	if (!*sets || !*total || *total > have) {
		*sets = 1;
		*total = have;
	}
	if (!counts || !values)
		return SG_OK;
	counts[0] = *total;
	for (uint32_t i = 0; i < *total / group->count; i++, values += group->count) {
		struct report report;

		memcpy(&report, data + i * sizeof(report), sizeof(report));
		for (uint32_t j = 0; j < group->count; j++)
			values[j] = (zet_typed_value_t){ .type = group->metrics[j].result };
		if (!group->stalls) {
			compute_values(group, &report, values);
			continue;
		}
		values[0].value.ui64 = report.address >> 3;
		values[1 + report.launches % (group->count - 1)].value.ui64 = 1;
	}
	return SG_OK;
}

ze_result_t sg_zetMetricGroupCalculateMetricValues(zet_metric_group_handle_t handle,
						   zet_metric_group_calculation_type_t type,
						   size_t size, const uint8_t *data,
						   uint32_t *count, zet_typed_value_t *values)
{
	uint32_t sets = 1, counts;

	SG_ENTER();
	SG_POINTER(count);
	return sg_zetMetricGroupCalculateMultipleMetricValuesExp(handle, type, size, data, &sets,
								 count, &counts, values);
}

/* Of a domain one group at a time is for queries, and one for sampling. */
static bool exclude(const struct metric_group *one, const struct metric_group *other)
{
	return one->domain == other->domain && one->sampling & other->sampling;
}

/* The first groups that go together come first, and so on. Returns how many sets there are. */
static uint32_t make_sets(uint32_t count, struct metric_group **wanted, uint32_t *counts)
{
	uint32_t sets = 0, done = 0;

	while (done < count) {
		uint32_t first = done;

		for (uint32_t i = first; i < count; i++) {
			struct metric_group *group = wanted[i];
			bool goes = true;

			for (uint32_t k = first; k < done; k++)
				goes &= !exclude(group, wanted[k]);
			if (!goes)
				continue;
			memmove(&wanted[done + 1], &wanted[done], (i - done) * sizeof(*wanted));
			wanted[done++] = group;
		}
		counts[sets++] = done - first;
	}
	return sets;
}

/*
 * SOFTGPU_CONCURRENT=none: no two groups; =sets: as their domains say it; without it a program has
 * to look at domains itself.
 */
ze_result_t sg_zetDeviceGetConcurrentMetricGroupsExp(zet_device_handle_t device, uint32_t count,
						     zet_metric_group_handle_t *wanted,
						     uint32_t *counts, uint32_t *ret)
{
	const char *how = getenv("SOFTGPU_CONCURRENT");

	SG_ENTER_WITH(device, wanted && ret);
	if (!how || !count || count > 64)
		return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
	if (!strcmp(how, "sets")) {
		struct metric_group *sorted[64];
		uint32_t sets[64];

		memcpy(sorted, wanted, count * sizeof(*sorted));
		*ret = make_sets(count, sorted, sets);
		if (counts) {
			memcpy(counts, sets, *ret * sizeof(*sets));
			memcpy(wanted, sorted, count * sizeof(*sorted));
		}
		return SG_OK;
	}
	*ret = count;
	for (uint32_t i = 0; counts && i < count; i++)
		counts[i] = 1;
	return SG_OK;
}

ze_result_t sg_zetContextActivateMetricGroups(zet_context_handle_t context,
					      zet_device_handle_t handle, uint32_t count,
					      zet_metric_group_handle_t *wanted)
{
	const struct sg_device *device = (const struct sg_device *)handle;

	SG_ENTER_WITH(context && handle, !count || wanted);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (exclude((struct metric_group *)wanted[i],
				    (struct metric_group *)wanted[k]))
				return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	for (uint32_t j = 0; j < GROUPS; j++)
		atomic_store(&groups[device->id][j].active, false);
	for (uint32_t i = 0; i < count; i++)
		atomic_store(&((struct metric_group *)wanted[i])->active, true);
	return SG_OK;
}

struct query_pool {
	struct metric_group *group;
	uint32_t count;
};

struct query {
	struct query_pool *pool;
	struct report report;
	_Atomic bool done;
};

ze_result_t sg_zetMetricQueryPoolCreate(zet_context_handle_t context, zet_device_handle_t device,
					zet_metric_group_handle_t group,
					const zet_metric_query_pool_desc_t *desc,
					zet_metric_query_pool_handle_t *ret)
{
	struct query_pool *pool;

	SG_ENTER_WITH(context && device, desc && ret);
	if (!desc->count)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	if (desc->type == ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE &&
	    !atomic_load(&((struct metric_group *)group)->active))
		return ZE_RESULT_NOT_READY;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	pool->group = (struct metric_group *)group;
	pool->count = desc->count;
	*ret = (zet_metric_query_pool_handle_t)pool;
	return SG_OK;
}

ze_result_t sg_zetMetricQueryPoolDestroy(zet_metric_query_pool_handle_t pool)
{
	SG_ENTER();
	SG_HANDLE(pool);
	free(pool);
	return SG_OK;
}

ze_result_t sg_zetMetricQueryCreate(zet_metric_query_pool_handle_t pool, uint32_t index,
				    zet_metric_query_handle_t *ret)
{
	struct query *query;

	SG_ENTER_WITH(pool, ret);
	if (index >= ((struct query_pool *)pool)->count)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	query = calloc(1, sizeof(*query));
	if (!query)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	query->pool = (struct query_pool *)pool;
	*ret = (zet_metric_query_handle_t)query;
	return SG_OK;
}

ze_result_t sg_zetMetricQueryDestroy(zet_metric_query_handle_t query)
{
	SG_ENTER();
	SG_HANDLE(query);
	free(query);
	return SG_OK;
}

ze_result_t sg_zetMetricQueryReset(zet_metric_query_handle_t query)
{
	SG_ENTER();
	SG_HANDLE(query);
	atomic_store(&((struct query *)query)->done, false);
	return SG_OK;
}

ze_result_t sg_zetMetricQueryGetData(zet_metric_query_handle_t handle, size_t *size, uint8_t *data)
{
	const struct query *query = (const struct query *)handle;

	SG_ENTER_WITH(handle, size);
	if (!*size || !data) {
		*size = sizeof(query->report);
		return SG_OK;
	}
	if (!atomic_load(&query->done))
		return ZE_RESULT_NOT_READY;
	if (*size < sizeof(query->report))
		return ZE_RESULT_ERROR_INVALID_SIZE;
	memcpy(data, &query->report, sizeof(query->report));
	*size = sizeof(query->report);
	return SG_OK;
}

static void query_begin(struct sg_cmd *cmd, struct sg_device *device, const struct sg_span *span)
{
	struct query *query = cmd->data;

	query->report = (struct report){ .start = span->start,
					 .busy = atomic_load(&device->root->busy),
					 .launches = atomic_load(&device->root->launches),
					 .groups = atomic_load(&device->root->groups) };
}

static void query_end(struct sg_cmd *cmd, struct sg_device *device, const struct sg_span *span)
{
	struct query *query = cmd->data;
	struct report *report = &query->report;

	report->end = span->start;
	report->busy = atomic_load(&device->root->busy) - report->busy;
	report->launches = atomic_load(&device->root->launches) - report->launches;
	report->groups = atomic_load(&device->root->groups) - report->groups;
	atomic_store(&query->done, true);
}

static ze_result_t append(zet_command_list_handle_t handle, const char *name,
			  void (*call)(struct sg_cmd *, struct sg_device *, const struct sg_span *),
			  void *data, const struct sg_wanted *wanted)
{
	struct sg_cmd *cmd;
	ze_result_t result =
		sg_append_begin((ze_command_list_handle_t)handle, SG_CALL, name, wanted, &cmd);

	if (result)
		return result;
	cmd->after_all = cmd->before_all = true;
	cmd->call = call;
	cmd->data = data;
	return sg_append_end((ze_command_list_handle_t)handle, cmd);
}

ze_result_t sg_zetCommandListAppendMetricQueryBegin(zet_command_list_handle_t list,
						    zet_metric_query_handle_t query)
{
	SG_ENTER();
	SG_HANDLE(query);
	return append(list, "zetCommandListAppendMetricQueryBegin", query_begin, query,
		      &(struct sg_wanted){ NULL, 0, NULL });
}

ze_result_t sg_zetCommandListAppendMetricQueryEnd(zet_command_list_handle_t list,
						  zet_metric_query_handle_t query,
						  ze_event_handle_t signal, uint32_t nwait,
						  ze_event_handle_t *wait)
{
	SG_ENTER();
	SG_HANDLE(query);
	return append(list, "zetCommandListAppendMetricQueryEnd", query_end, query,
		      &(struct sg_wanted){ (struct sg_event *)signal, nwait, wait });
}

static void nothing(struct sg_cmd *cmd, struct sg_device *device, const struct sg_span *span)
{
}

ze_result_t sg_zetCommandListAppendMetricMemoryBarrier(zet_command_list_handle_t list)
{
	SG_ENTER();
	return append(list, "zetCommandListAppendMetricMemoryBarrier", nothing, NULL,
		      &(struct sg_wanted){ NULL, 0, NULL });
}

ze_result_t sg_zetCommandListAppendMetricStreamerMarker(zet_command_list_handle_t list,
							zet_metric_streamer_handle_t streamer,
							uint32_t value)
{
	SG_ENTER();
	SG_HANDLE(streamer);
	return append(list, "zetCommandListAppendMetricStreamerMarker", nothing, streamer,
		      &(struct sg_wanted){ NULL, 0, NULL });
}
