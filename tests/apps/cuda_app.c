/* The kernels of the CUDA programs, and their registration. */
#include "cuda_app.h"

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device_function,
			    const char *device_name, int thread_limit, void *tid, void *bid,
			    void *block, void *grid, int *warp);

#define KERNEL(name)                                                                        \
	__attribute__((visibility("default"))) void softcuda_##name(void **args,            \
								    const unsigned grid[3], \
								    const unsigned block[3])
#define INFO(name, ...)                                         \
	extern const struct softcuda_info softcuda_info_##name; \
	__attribute__((visibility("default")))                  \
	const struct softcuda_info softcuda_info_##name = { __VA_ARGS__ }

KERNEL(empty);
KERNEL(_Z9incrementPii);
KERNEL(spin);
KERNEL(countdown);
INFO(empty, .registers = 8);
INFO(_Z9incrementPii, .registers = 16, .static_shared = 128, .local_bytes = 8, .arg_count = 2,
     .arg_sizes = { 8, 4 });
INFO(countdown, .registers = 8, .arg_count = 2, .arg_sizes = { 8, 8 });
INFO(spin, .registers = 24, .arg_count = 1, .arg_sizes = { 8 });

KERNEL(empty)
{
	(void)args, (void)grid, (void)block;
}

KERNEL(_Z9incrementPii)
{
	int *at = *(int **)args[0], count = *(int *)args[1];

	(void)grid, (void)block;
	for (int i = 0; i < count; i++)
		at[i]++;
}

KERNEL(spin)
{
	uint64_t end = now_ns() + *(uint64_t *)args[0];

	(void)grid, (void)block;
	while (now_ns() < end)
		;
}

KERNEL(countdown)
{
	int *at = *(int **)args[0];

	(void)grid, (void)block;
	--*at;
	softcuda_set_conditional(*(unsigned long long *)args[1], *at > 0);
}

/* their addresses stand for the kernels, as those of nvcc's stubs do */
static const char stubs[CUDA_KERNELS * 16];
static char *const names[CUDA_KERNELS] = { "empty", "_Z9incrementPii", "spin", "countdown" };

const void *cuda_app_kernel(enum cuda_kernel kernel)
{
	return &stubs[(size_t)kernel * 16];
}

__attribute__((constructor)) static void register_kernels(void)
{
	static int binary;
	void **handle = __cudaRegisterFatBinary(&binary);

	for (int i = 0; i < CUDA_KERNELS; i++)
		__cudaRegisterFunction(handle, cuda_app_kernel((enum cuda_kernel)i), names[i],
				       names[i], -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

cudaError_t cuda_app_launch(enum cuda_kernel kernel, unsigned blocks, unsigned threads, void **args,
			    cudaStream_t stream)
{
	return cudaLaunchKernel(cuda_app_kernel(kernel), (dim3){ blocks, 1, 1 },
				(dim3){ threads, 1, 1 }, args, 0, stream);
}
