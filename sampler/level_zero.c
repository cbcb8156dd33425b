/*
 * Level Zero's GPUs: the loader, its drivers and devices.
 *
 * Loaders since 1.9 have zesInit() and hand out devices for system management alone. Before, and
 * where that finds none, the devices are those of zeInit(), which has to be asked for Sysman by a
 * variable.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "level_zero.h"

#define DRIVERS_MAX 16u
#define GPUS_MAX    64u

/* Headers may be older than zesInit(). */
struct entry {
	ze_result_t (*init)(uint32_t flags);
	ze_result_t (*drivers)(uint32_t *count, zes_driver_handle_t *drivers);
	ze_result_t (*devices)(zes_driver_handle_t driver, uint32_t *count,
			       zes_device_handle_t *devices);
};

static bool find_entry(void *loader, const char *const names[3], struct entry *ret)
{
	*(void **)&ret->init = dlsym(loader, names[0]);
	*(void **)&ret->drivers = dlsym(loader, names[1]);
	*(void **)&ret->devices = dlsym(loader, names[2]);
	return ret->init && ret->drivers && ret->devices;
}

static uint32_t find_devices(const struct entry *entry, zes_device_handle_t devices[GPUS_MAX])
{
	zes_driver_handle_t drivers[DRIVERS_MAX];
	uint32_t driver_count = DRIVERS_MAX, count = 0;

	if (entry->init(0) != ZE_RESULT_SUCCESS ||
	    entry->drivers(&driver_count, drivers) != ZE_RESULT_SUCCESS)
		return 0;
	for (uint32_t i = 0; i < driver_count && i < DRIVERS_MAX && count < GPUS_MAX; i++) {
		uint32_t more = GPUS_MAX - count;

		if (entry->devices(drivers[i], &more, devices + count) == ZE_RESULT_SUCCESS)
			count += more < GPUS_MAX - count ? more : GPUS_MAX - count;
	}
	return count;
}

static uint32_t find_all(void *loader, zes_device_handle_t devices[GPUS_MAX])
{
	static const char *const newer[] = { "zesInit", "zesDriverGet", "zesDeviceGet" };
	static const char *const older[] = { "zeInit", "zeDriverGet", "zeDeviceGet" };
	struct entry entry;
	uint32_t count = 0;

	if (find_entry(loader, newer, &entry))
		count = find_devices(&entry, devices);
	if (!count && find_entry(loader, older, &entry)) {
		(void)setenv("ZES_ENABLE_SYSMAN", "1", 1);
		count = find_devices(&entry, devices);
	}
	return count;
}

static bool name_it(struct xs_gpu *gpu, zes_device_handle_t device)
{
	zes_device_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES };
	zes_pci_properties_t pci = { .stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES };
	const char *name;

	properties.core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
	if (xs_zes.zesDeviceGetProperties(device, &properties) != ZE_RESULT_SUCCESS ||
	    xs_zes.zesDevicePciGetProperties(device, &pci) != ZE_RESULT_SUCCESS)
		return false;
	name = properties.core.name[0] ? properties.core.name : properties.modelName;
	xs_gpu_name(gpu, name,
		    (uint32_t[]){ pci.address.domain, pci.address.bus, pci.address.device,
				  pci.address.function });
	return true;
}

void xs_level_zero_add(struct xs_sources *sources)
{
	static struct xs_gpu gpus[GPUS_MAX];
	zes_device_handle_t devices[GPUS_MAX];
	void *loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
	uint32_t count;

	if (!loader)
		return;
#define LOOK_UP(name)                                              \
	*(void **)&xs_zes.name = dlsym(loader, #name);             \
	if (!xs_zes.name) {                                        \
		fprintf(stderr,                                    \
			"[WARNING] Level Zero's loader lacks %s: " \
			"--system-metrics goes on without GPUs\n", \
			#name);                                    \
		return;                                            \
	}
	XS_ZES_FUNCTIONS(LOOK_UP)
	count = find_all(loader, devices);
	for (uint32_t i = 0; i < count; i++) {
		if (!name_it(&gpus[i], devices[i]))
			continue;
		xs_zes_add_domains(sources, &gpus[i], devices[i]);
		xs_gpu_added(&gpus[i], "start xstrace as root; for engines, "
				       "sudo sysctl kernel.perf_event_paranoid=0 may do");
	}
}
