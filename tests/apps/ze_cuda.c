/*
 * One program with devices of several APIs: ze_cuda N launches N kernels of Level Zero and N of
 * CUDA, in turn. CUDA's driver is opened at run time, and called by the ABI of cuda.h. With a third
 * word OpenCL's first device gets N copies, too; it is opened and called likewise.
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

static void *function_of(const char *library, const char *name)
{
	void *opened = dlopen(library, RTLD_NOW), *found = opened ? dlsym(opened, name) : NULL;

	if (!found) {
		fprintf(stderr, "%s is missing\n", name);
		exit(98);
	}
	return found;
}

static void *function(const char *name)
{
	return function_of("libcuda.so.1", name);
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

/* A queue of OpenCL's first device, and a buffer of 64 bytes. */
static void open_opencl(void **ret_queue, void **ret_buffer)
{
	int (*platforms)(unsigned, void **, void *);
	int (*devices)(void *, unsigned long, unsigned, void **, void *), error;
	void *(*make_context)(void *, unsigned, void **, void *, void *, int *);
	void *(*make_queue)(void *, void *, unsigned long, int *);
	void *(*make_buffer)(void *, unsigned long, size_t, void *, int *);
	void *platform, *device, *context;

	*(void **)&platforms = function_of("libOpenCL.so.1", "clGetPlatformIDs");
	*(void **)&devices = function_of("libOpenCL.so.1", "clGetDeviceIDs");
	*(void **)&make_context = function_of("libOpenCL.so.1", "clCreateContext");
	*(void **)&make_queue = function_of("libOpenCL.so.1", "clCreateCommandQueue");
	*(void **)&make_buffer = function_of("libOpenCL.so.1", "clCreateBuffer");
	check("clGetPlatformIDs", platforms(1, &platform, NULL));
	check("clGetDeviceIDs", devices(platform, 0xffffffff, 1, &device, NULL));
	context = make_context(NULL, 1, &device, NULL, NULL, &error);
	check("clCreateContext", error);
	*ret_queue = make_queue(context, device, 0, &error);
	check("clCreateCommandQueue", error);
	*ret_buffer = make_buffer(context, 1, 64, NULL, &error);
	check("clCreateBuffer", error);
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
	int (*wait)(void), (*finish)(void *) = NULL;
	int (*write)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *,
		     void *) = NULL;
	void *queue = NULL, *buffer = NULL;
	char data[64] = { 0 };

	ze_app_open(&app, 0, -1);
	kernel = ze_app_kernel(&app, "empty");
	list = ze_app_immediate(&app, 0, 0, false);
	cuda = open_cuda();
	*(void **)&launch = function("cuLaunchKernel");
	*(void **)&wait = function("cuCtxSynchronize");
	if (argc > 2) {
		open_opencl(&queue, &buffer);
		*(void **)&write = function_of("libOpenCL.so.1", "clEnqueueWriteBuffer");
		*(void **)&finish = function_of("libOpenCL.so.1", "clFinish");
	}
	for (int i = 0; i < count; i++) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
		check("cuLaunchKernel", launch(cuda, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		check("cuCtxSynchronize", wait());
		if (!queue)
			continue;
		check("clEnqueueWriteBuffer",
		      write(queue, buffer, 0, 0, sizeof(data), data, 0, NULL, NULL));
		check("clFinish", finish(queue));
	}
	printf("launched %d and %d kernels\n", count, count);
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	return 0;
}
