/* What queries (metrics.c) and streamers (streamer.c) have in common. */
#ifndef SG_METRICS_H
#define SG_METRICS_H

#include "driver.h"

struct metric {
	const char *name, *description, *unit;
	zet_metric_type_t type;
	zet_value_type_t result;
};

/* What a program's own metric was made of. */
struct programmed {
	uint32_t which;
	zet_value_t parameter;
};

struct metric_group {
	const char *name, *description;
	zet_metric_group_sampling_type_flags_t sampling;
	const struct metric *metrics;
	uint32_t count;
	bool stalls, memory;
	uint32_t domain;
	const struct programmed *programmed; /* of those behind the times; NULL: not made */
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

/* Those behind the two times. */
void sg_programmed_values(const struct metric_group *group, const struct report *report,
			  zet_typed_value_t *values);

#endif
