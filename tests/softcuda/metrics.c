/* The host's side of CUPTI's profiler: names of metrics, and values from what was counted. */
#include "counters.h"

#include <stdlib.h>
#include <string.h>

#define CHIP	    "SC100"
#define SECOND_PASS "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed"

static double duration(const struct su_counts *c)
{
	return (double)c->ns;
}

static double throughput(const struct su_counts *c)
{
	return (double)(c->blocks * c->threads % 1000) / 10;
}

static double instructions(const struct su_counts *c)
{
	return (double)(c->blocks * ((c->threads + 31) / 32) * 10);
}

static double read_bytes(const struct su_counts *c)
{
	return (double)(64 * c->blocks * c->threads);
}

static double written_bytes(const struct su_counts *c)
{
	return (double)(32 * c->blocks * c->threads);
}

static double all_bytes(const struct su_counts *c)
{
	return read_bytes(c) + written_bytes(c);
}

static double bandwidth(const struct su_counts *c)
{
	return c->ns ? all_bytes(c) / (double)c->ns * 100 / 1024 : 0;
}

static double launched(const struct su_counts *c)
{
	return (double)c->kernels;
}

static double adds(const struct su_counts *c)
{
	return (double)(c->blocks * c->threads);
}

static double fused(const struct su_counts *c)
{
	return (double)(2 * c->blocks * c->threads);
}

static double busy(const struct su_counts *c)
{
	return c->period ? (double)c->ns * 100 / (double)c->period : 100;
}

static double none(const struct su_counts *c)
{
	(void)c;
	return 0;
}

static const struct metric {
	const char *name, *unit, *description;
	CUpti_MetricType type;
	double (*value)(const struct su_counts *counts);
} metrics[] = {
	{ "gpu__time_duration.sum", "ns", "time", CUPTI_METRIC_TYPE_COUNTER, duration },
	{ "sm__cycles_elapsed.max", "cycle", "cycles, of 1 GHz", CUPTI_METRIC_TYPE_COUNTER,
	  duration },
	{ "sm__inst_executed.avg.per_cycle_active", "inst/cycle", "instructions a cycle",
	  CUPTI_METRIC_TYPE_COUNTER, throughput },
	{ "sm__warps_active.avg.pct_of_peak_sustained_active", "percent", "occupancy",
	  CUPTI_METRIC_TYPE_COUNTER, throughput },
	{ "sm__inst_executed.sum", "inst", "instructions", CUPTI_METRIC_TYPE_COUNTER,
	  instructions },
	{ "dram__throughput.avg.pct_of_peak_sustained_elapsed", "percent", "of the bandwidth",
	  CUPTI_METRIC_TYPE_THROUGHPUT, bandwidth },
	{ "dram__bytes_read.sum", "byte", "read", CUPTI_METRIC_TYPE_COUNTER, read_bytes },
	{ "dram__bytes_write.sum", "byte", "written", CUPTI_METRIC_TYPE_COUNTER, written_bytes },
	{ "dram__bytes.sum", "byte", "read and written", CUPTI_METRIC_TYPE_COUNTER, all_bytes },
	{ "lts__t_bytes.sum", "byte", "through L2", CUPTI_METRIC_TYPE_COUNTER, all_bytes },
	{ "l1tex__t_bytes.sum", "byte", "through L1", CUPTI_METRIC_TYPE_COUNTER, all_bytes },
	{ "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, adds },
	{ "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, fused },
	{ "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "inst", "operations",
	  CUPTI_METRIC_TYPE_COUNTER, none },
	{ "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "percent", "how long active",
	  CUPTI_METRIC_TYPE_COUNTER, busy },
	{ "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed", "percent", "how busy",
	  CUPTI_METRIC_TYPE_COUNTER, throughput },
	{ "gr__cycles_active.sum.pct_of_peak_sustained_elapsed", "percent", "how long active",
	  CUPTI_METRIC_TYPE_COUNTER, busy },
	{ SECOND_PASS, "percent", "not to be counted together with others",
	  CUPTI_METRIC_TYPE_COUNTER, throughput },
	{ "sc__kernels.sum", "", "kernels", CUPTI_METRIC_TYPE_RATIO, launched },
};
enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

struct host {
	uint64_t magic;
	struct su_config config;
};
#define HOST_MAGIC 0x74736f68u

int su_metric_named(const char *name)
{
	for (int i = 0; name && i < METRICS; i++)
		if (!strcmp(metrics[i].name, name))
			return i;
	return -1;
}

size_t su_passes(const struct su_config *config)
{
	for (uint32_t i = 0; i < config->count; i++)
		if (config->count > 1 && !strcmp(metrics[config->metric[i]].name, SECOND_PASS))
			return config->calls + 1;
	return config->calls;
}

static struct host *host_of(CUpti_Profiler_Host_Object *object)
{
	struct host *host = (struct host *)object;

	return host && host->magic == HOST_MAGIC ? host : NULL;
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
	TAKES(p, CUpti_Profiler_Initialize_Params, pPriv);
	return sc_config.devices ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
	TAKES(p, CUpti_Device_GetChipName_Params, pChipName);
	if (p->deviceIndex >= sc_config.devices)
		return CUPTI_ERROR_INVALID_DEVICE;
	p->pChipName = CHIP;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
	struct host *host;

	TAKES(p, CUpti_Profiler_Host_Initialize_Params, pHostObject);
	if (!p->pChipName || strcmp(p->pChipName, CHIP) != 0 ||
	    p->profilerType >= CUPTI_PROFILER_TYPE_PROFILER_INVALID)
		return CUPTI_ERROR_INVALID_PARAMETER;
	host = calloc(1, sizeof(*host));
	host->magic = HOST_MAGIC;
	host->config.magic = SU_CONFIG_MAGIC;
	p->pHostObject = (CUpti_Profiler_Host_Object *)host;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
	struct host *host;

	TAKES(p, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
	host = host_of(p->pHostObject);
	if (!host)
		return CUPTI_ERROR_INVALID_PARAMETER;
	host->magic = 0;
	free(host);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params *p)
{
	static const char *const chips[] = { CHIP };

	TAKES(p, CUpti_Profiler_Host_GetSupportedChips_Params, ppChipNames);
	p->numChips = 1;
	p->ppChipNames = chips;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params *p)
{
	static const char *names[CUPTI_METRIC_TYPE__COUNT][METRICS];
	size_t count = 0;

	TAKES(p, CUpti_Profiler_Host_GetBaseMetrics_Params, numMetrics);
	if (!host_of(p->pHostObject) || p->metricType >= CUPTI_METRIC_TYPE__COUNT)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (int i = 0; i < METRICS; i++)
		if (metrics[i].type == p->metricType)
			names[p->metricType][count++] = metrics[i].name;
	p->ppMetricNames = names[p->metricType];
	p->numMetrics = count;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
	int i;

	TAKES(p, CUpti_Profiler_Host_GetMetricProperties_Params, metricType);
	if (!host_of(p->pHostObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	i = su_metric_named(p->pMetricName);
	if (i < 0)
		return CUPTI_ERROR_INVALID_METRIC_NAME;
	p->pDescription = metrics[i].description;
	p->pHwUnit = "sm";
	p->pDimUnit = metrics[i].unit;
	p->metricType = metrics[i].type;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
	struct host *host;

	TAKES(p, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
	host = host_of(p->pHostObject);
	if (!host || !p->numMetrics || host->config.count + p->numMetrics > SU_METRICS_MAX)
		return CUPTI_ERROR_INVALID_PARAMETER;
	host->config.calls++; /* what one call adds is counted together */
	for (size_t i = 0; i < p->numMetrics; i++) {
		int metric = su_metric_named(p->ppMetricNames[i]);

		if (metric < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		host->config.metric[host->config.count++] = (uint32_t)metric;
	}
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
	TAKES(p, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
	if (!host_of(p->pHostObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->configImageSize = sizeof(struct su_config);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
	TAKES(p, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
	if (!host_of(p->pHostObject) || p->configImageSize < sizeof(struct su_config))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(p->pConfigImage, &host_of(p->pHostObject)->config, sizeof(struct su_config));
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
	TAKES(p, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
	if (!p->pConfigImage || p->configImageSize < sizeof(struct su_config))
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numOfPasses = su_passes((const struct su_config *)p->pConfigImage);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
	const struct su_image *image;

	TAKES(p, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
	image = (const struct su_image *)p->pCounterDataImage;
	if (!host_of(p->pHostObject) || !image || image->magic != SU_IMAGE_MAGIC ||
	    p->rangeIndex >= image->ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->numMetrics; i++) {
		int metric = su_metric_named(p->ppMetricNames[i]);

		if (metric < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		p->pMetricValues[i] = metrics[metric].value(&image->of[p->rangeIndex]);
	}
	return CUPTI_SUCCESS;
}
