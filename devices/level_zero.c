/*
 * What Level Zero tells of devices and of their metrics.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

#ifdef XS_HAVE_LEVEL_ZERO
#include <level_zero/ze_api.h>
#include <level_zero/zet_api.h>

#include "metric_text.h"
#include "programmable.h"

#define MAX 64u

#define FUNCTIONS(X)             \
	X(zeInit)                \
	X(zeDriverGet)           \
	X(zeDeviceGet)           \
	X(zeDeviceGetProperties) \
	X(zeDeviceGetSubDevices) \
	X(zeDeviceGetMemoryProperties) X(zeDeviceGetCommandQueueGroupProperties)
/* what old loaders lack */
#define MORE_FUNCTIONS(X)              \
	X(zeDevicePciGetPropertiesExt) \
	X(zetMetricGroupGet)           \
	X(zetMetricGroupGetProperties) X(zetMetricGet) X(zetMetricGetProperties)

static struct {
#define DECLARE(name) __typeof__(&name) name;
	FUNCTIONS(DECLARE) MORE_FUNCTIONS(DECLARE)
} ze;

/* NULL, or why it tells nothing. */
static const char *open_loader(void)
{
	static const char *problem = "";
	void *library;

	if (!problem || problem[0])
		return problem;
	library = dlopen("libze_loader.so.1", RTLD_NOW);
	if (!library)
		return problem = "its loader (libze_loader.so.1) is not installed";
#define LOOK_UP(name) *(void **)&ze.name = dlsym(library, #name);
	FUNCTIONS(LOOK_UP)
	MORE_FUNCTIONS(LOOK_UP)
#define CHECK_FOUND(name) \
	if (!ze.name)     \
		return problem = "its loader lacks " #name;
	FUNCTIONS(CHECK_FOUND)
	if (ze.zeInit(0) != ZE_RESULT_SUCCESS)
		return problem = "it has no driver";
	return problem = NULL;
}

static uint32_t find_devices(ze_device_handle_t devices[MAX])
{
	ze_driver_handle_t drivers[MAX];
	uint32_t driver_count = MAX, count = 0;

	if (ze.zeDriverGet(&driver_count, drivers) != ZE_RESULT_SUCCESS)
		return 0;
	for (uint32_t i = 0; i < driver_count && count < MAX; i++) {
		uint32_t more = MAX - count;

		if (ze.zeDeviceGet(drivers[i], &more, devices + count) == ZE_RESULT_SUCCESS)
			count += more;
	}
	return count;
}

static const char *type_of(ze_device_type_t type)
{
	switch (type) {
	case ZE_DEVICE_TYPE_GPU:
		return "GPU";
	case ZE_DEVICE_TYPE_CPU:
		return "CPU";
	case ZE_DEVICE_TYPE_FPGA:
		return "FPGA";
	default:
		return "accelerator";
	}
}

/*
 * The structs of a kind that a device has, as many as there is room for; none if the driver does
 * not tell.
 */
#define STRUCTS_OF(device, get, kind, array, count)                 \
	do {                                                        \
		*(count) = sizeof(array) / sizeof((array)[0]);      \
		memset(array, 0, sizeof(array));                    \
		for (uint32_t i_ = 0; i_ < *(count); i_++)          \
			(array)[i_].stype = (kind);                 \
		if (get(device, count, array) != ZE_RESULT_SUCCESS) \
			*(count) = 0;                               \
	} while (0)

static void put_engines(ze_device_handle_t device, char *text, size_t size)
{
	ze_command_queue_group_properties_t groups[16];
	uint32_t count;
	size_t n = 0;

	STRUCTS_OF(device, ze.zeDeviceGetCommandQueueGroupProperties,
		   ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES, groups, &count);
	for (uint32_t i = 0; i < count && n < size; i++) {
		bool computes = groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
		bool copies = groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;

		n += (size_t)snprintf(text + n, size - n, "%sgroup %u: %u %s", i ? ", " : "", i,
				      groups[i].numQueues,
				      computes ? "compute"
				      : copies ? "copy"
					       : "other");
	}
}

static uint64_t memory_of(ze_device_handle_t device)
{
	ze_device_memory_properties_t memories[16];
	uint64_t bytes = 0;
	uint32_t count;

	STRUCTS_OF(device, ze.zeDeviceGetMemoryProperties,
		   ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES, memories, &count);
	for (uint32_t i = 0; i < count; i++)
		bytes += memories[i].totalSize;
	return bytes;
}

static void put_pci(ze_device_handle_t device, char *text, size_t size)
{
	ze_pci_ext_properties_t pci = { .stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };

	if (!ze.zeDevicePciGetPropertiesExt ||
	    ze.zeDevicePciGetPropertiesExt(device, &pci) != ZE_RESULT_SUCCESS)
		return;
	(void)snprintf(text, size, "%04x:%02x:%02x.%x", pci.address.domain & 0xffff,
		       pci.address.bus & 0xff, pci.address.device & 0xff,
		       pci.address.function & 0xf);
}

void xs_find_level_zero(struct xs_found_list *list)
{
	ze_device_handle_t devices[MAX];
	uint32_t count;

	list->missing[0] = open_loader();
	if (list->missing[0])
		return;
	count = find_devices(devices);
	if (!count)
		list->missing[0] = "it has no device";
	for (uint32_t i = 0; i < count; i++) {
		ze_device_properties_t properties = { .stype =
							      ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
		struct xs_found *found;
		char pci[20] = "";

		if (ze.zeDeviceGetProperties(devices[i], &properties) != ZE_RESULT_SUCCESS)
			continue;
		put_pci(devices[i], pci, sizeof(pci));
		found = xs_found_entry(list, properties.uuid.id, pci,
				       offsetof(struct xs_found, level_zero));
		if (!found)
			break;
		(void)snprintf(found->name, sizeof(found->name), "%.255s", properties.name);
		found->level_zero = (int)i;
		found->type = type_of(properties.type);
		found->clock = properties.coreClockRate;
		found->memory = memory_of(devices[i]);
		if (ze.zeDeviceGetSubDevices(devices[i], &found->tiles, NULL) != ZE_RESULT_SUCCESS)
			found->tiles = 0;
		put_engines(devices[i], found->engines, sizeof(found->engines));
	}
}

/* ---- metrics ---- */

static void print_group(uint32_t device, zet_metric_group_handle_t group)
{
	zet_metric_group_properties_t properties = {
		.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
	};
	zet_metric_handle_t *metrics;
	uint32_t count = 0;
	bool query, sampling;

	if (ze.zetMetricGroupGetProperties(group, &properties) != ZE_RESULT_SUCCESS ||
	    ze.zetMetricGet(group, &count, NULL) != ZE_RESULT_SUCCESS)
		return;
	query = properties.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED;
	sampling = properties.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED;
	printf("Device #%u, group %s (%s%s%s; domain %u): %s\n", device, properties.name,
	       query ? "query" : "", query && sampling ? ", " : "", sampling ? "sampling" : "",
	       properties.domain, properties.description);
	metrics = calloc(count + 1, sizeof(*metrics));
	if (!metrics || ze.zetMetricGet(group, &count, metrics) != ZE_RESULT_SUCCESS)
		count = 0;
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_properties_t metric = { .stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES };

		if (ze.zetMetricGetProperties(metrics[i], &metric) == ZE_RESULT_SUCCESS)
			printf("  %s%s%s%s: %s\n", metric.name, metric.resultUnits[0] ? " [" : "",
			       metric.resultUnits, metric.resultUnits[0] ? "]" : "",
			       metric.description);
	}
	free(metrics);
}

void xs_want_metrics(void)
{
	(void)setenv("ZET_ENABLE_METRICS", "1", 1);
}

static const char *open_metrics(void)
{
	const char *missing = open_loader();

	if (!missing && (!ze.zetMetricGroupGet || !ze.zetMetricGroupGetProperties ||
			 !ze.zetMetricGet || !ze.zetMetricGetProperties))
		missing = "its loader knows nothing of metrics";
	return missing;
}

/* ---- programmable metrics ---- */

typedef void programmable_t(void *data, uint32_t device, const struct xs_programmable *metric,
			    const struct xs_parameter *parameters, uint32_t count);

static void each_programmable(programmable_t *tell, void *data)
{
	void *loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct xs_parameter parameters[XS_PARAMETERS_MAX];
	void *all[XS_PROGRAMMABLES_MAX];
	struct xs_programmables functions;
	ze_device_handle_t devices[MAX];
	ze_driver_handle_t drivers[2];
	struct xs_programmable metric;
	uint32_t count = 2, parameter_count;

	if (!loader || ze.zeDriverGet(&count, drivers) != ZE_RESULT_SUCCESS || !count ||
	    !xs_programmables_find(&functions, loader, count == 1 ? drivers[0] : NULL))
		return;
	count = find_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = xs_programmables_get(&functions, devices[i], all);

		for (uint32_t k = 0; k < n; k++)
			if (xs_programmable_tell(&functions, all[k], &metric, parameters,
						 &parameter_count))
				tell(data, i, &metric, parameters, parameter_count);
	}
}

static void print_programmable(void *data, uint32_t device, const struct xs_programmable *metric,
			       const struct xs_parameter *parameters, uint32_t count)
{
	char text[32];

	(void)data;
	printf("Device #%u, programmable metric %s", device, metric->name);
	for (uint32_t i = 0; i < count; i++)
		printf(":%s=%s", parameters[i].name,
		       xs_parameter_text(parameters[i].value_type, &parameters[i].standard, text));
	printf(" (sampling): %s\n", metric->description);
}

struct told {
	xs_metric_group_t *tell;
	void *data;
};

static void tell_programmable(void *data, uint32_t device, const struct xs_programmable *metric,
			      const struct xs_parameter *parameters, uint32_t count)
{
	const struct told *told = data;

	(void)device, (void)parameters, (void)count;
	told->tell(told->data, metric->name, 1, false, true);
}

const char *xs_each_metric_group(xs_metric_group_t *tell, void *data)
{
	ze_device_handle_t devices[MAX];
	uint32_t count;
	const char *missing = open_metrics();

	if (missing)
		return missing;
	count = find_devices(devices);
	if (!count)
		return "it has no device";
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_handle_t groups[512];
		uint32_t n = 512;

		if (ze.zetMetricGroupGet(devices[i], &n, groups) != ZE_RESULT_SUCCESS) {
			missing = "its driver does not tell of metrics";
			continue;
		}
		for (uint32_t k = 0; k < n && k < 512; k++) {
			zet_metric_group_properties_t group = {
				.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
			};

			if (ze.zetMetricGroupGetProperties(groups[k], &group) != ZE_RESULT_SUCCESS)
				continue;
			group.name[sizeof(group.name) - 1] = '\0';
			if (!tell)
				return NULL;
			tell(data, group.name, group.metricCount,
			     group.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED,
			     group.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED);
		}
	}
	each_programmable(tell_programmable, &(struct told){ tell, data });
	return missing;
}

/* ---- several groups at once ---- */

typedef ze_result_t concurrent_t(zet_device_handle_t, uint32_t, zet_metric_group_handle_t *,
				 uint32_t *, uint32_t *); /* of zet_api.h 1.11 */

struct named {
	zet_metric_group_handle_t group[XS_GROUPS_MAX];
	uint32_t domain[XS_GROUPS_MAX], count;
	bool too_many;
};

/* The device's group for sampling of that name, if it has one. */
static void add_named(struct named *named, ze_device_handle_t device, const char *name)
{
	zet_metric_group_handle_t groups[512];
	uint32_t n = 512;

	if (ze.zetMetricGroupGet(device, &n, groups) != ZE_RESULT_SUCCESS)
		return;
	for (uint32_t k = 0; k < n && k < 512; k++) {
		zet_metric_group_properties_t group = {
			.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
		};

		if (ze.zetMetricGroupGetProperties(groups[k], &group) != ZE_RESULT_SUCCESS ||
		    !(group.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED) ||
		    strncmp(group.name, name, sizeof(group.name)) != 0)
			continue;
		named->too_many |= named->count == XS_GROUPS_MAX;
		if (!named->too_many) {
			named->group[named->count] = groups[k];
			named->domain[named->count++] = group.domain;
		}
		return;
	}
}

/* As the driver says it. Older ones do not: then groups of one domain exclude each other. */
static bool at_once(struct named *named, ze_device_handle_t device, concurrent_t *concurrent)
{
	uint32_t sets = 0;

	if (named->too_many)
		return false;
	for (uint32_t i = 0; i < named->count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (named->group[i] == named->group[k])
				return false;
	if (concurrent && named->count &&
	    concurrent(device, named->count, named->group, NULL, &sets) == ZE_RESULT_SUCCESS &&
	    sets)
		return sets == 1;
	for (uint32_t i = 0; i < named->count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (named->domain[i] == named->domain[k])
				return false;
	return true;
}

bool xs_sampled_at_once(const char *groups)
{
	void *loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_NOLOAD);
	ze_driver_handle_t drivers[2];
	ze_device_handle_t devices[MAX];
	concurrent_t *concurrent;
	uint32_t count = 2, most = 0;
	bool found = false;

	if (!loader || ze.zeDriverGet(&count, drivers) != ZE_RESULT_SUCCESS || !count)
		return false;
	*(void **)&concurrent = xs_newer_function(loader, count == 1 ? drivers[0] : NULL,
						  "zetDeviceGetConcurrentMetricGroupsExp");
	count = find_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		struct named named = { .count = 0 };
		char text[4096], *rest = text; /* as --group */

		(void)snprintf(text, sizeof(text), "%s", groups);
		while (rest)
			add_named(&named, devices[i], strsep(&rest, ","));
		/* what has fewer of the groups than another one says nothing */
		if (named.count < most)
			continue;
		found = at_once(&named, devices[i], concurrent) || (found && named.count == most);
		most = named.count;
	}
	return found;
}

bool xs_print_metrics(void)
{
	ze_device_handle_t devices[MAX];
	uint32_t count, groups = 0;
	const char *missing = open_metrics();

	if (missing) {
		printf("No metrics: Level Zero tells of none, %s\n", missing);
		return false;
	}
	count = find_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_handle_t *list;
		uint32_t n = 0;

		if (ze.zetMetricGroupGet(devices[i], &n, NULL) != ZE_RESULT_SUCCESS || !n)
			continue;
		list = calloc(n, sizeof(*list));
		if (list && ze.zetMetricGroupGet(devices[i], &n, list) == ZE_RESULT_SUCCESS)
			for (uint32_t k = 0; k < n; k++)
				print_group(i, list[k]);
		free(list);
		groups += n;
	}
	each_programmable(print_programmable, NULL);
	if (!groups)
		printf("No metrics: %s\n",
		       count ? "the Level Zero driver has none for its devices; on a GPU, their "
			       "library (libigdmd) may be missing, or "
			       "the right to read them (sysctl dev.i915.perf_stream_paranoid=0, or "
			       "root)"
			     : "Level Zero has no device");
	return groups;
}

#else
void xs_find_level_zero(struct xs_found_list *list)
{
	list->missing[0] = "this xstrace was built without it";
}

void xs_want_metrics(void)
{
}

const char *xs_each_metric_group(xs_metric_group_t *tell, void *data)
{
	(void)tell, (void)data;
	return "this xstrace was built without it";
}

bool xs_sampled_at_once(const char *groups)
{
	(void)groups;
	return false;
}

bool xs_print_metrics(void)
{
	puts("No metrics: this xstrace was built without Level Zero");
	return false;
}
#endif
