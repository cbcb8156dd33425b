/*
 * A stand-in for SYCL, as much of it as unitrace's test programs use, over Level Zero: queues are immediate lists in order, graphs are
 * regular lists, as Intel's runtime makes them. Kernels run on the host, where the software GPU executes them (closure() in kernels.c);
 * their names are those that a SYCL compiler gives. Nothing is freed at the end of a program that is about to end.
 */
#pragma once
#include <level_zero/ze_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <typeinfo>
#include <vector>

#include "closure.h"

namespace sycl
{
inline namespace _V1
{
namespace stand_in
{
inline void must(ze_result_t result, const char *what)
{
	if (result == ZE_RESULT_SUCCESS)
		return;
	std::fprintf(stderr, "[ERROR] %s: 0x%x\n", what, (unsigned)result);
	std::exit(1);
}
#define STAND_IN_MUST(call) sycl::stand_in::must(call, #call)

struct system {
	ze_driver_handle_t driver = nullptr;
	ze_device_handle_t device = nullptr;
	ze_context_handle_t context = nullptr;

	system()
	{
		ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
		uint32_t one = 1;

		STAND_IN_MUST(zeInit(ZE_INIT_FLAG_GPU_ONLY));
		STAND_IN_MUST(zeDriverGet(&one, &driver));
		one = 1;
		STAND_IN_MUST(zeDeviceGet(driver, &one, &device));
		STAND_IN_MUST(zeContextCreate(driver, &desc, &context));
	}
	static system &get()
	{
		static system the_only;
		return the_only;
	}
};

/* A module of one kernel, as a compiler "just in time" makes them: kernels.c with this name written over the mark. */
inline ze_kernel_handle_t make_kernel(const char *type)
{
	std::string name = std::string("_ZTS") + type, mark = UNITRACE_NAME_MARK;
	std::ifstream file(std::getenv("SOFTGPU_SPIRV"), std::ios::binary);
	std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
	size_t at = bytes.find(mark);
	ze_module_desc_t module_desc = {ZE_STRUCTURE_TYPE_MODULE_DESC};
	ze_kernel_desc_t kernel_desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC};
	ze_module_handle_t module;
	ze_kernel_handle_t kernel;

	if (at == bytes.npos || name.size() >= UNITRACE_NAME_MAX)
		must(ZE_RESULT_ERROR_UNKNOWN, "SOFTGPU_SPIRV");
	bytes.replace(at, name.size() + 1, name.c_str(), name.size() + 1);
	module_desc.format = ZE_MODULE_FORMAT_IL_SPIRV;
	module_desc.pInputModule = (const uint8_t *)bytes.data();
	module_desc.inputSize = bytes.size();
	kernel_desc.pKernelName = name.c_str();
	STAND_IN_MUST(zeModuleCreate(system::get().context, system::get().device, &module_desc, &module, nullptr));
	STAND_IN_MUST(zeKernelCreate(module, &kernel_desc, &kernel));
	return kernel;
}

/* where a work-item is */
struct place {
	size_t global, local, group;
	operator size_t() const { return global; }
	size_t get_global_id() const { return global; }
	size_t get_local_id() const { return local; }
	size_t get_group_linear_id() const { return group; }
	size_t get_id(int) const { return global; }
};

template <typename Item, typename Function>
void run_group(void *function, const uint32_t *id, const uint32_t *, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		(*(Function *)function)(Item{{(size_t)id[0] * size[0] + i, i, id[0]}});
}
} // namespace stand_in

template <int Dimensions, bool Offset = true> struct item : stand_in::place {
};
template <int Dimensions> struct nd_item : stand_in::place {
};
template <int Dimensions> struct nd_range {
	size_t global, local;
	nd_range(size_t all, size_t group) : global(all), local(group) {}
};

namespace property::queue
{
struct in_order {
};
} // namespace property::queue
struct property_list {
	property_list(property::queue::in_order = {}) {}
};
struct gpu_selector {
};
inline constexpr gpu_selector gpu_selector_v;
struct context {
};
struct device {
};

struct event {
	ze_command_list_handle_t list;
	void wait() { STAND_IN_MUST(zeCommandListHostSynchronize(list, UINT64_MAX)); }
};

class queue;
namespace ext::oneapi::experimental
{
struct executable_graph {
	ze_command_list_handle_t list;
};
struct command_graph {
	ze_command_list_handle_t list;
	queue *recorded = nullptr;

	command_graph(const context &, const device &)
	{
		ze_command_list_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, 0, ZE_COMMAND_LIST_FLAG_IN_ORDER};

		STAND_IN_MUST(zeCommandListCreate(stand_in::system::get().context, stand_in::system::get().device, &desc, &list));
	}
	void begin_recording(queue &q);
	void end_recording();
	executable_graph finalize() const
	{
		STAND_IN_MUST(zeCommandListClose(list));
		return {list};
	}
};
} // namespace ext::oneapi::experimental

class handler;
class queue
{
	ze_command_list_handle_t immediate = nullptr, recording = nullptr;
	ze_command_queue_handle_t executes = nullptr;
	friend struct ext::oneapi::experimental::command_graph;

	ze_command_list_handle_t list() const { return recording ? recording : immediate; }

	template <typename Item, typename Function> event launch(size_t groups, size_t size, Function function)
	{
		static ze_kernel_handle_t kernel = stand_in::make_kernel(typeid(Function).name());
		ze_group_count_t count = {(uint32_t)groups, 1, 1};
		unitrace_kernel_function *run = stand_in::run_group<Item, Function>;
		void *captured = new Function(function);

		STAND_IN_MUST(zeKernelSetGroupSize(kernel, (uint32_t)size, 1, 1));
		STAND_IN_MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(run), &run));
		STAND_IN_MUST(zeKernelSetArgumentValue(kernel, 1, sizeof(captured), &captured));
		STAND_IN_MUST(zeCommandListAppendLaunchKernel(list(), kernel, &count, nullptr, 0, nullptr));
		return {immediate};
	}

    public:
	queue(const property_list & = {})
	{
		ze_command_queue_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
		stand_in::system &system = stand_in::system::get();

		desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
		STAND_IN_MUST(zeCommandQueueCreate(system.context, system.device, &desc, &executes));
		desc.flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
		STAND_IN_MUST(zeCommandListCreateImmediate(system.context, system.device, &desc, &immediate));
	}
	queue(const gpu_selector &, const property_list &properties = {}) : queue(properties) {}

	context get_context() const { return {}; }
	device get_device() const { return {}; }
	void wait() { event{immediate}.wait(); }
	void wait_and_throw() { wait(); }

	template <typename Function> event parallel_for(nd_range<1> range, Function function)
	{
		return launch<nd_item<1>>(range.global / range.local, range.local, function);
	}
	template <typename Function> event parallel_for(size_t count, Function function)
	{
		size_t size = 1;

		while (size < 256 && count % (size * 2) == 0)
			size *= 2;
		return launch<item<1>>(count / size, size, function);
	}
	event memcpy(void *to, const void *from, size_t bytes)
	{
		STAND_IN_MUST(zeCommandListAppendMemoryCopy(list(), to, from, bytes, nullptr, 0, nullptr));
		return {immediate};
	}
	event memset(void *to, int value, size_t bytes)
	{
		unsigned char byte = (unsigned char)value;

		STAND_IN_MUST(zeCommandListAppendMemoryFill(list(), to, &byte, 1, bytes, nullptr, 0, nullptr));
		return {immediate};
	}
	event ext_oneapi_graph(const ext::oneapi::experimental::executable_graph &graph)
	{
		ze_command_list_handle_t executed = graph.list;

		STAND_IN_MUST(zeCommandQueueExecuteCommandLists(executes, 1, &executed, nullptr));
		STAND_IN_MUST(zeCommandQueueSynchronize(executes, UINT64_MAX));
		return {immediate};
	}
	template <typename Group> event submit(Group group);
};

class handler
{
	queue &q;

    public:
	event done;
	explicit handler(queue &of) : q(of), done{} {}
	template <typename Range, typename Function> void parallel_for(Range range, Function function)
	{
		done = q.parallel_for(range, function);
	}
	template <typename Function> void host_task(Function function)
	{
		q.wait();
		function();
	}
};

template <typename Group> event queue::submit(Group group)
{
	handler h(*this);

	h.done = {immediate};
	group(h);
	return h.done;
}

inline void ext::oneapi::experimental::command_graph::begin_recording(queue &q)
{
	recorded = &q;
	q.recording = list;
}

inline void ext::oneapi::experimental::command_graph::end_recording()
{
	recorded->recording = nullptr;
}

inline void *malloc_host(size_t bytes, const queue &)
{
	ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
	void *ret = nullptr;

	STAND_IN_MUST(zeMemAllocHost(stand_in::system::get().context, &desc, bytes, 64, &ret));
	return ret;
}

inline void *malloc_device(size_t bytes, const queue &)
{
	ze_device_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
	void *ret = nullptr;

	STAND_IN_MUST(zeMemAllocDevice(stand_in::system::get().context, &desc, bytes, 64, stand_in::system::get().device, &ret));
	return ret;
}

inline void *malloc_shared(size_t bytes, const queue &)
{
	ze_device_mem_alloc_desc_t device = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
	ze_host_mem_alloc_desc_t host = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
	void *ret = nullptr;

	STAND_IN_MUST(zeMemAllocShared(stand_in::system::get().context, &device, &host, bytes, 64, stand_in::system::get().device, &ret));
	return ret;
}

template <typename Value> Value *malloc_device(size_t count, const queue &q)
{
	return (Value *)malloc_device(count * sizeof(Value), q);
}

inline void free(void *memory, const queue &)
{
	STAND_IN_MUST(zeMemFree(stand_in::system::get().context, memory));
}
} // namespace _V1
} // namespace sycl
