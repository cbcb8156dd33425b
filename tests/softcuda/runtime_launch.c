/* What nvcc's host code registers, and launches. A program that no nvcc made registers its kernels
 * by the same functions (tests/apps/cuda_app.h). */
#include "runtime_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { KERNELS = 4096, CONFIGURATIONS = 4 };

static struct {
	const void *host;
	struct sc_function *function;
} kernels[KERNELS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned slot_of(const void *host)
{
	return (unsigned)(((uintptr_t)host >> 4) * 2654435761u) % KERNELS;
}

CUfunction sc_kernel_of(const void *host)
{
	for (unsigned i = slot_of(host), n = 0; n < KERNELS; i = (i + 1) % KERNELS, n++) {
		const void *there = __atomic_load_n(&kernels[i].host, __ATOMIC_ACQUIRE);

		if (there == host)
			return (CUfunction)kernels[i].function;
		if (!there)
			break;
	}
	return NULL;
}

static const char *name_of(const void *host)
{
	const struct sc_function *function = (struct sc_function *)sc_kernel_of(host);

	return function ? function->name : NULL;
}

__attribute__((constructor)) static void offer_names(void)
{
	sc_runtime_name = name_of;
}

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device_function,
			    const char *device_name, int thread_limit, void *tid, void *bid,
			    void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external,
		       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
			      int external, size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream);

EXPORT void **__cudaRegisterFatBinary(void *binary)
{
	void **handle = malloc(sizeof(*handle));

	(void)binary;
	*handle = sc_module_make(NULL, false);
	return handle;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	free(handle);
}

EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device_function,
				   const char *device_name, int thread_limit, void *tid, void *bid,
				   void *block, void *grid, int *warp)
{
	struct sc_function *function = sc_function_find(*handle, device_name);

	(void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid,
		(void)warp;
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = slot_of(host), n = 0; n < KERNELS; i = (i + 1) % KERNELS, n++) {
		if (kernels[i].host && kernels[i].host != host)
			continue;
		kernels[i].function = function;
		__atomic_store_n(&kernels[i].host, host, __ATOMIC_RELEASE);
		break;
	}
	(void)pthread_mutex_unlock(&lock);
}

/* a device's variable is the host's */
EXPORT void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
			      int external, size_t size, int constant, int global)
{
	(void)handle, (void)host, (void)address, (void)name, (void)external, (void)size,
		(void)constant, (void)global;
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
				     int external, size_t size, int constant, int global)
{
	(void)handle, (void)address, (void)name, (void)external, (void)constant, (void)global;
	*host = calloc(1, size);
}

static __thread struct {
	dim3 grid, block;
	size_t shared;
	CUstream stream;
} configurations[CONFIGURATIONS];
static __thread unsigned configuration_count;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream stream)
{
	unsigned i = configuration_count++ % CONFIGURATIONS;

	configurations[i].grid = grid;
	configurations[i].block = block;
	configurations[i].shared = shared;
	configurations[i].stream = stream;
	return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	unsigned i = --configuration_count % CONFIGURATIONS;

	*grid = configurations[i].grid;
	*block = configurations[i].block;
	*shared = configurations[i].shared;
	*(CUstream *)stream = configurations[i].stream;
	return cudaSuccess;
}

static cudaError_t launch(CUfunction function, dim3 grid, dim3 block, void **args, size_t shared,
			  cudaStream_t stream)
{
	cudaError_t error = sc_ensure();

	if (error)
		return error;
	if (!function)
		return cudaErrorInvalidDeviceFunction;
	error = sc_error_of(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
					   block.z, (unsigned)shared, stream, args, NULL));
	return error == cudaErrorInvalidValue ? cudaErrorInvalidConfiguration : error;
}

cudaError_t impl_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
				  size_t sharedMem, cudaStream_t stream)
{
	return launch(sc_kernel_of(func), gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t impl_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
					     void **args, size_t sharedMem, cudaStream_t stream)
{
	return launch(sc_kernel_of(func), gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t impl_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
				     void **args)
{
	CUlaunchConfig driver = { .gridDimX = config->gridDim.x,
				  .gridDimY = config->gridDim.y,
				  .gridDimZ = config->gridDim.z,
				  .blockDimX = config->blockDim.x,
				  .blockDimY = config->blockDim.y,
				  .blockDimZ = config->blockDim.z,
				  .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
				  .hStream = config->stream,
				  .attrs = (CUlaunchAttribute *)config->attrs,
				  .numAttrs = config->numAttrs };
	CUfunction function = sc_kernel_of(func);

	if (!function)
		return cudaErrorInvalidDeviceFunction;
	return SC_WITH_CONTEXT(cuLaunchKernelEx(&driver, function, args, NULL));
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	*kernel = (cudaKernel_t)sc_kernel_of(host);
	return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/* CUPTI has a callback for it, but no structure of its parameters */
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				      size_t shared, cudaStream_t stream)
{
	struct sc_call call = { .domain = SC_RUNTIME,
				.cbid = CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
				.name = "__cudaLaunchKernel_v13000",
				.symbol = "__cudaLaunchKernel" };
	cudaError_t ret = cudaSuccess;

	sc_runtime_start();
	if (!sc_slow())
		return sc_result(launch((CUfunction)kernel, grid, block, args, shared, stream));
	call.ret = (int *)&ret;
	if (sc_call_begin(&call))
		ret = sc_result(launch((CUfunction)kernel, grid, block, args, shared, stream));
	sc_call_end(&call);
	return ret;
}

EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					   size_t shared, cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

cudaError_t impl_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	return SC_WITH_CONTEXT(cuLaunchHostFunc(stream, fn, userData));
}

cudaError_t impl_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
	*functionPtr = (cudaFunction_t)sc_kernel_of(symbolPtr);
	return *functionPtr ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t impl_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	const struct sc_function *function = (struct sc_function *)sc_kernel_of(func);

	if (!function)
		return cudaErrorInvalidDeviceFunction;
	memset(attr, 0, sizeof(*attr));
	attr->numRegs = (int)function->info.registers;
	attr->sharedSizeBytes = function->info.static_shared;
	attr->localSizeBytes = function->info.local_bytes;
	attr->maxThreadsPerBlock = 1024;
	return cudaSuccess;
}

cudaError_t impl_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	(void)attr, (void)value;
	return sc_kernel_of(func) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
