/*
 * Level Zero's loader, as it is opened once for its devices (level_zero.c) and their metrics
 * (level_zero_metrics.c).
 */
#ifndef XS_DEVICES_LEVEL_ZERO_H
#define XS_DEVICES_LEVEL_ZERO_H

#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <level_zero/zet_api.h>

#define XS_LEVEL_ZERO_MAX 64u /* devices */

#define XS_LEVEL_ZERO_FUNCTIONS(X) \
	X(zeInit)                  \
	X(zeDriverGet)             \
	X(zeDeviceGet)             \
	X(zeDeviceGetProperties)   \
	X(zeDeviceGetSubDevices)   \
	X(zeDeviceGetMemoryProperties) X(zeDeviceGetCommandQueueGroupProperties)
/* what old loaders lack */
#define XS_LEVEL_ZERO_MORE(X)          \
	X(zeDevicePciGetPropertiesExt) \
	X(zetMetricGroupGet)           \
	X(zetMetricGroupGetProperties) X(zetMetricGet) X(zetMetricGetProperties)

extern struct xs_level_zero {
	void *library;
#define XS_LEVEL_ZERO_DECLARE(name) __typeof__(&name) name;
	XS_LEVEL_ZERO_FUNCTIONS(XS_LEVEL_ZERO_DECLARE) XS_LEVEL_ZERO_MORE(XS_LEVEL_ZERO_DECLARE)
#undef XS_LEVEL_ZERO_DECLARE
} xs_level_zero;

/* NULL, or why it tells nothing. */
const char *xs_level_zero_open(void);
/* Those of all drivers, which that has found; returns how many. */
uint32_t xs_level_zero_devices(ze_device_handle_t devices[XS_LEVEL_ZERO_MAX]);

#endif
