/* The driver's devices, their tiles and engines, and what they say of themselves. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sg_device devices[SG_DEVICES_MAX], tiles[SG_DEVICES_MAX][SG_TILES_MAX];

/*
 * as a data centre's GPU has them: engines for everything, one engine that copies fast, and more
 * that only copy
 */
static const struct {
	ze_command_queue_group_property_flags_t flags;
	uint32_t queues;
} groups[SG_ENGINE_GROUPS] = {
	{ ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY |
		  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS |
		  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_METRICS,
	  4 },
	{ ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, 1 },
	{ ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, 2 },
};

void sg_devices_make(void)
{
	for (uint32_t i = 0; i < sg_config.devices; i++) {
		struct sg_device *device = &devices[i];

		device->id = (int)i;
		device->tile = -1;
		device->tiles = sg_config.tiles;
		device->root = device;
		for (uint32_t j = 0; j < sg_config.tiles; j++) {
			struct sg_device *tile = &tiles[i][j];

			tile->id = (int)i;
			tile->tile = (int)j;
			tile->root = device;
			device->tile_devices[j] = tile;
		}
	}
}

struct sg_device *sg_device_number(uint32_t number)
{
	return number < sg_config.devices ? &devices[number] : NULL;
}

bool sg_group_computes(uint32_t ordinal)
{
	return groups[ordinal].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
}

uint32_t sg_group_queues(uint32_t ordinal)
{
	return ordinal < SG_ENGINE_GROUPS ? groups[ordinal].queues : 0;
}

/* ZE_AFFINITY_MASK, as far as it names whole devices: "0,2" */
static bool is_visible(uint32_t device)
{
	const char *at = getenv("ZE_AFFINITY_MASK");

	if (!at || !*at)
		return true;
	while (strtoul(at, NULL, 10) != device) {
		at = strchr(at, ',');
		if (!at++)
			return false;
	}
	return true;
}

ze_result_t sg_zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *ret)
{
	uint32_t visible[SG_DEVICES_MAX], have = 0;

	SG_ENTER_WITH(driver, count);
	for (uint32_t i = 0; i < sg_config.devices; i++)
		if (is_visible(i))
			visible[have++] = i;
	SG_GIVE(count, ret, have, ret[i] = (ze_device_handle_t)&devices[visible[i]]);
	return SG_OK;
}

ze_result_t sg_zeDeviceGetSubDevices(ze_device_handle_t handle, uint32_t *count,
				     ze_device_handle_t *ret)
{
	const struct sg_device *device = (const struct sg_device *)handle;

	SG_ENTER_WITH(handle, count);
	SG_GIVE(count, ret, device->tiles, ret[i] = (ze_device_handle_t)device->tile_devices[i]);
	return SG_OK;
}

ze_result_t sg_zeDeviceGetRootDevice(ze_device_handle_t handle, ze_device_handle_t *ret)
{
	const struct sg_device *device = (const struct sg_device *)handle;

	SG_ENTER_WITH(handle, ret);
	*ret = device->tile < 0 ? NULL : (ze_device_handle_t)device->root;
	return SG_OK;
}

/*
 * The structure's type is told by the caller alone, and some leave it 0: only 1.2's changes what is
 * meant.
 */
ze_result_t sg_zeDeviceGetProperties(ze_device_handle_t handle, ze_device_properties_t *ret)
{
	const struct sg_device *device = (const struct sg_device *)handle;

	SG_ENTER_WITH(handle, ret);
	ret->type = ZE_DEVICE_TYPE_GPU;
	ret->vendorId = 0x8086;
	ret->deviceId = 0x50f7;
	ret->flags = device->tile < 0 ? 0 : ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE;
	ret->subdeviceId = device->tile < 0 ? 0 : (uint32_t)device->tile;
	ret->coreClockRate = 1000;
	ret->maxMemAllocSize = sg_config.memory;
	ret->maxHardwareContexts = 1024;
	ret->maxCommandQueuePriority = 0;
	ret->numThreadsPerEU = 8;
	ret->physicalEUSimdWidth = 16;
	ret->numEUsPerSubslice = 8;
	ret->numSubslicesPerSlice = 8;
	ret->numSlices = 1;
	ret->timerResolution =
		ret->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2
			? sg_config.frequency
			: (1000000000u + sg_config.frequency / 2) / sg_config.frequency;
	ret->timestampValidBits = 64;
	ret->kernelTimestampValidBits = sg_config.bits;
	memset(&ret->uuid, 0, sizeof(ret->uuid));
	memcpy(ret->uuid.id, "\x86\x80\xf7\x50softgpu", 11);
	ret->uuid.id[14] = (uint8_t)device->id;
	ret->uuid.id[15] = (uint8_t)(device->tile + 1);
	if (device->tile < 0)
		(void)snprintf(ret->name, sizeof(ret->name), "SoftGPU %d", device->id);
	else
		(void)snprintf(ret->name, sizeof(ret->name), "SoftGPU %d.%d", device->id,
			       device->tile);
	return SG_OK;
}

ze_result_t sg_zeDeviceGetComputeProperties(ze_device_handle_t device,
					    ze_device_compute_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->maxTotalGroupSize = 1024;
	ret->maxGroupSizeX = ret->maxGroupSizeY = ret->maxGroupSizeZ = 1024;
	ret->maxGroupCountX = ret->maxGroupCountY = ret->maxGroupCountZ = UINT32_MAX;
	ret->maxSharedLocalMemory = 65536;
	ret->numSubGroupSizes = 3;
	for (uint32_t i = 0; i < ret->numSubGroupSizes; i++)
		ret->subGroupSizes[i] = 8u << i;
	return SG_OK;
}

ze_result_t sg_zeDeviceGetModuleProperties(ze_device_handle_t device,
					   ze_device_module_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
	ret->flags = ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_FP64 |
		     ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
	ret->fp16flags = ret->fp32flags = ret->fp64flags =
		ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN |
		ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA;
	ret->maxArgumentsSize = SOFTGPU_ARG_SIZE * SOFTGPU_ARGS_MAX;
	ret->printfBufferSize = 0;
	memset(&ret->nativeKernelSupported, 0, sizeof(ret->nativeKernelSupported));
	return SG_OK;
}

ze_result_t sg_zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t device, uint32_t *count,
						      ze_command_queue_group_properties_t *ret)
{
	SG_ENTER_WITH(device, count);
	SG_GIVE(count, ret, SG_ENGINE_GROUPS, {
		ret[i].flags = groups[i].flags;
		ret[i].maxMemoryFillPatternSize = 128;
		ret[i].numQueues = groups[i].queues;
	});
	return SG_OK;
}

ze_result_t sg_zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t *count,
					   ze_device_memory_properties_t *ret)
{
	SG_ENTER_WITH(device, count);
	SG_GIVE(count, ret, 1, {
		ret[i].flags = 0;
		ret[i].maxClockRate = 3200;
		ret[i].maxBusWidth = 1024;
		ret[i].totalSize = sg_config.memory;
		(void)snprintf(ret[i].name, sizeof(ret[i].name), "HBM");
	});
	return SG_OK;
}

ze_result_t sg_zeDeviceGetMemoryAccessProperties(ze_device_handle_t device,
						 ze_device_memory_access_properties_t *ret)
{
	const ze_memory_access_cap_flags_t all = ZE_MEMORY_ACCESS_CAP_FLAG_RW |
						 ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC;

	SG_ENTER_WITH(device, ret);
	ret->hostAllocCapabilities = ret->deviceAllocCapabilities = all;
	ret->sharedSingleDeviceAllocCapabilities = ret->sharedCrossDeviceAllocCapabilities = all;
	ret->sharedSystemAllocCapabilities = 0;
	return SG_OK;
}

ze_result_t sg_zeDeviceGetCacheProperties(ze_device_handle_t device, uint32_t *count,
					  ze_device_cache_properties_t *ret)
{
	SG_ENTER_WITH(device, count);
	SG_GIVE(count, ret, 1, {
		ret[i].flags = 0;
		ret[i].cacheSize = 64 << 20;
	});
	return SG_OK;
}

ze_result_t sg_zeDeviceGetImageProperties(ze_device_handle_t device,
					  ze_device_image_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->maxImageDims1D = ret->maxImageDims2D = 16384;
	ret->maxImageDims3D = 2048;
	ret->maxImageBufferSize = sg_config.memory;
	ret->maxImageArraySlices = 2048;
	ret->maxSamplers = 16;
	ret->maxReadImageArgs = ret->maxWriteImageArgs = 16;
	return SG_OK;
}

ze_result_t sg_zeDeviceGetExternalMemoryProperties(ze_device_handle_t device,
						   ze_device_external_memory_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->memoryAllocationImportTypes = ret->memoryAllocationExportTypes = 0;
	ret->imageImportTypes = ret->imageExportTypes = 0;
	return SG_OK;
}

ze_result_t sg_zeDeviceGetP2PProperties(ze_device_handle_t device, ze_device_handle_t peer,
					ze_device_p2p_properties_t *ret)
{
	SG_ENTER_WITH(device && peer, ret);
	ret->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
	return SG_OK;
}

ze_result_t sg_zeDeviceCanAccessPeer(ze_device_handle_t device, ze_device_handle_t peer,
				     ze_bool_t *ret)
{
	SG_ENTER_WITH(device && peer, ret);
	*ret = 1;
	return SG_OK;
}

ze_result_t sg_zeDeviceGetStatus(ze_device_handle_t device)
{
	SG_ENTER();
	SG_HANDLE(device);
	return SG_OK;
}

/*
 * The virtual clock stands still but for what is executed: the pair then says where that is, not
 * how fast it goes.
 */
ze_result_t sg_zeDeviceGetGlobalTimestamps(ze_device_handle_t device, uint64_t *host,
					   uint64_t *ticks)
{
	uint64_t now;

	SG_ENTER_WITH(device, host && ticks);
	now = sg_now_ns();
	*host = now;
	*ticks = sg_config.virtual_clock ? sg_virtual_now() : sg_ticks_at(now);
	return SG_OK;
}

/* What hangs on pNext is not looked at: known callers leave it uninitialised. */
ze_result_t sg_zeDevicePciGetPropertiesExt(ze_device_handle_t device, ze_pci_ext_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->address.domain = 0;
	ret->address.bus = 0x3a + (uint32_t)((struct sg_device *)device)->id;
	ret->address.device = ret->address.function = 0;
	ret->maxSpeed.genVersion = 5;
	ret->maxSpeed.width = 16;
	ret->maxSpeed.maxBandwidth = 63015384615;
	return SG_OK;
}
