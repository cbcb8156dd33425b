/*
 * NVIDIA's GPUs, by their management library. Energy and traffic come as fields, which have a time
 * of their own; a driver that lacks one is asked for what older ones had in its place.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_abi.h"
#include "sampler.h"

#define GPUS_MAX  64u
#define LINKS_MAX 18u

/* The first group is what each driver has since 2018; of the others any may be missing. */
#define FUNCTIONS(X)                     \
	X(nvmlInit_v2)                   \
	X(nvmlDeviceGetCount_v2)         \
	X(nvmlDeviceGetHandleByIndex_v2) \
	X(nvmlDeviceGetName)             \
	X(nvmlDeviceGetPciInfo_v3)
#define MORE_FUNCTIONS(X)                            \
	X(nvmlDeviceGetFieldValues)                  \
	X(nvmlDeviceGetPowerUsage)                   \
	X(nvmlDeviceGetClockInfo)                    \
	X(nvmlDeviceGetCurrentClocksEventReasons)    \
	X(nvmlDeviceGetCurrentClocksThrottleReasons) \
	X(nvmlDeviceGetTemperature)                  \
	X(nvmlDeviceGetMemoryInfo)                   \
	X(nvmlDeviceGetUtilizationRates)             \
	X(nvmlDeviceGetPcieThroughput)

static struct {
#define DECLARE(name) __typeof__(&name) name;
	FUNCTIONS(DECLARE) MORE_FUNCTIONS(DECLARE)
} nvml;

static struct gpu {
	struct xs_gpu base;
	nvmlDevice_t device;
	uint32_t links[LINKS_MAX], link_count; /* scopes of the fields; one UINT_MAX: all at once */
} gpus[GPUS_MAX];

static struct gpu *gpu_of(struct xs_source *source)
{
	return source->handle;
}

/* True: there is a value. */
static bool told(struct xs_source *source, nvmlReturn_t result, const char *function)
{
	enum xs_gpu_fault fault = XS_GPU_FAILED;

	switch (result) {
	case NVML_SUCCESS:
		return true;
	case NVML_ERROR_TIMEOUT:
	case NVML_ERROR_IN_USE:
	case NVML_ERROR_NO_DATA:
	case NVML_ERROR_NOT_READY:
		fault = XS_GPU_LATER;
		break;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		fault = source->last ? XS_GPU_FAILED : XS_GPU_MISSING;
		break;
	case NVML_ERROR_NO_PERMISSION:
		fault = XS_GPU_DENIED;
		break;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED:
	case NVML_ERROR_GPU_NOT_FOUND:
		fault = XS_GPU_LOST;
		break;
	default:
		break;
	}
	xs_gpu_fault(source, fault, function, result);
	return false;
}

#define TOLD(source, function, ...)                                             \
	told(source,                                                            \
	     nvml.function ? nvml.function(gpu_of(source)->device, __VA_ARGS__) \
			   : (nvmlReturn_t)NVML_ERROR_FUNCTION_NOT_FOUND,       \
	     #function)

/* ---- fields ---- */

/* All of them, or none. */
static bool fields(struct xs_source *source, nvmlFieldValue_t *values, int count)
{
	if (!TOLD(source, nvmlDeviceGetFieldValues, count, values))
		return false;
	for (int i = 0; i < count; i++)
		if (!told(source, values[i].nvmlReturn, "nvmlDeviceGetFieldValues"))
			return false;
	return true;
}

static uint64_t number(const nvmlFieldValue_t *field)
{
	switch (field->valueType) {
	case NVML_VALUE_TYPE_DOUBLE:
		return field->value.dVal > 0 ? (uint64_t)field->value.dVal : 0;
	case NVML_VALUE_TYPE_UNSIGNED_INT:
		return field->value.uiVal;
	case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
		return field->value.sllVal > 0 ? (uint64_t)field->value.sllVal : 0;
	default:
		return field->value.ullVal;
	}
}

/* In us; a driver may leave the field's own one empty. */
static uint64_t time_of(const nvmlFieldValue_t *field, uint64_t ns)
{
	return field->timestamp > 0 ? (uint64_t)field->timestamp : ns / 1000;
}

static void look_at_energy(struct xs_source *source, uint64_t ns, uint64_t before)
{
	nvmlFieldValue_t field = { .fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION };

	(void)before;
	if (fields(source, &field, 1))
		xs_gpu_energy(source, number(&field), time_of(&field, ns));
}

static void look_at_pcie(struct xs_source *source, uint64_t ns, uint64_t before)
{
	nvmlFieldValue_t field[2] = { { .fieldId = NVML_FI_DEV_PCIE_COUNT_RX_BYTES },
				      { .fieldId = NVML_FI_DEV_PCIE_COUNT_TX_BYTES } };

	(void)before;
	if (!fields(source, field, 2))
		return;
	if (field[0].valueType == NVML_VALUE_TYPE_UNSIGNED_INT)
		source->wraps = (uint64_t)UINT_MAX + 1;
	xs_gpu_rates(source, (uint64_t[]){ number(&field[0]), number(&field[1]) }, 2,
		     time_of(&field[0], ns));
}

static void look_at_links(struct xs_source *source, uint64_t ns, uint64_t before)
{
	const struct gpu *gpu = gpu_of(source);
	nvmlFieldValue_t field[2 * LINKS_MAX];
	uint64_t sums[2] = { 0 };

	(void)before;
	memset(field, 0, sizeof(field));
	for (uint32_t i = 0; i < gpu->link_count; i++) {
		field[2 * i].fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX;
		field[2 * i + 1].fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
		field[2 * i].scopeId = field[2 * i + 1].scopeId = gpu->links[i];
	}
	if (!fields(source, field, 2 * (int)gpu->link_count))
		return;
	for (uint32_t i = 0; i < 2 * gpu->link_count; i++)
		sums[i % 2] += number(&field[i]);
	xs_gpu_rates(source, sums, 2, time_of(&field[0], ns));
}

/* Newer drivers sum the links up, older ones tell of each. */
static void find_links(struct gpu *gpu)
{
	nvmlFieldValue_t field = { .fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX };

	if (!nvml.nvmlDeviceGetFieldValues)
		return;
	/* link -1: all together */
	for (int64_t link = -1; link < LINKS_MAX && !(gpu->link_count && !link); link++) {
		field.scopeId = (uint32_t)link;
		if (nvml.nvmlDeviceGetFieldValues(gpu->device, 1, &field) == NVML_SUCCESS &&
		    field.nvmlReturn == NVML_SUCCESS)
			gpu->links[gpu->link_count++] = field.scopeId;
	}
}

/* ---- values ---- */

static void look_at_power(struct xs_source *source, uint64_t ns, uint64_t before)
{
	unsigned int milliwatts;

	(void)ns, (void)before;
	if (TOLD(source, nvmlDeviceGetPowerUsage, &milliwatts))
		xs_source_tell(source, 0, milliwatts / 1e3);
}

static void look_at_clocks(struct xs_source *source, uint64_t ns, uint64_t before)
{
	unsigned int mhz;

	(void)ns, (void)before;
	if (TOLD(source, nvmlDeviceGetClockInfo, NVML_CLOCK_SM, &mhz))
		xs_source_tell(source, 0, mhz);
	if (!source->off && TOLD(source, nvmlDeviceGetClockInfo, NVML_CLOCK_MEM, &mhz))
		xs_source_tell(source, 1, mhz);
}

static void look_at_reasons(struct xs_source *source, uint64_t ns, uint64_t before)
{
	/* the first one is that it is idle: it is not held back then */
	static const char *const names[] = {
		NULL,
		"clocks set",
		"power limit",
		"hardware",
		"boost of several GPUs",
		"temperature, by software",
		"temperature, by hardware",
		"power brake",
		"display clocks",
		"board limit",
		"reliability",
	};
	unsigned long long reasons;
	bool is_told;

	(void)ns, (void)before;
	if (nvml.nvmlDeviceGetCurrentClocksEventReasons)
		is_told = TOLD(source, nvmlDeviceGetCurrentClocksEventReasons, &reasons);
	else
		is_told = TOLD(source, nvmlDeviceGetCurrentClocksThrottleReasons, &reasons);
	if (is_told)
		xs_gpu_reasons(source, 0, reasons, names, sizeof(names) / sizeof(names[0]));
}

static void look_at_temperature(struct xs_source *source, uint64_t ns, uint64_t before)
{
	unsigned int degrees;

	(void)ns, (void)before;
	if (TOLD(source, nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU, &degrees))
		xs_source_tell(source, 0, degrees);
}

static void look_at_memory(struct xs_source *source, uint64_t ns, uint64_t before)
{
	nvmlMemory_t memory;

	(void)ns, (void)before;
	if (TOLD(source, nvmlDeviceGetMemoryInfo, &memory))
		xs_source_tell(source, 0, (double)memory.used);
}

static void look_at_utilization(struct xs_source *source, uint64_t ns, uint64_t before)
{
	nvmlUtilization_t utilization;

	(void)ns, (void)before;
	if (!TOLD(source, nvmlDeviceGetUtilizationRates, &utilization))
		return;
	xs_source_tell(source, 0, utilization.gpu);
	xs_source_tell(source, 1, utilization.memory);
}

/* Each of the two calls measures for 20 ms before it returns. */
static void look_at_throughput(struct xs_source *source, uint64_t ns, uint64_t before)
{
	unsigned int kib;

	(void)ns, (void)before;
	if (TOLD(source, nvmlDeviceGetPcieThroughput, NVML_PCIE_UTIL_RX_BYTES, &kib))
		xs_source_tell(source, 0, kib * 1024.0);
	if (!source->off &&
	    TOLD(source, nvmlDeviceGetPcieThroughput, NVML_PCIE_UTIL_TX_BYTES, &kib))
		xs_source_tell(source, 1, kib * 1024.0);
}

/* ---- all ---- */

struct kind {
	const char *what;
	uint64_t every;
	void (*look)(struct xs_source *, uint64_t, uint64_t);
	const char *names[2];
	double scale;
	/* looked at in its place, where it is not there */
	const struct kind *otherwise;
};

static const struct kind power = { "power", XS_MS, look_at_power, { "power [W]" }, 1, NULL };
static const struct kind throughput = { "PCIe traffic",
					1000 * XS_MS,
					look_at_throughput,
					{ "PCIe received [B/s]", "PCIe sent [B/s]" },
					1,
					NULL };
static const struct kind kinds[] = {
	{ "energy", XS_MS, look_at_energy, { "power [W]", "energy [J]" }, 1e3, &power },
	{ "frequency",
	  10 * XS_MS,
	  look_at_clocks,
	  { "frequency of cores [MHz]", "frequency of memory [MHz]" },
	  1,
	  NULL },
	{ "reasons to throttle", 10 * XS_MS, look_at_reasons, { "throttled by" }, 1, NULL },
	{ "temperature", 100 * XS_MS, look_at_temperature, { "temperature [C]" }, 1, NULL },
	{ "memory", 10 * XS_MS, look_at_memory, { "memory used [B]" }, 1, NULL },
	{ "utilization",
	  100 * XS_MS,
	  look_at_utilization,
	  { "busy [%]", "memory busy [%]" },
	  1,
	  NULL },
	{ "PCIe traffic",
	  10 * XS_MS,
	  look_at_pcie,
	  { "PCIe received [B/s]", "PCIe sent [B/s]" },
	  1e6,
	  &throughput },
	{ "NVLink traffic",
	  10 * XS_MS,
	  look_at_links,
	  { "NVLink received [B/s]", "NVLink sent [B/s]" },
	  1e6 * 1024,
	  NULL },
};

static void add_kind(struct xs_sources *sources, struct gpu *gpu, const struct kind *kind)
{
	struct xs_source *source;

	/* it would hold up all other looks */
	if (kind == &throughput && sources->interval < 100 * (uint64_t)XS_MS)
		return;
	if (kind->look == look_at_links && !gpu->link_count)
		return;
	source = xs_gpu_source(sources, &gpu->base, kind->what, gpu, kind->every, kind->look);
	if (!source)
		return;
	for (int i = 0; i < 2 && kind->names[i]; i++)
		xs_gpu_counter(source, i, "%s", kind->names[i]);
	source->scale = kind->scale;
	source->per_joule = 1e3;
	source->look(source, 0, 0);
	if (source->off && kind->otherwise && !gpu->base.gone)
		add_kind(sources, gpu, kind->otherwise);
}

static bool name_it(struct gpu *gpu)
{
	nvmlPciInfo_t pci;
	const char *function;
	char name[96];

	if (nvml.nvmlDeviceGetName(gpu->device, name, sizeof(name)) != NVML_SUCCESS ||
	    nvml.nvmlDeviceGetPciInfo_v3(gpu->device, &pci) != NVML_SUCCESS)
		return false;
	name[sizeof(name) - 1] = pci.busId[sizeof(pci.busId) - 1] = '\0';
	function = strrchr(pci.busId, '.');
	xs_gpu_name(&gpu->base, name,
		    (uint32_t[]){ pci.domain, pci.bus, pci.device,
				  function ? (uint32_t)strtoul(function + 1, NULL, 16) & 7 : 0 });
	return true;
}

static bool open_library(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	nvmlReturn_t result;

	if (!library)
		return false;
#define LOOK_UP(name) *(void **)&nvml.name = dlsym(library, #name);
	FUNCTIONS(LOOK_UP)
	MORE_FUNCTIONS(LOOK_UP)
#define CHECK_FOUND(name)                                                              \
	if (!nvml.name) {                                                              \
		fprintf(stderr, "[WARNING] libnvidia-ml.so.1 lacks " #name             \
				": --system-metrics goes on without NVIDIA's GPUs\n"); \
		return false;                                                          \
	}
	FUNCTIONS(CHECK_FOUND)
	result = nvml.nvmlInit_v2();
	if (result != NVML_SUCCESS && result != NVML_ERROR_DRIVER_NOT_LOADED)
		fprintf(stderr,
			"[WARNING] libnvidia-ml.so.1 does not start (error %u; nvidia-smi says "
			"why): --system-metrics goes on without NVIDIA's GPUs\n",
			result);
	return result == NVML_SUCCESS;
}

void xs_nvml_add(struct xs_sources *sources)
{
	unsigned int count = 0;

	if (!open_library() || nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count && i < GPUS_MAX; i++) {
		struct gpu *gpu = &gpus[i];

		if (nvml.nvmlDeviceGetHandleByIndex_v2(i, &gpu->device) != NVML_SUCCESS ||
		    !name_it(gpu))
			continue;
		find_links(gpu);
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			add_kind(sources, gpu, &kinds[k]);
		xs_gpu_added(&gpu->base, "start xstrace as root");
	}
}
