/*
 * xstrace-metrics: what devices count by time, read from the drivers' streamers of metrics.
 */
#ifndef XS_STREAMER_H
#define XS_STREAMER_H

#include <stdbool.h>
#include <stdint.h>

#include "library.h"

/* What is wanted of the devices. */
struct xs_wish {
	const char *option, *group; /* option: as messages name it */
	uint64_t interval;	    /* ns between two reports */
	uint64_t devices;	    /* of Level Zero, a bit for each */
	uint64_t cuda_devices;
	bool stalls; /* addresses of instructions: reports have no time */
};

struct xs_streamer;

/*
 * Opens a streamer of each group of each device that is wanted. Those that cannot be sampled are
 * told, each in a line. How many there are.
 */
uint32_t xs_streamers_open(const struct xs_wish *wish, const struct xs_library *library);
/* Records what there is to be read. False: no device is left that can be read. */
bool xs_streamers_read(void);
/* What was lost is told. */
void xs_streamers_close(void);

#endif
