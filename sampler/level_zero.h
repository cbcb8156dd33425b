/*
 * Level Zero's system management (Sysman), by the loader that is found at run time.
 */
#ifndef XS_SAMPLER_LEVEL_ZERO_H
#define XS_SAMPLER_LEVEL_ZERO_H

#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>

#include "sampler.h"

/* What each loader has that knows Sysman at all. */
#define XS_ZES_FUNCTIONS(X)                \
	X(zesDeviceGetProperties)          \
	X(zesDevicePciGetProperties)       \
	X(zesDevicePciGetStats)            \
	X(zesDeviceEnumPowerDomains)       \
	X(zesPowerGetProperties)           \
	X(zesPowerGetEnergyCounter)        \
	X(zesDeviceEnumFrequencyDomains)   \
	X(zesFrequencyGetProperties)       \
	X(zesFrequencyGetState)            \
	X(zesDeviceEnumTemperatureSensors) \
	X(zesTemperatureGetProperties)     \
	X(zesTemperatureGetState)          \
	X(zesDeviceEnumMemoryModules)      \
	X(zesMemoryGetProperties)          \
	X(zesMemoryGetState)               \
	X(zesMemoryGetBandwidth)           \
	X(zesDeviceEnumEngineGroups)       \
	X(zesEngineGetProperties)          \
	X(zesEngineGetActivity)            \
	X(zesDeviceEnumFabricPorts)        \
	X(zesFabricPortGetProperties)      \
	X(zesFabricPortGetThroughput)

struct xs_zes {
#define XS_DECLARE(name) __typeof__(&name) name;
	XS_ZES_FUNCTIONS(XS_DECLARE)
#undef XS_DECLARE
};
extern struct xs_zes xs_zes; /* the loader's, once it is open */

/* ---- level_zero_domains.c ---- */

/* All that the device tells. */
void xs_zes_add_domains(struct xs_sources *sources, struct xs_gpu *gpu, zes_device_handle_t device);

#endif
