/*
 * What the CUDA programs share. They are plain C: what nvcc's host code would register, cuda_app.c
 * registers by the same functions of the runtime, and a kernel is a function that the software CUDA
 * finds by its name (tests/softcuda/softcuda.h).
 */
#ifndef XSTRACE_TESTS_CUDA_APP_H
#define XSTRACE_TESTS_CUDA_APP_H

#include "app.h"
#include "softcuda.h"

#include <cuda_runtime_api.h>

#define CUDA_CHECK(call)                                                   \
	do {                                                               \
		cudaError_t error_ = (call);                               \
		if (error_) {                                              \
			fprintf(stderr, "%s: %d %s\n", #call, (int)error_, \
				cudaGetErrorString(error_));               \
			exit(98);                                          \
		}                                                          \
	} while (0)

/*
 * What a program launches: empty(), increment(int *at, int count), spin(uint64_t ns), and
 * countdown(int *at, cudaGraphConditionalHandle), which ends a loop of a graph when *at is 0.
 */
enum cuda_kernel { CUDA_EMPTY, CUDA_INCREMENT, CUDA_SPIN, CUDA_COUNTDOWN, CUDA_KERNELS };
const void *cuda_app_kernel(enum cuda_kernel kernel);

cudaError_t cuda_app_launch(enum cuda_kernel kernel, unsigned blocks, unsigned threads, void **args,
			    cudaStream_t stream);

#endif
