/*
 * What a call costs: nanoseconds of the caller's for the enqueue of an empty kernel, and for the
 * cheapest calls there are. clFinish is outside the timing, so the device's share is only the
 * contention for its queue ("enqueue_gated": not even that). Each line is "<name> <ns>", the
 * median over the batches; "<name>_finish" is the same with clFinish, so with the device's share.
 *
 *	cl_enqueue [BATCHES [CALLS]] [--profiling] [--depth N]	default 51 batches of 1000, under N
 *functions more
 */
#include <getopt.h>
#include "cl_app.h"

static const char source[] = "kernel void empty(int x) {}\n";

struct bench {
	struct cl_app cl;
	cl_command_queue queue;
	cl_kernel kernel;
	cl_mem buffer;
};

static void enqueue(struct bench *b)
{
	const size_t one = 1;

	clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &one, &one, 0, NULL, NULL);
}

static void enqueue_event(struct bench *b)
{
	const size_t one = 1;
	cl_event event;

	clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &one, &one, 0, NULL, &event);
	clReleaseEvent(event);
}

static void get_device_info(struct bench *b)
{
	cl_uint units;

	clGetDeviceInfo(b->cl.device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
}

static void retain_release(struct bench *b)
{
	clRetainMemObject(b->buffer);
	clReleaseMemObject(b->buffer);
}

static void set_kernel_arg(struct bench *b)
{
	const cl_int x = 0;

	clSetKernelArg(b->kernel, 0, sizeof(x), &x);
}

static const struct {
	const char *name;
	void (*call)(struct bench *b);
	bool enqueues, gated;
} cases[] = {
	{ "enqueue", enqueue, true, false },		 /* clEnqueueNDRangeKernel, no event */
	{ "enqueue_event", enqueue_event, true, false }, /* the same, and an event released */
	{ "enqueue_gated", enqueue, true, true },	 /* the device held back meanwhile */
	{ "get_device_info", get_device_info, false, false },
	{ "retain_release", retain_release, false, false }, /* two calls */
	{ "set_kernel_arg", set_kernel_arg, false, false },
};

struct result {
	double call, all;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, long n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

/* while the gate is shut the device is idle, so the caller has the machine to itself */
static cl_event shut_gate(struct bench *b)
{
	cl_int err;
	cl_event gate = clCreateUserEvent(b->cl.context, &err);

	CHECK(err);
	CHECK(clEnqueueMarkerWithWaitList(b->queue, 1, &gate, NULL));
	return gate;
}

static void open_gate(cl_event gate)
{
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK(clReleaseEvent(gate));
}

static struct result run_batch(struct bench *b, size_t i, long calls)
{
	cl_event gate = cases[i].gated ? shut_gate(b) : NULL;
	uint64_t begin = now_ns(), called, finished;

	for (long j = 0; j < calls; j++)
		cases[i].call(b);
	called = now_ns();
	if (gate)
		open_gate(gate);
	CHECK(clFinish(b->queue));
	finished = now_ns();
	return (struct result){ .call = (double)(called - begin) / (double)calls,
				.all = (double)(finished - begin) / (double)calls };
}

/* the cases take turns, so that a machine that slows down slows all of them */
static void run(struct bench *b, long batches, long calls)
{
	double *call[ARRAY_SIZE(cases)], *all[ARRAY_SIZE(cases)];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		call[i] = calloc((size_t)batches, sizeof(double));
		all[i] = calloc((size_t)batches, sizeof(double));
		if (!call[i] || !all[i])
			die("calloc");
		run_batch(b, i, calls); /* the first takes memory from the system */
	}
	for (long n = 0; n < batches; n++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct result result = run_batch(b, i, calls);

			call[i][n] = result.call;
			all[i][n] = result.all;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		printf("%s %.1f\n", cases[i].name, median(call[i], batches));
		if (cases[i].enqueues)
			printf("%s_finish %.1f\n", cases[i].name, median(all[i], batches));
		free(call[i]);
		free(all[i]);
	}
}

static long count_kernels(long batches, long calls)
{
	long n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		n += cases[i].enqueues ? (batches + 1) * calls : 0;
	return n;
}

static __attribute__((noinline)) void run_below(struct bench *b, long batches, long calls,
						long depth)
{
	if (depth > 0)
		run_below(b, batches, calls, depth - 1);
	else
		run(b, batches, calls);
	__asm__ volatile("" ::: "memory"); /* no tail call: each has its frame */
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "profiling", no_argument, NULL, 'p' },
						 { "depth", required_argument, NULL, 'd' },
						 { 0 } };
	cl_command_queue_properties properties = 0;
	long batches, calls, kernels, depth = 0;
	const cl_int x = 0;
	struct bench b;
	cl_int err;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			properties = CL_QUEUE_PROFILING_ENABLE;
		else if (c == 'd')
			depth = atol(optarg);
		else
			return 2;
	}
	batches = optind < argc ? atol(argv[optind++]) : 51;
	calls = optind < argc ? atol(argv[optind++]) : 1000;
	if (batches < 1 || calls < 1) {
		fprintf(stderr, "cl_enqueue: out of range\n");
		return 2;
	}

	cl_app_open(&b.cl, source);
	b.queue = clCreateCommandQueue(b.cl.context, b.cl.device, properties, &err);
	CHECK(err);
	b.kernel = cl_app_kernel(&b.cl, "empty");
	b.buffer = cl_app_buffer(&b.cl, 4096);
	CHECK(clSetKernelArg(b.kernel, 0, sizeof(x), &x));
	enqueue(&b); /* the first one compiles the work-group */
	CHECK(clFinish(b.queue));

	run_below(&b, batches, calls, depth);
	kernels = count_kernels(batches, calls) + 1;
	printf("expected: %ld kernels empty\nexpected: %ld kernels\n", kernels, kernels);
	printf("expected: %ld markers\n", batches + 1);
	CHECK(clReleaseMemObject(b.buffer));
	CHECK(clReleaseKernel(b.kernel));
	CHECK(clReleaseCommandQueue(b.queue));
	cl_app_close(&b.cl);
	return 0;
}
