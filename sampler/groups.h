/*
 * Which groups of metrics xstrace-metrics samples on a device.
 */
#ifndef XS_GROUPS_H
#define XS_GROUPS_H

#include <level_zero/zet_api.h>

#include "metric_text.h"

struct xs_chosen {
	zet_metric_group_handle_t group;
	const char *name; /* lives on */
};

/*
 * The groups for sampling by time that `wanted` names ("A,B"). Names that the device has no group
 * of are its programmable metrics, of which one group is made. How many; 0: *ret_why says why.
 */
uint32_t xs_groups_choose(void *loader, ze_driver_handle_t driver, ze_device_handle_t device,
			  const char *wanted, struct xs_chosen ret[XS_GROUPS_MAX],
			  const char **ret_why);

#endif
