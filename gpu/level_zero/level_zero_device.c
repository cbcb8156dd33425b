/*
 * Level Zero's contexts and devices, and where a device's clock is.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "bus.h"
#include "device_record.h"
#include "level_zero_metrics.h"
#include "shm.h"

static struct xs_handles contexts = { .size = 1024 };
static struct xs_ze_device_info devices[256];
static uint32_t device_count, whole_count;
static _Atomic uint32_t device_lock;

/* ---- the process ---- */

/*
 * At the first context. Functions that are registered with atexit() by now belong to the driver and
 * its libraries: they run after ours, which still calls the driver.
 */
static bool begin(void)
{
	static _Atomic(_Atomic uint32_t *) first;
	static struct xs_hook at_thread_end = { .function = xs_ze_thread_ends };
	_Atomic uint32_t *page, *none = NULL;
	long map;

	if (xs_ze_alive_word)
		return xs_ze_alive(); /* not in a child, which has our locks and lists as they were
					 at some moment */
	map = xs_sys(SYS_mmap, NULL, XS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (map < 0 && map > -4096)
		return false;
	page = (_Atomic uint32_t *)map;
	/* two threads at once: one begins */
	if (xs_sys(SYS_madvise, page, XS_PAGE, MADV_WIPEONFORK) < 0 ||
	    !atomic_compare_exchange_strong(&first, &none, page)) {
		(void)xs_sys(SYS_munmap, page, XS_PAGE);
		return xs_ze_alive();
	}
	atomic_store(page, 1);
	xs_ze_alive_word = page;
	(void)atexit(xs_ze_collect_all);
	xs_at_thread_end(&at_thread_end);
	return true;
}

/* ---- devices ---- */

static struct xs_ze_device_info *find_device(ze_device_handle_t handle)
{
	for (uint32_t i = 0; i < device_count; i++)
		if (devices[i].handle == handle)
			return &devices[i];
	return NULL;
}

/* Does --devices-to-sample name it? It counts the devices of all drivers. */
static __attribute__((noinline)) bool device_wanted(ze_device_handle_t handle)
{
	uint64_t wanted = xs_options_of_run()->level_zero_devices;
	ze_driver_handle_t drivers[32];
	uint32_t driver_count = 32, number = 0;

	if (wanted == UINT64_MAX || xs_ze.zeDriver.pfnGet(&driver_count, drivers))
		return true;
	for (uint32_t i = 0; i < driver_count && i < 32; i++) {
		ze_device_handle_t found[64];
		uint32_t count = 64;

		if (xs_ze.zeDevice.pfnGet(drivers[i], &count, found))
			continue;
		for (uint32_t k = 0; k < count && k < 64; k++, number++)
			if (found[k] == handle)
				return number < 64 && wanted >> number & 1;
	}
	return true;
}

/* What the driver says about a device: too much for the caller's stack. */
struct told {
	ze_device_properties_t properties;
	ze_pci_ext_properties_t pci;
	ze_device_compute_properties_t compute;
	ze_device_memory_properties_t memory[16];
	ze_command_queue_group_properties_t groups[64];
};

static uint64_t copy_only(ze_device_handle_t handle, struct told *told)
{
	uint32_t count = 64;
	uint64_t groups = 0;

	if (xs_ze.zeDevice.pfnGetCommandQueueGroupProperties(handle, &count, told->groups))
		return 0;
	for (uint32_t i = 0; i < count && i < 64; i++)
		if (!(told->groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE))
			groups |= 1ull << i;
	return groups;
}

static uint64_t memory_of(ze_device_handle_t handle, struct told *told)
{
	uint32_t count = sizeof(told->memory) / sizeof(told->memory[0]);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		told->memory[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
	if (!xs_ze.zeDevice.pfnGetMemoryProperties ||
	    xs_ze.zeDevice.pfnGetMemoryProperties(handle, &count, told->memory))
		return XS_FACT_UNKNOWN;
	for (uint32_t i = 0; i < count && i < sizeof(told->memory) / sizeof(told->memory[0]); i++)
		bytes += told->memory[i].totalSize;
	return bytes;
}

static bool ask_compute(ze_device_handle_t handle, struct told *told)
{
	told->compute.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
	return xs_ze.zeDevice.pfnGetComputeProperties &&
	       !xs_ze.zeDevice.pfnGetComputeProperties(handle, &told->compute);
}

static uint32_t facts_of(ze_device_handle_t handle, struct told *told)
{
	const ze_device_properties_t *properties = &told->properties;
	const ze_device_compute_properties_t *compute = &told->compute;
	bool computes = ask_compute(handle, told);
	const struct xs_device_fact facts[] = {
		{ "totalGlobalMem", memory_of(handle, told) },
		{ "maxComputeUnits", (uint64_t)properties->numSlices *
					     properties->numSubslicesPerSlice *
					     properties->numEUsPerSubslice },
		{ "maxWorkGroupSize", computes ? compute->maxTotalGroupSize : XS_FACT_UNKNOWN },
		{ "maxClockFrequency", properties->coreClockRate },
		{ "maxMemAllocSize", properties->maxMemAllocSize },
		{ "localMemSize", computes ? compute->maxSharedLocalMemory : XS_FACT_UNKNOWN },
	};

	return xs_device_facts(facts, sizeof(facts) / sizeof(facts[0]));
}

static uint32_t scope_of(ze_device_handle_t handle, struct told *told, uint32_t facts)
{
	const ze_pci_address_ext_t *at = &told->pci.address;

	told->pci = (ze_pci_ext_properties_t){ .stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };
	if (!xs_ze.zeDevice.pfnPciGetPropertiesExt ||
	    xs_ze.zeDevice.pfnPciGetPropertiesExt(handle, &told->pci))
		return facts;
	return xs_bus_name((const uint32_t[]){ at->domain, at->bus, at->device, at->function },
			   facts);
}

/* The driver is not called with the lock held. */
static struct xs_ze_device_info *add_told(ze_device_handle_t handle,
					  const struct xs_ze_device_info *whole, uint32_t tile,
					  struct told *told)
{
	ze_device_properties_t *properties = &told->properties;
	struct xs_ze_device_info fresh = { .handle = handle }, *device;
	struct xs_device_pairs *pairs;
	bool first = false;

	properties->stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
	if (xs_ze.zeDevice.pfnGetProperties(handle, properties))
		return NULL;
	fresh.name = xs_name(properties->name, scope_of(whole ? whole->handle : handle, told,
							facts_of(handle, told)));
	fresh.type = properties->type == ZE_DEVICE_TYPE_GPU   ? XS_DEVICE_GPU
		     : properties->type == ZE_DEVICE_TYPE_CPU ? XS_DEVICE_CPU
							      : XS_DEVICE_ACCELERATOR;
	fresh.copy_only = copy_only(handle, told);
	if (!whole) {
		fresh.tiles = XS_ZE_TILES;
		if (xs_ze.zeDevice.pfnGetSubDevices(handle, &fresh.tiles, fresh.tile_handle))
			fresh.tiles = 0;
	}
	fresh.unwanted = whole ? whole->unwanted : !device_wanted(handle);
	xs_lock_robust(&device_lock);
	device = find_device(handle);
	if (!device && device_count < sizeof(devices) / sizeof(devices[0])) {
		fresh.index =
			whole ? whole->index
			      : (uint8_t)(whole_count < XS_CLOCKS ? whole_count : XS_CLOCKS - 1);
		fresh.tile = (uint8_t)(whole ? tile + 1 : 0);
		device = &devices[device_count];
		*device = fresh;
		device_count++;
		whole_count += !whole;
		first = !whole;
	}
	xs_unlock(&device_lock);
	pairs = first ? xs_own_device_pairs(device->index) : NULL;
	if (pairs) {
		pairs->frequency = properties->timerResolution;
		pairs->bits = properties->timestampValidBits;
		pairs->kernel_bits = properties->kernelTimestampValidBits;
		xs_ze_clock(device);
	}
	return device;
}

static struct xs_ze_device_info *add_device(ze_device_handle_t handle,
					    const struct xs_ze_device_info *whole, uint32_t tile)
{
	static struct xs_spare spare;
	struct xs_ze_device_info *device = find_device(handle);
	struct told *told = device ? NULL : xs_spare_take_zeroed(&spare, sizeof(*told));

	if (!told)
		return device;
	device = add_told(handle, whole, tile, told);
	xs_spare_give(&spare, told);
	return device;
}

struct xs_ze_device_info *xs_ze_device_of(struct xs_ze_context *context, ze_device_handle_t handle)
{
	struct xs_ze_device_info *device = find_device(handle);

	for (uint32_t i = 0; !device && i < context->device_count; i++) {
		struct xs_ze_device_info *whole = context->devices[i];

		for (uint32_t tile = 0; tile < whole->tiles; tile++)
			if (whole->tile_handle[tile] == handle)
				return add_device(handle, whole, tile);
	}
	return device ? device : add_device(handle, NULL, 0);
}

/* ---- contexts ---- */

struct xs_ze_context *xs_ze_context_of(ze_context_handle_t handle)
{
	return xs_handle_get(&contexts, handle);
}

struct xs_ze_meter *xs_ze_meter_of(const struct xs_ze_context *context,
				   const struct xs_ze_device_info *device)
{
	for (uint32_t i = 0; xs_ze_queries && i < context->device_count; i++)
		if (context->devices[i] == device)
			return context->meters[i];
	return NULL;
}

static void measure(ze_driver_handle_t driver, struct xs_ze_context *context)
{
	for (uint32_t i = 0; i < context->device_count; i++)
		if (!context->devices[i]->unwanted)
			context->meters[i] = xs_ze_meter_new(driver, context->handle,
							     context->devices[i]->handle);
}

static void add_context(ze_driver_handle_t driver, ze_context_handle_t handle)
{
	_Atomic uint64_t *value = begin() ? xs_handle_add(&contexts, handle) : NULL;
	struct xs_ze_context *context = value ? xs_arena(sizeof(*context)) : NULL;
	ze_device_handle_t found[64];
	uint32_t count = 64;

	if (!context)
		return;
	context->handle = handle;
	if (xs_ze.zeDevice.pfnGet(driver, &count, found))
		count = 0;
	for (uint32_t i = 0; i < count && i < 64; i++) {
		context->devices[context->device_count] = xs_ze_device_of(context, found[i]);
		context->device_count += context->devices[context->device_count] != NULL;
	}
	if (xs_ze_queries)
		measure(driver, context);
	atomic_store_explicit(value, (uint64_t)(uintptr_t)context, memory_order_release);
}

ze_result_t xs_hook_zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *desc,
				    ze_context_handle_t *context)
{
	ze_result_t result = xs_ze.zeContext.pfnCreate(driver, desc, context);

	if (!result && xs_ze_device)
		add_context(driver, *context);
	return result;
}

ze_result_t xs_hook_zeContextCreateEx(ze_driver_handle_t driver, const ze_context_desc_t *desc,
				      uint32_t count, ze_device_handle_t *found,
				      ze_context_handle_t *context)
{
	ze_result_t result = xs_ze.zeContext.pfnCreateEx(driver, desc, count, found, context);

	if (!result && xs_ze_device)
		add_context(driver, *context);
	return result;
}

void xs_ze_context_ends(ze_context_handle_t handle)
{
	struct xs_ze_context *context = xs_ze_context_of(handle);

	if (!context || !xs_ze_alive())
		return;
	xs_ze_collect_context(context);
	context->dead = true;
	for (uint32_t i = 0; i < context->device_count; i++)
		if (context->meters[i])
			xs_ze_meter_end(context->meters[i]);
	xs_handle_remove(&contexts, handle);
	xs_ze_context_pools_destroy(context);
}

/* ---- clocks ---- */

/*
 * Ticks of the host after which a device's clock is looked at again: soon at first, later about
 * once a second.
 */
#define FIRST_LOOK 10000000u
#define LAST_LOOK  2000000000u

void xs_ze_clock(const struct xs_ze_device_info *device)
{
	static struct {
		_Atomic uint64_t due, wait;
		uint64_t quickest; /* reading ever; 0: none yet */
		_Atomic uint64_t claim;
	} looks[XS_CLOCKS];
	uint64_t now, after, host, ticks, due, best = UINT64_MAX, wait;
	struct xs_device_pairs *pairs;
	struct xs_device_pair pair = { 0 };
	uint32_t count;

	if (!xs_joined())
		return;
	now = xs_tick(xs_use_tsc);
	due = atomic_load_explicit(&looks[device->index].due, memory_order_relaxed);
	if (__builtin_expect(now < due, 1) || xs_is_sealed() ||
	    !xs_claim(&looks[device->index].claim))
		return;
	pairs = xs_own_device_pairs(device->index);
	/*
	 * the quickest of three, or of more if they are slow: an interrupt in the middle would be
	 * an error of the clock
	 */
	for (int i = 0; pairs && xs_ze.zeDevice.pfnGetGlobalTimestamps; i++) {
		if (i >= 8 || (i >= 3 && best / 2 <= looks[device->index].quickest))
			break;
		now = xs_tick(xs_use_tsc);
		if (xs_ze.zeDevice.pfnGetGlobalTimestamps(device->handle, &host, &ticks))
			break;
		after = xs_tick(xs_use_tsc);
		if (after - now < best) {
			best = after - now;
			pair = (struct xs_device_pair){ .before = now,
							.after = after,
							.device = ticks };
		}
	}
	if (best != UINT64_MAX) {
		if (!looks[device->index].quickest || best < looks[device->index].quickest)
			looks[device->index].quickest = best;
		count = atomic_load_explicit(&pairs->count, memory_order_relaxed);
		pairs->last[count % XS_DEVICE_PAIRS] = pair;
		/* pairs with the acquire in the drain process */
		atomic_store_explicit(&pairs->count, count + 1, memory_order_release);
	}
	wait = atomic_load_explicit(&looks[device->index].wait, memory_order_relaxed);
	wait = !wait ? FIRST_LOOK : wait < LAST_LOOK ? 2 * wait : wait;
	atomic_store_explicit(&looks[device->index].wait, wait, memory_order_relaxed);
	atomic_store_explicit(&looks[device->index].due, xs_tick(xs_use_tsc) + wait,
			      memory_order_relaxed);
	xs_unclaim(&looks[device->index].claim);
}
