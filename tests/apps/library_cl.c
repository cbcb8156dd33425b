/*
 * A program that contains xstrace and uses OpenCL: LAUNCHES kernels within a trace, PATH.
 *
 *	library_cl PATH LAUNCHES [parts]
 *
 * parts: LAUNCHES kernels within a range, with the host, the devices, and nothing switched off.
 */
#include "cl_app.h"
#include "xstrace/xstrace.h"

static const char source[] = "kernel void grow(global int *c) { c[get_global_id(0)] += 1; }\n";

static void launch(cl_command_queue queue, cl_kernel kernel, int launches)
{
	size_t size = 64;

	for (int i = 0; i < launches; i++)
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
	CHECK(clFinish(queue));
}

static void parts(cl_command_queue queue, cl_kernel kernel, int launches)
{
	static const struct {
		const char *name;
		uint32_t off;
	} phases[] = { { "host off", XSTRACE_CPU },
		       { "devices off", XSTRACE_XPU },
		       { "all on", 0 } };

	xstrace_range_push("open");
	for (size_t i = 0; i < 3; i++) {
		if (phases[i].off && xstrace_toggle_collection(false, phases[i].off))
			printf("off: %s\n", xstrace_why());
		xstrace_range_push(phases[i].name);
		launch(queue, kernel, launches);
		xstrace_range_pop();
		if (phases[i].off && xstrace_toggle_collection(true, phases[i].off))
			printf("on: %s\n", xstrace_why());
	}
	xstrace_range_pop();
}

int main(int argc, char **argv)
{
	int launches = argc > 2 ? atoi(argv[2]) : 10, kernels = 0, calls = 0;
	struct xstrace_trace *trace;
	struct xstrace_event event;
	cl_command_queue queue;
	size_t size = 64;
	struct cl_app cl;
	cl_kernel grow;
	cl_mem buffer;
	cl_int err;

	if (xstrace_prepare(NULL))
		printf("prepare: %s\n", xstrace_why());
	cl_app_open(&cl, source);
	queue = clCreateCommandQueue(cl.context, cl.device, 0, &err);
	CHECK(err);
	buffer = cl_app_buffer(&cl, size * sizeof(cl_int));
	grow = cl_app_kernel(&cl, "grow");
	CHECK(clSetKernelArg(grow, 0, sizeof(buffer), &buffer));
	if (xstrace_start())
		printf("start: %s\n", xstrace_why());
	if (argc > 3)
		parts(queue, grow, launches);
	else
		launch(queue, grow, launches);
	if (xstrace_stop(&trace))
		printf("stop: %s\n", xstrace_why());
	for (size_t i = 0; i < xstrace_trace_count(trace); i++) {
		REQUIRE(!xstrace_trace_event(trace, i, &event));
		kernels += event.type == XSTRACE_CONCURRENT_KERNEL;
		calls += event.type == XSTRACE_XPU_RUNTIME &&
			 !strcmp(event.name, "clEnqueueNDRangeKernel");
	}
	printf("kernels %d, calls %d\n", kernels, calls);
	if (argc > 1 && xstrace_trace_save(trace, argv[1]))
		printf("save: %s\n", xstrace_why());
	xstrace_trace_free(trace);
	CHECK(clReleaseKernel(grow));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseCommandQueue(queue));
	cl_app_close(&cl);
	return 0;
}
