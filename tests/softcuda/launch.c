/* Launches of kernels. */
#include "driver.h"

#include <string.h>

static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3],
		       unsigned shared, CUstream stream, void **args, const unsigned cluster[3])
{
	struct sc_cmd cmd;

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	memset(&cmd, 0, offsetof(struct sc_cmd, to)); /* the rest would cost more than the launch */
	cmd.kind = SC_KERNEL;
	cmd.stream = sc_stream_of(stream);
	cmd.function = sc_function_of(f);
	memcpy(cmd.grid, grid, sizeof(cmd.grid));
	memcpy(cmd.block, block, sizeof(cmd.block));
	if (cluster)
		memcpy(cmd.cluster, cluster, sizeof(cmd.cluster));
	cmd.shared = shared;
	cmd.args = args;
	return sc_submit(&cmd);
}

CUresult impl_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
			     unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
			     unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
			     void **kernelParams, void **extra)
{
	const unsigned grid[3] = { gridDimX, gridDimY, gridDimZ };
	const unsigned block[3] = { blockDimX, blockDimY, blockDimZ };

	(void)extra;
	return launch(f, grid, block, sharedMemBytes, hStream, kernelParams, NULL);
}

CUresult impl_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
					unsigned int gridDimZ, unsigned int blockDimX,
					unsigned int blockDimY, unsigned int blockDimZ,
					unsigned int sharedMemBytes, CUstream hStream,
					void **kernelParams)
{
	return impl_cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
				   sharedMemBytes, hStream, kernelParams, NULL);
}

CUresult impl_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
			       void **extra)
{
	const unsigned grid[3] = { config->gridDimX, config->gridDimY, config->gridDimZ };
	const unsigned block[3] = { config->blockDimX, config->blockDimY, config->blockDimZ };
	unsigned cluster[3] = { 0, 0, 0 };

	(void)extra;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
			cluster[0] = config->attrs[i].value.clusterDim.x;
			cluster[1] = config->attrs[i].value.clusterDim.y;
			cluster[2] = config->attrs[i].value.clusterDim.z;
		}
	}
	return launch(f, grid, block, config->sharedMemBytes, config->hStream, kernelParams,
		      cluster);
}
