/*
 * OpenCL's devices, queues and kernels: what is known of each handle, and queues that keep times
 * though the application asked for none.
 */
#include "bus.h"
#include "device_record.h"
#include "handles.h"
#include "kernel_filter.h"
#include "lock.h"
#include "first.h"
#include "opencl.h"
#include "spare.h"

static struct xs_handles kernels = { .size = 16384 }; /* struct xs_cl_kernel * */
static struct xs_handles queues = { .size = 16384 };  /* struct xs_cl_queue * */
#define MAX_SIZES 256u /* of a kernel: one that is launched in more is not worth their room */

static bool any_profiling_added;
void (*xs_cl_last_chance)(void);

/* ---- devices and queues ---- */

#define MAX_DEVICES 64u
#define DEVICE_PCI  0x410F /* cl_khr_pci_bus_info: older headers do not have it */
struct xs_cl_device xs_cl_devices[MAX_DEVICES];
static uint32_t device_count;
static _Atomic uint32_t device_lock;

static _Atomic uint32_t queue_serial;

/*
 * Does --devices-to-sample name it? It counts the devices of all platforms; a part of a device
 * counts as the device.
 */
static __attribute__((noinline)) bool device_wanted(cl_device_id id)
{
	const cl_icd_dispatch *t = &xs_cl_target;
	cl_platform_id platforms[32];
	cl_uint platform_count = 0, number = 0;
	cl_device_id parent = NULL;

	if (xs_cl_wanted_devices == UINT64_MAX)
		return true;
	while (!t->clGetDeviceInfo(id, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL) &&
	       parent)
		id = parent;
	if (t->clGetPlatformIDs(32, platforms, &platform_count))
		return true;
	for (cl_uint i = 0; i < platform_count && i < 32; i++) {
		cl_device_id list[MAX_DEVICES];
		cl_uint count = 0;

		if (t->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX_DEVICES, list, &count))
			continue;
		for (cl_uint k = 0; k < count && k < MAX_DEVICES; k++, number++)
			if (list[k] == id)
				return number < 64 && xs_cl_wanted_devices >> number & 1;
	}
	return true; /* the runtime keeps it to itself */
}

/* Reports are told of the type before any command has run. */
static void device_used(const struct xs_cl_device *device)
{
	struct xs_event *event = xs_record_begin(sizeof(*event), XS_DEVICE_USED, XS_SOURCE_OPENCL,
						 device->type, device->name, XS_ROLE_OTHER);

	if (!event)
		return;
	event->tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*event));
}

static uint64_t number_told(cl_device_id id, cl_device_info what)
{
	uint64_t value = 0; /* some have 32 bits */

	return xs_cl_target.clGetDeviceInfo(id, what, sizeof(value), &value, NULL) ? XS_FACT_UNKNOWN
										   : value;
}

static uint32_t facts_told(cl_device_id id)
{
	const struct xs_device_fact facts[] = {
		{ "totalGlobalMem", number_told(id, CL_DEVICE_GLOBAL_MEM_SIZE) },
		{ "maxComputeUnits", number_told(id, CL_DEVICE_MAX_COMPUTE_UNITS) },
		{ "maxWorkGroupSize", number_told(id, CL_DEVICE_MAX_WORK_GROUP_SIZE) },
		{ "maxClockFrequency", number_told(id, CL_DEVICE_MAX_CLOCK_FREQUENCY) },
		{ "maxMemAllocSize", number_told(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE) },
		{ "localMemSize", number_told(id, CL_DEVICE_LOCAL_MEM_SIZE) },
	};

	return xs_device_facts(facts, sizeof(facts) / sizeof(facts[0]));
}

/*
 * Threads that look for devices. The first of them may still be making what another one has got
 * already: PoCL says that a device is there before it has a name, and then reads that.
 */
static _Atomic uint32_t listing;
#define LOOKS 10u /* of 100 ms each */

cl_int xs_hook_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
			      cl_device_id *devices, cl_uint *count)
{
	cl_int result;

	atomic_fetch_add(&listing, 1);
	result = xs_cl_target.clGetDeviceIDs(platform, type, room, devices, count);
	atomic_fetch_sub(&listing, 1);
	return result;
}

static void wait_until_made(void)
{
	for (uint32_t i = 0, rounds = 0; i < LOOKS && atomic_load(&listing); i++, rounds = 0)
		while (atomic_load(&listing) && xs_wait_a_bit(&rounds))
			;
}

/* What the runtime says about it. */
static __attribute__((noinline)) struct xs_cl_device device_told(cl_device_id id)
{
	struct xs_cl_device device = { .id = id };
	cl_device_type type = 0;
	cl_uint pci[4]; /* cl_device_pci_bus_info_khr */
	char name[256] = "", version[256] = "";
	uint32_t facts;

	(void)xs_cl_target.clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL);
	(void)xs_cl_target.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	(void)xs_cl_target.clGetDeviceInfo(id, CL_DEVICE_VERSION, sizeof(version) - 1, version,
					   NULL);
	facts = facts_told(id);
	device.name =
		xs_name(name, xs_cl_target.clGetDeviceInfo(id, DEVICE_PCI, sizeof(pci), pci, NULL)
				      ? facts
				      : xs_bus_name(pci, facts));
	device.type = type & CL_DEVICE_TYPE_GPU		  ? XS_DEVICE_GPU
		      : type & CL_DEVICE_TYPE_CPU	  ? XS_DEVICE_CPU
		      : type & CL_DEVICE_TYPE_ACCELERATOR ? XS_DEVICE_ACCELERATOR
							  : XS_DEVICE_UNKNOWN;
	device.unwanted = !device_wanted(id);
	/* since 2.1: an older runtime need not have the function */
	device.sub_groups = strncmp(version, "OpenCL 2.1", strlen("OpenCL 2.1")) >= 0;
	return device;
}

/* With the lock held; device_count: it is not known. */
static uint32_t device_find(cl_device_id id)
{
	uint32_t i = 0;

	while (i < device_count && xs_cl_devices[i].id != id)
		i++;
	return i;
}

static uint8_t device_index(cl_device_id id)
{
	struct xs_cl_device device;
	bool known, found = false;
	uint32_t i;

	xs_lock_robust(&device_lock);
	i = device_find(id);
	known = i < device_count || i == MAX_DEVICES;
	xs_unlock(&device_lock);
	if (!known) {
		wait_until_made();
		device = device_told(id); /* the runtime is not called with the lock held */
		xs_lock_robust(&device_lock);
		i = device_find(id);
		found = i == device_count && i < MAX_DEVICES;
		if (found) {
			xs_cl_devices[i] = device;
			device_count++;
		}
		xs_unlock(&device_lock);
	}
	if (found)
		device_used(&xs_cl_devices[i]);
	return (uint8_t)(i < MAX_DEVICES ? i : MAX_DEVICES - 1);
}

static bool work_wanted(cl_device_id device)
{
	return xs_cl_wanted_devices == UINT64_MAX || !xs_cl_devices[device_index(device)].unwanted;
}

/*
 * At the first queue. What the runtime's libraries register with atexit() runs after ours: their
 * threads still work while we wait. (LLVM's destructors, some of which come to be with the first
 * kernel that a thread of PoCL's compiles, leave nothing to compile with: the program would crash.)
 */
static void wait_at_exit(void)
{
	static atomic_flag is_registered = ATOMIC_FLAG_INIT;

	if (xs_cl_last_chance && !atomic_flag_test_and_set(&is_registered))
		xs_first_at_exit(xs_cl_last_chance);
}

static struct xs_cl_queue *queue_add(cl_command_queue handle, cl_device_id device,
				     cl_command_queue_properties properties, bool added)
{
	_Atomic uint64_t *slot = xs_handle_add(&queues, handle);
	struct xs_cl_queue *queue;

	if (!slot)
		return NULL;
	queue = (void *)(uintptr_t)atomic_load_explicit(slot, memory_order_acquire);
	if (!queue)
		queue = xs_arena(sizeof(*queue));
	if (!queue)
		return NULL;
	queue->handle = handle;
	queue->serial = atomic_fetch_add_explicit(&queue_serial, 1, memory_order_relaxed) + 1;
	queue->device = device_index(device);
	queue->profiled = added || properties & CL_QUEUE_PROFILING_ENABLE;
	queue->in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	queue->profiling_added = added;
	queue->array_length = 0;
	wait_at_exit();
	if (added)
		any_profiling_added = true;
	atomic_store_explicit(slot, (uint64_t)(uintptr_t)queue, memory_order_release);
	return queue;
}

static struct xs_cl_queue *queue_known(cl_command_queue handle)
{
	return xs_handle_get(&queues, handle);
}

/* Also a queue that came into being behind our back (an extension made it). */
struct xs_cl_queue *xs_cl_queue_of(cl_command_queue handle)
{
	struct xs_cl_queue *queue = queue_known(handle);
	cl_command_queue_properties properties = 0;
	cl_device_id device;

	if (queue)
		return queue;
	if (xs_cl_target.clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof(device), &device,
					       NULL) ||
	    xs_cl_target.clGetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES, sizeof(properties),
					       &properties, NULL))
		return NULL;
	return queue_add(handle, device, properties, false);
}

cl_command_queue xs_hook_clCreateCommandQueue(cl_context context, cl_device_id device,
					      cl_command_queue_properties properties,
					      cl_int *errcode_ret)
{
	bool add = xs_cl_times && !(properties & CL_QUEUE_PROFILING_ENABLE) && work_wanted(device);
	cl_command_queue queue = NULL;

	if (add)
		queue = xs_cl_target.clCreateCommandQueue(context, device,
							  properties | CL_QUEUE_PROFILING_ENABLE,
							  errcode_ret);
	if (!queue) {
		add = false;
		queue = xs_cl_target.clCreateCommandQueue(context, device, properties, errcode_ret);
	}
	if (queue)
		(void)queue_add(queue, device, properties, add);
	return queue;
}

cl_command_queue xs_hook_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							    const cl_queue_properties *properties,
							    cl_int *errcode_ret)
{
	cl_queue_properties ours[34];
	cl_command_queue_properties flags = 0;
	uint32_t n = 0, at = UINT32_MAX;
	struct xs_cl_queue *known;
	cl_command_queue queue = NULL;
	bool add;

	/* which the runtime sees first, before it looks at the properties */
	if (!context || !device)
		return xs_cl_target.clCreateCommandQueueWithProperties(context, device, properties,
								       errcode_ret);
	for (; properties && properties[n] && n < 30; n += 2) {
		ours[n] = properties[n];
		ours[n + 1] = properties[n + 1];
		if (properties[n] == CL_QUEUE_PROPERTIES) {
			at = n + 1;
			flags = (cl_command_queue_properties)properties[n + 1];
		}
	}
	add = xs_cl_times && !(flags & (CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE)) &&
	      !(properties && properties[n]) && work_wanted(device);
	if (add) {
		uint32_t length = n;

		if (at == UINT32_MAX) {
			ours[length++] = CL_QUEUE_PROPERTIES;
			at = length++;
		}
		ours[at] = (cl_queue_properties)(flags | CL_QUEUE_PROFILING_ENABLE);
		ours[length] = 0;
		queue = xs_cl_target.clCreateCommandQueueWithProperties(context, device, ours,
									errcode_ret);
	}
	if (!queue) {
		add = false;
		queue = xs_cl_target.clCreateCommandQueueWithProperties(context, device, properties,
									errcode_ret);
	}
	known = queue ? queue_add(queue, device, flags, add) : NULL;
	if (known && add && properties) {
		memcpy(known->array, properties, (n + 1) * sizeof(properties[0]));
		known->array_length = n + 1;
	}
	return queue;
}

cl_int xs_hook_clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info name,
				     size_t size, void *value, size_t *size_ret)
{
	const struct xs_cl_queue *queue = any_profiling_added ? queue_known(handle) : NULL;
	cl_int result;

	if (queue && queue->profiling_added && name == CL_QUEUE_PROPERTIES_ARRAY) {
		size_t bytes = queue->array_length * sizeof(queue->array[0]);

		if (value && size < bytes)
			return CL_INVALID_VALUE;
		if (value)
			memcpy(value, queue->array, bytes);
		if (size_ret)
			*size_ret = bytes;
		return CL_SUCCESS;
	}
	result = xs_cl_target.clGetCommandQueueInfo(handle, name, size, value, size_ret);
	if (queue && queue->profiling_added && name == CL_QUEUE_PROPERTIES && !result && value)
		*(cl_command_queue_properties *)value &=
			~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	return result;
}

cl_int xs_hook_clGetEventProfilingInfo(cl_event event, cl_profiling_info name, size_t size,
				       void *value, size_t *size_ret)
{
	cl_command_queue handle = NULL;
	const struct xs_cl_queue *queue;

	if (any_profiling_added && event &&
	    !xs_cl_target.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(handle), &handle,
					 NULL) &&
	    handle) {
		queue = queue_known(handle);
		if (queue && queue->profiling_added)
			return CL_PROFILING_INFO_NOT_AVAILABLE;
	}
	return xs_cl_target.clGetEventProfilingInfo(event, name, size, value, size_ret);
}

/* ---- kernels ---- */

#define NAME_MAX_BYTES 4096u /* too many for the caller's stack */

static uint32_t kernel_name(cl_kernel handle, bool *ret_unwanted)
{
	static struct xs_spare names;
	char *name = xs_spare_take(&names, NAME_MAX_BYTES);
	uint32_t id;

	if (!name)
		return xs_name("(kernel)", 0);
	memset(name, 0, NAME_MAX_BYTES);
	(void)xs_cl_target.clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, NAME_MAX_BYTES - 1,
					   name, NULL);
	id = xs_name(name[0] ? name : "(kernel)", 0);
	*ret_unwanted = !xs_kernel_wanted(xs_options_of_run(), name, NULL);
	xs_spare_give(&names, name);
	return id;
}

static void kernel_add(cl_kernel handle)
{
	_Atomic uint64_t *slot = xs_handle_add(&kernels, handle);
	struct xs_cl_kernel *kernel;

	if (!slot)
		return;
	/* a handle that comes again is another kernel */
	kernel = (void *)(uintptr_t)atomic_load_explicit(slot, memory_order_acquire);
	if (!kernel)
		kernel = xs_arena(sizeof(*kernel));
	if (!kernel)
		return;
	for (uint32_t i = 0; i < XS_CL_SIZES; i++)
		atomic_store_explicit(&kernel->sizes[i], NULL, memory_order_relaxed);
	kernel->name = kernel_name(handle, &kernel->unwanted);
	atomic_store_explicit(&kernel->simd_known, false, memory_order_relaxed);
	atomic_store_explicit(slot, (uint64_t)(uintptr_t)kernel, memory_order_release);
}

static __attribute__((noinline, cold)) void ask_simd(struct xs_cl_kernel *kernel, cl_kernel handle,
						     cl_device_id device)
{
	size_t multiple = 0;

	(void)xs_cl_target.clGetKernelWorkGroupInfo(handle, device,
						    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
						    sizeof(multiple), &multiple, NULL);
	kernel->simd = multiple > 255 ? 255 : (uint8_t)multiple;
	/* pairs with the acquire in xs_cl_kernel_of() */
	atomic_store_explicit(&kernel->simd_known, true, memory_order_release);
}

struct xs_cl_kernel *xs_cl_kernel_of(cl_kernel handle, const struct xs_cl_queue *queue)
{
	struct xs_cl_kernel *kernel = xs_handle_get(&kernels, handle);

	if (__builtin_expect(!kernel, 0)) {
		kernel_add(handle);
		kernel = xs_handle_get(&kernels, handle);
	}
	if (kernel &&
	    __builtin_expect(!atomic_load_explicit(&kernel->simd_known, memory_order_acquire), 0))
		ask_simd(kernel, handle, xs_cl_devices[queue->device].id);
	return kernel;
}

static inline bool same_sizes(const struct xs_cl_sizes *known, const struct xs_cl_sizes *sizes)
{
	/* word by word: they have just been stored so, and a wider load would wait for that */
	for (int i = 0; known && i < 3; i++)
		if (known->global[i] != sizes->global[i] || known->local[i] != sizes->local[i])
			return false;
	return known;
}

/*
 * A CPU's runtime prefers groups that are a multiple of far more items than run in step, and knows
 * these for a size of the group.
 */
static uint8_t simd_of(const struct xs_cl_kernel *kernel, const struct xs_cl_sizes *sizes,
		       cl_kernel handle, const struct xs_cl_device *device)
{
	size_t local[3] = { sizes->local[0], sizes->local[1], sizes->local[2] }, step = 0;

	if (!device->sub_groups)
		return kernel->simd;
	if (!local[0]) { /* left to the runtime */
		local[0] = kernel->simd ? kernel->simd : 1;
		local[1] = local[2] = 1;
	}
	if (xs_cl_target.clGetKernelSubGroupInfo(handle, device->id,
						 CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
						 sizeof(local), local, sizeof(step), &step, NULL) ||
	    !step || (kernel->simd && step > kernel->simd))
		return kernel->simd;
	return step > 255 ? 255 : (uint8_t)step;
}

static __attribute__((noinline)) const struct xs_cl_sizes *other_sizes(
	struct xs_cl_kernel *kernel, const struct xs_cl_sizes *sizes, cl_kernel handle,
	const struct xs_cl_device *device)
{
	struct xs_cl_sizes *added;
	uint32_t at;

	for (at = 0; at < XS_CL_SIZES; at++) {
		const struct xs_cl_sizes *known =
			atomic_load_explicit(&kernel->sizes[at], memory_order_acquire);

		if (same_sizes(known, sizes)) {
			atomic_store_explicit(&kernel->recent, at, memory_order_relaxed);
			return known;
		}
	}
	if (atomic_load_explicit(&kernel->sizes_count, memory_order_relaxed) >= MAX_SIZES)
		return NULL;
	added = xs_arena(sizeof(*added));
	if (!added)
		return NULL;
	*added = *sizes;
	added->simd = simd_of(kernel, sizes, handle, device);
	at = atomic_fetch_add_explicit(&kernel->sizes_count, 1, memory_order_relaxed) % XS_CL_SIZES;
	/* pairs with the acquires of those who read them */
	atomic_store_explicit(&kernel->sizes[at], added, memory_order_release);
	atomic_store_explicit(&kernel->recent, at, memory_order_relaxed);
	return added;
}

/* A kernel is launched in few sizes, mostly in those of the last time. */
const struct xs_cl_sizes *xs_cl_sizes_of(struct xs_cl_kernel *kernel,
					 const struct xs_cl_sizes *sizes, cl_kernel handle,
					 const struct xs_cl_device *device)
{
	uint32_t recent = atomic_load_explicit(&kernel->recent, memory_order_relaxed);
	const struct xs_cl_sizes *known =
		atomic_load_explicit(&kernel->sizes[recent], memory_order_acquire);

	return __builtin_expect(same_sizes(known, sizes), 1)
		       ? known
		       : other_sizes(kernel, sizes, handle, device);
}

cl_kernel xs_hook_clCreateKernel(cl_program program, const char *name, cl_int *errcode_ret)
{
	cl_kernel kernel = xs_cl_target.clCreateKernel(program, name, errcode_ret);

	if (kernel)
		kernel_add(kernel);
	return kernel;
}

cl_int xs_hook_clCreateKernelsInProgram(cl_program program, cl_uint count, cl_kernel *list,
					cl_uint *count_ret)
{
	cl_uint made = 0;
	cl_int result = xs_cl_target.clCreateKernelsInProgram(program, count, list, &made);

	if (!result && count_ret)
		*count_ret = made;
	for (cl_uint i = 0; !result && list && i < made && i < count; i++)
		kernel_add(list[i]);
	return result;
}

cl_kernel xs_hook_clCloneKernel(cl_kernel source, cl_int *errcode_ret)
{
	cl_kernel kernel = xs_cl_target.clCloneKernel(source, errcode_ret);

	if (kernel)
		kernel_add(kernel);
	return kernel;
}
