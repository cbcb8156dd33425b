/*
 * Groups of metrics of NVIDIA's GPUs.
 */
#include "metric_sets.h"

#include <string.h>

static const struct {
	const char *name;
	const char
		*queried; /* an H100 counts those of the first two groups in one run of a kernel */
	const char *sampled; /* fewer can be; what must be given up first comes last */
} sets[] = {
	{ "ComputeBasic",
	  "gpu__time_duration.sum,sm__cycles_elapsed.max,"
	  "sm__cycles_active.avg.pct_of_peak_sustained_elapsed,"
	  "sm__warps_active.avg.pct_of_peak_sustained_active,"
	  "sm__inst_executed.sum,sm__inst_executed.avg.per_cycle_active,"
	  "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,"
	  "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
	  "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,"
	  "l1tex__t_bytes.sum",
	  "sm__cycles_active.avg.pct_of_peak_sustained_elapsed,"
	  "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed,"
	  "gr__cycles_active.sum.pct_of_peak_sustained_elapsed,"
	  "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed,"
	  "dramc__write_throughput.avg.pct_of_peak_sustained_elapsed,"
	  "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed,"
	  "gpc__cycles_elapsed.avg.per_second,sys__cycles_elapsed.avg.per_second" },
	{ "MemoryBasic",
	  "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
	  "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
	  "lts__t_bytes.sum,l1tex__t_bytes.sum,l1tex__t_sector_hit_rate.pct",
	  "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed,"
	  "dramc__write_throughput.avg.pct_of_peak_sustained_elapsed,"
	  "pcie__read_bytes.avg.pct_of_peak_sustained_elapsed,"
	  "pcie__write_bytes.avg.pct_of_peak_sustained_elapsed,"
	  "nvlrx__bytes.avg.pct_of_peak_sustained_elapsed,"
	  "nvltx__bytes.avg.pct_of_peak_sustained_elapsed" },
	{ "Flops",
	  "gpu__time_duration.sum,smsp__sass_thread_inst_executed_op_hadd_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum,"
	  "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
	  NULL },
};

static const char *set_of(const char *group, size_t length, bool sampling)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strlen(sets[i].name) == length && !memcmp(sets[i].name, group, length))
			return sampling ? sets[i].sampled : sets[i].queried;
	return NULL;
}

const char *xs_metric_set(const char *group, bool sampling)
{
	return set_of(group, strlen(group), sampling);
}

bool xs_metrics_named(const char *groups)
{
	return strstr(groups, "__");
}

static bool has(const char *names, const char *name, size_t length)
{
	for (const char *at = names; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strcspn(at, ",") == length && !memcmp(at, name, length))
			return true;
	}
	return false;
}

/* Those of the names that are not there yet. False: there is no room. */
static bool add(char *names, const char *more, size_t length)
{
	const char *end = more + length, *at = more;

	for (;;) {
		size_t one = strcspn(at, ","), used = strlen(names);

		one = one < (size_t)(end - at) ? one : (size_t)(end - at);
		if (used + one + 2 > XS_METRIC_NAMES)
			return false;
		if (!used || !has(names, at, one)) {
			names[used] = ',';
			memcpy(names + used + (used != 0), at, one);
			names[used + (used != 0) + one] = '\0';
		}
		if (at + one >= end)
			return true;
		at += one + 1;
	}
}

bool xs_metric_names(const char *groups, bool sampling, char ret[XS_METRIC_NAMES])
{
	bool named = xs_metrics_named(groups);

	ret[0] = '\0';
	for (const char *at = groups;; at++) {
		size_t length = strcspn(at, ",");
		const char *set = set_of(at, length, sampling);

		if (!set && !named)
			return false;
		if (!add(ret, set ? set : at, set ? strlen(set) : length))
			return false;
		at += length;
		if (!*at)
			return true;
	}
}

const char *xs_metric_set_name(size_t i)
{
	return i < sizeof(sets) / sizeof(sets[0]) ? sets[i].name : NULL;
}
