/* Calls that fail, each as it should, between launches that do not: cuda_errors */
#include "cuda_app.h"

static int wrong;

static void fails(const char *call, cudaError_t result, cudaError_t wanted)
{
	if (result != wanted) {
		fprintf(stderr, "%s: %d, not %d\n", call, (int)result, (int)wanted);
		wrong = 1;
	}
}

#define FAILS(wanted, call) fails(#call, call, wanted)

int main(void)
{
	static const char unknown;
	void *at = NULL;

	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	FAILS(cudaErrorInvalidConfiguration, cuda_app_launch(CUDA_EMPTY, 0, 1, NULL, NULL));
	FAILS(cudaErrorInvalidConfiguration, cuda_app_launch(CUDA_EMPTY, 1, 2000, NULL, NULL));
	FAILS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
	FAILS(cudaErrorInvalidConfiguration, cudaGetLastError());
	FAILS(cudaSuccess, cudaGetLastError());
	FAILS(cudaErrorInvalidDeviceFunction,
	      cudaLaunchKernel(&unknown, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL));
	FAILS(cudaErrorInvalidDevice, cudaSetDevice(99));
	FAILS(cudaErrorInvalidValue, cudaMalloc(&at, 0));
	FAILS(cudaErrorMemoryAllocation, cudaMalloc(&at, (size_t)1 << 50));
	FAILS(cudaErrorInvalidValue, cudaFree(&wrong));
	FAILS(cudaErrorInvalidMemcpyDirection,
	      cudaMemcpy(&wrong, &wrong, 4, (enum cudaMemcpyKind)9));
	FAILS(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, NULL));
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: 2 kernels\n");
	return wrong;
}
