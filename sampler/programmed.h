/*
 * Groups of metrics that xstrace-metrics makes of a device's programmable ones (programmable.h).
 */
#ifndef XS_PROGRAMMED_H
#define XS_PROGRAMMED_H

#include <level_zero/zet_api.h>

/*
 * A group of the metrics that `wanted` names, for sampling by time. NULL: *ret_why says why there
 * is none, unless the driver has no programmable metrics.
 */
zet_metric_group_handle_t xs_programmed_group(void *loader, ze_driver_handle_t driver,
					      ze_device_handle_t device, const char *wanted,
					      const char **ret_why);

#endif
