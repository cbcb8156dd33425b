/*
 * A device of CUDA that is sampled by time, and how its sampling is set up.
 */
#ifndef XS_PM_SETUP_H
#define XS_PM_SETUP_H

#include "cupti.h"
#include "device_record.h"
#include "streamer.h"

#define XS_PM_TIMES 2u /* columns before the metrics: how long, and since when */

struct xs_pm_device {
	uint32_t number, name, columns; /* of the device; ids */
	void *host, *object;		/* object NULL: it is not sampled */
	const char *metrics[XS_METRICS_MAX - XS_PM_TIMES];
	uint32_t count;
	uint8_t *config, *image;
	size_t config_bytes, image_bytes;
	uint64_t uuid[2];
	uint64_t last;			/* when the last sample ended, by CUPTI's clock */
	uint64_t lost, overflowed, odd; /* samples; how often the buffer was full; no times */
};

/* Gets the device ready, up to its start. NULL, or why it cannot be sampled. */
const char *xs_pm_setup(struct xs_pm_device *device, const struct xs_wish *wish,
			const struct xs_library *library);
/* Makes the image empty. */
bool xs_pm_empty(const struct xs_pm_device *device);
void xs_pm_end(struct xs_pm_device *device);

#endif
