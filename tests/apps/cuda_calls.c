/*
 * The price of CUDA's and NVTX's calls: ns each, of the cheapest of several rounds.
 *	cuda_calls [CALLS]
 * With SOFTCUDA_SYNC=1: a launch is executed in its call.
 */
#include "cuda_app.h"

#include <nvtx3/nvToolsExt.h>

enum { ROUNDS = 7 };

static void get_device(unsigned count)
{
	int device;

	for (unsigned i = 0; i < count; i++)
		CUDA_CHECK(cudaGetDevice(&device));
}

static void launch(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
}

static void push_pop(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		nvtxRangePushA("range");
		nvtxRangePop();
	}
}

static void measure(const char *name, void (*calls)(unsigned), unsigned count)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start, ns;

		sleep_ms(20); /* the drain process empties the ring */
		start = now_ns();
		calls(count);
		ns = now_ns() - start;
		best = ns < best ? ns : best;
	}
	printf("%s %.2f\n", name, (double)best / count);
}

int main(int argc, char **argv)
{
	unsigned calls = argc > 1 ? (unsigned)atoi(argv[1]) : 10000;

	CUDA_CHECK(cudaFree(NULL));
	measure("get_device", get_device, calls);
	measure("launch", launch, calls);
	measure("push_pop", push_pop, calls);
	return 0;
}
