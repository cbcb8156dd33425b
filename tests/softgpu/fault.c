/*
 * What is made to fail: SOFTGPU_FAULT, a list of
 *	FUNCTION:N:RESULT   the N-th call of that function gives RESULT (a name without
 *ZE_RESULT_ERROR_, in lower case, or a number) rest-FUNCTION:N:US  the N-th call of that function
 *takes so many microseconds longer, and may be cancelled in them append:N:RESULT     the N-th
 *append of any kind never:N             the event of the N-th executed command is never signalled
 *	late:N:US           it is signalled that many microseconds after the command's end
 *	hold:N              it is signalled after the next command's: completion out of order
 *	lost:N              the device is lost once N commands were executed
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAULTS_MAX = 32 };
static struct fault {
	char name[64];
	uint64_t number, value;
	_Atomic uint64_t calls;
} faults[FAULTS_MAX];
static unsigned fault_count;
static _Atomic bool lost;
bool sg_faults;

static const struct {
	const char *name;
	ze_result_t result;
} results[] = {
	{ "not_ready", ZE_RESULT_NOT_READY },
	{ "device_lost", ZE_RESULT_ERROR_DEVICE_LOST },
	{ "out_of_host_memory", ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY },
	{ "out_of_device_memory", ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY },
	{ "module_build_failure", ZE_RESULT_ERROR_MODULE_BUILD_FAILURE },
	{ "insufficient_permissions", ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS },
	{ "not_available", ZE_RESULT_ERROR_NOT_AVAILABLE },
	{ "uninitialized", ZE_RESULT_ERROR_UNINITIALIZED },
	{ "unsupported_feature", ZE_RESULT_ERROR_UNSUPPORTED_FEATURE },
	{ "invalid_argument", ZE_RESULT_ERROR_INVALID_ARGUMENT },
	{ "unknown", ZE_RESULT_ERROR_UNKNOWN },
};

static bool value_read(const char *text, uint64_t *ret)
{
	char *end;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		if (!strcmp(results[i].name, text)) {
			*ret = results[i].result;
			return true;
		}
	}
	*ret = strtoull(text, &end, 0);
	return end != text && !*end;
}

void sg_faults_start(const char *spec)
{
	char copy[1024], *rest = copy, *one;

	if (!spec || !*spec)
		return;
	(void)snprintf(copy, sizeof(copy), "%s", spec);
	while ((one = strsep(&rest, ","))) {
		struct fault *fault = &faults[fault_count];
		char *name = strsep(&one, ":"), *number = strsep(&one, ":"), *value = one;

		if (fault_count == FAULTS_MAX || !number || strlen(name) >= sizeof(fault->name) ||
		    (value && !value_read(value, &fault->value))) {
			fprintf(stderr, "softgpu: SOFTGPU_FAULT=%s: not a list of NAME:N[:VALUE]\n",
				spec);
			_Exit(124);
		}
		memcpy(fault->name, name, strlen(name) + 1);
		fault->number = strtoull(number, NULL, 0);
		if (!value)
			fault->value = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
		fault_count++;
	}
	sg_faults = true;
}

bool sg_device_lost(void)
{
	return sg_faults && atomic_load(&lost);
}

/* A lost device: what asks something of it fails, what only gives back memory does not. */
static bool asks_device(const char *function)
{
	static const char *const parts[] = { "Append",	    "Synchronize", "Execute",
					     "QueryStatus", "GetStatus",   "Timestamp" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(function, parts[i]))
			return true;
	return false;
}

static void rest(uint64_t microseconds)
{
	struct timespec pause = { (time_t)(microseconds / 1000000),
				  (long)(microseconds % 1000000 * 1000) };

	(void)nanosleep(&pause, NULL);
}

ze_result_t sg_fault(const char *function)
{
	bool appends = !strncmp(function, "zeCommandListAppend", 19);

	for (unsigned i = 0; i < fault_count; i++)
		if (!strncmp(faults[i].name, "rest-", 5) && !strcmp(faults[i].name + 5, function) &&
		    atomic_fetch_add(&faults[i].calls, 1) + 1 == faults[i].number)
			rest(faults[i].value);
	for (unsigned i = 0; i < fault_count; i++)
		if ((!strcmp(faults[i].name, function) ||
		     (appends && !strcmp(faults[i].name, "append"))) &&
		    atomic_fetch_add(&faults[i].calls, 1) + 1 == faults[i].number)
			return (ze_result_t)faults[i].value;
	return atomic_load(&lost) && asks_device(function) ? ZE_RESULT_ERROR_DEVICE_LOST : SG_OK;
}

static struct {
	pthread_mutex_t lock;
	struct sg_event *event;
	struct sg_span span;
	uint32_t tiles;
	uint64_t base;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void held_release(void)
{
	struct sg_event *event;

	(void)pthread_mutex_lock(&held.lock);
	event = held.event;
	held.event = NULL;
	(void)pthread_mutex_unlock(&held.lock);
	if (event)
		sg_event_signal(event, &held.span, held.tiles, held.base);
}

/* Called for each executed command instead of the signal of its event, which it sees to. */
void sg_fault_finish(uint64_t sequence, struct sg_event *event, const struct sg_span *span,
		     uint32_t tiles, uint64_t base)
{
	bool handled = false, holding = false;

	for (unsigned i = 0; i < fault_count; i++) {
		const struct fault *fault = &faults[i];

		if (!strcmp(fault->name, "lost") && sequence >= fault->number) {
			atomic_store(&lost, true);
			handled |= sequence > fault->number;
			sg_changed();
		}
		if (fault->number != sequence)
			continue;
		if (!strcmp(fault->name, "never")) {
			handled = true;
		} else if (!strcmp(fault->name, "late")) {
			rest(fault->value);
		} else if (!strcmp(fault->name, "hold") && event) {
			(void)pthread_mutex_lock(&held.lock);
			held.event = event;
			held.span = *span;
			held.tiles = tiles;
			held.base = base;
			(void)pthread_mutex_unlock(&held.lock);
			handled = holding = true;
		}
	}
	if (!holding) {
		if (event && !handled)
			sg_event_signal(event, span, tiles, base);
		held_release();
	}
}
