/* The settings: environment variables SOFTGPU_*, read at the first call and told in README.md. */
#include "driver.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sg_config sg_config;

static void start(void)
{
	const char *clock_name = getenv("SOFTGPU_CLOCK"), *ppm = getenv("SOFTGPU_DRIFT_PPM");

	sg_config.devices = (uint32_t)soft_number("SOFTGPU_DEVICES", 1, 0, SG_DEVICES_MAX);
	sg_config.tiles = (uint32_t)soft_number("SOFTGPU_TILES", 0, 0, SG_TILES_MAX);
	sg_config.sync = soft_number("SOFTGPU_SYNC", 0, 0, 1);
	sg_config.workers =
		(uint32_t)soft_number("SOFTGPU_WORKERS", sg_config.sync ? 1 : 2, 1, SG_WORKERS_MAX);
	sg_config.bits = (uint32_t)soft_number("SOFTGPU_BITS", 32, 8, 64);
	sg_config.kernel_mask = UINT64_MAX >> (64 - sg_config.bits);
	sg_config.frequency = soft_number("SOFTGPU_FREQUENCY", 19200000, 1000, 1000000000);
	sg_config.memory = soft_number("SOFTGPU_MEMORY", 16ull << 30, 1 << 20, 1ull << 40);
	sg_config.metric_bits = (uint32_t)soft_number("SOFTGPU_METRIC_BITS", 64, 8, 64);
	sg_config.open_us = (uint32_t)soft_number("SOFTGPU_OPEN_US", 0, 0, 60000000);
	sg_config.drop = soft_number("SOFTGPU_REPORTS_DROP", 0, 0, UINT64_MAX);
	sg_config.room = soft_number("SOFTGPU_REPORTS_ROOM", 0, 0, UINT64_MAX);
	sg_config.bears = soft_number("SOFTGPU_BEARS", 0, 0, 1);
	sg_config.cancels = soft_number("SOFTGPU_CANCELS", 0, 0, 1);
	sg_config.strict = soft_number("SOFTGPU_STRICT", 0, 0, 1);
	if (clock_name && *clock_name && strcmp(clock_name, "real") &&
	    strcmp(clock_name, "virtual"))
		soft_bad("SOFTGPU_CLOCK", clock_name, "neither real nor virtual");
	sg_config.virtual_clock = clock_name && !strcmp(clock_name, "virtual");
	sg_config.durations = soft_durations("SOFTGPU_DURATION_NS") || sg_config.virtual_clock;
	sg_clock_start(ppm ? strtoll(ppm, NULL, 0) : 0, getenv("SOFTGPU_FIRST_TICK"));
	sg_config.late = soft_number("SOFTGPU_REPORTS_LATE_US", 0, 0, 60000000) *
			 sg_config.frequency / 1000000u;
	if (!sg_stream_start(getenv("SOFTGPU_SHM")))
		soft_bad("SOFTGPU_SHM", getenv("SOFTGPU_SHM"), "cannot be used");
	sg_devices_make();
	sg_faults_start(getenv("SOFTGPU_FAULT"));
	sg_log_start(getenv("SOFTGPU_LOG"));
}

void sg_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, start);
}
