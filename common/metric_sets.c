/*
 * Groups of metrics of NVIDIA's GPUs.
 */
#include "metric_sets.h"

#include <string.h>

static const struct {
	const char *name, *queried;
	const char *sampled; /* fewer can be; what must be given up first comes last */
} sets[] = {
	{ "ComputeBasic",
	  "gpu__time_duration.sum,sm__cycles_elapsed.max,"
	  "sm__throughput.avg.pct_of_peak_sustained_elapsed,"
	  "sm__warps_active.avg.pct_of_peak_sustained_active,"
	  "sm__inst_executed.sum,"
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
	  "lts__t_bytes.sum,lts__t_sector_hit_rate.pct,l1tex__t_bytes.sum,"
	  "l1tex__t_sector_hit_rate.pct",
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

const char *xs_metric_set(const char *group, bool sampling)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!strcmp(sets[i].name, group))
			return sampling ? sets[i].sampled : sets[i].queried;
	return strstr(group, "__") ? group : NULL;
}

const char *xs_metric_set_name(size_t i)
{
	return i < sizeof(sets) / sizeof(sets[0]) ? sets[i].name : NULL;
}
