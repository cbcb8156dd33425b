/*
 * Kernels at times that are recorded, and at others.
 *
 *	cuda_switched env	10 kernels, then 20 with PTI_ENABLE_COLLECTION=1, then 40 with 0
 *	cuda_switched steps	10 NVTX ranges "step", the n-th with n kernels
 *	cuda_switched wait	10 kernels, a second later 20
 *	cuda_switched within	a kernel, for which it waits while another thread pauses and resumes
 */
#include "cuda_app.h"

#include <nvtx3/nvToolsExt.h>

static void launch(int count)
{
	for (int i = 0; i < count; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void *toggle(void *unused)
{
	sleep_ms(30);
	setenv("PTI_ENABLE_COLLECTION", "0", 1);
	sleep_ms(30);
	setenv("PTI_ENABLE_COLLECTION", "1", 1);
	return unused;
}

static void wait_meanwhile(void)
{
	uint64_t ns = 150000000;
	pthread_t thread;

	setenv("PTI_ENABLE_COLLECTION", "1", 1);
	CUDA_CHECK(cuda_app_launch(CUDA_SPIN, 1, 1, (void *[]){ &ns }, NULL));
	(void)pthread_create(&thread, NULL, toggle, NULL);
	CUDA_CHECK(cudaStreamSynchronize(NULL));
	(void)pthread_join(thread, NULL);
	launch(1);
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
	} else if (!strcmp(mode, "within")) {
		wait_meanwhile();
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
