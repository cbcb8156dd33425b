// An ordinary CUDA program, for nvcc; softcuda_* is what the software CUDA runs in the kernel's place.
// Prints how much its trace must hold.
#include <cstdio>
#include <cstdlib>

#include "softcuda.h"

__global__ void vadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" {
extern const struct softcuda_info softcuda_info__Z4vaddPKfS0_Pfi = { 10, 0, 0, 4, { 8, 8, 8, 4 } };

void softcuda__Z4vaddPKfS0_Pfi(void **args, const unsigned *, const unsigned *)
{
	const float *a = *(const float **)args[0], *b = *(const float **)args[1];
	float *c = *(float **)args[2];

	for (int i = 0; i < *(int *)args[3]; i++)
		c[i] = a[i] + b[i];
}
}

int main(int argc, char **argv)
{
	int n = 4096, times = argc > 1 ? atoi(argv[1]) : 3, wrong = 0;
	size_t bytes = n * sizeof(float);
	float *host[3], *device[3];

	for (int i = 0; i < 3; i++) {
		host[i] = (float *)malloc(bytes);
		if (cudaMalloc(&device[i], bytes))
			return 98;
	}
	for (int i = 0; i < n; i++) {
		host[0][i] = i;
		host[1][i] = 2 * i;
	}
	cudaMemcpy(device[0], host[0], bytes, cudaMemcpyHostToDevice);
	cudaMemcpy(device[1], host[1], bytes, cudaMemcpyHostToDevice);
	cudaMemset(device[2], 0, bytes);
	for (int i = 0; i < times; i++)
		vadd<<<(n + 255) / 256, 256>>>(device[0], device[1], device[2], n);
	cudaMemcpy(host[2], device[2], bytes, cudaMemcpyDeviceToHost);
	for (int i = 0; i < n; i++)
		wrong += host[2][i] != 3.0f * i;
	printf("expected: %d kernels\nexpected: 3 copies\nexpected: 1 fills\n", times);
	return wrong ? 97 : 0;
}
