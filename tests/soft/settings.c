#include "settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DURATIONS_MAX = 64 };
static struct {
	char name[64];
	uint64_t ns;
} durations[DURATIONS_MAX];
static unsigned duration_count;

void soft_bad(const char *name, const char *value, const char *why)
{
	/* the driver's name is the first part of its variables' */
	for (const char *at = name; *at && *at != '_'; at++)
		fputc(tolower((unsigned char)*at), stderr);
	fprintf(stderr, ": %s=%s: %s\n", name, value, why);
	_Exit(124);
}

uint64_t soft_number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
	const char *value = getenv(name);
	char *end;
	uint64_t ret;

	if (!value || !*value)
		return otherwise;
	ret = strtoull(value, &end, 0);
	if (*end || *value == '-' || ret < least || ret > most)
		soft_bad(name, value, "not a number in range");
	return ret;
}

bool soft_durations(const char *name)
{
	const char *at = getenv(name);

	while (at && *at) {
		const char *equals = strchr(at, '=');
		char *end;
		size_t length;

		if (!equals || duration_count == DURATIONS_MAX)
			soft_bad(name, at, "not a list of NAME=NS");
		length = (size_t)(equals - at);
		if (length >= sizeof(durations[0].name))
			soft_bad(name, at, "a name is too long");
		memcpy(durations[duration_count].name, at, length);
		durations[duration_count].ns = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || (*end && *end != ','))
			soft_bad(name, at, "not a list of NAME=NS");
		duration_count++;
		at = *end ? end + 1 : end;
	}
	return duration_count != 0;
}

uint64_t soft_duration_ns(const char *name, uint64_t otherwise)
{
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, name))
			return durations[i].ns;
	for (unsigned i = 0; i < duration_count; i++)
		if (!strcmp(durations[i].name, "*"))
			return durations[i].ns;
	return otherwise;
}
