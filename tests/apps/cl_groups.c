/*
 * An OpenCL layer (OPENCL_LAYERS) between xstrace and the runtime: it prefers groups of 128 items,
 * as Intel's runtime for CPUs does, of which as many run in step as the group has, but at most 16;
 * where the group's size is left to the runtime, 8.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static union {
	cl_icd_dispatch known;
	void *entry[512];
} layer;
static cl_icd_dispatch real;

static cl_int CL_API_CALL of_group(cl_kernel kernel, cl_device_id device,
				   cl_kernel_work_group_info name, size_t size, void *value,
				   size_t *size_ret)
{
	cl_int result = real.clGetKernelWorkGroupInfo(kernel, device, name, size, value, size_ret);

	if (!result && value && name == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)
		*(size_t *)value = 128;
	return result;
}

static cl_int CL_API_CALL of_sub_group(cl_kernel kernel, cl_device_id device,
				       cl_kernel_sub_group_info name, size_t input_size,
				       const void *input, size_t size, void *value,
				       size_t *size_ret)
{
	size_t local;

	(void)kernel, (void)device;
	if (name != CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE || input_size < sizeof(local) ||
	    size < sizeof(local) || !value)
		return CL_INVALID_VALUE;
	memcpy(&local, input, sizeof(local));
	*(size_t *)value = local == 128 ? 8 : local < 16 ? local : 16;
	if (size_ret)
		*size_ret = sizeof(local);
	return CL_SUCCESS;
}

EXPORT cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (value && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
			  const cl_icd_dispatch **layer_ret)
{
	if (entries > sizeof(layer) / sizeof(void *))
		return CL_INVALID_VALUE;
	memcpy(&real, target, sizeof(real));
	memcpy(layer.entry, target, entries * sizeof(void *));
	layer.known.clGetKernelWorkGroupInfo = of_group;
	layer.known.clGetKernelSubGroupInfo = of_sub_group;
	*entries_ret = entries;
	*layer_ret = &layer.known;
	return CL_SUCCESS;
}
