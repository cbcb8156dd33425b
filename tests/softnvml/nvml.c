/*
 * NVIDIA's management library in software: the functions that xstrace-system calls, and those that
 * nvidia-ml-py needs to begin and end. With t, the time in us since the epoch, and i, the device:
 *
 *	energy [mJ]        (50 t + s 10^8 + r^2 / 10^4) / 1000: s whole seconds, r what is over
 *	power [mW]         100000 + t / 10^5 mod 1000
 *	clocks [MHz]       1980 - 15 (t / 10^5 mod 40); of memory always 2619
 *	reasons            11 in turn, each for 10^5 us, and as long none
 *	temperature [C]    30 + i + (t / 10^5 mod 50)
 *	memory used        (i + 1) GiB + 4096 (t / 10^5 mod 100) bytes
 *	utilization [%]    t / 10^5 mod 101; of memory half of it
 *	PCIe               5000 d + w bytes received, 7000 d + w bytes sent, where d is t since
 *	                   midnight (a double holds it), and w as in the energy, of d; as
 *	                   throughput 5000 and 7000 KiB/s
 *	NVLink             11 d KiB received, 13 d KiB sent; link n of 4 has (n + 1) / 10 of it
 *
 * SOFTNVML_DEVICES: how many, 1 without it. SOFTNVML, a list: "wrap": PCIe's counters have 32 bits;
 * "still": time stands; "timeless": fields tell none; "steps": energy is counted each 0.1 s;
 *"links": only each link is told of; "old": there are no fields. SOFTNVML_FAULT:
 *FUNCTION:N:ERROR,... where the N-th call of the function (or of field<id>) gives that error and
 *does nothing. SOFTNVML_LOG: a file to which each answer is appended.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml_abi.h"

#define API __attribute__((visibility("default")))

#define DAY_US 86400000000u

enum { DEVICES_MAX = 8, LINKS = 4, REASONS = 11, FAULTS = 16 };

struct xs_nvml_device {
	uint32_t number;
};
static struct xs_nvml_device devices[DEVICES_MAX];

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
API nvmlReturn_t nvmlShutdown(void);
API const char *nvmlErrorString(nvmlReturn_t result);

static bool is_set(const char *word)
{
	const char *list = getenv("SOFTNVML");

	return list && strstr(list, word);
}

static uint64_t now_us(void)
{
	static uint64_t first;
	struct timespec time;
	uint64_t us;

	(void)clock_gettime(CLOCK_REALTIME, &time);
	us = (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000;
	if (!first)
		first = us;
	return is_set("still") ? first : us;
}

/* 0, or what this call of the function is to give. */
static nvmlReturn_t fault(const char *function)
{
	static uint64_t calls[FAULTS];
	const char *at = getenv("SOFTNVML_FAULT");

	for (int i = 0; at && i < FAULTS; i++) {
		size_t length = strcspn(at, ":");
		char *end;

		if (length == strlen(function) && !memcmp(at, function, length) &&
		    ++calls[i] == strtoull(at + length + 1, &end, 10))
			return (nvmlReturn_t)strtoul(end + 1, NULL, 10);
		at = strchr(at, ',');
		at += at != NULL;
	}
	return NVML_SUCCESS;
}

static void say(const char *what, nvmlDevice_t device, uint64_t us, double a, double b)
{
	const char *path = getenv("SOFTNVML_LOG");
	char line[160];
	int fd, length;

	if (!path)
		return;
	length = snprintf(line, sizeof(line), "%s\t%u\t0\t%llu\t%.17g\t%.17g\n", what,
			  device->number, (unsigned long long)us, a, b);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		fprintf(stderr, "softnvml: %s cannot be written\n", path);
	if (fd >= 0)
		(void)close(fd);
}

#define ENTER()                                         \
	do {                                            \
		nvmlReturn_t result_ = fault(__func__); \
		if (result_)                            \
			return result_;                 \
	} while (0)
#define ENTER_WITH(device, pointer)                         \
	do {                                                \
		ENTER();                                    \
		if (!(device) || !(pointer))                \
			return NVML_ERROR_INVALID_ARGUMENT; \
	} while (0)

/* ---- devices ---- */

static unsigned int count(void)
{
	const char *wanted = getenv("SOFTNVML_DEVICES");
	unsigned long many = wanted ? strtoul(wanted, NULL, 10) : 1;

	return many < DEVICES_MAX ? (unsigned int)many : DEVICES_MAX;
}

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	ENTER();
	for (uint32_t i = 0; i < DEVICES_MAX; i++)
		devices[i].number = i;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlInit_v2(void)
{
	ENTER();
	return nvmlInitWithFlags(0);
}

API nvmlReturn_t nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

API const char *nvmlErrorString(nvmlReturn_t result)
{
	return result ? "an error of the software NVML" : "success";
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *ret)
{
	ENTER_WITH(ret, ret);
	*ret = count();
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *ret)
{
	ENTER_WITH(index < count(), ret);
	*ret = &devices[index];
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	ENTER_WITH(device, name);
	(void)snprintf(name, length, "SoftNV %u", device->number);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret)
{
	ENTER_WITH(device, ret);
	memset(ret, 0, sizeof(*ret));
	ret->bus = 0x5e + device->number;
	ret->pciDeviceId = 0x233510de;
	(void)snprintf(ret->busIdLegacy, sizeof(ret->busIdLegacy), "0000:%02X:00.0", ret->bus);
	(void)snprintf(ret->busId, sizeof(ret->busId), "00000000:%02X:00.0", ret->bus);
	return NVML_SUCCESS;
}

/* ---- fields ---- */

static void whole(nvmlFieldValue_t *field, uint64_t value)
{
	field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	field->value.ullVal = value;
}

static void bytes(nvmlFieldValue_t *field, uint64_t value)
{
	whole(field, value);
	if (is_set("wrap")) {
		field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
		field->value.ullVal = 0x5555555500000000;
		field->value.uiVal = (unsigned int)value;
	}
}

static nvmlReturn_t link_kib(nvmlFieldValue_t *field, uint64_t value)
{
	if (field->scopeId == UINT_MAX && !is_set("links"))
		whole(field, value);
	else if (field->scopeId < LINKS && is_set("links"))
		whole(field, value * (field->scopeId + 1) / 10);
	else
		return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* What rises faster and faster in each second. */
static uint64_t wave(uint64_t us)
{
	uint64_t rest = us % 1000000;

	return us / 1000000 * 100000000 + rest * rest / 10000;
}

static nvmlReturn_t field_of(nvmlFieldValue_t *field, uint64_t us)
{
	uint64_t day = us % DAY_US, counted = is_set("steps") ? us / 100000 * 100000 : us;

	switch (field->fieldId) {
	case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
		whole(field, (50 * counted + wave(counted)) / 1000);
		return NVML_SUCCESS;
	case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
		bytes(field, 5000 * day + wave(day));
		return NVML_SUCCESS;
	case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
		bytes(field, 7000 * day + wave(day));
		return NVML_SUCCESS;
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
		return link_kib(field, 11 * day);
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
		return link_kib(field, 13 * day);
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int many, nvmlFieldValue_t *fields)
{
	uint64_t us = now_us();
	char name[32];

	ENTER_WITH(device && many > 0, fields);
	if (is_set("old"))
		return NVML_ERROR_NOT_SUPPORTED;
	for (int i = 0; i < many; i++) {
		nvmlFieldValue_t *field = &fields[i];

		field->timestamp = is_set("timeless") ? 0 : (int64_t)us;
		field->latencyUsec = 1;
		(void)snprintf(name, sizeof(name), "field%u", field->fieldId);
		field->nvmlReturn = fault(name);
		if (!field->nvmlReturn)
			field->nvmlReturn = field_of(field, us);
		if (!field->nvmlReturn)
			say(name, device, us,
			    field->valueType == NVML_VALUE_TYPE_UNSIGNED_INT
				    ? field->value.uiVal
				    : (double)field->value.ullVal,
			    field->scopeId);
	}
	return NVML_SUCCESS;
}

/* ---- values ---- */

API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *ret)
{
	uint64_t us = now_us();

	ENTER_WITH(device, ret);
	*ret = 100000 + (unsigned int)(us / 100000 % 1000);
	say("power", device, us, *ret, 0);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *ret)
{
	uint64_t us = now_us();

	ENTER_WITH(device, ret);
	if (type != NVML_CLOCK_SM && type != NVML_CLOCK_MEM)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = type == NVML_CLOCK_MEM ? 2619 : 1980 - 15 * (unsigned int)(us / 100000 % 40);
	if (type == NVML_CLOCK_SM)
		say("clock", device, us, *ret, 0);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
							unsigned long long *ret)
{
	uint64_t us = now_us(), turn = us / 100000 % (REASONS + 1);

	ENTER_WITH(device, ret);
	*ret = turn ? 1ull << (turn - 1) : 0;
	say("reasons", device, us, (double)*ret, 0);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor,
					  unsigned int *ret)
{
	uint64_t us = now_us();

	ENTER_WITH(device && sensor == NVML_TEMPERATURE_GPU, ret);
	*ret = 30 + device->number + (unsigned int)(us / 100000 % 50);
	say("temperature", device, us, *ret, 0);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	uint64_t us = now_us();

	ENTER_WITH(device, ret);
	ret->total = 141ull << 30;
	ret->used = ((uint64_t)device->number + 1) << 30;
	ret->used += 4096 * (us / 100000 % 100);
	ret->free = ret->total - ret->used;
	say("memory", device, us, (double)ret->used, 0);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret)
{
	uint64_t us = now_us();

	ENTER_WITH(device, ret);
	ret->gpu = (unsigned int)(us / 100000 % 101);
	ret->memory = ret->gpu / 2;
	say("utilization", device, us, ret->gpu, ret->memory);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter,
					     unsigned int *ret)
{
	ENTER_WITH(device, ret);
	*ret = counter == NVML_PCIE_UTIL_RX_BYTES ? 5000 : 7000;
	(void)usleep(20000);
	return NVML_SUCCESS;
}
