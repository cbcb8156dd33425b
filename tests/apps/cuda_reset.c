/*
 * Work, a reset of the device, and work again, N times; with a thread that ends before each reset:
 *	cuda_reset [N]
 */
#include "cuda_app.h"

enum { KERNELS = 10 };

static void work(void)
{
	cudaStream_t stream;

	CUDA_CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < KERNELS; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 32, NULL, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
}

static void *work_in_thread(void *arg)
{
	work();
	return arg;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 3;

	for (int i = 0; i < times; i++) {
		work();
		(void)pthread_join(start_thread(work_in_thread, NULL), NULL);
		CUDA_CHECK(cudaDeviceReset());
	}
	printf("expected: %d kernels\n", 2 * KERNELS * times);
	return 0;
}
