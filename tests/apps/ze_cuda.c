/*
 * One program with devices of both: ze_cuda N launches N kernels of Level Zero and N of CUDA, in
 * turn. CUDA's driver is opened at run time, and called by the ABI of cuda.h.
 */
#include "ze_app.h"

#include <dlfcn.h>

/* What the software CUDA runs as the kernel "nothing"; a GPU's driver compiles the PTX. */
__attribute__((visibility("default"))) void softcuda_nothing(void **args, const unsigned grid[3],
							     const unsigned block[3]);

void softcuda_nothing(void **args, const unsigned grid[3], const unsigned block[3])
{
	(void)args, (void)grid, (void)block;
}

static void *function(const char *name)
{
	static void *library;
	void *found;

	library = library ? library : dlopen("libcuda.so.1", RTLD_NOW);
	found = library ? dlsym(library, name) : NULL;
	if (!found) {
		fprintf(stderr, "%s is missing\n", name);
		exit(98);
	}
	return found;
}

static void check(const char *what, int result)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	exit(98);
}

static void *open_cuda(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				  ".visible .entry nothing() { ret; }\n";
	int (*init)(unsigned), (*retain)(void **, int), (*load)(void **, const void *);
	int (*find)(void **, void *, const char *), (*set)(void *);
	void *context, *module, *kernel;

	*(void **)&init = function("cuInit");
	*(void **)&retain = function("cuDevicePrimaryCtxRetain");
	*(void **)&set = function("cuCtxSetCurrent");
	*(void **)&load = function("cuModuleLoadData");
	*(void **)&find = function("cuModuleGetFunction");
	check("cuInit", init(0));
	check("cuDevicePrimaryCtxRetain", retain(&context, 0));
	check("cuCtxSetCurrent", set(context));
	check("cuModuleLoadData", load(&module, ptx));
	check("cuModuleGetFunction", find(&kernel, module, "nothing"));
	return kernel;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	void *cuda;
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	struct ze_app app;
	int (*wait)(void);

	ze_app_open(&app, 0, -1);
	kernel = ze_app_kernel(&app, "empty");
	list = ze_app_immediate(&app, 0, 0, false);
	cuda = open_cuda();
	*(void **)&launch = function("cuLaunchKernel");
	*(void **)&wait = function("cuCtxSynchronize");
	for (int i = 0; i < count; i++) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
		check("cuLaunchKernel", launch(cuda, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		check("cuCtxSynchronize", wait());
	}
	printf("launched %d and %d kernels\n", count, count);
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	return 0;
}
