/*
 * What CUDA's driver tells of devices. Its few functions are declared here, so that no header is
 * needed; their interface is the driver's since CUDA 4 (cuda.h).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "devices.h"
#include "metric_sets.h"

/* enum CUdevice_attribute */
#define CLOCK_KHZ	13
#define MULTIPROCESSORS 16

struct driver {
	int (*init)(unsigned);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*uuid)(uint8_t *, int);
	int (*pci)(char *, int, int);
	int (*memory)(size_t *, int);
	int (*attribute)(int *, int, int);
};

static bool take(struct driver *driver, void *library)
{
	*(void **)&driver->init = dlsym(library, "cuInit");
	*(void **)&driver->count = dlsym(library, "cuDeviceGetCount");
	*(void **)&driver->get = dlsym(library, "cuDeviceGet");
	*(void **)&driver->name = dlsym(library, "cuDeviceGetName");
	*(void **)&driver->uuid = dlsym(library, "cuDeviceGetUuid_v2"); /* of a MIG instance, too */
	if (!driver->uuid)
		*(void **)&driver->uuid = dlsym(library, "cuDeviceGetUuid");
	*(void **)&driver->pci = dlsym(library, "cuDeviceGetPCIBusId");
	*(void **)&driver->memory = dlsym(library, "cuDeviceTotalMem_v2");
	*(void **)&driver->attribute = dlsym(library, "cuDeviceGetAttribute");
	return driver->init && driver->count && driver->get && driver->name && driver->memory &&
	       driver->attribute;
}

static void add(const struct driver *driver, struct xs_found_list *list, int number)
{
	uint8_t uuid[16] = { 0 };
	int device, clock = 0, processors = 0;
	char address[20] = "";
	struct xs_found *found;
	size_t memory = 0;

	if (driver->get(&device, number))
		return;
	if (driver->uuid)
		(void)driver->uuid(uuid, device);
	if (driver->pci)
		(void)driver->pci(address, sizeof(address), device);
	for (char *c = address; *c; c++) /* as the other APIs write it */
		*c |= *c >= 'A' && *c <= 'F' ? 0x20 : 0;
	found = xs_found_entry(list, uuid, address, offsetof(struct xs_found, cuda));
	if (!found)
		return;
	found->cuda = number;
	if (found->level_zero >= 0 || found->opencl >= 0)
		return; /* which has told all of it */
	(void)driver->name(found->name, sizeof(found->name), device);
	(void)driver->memory(&memory, device);
	(void)driver->attribute(&clock, CLOCK_KHZ, device);
	(void)driver->attribute(&processors, MULTIPROCESSORS, device);
	found->type = "GPU";
	found->memory = memory;
	found->clock = clock > 0 ? (uint32_t)clock / 1000u : 0;
	(void)snprintf(found->engines, sizeof(found->engines), "%d multiprocessors", processors);
}

/* NULL, or why there is none. */
static const char *open_driver(struct driver *driver)
{
	static char text[48];
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int error;

	if (!library)
		return "its driver (libcuda.so.1) is not installed";
	if (!take(driver, library))
		return "libcuda.so.1 is no CUDA driver";
	error = driver->init(0);
	if (!error)
		return NULL;
	(void)snprintf(text, sizeof(text), "its driver answers %d", error);
	return text;
}

void xs_find_cuda(struct xs_found_list *list)
{
	struct driver driver;
	int count = 0;

	list->missing[2] = open_driver(&driver);
	if (list->missing[2])
		return;
	if (driver.count(&count))
		count = 0;
	for (int i = 0; i < count && i < (int)XS_FOUND_MAX; i++)
		add(&driver, list, i);
	if (!count)
		list->missing[2] = "it has no device";
}

/* ---- metrics ---- */

bool xs_has_cuda(void)
{
	struct driver driver;
	int count = 0;

	return !open_driver(&driver) && !driver.count(&count) && count > 0;
}

static void print_set(const char *name, const char *kind, const char *metrics)
{
	if (metrics)
		printf("CUDA, group %s (%s):\n", name, kind);
	for (const char *at = metrics; at; at = strchr(at, ',')) {
		at += *at == ',';
		printf("  %.*s\n", (int)strcspn(at, ","), at);
	}
}

bool xs_print_cuda_metrics(void)
{
	const char *name;

	if (!xs_has_cuda())
		return false;
	for (size_t i = 0; (name = xs_metric_set_name(i)); i++) {
		print_set(name, "query", xs_metric_set(name, false));
		print_set(name, "sampling", xs_metric_set(name, true));
	}
	puts("CUDA, in place of a group: names of CUPTI's metrics for the GPU, separated by "
	     "commas");
	return true;
}

bool xs_cuda_admin_only(void)
{
	FILE *file = fopen("/proc/driver/nvidia/params", "re");
	char line[256];
	int only = 0;

	while (file && !only && fgets(line, sizeof(line), file))
		(void)sscanf(line, "RmProfilingAdminOnly: %d", &only);
	if (file)
		fclose(file);
	return only;
}
