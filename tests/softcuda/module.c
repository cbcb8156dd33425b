/* Modules and their functions: a kernel NAME is the function softcuda_NAME of the module, which is
 * a shared object, or of the program. An image that begins as PTX does is compiled "just in time".
 */
#include "driver.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_LOADED = 6, MODULE_UNLOAD_STARTING = 7 }; /* as CUPTI's resource callbacks */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t last_id;

static void compile(const struct sc_module *module, const void *image)
{
	uint64_t start = sc_now();

	if (strncmp(image, "//", 2) != 0 && strncmp(image, ".version", 8) != 0)
		return;
	SC_TELL(compiled, module, start, sc_now() + 1);
}

/* from an image, or from a file of that name */
struct sc_module *sc_module_make(const void *image, bool name)
{
	struct sc_module *module = calloc(1, sizeof(*module));

	module->id = atomic_fetch_add(&last_id, 1) + 1;
	module->handle = RTLD_DEFAULT;
	if (name) {
		module->handle = dlopen(image, RTLD_NOW | RTLD_LOCAL);
		if (!module->handle) {
			free(module);
			return NULL;
		}
	} else if (image) {
		compile(module, image);
	}
	SC_TELL(resource, MODULE_LOADED, sc_current(), NULL, module);
	return module;
}

struct sc_function *sc_function_find(struct sc_module *module, const char *name)
{
	struct sc_function *function;
	char symbol[SC_NAME_MAX + 32];
	void *info;

	(void)pthread_mutex_lock(&lock);
	for (function = module->functions; function; function = function->next)
		if (!strcmp(function->name, name))
			break;
	if (!function) {
		function = calloc(1, sizeof(*function));
		function->module = module;
		(void)snprintf(function->name, sizeof(function->name), "%s", name);
		(void)snprintf(symbol, sizeof(symbol), "softcuda_%s", name);
		*(void **)&function->run = dlsym(module->handle, symbol);
		(void)snprintf(symbol, sizeof(symbol), "softcuda_info_%s", name);
		info = dlsym(module->handle, symbol);
		function->info.registers = 32;
		function->sized = info != NULL;
		if (info)
			function->info = *(struct softcuda_info *)info;
		function->duration_ns = soft_duration_ns(function->name, 0);
		function->next = module->functions;
		module->functions = function;
	}
	(void)pthread_mutex_unlock(&lock);
	return function;
}

struct sc_function *sc_function_of(CUfunction handle)
{
	return (struct sc_function *)handle;
}

CUresult impl_cuModuleLoadData(CUmodule *module, const void *image)
{
	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	*module = (CUmodule)sc_module_make(image, false);
	return CUDA_SUCCESS;
}

CUresult impl_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
				 CUjit_option *options, void **optionValues)
{
	(void)numOptions, (void)options, (void)optionValues;
	return impl_cuModuleLoadData(module, image);
}

CUresult impl_cuModuleLoad(CUmodule *module, const char *fname)
{
	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	*module = (CUmodule)sc_module_make(fname, true);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
}

/* its functions may be on their way to be executed: they stay */
CUresult impl_cuModuleUnload(CUmodule hmod)
{
	if (!hmod)
		return CUDA_ERROR_INVALID_HANDLE;
	SC_TELL(resource, MODULE_UNLOAD_STARTING, sc_current(), NULL, hmod);
	return CUDA_SUCCESS;
}

CUresult impl_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct sc_function *function;

	if (!hmod || !name)
		return CUDA_ERROR_INVALID_VALUE;
	function = sc_function_find((struct sc_module *)hmod, name);
	if (!function->run)
		return CUDA_ERROR_NOT_FOUND;
	*hfunc = (CUfunction)function;
	return CUDA_SUCCESS;
}

CUresult impl_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
				void **jitOptionsValues, unsigned int numJitOptions,
				CUlibraryOption *libraryOptions, void **libraryOptionValues,
				unsigned int numLibraryOptions)
{
	(void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	if (sc_ready())
		return sc_ready();
	if (!code)
		return CUDA_ERROR_INVALID_VALUE;
	*library = (CUlibrary)sc_module_make(code, false);
	return CUDA_SUCCESS;
}

CUresult impl_cuLibraryUnload(CUlibrary library)
{
	return impl_cuModuleUnload((CUmodule)library);
}

CUresult impl_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	return impl_cuModuleGetFunction((CUfunction *)pKernel, (CUmodule)library, name);
}

CUresult impl_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	*pFunc = (CUfunction)kernel;
	return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult impl_cuFuncGetName(const char **name, CUfunction hfunc)
{
	if (!hfunc)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = sc_function_of(hfunc)->name;
	return CUDA_SUCCESS;
}

CUresult impl_cuKernelGetName(const char **name, CUkernel hfunc)
{
	return impl_cuFuncGetName(name, (CUfunction)hfunc);
}

CUresult impl_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	if (!hfunc)
		return CUDA_ERROR_INVALID_HANDLE;
	*hmod = (CUmodule)sc_function_of(hfunc)->module;
	return CUDA_SUCCESS;
}

CUresult impl_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	(void)attrib, (void)value;
	return hfunc ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult impl_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	const struct softcuda_info *info;

	if (!hfunc)
		return CUDA_ERROR_INVALID_HANDLE;
	info = &sc_function_of(hfunc)->info;
	switch ((int)attrib) {
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*pi = (int)info->registers;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*pi = (int)info->static_shared;
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*pi = (int)info->local_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*pi = 1024;
		break;
	default:
		*pi = 0;
	}
	return CUDA_SUCCESS;
}
