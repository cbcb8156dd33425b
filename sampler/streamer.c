/*
 * Level Zero's streamers of metrics: one for each group of each device, read in turn.
 *
 * A report says when it began by a metric, QueryBeginTime, in ns of a clock that wraps: the ticks
 * of the device's clock that the driver has multiplied. They are made ticks again, and unwrapped by
 * the device's clock, so that they can be compared with the times of kernels to the tick.
 */
#include "streamer.h"

#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <level_zero/zet_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "level_zero_value.h"
#include "metric_groups.h"
#include "strtab.h"
#include "task_record.h"

#define DEVICES_MAX 64u
#define RAW_SIZE    (1u << 20)
#define VALUES_MAX  (4u << 20) /* that one read may give */
#define PARTS_MAX   64u
#define READS_MAX   64u	   /* of a device, one after the other */
#define NOTIFY	    32768u /* reports: as many as the driver may wait with */
#define NS	    1000000000u

/* of headers that are newer than what this may be built with */
struct timestamps_resolution {
	uint32_t stype;
	const void *next;
	uint64_t frequency, bits;
};
#define TIMESTAMPS_RESOLUTION 0x9u

#define FUNCTIONS(X)                      \
	X(zeInit)                         \
	X(zeDriverGet)                    \
	X(zeDeviceGet)                    \
	X(zeDeviceGetProperties)          \
	X(zeDeviceGetGlobalTimestamps)    \
	X(zeContextCreate)                \
	X(zetMetricGroupGet)              \
	X(zetMetricGroupGetProperties)    \
	X(zetMetricGet)                   \
	X(zetMetricGetProperties)         \
	X(zetContextActivateMetricGroups) \
	X(zetMetricStreamerOpen)          \
	X(zetMetricStreamerClose)         \
	X(zetMetricStreamerReadData)      \
	X(zetMetricGroupCalculateMultipleMetricValuesExp)

static struct {
#define DECLARE(name) __typeof__(&name) name;
	FUNCTIONS(DECLARE)
	DECLARE(zeDevicePciGetPropertiesExt) /* old loaders lack it */
} ze;

struct xs_streamer {
	uint32_t number, name, columns; /* of the device; ids */
	ze_driver_handle_t driver;	/* NULL: there are several */
	ze_context_handle_t context;
	ze_device_handle_t device;
	struct xs_chosen chosen;
	zet_metric_streamer_handle_t handle; /* NULL: it is closed */
	/* metrics of the group; those that are recorded; which of them is the report's time */
	uint32_t stride, count, time;
	uint64_t frequency, bits;	       /* of that time */
	uint64_t period, now, last[PARTS_MAX]; /* ticks; of the clock; of the last report */
	uint64_t lost, dropped, odd;	       /* reports; reads that told so; no times */
};

static struct xs_streamer streamers[DEVICES_MAX * XS_GROUPS_MAX];
static uint32_t streamer_count;
static const struct xs_wish *wish;
static const struct xs_library *library;
static void *loader;

static void tell(uint32_t device, const char *what)
{
	fprintf(stderr, "[WARNING] %s: device #%u is not sampled: %s\n", wish->option, device,
		what);
}

/* ---- opening ---- */

static const char *open_loader(void)
{
	loader = dlopen("libze_loader.so.1", RTLD_NOW);
	/* what the launcher's look at the groups has said is not said again */
	if (!loader)
		return "";
#define LOOK_UP(name) *(void **)&ze.name = dlsym(loader, #name);
	FUNCTIONS(LOOK_UP)
	LOOK_UP(zeDevicePciGetPropertiesExt)
#define CHECK_FOUND(name) \
	if (!ze.name)     \
		return "the loader lacks " #name;
	FUNCTIONS(CHECK_FOUND)
	return ze.zeInit(0) ? "" : NULL;
}

#define LONGEST_METRIC (1 + ZET_MAX_METRIC_NAME + 1 + ZET_MAX_METRIC_RESULT_UNITS + 1)

/* The group's name and its metrics, a line for each. */
static bool describe(struct xs_streamer *streamer)
{
	static zet_metric_handle_t metrics[1024];
	static char text[XS_STRING_MAX];
	uint32_t count = sizeof(metrics) / sizeof(metrics[0]);
	char *end = text + sizeof(text) - 1,
	     *o = xs_metric_put(text, end, streamer->chosen.name, sizeof(text) / 2);
	zet_metric_properties_t metric;

	streamer->time = UINT32_MAX;
	if (ze.zetMetricGet(streamer->chosen.group, &count, metrics))
		return false;
	streamer->stride = count;
	for (; streamer->count < count && streamer->count < XS_METRICS_MAX; streamer->count++) {
		metric = (zet_metric_properties_t){ .stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES };
		if (o + LONGEST_METRIC >= text + sizeof(text) ||
		    ze.zetMetricGetProperties(metrics[streamer->count], &metric))
			break;
		metric.resultUnits[sizeof(metric.resultUnits) - 1] = '\0';
		if (!strcmp(metric.name, wish->stalls ? "IP" : "QueryBeginTime"))
			streamer->time = streamer->count;
		o = xs_metric_put_line(o, end, metric.name, sizeof(metric.name),
				       metric.resultUnits);
	}
	*o = '\0';
	streamer->columns = streamer->count ? library->columns(text) : 0;
	/* readers want the address first, as all drivers tell it */
	return streamer->columns && streamer->time != UINT32_MAX &&
	       (!wish->stalls || !streamer->time);
}

/* What is to be known of the clock of reports. */
static void ask_clock(struct xs_streamer *streamer, const ze_device_properties_t *device)
{
	struct timestamps_resolution told = { .stype = TIMESTAMPS_RESOLUTION };
	zet_metric_group_properties_t group = { .stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES,
						.pNext = &told };

	if (ze.zetMetricGroupGetProperties(streamer->chosen.group, &group) || !told.frequency)
		told = (struct timestamps_resolution){ .frequency = device->timerResolution,
						       .bits = 64 };
	/* Ponte Vecchio's drivers tell the frequency of another clock, and a bit too many */
	if ((device->deviceId & 0xff00) == 0x0b00) {
		if (told.frequency > device->timerResolution)
			told.frequency = device->timerResolution;
		if (told.bits == device->kernelTimestampValidBits)
			told.bits--;
	}
	streamer->frequency = told.frequency;
	streamer->bits = told.bits && told.bits < 64 ? told.bits : 64;
	streamer->period = (uint64_t)((unsigned __int128)wish->interval * told.frequency / NS);
}

static bool join(struct xs_streamer *streamer)
{
	ze_device_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 };
	ze_pci_ext_properties_t pci = { .stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };
	struct xs_own_device device = { .number = streamer->number, .name = properties.name };

	if (ze.zeDeviceGetProperties(streamer->device, &properties))
		return false;
	if (ze.zeDevicePciGetPropertiesExt &&
	    !ze.zeDevicePciGetPropertiesExt(streamer->device, &pci))
		memcpy(device.bus,
		       ((const uint32_t[]){ pci.address.domain, pci.address.bus, pci.address.device,
					    pci.address.function }),
		       sizeof(device.bus));
	device.frequency = properties.timerResolution;
	device.bits = properties.timestampValidBits;
	ask_clock(streamer, &properties);
	streamer->name = library->device(&device);
	return streamer->name;
}

/* All streamers of this one's device. */
static void close_device(const struct xs_streamer *of)
{
	const ze_device_handle_t device = of->device;

	for (size_t i = 0; i < sizeof(streamers) / sizeof(streamers[0]); i++) {
		if (streamers[i].device != device || !streamers[i].handle)
			continue;
		(void)ze.zetMetricStreamerClose(streamers[i].handle);
		streamers[i].handle = NULL;
	}
	(void)ze.zetContextActivateMetricGroups(of->context, device, 0, NULL);
}

/* NULL, or why it is not sampled. */
static const char *open_streamer(struct xs_streamer *streamer)
{
	zet_metric_streamer_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_STREAMER_DESC,
					    .notifyEveryNReports = NOTIFY,
					    .samplingPeriod = (uint32_t)wish->interval };
	ze_result_t result;

	/* some drivers refuse numbers that their device has no room for */
	do {
		result = ze.zetMetricStreamerOpen(streamer->context, streamer->device,
						  streamer->chosen.group, &desc, NULL,
						  &streamer->handle);
		desc.notifyEveryNReports /= 4;
	} while (result && desc.notifyEveryNReports >= NOTIFY / 64);
	if (!result)
		return NULL;
	streamer->handle = NULL;
	return result == ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS
		       ? "this user may not read its counters"
		       : "the driver opens no streamer: another tool samples the device, or the "
			 "interval (-i) is not one that it can keep";
}

/* The groups for sampling that are wished for; their names are those of the last device asked. */
static uint32_t choose(const struct xs_streamer *device, struct xs_chosen ret[XS_GROUPS_MAX],
		       const char **ret_why)
{
	static struct xs_group_room room;
	static char why[2 * XS_PATH_MAX];
	const struct xs_newer newer = xs_newer_of(loader, device->driver);
	struct xs_group_functions functions = { .get = ze.zetMetricGroupGet,
						.properties = ze.zetMetricGroupGetProperties };
	uint32_t count;

	functions.kind = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED;
	functions.programmable = xs_programmables_find(&functions.programmables, &newer);
	count = xs_groups_choose(&functions, device->device, wish->group, &room, ret);
	*ret_why = count ? NULL : xs_groups_why(&room, why, sizeof(why));
	return count;
}

/* All groups of a device, or none: streamers of[0] and on. NULL, or why it is not sampled. */
static const char *open_device(struct xs_streamer *of, uint32_t *ret_count)
{
	const struct xs_streamer device = *of;
	zet_metric_group_handle_t groups[XS_GROUPS_MAX];
	struct xs_chosen chosen[XS_GROUPS_MAX];
	const char *problem;
	uint32_t count = choose(&device, chosen, &problem);

	if (!count)
		return problem;
	for (uint32_t i = 0; i < count; i++) {
		of[i] = device;
		of[i].chosen = chosen[i];
		groups[i] = chosen[i].group;
		if (!describe(&of[i]))
			return wish->stalls ? "its driver does not tell of addresses"
					    : "its driver does not tell when a report was made";
		if (!join(&of[i]))
			return "there is no memory";
	}
	/* one call: the next one would end what this one began */
	if (ze.zetContextActivateMetricGroups(device.context, device.device, count, groups))
		return "the driver does not activate the group of metrics, as when another tool "
		       "uses the counters";
	for (uint32_t i = 0; i < count; i++) {
		problem = open_streamer(&of[i]);
		if (problem) {
			close_device(of);
			return problem;
		}
	}
	*ret_count = count;
	return NULL;
}

static bool read_clock(void *data, uint64_t *ret)
{
	struct xs_streamer *streamer = data;
	uint64_t host;

	if (ze.zeDeviceGetGlobalTimestamps(streamer->device, &host, ret))
		return false;
	streamer->now = *ret;
	return true;
}

static void open_devices(ze_driver_handle_t driver, bool alone, uint32_t *number)
{
	ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	ze_device_handle_t devices[DEVICES_MAX];
	ze_context_handle_t context = NULL;
	uint32_t count = DEVICES_MAX;

	if (ze.zeDeviceGet(driver, &count, devices) || ze.zeContextCreate(driver, &desc, &context))
		return;
	for (uint32_t i = 0; i < count && i < DEVICES_MAX && *number < DEVICES_MAX;
	     i++, ++*number) {
		struct xs_streamer *streamer = &streamers[streamer_count];
		const char *problem;
		uint32_t opened = 0;

		if (!(wish->devices >> *number & 1))
			continue;
		*streamer = (struct xs_streamer){ .number = *number,
						  .driver = alone ? driver : NULL,
						  .context = context,
						  .device = devices[i] };
		problem = open_device(streamer, &opened);
		if (problem)
			tell(*number, problem);
		streamer_count += opened;
	}
}

uint32_t xs_streamers_open(const struct xs_wish *what, const struct xs_library *where)
{
	ze_driver_handle_t drivers[32];
	uint32_t count = 32, number = 0;
	const char *problem;

	wish = what;
	library = where;
	problem = open_loader();
	if (problem && problem[0])
		fprintf(stderr, "[WARNING] %s: nothing is sampled: Level Zero: %s\n", wish->option,
			problem);
	if (problem || ze.zeDriverGet(&count, drivers))
		return 0;
	for (uint32_t i = 0; i < count && i < 32; i++)
		open_devices(drivers[i], count == 1, &number);
	return streamer_count;
}

/* ---- a report ---- */

/*
 * The driver has rounded down: the next whole tick is what it had. A report is as old as its
 * clock's period at most; by a sixteenth of it the clocks may disagree.
 */
static uint64_t ticks_of(const struct xs_streamer *streamer, uint64_t ns)
{
	uint64_t ticks = (uint64_t)(((unsigned __int128)ns * streamer->frequency + NS - 1) / NS);
	uint64_t mask = UINT64_MAX >> (64 - streamer->bits), latest = streamer->now + (mask >> 4);

	return streamer->bits < 64 ? latest - ((latest - ticks) & mask) : ticks;
}

/* Where a report is missing, its time was lost. */
static void count_lost(struct xs_streamer *streamer, uint32_t part, uint64_t ticks)
{
	uint64_t *last = &streamer->last[part], passed = ticks - *last;

	if (*last && ticks > *last && streamer->period && passed > streamer->period * 3 / 2)
		streamer->lost += (passed + streamer->period / 2) / streamer->period - 1;
	*last = ticks;
}

static void record_report(struct xs_streamer *streamer, uint32_t part,
			  const zet_typed_value_t *report)
{
	uint64_t values[XS_METRICS_MAX], time;
	uint8_t types[XS_METRICS_MAX];
	struct xs_own_sample sample = { .device = streamer->number,
					.name = streamer->name,
					.columns = streamer->columns,
					.count = (uint16_t)streamer->count,
					.part = (uint16_t)part,
					.values = values,
					.types = types };

	for (uint32_t i = 0; i < streamer->count; i++)
		values[i] = xs_level_zero_value(&report[i], &types[i]);
	time = values[streamer->time];
	if (types[streamer->time] != XS_VALUE_U64) {
		streamer->odd++;
		return;
	}
	sample.ticks = streamer->now; /* instructions have no time but that of the read */
	if (!wish->stalls) {
		sample.ticks = ticks_of(streamer, time);
		values[streamer->time] =
			(uint64_t)((unsigned __int128)sample.ticks * NS / streamer->frequency);
		count_lost(streamer, part, sample.ticks);
	}
	library->sample(&sample);
}

/* ---- reading ---- */

/* Grows to what one read needs, and no further. */
static zet_typed_value_t *room_for(uint32_t count)
{
	static zet_typed_value_t *values;
	static uint32_t room;
	zet_typed_value_t *grown;

	if (count <= room)
		return values;
	grown = count <= VALUES_MAX ? realloc(values, count * sizeof(*values)) : NULL;
	if (!grown)
		return NULL;
	values = grown;
	room = count;
	return values;
}

static void record_reports(struct xs_streamer *streamer, const uint8_t *raw, size_t size)
{
	const zet_metric_group_calculation_type_t type =
		ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES;
	uint32_t parts = 0, total = 0, counts[PARTS_MAX];
	const zet_typed_value_t *at;
	zet_typed_value_t *values;
	ze_result_t result;

	result = ze.zetMetricGroupCalculateMultipleMetricValuesExp(streamer->chosen.group, type,
								   size, raw, &parts, &total, NULL,
								   NULL);
	values = !result && parts && parts <= PARTS_MAX && total ? room_for(total) : NULL;
	if (!values) {
		streamer->odd++;
		return;
	}
	at = values;
	result = ze.zetMetricGroupCalculateMultipleMetricValuesExp(streamer->chosen.group, type,
								   size, raw, &parts, &total,
								   counts, values);
	if (result && result != ZE_RESULT_WARNING_DROPPED_DATA) {
		streamer->odd++;
		return;
	}
	for (uint32_t part = 0; part < parts && part < PARTS_MAX; part++) {
		for (uint32_t i = 0; i + streamer->stride <= counts[part] &&
				     at + i + streamer->stride <= values + total;
		     i += streamer->stride)
			record_report(streamer, part, at + i);
		if (counts[part] > (size_t)(values + total - at))
			break;
		at += counts[part];
	}
}

static void read_streamer(struct xs_streamer *streamer)
{
	static uint8_t raw[RAW_SIZE];

	library->device_clock(streamer->number, read_clock, streamer);
	for (uint32_t i = 0; i < READS_MAX; i++) {
		size_t size = sizeof(raw);
		ze_result_t result =
			ze.zetMetricStreamerReadData(streamer->handle, UINT32_MAX, &size, raw);

		if (result == ZE_RESULT_WARNING_DROPPED_DATA) {
			streamer->dropped++;
		} else if (result && result != ZE_RESULT_NOT_READY) {
			tell(streamer->number, "from now on: its reports cannot be read any more");
			close_device(streamer);
			return;
		}
		if (result == ZE_RESULT_NOT_READY || !size || size > sizeof(raw))
			return;
		record_reports(streamer, raw, size);
		if (size < sizeof(raw) / 2)
			return;
	}
}

bool xs_streamers_read(void)
{
	bool some = false;

	for (uint32_t i = 0; i < streamer_count; i++) {
		if (streamers[i].handle)
			read_streamer(&streamers[i]);
		some |= streamers[i].handle != NULL;
	}
	return some;
}

void xs_streamers_close(void)
{
	for (uint32_t i = 0; i < streamer_count; i++) {
		struct xs_streamer *one = &streamers[i];

		if (one->handle)
			close_device(one);
		if (one->lost || one->dropped)
			fprintf(stderr,
				"[WARNING] %s: reports of device #%u are lost: %llu of %s that its "
				"times show, and %llu reads were told so; try a longer interval "
				"(-i)\n",
				wish->option, one->number, (unsigned long long)one->lost,
				one->chosen.name, (unsigned long long)one->dropped);
		if (one->odd)
			fprintf(stderr,
				"[WARNING] %s: %llu reports of device #%u cannot be understood "
				"(%s)\n",
				wish->option, (unsigned long long)one->odd, one->number,
				one->chosen.name);
	}
}
