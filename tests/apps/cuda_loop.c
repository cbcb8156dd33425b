/*
 * A loop of empty launches, for measurements:
 *	cuda_loop [N [EVERY]]
 * waits after each EVERY launches (100). Prints the time of one launch, waits included.
 */
#include "cuda_app.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 100000, every = argc > 2 ? atol(argv[2]) : 100;
	uint64_t start;

	CUDA_CHECK(cudaFree(NULL));
	start = now_ns();
	for (long i = 1; i <= count; i++) {
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
		if (i % every == 0)
			CUDA_CHECK(cudaStreamSynchronize(NULL));
	}
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("%.1f ns a launch\n", (double)(now_ns() - start) / (double)count);
	printf("expected: %ld kernels\n", count);
	return 0;
}
