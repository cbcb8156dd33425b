/*
 * The functions below us, and what the options want of them.
 */
#include "opencl.h"

cl_icd_dispatch xs_cl_target;
bool xs_cl_calls, xs_cl_kernel_calls, xs_cl_enqueues, xs_cl_waits, xs_cl_times;
uint64_t xs_cl_wanted_devices = UINT64_MAX;

void xs_cl_want(const struct xs_options *options)
{
	xs_cl_calls = xs_want_calls(options);
	xs_cl_kernel_calls = xs_want_kernel_calls(options);
	xs_cl_enqueues = xs_want_enqueues(options);
	xs_cl_waits = options->chrome_kernel;
	xs_cl_times = xs_want_device(options);
	xs_cl_wanted_devices = options->opencl_devices;
}
