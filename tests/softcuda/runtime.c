/* The runtime's start, devices and errors. */
#include "runtime_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

bool sc_started;
__thread cudaError_t sc_last_error;

static CUresult initialized;
static __thread int device;

static void initialize(void)
{
	initialized = cuInit(0);
	__atomic_store_n(&sc_started, true, __ATOMIC_RELEASE);
}

void sc_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, initialize);
}

/* most have the same numbers */
cudaError_t sc_error_of(CUresult result)
{
	if (sc_config.no_driver || sc_config.insufficient_driver)
		return cudaErrorInsufficientDriver;
	return (cudaError_t)result;
}

cudaError_t sc_ensure(void)
{
	CUcontext context = (CUcontext)sc_current();
	CUresult result;

	if (context)
		return cudaSuccess;
	if (initialized)
		return sc_error_of(initialized);
	result = cuDevicePrimaryCtxRetain(&context, device);
	return sc_error_of(result ? result : cuCtxSetCurrent(context));
}

cudaError_t impl_cudaGetDeviceCount(int *count)
{
	*count = 0;
	return sc_error_of(initialized ? initialized : cuDeviceGetCount(count));
}

cudaError_t impl_cudaSetDevice(int wanted)
{
	CUcontext context;
	CUresult result;

	if (initialized)
		return sc_error_of(initialized);
	if (wanted < 0 || wanted >= (int)sc_config.devices)
		return cudaErrorInvalidDevice;
	device = wanted;
	result = cuDevicePrimaryCtxRetain(&context, wanted);
	return sc_error_of(result ? result : cuCtxSetCurrent(context));
}

cudaError_t impl_cudaInitDevice(int wanted, unsigned int deviceFlags, unsigned int flags)
{
	(void)deviceFlags, (void)flags;
	return wanted < 0 || wanted >= (int)sc_config.devices ? cudaErrorInvalidDevice
							      : cudaSuccess;
}

cudaError_t impl_cudaGetDevice(int *current)
{
	struct sc_context *context = sc_current();

	*current = context ? context->device->ordinal : device;
	return sc_error_of(initialized);
}

cudaError_t impl_cudaDriverGetVersion(int *version)
{
	*version = 0;
	return sc_config.no_driver ? cudaSuccess : (cudaError_t)cuDriverGetVersion(version);
}

cudaError_t impl_cudaRuntimeGetVersion(int *version)
{
	*version = SC_CUDA_MAJOR * 1000 + (SC_CUDA_MAJOR == 12 ? 90 : 50);
	return cudaSuccess;
}

cudaError_t impl_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int wanted)
{
	if (initialized)
		return sc_error_of(initialized);
	if (wanted < 0 || wanted >= (int)sc_config.devices)
		return cudaErrorInvalidDevice;
	memset(prop, 0, sizeof(*prop));
	(void)snprintf(prop->name, sizeof(prop->name), "%s", sc_devices[wanted].name);
	memcpy(&prop->uuid, &sc_devices[wanted].uuid, sizeof(prop->uuid));
	prop->totalGlobalMem = sc_config.memory;
	prop->major = 9;
	prop->multiProcessorCount = 4;
	prop->warpSize = 32;
	prop->maxThreadsPerBlock = 1024;
	prop->pciBusID = 0x41 + wanted;
	prop->asyncEngineCount = 2;
	prop->unifiedAddressing = prop->managedMemory = prop->concurrentKernels = 1;
	return cudaSuccess;
}

cudaError_t impl_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int wanted)
{
	return sc_error_of(cuDeviceGetAttribute(value, (CUdevice_attribute)attr, wanted));
}

cudaError_t impl_cudaDeviceGetPCIBusId(char *pciBusId, int len, int wanted)
{
	return sc_error_of(cuDeviceGetPCIBusId(pciBusId, len, wanted));
}

cudaError_t impl_cudaDeviceCanAccessPeer(int *canAccessPeer, int wanted, int peerDevice)
{
	return sc_error_of(cuDeviceCanAccessPeer(canAccessPeer, wanted, peerDevice));
}

cudaError_t impl_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	CUcontext peer;
	CUresult result = cuDevicePrimaryCtxRetain(&peer, peerDevice);

	return sc_error_of(result ? result : cuCtxEnablePeerAccess(peer, flags));
}

cudaError_t impl_cudaDeviceReset(void)
{
	struct sc_context *context = sc_current();
	int current = context ? context->device->ordinal : device;

	if (initialized)
		return sc_error_of(initialized);
	return sc_error_of(cuDevicePrimaryCtxReset(current));
}

cudaError_t impl_cudaDeviceSynchronize(void)
{
	return SC_WITH_CONTEXT(cuCtxSynchronize());
}

cudaError_t impl_cudaGetLastError(void)
{
	cudaError_t error = sc_last_error;

	sc_last_error = cudaSuccess;
	return error;
}

cudaError_t impl_cudaPeekAtLastError(void)
{
	return sc_last_error;
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = "";

	if (error == cudaErrorInsufficientDriver)
		return "CUDA driver version is insufficient for CUDA runtime version";
	(void)cuGetErrorString((CUresult)error, &text);
	return text;
}

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	const char *name = "";

	if (error == cudaErrorInsufficientDriver)
		return "cudaErrorInsufficientDriver";
	(void)cuGetErrorName((CUresult)error, &name);
	return name;
}

EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
							  enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}

cudaError_t impl_cudaGetDriverEntryPointByVersion(
	const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	CUdriverProcAddressQueryResult status;
	CUresult result = cuGetProcAddress(symbol, funcPtr, (int)cudaVersion, flags, &status);

	if (driverStatus)
		*driverStatus = (enum cudaDriverEntryPointQueryResult)status;
	return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : sc_error_of(result);
}
