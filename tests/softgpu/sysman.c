/*
 * System management: what a device tells of itself. Each value is a function of the time in us, t,
 * by the device's clock, of what was executed, and of the domain's number, i:
 *
 *	energy [uJ]        50 t + 250 busy + s 10^8 + r^2 / 10^4, where s are whole seconds and r
 *	                   is what is over: 50 W, rising by 200 W in each second, and 250 W more
 *	                   while kernels run; a half of that in the second domain
 *	frequency [MHz]    1000 - 10 (t / 10^5 mod 50), 100 i less; always 1000 are asked for
 *	throttled          the 10 reasons in turn, each for 10^5 us, and as long by none
 *	temperature [C]    40 + the device's number + (t / 10^5 mod 30)
 *	memory used        as allocated; 3 t bytes read, 2 t bytes written
 *	engines            busy as kernels ran; the copying ones a quarter of t
 *	PCIe               5 t bytes received, 7 t bytes sent
 *	fabric ports       11 t (i + 1) bytes received, 13 t (i + 1) bytes sent
 *
 * SOFTGPU_SYSMAN, a list: "wrap": counters have 24 bits; "still": t is that of the first call for
 * ever; "single": engines are not told together. SOFTGPU_SYSMAN_LOG: a file to which each answer
 * is appended, with its t.
 */
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_WATTS = 50, BUSY_WATTS = 250, CORE_MHZ = 1000, IDLE_MHZ = 300, LIMIT_MW = 400000 };
enum { DOMAINS = 2, REASONS = 10, WRAP_BITS = 24 };

struct domain {
	struct sg_device *device;
	uint32_t number;
};

static bool is_set(const char *word)
{
	const char *list = getenv("SOFTGPU_SYSMAN");

	return list && strstr(list, word);
}

static uint64_t now_us(void)
{
	static _Atomic uint64_t first;
	uint64_t us = (sg_config.virtual_clock ? sg_ns_of(sg_virtual_now()) : sg_now_ns()) / 1000,
		 none = 0;

	if (!is_set("still"))
		return us;
	(void)atomic_compare_exchange_strong(&first, &none, us);
	return atomic_load(&first);
}

static uint64_t counter(uint64_t value)
{
	return is_set("wrap") ? value & ((1u << WRAP_BITS) - 1) : value;
}

static uint64_t busy_us(const struct domain *domain)
{
	return sg_ns_of(atomic_load(&domain->device->busy)) / 1000;
}

/* One line, at once: several processes may write. */
static void say(const char *what, const struct domain *domain, uint64_t us, double a, double b)
{
	const char *path = getenv("SOFTGPU_SYSMAN_LOG");
	char line[160];
	int fd, length;

	if (!path)
		return;
	length = snprintf(line, sizeof(line), "%s\t%d\t%u\t%llu\t%.17g\t%.17g\n", what,
			  domain->device->id, domain->number, (unsigned long long)us, a, b);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		fprintf(stderr, "softgpu: %s cannot be written\n", path);
	if (fd >= 0)
		(void)close(fd);
}

static struct domain *domain_of(zes_device_handle_t device, uint32_t number)
{
	static struct domain domains[SG_DEVICES_MAX][DOMAINS];
	struct sg_device *root = ((struct sg_device *)device)->root;
	struct domain *domain = &domains[root->id][number];

	domain->device = root;
	domain->number = number;
	return domain;
}

/* Where a device has tiles, the second domain of a kind is the last tile's, else the whole
 * device's. */
#define PUT_PLACE(domain, ret)                                                             \
	do {                                                                               \
		(ret)->onSubdevice = (domain)->number && (domain)->device->tiles;          \
		(ret)->subdeviceId = (ret)->onSubdevice ? (domain)->device->tiles - 1 : 0; \
	} while (0)

#define SOME_DOMAINS(function, type, have)                                                \
	ze_result_t sg_##function(zes_device_handle_t device, uint32_t *count, type *ret) \
	{                                                                                 \
		SG_ENTER();                                                               \
		SG_HANDLE(device);                                                        \
		SG_POINTER(count);                                                        \
		SG_GIVE(count, ret, have, ret[i] = (type)domain_of(device, i));           \
		return SG_OK;                                                             \
	}

SOME_DOMAINS(zesDeviceEnumMemoryModules, zes_mem_handle_t, 1)
SOME_DOMAINS(zesDeviceEnumFrequencyDomains, zes_freq_handle_t, 2)
SOME_DOMAINS(zesDeviceEnumPowerDomains, zes_pwr_handle_t, 2)
SOME_DOMAINS(zesDeviceEnumTemperatureSensors, zes_temp_handle_t, 1)
SOME_DOMAINS(zesDeviceEnumEngineGroups, zes_engine_handle_t, 2)
SOME_DOMAINS(zesDeviceEnumFabricPorts, zes_fabric_port_handle_t, 2)

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
	ret->haveBandwidthCounters = 1;
	ret->havePacketCounters = ret->haveReplayCounters = 0;
	return SG_OK;
}

ze_result_t sg_zesDevicePciGetStats(zes_device_handle_t device, zes_pci_stats_t *ret)
{
	SG_ENTER_WITH(device, ret);
	ret->timestamp = now_us();
	ret->replayCounter = ret->packetCounter = 0;
	ret->rxCounter = counter(5 * ret->timestamp);
	ret->txCounter = counter(7 * ret->timestamp);
	ret->speed.gen = 5;
	ret->speed.width = 16;
	ret->speed.maxBandwidth = 63015384615;
	say("pci", domain_of(device, 0), ret->timestamp, (double)ret->rxCounter,
	    (double)ret->txCounter);
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
	ret->free = ret->size - atomic_load(&((struct domain *)memory)->device->used);
	return SG_OK;
}

ze_result_t sg_zesMemoryGetBandwidth(zes_mem_handle_t memory, zes_mem_bandwidth_t *ret)
{
	SG_ENTER_WITH(memory, ret);
	ret->timestamp = now_us();
	ret->readCounter = counter(3 * ret->timestamp);
	ret->writeCounter = counter(2 * ret->timestamp);
	ret->maxBandwidth = 1000000000000;
	say("bandwidth", (struct domain *)memory, ret->timestamp, (double)ret->readCounter,
	    (double)ret->writeCounter);
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetProperties(zes_freq_handle_t frequency, zes_freq_properties_t *ret)
{
	SG_ENTER_WITH(frequency, ret);
	ret->type = ((struct domain *)frequency)->number ? ZES_FREQ_DOMAIN_MEMORY
							 : ZES_FREQ_DOMAIN_GPU;
	PUT_PLACE((const struct domain *)frequency, ret);
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
	const struct domain *domain = (const struct domain *)frequency;
	uint64_t us, tenths, turn;

	SG_ENTER_WITH(frequency, ret);
	us = now_us();
	tenths = us / 100000;
	turn = tenths % (REASONS + 1);
	ret->currentVoltage = 0.8;
	ret->request = ret->tdp = CORE_MHZ;
	ret->actual = CORE_MHZ - 10 * (double)(tenths % 50) - 100 * (double)domain->number;
	ret->efficient = IDLE_MHZ;
	ret->throttleReasons = turn ? 1u << (turn - 1) : 0;
	say("frequency", domain, us, ret->actual, ret->throttleReasons);
	return SG_OK;
}

ze_result_t sg_zesFrequencyGetAvailableClocks(zes_freq_handle_t frequency, uint32_t *count,
					      double *ret)
{
	SG_ENTER_WITH(frequency, count);
	SG_GIVE(count, ret, 2, ret[i] = i ? CORE_MHZ : IDLE_MHZ);
	return SG_OK;
}

/* The first domain is the card's, the second the package's, if the caller knows of such. */
ze_result_t sg_zesPowerGetProperties(zes_pwr_handle_t power, zes_power_properties_t *ret)
{
	struct {
		uint32_t stype;
		void *next;
		uint32_t domain;
	} *extension;

	SG_ENTER_WITH(power, ret);
	PUT_PLACE((const struct domain *)power, ret);
	ret->canControl = ret->isEnergyThresholdSupported = 0;
	ret->defaultLimit = ret->maxLimit = LIMIT_MW;
	ret->minLimit = IDLE_WATTS * 1000;
	extension = ret->pNext;
	if (ret->stype == ZES_STRUCTURE_TYPE_POWER_PROPERTIES && extension &&
	    extension->stype == 0x28) /* zes_power_ext_properties_t, which headers may lack */
		extension->domain = 1 + ((struct domain *)power)->number;
	return SG_OK;
}

/* in microjoules, beside microseconds */
ze_result_t sg_zesPowerGetEnergyCounter(zes_pwr_handle_t power, zes_power_energy_counter_t *ret)
{
	const struct domain *domain = (const struct domain *)power;
	uint64_t us, rest, energy;

	SG_ENTER_WITH(power, ret);
	us = now_us();
	rest = us % 1000000;
	energy = us * IDLE_WATTS + us / 1000000 * 100000000 + rest * rest / 10000 +
		 busy_us(domain) * BUSY_WATTS;
	ret->timestamp = us;
	ret->energy = counter(energy / (domain->number + 1));
	say("power", domain, us, (double)ret->energy, 0);
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
	const struct domain *domain = (const struct domain *)sensor;
	uint64_t us;

	SG_ENTER_WITH(sensor, ret);
	us = now_us();
	*ret = 40 + (double)domain->device->id + (double)(us / 100000 % 30);
	say("temperature", domain, us, *ret, 0);
	return SG_OK;
}

ze_result_t sg_zesEngineGetProperties(zes_engine_handle_t engine, zes_engine_properties_t *ret)
{
	bool copies, single = is_set("single");

	SG_ENTER_WITH(engine, ret);
	copies = ((struct domain *)engine)->number;
	if (single)
		ret->type = copies ? ZES_ENGINE_GROUP_COPY_SINGLE : ZES_ENGINE_GROUP_COMPUTE_SINGLE;
	else
		ret->type = copies ? ZES_ENGINE_GROUP_COPY_ALL : ZES_ENGINE_GROUP_COMPUTE_ALL;
	PUT_PLACE((const struct domain *)engine, ret);
	return SG_OK;
}

ze_result_t sg_zesEngineGetActivity(zes_engine_handle_t engine, zes_engine_stats_t *ret)
{
	const struct domain *domain = (const struct domain *)engine;

	SG_ENTER_WITH(engine, ret);
	ret->timestamp = now_us();
	ret->activeTime = counter(domain->number ? ret->timestamp / 4 : busy_us(domain));
	say("engine", domain, ret->timestamp, (double)ret->activeTime, 0);
	return SG_OK;
}

ze_result_t sg_zesFabricPortGetProperties(zes_fabric_port_handle_t port,
					  zes_fabric_port_properties_t *ret)
{
	const struct domain *domain = (const struct domain *)port;

	SG_ENTER_WITH(port, ret);
	(void)snprintf(ret->model, sizeof(ret->model), "SoftLink");
	PUT_PLACE((const struct domain *)port, ret);
	ret->portId.fabricId = 1;
	ret->portId.attachId = (uint32_t)domain->device->id;
	ret->portId.portNumber = (uint8_t)(domain->number + 1);
	ret->maxRxSpeed.bitRate = ret->maxTxSpeed.bitRate = 53000000000;
	ret->maxRxSpeed.width = ret->maxTxSpeed.width = 4;
	return SG_OK;
}

ze_result_t sg_zesFabricPortGetThroughput(zes_fabric_port_handle_t port,
					  zes_fabric_port_throughput_t *ret)
{
	const struct domain *domain = (const struct domain *)port;

	SG_ENTER_WITH(port, ret);
	ret->timestamp = now_us();
	ret->rxCounter = counter(11 * ret->timestamp * (domain->number + 1));
	ret->txCounter = counter(13 * ret->timestamp * (domain->number + 1));
	say("port", domain, ret->timestamp, (double)ret->rxCounter, (double)ret->txCounter);
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
