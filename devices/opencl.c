/*
 * What OpenCL tells of devices.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "devices.h"

#ifdef XS_HAVE_OPENCL
#include <CL/cl.h>

#define MAX_PLATFORMS 32u
/* cl_khr_device_uuid, cl_khr_pci_bus_info: older headers do not have them */
#define DEVICE_UUID 0x106A
#define DEVICE_PCI  0x410F

static __typeof__(&clGetPlatformIDs) get_platforms;
static __typeof__(&clGetPlatformInfo) get_platform_info;
static __typeof__(&clGetDeviceIDs) get_devices;
static __typeof__(&clGetDeviceInfo) get_info;

static const char *type_of(cl_device_type type)
{
	return type & CL_DEVICE_TYPE_GPU   ? "GPU"
	       : type & CL_DEVICE_TYPE_CPU ? "CPU"
					   : "accelerator";
}

static bool has(cl_device_id device, const char *extension)
{
	char text[16384] = "";

	return !get_info(device, CL_DEVICE_EXTENSIONS, sizeof(text) - 1, text, NULL) &&
	       strstr(text, extension);
}

static void add(struct xs_found_list *list, cl_platform_id platform, cl_device_id device,
		int number)
{
	cl_uint pci[4], units = 0, clock = 0;
	cl_device_type type = 0;
	cl_ulong memory = 0;
	uint8_t uuid[16] = { 0 };
	struct xs_found *found;
	char address[20] = "";

	if (has(device, "cl_khr_device_uuid"))
		(void)get_info(device, DEVICE_UUID, sizeof(uuid), uuid, NULL);
	if (has(device, "cl_khr_pci_bus_info") &&
	    !get_info(device, DEVICE_PCI, sizeof(pci), pci, NULL))
		(void)snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", pci[0] & 0xffff,
			       pci[1] & 0xff, pci[2] & 0xff, pci[3] & 0xf);
	found = xs_found_entry(list, uuid, address, offsetof(struct xs_found, opencl));
	if (!found)
		return;
	found->opencl = number;
	(void)get_platform_info(platform, CL_PLATFORM_NAME, sizeof(found->platform) - 1,
				found->platform, NULL);
	if (found->level_zero >= 0)
		return; /* which has told all of it */
	(void)get_info(device, CL_DEVICE_NAME, sizeof(found->name) - 1, found->name, NULL);
	(void)get_info(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	(void)get_info(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory, NULL);
	(void)get_info(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(clock), &clock, NULL);
	(void)get_info(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	found->type = type_of(type);
	found->memory = memory;
	found->clock = clock;
	(void)snprintf(found->engines, sizeof(found->engines), "%u compute units", units);
}

void xs_find_opencl(struct xs_found_list *list)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint platform_count = 0;
	int number = 0;

	if (!library) {
		list->missing[1] = "its loader (libOpenCL.so.1) is not installed";
		return;
	}
	*(void **)&get_platforms = dlsym(library, "clGetPlatformIDs");
	*(void **)&get_platform_info = dlsym(library, "clGetPlatformInfo");
	*(void **)&get_devices = dlsym(library, "clGetDeviceIDs");
	*(void **)&get_info = dlsym(library, "clGetDeviceInfo");
	if (!get_platforms || !get_platform_info || !get_devices || !get_info) {
		list->missing[1] = "libOpenCL.so.1 is no OpenCL loader";
		return;
	}
	if (get_platforms(MAX_PLATFORMS, platforms, &platform_count))
		platform_count = 0;
	for (cl_uint i = 0; i < platform_count && i < MAX_PLATFORMS; i++) {
		cl_device_id devices[XS_FOUND_MAX];
		cl_uint count = 0;

		if (get_devices(platforms[i], CL_DEVICE_TYPE_ALL, XS_FOUND_MAX, devices, &count))
			continue;
		for (cl_uint k = 0; k < count && k < XS_FOUND_MAX; k++)
			add(list, platforms[i], devices[k], number++);
	}
	if (!number)
		list->missing[1] = "it has no device";
}

#else
void xs_find_opencl(struct xs_found_list *list)
{
	list->missing[1] = "this xstrace was built without it";
}
#endif
