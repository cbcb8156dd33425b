/*
 * An OpenCL program that is slow in the way of your choice; docs/COOKBOOK.md finds out which.
 *
 *	cc -O1 -o slow_cl slow_cl.c -lOpenCL
 *	./slow_cl MODE [N [SIZE]]	N launches of a kernel that does SIZE units of work
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char source[] = "kernel void work(global float *data, int size)\n"
			     "{\n"
			     "	float x = get_global_id(0);\n"
			     "	for (int i = 0; i < size * 1000; i++)\n"
			     "		x = x * 0.999f + VALUE;\n"
			     "	data[get_global_id(0)] = x;\n"
			     "}\n";

enum { ITEMS = 256 };

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem data;
static int n = 50, size = 10;
static float *host;
static size_t bytes = 4 << 20;

static void check(cl_int error, const char *what)
{
	if (error) {
		fprintf(stderr, "slow_cl: %s: error %d\n", what, error);
		exit(1);
	}
}

static void build(int value)
{
	const char *text = source;
	char options[64];
	cl_int error;
	cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);

	check(error, "program");
	snprintf(options, sizeof options, "-DVALUE=%d.0f", value);
	check(clBuildProgram(program, 1, &device, options, NULL, NULL), "build");
	kernel = clCreateKernel(program, "work", &error);
	check(error, "kernel");
	check(clSetKernelArg(kernel, 0, sizeof data, &data), "argument");
	check(clSetKernelArg(kernel, 1, sizeof size, &size), "argument");
}

static void launch(void)
{
	size_t items = ITEMS;

	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
	      "launch");
	clFlush(queue);
}

/* stands for work of the host's own */
static void compute(int us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

/* ---- the ways to be slow ---- */

static void good(void)
{
	for (int i = 0; i < n; i++)
		launch();
}

static void idle(void)
{
	for (int i = 0; i < n; i++) {
		compute(3000); /* the device has nothing to do meanwhile */
		launch();
	}
}

static void waits(void)
{
	for (int i = 0; i < n; i++) {
		launch();
		clFinish(queue);
		compute(100); /* looks at the result */
	}
}

static void copies(void)
{
	for (int i = 0; i < n; i++) {
		check(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, bytes, host, 0, NULL, NULL),
		      "write");
		launch();
	}
}

static void small(void)
{
	int tiny = 0;

	check(clSetKernelArg(kernel, 1, sizeof tiny, &tiny), "argument");
	for (int i = 0; i < 400 * n; i++)
		launch();
}

static void builds(void)
{
	for (int i = 0; i < n; i++) {
		build(i + 2);
		launch();
		clFinish(queue);
	}
}

static const struct mode {
	const char *name;
	void (*run)(void);
	const char *what;
} modes[] = {
	{ "good", good, "launches all, then waits once" },
	{ "idle", idle, "computes on the host before each launch" },
	{ "waits", waits, "waits after each launch" },
	{ "copies", copies, "copies and waits for it before each launch" },
	{ "small", small, "launches kernels that have nearly nothing to do" },
	{ "builds", builds, "builds its program anew before each launch" },
};

int main(int argc, char **argv)
{
	size_t mode = 0, count = sizeof modes / sizeof *modes;
	cl_platform_id platform;
	cl_int error;

	while (mode < count && (argc < 2 || strcmp(argv[1], modes[mode].name) != 0))
		mode++;
	if (mode == count) {
		fprintf(stderr, "usage: slow_cl MODE [N [SIZE]]\n");
		for (size_t i = 0; i < count; i++)
			fprintf(stderr, "  %-8s%s\n", modes[i].name, modes[i].what);
		return 2;
	}
	n = argc > 2 ? atoi(argv[2]) : n;
	size = argc > 3 ? atoi(argv[3]) : size;
	host = calloc(1, bytes);
	check(clGetPlatformIDs(1, &platform, NULL), "no OpenCL platform");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no OpenCL device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "context");
	queue = clCreateCommandQueue(context, device, 0, &error);
	check(error, "queue");
	data = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
	check(error, "buffer");
	build(1);
	launch(); /* the first one prepares the device */
	clFinish(queue);
	modes[mode].run();
	clFinish(queue);
	printf("done\n");
	return 0;
}
