/*
 * What Level Zero tells of devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

#ifdef XS_HAVE_LEVEL_ZERO
#include "level_zero.h"

#define MAX XS_LEVEL_ZERO_MAX

struct xs_level_zero xs_level_zero;

const char *xs_level_zero_open(void)
{
	static const char *problem = "";
	void *library;

	if (!problem || problem[0])
		return problem;
	library = dlopen("libze_loader.so.1", RTLD_NOW);
	if (!library)
		return problem = "its loader (libze_loader.so.1) is not installed";
	xs_level_zero.library = library;
#define LOOK_UP(name) *(void **)&xs_level_zero.name = dlsym(library, #name);
	XS_LEVEL_ZERO_FUNCTIONS(LOOK_UP)
	XS_LEVEL_ZERO_MORE(LOOK_UP)
#define CHECK_FOUND(name)        \
	if (!xs_level_zero.name) \
		return problem = "its loader lacks " #name;
	XS_LEVEL_ZERO_FUNCTIONS(CHECK_FOUND)
	if (xs_level_zero.zeInit(0) != ZE_RESULT_SUCCESS)
		return problem = "it has no driver";
	return problem = NULL;
}

uint32_t xs_level_zero_devices(ze_device_handle_t devices[MAX])
{
	ze_driver_handle_t drivers[MAX];
	uint32_t driver_count = MAX, count = 0;

	if (xs_level_zero.zeDriverGet(&driver_count, drivers) != ZE_RESULT_SUCCESS)
		return 0;
	for (uint32_t i = 0; i < driver_count && count < MAX; i++) {
		uint32_t more = MAX - count;

		if (xs_level_zero.zeDeviceGet(drivers[i], &more, devices + count) ==
		    ZE_RESULT_SUCCESS)
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

	STRUCTS_OF(device, xs_level_zero.zeDeviceGetCommandQueueGroupProperties,
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

	STRUCTS_OF(device, xs_level_zero.zeDeviceGetMemoryProperties,
		   ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES, memories, &count);
	for (uint32_t i = 0; i < count; i++)
		bytes += memories[i].totalSize;
	return bytes;
}

static void put_pci(ze_device_handle_t device, char *text, size_t size)
{
	ze_pci_ext_properties_t pci = { .stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };

	if (!xs_level_zero.zeDevicePciGetPropertiesExt ||
	    xs_level_zero.zeDevicePciGetPropertiesExt(device, &pci) != ZE_RESULT_SUCCESS)
		return;
	(void)snprintf(text, size, "%04x:%02x:%02x.%x", pci.address.domain & 0xffff,
		       pci.address.bus & 0xff, pci.address.device & 0xff,
		       pci.address.function & 0xf);
}

void xs_find_level_zero(struct xs_found_list *list)
{
	ze_device_handle_t devices[MAX];
	uint32_t count;

	list->missing[0] = xs_level_zero_open();
	if (list->missing[0])
		return;
	count = xs_level_zero_devices(devices);
	if (!count)
		list->missing[0] = "it has no device";
	for (uint32_t i = 0; i < count; i++) {
		ze_device_properties_t properties = { .stype =
							      ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
		struct xs_found *found;
		char pci[20] = "";

		if (xs_level_zero.zeDeviceGetProperties(devices[i], &properties) !=
		    ZE_RESULT_SUCCESS)
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
		if (xs_level_zero.zeDeviceGetSubDevices(devices[i], &found->tiles, NULL) !=
		    ZE_RESULT_SUCCESS)
			found->tiles = 0;
		put_engines(devices[i], found->engines, sizeof(found->engines));
	}
}

#else
void xs_find_level_zero(struct xs_found_list *list)
{
	list->missing[0] = "this xstrace was built without it";
}
#endif
