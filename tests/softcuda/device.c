/* Devices, and the driver's start: it loads the library that CUDA_INJECTION64_PATH names, as
 * NVIDIA's does, before it does anything else. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sc_device sc_devices[SC_DEVICES_MAX];

static pthread_once_t started = PTHREAD_ONCE_INIT;
static _Atomic CUresult state = CUDA_ERROR_NOT_INITIALIZED;

static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void) = NULL;
	void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		(void)initialize();
}

static void child_of_fork(void)
{
	if (state == CUDA_SUCCESS)
		state = CUDA_ERROR_NOT_INITIALIZED;
}

static void device_make(int ordinal)
{
	struct sc_device *device = &sc_devices[ordinal];
	int number = ordinal + (int)sc_config.first;

	device->ordinal = ordinal;
	(void)snprintf(device->name, sizeof(device->name), "Software GPU %d", number);
	(void)snprintf(device->pci, sizeof(device->pci), "0000:%02x:00.0", 0x41 + number);
	for (unsigned i = 0; i < sizeof(device->uuid.bytes); i++)
		device->uuid.bytes[i] = (char)(0x50 + i);
	device->uuid.bytes[15] = (char)number;
}

static void start(void)
{
	for (int i = 0; i < (int)sc_config.devices; i++)
		device_make(i);
	inject();
	(void)pthread_atfork(NULL, NULL, child_of_fork);
	state = sc_config.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
	if (state == CUDA_SUCCESS)
		SC_TELL(resource, 5, NULL, NULL, NULL); /* CU_INIT_FINISHED */
}

CUresult sc_ready(void)
{
	return state;
}

CUresult impl_cuInit(unsigned int Flags)
{
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sc_config.no_driver)
		return CUDA_ERROR_NO_DEVICE;
	if (sc_config.insufficient_driver)
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	(void)pthread_once(&started, start);
	return state;
}

CUresult impl_cuDriverGetVersion(int *driverVersion)
{
	*driverVersion = sc_config.driver_version;
	return CUDA_SUCCESS;
}

CUresult impl_cuDeviceGetCount(int *count)
{
	*count = (int)sc_config.devices;
	return sc_ready();
}

static CUresult valid(CUdevice dev)
{
	if (sc_ready())
		return sc_ready();
	return dev >= 0 && dev < (int)sc_config.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult impl_cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return valid(ordinal);
}

CUresult impl_cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult ret = valid(dev);

	if (!ret)
		(void)snprintf(name, (size_t)len, "%s", sc_devices[dev].name);
	return ret;
}

CUresult impl_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	CUresult ret = valid(dev);

	if (!ret)
		*uuid = sc_devices[dev].uuid;
	return ret;
}

/* of a MIG instance if there is one, else the device's */
CUresult impl_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult ret = impl_cuDeviceGetUuid(uuid, dev);

	if (!ret && sc_config.mig)
		uuid->bytes[0] = (char)0xa0;
	return ret;
}

CUresult impl_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	*bytes = sc_config.memory;
	return valid(dev);
}

CUresult impl_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	CUresult ret = valid(dev);

	if (!ret)
		(void)snprintf(pciBusId, (size_t)len, "%s", sc_devices[dev].pci);
	return ret;
}

CUresult impl_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	for (int i = 0; i < (int)sc_config.devices; i++) {
		if (!strcmp(pciBusId, sc_devices[i].pci)) {
			*dev = i;
			return sc_ready();
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult impl_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	*major = 9;
	*minor = 0;
	return valid(dev);
}

CUresult impl_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	switch ((int)attrib) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		*pi = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		*pi = 64;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		*pi = 0x7fffffff;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
		*pi = 65535;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*pi = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*pi = 4;
		break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*pi = 1000000;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*pi = 0x41 + dev;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*pi = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		*pi = 2;
		break;
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
		*pi = 1;
		break;
	default:
		*pi = 0;
	}
	return valid(dev);
}

CUresult impl_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	*canAccessPeer = dev != peerDev;
	return valid(dev) ? valid(dev) : valid(peerDev);
}

static const struct {
	CUresult result;
	const char *name, *text;
} results[] = {
	{ CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
	{ CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static unsigned result_row(CUresult error)
{
	for (unsigned i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == error)
			return i;
	return sizeof(results) / sizeof(results[0]) - 1;
}

CUresult impl_cuGetErrorName(CUresult error, const char **pStr)
{
	*pStr = results[result_row(error)].name;
	return CUDA_SUCCESS;
}

CUresult impl_cuGetErrorString(CUresult error, const char **pStr)
{
	*pStr = results[result_row(error)].text;
	return CUDA_SUCCESS;
}

static void *entry_point(const char *symbol, int version)
{
	const char *suffixes[] = { "_v4", "_v3", "_v2", "" };
	char name[128];

	for (unsigned i = version >= 3020 ? 0 : 3; i < 4; i++) {
		(void)snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
		for (const struct sc_name *row = sc_driver_names; row->name; row++)
			if (!strcmp(row->name, name))
				return row->function;
	}
	return NULL;
}

CUresult impl_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *symbolStatus)
{
	(void)flags;
	*pfn = entry_point(symbol, cudaVersion);
	if (symbolStatus)
		*symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS
				     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult impl_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	return impl_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}
