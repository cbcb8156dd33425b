/* The software CUDA's runtime (libcudart): what its parts share. It stands on the driver's exported
 * functions, as NVIDIA's does, so that a tool that asks for both sees both. */
#ifndef SOFTCUDA_RUNTIME_API_H
#define SOFTCUDA_RUNTIME_API_H

#include "driver.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

extern bool sc_started;
extern __thread cudaError_t sc_last_error;
void sc_begin(void);
cudaError_t sc_ensure(void); /* a context for this thread */
CUfunction sc_kernel_of(const void *host);
cudaError_t sc_error_of(CUresult result);

static inline void sc_runtime_start(void)
{
	if (SC_UNLIKELY(!__atomic_load_n(&sc_started, __ATOMIC_ACQUIRE)))
		sc_begin();
}

static inline cudaError_t sc_result(cudaError_t result)
{
	if (SC_UNLIKELY(result != cudaSuccess) && result != cudaErrorNotReady)
		sc_last_error = result;
	return result;
}

/* what needs a context, by a call of the driver */
#define SC_WITH_CONTEXT(call)                        \
	({                                           \
		cudaError_t error_ = sc_ensure();    \
		error_ ? error_ : sc_error_of(call); \
	})

#endif
