/* What queries (metrics.c) and streamers (streamer.c) have in common. */
#ifndef SG_METRICS_H
#define SG_METRICS_H

#include "driver.h"

struct metric {
	const char *name, *description, *unit;
	zet_metric_type_t type;
	zet_value_type_t result;
};

struct metric_group {
	const char *name, *description;
	zet_metric_group_sampling_type_flags_t sampling;
	const struct metric *metrics;
	uint32_t count;
	bool stalls;
	struct sg_device *device;
	_Atomic bool active;
};

/*
 * Raw data is an array of these. One of stall sampling has the address that was sampled, and in
 * `launches` the sample's number.
 */
struct report {
	uint64_t start, end, busy; /* ticks */
	uint64_t launches, groups, address;
};

#endif
