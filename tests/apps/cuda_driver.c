/*
 * The driver's API alone: two contexts of its own, a module "compiled" from PTX, launches with and
 * without clusters, through pointers that cuGetProcAddress gives; on every device:
 *	cuda_driver [N]
 */
#include "cuda_app.h"

#include <cuda.h>

#define CU_CHECK(call)                                                    \
	do {                                                              \
		CUresult result_ = (call);                                \
		if (result_) {                                            \
			fprintf(stderr, "%s: %d\n", #call, (int)result_); \
			exit(98);                                         \
		}                                                         \
	} while (0)

enum { COUNT = 256 };

static void launches(CUfunction function, CUstream stream, int times, CUdeviceptr at)
{
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { .gridDimX = 4,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 64,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .sharedMemBytes = 512,
				  .hStream = stream,
				  .attrs = &cluster,
				  .numAttrs = 1 };
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			   unsigned, CUstream, void **, void **);
	CUdriverProcAddressQueryResult status;
	int count = COUNT;
	void *args[] = { &at, &count };

	cluster.value.clusterDim.x = 2;
	cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
	CU_CHECK(cuGetProcAddress("cuLaunchKernel", (void **)&launch, 12000, 0, &status));
	for (int i = 0; i < times; i++) {
		CU_CHECK(launch(function, 4, 1, 1, 64, 1, 1, 0, stream, args, NULL));
		CU_CHECK(cuLaunchKernelEx(&config, function, args, NULL));
	}
}

static void in_context(CUdevice device, int times)
{
	static const char ptx[] = ".version 8.0\n.target sm_90\n";
	int host[COUNT];
	CUcontext context;
	CUfunction function;
	CUmodule module;
	CUdeviceptr at;
	CUstream stream;

	CU_CHECK(cuCtxCreate(&context, NULL, 0, device));
	CU_CHECK(cuModuleLoadData(&module, ptx));
	CU_CHECK(cuModuleGetFunction(&function, module, "_Z9incrementPii"));
	CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU_CHECK(cuMemAlloc(&at, sizeof(host)));
	CU_CHECK(cuMemsetD32(at, 5, COUNT));
	launches(function, stream, times, at);
	CU_CHECK(cuStreamSynchronize(stream));
	CU_CHECK(cuMemcpyDtoH(host, at, sizeof(host)));
	if (host[COUNT - 1] != 5 + 2 * times)
		exit(97);
	CU_CHECK(cuMemFree(at));
	CU_CHECK(cuStreamDestroy(stream));
	CU_CHECK(cuModuleUnload(module));
	CU_CHECK(cuCtxDestroy(context));
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 5, devices;

	CU_CHECK(cuInit(0));
	CU_CHECK(cuDeviceGetCount(&devices));
	for (int i = 0; i < 2 * devices; i++)
		in_context(i / 2, times);
	printf("expected: %d kernels\n", 4 * devices * times);
	printf("expected: %d copies\n", 2 * devices);
	printf("expected: %d fills\n", 2 * devices);
	return 0;
}
