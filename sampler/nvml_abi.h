/*
 * The part of NVIDIA's management library that is used here: types, numbers and functions. They
 * are those of nvml.h (NVML 12 and 13), as the package nvidia-ml-py 13.615 has them for Python.
 */
#ifndef XS_NVML_ABI_H
#define XS_NVML_ABI_H

#include <stdint.h>

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_PCIE_UTIL_TX_BYTES = 0, NVML_PCIE_UTIL_RX_BYTES = 1 };

enum {
	NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83,   /* mJ */
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138, /* KiB; scope: the link */
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
	NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197,
	NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198,
};

enum {
	NVML_VALUE_TYPE_DOUBLE,
	NVML_VALUE_TYPE_UNSIGNED_INT,
	NVML_VALUE_TYPE_UNSIGNED_LONG,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG,
};

typedef struct xs_nvml_device *nvmlDevice_t; /* the library's own */
typedef unsigned int nvmlReturn_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32]; /* "00000000:3A:00.0" */
} nvmlPciInfo_t;

typedef struct {
	unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
	unsigned int gpu, memory; /* % */
} nvmlUtilization_t;

typedef struct {
	uint32_t fieldId, scopeId;
	int64_t timestamp, latencyUsec; /* us since the epoch */
	unsigned int valueType;
	nvmlReturn_t nvmlReturn;
	union {
		double dVal;
		unsigned int uiVal;
		unsigned long long ullVal;
		long long sllVal;
	} value;
} nvmlFieldValue_t;

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
						    unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
						       unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor,
				      unsigned int *degrees);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter,
					 unsigned int *kib_per_second);

#endif
