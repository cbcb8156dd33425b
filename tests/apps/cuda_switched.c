/*
 * Kernels at times that are recorded, and at others.
 *
 *	cuda_switched env	10 kernels, then 20 with PTI_ENABLE_COLLECTION=1, then 40 with 0
 *	cuda_switched steps	10 NVTX ranges "step", the n-th with n kernels
 *	cuda_switched wait	10 kernels, a second later 20
 */
#include "cuda_app.h"

#include <nvtx3/nvToolsExt.h>

static void launch(int count)
{
	for (int i = 0; i < count; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	CUDA_CHECK(cudaFree(NULL));
	if (!strcmp(mode, "env")) {
		launch(10);
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
		launch(20);
		setenv("PTI_ENABLE_COLLECTION", "0", 1);
		launch(40);
	} else if (!strcmp(mode, "steps")) {
		for (int n = 1; n <= 10; n++) {
			nvtxRangePushA("step");
			launch(n);
			nvtxRangePop();
		}
	} else {
		launch(10);
		sleep_ms(1000);
		launch(20);
	}
	return 0;
}
