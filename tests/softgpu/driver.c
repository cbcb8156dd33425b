/* The driver itself, contexts, and the tables through which the loader finds everything. A loader
 * asks for tables of its own version and owns memory of that size: what is newer is not written. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static struct sg_driver {
	uint64_t unused;
} driver;

struct sg_context {
	struct sg_driver *driver;
};

ze_result_t sg_zeInit(ze_init_flags_t flags)
{
	sg_start();
	SG_ENTER();
	return flags == ZE_INIT_FLAG_VPU_ONLY ? ZE_RESULT_ERROR_UNINITIALIZED : SG_OK;
}

ze_result_t sg_zeDriverGet(uint32_t *count, ze_driver_handle_t *ret)
{
	sg_start();
	SG_ENTER();
	SG_POINTER(count);
	SG_GIVE(count, ret, 1, ret[i] = (ze_driver_handle_t)&driver);
	return SG_OK;
}

ze_result_t sg_zeInitDrivers(uint32_t *count, ze_driver_handle_t *ret,
			     ze_init_driver_type_desc_t *desc)
{
	sg_start();
	SG_ENTER();
	SG_POINTER(count && desc);
	if (!desc->flags)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (!(desc->flags & ZE_INIT_DRIVER_TYPE_FLAG_GPU)) {
		*count = 0;
		return SG_OK;
	}
	SG_GIVE(count, ret, 1, ret[i] = (ze_driver_handle_t)&driver);
	return SG_OK;
}

ze_result_t sg_zeDriverGetApiVersion(ze_driver_handle_t handle, ze_api_version_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	*ret = (ze_api_version_t)SG_API_VERSION;
	return SG_OK;
}

ze_result_t sg_zeDriverGetProperties(ze_driver_handle_t handle, ze_driver_properties_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	memcpy(ret->uuid.id, "softgpu-driver-1", sizeof(ret->uuid.id));
	ret->driverVersion = 0x01000000;
	return SG_OK;
}

ze_result_t sg_zeDriverGetIpcProperties(ze_driver_handle_t handle, ze_driver_ipc_properties_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	ret->flags = ZE_IPC_PROPERTY_FLAG_MEMORY | ZE_IPC_PROPERTY_FLAG_EVENT_POOL;
	return SG_OK;
}

static const struct {
	const char *name;
	uint32_t version;
} extensions[] = {
	{ "ZE_extension_event_query_timestamps", ZE_MAKE_VERSION(1, 0) },
	{ "ZE_extension_pci_properties", ZE_MAKE_VERSION(1, 0) },
	{ "ZE_experimental_event_pool_counter_based", ZE_MAKE_VERSION(1, 0) },
	{ "ZE_experimental_immediate_command_list_append", ZE_MAKE_VERSION(1, 0) },
	{ "ZE_experimental_mutable_command_list", ZE_MAKE_VERSION(1, 0) },
	{ "ZE_extension_record_replay_graph", ZE_MAKE_VERSION(1, 0) },
};

ze_result_t sg_zeDriverGetExtensionProperties(ze_driver_handle_t handle, uint32_t *count,
					      ze_driver_extension_properties_t *ret)
{
	SG_ENTER_WITH(handle, count);
	SG_GIVE(count, ret, sizeof(extensions) / sizeof(extensions[0]), {
		(void)strncpy(ret[i].name, extensions[i].name, sizeof(ret[i].name) - 1);
		ret[i].name[sizeof(ret[i].name) - 1] = '\0';
		ret[i].version = extensions[i].version;
	});
	return SG_OK;
}

/* Every function by its name: those too that the loader's tables have no place for. */
static const struct {
	const char *name;
	void *function;
} functions[] = {
#define SG_FN(version, function, member)    { #function, (void *)sg_##function },
#define SG_NEW(version, function, position) { #function, (void *)sg_##function },
#define SG_EXT(function)		    { #function, (void *)sg_##function },
#define SG_TABLE(getter, type)
#define SG_END
#include "api.def"
#undef SG_FN
#undef SG_NEW
#undef SG_EXT
#undef SG_TABLE
#undef SG_END
};

ze_result_t sg_zeDriverGetExtensionFunctionAddress(ze_driver_handle_t handle, const char *name,
						   void **ret)
{
	SG_ENTER_WITH(handle, name && ret);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!strcmp(functions[i].name, name)) {
			*ret = functions[i].function;
			return SG_OK;
		}
	}
	*ret = NULL;
	return ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t sg_zeContextCreate(ze_driver_handle_t handle, const ze_context_desc_t *desc,
			       ze_context_handle_t *ret)
{
	struct sg_context *context;

	SG_ENTER_WITH(handle, desc && ret);
	context = calloc(1, sizeof(*context));
	if (!context)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	context->driver = (struct sg_driver *)handle;
	*ret = (ze_context_handle_t)context;
	return SG_OK;
}

ze_result_t sg_zeContextCreateEx(ze_driver_handle_t handle, const ze_context_desc_t *desc,
				 uint32_t count, ze_device_handle_t *devices,
				 ze_context_handle_t *ret)
{
	SG_ENTER();
	SG_POINTER(!count || devices);
	return sg_zeContextCreate(handle, desc, ret);
}

ze_result_t sg_zeContextDestroy(ze_context_handle_t context)
{
	SG_ENTER();
	SG_HANDLE(context);
	free(context);
	return SG_OK;
}

ze_result_t sg_zeContextGetStatus(ze_context_handle_t context)
{
	SG_ENTER();
	SG_HANDLE(context);
	return SG_OK;
}

ze_result_t sg_zeContextSystemBarrier(ze_context_handle_t context, ze_device_handle_t device)
{
	SG_ENTER();
	SG_HANDLE(context && device);
	return SG_OK;
}

/* All memory is always where every device reaches it. */
ze_result_t sg_zeContextMakeMemoryResident(ze_context_handle_t context, ze_device_handle_t device,
					   void *pointer, size_t size)
{
	SG_ENTER_WITH(context && device, pointer && size);
	return SG_OK;
}

ze_result_t sg_zeContextEvictMemory(ze_context_handle_t context, ze_device_handle_t device,
				    void *pointer, size_t size)
{
	SG_ENTER_WITH(context && device, pointer && size);
	return SG_OK;
}

#define SG_TABLE(getter, type)                                    \
	ze_result_t getter(ze_api_version_t version, type *table) \
	{                                                         \
		SG_POINTER(table);                                \
		if (ZE_MAJOR_VERSION(version) != 1)               \
			return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
#define SG_FN(version_, function, member)                      \
	if ((uint32_t)version >= ZE_MAKE_VERSION(1, version_)) \
		table->member = sg_##function;
/* what headers may lack is put where newer loaders look for it: tables have only ever grown */
#define SG_NEW(version_, function, position)                   \
	if ((uint32_t)version >= ZE_MAKE_VERSION(1, version_)) \
		((void **)table)[position] = (void *)sg_##function;
#define SG_EXT(function)
#define SG_END        \
	return SG_OK; \
	}
#include "api.def"
