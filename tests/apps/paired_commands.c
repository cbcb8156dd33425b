/*
 * Steps of device commands: how much of the processors' time, of all
 * threads, they take with and without a tracer says what the commands cost. `paired_commands
 * STEPS`: prints "step <ns>" for each. tests/test_overhead.py compiles it for OpenCL and, with
 * PAIRED_ZE, for Level Zero.
 */
#include "app.h"

#define COMMANDS 100

#ifdef PAIRED_ZE
#include <level_zero/ze_api.h>

#define NEED(call)                \
	do {                      \
		if (call)         \
			exit(77); \
	} while (0)

static ze_command_list_handle_t list;
static unsigned char *from, *to;

static void begin(void)
{
	ze_context_desc_t context_desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC };
	ze_host_mem_alloc_desc_t host = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	ze_driver_handle_t driver;
	ze_device_handle_t device;
	ze_context_handle_t context;
	uint32_t one = 1;

	NEED(zeInit(0) || zeDriverGet(&one, &driver) || zeDeviceGet(driver, &one, &device));
	NEED(zeContextCreate(driver, &context_desc, &context));
	NEED(zeCommandListCreateImmediate(context, device, &desc, &list));
	NEED(zeMemAllocHost(context, &host, 64, 64, (void **)&from));
	NEED(zeMemAllocHost(context, &host, 64, 64, (void **)&to));
}

static void command(void)
{
	NEED(zeCommandListAppendMemoryCopy(list, to, from, 64, NULL, 0, NULL));
}

/* The software GPU runs them in the call, and what has run is harvested 64 at a time. */
static void finish(void)
{
}

static void end(void)
{
	NEED(zeCommandListDestroy(list));
}
#else
#include "cl_app.h"

static cl_command_queue queue;
static cl_kernel kernel;
static struct cl_app cl;
static cl_event gate;

static void begin(void)
{
	const cl_int x = 0;
	cl_int error;

	cl_app_open(&cl, "kernel void empty(int x) {}\n");
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &error);
	CHECK(error);
	kernel = cl_app_kernel(&cl, "empty");
	CHECK(clSetKernelArg(kernel, 0, sizeof(x), &x));
}

/* They are held back until all are there: the device's threads and this one are not in each other's
   way. */
static void command(void)
{
	const size_t one = 1;
	cl_int error;

	if (!gate) {
		gate = clCreateUserEvent(cl.context, &error);
		CHECK(error);
		CHECK(clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL));
	}
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
}

static void finish(void)
{
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK(clFinish(queue));
	CHECK(clReleaseEvent(gate));
	gate = NULL;
}

static void end(void)
{
	CHECK(clReleaseCommandQueue(queue));
}
#endif

static uint64_t used_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1;

	begin();
	for (int s = 0; s < steps; s++) {
		uint64_t start = used_ns();

		for (int i = 0; i < COMMANDS; i++)
			command();
		finish();
		printf("step %lu\n", (unsigned long)(used_ns() - start));
	}
	end();
	return 0;
}
