/*
 * Our place in the OpenCL loader's chain of layers (OPENCL_LAYERS).
 */
#include <CL/cl_layer.h>
#include <dlfcn.h>

#include "opencl.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
	static const char layer[] = "xstrace";
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	const void *from = name == CL_LAYER_API_VERSION ? (const void *)&version : layer;
	size_t bytes = name == CL_LAYER_API_VERSION ? sizeof(version) : sizeof(layer);

	if ((name != CL_LAYER_API_VERSION && name != CL_LAYER_NAME) || (value && size < bytes))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, bytes);
	if (size_ret)
		*size_ret = bytes;
	return CL_SUCCESS;
}

/* Entries of a loader newer than our header pass through: the table is as long as the loader's. */
static union {
	cl_icd_dispatch known;
	void *entry[512];
} layer;

/*
 * The library of a function that we call from now on, callbacks of commands in flight among others,
 * stays loaded: a program may close the loader and open it again.
 */
static void keep_library(const void *function)
{
	Dl_info info;

	if (dladdr(function, &info) && info.dli_fname &&
	    !dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
		(void)dlerror(); /* it is the program itself; no error that the program sees */
}

EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
			  const cl_icd_dispatch **layer_ret)
{
	const struct xs_options *options = xs_collector_options();
	size_t bytes = entries * sizeof(void *);

	if (!target || !entries_ret || !layer_ret || bytes > sizeof(layer) ||
	    bytes < sizeof(layer.known))
		return CL_INVALID_VALUE;
	if (layer.entry[0] && memcmp(&xs_cl_target, target, sizeof(xs_cl_target))) {
		/*
		 * a second loader in this process: objects know their own runtime, so the first
		 * one's functions serve both
		 */
		*entries_ret = entries;
		*layer_ret = &layer.known;
		return CL_SUCCESS;
	}
	/* a layer below us, and the loader */
	keep_library(*(void *const *)target);
	keep_library(__builtin_return_address(0));
	memcpy(&xs_cl_target, target, sizeof(xs_cl_target));
	memcpy(layer.entry, target, bytes);
	if (options) {
		xs_cl_want(options);
		if (xs_cl_calls || xs_cl_times) {
			xs_cl_commands_init();
			xs_cl_wrap(&layer.known, xs_cl_calls);
		}
	}
	*entries_ret = entries;
	*layer_ret = &layer.known;
	return CL_SUCCESS;
}

/*
 * Khronos's loader asks for these two (its own extension of the interface) before it takes a layer.
 */
EXPORT cl_int clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch *target,
					cl_uint *entries_ret, const cl_icd_dispatch **layer_ret,
					const cl_bitfield *properties);
EXPORT cl_int clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch *target,
					cl_uint *entries_ret, const cl_icd_dispatch **layer_ret,
					const cl_bitfield *properties)
{
	(void)properties;
	keep_library(__builtin_return_address(0));
	return clInitLayer(entries, target, entries_ret, layer_ret);
}

EXPORT cl_int clDeinitLayer(void);
EXPORT cl_int clDeinitLayer(void)
{
	xs_cl_harvest_all();
	return CL_SUCCESS;
}
