/*
 * Programmable metrics: two of each device, of which a program makes metrics and, with these,
 * groups for queries and sampling by time (SOFTGPU_PROGRAMMABLE=time: for that alone). They are
 * reached by zeDriverGetExtensionFunctionAddress alone.
 */
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct programmable {
	const char *name, *description, *unit, *parameter;
	zet_value_type_t value, result;
	zet_value_t standard;
} programmables[] = {
	{ "KERNELS_SCALED",
	  "Kernels that ended, times SCALE",
	  "events",
	  "SCALE",
	  ZET_VALUE_TYPE_UINT64,
	  ZET_VALUE_TYPE_UINT64,
	  { .ui64 = 1 } },
	{ "BUSY_PART",
	  "Part of the time in which a kernel ran, of WHOLE",
	  "",
	  "WHOLE",
	  ZET_VALUE_TYPE_FLOAT64,
	  ZET_VALUE_TYPE_FLOAT64,
	  { .fp64 = 1 } },
};
enum { COUNT = sizeof(programmables) / sizeof(programmables[0]) };

struct made {
	struct metric metric;
	struct programmed of;
};

static uint32_t kinds(void)
{
	const char *how = getenv("SOFTGPU_PROGRAMMABLE");

	return ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED |
	       (how && !strcmp(how, "time") ? 0 : ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED);
}

/* What all groups begin with. */
static const struct metric times[] = {
	{ "GpuTime", "Time that the measurement took", "ns", ZET_METRIC_TYPE_DURATION,
	  ZET_VALUE_TYPE_UINT64 },
	{ "QueryBeginTime", "When the measurement began, by the device's clock", "ns",
	  ZET_METRIC_TYPE_TIMESTAMP, ZET_VALUE_TYPE_UINT64 },
};

ze_result_t sg_zetMetricProgrammableGetExp(zet_device_handle_t device, uint32_t *count, void **ret)
{
	SG_ENTER_WITH(device, count);
	SG_GIVE(count, ret, getenv("SOFTGPU_PROGRAMMABLE") ? COUNT : 0,
		ret[i] = (void *)(uintptr_t)&programmables[i]);
	return SG_OK;
}

ze_result_t sg_zetMetricProgrammableGetPropertiesExp(void *handle,
						     struct sg_programmable_properties *ret)
{
	const struct programmable *one = handle;

	SG_ENTER_WITH(handle, ret);
	if (ret->stype != 0x00010003)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", one->name);
	(void)snprintf(ret->description, sizeof(ret->description), "%s", one->description);
	(void)snprintf(ret->component, sizeof(ret->component), "GPU");
	ret->parameterCount = 1;
	ret->samplingType = kinds();
	return SG_OK;
}

ze_result_t sg_zetMetricProgrammableGetParamInfoExp(void *handle, uint32_t *count,
						    struct sg_programmable_parameter *ret)
{
	const struct programmable *one = handle;

	SG_ENTER_WITH(handle, count && ret);
	if (!*count || ret->stype != 0x00010004)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	*count = 1;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", one->parameter);
	ret->valueInfoType = (int)one->value; /* the same number for these two */
	ret->defaultValue = one->standard;
	ret->valueInfoCount = 1;
	return SG_OK;
}

ze_result_t sg_zetMetricCreateFromProgrammableExp2(void *handle, uint32_t count,
						   zet_value_t *values, const char *name,
						   const char *description, uint32_t *metrics,
						   zet_metric_handle_t *ret)
{
	const struct programmable *one = handle;
	struct made *made;

	SG_ENTER_WITH(handle, name && description && metrics);
	if (!*metrics || !ret) {
		*metrics = 1;
		return SG_OK;
	}
	if (count > 1 || (one->value == ZET_VALUE_TYPE_FLOAT64 && count && values->fp64 <= 0))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	made = calloc(1, sizeof(*made));
	made->metric = (struct metric){ .name = strdup(name),
					.description = strdup(description),
					.unit = one->unit,
					.type = ZET_METRIC_TYPE_EVENT,
					.result = one->result };
	made->of = (struct programmed){ .which = (uint32_t)(one - programmables),
					.parameter = count ? *values : one->standard };
	*metrics = 1;
	*ret = (zet_metric_handle_t)made;
	return SG_OK;
}

/* All in one group; SOFTGPU_PROGRAMMABLE=apart: each metric in its own. */
ze_result_t sg_zetDeviceCreateMetricGroupsFromMetricsExp(zet_device_handle_t device, uint32_t count,
							 zet_metric_handle_t *metrics,
							 const char *prefix,
							 const char *description, uint32_t *groups,
							 zet_metric_group_handle_t *ret)
{
	const char *how = getenv("SOFTGPU_PROGRAMMABLE");
	uint32_t apart = how && !strcmp(how, "apart") ? count : 1, each = count / apart;

	SG_ENTER_WITH(device, metrics && prefix && description && groups);
	if (!*groups || !ret) {
		*groups = apart;
		return SG_OK;
	}
	if (*groups < apart)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	*groups = apart;
	for (uint32_t i = 0; i < apart; i++) {
		struct metric_group *group = calloc(1, sizeof(*group));
		struct metric *all = calloc(2 + each, sizeof(*all));
		struct programmed *programmed = calloc(each, sizeof(*programmed));

		memcpy(all, times, sizeof(times));
		for (uint32_t k = 0; k < each; k++) {
			const struct made *made = (const struct made *)metrics[i * each + k];

			all[2 + k] = made->metric;
			programmed[k] = made->of;
		}
		*group = (struct metric_group){ .name = strdup(prefix),
						.description = strdup(description),
						.sampling = kinds(),
						.domain = 2,
						.metrics = all,
						.count = 2 + each,
						.programmed = programmed,
						.device = ((struct sg_device *)device)->root };
		ret[i] = (zet_metric_group_handle_t)group;
	}
	return SG_OK;
}

void sg_programmed_values(const struct metric_group *group, const struct report *report,
			  zet_typed_value_t *values)
{
	uint64_t ticks = report->end - report->start;

	for (uint32_t i = 2; i < group->count; i++) {
		const struct programmed *of = &group->programmed[i - 2];

		if (!of->which)
			values[i].value.ui64 = report->launches * of->parameter.ui64;
		else
			values[i].value.fp64 =
				(double)report->busy / (double)ticks * of->parameter.fp64;
	}
}
