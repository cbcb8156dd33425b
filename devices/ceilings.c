/*
 * xstrace-ceilings: what a device can do, as roofline.py wants to know it.
 *
 *	xstrace-ceilings [N] > device.csv
 *
 * N: the number of a device in OpenCL's order, as --device-list shows it (default: the first GPU,
 * or 0). Each figure is the best of some runs of a kernel that does nothing else, divided by the
 * device's own time for it (CL_PROFILING_COMMAND_START to _END):
 *
 *	GFLOP/s: work items x steps x 8 chains x elements of the vector x 2 operations / ns
 *	GB/s: bytes that work items read / ns, from ranges that fit the level and no nearer one
 *
 * The width of the vectors is the one with which the device is fastest.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>

#include "streams.h"

#define MAX	    32u
#define ROUNDS	    3
#define LONG_ENOUGH 10000000.0 /* ns of a run: the clock of a device may have steps of a us */
#define GROUP	    64u
#define NEAR	    16384u	 /* bytes of a group that stay in the nearest cache */
#define MEMORY	    (256u << 20) /* at least, and four times the cache */

/* Functions of the loader that we call. */
#define FUNCTIONS(X)                 \
	X(clGetPlatformIDs)          \
	X(clGetDeviceIDs)            \
	X(clGetDeviceInfo)           \
	X(clCreateContext)           \
	X(clCreateCommandQueue)      \
	X(clCreateBuffer)            \
	X(clReleaseMemObject)        \
	X(clEnqueueFillBuffer)       \
	X(clCreateProgramWithSource) \
	X(clBuildProgram)            \
	X(clReleaseProgram)          \
	X(clCreateKernel)            \
	X(clReleaseKernel)           \
	X(clSetKernelArg)            \
	X(clEnqueueNDRangeKernel)    \
	X(clWaitForEvents)           \
	X(clGetEventProfilingInfo)   \
	X(clReleaseEvent)
#define MEMBER(name) __typeof__(&name) name;
static struct {
	FUNCTIONS(MEMBER)
} cl;

static struct {
	cl_device_id id;
	cl_context context;
	cl_command_queue queue;
	cl_uint units;
	cl_ulong cache, memory;
	char extensions[16384], name[256];
} device;

static const char source[] =
	"__kernel void work(__global T *out, float a, float b, int steps)\n"
	"{\n"
	"	S by = (S)a, plus = (S)b;\n"
	"	T c0 = (T)((S)(get_global_id(0) % 7u)), c1 = c0 + plus, c2 = c1 + plus;\n"
	"	T c3 = c2 + plus, c4 = c3 + plus, c5 = c4 + plus, c6 = c5 + plus, c7 = c6 + plus;\n"
	"	for (int i = 0; i < steps; i++) {\n"
	"		c0 = mad(c0, (T)by, (T)plus);\n"
	"		c1 = mad(c1, (T)by, (T)plus);\n"
	"		c2 = mad(c2, (T)by, (T)plus);\n"
	"		c3 = mad(c3, (T)by, (T)plus);\n"
	"		c4 = mad(c4, (T)by, (T)plus);\n"
	"		c5 = mad(c5, (T)by, (T)plus);\n"
	"		c6 = mad(c6, (T)by, (T)plus);\n"
	"		c7 = mad(c7, (T)by, (T)plus);\n"
	"	}\n"
	"	T sum = c0 + c1 + c2 + c3 + c4 + c5 + c6 + c7;\n"
	"	out[get_global_id(0)] = sum;\n"
	"}\n"
	/* each pass begins elsewhere: it cannot be taken for the one before it */
	"__kernel void get(__global const T *in, __global T *out, ulong count, int passes, int "
	"own)\n"
	"{\n"
	"	size_t at = own ? get_local_id(0) : get_global_id(0);\n"
	"	size_t step = own ? get_local_size(0) : get_global_size(0);\n"
	"	T sum = (T)((S)0);\n"
	"	if (own)\n"
	"		in += get_group_id(0) * count;\n"
	"	for (int p = 0; p < passes; p++)\n"
	"		for (ulong i = at; i + 1 < count; i += step)\n"
	"			sum += in[i + (p & 1)];\n"
	"	out[get_global_id(0)] = sum;\n"
	"}\n";

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("xstrace-ceilings: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(1);
}

static void check(cl_int result, const char *what)
{
	if (result)
		fail("%s: OpenCL's error %d", what, result);
}

static void load(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);

	if (!library)
		fail("OpenCL's loader (libOpenCL.so.1) is not installed");
#define LOOK_UP(name)                               \
	*(void **)&cl.name = dlsym(library, #name); \
	if (!cl.name)                               \
		fail("libOpenCL.so.1 has no %s", #name);
	FUNCTIONS(LOOK_UP)
}

/* which: negative: the first GPU, else the first device. */
static void choose(int which)
{
	cl_device_id all[MAX * MAX], found;
	cl_platform_id platforms[MAX];
	cl_uint platform_count = 0, count = 0;
	cl_device_type type = 0;

	if (cl.clGetPlatformIDs(MAX, platforms, &platform_count))
		platform_count = 0;
	for (cl_uint i = 0; i < platform_count && i < MAX; i++) {
		cl_uint more = 0;

		if (!cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX, all + count, &more))
			count += more < MAX ? more : MAX;
	}
	if (!count)
		fail("OpenCL has no device");
	if (which >= (int)count)
		fail("OpenCL has devices 0 to %u, no %d", count - 1, which);
	found = all[which < 0 ? 0 : which];
	for (cl_uint i = 0; which < 0 && i < count; i++)
		if (!cl.clGetDeviceInfo(all[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL) &&
		    type & CL_DEVICE_TYPE_GPU) {
			found = all[i];
			break;
		}
	device.id = found;
}

static void open_device(void)
{
	cl_int error;

#define ASK(what, where) (void)cl.clGetDeviceInfo(device.id, what, sizeof(where), &where, NULL)
	ASK(CL_DEVICE_MAX_COMPUTE_UNITS, device.units);
	ASK(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, device.cache);
	ASK(CL_DEVICE_MAX_MEM_ALLOC_SIZE, device.memory);
	ASK(CL_DEVICE_EXTENSIONS, device.extensions);
	ASK(CL_DEVICE_NAME, device.name);
	device.name[sizeof(device.name) - 1] = '\0';
	device.extensions[sizeof(device.extensions) - 1] = '\0';
	device.context = cl.clCreateContext(NULL, 1, &device.id, NULL, NULL, &error);
	check(error, "clCreateContext");
	device.queue = cl.clCreateCommandQueue(device.context, device.id, CL_QUEUE_PROFILING_ENABLE,
					       &error);
	check(error, "clCreateCommandQueue");
}

/* NULL: the device does not compile it. */
static cl_kernel compile(const char *name, const char *scalar, unsigned width, cl_program *program)
{
	const char *text = source;
	char options[128], vector[16] = "";
	cl_int error;

	if (width > 1)
		(void)snprintf(vector, sizeof(vector), "%u", width);
	(void)snprintf(options, sizeof(options), "-w -DS=%s -DT=%s%s -cl-mad-enable", scalar,
		       scalar, vector);
	*program = cl.clCreateProgramWithSource(device.context, 1, &text, NULL, &error);
	check(error, "clCreateProgramWithSource");
	if (cl.clBuildProgram(*program, 1, &device.id, options, NULL, NULL))
		return NULL;
	return cl.clCreateKernel(*program, name, &error);
}

static cl_mem buffer(size_t size)
{
	const cl_uint zero = 0;
	cl_int error;
	cl_mem made = cl.clCreateBuffer(device.context, CL_MEM_READ_WRITE, size, NULL, &error);

	check(error, "clCreateBuffer");
	/* a page that was never written may be one that all share */
	check(cl.clEnqueueFillBuffer(device.queue, made, &zero, sizeof(zero), 0, size, 0, NULL,
				     NULL),
	      "clEnqueueFillBuffer");
	return made;
}

static double run(cl_kernel kernel, size_t items)
{
	const size_t group = GROUP;
	cl_ulong start = 0, end = 0;
	cl_event event;

	check(cl.clEnqueueNDRangeKernel(device.queue, kernel, 1, NULL, &items, &group, 0, NULL,
					&event),
	      "clEnqueueNDRangeKernel");
	check(cl.clWaitForEvents(1, &event), "clWaitForEvents");
	check(cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
					 NULL),
	      "clGetEventProfilingInfo");
	check(cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL),
	      "clGetEventProfilingInfo");
	(void)cl.clReleaseEvent(event);
	return (double)(end - start);
}

/* What one step costs, best of some runs; `at` is the argument that says how many steps. */
static double best(cl_kernel kernel, size_t items, cl_uint at)
{
	double shortest = 0;
	cl_int steps = 1;

	for (;; steps *= 4) {
		check(cl.clSetKernelArg(kernel, at, sizeof(steps), &steps), "clSetKernelArg");
		shortest = run(kernel, items);
		if (shortest >= LONG_ENOUGH || steps > 1 << 26)
			break;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double ns = run(kernel, items);

		shortest = ns < shortest ? ns : shortest;
	}
	return shortest / steps;
}

static double peak(const char *scalar, size_t size)
{
	const size_t items = (size_t)device.units * GROUP * 16;
	const cl_float by = 0.999f, plus = 0.001f;
	double fastest = 0;

	for (unsigned width = 1; width <= 16; width *= 4) {
		cl_program program;
		cl_kernel kernel = compile("work", scalar, width, &program);
		cl_mem out;
		double rate;

		if (kernel) {
			out = buffer(items * size * width);
			check(cl.clSetKernelArg(kernel, 0, sizeof(out), &out), "clSetKernelArg");
			check(cl.clSetKernelArg(kernel, 1, sizeof(by), &by), "clSetKernelArg");
			check(cl.clSetKernelArg(kernel, 2, sizeof(plus), &plus), "clSetKernelArg");
			rate = (double)items * 8 * width * 2 / best(kernel, items, 3);
			fastest = rate > fastest ? rate : fastest;
			(void)cl.clReleaseMemObject(out);
			(void)cl.clReleaseKernel(kernel);
		}
		(void)cl.clReleaseProgram(program);
	}
	return fastest;
}

/* own: each group has its own range of so many bytes; else all share one. */
static double bandwidth(size_t bytes, bool own)
{
	const size_t groups = (size_t)device.units * 16, items = groups * GROUP;
	const cl_int is_own = own;
	cl_mem in = buffer(own ? groups * bytes : bytes);
	double fastest = 0;

	for (unsigned width = 1; width <= 16; width *= 4) {
		cl_program program;
		cl_kernel kernel = compile("get", "float", width, &program);
		const cl_ulong count = bytes / sizeof(cl_float) / width;
		cl_mem out;
		double rate;

		if (kernel) {
			out = buffer(items * sizeof(cl_float) * width);
			check(cl.clSetKernelArg(kernel, 0, sizeof(in), &in), "clSetKernelArg");
			check(cl.clSetKernelArg(kernel, 1, sizeof(out), &out), "clSetKernelArg");
			check(cl.clSetKernelArg(kernel, 2, sizeof(count), &count),
			      "clSetKernelArg");
			check(cl.clSetKernelArg(kernel, 4, sizeof(is_own), &is_own),
			      "clSetKernelArg");
			rate = (double)(own ? groups * bytes : bytes) / best(kernel, items, 3);
			fastest = rate > fastest ? rate : fastest;
			(void)cl.clReleaseMemObject(out);
			(void)cl.clReleaseKernel(kernel);
		}
		(void)cl.clReleaseProgram(program);
	}
	(void)cl.clReleaseMemObject(in);
	return fastest;
}

static void print(const char *key, double value)
{
	if (value > 0)
		printf("%s,%.1f\n", key, value);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t memory = MEMORY;
	char *end = NULL;
	long which = argc > 1 ? strtol(argv[1], &end, 10) : -1;

	if (argc > 2 || (argc > 1 && (*end || end == argv[1] || which < 0 || which > 1023)))
		fail("takes the number of a device of OpenCL, as --device-list shows it, or "
		     "nothing");
	load();
	choose((int)which);
	open_device();
	for (char *at = device.name; *at; at++)
		if (*at == '"' || (unsigned char)*at < ' ')
			*at = ' ';
	printf("PlatformName,\"%s\"\n", device.name);
	if (strstr(device.extensions, "cl_khr_fp16"))
		print("FP16_GFLOPS", peak("half", 2));
	print("FP32_GFLOPS", peak("float", 4));
	if (strstr(device.extensions, "cl_khr_fp64"))
		print("FP64_GFLOPS", peak("double", 8));
	while (memory < 4 * device.cache)
		memory *= 2;
	if (memory > device.memory)
		memory = device.memory / (16 * sizeof(cl_float)) * (16 * sizeof(cl_float));
	print("GPU_MEMORY_BW_in_GB_per_sec", bandwidth(memory, false));
	if (device.cache >= 4 * NEAR)
		print("L3_BW_in_GB_per_sec", bandwidth(device.cache / 2 / (32 * sizeof(cl_float)) *
							       (32 * sizeof(cl_float)),
						       false));
	print("L1_BW_in_GB_per_sec", bandwidth(NEAR, true));
	return xs_printed("xstrace-ceilings") ? 0 : 1;
}
