/*
 * Groups of metrics of NVIDIA's GPUs.
 */
#include "metric_sets.h"

#include <string.h>

static const struct {
	const char *name, *metrics;
} sets[] = {
	{ "ComputeBasic", "gpu__time_duration.sum,sm__cycles_elapsed.max,"
			  "sm__throughput.avg.pct_of_peak_sustained_elapsed,"
			  "sm__warps_active.avg.pct_of_peak_sustained_active,"
			  "sm__inst_executed.sum,"
			  "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
			  "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,"
			  "l1tex__t_bytes.sum" },
	{ "MemoryBasic", "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
			 "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
			 "lts__t_bytes.sum,lts__t_sector_hit_rate.pct,l1tex__t_bytes.sum,"
			 "l1tex__t_sector_hit_rate.pct" },
	{ "Flops", "gpu__time_duration.sum,smsp__sass_thread_inst_executed_op_hadd_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum,"
		   "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum" },
};

const char *xs_metric_set(const char *group)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!strcmp(sets[i].name, group))
			return sets[i].metrics;
	return strstr(group, "__") ? group : NULL;
}

const char *xs_metric_set_name(size_t i)
{
	return i < sizeof(sets) / sizeof(sets[0]) ? sets[i].name : NULL;
}
