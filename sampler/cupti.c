/*
 * CUDA's driver and CUPTI, where they can be found without a program that uses them: neither need
 * be there.
 */
#include "cupti.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

struct xs_cuda_driver xs_cuda_driver;
struct xs_pm xs_pm;

static bool open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return false;
#define TAKE(member, name) *(void **)&xs_cuda_driver.member = dlsym(library, name);
	TAKE(init, "cuInit")
	TAKE(count, "cuDeviceGetCount")
	TAKE(get, "cuDeviceGet")
	TAKE(name, "cuDeviceGetName")
	TAKE(uuid, "cuDeviceGetUuid")
#undef TAKE
	return xs_cuda_driver.init && xs_cuda_driver.count && xs_cuda_driver.get &&
	       xs_cuda_driver.name && !xs_cuda_driver.init(0);
}

uint32_t xs_cuda_devices(void)
{
	int count = 0;

	return open_driver() && !xs_cuda_driver.count(&count) && count > 0 ? (uint32_t)count : 0;
}

/* ---- libcupti ---- */

static const char *why =
	"no libcupti of CUDA 12.6 or later was found; it is part of the CUDA toolkit "
	"and of PyPI's nvidia-cuda-cupti: set CUDA_HOME or LD_LIBRARY_PATH";

/* NULL, or why this one cannot be used: it may be newer than the driver, or too old. */
static const char *take(void *library, uint64_t (*clock)(void))
{
	struct xs_prof_initialize initialize = { XS_PROF_HEAD(xs_prof_initialize, head) };
	int (*set_clock)(uint64_t (*)(void));
	int result;

#define TAKE(name, ...)                                         \
	*(void **)&xs_pm.name = dlsym(library, "cupti" #name);  \
	if (!xs_pm.name)                                        \
		return "its libcupti has no cupti" #name "(): " \
		       "that of CUDA 12.6 or later has";
	XS_PM_HOST_CALLS(TAKE)
	XS_PM_CALLS(TAKE)
#undef TAKE
	*(void **)&xs_pm.get_timestamp = dlsym(library, "cuptiGetTimestamp");
	*(void **)&set_clock = dlsym(library, "cuptiActivityRegisterTimestampCallback");
	if (set_clock)
		(void)set_clock(clock);
	result = xs_pm.ProfilerInitialize(&initialize);
	return result ? xs_pm_why(result, "CUPTI's profiler cannot be used with this driver")
		      : NULL;
}

static bool use(const char *path, uint64_t (*clock)(void))
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		return false;
	why = take(library, clock);
	if (why)
		(void)dlclose(library);
	return !why;
}

/* The newest of a folder first. */
static bool use_below(const char *home, const char *pattern, uint64_t (*clock)(void))
{
	char path[4096];
	bool found = false;
	glob_t paths;

	if (!home || !home[0] ||
	    snprintf(path, sizeof(path), "%s/%s", home, pattern) >= (int)sizeof(path) ||
	    glob(path, 0, NULL, &paths))
		return false;
	for (size_t i = paths.gl_pathc; i-- > 0 && !found;)
		found = use(paths.gl_pathv[i], clock);
	globfree(&paths);
	return found;
}

const char *xs_pm_library(uint64_t (*clock)(void))
{
	static const char *const names[] = { "libcupti.so.14", "libcupti.so.13", "libcupti.so.12" };
	static const char *const toolkit[] = { "lib64/libcupti.so.1[2-9]",
					       "extras/CUPTI/lib64/libcupti.so.1[2-9]" };
	static const char *const packages[] = {
		"lib/python3*/site-packages/nvidia/cu1[3-9]/lib/libcupti.so.1[3-9]",
		"lib/python3*/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"
	};
	const char *toolkits[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
	const char *homes[] = { getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX") };
	bool found = false;

	for (size_t i = 0; !found && i < 3; i++)
		found = use(names[i], clock);
	for (size_t i = 0; !found && i < 6; i++)
		found = use_below(toolkits[i / 2], toolkit[i % 2], clock);
	for (size_t i = 0; !found && i < 4; i++)
		found = use_below(homes[i / 2], packages[i % 2], clock);
	return why;
}

const char *xs_pm_why(int result, const char *otherwise)
{
	if (result == XS_CUPTI_INSUFFICIENT_PRIVILEGES)
		return "this user may not read its counters (the driver's option "
		       "NVreg_RestrictProfilingToAdminUsers)";
	return result == XS_CUPTI_NOT_SUPPORTED ? "CUPTI does not support it on this device"
						: otherwise;
}
