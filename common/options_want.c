#include <string.h>

#include "options.h"

bool xs_want_chrome(const struct xs_options *o)
{
	return o->chrome_call || o->chrome_kernel || o->chrome_device || o->chrome_itt ||
	       o->chrome_ccl || o->chrome_dnn || o->chrome_mpi || o->chrome_sycl ||
	       o->chrome_openmp || o->system_metrics || o->python_stacks[0];
}

bool xs_want_stacks(const struct xs_options *options)
{
	return options->session[0] || options->watchdog || options->stacks_on_crash;
}

bool xs_want_openmp(const struct xs_options *o)
{
	return o->chrome_openmp || o->openmp_report;
}

bool xs_want_reports(const struct xs_options *o)
{
	return o->host_timing || o->device_timing || o->kernel_submission || o->device_timeline ||
	       o->call_logging || o->ccl_summary || o->cpu_metrics[0] || o->openmp_report;
}

bool xs_want_all_itt(const struct xs_options *o)
{
	return o->chrome_itt || o->chrome_ccl || o->chrome_dnn || o->chrome_mpi ||
	       o->cpu_metrics[0] || o->iterations[0] || o->trigger[0];
}

bool xs_want_itt(const struct xs_options *o)
{
	return xs_want_all_itt(o) || o->ccl_summary;
}

bool xs_listen_to_itt(const struct xs_options *o)
{
	return xs_want_itt(o) || o->start_paused;
}

bool xs_want_hardware(const struct xs_options *o)
{
	return o->metric_query || o->metric_sampling || o->stall_sampling;
}

const char *xs_metric_group(const struct xs_options *o)
{
	if (o->stall_sampling)
		return "EuStallSampling";
	return o->metric_group[0] ? o->metric_group : "ComputeBasic";
}

bool xs_want_stalls(const struct xs_options *o)
{
	return (o->metric_sampling || o->stall_sampling) &&
	       !strcmp(xs_metric_group(o), "EuStallSampling");
}

uint64_t xs_sampling_interval(const struct xs_options *o)
{
	return o->sampling_interval ? o->sampling_interval : 50;
}

bool xs_want_calls(const struct xs_options *o)
{
	return o->chrome_call || o->host_timing || o->call_logging;
}

bool xs_want_enqueues(const struct xs_options *o)
{
	return xs_want_calls(o) || o->chrome_kernel || (o->call_stacks && xs_want_device(o));
}

bool xs_want_kernel_calls(const struct xs_options *o)
{
	return xs_want_calls(o) || o->chrome_kernel;
}

bool xs_want_device(const struct xs_options *o)
{
	return o->chrome_kernel || o->chrome_device || o->device_timing || o->kernel_submission ||
	       o->device_timeline;
}
