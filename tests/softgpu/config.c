/* The settings: environment variables SOFTGPU_*, read at the first call and told in README.md. A
 * wrong one ends the program, since a test that runs with other settings than it asked for shows
 * nothing. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sg_config sg_config;

enum { DURATIONS_MAX = 64 };
static struct {
	char name[64];
	uint64_t ns;
} durations[DURATIONS_MAX];
static unsigned duration_count;

static void __attribute__((noreturn)) bad(const char *name, const char *value, const char *why)
{
	fprintf(stderr, "softgpu: %s=%s: %s\n", name, value, why);
	_Exit(124);
}

static uint64_t number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
	const char *value = getenv(name);
	char *end;
	uint64_t ret;

	if (!value || !*value)
		return otherwise;
	ret = strtoull(value, &end, 0);
	if (*end || *value == '-' || ret < least || ret > most)
		bad(name, value, "not a number in range");
	return ret;
}

/* NAME=NS,... where NAME is a kernel's, or copy, fill, barrier ...; "*" is for all others */
static void durations_read(void)
{
	const char *at = getenv("SOFTGPU_DURATION_NS");

	while (at && *at) {
		const char *equals = strchr(at, '=');
		char *end;
		size_t length;

		if (!equals || duration_count == DURATIONS_MAX)
			bad("SOFTGPU_DURATION_NS", at, "not a list of NAME=NS");
		length = (size_t)(equals - at);
		if (length >= sizeof(durations[0].name))
			bad("SOFTGPU_DURATION_NS", at, "a name is too long");
		memcpy(durations[duration_count].name, at, length);
		durations[duration_count].ns = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || (*end && *end != ','))
			bad("SOFTGPU_DURATION_NS", at, "not a list of NAME=NS");
		duration_count++;
		at = *end ? end + 1 : end;
	}
}

uint64_t sg_duration_ns(const char *name, uint64_t otherwise)
{
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, name))
			return durations[i].ns;
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, "*"))
			return durations[i].ns;
	return otherwise;
}

static void start(void)
{
	const char *clock_name = getenv("SOFTGPU_CLOCK"), *ppm = getenv("SOFTGPU_DRIFT_PPM");

	sg_config.devices = (uint32_t)number("SOFTGPU_DEVICES", 1, 0, SG_DEVICES_MAX);
	sg_config.tiles = (uint32_t)number("SOFTGPU_TILES", 0, 0, SG_TILES_MAX);
	sg_config.sync = number("SOFTGPU_SYNC", 0, 0, 1);
	sg_config.workers =
		(uint32_t)number("SOFTGPU_WORKERS", sg_config.sync ? 1 : 2, 1, SG_WORKERS_MAX);
	sg_config.bits = (uint32_t)number("SOFTGPU_BITS", 32, 8, 64);
	sg_config.kernel_mask = UINT64_MAX >> (64 - sg_config.bits);
	sg_config.frequency = number("SOFTGPU_FREQUENCY", 19200000, 1000, 1000000000);
	sg_config.memory = number("SOFTGPU_MEMORY", 16ull << 30, 1 << 20, 1ull << 40);
	sg_config.metric_bits = (uint32_t)number("SOFTGPU_METRIC_BITS", 64, 8, 64);
	sg_config.open_us = (uint32_t)number("SOFTGPU_OPEN_US", 0, 0, 60000000);
	sg_config.drop = number("SOFTGPU_REPORTS_DROP", 0, 0, UINT64_MAX);
	sg_config.room = number("SOFTGPU_REPORTS_ROOM", 0, 0, UINT64_MAX);
	sg_config.strict = number("SOFTGPU_STRICT", 0, 0, 1);
	if (clock_name && *clock_name && strcmp(clock_name, "real") &&
	    strcmp(clock_name, "virtual"))
		bad("SOFTGPU_CLOCK", clock_name, "neither real nor virtual");
	sg_config.virtual_clock = clock_name && !strcmp(clock_name, "virtual");
	durations_read();
	sg_config.durations = duration_count || sg_config.virtual_clock;
	sg_clock_start(ppm ? strtoll(ppm, NULL, 0) : 0, getenv("SOFTGPU_FIRST_TICK"));
	sg_config.late =
		number("SOFTGPU_REPORTS_LATE_US", 0, 0, 60000000) * sg_config.frequency / 1000000u;
	if (!sg_stream_start(getenv("SOFTGPU_SHM")))
		bad("SOFTGPU_SHM", getenv("SOFTGPU_SHM"), "cannot be used");
	sg_devices_make();
	sg_faults_start(getenv("SOFTGPU_FAULT"));
	sg_log_start(getenv("SOFTGPU_LOG"));
}

void sg_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, start);
}
