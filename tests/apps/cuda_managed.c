/*
 * Managed memory that moves between the host and two devices, peer copies, and memory of pools:
 *	cuda_managed [N]
 * Prints how much its trace must hold.
 */
#include "cuda_app.h"

enum { COUNT = 4096 };

static void managed(int times)
{
	struct cudaMemLocation device = { .type = cudaMemLocationTypeDevice, .id = 0 };
	struct cudaMemLocation host = { .type = cudaMemLocationTypeHost };
	size_t bytes = COUNT * sizeof(int);
	int count = COUNT, *at;
	void *args[] = { &at, &count };

	CUDA_CHECK(cudaSetDevice(0));
	CUDA_CHECK(cudaMallocManaged((void **)&at, bytes, cudaMemAttachGlobal));
	memset(at, 0, bytes);
	for (int i = 0; i < times; i++) {
		CUDA_CHECK(cudaMemPrefetchAsync(at, bytes, device, 0, NULL));
		CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 1, 32, args, NULL));
		CUDA_CHECK(cudaMemPrefetchAsync(at, bytes, host, 0, NULL));
		CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 1, 32, args, NULL)); /* faults */
		CUDA_CHECK(cudaDeviceSynchronize());
		CUDA_CHECK(cudaMemPrefetchAsync(at, bytes, host, 0, NULL));
	}
	if (at[COUNT - 1] != 2 * times)
		exit(97);
	CUDA_CHECK(cudaFree(at));
}

static void peers(int times)
{
	size_t bytes = COUNT * sizeof(int);
	void *at[2];

	for (int i = 0; i < 2; i++) {
		CUDA_CHECK(cudaSetDevice(i));
		CUDA_CHECK(cudaMalloc(&at[i], bytes));
		CUDA_CHECK(cudaDeviceEnablePeerAccess(!i, 0));
	}
	for (int i = 0; i < times; i++) {
		CUDA_CHECK(cudaMemcpyPeer(at[0], 0, at[1], 1, bytes));
		CUDA_CHECK(cudaMemcpyPeerAsync(at[1], 1, at[0], 0, bytes, NULL));
	}
	CUDA_CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 2; i++)
		CUDA_CHECK(cudaFree(at[i]));
}

static void pools(int times)
{
	struct cudaMemPoolProps props = { .allocType = cudaMemAllocationTypePinned,
					  .location = { .type = cudaMemLocationTypeDevice } };
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *at;

	CUDA_CHECK(cudaStreamCreate(&stream));
	CUDA_CHECK(cudaMemPoolCreate(&pool, &props));
	CUDA_CHECK(cudaMallocFromPoolAsync(&at, 4096, pool, stream));
	CUDA_CHECK(cudaFreeAsync(at, stream));
	CUDA_CHECK(cudaMemPoolTrimTo(pool, 0));
	CUDA_CHECK(cudaMemPoolDestroy(pool));
	for (int i = 0; i < times; i++) {
		CUDA_CHECK(cudaMallocAsync(&at, 1 << 20, stream));
		CUDA_CHECK(cudaMemsetAsync(at, 1, 1 << 20, stream));
		CUDA_CHECK(cudaFreeAsync(at, stream));
	}
	CUDA_CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 3, devices = 0;

	CUDA_CHECK(cudaGetDeviceCount(&devices));
	if (devices < 2) {
		fprintf(stderr, "two devices are needed\n");
		return 2;
	}
	managed(times);
	peers(times);
	pools(times);
	printf("expected: %d kernels\n", 2 * times);
	printf("expected: %d peers\n", 2 * times);
	printf("expected: %d fills\n", times);
	printf("expected: %d migrations\n", 4 * times);
	return 0;
}
