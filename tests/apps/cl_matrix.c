/*
 * Every kind of command on every kind of queue, with its events used in every way: the program
 * checks what it computes, and that nobody changed what it sees of its own objects (a tracer turns
 * profiling on, asks for events and holds them). Any surprise ends it with status 1.
 *
 *	cl_matrix [OPTION...]
 *	--queue in-order | out-of-order | several
 *		several: three in-order queues taken in turn
 *	--no-profiling
 *		the queues are made without it
 *	--create list | legacy | null
 *		clCreateCommandQueueWithProperties with a list of properties or (plain queues only)
 *		with NULL, or clCreateCommandQueue
 *	--events none | held | waited | callbacks | released
 *		released: right after the call, with a callback still to come
 *	--end return | callback-exit | _exit
 *		the latter two with status 7 and work in flight
 *	--rounds N
 *		default 3
 *	--svm
 *		commands on shared virtual memory too
 *
 * Dependencies between commands are wait lists where events are at hand, else barriers (out of
 * order) or clFinish (several queues).
 */
#include <getopt.h>
#include "cl_app.h"

#define SIDE 64
#define COUNT (SIDE * SIDE)
#define BYTES (COUNT * sizeof(cl_int))
#define MAX_QUEUES 3
#define MAX_TAKEN 64
#define POISON ((cl_event)0x5a5a)

static const char source[] =
	"kernel void add(global const int *a, global const int *b, global int *c)\n"
	"{ size_t i = get_global_id(0); c[i] = a[i] + b[i]; }\n"
	"kernel void scale(global int *c) { c[get_global_id(0)] *= 2; }\n"
	"kernel void tile(global int *c) { c[get_global_id(1) * 64 + get_global_id(0)] += 1; }\n"
	"kernel void box(global int *c)\n"
	"{ c[(get_global_id(2) * 16 + get_global_id(1)) * 16 + get_global_id(0)] -= 1; }\n"
	"kernel void gated(global int *c) { c[get_global_id(0)] += 10; }\n"
	"kernel void last(global int *c)\n"
	"{ int x = c[get_global_id(0)];\n"
	"  for (int i = 0; i < 2000; i++) x = x * 5 + 1; c[get_global_id(0)] = x; }\n";

enum queue_kind { IN_ORDER, OUT_OF_ORDER, SEVERAL };
enum create { CREATE_LIST, CREATE_LEGACY, CREATE_NULL };
enum policy { NONE, HELD, WAITED, CALLBACKS, RELEASED };
enum end { END_RETURN, END_CALLBACK, END_EXIT };
enum kernel { ADD, SCALE, TILE, BOX, GATED, LAST, KERNELS };

static const char *const queue_names[] = {"in-order", "out-of-order", "several", NULL};
static const char *const create_names[] = {"list", "legacy", "null", NULL};
static const char *const policy_names[] = {"none", "held", "waited", "callbacks", "released", NULL};
static const char *const end_names[] = {"return", "callback-exit", "_exit", NULL};
static const char *const kernel_names[] = {"add", "scale", "tile", "box", "gated", "last"};

static const struct {
	cl_command_type type;
	const char *kind;
} kinds[] = {
	{CL_COMMAND_NDRANGE_KERNEL, "kernels"},
	{CL_COMMAND_WRITE_BUFFER, "writes"},
	{CL_COMMAND_WRITE_BUFFER_RECT, "writes"},
	{CL_COMMAND_READ_BUFFER, "reads"},
	{CL_COMMAND_READ_BUFFER_RECT, "reads"},
	{CL_COMMAND_COPY_BUFFER, "copies"},
	{CL_COMMAND_COPY_BUFFER_RECT, "copies"},
	{CL_COMMAND_SVM_MEMCPY, "copies"},
	{CL_COMMAND_FILL_BUFFER, "fills"},
	{CL_COMMAND_SVM_MEMFILL, "fills"},
	{CL_COMMAND_MAP_BUFFER, "maps"},
	{CL_COMMAND_SVM_MAP, "maps"},
	{CL_COMMAND_UNMAP_MEM_OBJECT, "unmaps"},
	{CL_COMMAND_SVM_UNMAP, "unmaps"},
	{CL_COMMAND_MARKER, "markers"},
	{CL_COMMAND_BARRIER, "barriers"},
	{CL_COMMAND_MIGRATE_MEM_OBJECTS, "migrations"},
};

/* a command whose event we have */
struct taken {
	cl_event event;
	cl_command_queue queue;
	cl_command_type type;
	_Atomic bool called_back;
};

static struct {
	enum queue_kind queue;
	enum create create;
	enum policy policy;
	enum end end;
	bool no_profiling, svm;
	long rounds;
} opts = {.rounds = 3};

static struct cl_app cl;
static cl_command_queue_properties properties;
static cl_command_queue queues[MAX_QUEUES], queue; /* queue: whose turn it is */
static int queue_count, turn;
static cl_kernel kernels[KERNELS];
static cl_mem a, b, c, d;
static cl_int host[COUNT];
static long counts[ARRAY_SIZE(kinds)], kernel_counts[KERNELS];

static struct taken taken[MAX_TAKEN];
static int taken_count;
static cl_event event;	/* where the next command's event goes */
static cl_event before; /* what the next command must wait for, or NULL */
static _Atomic long callbacks_set, callbacks_run;

/* --- queues: made as told, and seen as made --- */

static cl_command_queue make_queue(void)
{
	const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	cl_command_queue ret;
	cl_int err;

	if (opts.create == CREATE_LEGACY)
		ret = clCreateCommandQueue(cl.context, cl.device, properties, &err);
	else
		ret = clCreateCommandQueueWithProperties(
			cl.context, cl.device, opts.create == CREATE_LIST ? list : NULL, &err);
	CHECK(err);
	return ret;
}

static void check_queue(cl_command_queue q)
{
	const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	cl_queue_properties seen_list[16];
	cl_command_queue_properties seen = ~0UL;
	cl_context context;
	cl_device_id device;
	size_t size = ~0UL;

	CHECK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof(seen), &seen, &size));
	REQUIRE(seen == properties && size == sizeof(seen));
	CHECK(clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL));
	REQUIRE(context == cl.context);
	CHECK(clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(device), &device, NULL));
	REQUIRE(device == cl.device);

	CHECK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &size));
	REQUIRE(size == (opts.create == CREATE_LIST ? sizeof(list) : 0));
	CHECK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES_ARRAY, sizeof(seen_list), seen_list,
				    &size));
	if (opts.create == CREATE_LIST)
		REQUIRE(size == sizeof(list) && memcmp(seen_list, list, size) == 0);
	else
		REQUIRE(size == 0);
}

/* --- events --- */

/* a runtime lets its own references go a moment after the command's end: give it two seconds */
static void wait_for_references(cl_event e, cl_uint expected)
{
	cl_uint n = 0;

	for (int i = 0; i < 2000; i++) {
		CHECK(clGetEventInfo(e, CL_EVENT_REFERENCE_COUNT, sizeof(n), &n, NULL));
		if (n == expected)
			return;
		sleep_ms(1);
	}
	fprintf(stderr, "an event has %u references, not %u\n", n, expected);
	REQUIRE(n == expected);
}

static void check_profile(cl_event e)
{
	static const cl_profiling_info what[] = {
		CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
		CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
	cl_ulong last = 0, time;

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		cl_int err;

		time = 42;
		err = clGetEventProfilingInfo(e, what[i], sizeof(time), &time, NULL);
		if (opts.no_profiling) {
			REQUIRE(err == CL_PROFILING_INFO_NOT_AVAILABLE && time == 42);
			continue;
		}
		CHECK(err);
		REQUIRE(time >= last && time != 42);
		last = time;
	}
}

/* of a finished command */
static void check_event(const struct taken *t)
{
	cl_command_queue its_queue;
	cl_command_type type;
	cl_context context;
	cl_int status;
	cl_event e = t->event;

	CHECK(clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, sizeof(its_queue), &its_queue, NULL));
	REQUIRE(its_queue == t->queue);
	CHECK(clGetEventInfo(e, CL_EVENT_CONTEXT, sizeof(context), &context, NULL));
	REQUIRE(context == cl.context);
	CHECK(clGetEventInfo(e, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
	REQUIRE(type == t->type);
	CHECK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
	REQUIRE(status == CL_COMPLETE);
	check_profile(e);
}

static void CL_CALLBACK on_complete(cl_event e, cl_int status, void *arg)
{
	struct taken *t = arg;

	REQUIRE(status == CL_COMPLETE);
	REQUIRE(e == t->event);
	REQUIRE(!t->called_back);
	check_profile(e);
	t->called_back = true;
	callbacks_run++;
}

static cl_event *slot(void)
{
	event = POISON;
	return opts.policy == NONE ? NULL : &event;
}

/* the last three arguments of every enqueue */
#define TAIL (before ? 1 : 0), (before ? &before : NULL), slot()

static void count(cl_command_type type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].type == type) {
			counts[i]++;
			return;
		}
	}
	REQUIRE(!"a known type");
}

static void take_event(cl_command_type type)
{
	struct taken *t = &taken[taken_count++];

	REQUIRE(taken_count < MAX_TAKEN && event && event != POISON);
	*t = (struct taken){.event = event, .queue = queue, .type = type};
	before = event;
	if (opts.policy == CALLBACKS || opts.policy == RELEASED) {
		callbacks_set++;
		CHECK(clSetEventCallback(event, CL_COMPLETE, on_complete, t));
	}
	if (opts.policy == WAITED) {
		CHECK(clFlush(queue));
		CHECK(clWaitForEvents(1, &event));
		check_event(t);
	}
	if (opts.policy == RELEASED) {
		CHECK(clReleaseEvent(event));
		before = NULL;
	}
}

/* every enqueue is followed by this: counts it, treats its event, makes the next one wait for it */
static void enqueued(cl_command_type type)
{
	count(type);
	if (opts.policy != NONE)
		take_event(type);

	if (opts.queue == OUT_OF_ORDER && !before) {
		CHECK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
		count(CL_COMMAND_BARRIER);
	}
	if (opts.queue == SEVERAL) {
		if (before)
			CHECK(clFlush(queue));
		else
			CHECK(clFinish(queue));
		queue = queues[++turn % queue_count];
	}
	if (opts.queue == IN_ORDER)
		before = NULL;
}

static void finish_all(void)
{
	for (int i = 0; i < queue_count; i++)
		CHECK(clFinish(queues[i]));
	for (int i = 0; callbacks_run < callbacks_set && i < 5000; i++)
		sleep_ms(1);
	REQUIRE(callbacks_run == callbacks_set);
	before = NULL;
}

/* buffers (which in PoCL refer to their last command) are gone now: only we hold the events */
static void let_events_go(void)
{
	for (int i = 0; i < taken_count && opts.policy != RELEASED; i++) {
		cl_event e = taken[i].event;

		check_event(&taken[i]);
		wait_for_references(e, 1);
		CHECK(clRetainEvent(e));
		wait_for_references(e, 2);
		CHECK(clReleaseEvent(e));
		wait_for_references(e, 1);
		CHECK(clReleaseEvent(e));
	}
	taken_count = 0;
}

/* --- commands --- */

static void run_kernel(enum kernel k, cl_uint dims, const size_t *offset, const size_t *global,
		       const size_t *local)
{
	CHECK(clEnqueueNDRangeKernel(queue, kernels[k], dims, offset, global, local, TAIL));
	kernel_counts[k]++;
	enqueued(CL_COMMAND_NDRANGE_KERNEL);
}

static void run_kernels(void)
{
	const size_t count_1d = COUNT, local_1d = 64;
	const size_t global_2d[] = {SIDE, SIDE}, local_2d[] = {8, 8};
	const size_t offset_3d[] = {0, 0, 8}, global_3d[] = {16, 16, 8};

	run_kernel(ADD, 1, NULL, &count_1d, &local_1d);
	run_kernel(SCALE, 1, NULL, &count_1d, NULL);
	run_kernel(TILE, 2, NULL, global_2d, local_2d);
	run_kernel(BOX, 3, offset_3d, global_3d, NULL);
}

/* a kernel that may not start before the host says so */
static void run_gated_kernel(void)
{
	const size_t global = COUNT;
	cl_event waits[2] = {NULL, before};
	cl_int err, status;

	waits[0] = clCreateUserEvent(cl.context, &err);
	CHECK(err);
	CHECK(clEnqueueNDRangeKernel(queue, kernels[GATED], 1, NULL, &global, NULL, before ? 2 : 1,
				     waits, slot()));
	CHECK(clFlush(queue));
	sleep_ms(1);
	if (opts.policy != NONE) {
		CHECK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				     &status, NULL));
		REQUIRE(status == CL_QUEUED || status == CL_SUBMITTED);
	}
	CHECK(clSetUserEventStatus(waits[0], CL_COMPLETE));
	kernel_counts[GATED]++;
	enqueued(CL_COMMAND_NDRANGE_KERNEL);
	CHECK(clReleaseEvent(waits[0]));
}

/* what c holds after all kernels of a round */
static cl_int result(long round, int i)
{
	return ((cl_int)round + i + 3) * 2 + 1 - (i >= COUNT / 2) + 10;
}

static void upload(long round)
{
	const cl_int three = 3;
	cl_int *mapped, err;

	for (int i = 0; i < COUNT; i++)
		host[i] = -1;
	CHECK(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, BYTES, host, TAIL));
	enqueued(CL_COMMAND_WRITE_BUFFER);
	mapped = clEnqueueMapBuffer(queue, a, CL_FALSE, CL_MAP_WRITE, 0, BYTES, TAIL, &err);
	CHECK(err);
	enqueued(CL_COMMAND_MAP_BUFFER);
	for (int i = 0; i < queue_count; i++)
		CHECK(clFinish(queues[i]));
	for (int i = 0; i < COUNT; i++)
		mapped[i] = (cl_int)round + i;
	CHECK(clEnqueueUnmapMemObject(queue, a, mapped, TAIL));
	enqueued(CL_COMMAND_UNMAP_MEM_OBJECT);
	CHECK(clEnqueueFillBuffer(queue, b, &three, sizeof(three), 0, BYTES, TAIL));
	enqueued(CL_COMMAND_FILL_BUFFER);
	CHECK(clEnqueueMigrateMemObjects(queue, 1, &a, 0, TAIL));
	enqueued(CL_COMMAND_MIGRATE_MEM_OBJECTS);
}

static void download(long round)
{
	cl_int *mapped, err;

	CHECK(clEnqueueCopyBuffer(queue, c, d, 0, 0, BYTES, TAIL));
	enqueued(CL_COMMAND_COPY_BUFFER);
	mapped = clEnqueueMapBuffer(queue, d, CL_TRUE, CL_MAP_READ, 0, BYTES, TAIL, &err);
	CHECK(err);
	for (int i = 0; i < COUNT; i++)
		REQUIRE(mapped[i] == result(round, i));
	enqueued(CL_COMMAND_MAP_BUFFER);
	CHECK(clEnqueueUnmapMemObject(queue, d, mapped, TAIL));
	enqueued(CL_COMMAND_UNMAP_MEM_OBJECT);
	CHECK(clEnqueueReadBuffer(queue, d, CL_TRUE, 0, BYTES, host, TAIL));
	for (int i = 0; i < COUNT; i++)
		REQUIRE(host[i] == result(round, i));
	enqueued(CL_COMMAND_READ_BUFFER);
}

/* the whole matrix as a rectangle goes out, across and back */
static void copy_rectangles(void)
{
	const size_t zero[3] = {0}, region[3] = {SIDE * sizeof(cl_int), SIDE, 1};
	cl_int back[COUNT];

	for (int i = 0; i < COUNT; i++)
		host[i] = i * 7;
	CHECK(clEnqueueWriteBufferRect(queue, b, CL_FALSE, zero, zero, region, 0, 0, 0, 0, host,
				       TAIL));
	enqueued(CL_COMMAND_WRITE_BUFFER_RECT);
	CHECK(clEnqueueCopyBufferRect(queue, b, d, zero, zero, region, 0, 0, 0, 0, TAIL));
	enqueued(CL_COMMAND_COPY_BUFFER_RECT);
	CHECK(clEnqueueReadBufferRect(queue, d, CL_TRUE, zero, zero, region, 0, 0, 0, 0, back,
				      TAIL));
	enqueued(CL_COMMAND_READ_BUFFER_RECT);
	REQUIRE(memcmp(host, back, sizeof(host)) == 0);
}

static void synchronize(void)
{
	CHECK(clEnqueueMarkerWithWaitList(queue, TAIL));
	enqueued(CL_COMMAND_MARKER);
	CHECK(clEnqueueBarrierWithWaitList(queue, TAIL));
	enqueued(CL_COMMAND_BARRIER);
}

static void use_svm(void)
{
	cl_int *x = clSVMAlloc(cl.context, CL_MEM_READ_WRITE, BYTES, 0);
	cl_int *y = clSVMAlloc(cl.context, CL_MEM_READ_WRITE, BYTES, 0);
	const cl_int nine = 9;

	REQUIRE(x && y);
	CHECK(clEnqueueSVMMemFill(queue, x, &nine, sizeof(nine), BYTES, TAIL));
	enqueued(CL_COMMAND_SVM_MEMFILL);
	CHECK(clEnqueueSVMMemcpy(queue, CL_FALSE, y, x, BYTES, TAIL));
	enqueued(CL_COMMAND_SVM_MEMCPY);
	CHECK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, y, BYTES, TAIL));
	for (int i = 0; i < COUNT; i++)
		REQUIRE(y[i] == nine);
	enqueued(CL_COMMAND_SVM_MAP);
	CHECK(clEnqueueSVMUnmap(queue, y, TAIL));
	enqueued(CL_COMMAND_SVM_UNMAP);
	finish_all();
	clSVMFree(cl.context, x);
	clSVMFree(cl.context, y);
}

/* calls that fail are no device work, and leave the event alone */
static void fail_on_purpose(void)
{
	const size_t global = COUNT, wrong_local = COUNT * 4;

	event = POISON;
	REQUIRE(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 2 * BYTES, host, 0, NULL, &event) ==
		CL_INVALID_VALUE);
	REQUIRE(event == POISON);
	REQUIRE(clEnqueueNDRangeKernel(queue, kernels[ADD], 1, NULL, &global, &wrong_local, 0, NULL,
				       &event) != CL_SUCCESS);
	REQUIRE(event == POISON);
}

/* --- the program --- */

static void init(void)
{
	cl_app_open(&cl, source);
	for (int k = 0; k < KERNELS; k++)
		kernels[k] = cl_app_kernel(&cl, kernel_names[k]);
	properties = (opts.queue == OUT_OF_ORDER ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0) |
		     (opts.no_profiling ? 0 : CL_QUEUE_PROFILING_ENABLE);
	queue_count = opts.queue == SEVERAL ? MAX_QUEUES : 1;
	for (int i = 0; i < queue_count; i++) {
		queues[i] = make_queue();
		check_queue(queues[i]);
	}
	queue = queues[0];
}

static void make_buffers(void)
{
	cl_mem *const buffers[] = {&a, &b, &c, &d};

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		*buffers[i] = cl_app_buffer(&cl, BYTES);
	CHECK(clSetKernelArg(kernels[ADD], 0, sizeof(a), &a));
	CHECK(clSetKernelArg(kernels[ADD], 1, sizeof(b), &b));
	CHECK(clSetKernelArg(kernels[ADD], 2, sizeof(c), &c));
	for (int k = SCALE; k < KERNELS; k++)
		CHECK(clSetKernelArg(kernels[k], 0, sizeof(c), &c));
}

static void release_buffers(void)
{
	const cl_mem buffers[] = {a, b, c, d};

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		CHECK(clReleaseMemObject(buffers[i]));
}

static void run_round(long round)
{
	make_buffers();
	upload(round);
	run_kernels();
	run_gated_kernel();
	download(round);
	copy_rectangles();
	synchronize();
	if (opts.svm)
		use_svm();
	fail_on_purpose();
	finish_all();
	release_buffers();
	let_events_go();
	for (int i = 0; i < queue_count; i++)
		check_queue(queues[i]);
}

static void fini(void)
{
	for (int k = 0; k < KERNELS; k++)
		CHECK(clReleaseKernel(kernels[k]));
	for (int i = 0; i < queue_count; i++)
		CHECK(clReleaseCommandQueue(queues[i]));
	cl_app_close(&cl);
}

/* one line for each kind, though several types may be of it */
static void print_counts(void)
{
	long total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		long sum = 0;

		if (i > 0 && strcmp(kinds[i].kind, kinds[i - 1].kind) == 0)
			continue;
		for (size_t j = i; j < ARRAY_SIZE(kinds); j++)
			if (strcmp(kinds[i].kind, kinds[j].kind) == 0)
				sum += counts[j];
		if (i == 0)
			for (int k = 0; k < LAST; k++)
				printf("expected: %ld kernels %s\n", kernel_counts[k],
				       kernel_names[k]);
		if (i > 0 || opts.end == END_RETURN)
			printf("expected: %ld %s\n", sum, kinds[i].kind);
		total += sum;
	}
	if (opts.end == END_RETURN)
		printf("expected: %ld commands\n", total);
}

static void CL_CALLBACK exit_in_callback(cl_event e, cl_int status, void *arg)
{
	(void)e;
	(void)status;
	(void)arg;
	exit(7);
}

static void end_in_callback(void)
{
	const size_t global = COUNT;
	cl_event e;

	make_buffers();
	printf("expected: 1 kernels last\nends: status 7\n");
	fflush(stdout);
	CHECK(clEnqueueNDRangeKernel(queue, kernels[LAST], 1, NULL, &global, NULL, 0, NULL, &e));
	CHECK(clSetEventCallback(e, CL_COMPLETE, exit_in_callback, NULL));
	CHECK(clFlush(queue));
	while (true)
		pause();
}

static void end_in_flight(void)
{
	const size_t global = COUNT;

	make_buffers();
	printf("atmost: 50 kernels last\nends: status 7\n");
	fflush(stdout);
	for (int i = 0; i < 50; i++)
		CHECK(clEnqueueNDRangeKernel(queue, kernels[LAST], 1, NULL, &global, NULL, 0, NULL,
					     NULL));
	_exit(7);
}

static int choose(const char *value, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(value, names[i]) == 0)
			return i;
	fprintf(stderr, "cl_matrix: what is %s?\n", value);
	exit(2);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"queue", required_argument, NULL, 'q'},  {"no-profiling", no_argument, NULL, 'p'},
		{"create", required_argument, NULL, 'c'}, {"events", required_argument, NULL, 'e'},
		{"end", required_argument, NULL, 'x'},	  {"rounds", required_argument, NULL, 'r'},
		{"svm", no_argument, NULL, 's'},	  {0}};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'q':
			opts.queue = (enum queue_kind)choose(optarg, queue_names);
			break;
		case 'p':
			opts.no_profiling = true;
			break;
		case 'c':
			opts.create = (enum create)choose(optarg, create_names);
			break;
		case 'e':
			opts.policy = (enum policy)choose(optarg, policy_names);
			break;
		case 'x':
			opts.end = (enum end)choose(optarg, end_names);
			break;
		case 'r':
			opts.rounds = atol(optarg);
			break;
		case 's':
			opts.svm = true;
			break;
		default:
			exit(2);
		}
	}
	if (opts.create == CREATE_NULL && (!opts.no_profiling || opts.queue == OUT_OF_ORDER)) {
		fprintf(stderr, "cl_matrix: --create null makes a plain queue only\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	init();
	for (long round = 0; round < opts.rounds; round++)
		run_round(round);
	printf("Results are CORRECT\n");
	print_counts();
	if (opts.end == END_CALLBACK)
		end_in_callback();
	if (opts.end == END_EXIT)
		end_in_flight();
	fini();
	return 0;
}
