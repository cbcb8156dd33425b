/*
 * cl_matrix: every kind of command, and what it must have computed.
 */
#include "cl_matrix.h"

static cl_mem a, b, c, d;
static cl_int host[COUNT];

void make_buffers(void)
{
	cl_mem *const buffers[] = { &a, &b, &c, &d };

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		*buffers[i] = cl_app_buffer(&cl, BYTES);
	CHECK(clSetKernelArg(kernels[ADD], 0, sizeof(a), &a));
	CHECK(clSetKernelArg(kernels[ADD], 1, sizeof(b), &b));
	CHECK(clSetKernelArg(kernels[ADD], 2, sizeof(c), &c));
	for (int k = SCALE; k < KERNELS; k++)
		CHECK(clSetKernelArg(kernels[k], 0, sizeof(c), &c));
}

void release_buffers(void)
{
	const cl_mem buffers[] = { a, b, c, d };

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		CHECK(clReleaseMemObject(buffers[i]));
}

static void run_kernel(enum kernel k, cl_uint dims, const size_t *offset, const size_t *global,
		       const size_t *local)
{
	CHECK(clEnqueueNDRangeKernel(queue, kernels[k], dims, offset, global, local, TAIL));
	kernel_counts[k]++;
	enqueued(CL_COMMAND_NDRANGE_KERNEL);
}

void run_kernels(void)
{
	const size_t count_1d = COUNT, local_1d = 64;
	const size_t global_2d[] = { SIDE, SIDE }, local_2d[] = { 8, 8 };
	const size_t offset_3d[] = { 0, 0, 8 }, global_3d[] = { 16, 16, 8 };

	run_kernel(ADD, 1, NULL, &count_1d, &local_1d);
	run_kernel(SCALE, 1, NULL, &count_1d, NULL);
	run_kernel(TILE, 2, NULL, global_2d, local_2d);
	run_kernel(BOX, 3, offset_3d, global_3d, NULL);
}

/* a kernel that may not start before the host says so */
void run_gated_kernel(void)
{
	const size_t global = COUNT;
	cl_event waits[2] = { NULL, before };
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

void upload(long round)
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

void download(long round)
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
void copy_rectangles(void)
{
	const size_t zero[3] = { 0 }, region[3] = { SIDE * sizeof(cl_int), SIDE, 1 };
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

void synchronize(void)
{
	CHECK(clEnqueueMarkerWithWaitList(queue, TAIL));
	enqueued(CL_COMMAND_MARKER);
	CHECK(clEnqueueBarrierWithWaitList(queue, TAIL));
	enqueued(CL_COMMAND_BARRIER);
}

void use_svm(void)
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
void fail_on_purpose(void)
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
