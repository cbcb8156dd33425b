/*
 * cl_matrix: what the program sees of its queues and events is what it made, whoever else holds
 * them.
 */
#include "cl_matrix.h"

#define MAX_TAKEN 64

static const struct {
	cl_command_type type;
	const char *kind;
} kinds[] = {
	{ CL_COMMAND_NDRANGE_KERNEL, "kernels" },
	{ CL_COMMAND_WRITE_BUFFER, "writes" },
	{ CL_COMMAND_WRITE_BUFFER_RECT, "writes" },
	{ CL_COMMAND_READ_BUFFER, "reads" },
	{ CL_COMMAND_READ_BUFFER_RECT, "reads" },
	{ CL_COMMAND_COPY_BUFFER, "copies" },
	{ CL_COMMAND_COPY_BUFFER_RECT, "copies" },
	{ CL_COMMAND_SVM_MEMCPY, "copies" },
	{ CL_COMMAND_FILL_BUFFER, "fills" },
	{ CL_COMMAND_SVM_MEMFILL, "fills" },
	{ CL_COMMAND_MAP_BUFFER, "maps" },
	{ CL_COMMAND_SVM_MAP, "maps" },
	{ CL_COMMAND_UNMAP_MEM_OBJECT, "unmaps" },
	{ CL_COMMAND_SVM_UNMAP, "unmaps" },
	{ CL_COMMAND_MARKER, "markers" },
	{ CL_COMMAND_BARRIER, "barriers" },
	{ CL_COMMAND_MIGRATE_MEM_OBJECTS, "migrations" },
};

/* a command whose event we have */
struct taken {
	cl_event event;
	cl_command_queue queue;
	cl_command_type type;
	_Atomic bool called_back;
};

static long counts[ARRAY_SIZE(kinds)];
static struct taken taken[MAX_TAKEN];
static int taken_count, turn;
static _Atomic long callbacks_set, callbacks_run;
cl_event event, before;

/* --- queues: made as told, and seen as made --- */

cl_command_queue make_queue(void)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };
	cl_command_queue ret;
	cl_int err;

	if (opts.create == CREATE_LEGACY)
		ret = clCreateCommandQueue(cl.context, cl.device, properties, &err);
	else
		ret = clCreateCommandQueueWithProperties(cl.context, cl.device,
							 opts.create == CREATE_LIST ? list : NULL,
							 &err);
	CHECK(err);
	return ret;
}

void check_queue(cl_command_queue q)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };
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

/*
 * a runtime lets its own references go a moment after the command's end; a minute, on a machine
 * that is busy with something else
 */
static void wait_for_references(cl_event e, cl_uint expected)
{
	cl_uint n = 0;

	for (int i = 0; i < 60000; i++) {
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
	static const cl_profiling_info what[] = { CL_PROFILING_COMMAND_QUEUED,
						  CL_PROFILING_COMMAND_SUBMIT,
						  CL_PROFILING_COMMAND_START,
						  CL_PROFILING_COMMAND_END };
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

cl_event *slot(void)
{
	event = POISON;
	return opts.policy == NONE ? NULL : &event;
}

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
	*t = (struct taken){ .event = event, .queue = queue, .type = type };
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

void enqueued(cl_command_type type)
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

void finish_all(void)
{
	for (int i = 0; i < queue_count; i++)
		CHECK(clFinish(queues[i]));
	for (int i = 0; callbacks_run < callbacks_set && i < 60000; i++)
		sleep_ms(1);
	REQUIRE(callbacks_run == callbacks_set);
	before = NULL;
}

/* buffers (which in PoCL refer to their last command) are gone now: only we hold the events */
void let_events_go(void)
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

/* one line for each kind, though several types may be of it */
void print_counts(void)
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
