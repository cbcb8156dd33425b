/* The settings: environment variables SOFTCUDA_*, read when the driver is loaded and told in
 * README.md. A wrong one ends the program, since a test that runs with other settings than it
 * asked for shows nothing. */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sc_config sc_config;

enum { DURATIONS_MAX = 64 };
static struct {
	char name[64];
	uint64_t ns;
} durations[DURATIONS_MAX];
static unsigned duration_count;

static void __attribute__((noreturn)) bad(const char *name, const char *value, const char *why)
{
	fprintf(stderr, "softcuda: %s=%s: %s\n", name, value, why);
	_Exit(124);
}

uint64_t sc_number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
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

/* NAME=NS,... where NAME is a kernel's, or copy, set, host; "*" is for all others */
static void durations_read(void)
{
	const char *at = getenv("SOFTCUDA_DURATION_NS");

	while (at && *at) {
		const char *equals = strchr(at, '=');
		char *end;
		size_t length;

		if (!equals || duration_count == DURATIONS_MAX)
			bad("SOFTCUDA_DURATION_NS", at, "not a list of NAME=NS");
		length = (size_t)(equals - at);
		if (length >= sizeof(durations[0].name))
			bad("SOFTCUDA_DURATION_NS", at, "a name is too long");
		memcpy(durations[duration_count].name, at, length);
		durations[duration_count].ns = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || (*end && *end != ','))
			bad("SOFTCUDA_DURATION_NS", at, "not a list of NAME=NS");
		duration_count++;
		at = *end ? end + 1 : end;
	}
	sc_config.durations = duration_count;
}

uint64_t sc_duration_ns(const char *name)
{
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, name))
			return durations[i].ns;
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, "*"))
			return durations[i].ns;
	return 0;
}

__attribute__((constructor)) void sc_config_start(void)
{
	const char *faults = getenv("SOFTCUDA_FAULT");

	sc_config.devices = (unsigned)sc_number("SOFTCUDA_DEVICES", 1, 0, SC_DEVICES_MAX);
	sc_config.first = (unsigned)sc_number("SOFTCUDA_FIRST", 0, 0, SC_DEVICES_MAX - 1);
	sc_config.mig = (unsigned)sc_number("SOFTCUDA_MIG", 0, 0, 7);
	sc_config.sync = sc_number("SOFTCUDA_SYNC", 0, 0, 1);
	sc_config.no_driver = sc_number("SOFTCUDA_NO_DRIVER", 0, 0, 1);
	sc_config.insufficient_driver = sc_number("SOFTCUDA_OLD_DRIVER", 0, 0, 1);
	sc_config.driver_version = (int)sc_number("SOFTCUDA_DRIVER_VERSION", 13050, 10000, 99999);
	sc_config.cupti_version = (int)sc_number("SOFTCUDA_CUPTI_VERSION", 0, 0, 999999);
	sc_config.memory = sc_number("SOFTCUDA_MEMORY", 16ull << 30, 1 << 20, 1ull << 40);
	sc_config.lost_after = sc_number("SOFTCUDA_LOST_AFTER", 0, 0, UINT64_MAX);
	sc_config.late_ms = (unsigned)sc_number("SOFTCUDA_LATE_MS", 0, 0, 60000);
	sc_config.out_of_order = (unsigned)sc_number("SOFTCUDA_OUT_OF_ORDER", 0, 0, 1000);
	sc_config.drop_every = (unsigned)sc_number("SOFTCUDA_DROP_EVERY", 0, 0, UINT32_MAX);
	sc_config.cut_every = (unsigned)sc_number("SOFTCUDA_CUT_EVERY", 0, 0, UINT32_MAX);
	durations_read();
	if (faults && *faults && !sc_faults_start(faults))
		bad("SOFTCUDA_FAULT", faults, "not a list of FUNCTION[:N]:RESULT");
	sc_log_start(getenv("SOFTCUDA_LOG"));
	sc_history_open(getenv("SOFTCUDA_SHM"));
}
