/*
 * Modules and kernels. A module's bytes are a shared object, put into memory and opened there; what
 * it exports is in softgpu.h.
 */
#include "driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sg_module {
	void *library;
	/* stays open: dlopen knows what it has opened by the path, and the number is in it */
	int fd;
	const struct softgpu_kernel *kernels;
	uint32_t count;
	unsigned char *bytes;
	size_t size;
	_Atomic uint32_t live;
};

struct build_log {
	char text[256];
};

static bool write_all(int fd, const unsigned char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
	}
	return true;
}

/*
 * Real SPIR-V is not compiled here: the shared object named by SOFTGPU_SPIRV stands for it, by the
 * names of its kernels.
 */
static const char *stand_in(const ze_module_desc_t *desc)
{
	static const uint32_t magic = 0x07230203;

	if (desc->inputSize < sizeof(magic) || memcmp(desc->pInputModule, &magic, sizeof(magic)))
		return NULL;
	return getenv("SOFTGPU_SPIRV");
}

/* A descriptor of the shared object that is to be opened, or -1. */
static int module_file(const ze_module_desc_t *desc)
{
	const char *path = stand_in(desc);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC)
		      : memfd_create("softgpu-module", MFD_CLOEXEC);

	if (fd >= 0 && !path && !write_all(fd, desc->pInputModule, desc->inputSize)) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

static ze_result_t module_open(struct sg_module *module, const ze_module_desc_t *desc,
			       struct build_log *log)
{
	int fd = module_file(desc);
	char path[64];

	if (fd < 0)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	module->fd = fd;
	if (!module->library) {
		(void)close(fd);
		(void)snprintf(log->text, sizeof(log->text), "error: %s", dlerror());
		return desc->format == ZE_MODULE_FORMAT_NATIVE
			       ? ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
			       : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
	}
	module->kernels = dlsym(module->library, "softgpu_kernels");
	if (!module->kernels) {
		(void)snprintf(log->text, sizeof(log->text),
			       "error: the module exports no softgpu_kernels");
		(void)dlclose(module->library);
		(void)close(fd);
		return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
	}
	while (module->kernels[module->count].name)
		module->count++;
	return SG_OK;
}

ze_result_t sg_zeModuleCreate(ze_context_handle_t context, ze_device_handle_t device,
			      const ze_module_desc_t *desc, ze_module_handle_t *ret,
			      ze_module_build_log_handle_t *ret_log)
{
	struct sg_module *module = calloc(1, sizeof(*module));
	struct build_log scratch = { "" }, *log = ret_log ? calloc(1, sizeof(*log)) : &scratch;
	ze_result_t result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;

	if (__builtin_expect(sg_faults, 0) && (result = sg_fault("zeModuleCreate")))
		goto fail;
	result = ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
	if (!context || !device)
		goto fail;
	result = ZE_RESULT_ERROR_INVALID_NULL_POINTER;
	if (!desc || !desc->pInputModule || !ret)
		goto fail;
	result = ZE_RESULT_ERROR_INVALID_SIZE;
	if (!desc->inputSize)
		goto fail;
	result = ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (desc->format > ZE_MODULE_FORMAT_NATIVE)
		goto fail;
	result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	if (!module || !log || !(module->bytes = malloc(desc->inputSize)))
		goto fail;
	memcpy(module->bytes, desc->pInputModule, desc->inputSize);
	module->size = desc->inputSize;
	result = module_open(module, desc, log);
	if (result) {
		/* what went wrong is in the log */
		if (ret_log) {
			*ret_log = (ze_module_build_log_handle_t)log;
			log = NULL;
		}
		goto fail;
	}
	*ret = (ze_module_handle_t)module;
	if (ret_log)
		*ret_log = (ze_module_build_log_handle_t)log;
	return SG_OK;
fail:
	if (module)
		free(module->bytes);
	free(module);
	if (log != &scratch)
		free(log);
	return result;
}

ze_result_t sg_zeModuleDestroy(ze_module_handle_t handle)
{
	struct sg_module *module = (struct sg_module *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (atomic_load(&module->live))
		sg_misuse("a module is destroyed before %u of its kernels",
			  atomic_load(&module->live));
	(void)dlclose(module->library);
	(void)close(module->fd);
	free(module->bytes);
	free(module);
	return SG_OK;
}

ze_result_t sg_zeModuleBuildLogDestroy(ze_module_build_log_handle_t log)
{
	SG_ENTER();
	SG_HANDLE(log);
	free(log);
	return SG_OK;
}

ze_result_t sg_zeModuleBuildLogGetString(ze_module_build_log_handle_t handle, size_t *size,
					 char *text)
{
	const struct build_log *log = (const struct build_log *)handle;
	size_t have;

	SG_ENTER_WITH(handle, size);
	have = strlen(log->text) + 1;
	if (text && *size)
		memcpy(text, log->text, *size < have ? *size : have);
	*size = have;
	return SG_OK;
}

/* Nothing is ever left to be linked. */
ze_result_t sg_zeModuleDynamicLink(uint32_t count, ze_module_handle_t *modules,
				   ze_module_build_log_handle_t *ret_log)
{
	SG_ENTER();
	SG_POINTER(!count || modules);
	if (ret_log && !(*ret_log = calloc(1, sizeof(struct build_log))))
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	return SG_OK;
}

ze_result_t sg_zeModuleGetNativeBinary(ze_module_handle_t handle, size_t *size, uint8_t *bytes)
{
	const struct sg_module *module = (const struct sg_module *)handle;

	SG_ENTER_WITH(handle, size);
	if (bytes)
		memcpy(bytes, module->bytes, *size < module->size ? *size : module->size);
	*size = module->size;
	return SG_OK;
}

ze_result_t sg_zeModuleGetKernelNames(ze_module_handle_t handle, uint32_t *count,
				      const char **names)
{
	const struct sg_module *module = (const struct sg_module *)handle;

	SG_ENTER_WITH(handle, count);
	SG_GIVE(count, names, module->count, names[i] = module->kernels[i].name);
	return SG_OK;
}

ze_result_t sg_zeModuleGetProperties(ze_module_handle_t handle, ze_module_properties_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	ret->flags = 0;
	return SG_OK;
}

ze_result_t sg_zeModuleGetFunctionPointer(ze_module_handle_t handle, const char *name, void **ret)
{
	SG_ENTER_WITH(handle, name && ret);
	*ret = dlsym(((struct sg_module *)handle)->library, name);
	return *ret ? SG_OK : ZE_RESULT_ERROR_INVALID_FUNCTION_NAME;
}

ze_result_t sg_zeModuleGetGlobalPointer(ze_module_handle_t handle, const char *name, size_t *size,
					void **ret)
{
	void *symbol;

	SG_ENTER_WITH(handle, name);
	symbol = dlsym(((struct sg_module *)handle)->library, name);
	if (!symbol)
		return ZE_RESULT_ERROR_INVALID_GLOBAL_NAME;
	if (ret)
		*ret = symbol;
	if (size) {
		const ElfW(Sym) *entry = NULL;
		Dl_info info;

		*size = dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) && entry
				? entry->st_size
				: 0;
	}
	return SG_OK;
}

ze_result_t sg_zeKernelCreate(ze_module_handle_t handle, const ze_kernel_desc_t *desc,
			      ze_kernel_handle_t *ret)
{
	struct sg_module *module = (struct sg_module *)handle;
	struct sg_kernel *kernel;

	SG_ENTER_WITH(handle, desc && desc->pKernelName && ret);
	for (uint32_t i = 0; i < module->count; i++) {
		if (strcmp(module->kernels[i].name, desc->pKernelName))
			continue;
		kernel = calloc(1, sizeof(*kernel));
		if (!kernel)
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		kernel->module = module;
		kernel->entry = &module->kernels[i];
		kernel->size[0] = kernel->size[1] = kernel->size[2] = 1;
		atomic_fetch_add(&module->live, 1);
		*ret = (ze_kernel_handle_t)kernel;
		return SG_OK;
	}
	return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
}

ze_result_t sg_zeKernelDestroy(ze_kernel_handle_t handle)
{
	struct sg_kernel *kernel = (struct sg_kernel *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	atomic_fetch_sub(&kernel->module->live, 1);
	free(kernel);
	return SG_OK;
}

enum { GROUP_MAX = 1024 };

ze_result_t sg_zeKernelSetGroupSize(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z)
{
	struct sg_kernel *kernel = (struct sg_kernel *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	if (!x || !y || !z || x > GROUP_MAX || y > GROUP_MAX || z > GROUP_MAX ||
	    (uint64_t)x * y * z > GROUP_MAX)
		return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
	kernel->size[0] = x;
	kernel->size[1] = y;
	kernel->size[2] = z;
	return SG_OK;
}

ze_result_t sg_zeKernelSuggestGroupSize(ze_kernel_handle_t handle, uint32_t x, uint32_t y,
					uint32_t z, uint32_t *ret_x, uint32_t *ret_y,
					uint32_t *ret_z)
{
	uint32_t best = 1;

	SG_ENTER_WITH(handle, ret_x && ret_y && ret_z);
	if (!x || !y || !z)
		return ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION;
	while (best < 256 && x % (best * 2) == 0)
		best *= 2;
	*ret_x = best;
	*ret_y = *ret_z = 1;
	return SG_OK;
}

ze_result_t sg_zeKernelSuggestMaxCooperativeGroupCount(ze_kernel_handle_t handle, uint32_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	*ret = 64;
	return SG_OK;
}

ze_result_t sg_zeKernelSetArgumentValue(ze_kernel_handle_t handle, uint32_t index, size_t size,
					const void *value)
{
	struct sg_kernel *kernel = (struct sg_kernel *)handle;
	unsigned char *arg;
	uint64_t local;

	SG_ENTER();
	SG_HANDLE(handle);
	if (index >= kernel->entry->args)
		return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
	if (value && (!size || size > SOFTGPU_ARG_SIZE))
		return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
	arg = kernel->args + (size_t)index * SOFTGPU_ARG_SIZE;
	memcpy(&local, arg + 8, sizeof(local));
	if (local >= SG_LOCAL_MARK)
		kernel->local -= local - SG_LOCAL_MARK;
	memset(arg, 0, SOFTGPU_ARG_SIZE);
	if (value) {
		memcpy(arg, value, size);
	} else {
		local = SG_LOCAL_MARK + ((size + 15) & ~(size_t)15);
		memcpy(arg + 8, &local, sizeof(local));
		kernel->local += local - SG_LOCAL_MARK;
	}
	return SG_OK;
}

ze_result_t sg_zeKernelSetIndirectAccess(ze_kernel_handle_t handle,
					 ze_kernel_indirect_access_flags_t flags)
{
	SG_ENTER();
	SG_HANDLE(handle);
	((struct sg_kernel *)handle)->access = flags;
	return SG_OK;
}

ze_result_t sg_zeKernelGetIndirectAccess(ze_kernel_handle_t handle,
					 ze_kernel_indirect_access_flags_t *ret)
{
	SG_ENTER_WITH(handle, ret);
	*ret = ((struct sg_kernel *)handle)->access;
	return SG_OK;
}

ze_result_t sg_zeKernelGetSourceAttributes(ze_kernel_handle_t handle, uint32_t *size, char **text)
{
	SG_ENTER_WITH(handle, size);
	if (text && *text && *size)
		**text = '\0';
	*size = 1;
	return SG_OK;
}

ze_result_t sg_zeKernelSetCacheConfig(ze_kernel_handle_t handle, ze_cache_config_flags_t flags)
{
	SG_ENTER();
	SG_HANDLE(handle);
	(void)flags;
	return SG_OK;
}

/* a driver's own: {stype, pNext, uint32_t registers} */
enum { REGISTER_FILE_EXTENSION = 0x00030012 };

ze_result_t sg_zeKernelGetProperties(ze_kernel_handle_t handle, ze_kernel_properties_t *ret)
{
	const struct softgpu_kernel *entry;

	SG_ENTER_WITH(handle, ret);
	entry = ((struct sg_kernel *)handle)->entry;
	ret->numKernelArgs = entry->args;
	ret->requiredGroupSizeX = ret->requiredGroupSizeY = ret->requiredGroupSizeZ = 0;
	ret->requiredNumSubGroups = ret->requiredSubgroupSize = 0;
	ret->maxSubgroupSize = entry->simd;
	ret->maxNumSubgroups = entry->simd ? GROUP_MAX / entry->simd : GROUP_MAX;
	ret->localMemSize = entry->local_bytes;
	ret->privateMemSize = entry->private_bytes;
	ret->spillMemSize = entry->spill_bytes;
	memset(&ret->uuid, 0, sizeof(ret->uuid));
	memcpy(ret->uuid.kid, entry->name, strnlen(entry->name, sizeof(ret->uuid.kid)));
	for (ze_base_properties_t *more = ret->pNext; more; more = more->pNext)
		if ((uint32_t)more->stype == REGISTER_FILE_EXTENSION)
			memcpy(more + 1, &entry->registers, sizeof(entry->registers));
	return SG_OK;
}

ze_result_t sg_zeKernelGetName(ze_kernel_handle_t handle, size_t *size, char *name)
{
	const struct softgpu_kernel *entry;
	size_t have;

	SG_ENTER_WITH(handle, size);
	entry = ((struct sg_kernel *)handle)->entry;
	have = strlen(entry->name) + 1;
	if (name && *size)
		memcpy(name, entry->name, *size < have ? *size : have);
	*size = have;
	return SG_OK;
}

ze_result_t sg_zexKernelGetBaseAddress(ze_kernel_handle_t handle, uint64_t *ret)
{
	SG_HANDLE(handle);
	SG_POINTER(ret);
	*ret = (uint64_t)(uintptr_t)((struct sg_kernel *)handle)->entry->run & ~0xfull;
	return SG_OK;
}
