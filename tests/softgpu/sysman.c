/*
 * System management: a device's properties, memory, frequency, power, temperature and load. Each
 * figure follows from what was executed and allocated: the power is 50 W, and 250 W more while
 * kernels run. The temperature is 40 degrees, and a degree more with each device.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

enum { IDLE_WATTS = 50, BUSY_WATTS = 250, CORE_MHZ = 1000, IDLE_MHZ = 300, LIMIT_MW = 400000 };

static uint64_t now_us(void)
{
	return sg_config.virtual_clock ? sg_ns_of(sg_virtual_now()) / 1000 : sg_now_ns() / 1000;
}

static uint64_t busy_us(const void *handle)
{
	return sg_ns_of(atomic_load(&((const struct sg_device *)handle)->root->busy)) / 1000;
}

/* Every domain is the whole device's, and the handles of all are the device's own. */
#define ONE_DOMAIN(function, type)                                                         \
	ze_result_t sg_##function(zes_device_handle_t device, uint32_t *count, type *ret)  \
	{                                                                                  \
		SG_ENTER();                                                                \
		SG_HANDLE(device);                                                         \
		SG_POINTER(count);                                                         \
		SG_GIVE(count, ret, 1, ret[i] = (type)((struct sg_device *)device)->root); \
		return SG_OK;                                                              \
	}

ONE_DOMAIN(zesDeviceEnumMemoryModules, zes_mem_handle_t)
ONE_DOMAIN(zesDeviceEnumFrequencyDomains, zes_freq_handle_t)
ONE_DOMAIN(zesDeviceEnumPowerDomains, zes_pwr_handle_t)
ONE_DOMAIN(zesDeviceEnumTemperatureSensors, zes_temp_handle_t)
ONE_DOMAIN(zesDeviceEnumEngineGroups, zes_engine_handle_t)

ze_result_t sg_zesDeviceGetProperties(zes_device_handle_t device, zes_device_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	(void)sg_zeDeviceGetProperties((ze_device_handle_t)device, &ret->core);
	ret->numSubdevices = ((struct sg_device *)device)->tiles;
	(void)snprintf(ret->serialNumber, sizeof(ret->serialNumber), "%d",
		       ((struct sg_device *)device)->id);
	(void)snprintf(ret->boardNumber, sizeof(ret->boardNumber), "none");
	(void)snprintf(ret->brandName, sizeof(ret->brandName), "SoftGPU");
	(void)snprintf(ret->modelName, sizeof(ret->modelName), "SoftGPU");
	(void)snprintf(ret->vendorName, sizeof(ret->vendorName), "xstrace");
	(void)snprintf(ret->driverVersion, sizeof(ret->driverVersion), "1");
	return SG_OK;
}

ze_result_t sg_zesDeviceGetState(zes_device_handle_t device, zes_device_state_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->reset = sg_device_lost() ? ZES_RESET_REASON_FLAG_WEDGED : 0;
	ret->repaired = ZES_REPAIR_STATUS_NOT_PERFORMED;
	return SG_OK;
}

ze_result_t sg_zesDevicePciGetProperties(zes_device_handle_t device, zes_pci_properties_t *ret)
{
	SG_ENTER_WITH(device, ret);
	memset(&ret->address, 0, sizeof(ret->address));
	ret->address.bus = 0x3a + (uint32_t)((struct sg_device *)device)->id;
	ret->maxSpeed.gen = 5;
	ret->maxSpeed.width = 16;
	ret->maxSpeed.maxBandwidth = 63015384615;
	ret->haveBandwidthCounters = ret->havePacketCounters = ret->haveReplayCounters = 0;
	return SG_OK;
}

ze_result_t sg_zesMemoryGetProperties(zes_mem_handle_t memory, zes_mem_properties_t *ret)
{
	SG_ENTER_WITH(memory, ret);
	ret->type = ZES_MEM_TYPE_HBM;
	ret->onSubdevice = 0;
	ret->subdeviceId = 0;
	ret->location = ZES_MEM_LOC_DEVICE;
	ret->physicalSize = sg_config.memory;
	ret->busWidth = 1024;
	ret->numChannels = 8;
	return SG_OK;
}

ze_result_t sg_zesMemoryGetState(zes_mem_handle_t memory, zes_mem_state_t *ret)
{
	SG_ENTER_WITH(memory, ret);
	ret->health = ZES_MEM_HEALTH_OK;
	ret->size = sg_config.memory;
	ret->free = ret->size - atomic_load(&((struct sg_device *)memory)->used);
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetProperties(zes_freq_handle_t frequency, zes_freq_properties_t *ret)
{
	SG_ENTER_WITH(frequency, ret);
	ret->type = ZES_FREQ_DOMAIN_GPU;
	ret->onSubdevice = 0;
	ret->subdeviceId = 0;
	ret->canControl = ret->isThrottleEventSupported = 0;
	ret->min = IDLE_MHZ;
	ret->max = CORE_MHZ;
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetRange(zes_freq_handle_t frequency, zes_freq_range_t *ret)
{
	SG_ENTER_WITH(frequency, ret);
	ret->min = IDLE_MHZ;
	ret->max = CORE_MHZ;
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetState(zes_freq_handle_t frequency, zes_freq_state_t *ret)
{
	SG_ENTER_WITH(frequency, ret);
	ret->currentVoltage = 0.8;
	ret->request = ret->tdp = ret->actual = CORE_MHZ;
	ret->efficient = IDLE_MHZ;
	ret->throttleReasons = 0;
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetAvailableClocks(zes_freq_handle_t frequency, uint32_t *count,
					      double *ret)
{
	SG_ENTER_WITH(frequency, count);
	SG_GIVE(count, ret, 2, ret[i] = i ? CORE_MHZ : IDLE_MHZ);
	return SG_OK;
}

ze_result_t sg_zesPowerGetProperties(zes_pwr_handle_t power, zes_power_properties_t *ret)
{
	SG_ENTER_WITH(power, ret);
	ret->onSubdevice = 0;
	ret->subdeviceId = 0;
	ret->canControl = ret->isEnergyThresholdSupported = 0;
	ret->defaultLimit = ret->maxLimit = LIMIT_MW;
	ret->minLimit = IDLE_WATTS * 1000;
	return SG_OK;
}

/* in microjoules, beside microseconds */
ze_result_t sg_zesPowerGetEnergyCounter(zes_pwr_handle_t power, zes_power_energy_counter_t *ret)
{
	SG_ENTER_WITH(power, ret);
	ret->timestamp = now_us();
	ret->energy = ret->timestamp * IDLE_WATTS + busy_us(power) * BUSY_WATTS;
	return SG_OK;
}

ze_result_t sg_zesTemperatureGetProperties(zes_temp_handle_t sensor, zes_temp_properties_t *ret)
{
	SG_ENTER_WITH(sensor, ret);
	ret->type = ZES_TEMP_SENSORS_GPU;
	ret->onSubdevice = 0;
	ret->subdeviceId = 0;
	ret->maxTemperature = 105;
	ret->isCriticalTempSupported = ret->isThreshold1Supported = ret->isThreshold2Supported = 0;
	return SG_OK;
}

ze_result_t sg_zesTemperatureGetState(zes_temp_handle_t sensor, double *ret)
{
	SG_ENTER_WITH(sensor, ret);
	*ret = 40 + (double)((struct sg_device *)sensor)->id;
	return SG_OK;
}

ze_result_t sg_zesEngineGetProperties(zes_engine_handle_t engine, zes_engine_properties_t *ret)
{
	SG_ENTER_WITH(engine, ret);
	ret->type = ZES_ENGINE_GROUP_COMPUTE_ALL;
	ret->onSubdevice = 0;
	ret->subdeviceId = 0;
	return SG_OK;
}

ze_result_t sg_zesEngineGetActivity(zes_engine_handle_t engine, zes_engine_stats_t *ret)
{
	SG_ENTER_WITH(engine, ret);
	ret->activeTime = busy_us(engine);
	ret->timestamp = now_us();
	return SG_OK;
}

/* newer programs ask for the devices here, without zeInit */
ze_result_t sg_zesInit(uint32_t flags)
{
	sg_start();
	SG_ENTER();
	return SG_OK;
}

ze_result_t sg_zesDriverGet(uint32_t *count, zes_driver_handle_t *ret)
{
	SG_ENTER();
	return sg_zeDriverGet(count, (ze_driver_handle_t *)ret);
}

ze_result_t sg_zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *ret)
{
	SG_ENTER();
	return sg_zeDeviceGet((ze_driver_handle_t)driver, count, (ze_device_handle_t *)ret);
}
