/*
 * Level Zero's modules and kernels, and what launches of kernels say about them.
 */
#include "device_record.h"
#include "kernel_filter.h"
#include "level_zero.h"

enum { COMPILED_UNKNOWN, COMPILED_JIT, COMPILED_AOT };

#define SHAPES	   4u	/* a power of two */
#define MAX_SHAPES 256u /* of a kernel: one that is launched in more is not worth their room */

struct kernel {
	struct xs_kernel_record record;
	_Atomic uint32_t told;	/* the record is written */
	_Atomic uint32_t waits; /* it is one of the untold */
	struct kernel *next_untold;
	bool unwanted; /* by --include-kernels or --exclude-kernels */
	uint8_t simd;  /* as records of its runs say it */
	/* that it was launched in, and which of them it was last */
	_Atomic uint32_t shape[SHAPES], recent;
	_Atomic uint32_t shape_count; /* ever */
	uint32_t size[3];
	struct xs_kernel_place_record place; /* bytes 0: not known, or not wanted */
};

static struct xs_handles modules = { .size = 16384 }; /* COMPILED_… */
static struct xs_handles kernels = { .size = 65536 }; /* struct kernel * */
static _Atomic uint32_t kernel_serial;
static _Atomic(struct kernel *) untold; /* those that were launched while nothing was recorded */

ze_result_t xs_hook_zeModuleCreate(ze_context_handle_t context, ze_device_handle_t device,
				   const ze_module_desc_t *desc, ze_module_handle_t *module,
				   ze_module_build_log_handle_t *log)
{
	ze_result_t result = xs_ze.zeModule.pfnCreate(context, device, desc, module, log);
	_Atomic uint64_t *value = !result && xs_ze_device ? xs_handle_add(&modules, *module) : NULL;

	if (value)
		*value = desc->format == ZE_MODULE_FORMAT_NATIVE ? COMPILED_AOT : COMPILED_JIT;
	return result;
}

void xs_ze_module_ends(ze_module_handle_t module)
{
	xs_handle_remove(&modules, module);
}

/* An extension of drivers, which says how large the register file is. */
#define REGISTER_FILE_SIZE ((ze_structure_type_t)0x00030012)
struct register_file {
	ze_structure_type_t type;
	const void *next;
	uint32_t size;
};

#define NAME_MAX_BYTES 4096u /* too many for the caller's stack */

static uint32_t name_of(ze_kernel_handle_t handle, const char *given, bool *ret_unwanted)
{
	static struct xs_spare names;
	char *name = xs_spare_take(&names, NAME_MAX_BYTES);
	size_t size = NAME_MAX_BYTES;
	uint32_t id;

	if (!name || !xs_ze.zeKernel.pfnGetName || xs_ze.zeKernel.pfnGetName(handle, &size, name))
		size = 0;
	else
		name[NAME_MAX_BYTES - 1] = '\0';
	if (size && name[0])
		given = name;
	given = given && given[0] ? given : "(kernel)";
	*ret_unwanted = !xs_kernel_wanted(xs_options_of_run(), given, NULL);
	id = xs_name(given, 0);
	if (name)
		xs_spare_give(&names, name);
	return id;
}

/*
 * An extension of Intel's driver. It is the driver's own function, and a loader with several
 * drivers has handles of its own: with one driver alone both know the same ones.
 */
static bool base_address(ze_kernel_handle_t handle, uint64_t *ret)
{
	static ze_result_t (*_Atomic found)(ze_kernel_handle_t, uint64_t *);
	ze_result_t (*function)(ze_kernel_handle_t, uint64_t *) = atomic_load(&found);
	ze_driver_handle_t drivers[2];
	uint32_t count = 2;

	if (!function) {
		if (xs_ze.zeDriver.pfnGet(&count, drivers) || count != 1 ||
		    !xs_ze.zeDriver.pfnGetExtensionFunctionAddress ||
		    xs_ze.zeDriver.pfnGetExtensionFunctionAddress(drivers[0],
								  "zexKernelGetBaseAddress",
								  (void **)&function))
			return false;
		atomic_store(&found, function);
	}
	return function && !function(handle, ret);
}

/* Samples tell the last 32 bits of addresses. A kernel ends where the next one begins, or with the
 * module. */
static void place_kernel(struct kernel *kernel, ze_module_handle_t module,
			 ze_kernel_handle_t handle)
{
	uint64_t address = 0;
	size_t bytes = 0;

	if (!base_address(handle, &address) || !xs_ze.zeModule.pfnGetNativeBinary ||
	    xs_ze.zeModule.pfnGetNativeBinary(module, &bytes, NULL))
		return;
	kernel->place =
		(struct xs_kernel_place_record){ .address = address & UINT32_MAX, .bytes = bytes };
}

static void add_kernel(ze_module_handle_t module, ze_kernel_handle_t handle, const char *given)
{
	struct register_file registers = { .type = REGISTER_FILE_SIZE };
	ze_kernel_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
					      .pNext = &registers };
	_Atomic uint64_t *value = xs_handle_add(&kernels, handle),
			 *compiled = xs_handle_find(&modules, module);
	struct kernel *kernel = value ? xs_arena(sizeof(*kernel)) : NULL;

	if (!kernel)
		return;
	kernel->record.event.name = name_of(handle, given, &kernel->unwanted);
	kernel->record.id = atomic_fetch_add_explicit(&kernel_serial, 1, memory_order_relaxed) + 1;
	kernel->record.compiled = compiled ? (uint8_t)*compiled : COMPILED_UNKNOWN;
	if (!xs_ze.zeKernel.pfnGetProperties(handle, &properties)) {
		kernel->record.arguments = properties.numKernelArgs;
		kernel->record.local_bytes = properties.localMemSize;
		kernel->record.private_bytes = properties.privateMemSize;
		kernel->record.spill_bytes = properties.spillMemSize;
		kernel->record.simd = (uint16_t)properties.maxSubgroupSize;
		kernel->record.registers = registers.size;
		kernel->simd = kernel->record.simd > 255 ? 255 : (uint8_t)kernel->record.simd;
	}
	if (xs_ze_places)
		place_kernel(kernel, module, handle);
	atomic_store_explicit(value, (uint64_t)(uintptr_t)kernel, memory_order_release);
}

ze_result_t xs_hook_zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t *desc,
				   ze_kernel_handle_t *kernel)
{
	ze_result_t result = xs_ze.zeKernel.pfnCreate(module, desc, kernel);

	if (!result && xs_ze_device && xs_joined())
		add_kernel(module, *kernel, desc->pKernelName);
	return result;
}

void xs_ze_kernel_ends(ze_kernel_handle_t kernel)
{
	xs_handle_remove(&kernels, kernel);
}

void xs_ze_kernel_shaped(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z,
			 ze_result_t result)
{
	struct kernel *kernel = result ? NULL : xs_handle_get(&kernels, handle);

	if (kernel) {
		kernel->size[0] = x;
		kernel->size[1] = y;
		kernel->size[2] = z;
	}
}

static void tell_place(const struct kernel *kernel)
{
	struct xs_kernel_place_record *record =
		kernel->place.bytes ? xs_record_begin(sizeof(*record), XS_KERNEL_PLACE,
						      XS_SOURCE_LEVEL_ZERO, kernel->unwanted,
						      kernel->record.event.name, XS_ROLE_OTHER)
				    : NULL;

	if (!record)
		return;
	memcpy((char *)record + sizeof(record->event),
	       (const char *)&kernel->place + sizeof(record->event),
	       sizeof(*record) - sizeof(record->event));
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}

static void tell_kernel(struct kernel *kernel)
{
	struct xs_kernel_record *record;

	if (atomic_exchange(&kernel->told, 1))
		return;
	record = xs_record_begin(sizeof(*record), XS_KERNEL, XS_SOURCE_LEVEL_ZERO, 0,
				 kernel->record.event.name, XS_ROLE_OTHER);
	if (!record) {
		kernel->told = 0;
		if (atomic_exchange(&kernel->waits, 1))
			return;
		kernel->next_untold = atomic_load_explicit(&untold, memory_order_relaxed);
		while (!atomic_compare_exchange_weak_explicit(&untold, &kernel->next_untold, kernel,
							      memory_order_release,
							      memory_order_relaxed))
			;
		return;
	}
	memcpy((char *)record + sizeof(record->event),
	       (char *)&kernel->record + sizeof(record->event),
	       sizeof(*record) - sizeof(record->event));
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
	tell_place(kernel);
}

void xs_ze_kernels_tell(void)
{
	struct kernel *kernel, *next;

	if (__builtin_expect(!atomic_load_explicit(&untold, memory_order_relaxed), 1) ||
	    !xs_recording())
		return;
	for (kernel = atomic_exchange_explicit(&untold, NULL, memory_order_acquire); kernel;
	     kernel = next) {
		next = kernel->next_untold;
		atomic_store_explicit(&kernel->waits, 0, memory_order_release);
		tell_kernel(kernel);
	}
}

static inline bool same_shape(uint32_t id, const struct xs_device_record *record)
{
	const struct xs_shape *shape = xs_shape_of(id);
	uint64_t different = shape->kernel ^ record->kernel;

	for (int i = 0; i < 3; i++)
		different |= (shape->global[i] ^ record->global[i]) |
			     (shape->local[i] ^ record->local[i]);
	return !different;
}

/* A kernel is launched in few shapes, mostly in that of the last time. */
static __attribute__((noinline)) uint32_t other_shape(struct kernel *kernel,
						      const struct xs_device_record *record)
{
	uint32_t id;

	for (uint32_t i = 0; i < SHAPES; i++) {
		id = atomic_load_explicit(&kernel->shape[i], memory_order_relaxed);
		if (id && same_shape(id, record)) {
			atomic_store_explicit(&kernel->recent, i, memory_order_relaxed);
			return id;
		}
	}
	if (atomic_load_explicit(&kernel->shape_count, memory_order_relaxed) >= MAX_SHAPES)
		return 0;
	id = xs_ze_shape(record);
	if (id) {
		uint32_t i =
			atomic_fetch_add_explicit(&kernel->shape_count, 1, memory_order_relaxed) %
			SHAPES;

		atomic_store_explicit(&kernel->shape[i], id, memory_order_relaxed);
		atomic_store_explicit(&kernel->recent, i, memory_order_relaxed);
	}
	return id;
}

static inline uint32_t shape_of(struct kernel *kernel, const struct xs_device_record *record)
{
	uint32_t id = atomic_load_explicit(
		&kernel->shape[atomic_load_explicit(&kernel->recent, memory_order_relaxed)],
		memory_order_relaxed);

	return __builtin_expect(id && same_shape(id, record), 1) ? id : other_shape(kernel, record);
}

/* Which kernel the record tells of, launched in so many groups. */
static inline void shaped(struct xs_ze_node *node, struct kernel *kernel, const uint64_t *groups)
{
	struct xs_device_record *record = &node->record;

	if (__builtin_expect(!atomic_load_explicit(&kernel->told, memory_order_relaxed), 0)) {
		kernel->place.device_name = record->device_name;
		kernel->place.device = record->device;
		tell_kernel(kernel);
	}
	record->event.name = kernel->record.event.name;
	record->event.flags &= (uint8_t)~XS_DEVICE_FLAG_FUNCTION;
	record->event.words = sizeof(*record) / 8;
	record->kernel = kernel->record.id;
	record->simd = kernel->simd;
	for (int i = 0; i < 3; i++) {
		record->local[i] = kernel->size[i];
		record->global[i] = groups[i] * kernel->size[i];
	}
	node->shape = shape_of(kernel, record);
}

bool xs_ze_node_launch(struct xs_ze_node *node, ze_kernel_handle_t handle,
		       const ze_group_count_t *groups)
{
	struct kernel *kernel = xs_handle_get(&kernels, handle);

	if (!kernel)
		return true;
	if (kernel->unwanted) {
		/* what is sampled in it is not another one's */
		if (__builtin_expect(xs_ze_places, 0) && !atomic_exchange(&kernel->told, 1)) {
			kernel->place.device_name = node->record.device_name;
			kernel->place.device = node->record.device;
			tell_place(kernel);
		}
		return false;
	}
	shaped(node, kernel,
	       groups ? (uint64_t[3]){ groups->groupCountX, groups->groupCountY,
				       groups->groupCountZ }
		      : (uint64_t[3]){ 0 });
	return true;
}

void xs_ze_node_kernel(struct xs_ze_node *node, ze_kernel_handle_t handle)
{
	struct kernel *kernel = xs_handle_get(&kernels, handle);
	uint64_t groups[3];

	for (int i = 0; i < 3; i++)
		groups[i] = node->record.local[i] ? node->record.global[i] / node->record.local[i]
						  : 0;
	if (kernel)
		shaped(node, kernel, groups);
}
