/*
 * The program that the built-in check traces: a little of one API. It ends with 0 if the API worked
 * as such.
 */
#include "doctor.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "itt_abi.h"

static void *function(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

/* As ITT's static part does: it opens the library that the variable names. */
static int itt(void)
{
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	static const __itt_id none;
	__typeof__(&__itt_domain_create) new_domain = function(library, "__itt_domain_create");
	__typeof__(&__itt_string_handle_create) new_name =
		function(library, "__itt_string_handle_create");
	__typeof__(&__itt_task_begin) begin = function(library, "__itt_task_begin");
	__typeof__(&__itt_task_end) end = function(library, "__itt_task_end");
	__itt_domain *domain;

	if (!new_domain || !new_name || !begin || !end)
		return 1;
	domain = new_domain("doctor");
	for (int i = 0; i < 3; i++) {
		begin(domain, none, none, new_name("task"));
		end(domain);
	}
	return 0;
}

static int level_zero(void)
{
	void *library = dlopen("libze_loader.so.1", RTLD_NOW);
	int (*init)(uint32_t) = function(library, "zeInit");
	int (*drivers)(uint32_t *, void *) = function(library, "zeDriverGet");
	uint32_t count = 0;

	return !init || !drivers || init(0) || drivers(&count, NULL) || !count;
}

static int cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = function(library, "cuInit");
	int (*devices)(int *) = function(library, "cuDeviceGetCount");
	int count = 0;

	return !init || !devices || init(0) || devices(&count) || !count;
}

static int mpi(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	/* in the way that a program's own calls go: the first of that name */
	int (*initialized)(int *) = library ? dlsym(RTLD_DEFAULT, "MPI_Initialized") : NULL;
	int flag = 1;

	return !initialized || initialized(&flag) || flag;
}

#ifdef XS_HAVE_OPENCL
#include <CL/cl.h>

/* A buffer is written on the first device. */
static int opencl(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
	__typeof__(&clGetPlatformIDs) platforms = function(library, "clGetPlatformIDs");
	__typeof__(&clGetDeviceIDs) devices = function(library, "clGetDeviceIDs");
	__typeof__(&clCreateContext) new_context = function(library, "clCreateContext");
	__typeof__(&clCreateCommandQueue) new_queue = function(library, "clCreateCommandQueue");
	__typeof__(&clCreateBuffer) new_buffer = function(library, "clCreateBuffer");
	__typeof__(&clEnqueueWriteBuffer) put = function(library, "clEnqueueWriteBuffer");
	__typeof__(&clFinish) finish = function(library, "clFinish");
	cl_command_queue queue;
	cl_platform_id platform[16];
	cl_device_id device = NULL;
	char bytes[64] = "";
	cl_context context;
	cl_uint count = 0;
	cl_mem buffer;
	cl_int error;

	if (!platforms || !devices || !new_context || !new_queue || !new_buffer || !put ||
	    !finish || platforms(16, platform, &count))
		return 1;
	for (cl_uint i = 0; i < count && i < 16 && !device; i++)
		(void)devices(platform[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = device ? new_context(NULL, 1, &device, NULL, NULL, &error) : NULL;
	queue = context ? new_queue(context, device, 0, &error) : NULL;
	buffer = queue ? new_buffer(context, CL_MEM_READ_WRITE, sizeof(bytes), NULL, &error) : NULL;
	return !buffer || put(queue, buffer, CL_FALSE, 0, sizeof(bytes), bytes, 0, NULL, NULL) ||
	       finish(queue);
}
#else
static int opencl(void)
{
	return 1;
}
#endif

int dr_probe(const char *kind, const char *library)
{
	if (!strcmp(kind, "itt"))
		return itt();
	if (!strcmp(kind, "opencl"))
		return opencl();
	if (!strcmp(kind, "level_zero"))
		return level_zero();
	if (!strcmp(kind, "cuda"))
		return cuda();
	return strcmp(kind, "mpi") || !library ? 2 : mpi(library);
}
