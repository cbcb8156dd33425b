/* See ze_app.h. */
#include "ze_app.h"

#include <dlfcn.h>

#include <libgen.h>
#include <string.h>
#include <unistd.h>

void ze_app_fail(const char *file, int line, const char *call, ze_result_t result)
{
	(void)fflush(stdout);
	fprintf(stderr, "%s:%d: failed: %s (0x%x)\n", file, line, call, result);
	_Exit(1);
}

void ze_app_read_module(struct ze_app *app)
{
	char path[4096], self[4096];
	const char *named = getenv("XSTRACE_TEST_ZE_KERNELS");
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *file;

	self[length > 0 ? length : 0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/../softgpu/ze_kernels.so", dirname(self));
	file = fopen(named ? named : path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		ze_app_fail(__FILE__, __LINE__, named ? named : path, 0);
	app->module_size = (size_t)ftell(file);
	rewind(file);
	app->module_bytes = malloc(app->module_size);
	if (!app->module_bytes ||
	    fread(app->module_bytes, 1, app->module_size, file) != app->module_size)
		ze_app_fail(__FILE__, __LINE__, "fread", 0);
	(void)fclose(file);
}

ze_module_handle_t ze_app_module(const struct ze_app *app, ze_module_format_t format)
{
	ze_module_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = format };
	ze_module_handle_t module;

	desc.inputSize = app->module_size;
	desc.pInputModule = app->module_bytes;
	ZE_CHECK(zeModuleCreate(app->context, app->device, &desc, &module, NULL));
	return module;
}

void ze_app_open(struct ze_app *ret, unsigned device, int tile)
{
	ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	ze_device_handle_t devices[64];
	uint32_t count = 1;

	ZE_CHECK(zeInit(0));
	ZE_CHECK(zeDriverGet(&count, &ret->driver));
	count = 64;
	ZE_CHECK(zeDeviceGet(ret->driver, &count, devices));
	if (device >= count)
		ze_app_fail(__FILE__, __LINE__, "no such device", 0);
	ret->device = devices[device];
	if (tile >= 0) {
		count = 64;
		ZE_CHECK(zeDeviceGetSubDevices(ret->device, &count, devices));
		if ((unsigned)tile >= count)
			ze_app_fail(__FILE__, __LINE__, "no such tile", 0);
		ret->device = devices[tile];
	}
	ZE_CHECK(zeContextCreate(ret->driver, &desc, &ret->context));
	ze_app_read_module(ret);
	ret->module = ze_app_module(ret, ZE_MODULE_FORMAT_NATIVE);
}

void ze_app_close(struct ze_app *app)
{
	ZE_CHECK(zeModuleDestroy(app->module));
	ZE_CHECK(zeContextDestroy(app->context));
	free(app->module_bytes);
}

ze_kernel_handle_t ze_app_kernel(const struct ze_app *app, const char *name)
{
	ze_kernel_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name };
	ze_kernel_handle_t kernel;

	ZE_CHECK(zeKernelCreate(app->module, &desc, &kernel));
	ZE_CHECK(zeKernelSetGroupSize(kernel, 1, 1, 1));
	return kernel;
}

ze_event_pool_handle_t ze_app_pool(const struct ze_app *app, uint32_t count,
				   ze_event_pool_flags_t flags, bool counter_based)
{
	ze_event_pool_counter_based_exp_desc_t counts = {
		.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC, .flags = 3
	};
	ze_event_pool_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
				      .flags = flags,
				      .count = count };
	ze_event_pool_handle_t pool;

	desc.pNext = counter_based ? &counts : NULL;
	ZE_CHECK(zeEventPoolCreate(app->context, &desc, 0, NULL, &pool));
	return pool;
}

ze_event_handle_t ze_app_event(ze_event_pool_handle_t pool, uint32_t index)
{
	ze_event_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
				 .index = index,
				 .signal = ZE_EVENT_SCOPE_FLAG_HOST,
				 .wait = ZE_EVENT_SCOPE_FLAG_HOST };
	ze_event_handle_t event;

	ZE_CHECK(zeEventCreate(pool, &desc, &event));
	return event;
}

ze_command_queue_handle_t ze_app_queue(const struct ze_app *app, uint32_t ordinal, uint32_t index)
{
	ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					 .ordinal = ordinal,
					 .index = index,
					 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS };
	ze_command_queue_handle_t queue;

	ZE_CHECK(zeCommandQueueCreate(app->context, app->device, &desc, &queue));
	return queue;
}

ze_command_list_handle_t ze_app_list(const struct ze_app *app, uint32_t ordinal, bool in_order)
{
	ze_command_list_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
					.commandQueueGroupOrdinal = ordinal,
					.flags = in_order ? ZE_COMMAND_LIST_FLAG_IN_ORDER : 0 };
	ze_command_list_handle_t list;

	ZE_CHECK(zeCommandListCreate(app->context, app->device, &desc, &list));
	return list;
}

ze_command_list_handle_t ze_app_immediate(const struct ze_app *app, uint32_t ordinal,
					  uint32_t index, bool in_order)
{
	ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					 .ordinal = ordinal,
					 .index = index,
					 .flags = in_order ? ZE_COMMAND_QUEUE_FLAG_IN_ORDER : 0,
					 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS };
	ze_command_list_handle_t list;

	ZE_CHECK(zeCommandListCreateImmediate(app->context, app->device, &desc, &list));
	return list;
}

static const ze_device_mem_alloc_desc_t device_memory = {
	.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
};
static const ze_host_mem_alloc_desc_t host_memory = {
	.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC
};

void *ze_app_host(const struct ze_app *app, size_t size)
{
	void *ret;

	ZE_CHECK(zeMemAllocHost(app->context, &host_memory, size, 64, &ret));
	return memset(ret, 0, size);
}

void *ze_app_device(const struct ze_app *app, size_t size)
{
	void *ret;

	ZE_CHECK(zeMemAllocDevice(app->context, &device_memory, size, 64, app->device, &ret));
	return ret;
}

void *ze_app_shared(const struct ze_app *app, size_t size)
{
	void *ret;

	ZE_CHECK(zeMemAllocShared(app->context, &device_memory, &host_memory, size, 64, app->device,
				  &ret));
	return memset(ret, 0, size);
}

void *ze_app_function(const struct ze_app *app, const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (!function)
		ZE_CHECK(zeDriverGetExtensionFunctionAddress(app->driver, name, &function));
	return function;
}

ze_result_t ze_app_list_sync(const struct ze_app *app, ze_command_list_handle_t list,
			     uint64_t timeout)
{
	return ((__typeof__(&zeCommandListHostSynchronize))
			ze_app_function(app, "zeCommandListHostSynchronize"))(list, timeout);
}

void ze_app_arg(ze_kernel_handle_t kernel, uint32_t index, size_t size, const void *value)
{
	ZE_CHECK(zeKernelSetArgumentValue(kernel, index, size, value));
}
