/*
 * The parts of a device of which Sysman tells: each domain is a source.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "level_zero.h"

#define DOMAINS_MAX 64u
#define PART_MAX    16u

struct xs_zes xs_zes;

/* True: there is a value. */
static bool told(struct xs_source *source, ze_result_t result, const char *function)
{
	enum xs_gpu_fault fault = XS_GPU_FAILED;

	switch (result) {
	case ZE_RESULT_SUCCESS:
		return true;
	case ZE_RESULT_NOT_READY:
	case ZE_RESULT_ERROR_NOT_AVAILABLE:
		fault = XS_GPU_LATER;
		break;
	case ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:
	case ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE:
		fault = source->last ? XS_GPU_FAILED : XS_GPU_MISSING;
		break;
	case ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS:
		fault = XS_GPU_DENIED;
		break;
	case ZE_RESULT_ERROR_DEVICE_LOST:
		fault = XS_GPU_LOST;
		break;
	default:
		break;
	}
	xs_gpu_fault(source, fault, function, (uint32_t)result);
	return false;
}

#define TOLD(source, function, ...) told(source, xs_zes.function(__VA_ARGS__), #function)

/* "tile 1 ", or nothing: of the whole device. */
static const char *part_of(ze_bool_t on_tile, uint32_t tile, char text[PART_MAX])
{
	text[0] = '\0';
	if (on_tile)
		(void)snprintf(text, PART_MAX, "tile %u ", tile & 0xffff);
	return text;
}

/* ---- power ---- */

/* zes_power_ext_properties_t, which older headers lack. */
struct domain_of_power {
	uint32_t stype;
	void *next;
	uint32_t domain;
	void *limit;
};
#define DOMAIN_OF_POWER 0x28u

static void look_at_power(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_power_energy_counter_t counter = { 0 };

	(void)ns, (void)before;
	if (TOLD(source, zesPowerGetEnergyCounter, source->handle, &counter))
		xs_gpu_energy(source, counter.energy, counter.timestamp);
}

static void add_power(struct xs_sources *sources, struct xs_gpu *gpu, zes_pwr_handle_t power)
{
	static const char *const names[] = {
		"", "card ", "package ", "stack ", "memory ", "cores "
	};
	struct domain_of_power domain = { .stype = DOMAIN_OF_POWER };
	zes_power_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_POWER_PROPERTIES,
					      .pNext = &domain };
	struct xs_source *source =
		xs_gpu_source(sources, gpu, "power", power, XS_MS, look_at_power);
	char part[PART_MAX];

	if (!source || !TOLD(source, zesPowerGetProperties, power, &properties))
		return;
	part_of(properties.onSubdevice, properties.subdeviceId, part);
	if (domain.domain >= sizeof(names) / sizeof(names[0]))
		domain.domain = 0;
	xs_gpu_counter(source, 0, "%s%spower [W]", part, names[domain.domain]);
	xs_gpu_counter(source, 1, "%s%senergy [J]", part, names[domain.domain]);
	source->per_joule = 1e6; /* uJ; by us these are W */
	look_at_power(source, 0, 0);
}

/* ---- frequency ---- */

static void look_at_frequency(struct xs_source *source, uint64_t ns, uint64_t before)
{
	static const char *const reasons[] = {
		"average power", "burst power",	   "current", "temperature limit", "power supply",
		"range set",	 "range of parts", "voltage", "temperature",	   "power",
	};
	zes_freq_state_t state = { .stype = ZES_STRUCTURE_TYPE_FREQ_STATE };

	(void)ns, (void)before;
	if (!TOLD(source, zesFrequencyGetState, source->handle, &state))
		return;
	if (state.actual >= 0) /* else it is not known */
		xs_source_tell(source, 0, state.actual);
	if (state.request >= 0)
		xs_source_tell(source, 1, state.request);
	xs_gpu_reasons(source, 2, state.throttleReasons, reasons,
		       sizeof(reasons) / sizeof(reasons[0]));
}

static void add_frequency(struct xs_sources *sources, struct xs_gpu *gpu, zes_freq_handle_t domain)
{
	static const char *const names[] = { "cores", "memory", "media" };
	zes_freq_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES };
	struct xs_source *source =
		xs_gpu_source(sources, gpu, "frequency", domain, 10 * XS_MS, look_at_frequency);
	const char *name;
	char part[PART_MAX];

	if (!source || !TOLD(source, zesFrequencyGetProperties, domain, &properties))
		return;
	part_of(properties.onSubdevice, properties.subdeviceId, part);
	name = (uint32_t)properties.type < sizeof(names) / sizeof(names[0]) ? names[properties.type]
									    : "other";
	xs_gpu_counter(source, 0, "%sfrequency of %s [MHz]", part, name);
	xs_gpu_counter(source, 1, "%sfrequency of %s, requested [MHz]", part, name);
	xs_gpu_counter(source, 2, "%s%s throttled by", part, name);
	look_at_frequency(source, 0, 0);
}

/* ---- temperature ---- */

static void look_at_temperature(struct xs_source *source, uint64_t ns, uint64_t before)
{
	double degrees = NAN;

	(void)ns, (void)before;
	if (TOLD(source, zesTemperatureGetState, source->handle, &degrees) && !isnan(degrees))
		xs_source_tell(source, 0, degrees);
}

static void add_temperature(struct xs_sources *sources, struct xs_gpu *gpu,
			    zes_temp_handle_t sensor)
{
	static const char *const names[] = {
		"",	     " of cores",	 " of memory",
		", least",   " of cores, least", " of memory, least",
		" of board", " of board, least", " of voltage regulator"
	};
	zes_temp_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_TEMP_PROPERTIES };
	struct xs_source *source = xs_gpu_source(sources, gpu, "temperature", sensor, 100 * XS_MS,
						 look_at_temperature);
	char part[PART_MAX];

	if (!source || !TOLD(source, zesTemperatureGetProperties, sensor, &properties))
		return;
	xs_gpu_counter(source, 0, "%stemperature%s [C]",
		       part_of(properties.onSubdevice, properties.subdeviceId, part),
		       (uint32_t)properties.type < sizeof(names) / sizeof(names[0])
			       ? names[properties.type]
			       : " of other parts");
	look_at_temperature(source, 0, 0);
}

/* ---- memory ---- */

static void look_at_memory(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_mem_state_t state = { .stype = ZES_STRUCTURE_TYPE_MEM_STATE };

	(void)ns, (void)before;
	if (TOLD(source, zesMemoryGetState, source->handle, &state) && state.free <= state.size)
		xs_source_tell(source, 0, (double)(state.size - state.free));
}

static void look_at_bandwidth(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_mem_bandwidth_t state = { 0 };

	(void)ns, (void)before;
	if (TOLD(source, zesMemoryGetBandwidth, source->handle, &state))
		xs_gpu_rates(source, (uint64_t[]){ state.readCounter, state.writeCounter }, 2,
			     state.timestamp);
}

static void add_memory(struct xs_sources *sources, struct xs_gpu *gpu, zes_mem_handle_t memory)
{
	zes_mem_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_MEM_PROPERTIES };
	struct xs_source *source =
		xs_gpu_source(sources, gpu, "memory", memory, 10 * XS_MS, look_at_memory);
	char part[PART_MAX];

	if (!source || !TOLD(source, zesMemoryGetProperties, memory, &properties))
		return;
	part_of(properties.onSubdevice, properties.subdeviceId, part);
	xs_gpu_counter(source, 0, "%smemory used [B]", part);
	look_at_memory(source, 0, 0);
	source = xs_gpu_source(sources, gpu, "bandwidth of memory", memory, 10 * XS_MS,
			       look_at_bandwidth);
	if (!source)
		return;
	xs_gpu_counter(source, 0, "%smemory read [B/s]", part);
	xs_gpu_counter(source, 1, "%smemory written [B/s]", part);
	source->scale = 1e6; /* B/us */
	look_at_bandwidth(source, 0, 0);
}

/* ---- engines ---- */

static const struct {
	const char *name;
	bool all; /* of a kind, together */
} engines[] = {
	{ "all engines", true },    { "compute engines", true }, { "media engines", true },
	{ "copy engines", true },   { "compute engine", false }, { "render engine", false },
	{ "decoder", false },	    { "encoder", false },	 { "copy engine", false },
	{ "enhancer", false },	    { "3D engine", false },	 { "3D and compute engines", true },
	{ "render engines", true }, { "3D engines", true },	 { "media engine", false },
};

static void look_at_engine(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_engine_stats_t stats = { 0 };

	(void)ns, (void)before;
	if (TOLD(source, zesEngineGetActivity, source->handle, &stats))
		xs_gpu_rates(source, &stats.activeTime, 1, stats.timestamp);
}

static bool engine_of(zes_engine_handle_t engine, zes_engine_properties_t *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->stype = ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES;
	return xs_zes.zesEngineGetProperties(engine, ret) == ZE_RESULT_SUCCESS &&
	       (uint32_t)ret->type < sizeof(engines) / sizeof(engines[0]);
}

/* Where groups are told together, single engines are not asked as well: each costs a call. */
static void add_engines(struct xs_sources *sources, struct xs_gpu *gpu,
			zes_engine_handle_t *handles, uint32_t count)
{
	zes_engine_properties_t properties;
	bool together = false;
	char part[PART_MAX];

	for (uint32_t i = 0; i < count && !together; i++)
		together = engine_of(handles[i], &properties) && engines[properties.type].all;
	for (uint32_t i = 0; i < count; i++) {
		struct xs_source *source;

		if (!engine_of(handles[i], &properties) ||
		    (together && !engines[properties.type].all))
			continue;
		source = xs_gpu_source(sources, gpu, "engines", handles[i], XS_MS, look_at_engine);
		if (!source)
			return;
		part_of(properties.onSubdevice, properties.subdeviceId, part);
		if (together)
			xs_gpu_counter(source, 0, "%s%s busy [%%]", part,
				       engines[properties.type].name);
		else
			xs_gpu_counter(source, 0, "%s%s %u busy [%%]", part,
				       engines[properties.type].name, i);
		source->scale = 100;
		look_at_engine(source, 0, 0);
	}
}

/* ---- PCIe, fabric ---- */

static void look_at_pci(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_pci_stats_t stats = { 0 };

	(void)ns, (void)before;
	if (TOLD(source, zesDevicePciGetStats, source->handle, &stats))
		xs_gpu_rates(source, (uint64_t[]){ stats.rxCounter, stats.txCounter }, 2,
			     stats.timestamp);
}

static void add_pci(struct xs_sources *sources, struct xs_gpu *gpu, zes_device_handle_t device)
{
	zes_pci_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES };
	struct xs_source *source =
		xs_gpu_source(sources, gpu, "PCIe traffic", device, 10 * XS_MS, look_at_pci);

	if (!source || !TOLD(source, zesDevicePciGetProperties, device, &properties))
		return;
	if (!properties.haveBandwidthCounters) { /* they would be 0 for ever */
		source->off = true;
		return;
	}
	xs_gpu_counter(source, 0, "PCIe received [B/s]");
	xs_gpu_counter(source, 1, "PCIe sent [B/s]");
	source->scale = 1e6;
	look_at_pci(source, 0, 0);
}

static void look_at_port(struct xs_source *source, uint64_t ns, uint64_t before)
{
	zes_fabric_port_throughput_t state = { 0 };

	(void)ns, (void)before;
	if (TOLD(source, zesFabricPortGetThroughput, source->handle, &state))
		xs_gpu_rates(source, (uint64_t[]){ state.rxCounter, state.txCounter }, 2,
			     state.timestamp);
}

static void add_port(struct xs_sources *sources, struct xs_gpu *gpu, zes_fabric_port_handle_t port)
{
	zes_fabric_port_properties_t properties = {
		.stype = ZES_STRUCTURE_TYPE_FABRIC_PORT_PROPERTIES
	};
	struct xs_source *source =
		xs_gpu_source(sources, gpu, "fabric ports", port, 10 * XS_MS, look_at_port);
	const zes_fabric_port_id_t *id = &properties.portId;
	char part[PART_MAX];

	if (!source || !TOLD(source, zesFabricPortGetProperties, port, &properties))
		return;
	part_of(properties.onSubdevice, properties.subdeviceId, part);
	xs_gpu_counter(source, 0, "%sfabric port %u.%u.%u received [B/s]", part, id->fabricId,
		       id->attachId, id->portNumber);
	xs_gpu_counter(source, 1, "%sfabric port %u.%u.%u sent [B/s]", part, id->fabricId,
		       id->attachId, id->portNumber);
	source->scale = 1e6;
	look_at_port(source, 0, 0);
}

/* ---- all ---- */

/* The handles of a kind that a device has; none, if the driver does not tell. */
#define HANDLES(device, list, handles, count)                                    \
	do {                                                                     \
		(count) = DOMAINS_MAX;                                           \
		if (xs_zes.list(device, &(count), handles) != ZE_RESULT_SUCCESS) \
			(count) = 0;                                             \
		(count) = (count) < DOMAINS_MAX ? (count) : DOMAINS_MAX;         \
	} while (0)
#define EACH(device, list, type, add)                    \
	do {                                             \
		type handles_[DOMAINS_MAX];              \
		uint32_t count_;                         \
		HANDLES(device, list, handles_, count_); \
		for (uint32_t i_ = 0; i_ < count_; i_++) \
			add(sources, gpu, handles_[i_]); \
	} while (0)

void xs_zes_add_domains(struct xs_sources *sources, struct xs_gpu *gpu, zes_device_handle_t device)
{
	zes_engine_handle_t groups[DOMAINS_MAX];
	uint32_t count;

	EACH(device, zesDeviceEnumPowerDomains, zes_pwr_handle_t, add_power);
	EACH(device, zesDeviceEnumFrequencyDomains, zes_freq_handle_t, add_frequency);
	EACH(device, zesDeviceEnumTemperatureSensors, zes_temp_handle_t, add_temperature);
	EACH(device, zesDeviceEnumMemoryModules, zes_mem_handle_t, add_memory);
	HANDLES(device, zesDeviceEnumEngineGroups, groups, count);
	add_engines(sources, gpu, groups, count);
	add_pci(sources, gpu, device);
	EACH(device, zesDeviceEnumFabricPorts, zes_fabric_port_handle_t, add_port);
}
