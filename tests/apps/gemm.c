/*
 * The demo: what a small scientific program does with a GPU. Matrices are uploaded, multiplied and
 * summed on the device, brought back and compared with the host's own result, several times over;
 * ITT tasks say which step the host is in. The queue is a plain one, without profiling: device
 * times are the tracer's own doing.
 *
 *	gemm [--expected] [SIZE [ITERATIONS]]	SIZE a multiple of 16; default 256, 5
 *
 * --expected prints what the trace must hold.
 *
 * The matrices hold small whole numbers, so that every float is exact and "equal" means equal.
 */
#include "cl_app.h"
#include "itt_app.h"

#define TILE	  16
#define GROUP	  64
#define STRING(x) #x
#define VALUE(x)  STRING(x)

/* clang-format off */
static const char source[] =
	"#define TILE " VALUE(TILE) "\n"
	"#define GROUP " VALUE(GROUP) "\n"
	"kernel void multiply(global const float *a, global const float *b, global float *c, int n)\n"
	"{\n"
	"	local float tile_a[TILE][TILE], tile_b[TILE][TILE];\n"
	"	int x = get_local_id(0), y = get_local_id(1);\n"
	"	int column = get_global_id(0), row = get_global_id(1);\n"
	"	float sum = 0;\n"
	"	for (int t = 0; t < n; t += TILE) {\n"
	"		tile_a[y][x] = a[row * n + t + x];\n"
	"		tile_b[y][x] = b[(t + y) * n + column];\n"
	"		barrier(CLK_LOCAL_MEM_FENCE);\n"
	"		for (int k = 0; k < TILE; k++)\n"
	"			sum += tile_a[y][k] * tile_b[k][x];\n"
	"		barrier(CLK_LOCAL_MEM_FENCE);\n"
	"	}\n"
	"	c[row * n + column] += sum;\n"
	"}\n"
	"kernel void reduce(global const float *c, global long *row_sums, int n)\n"
	"{\n"
	"	local long part[GROUP];\n"
	"	int i = get_local_id(0), row = get_group_id(0);\n"
	"	long sum = 0;\n"
	"	for (int column = i; column < n; column += GROUP)\n"
	"		sum += (long)c[row * n + column];\n"
	"	part[i] = sum;\n"
	"	for (int width = GROUP / 2; width > 0; width /= 2) {\n"
	"		barrier(CLK_LOCAL_MEM_FENCE);\n"
	"		if (i < width)\n"
	"			part[i] += part[i + width];\n"
	"	}\n"
	"	if (i == 0)\n"
	"		row_sums[row] = part[0];\n"
	"}\n";
/* clang-format on */

struct gemm {
	struct cl_app cl;
	cl_command_queue queue;
	cl_kernel multiply, reduce;
	cl_mem a, b, c, row_sums; /* on the device */
	float *host_a, *host_b, *host_c, *reference;
	cl_long *host_row_sums;
	size_t size, matrix_bytes;
};

static __itt_domain *domain;

static void begin(const char *step)
{
	task_begin(domain, __itt_string_handle_create(step));
}

static void end(void)
{
	task_end(domain);
}

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		die("calloc");
	return p;
}

static void init(struct gemm *g, size_t size)
{
	cl_int err;

	begin("init");
	g->size = size;
	g->matrix_bytes = size * size * sizeof(float);
	cl_app_open(&g->cl, source);
	g->queue = clCreateCommandQueue(g->cl.context, g->cl.device, 0, &err);
	CHECK(err);
	g->multiply = cl_app_kernel(&g->cl, "multiply");
	g->reduce = cl_app_kernel(&g->cl, "reduce");
	g->a = cl_app_buffer(&g->cl, g->matrix_bytes);
	g->b = cl_app_buffer(&g->cl, g->matrix_bytes);
	g->c = cl_app_buffer(&g->cl, g->matrix_bytes);
	g->row_sums = cl_app_buffer(&g->cl, size * sizeof(cl_long));
	g->host_a = allocate(size * size, sizeof(float));
	g->host_b = allocate(size * size, sizeof(float));
	g->host_c = allocate(size * size, sizeof(float));
	g->reference = allocate(size * size, sizeof(float));
	g->host_row_sums = allocate(size, sizeof(cl_long));
	end();
}

/* a is written, b filled through a mapping, c cleared on the device: the three ways there are */
static void upload(struct gemm *g, int iteration)
{
	const float zero = 0;
	float *mapped;
	cl_int err;

	begin("upload");
	for (size_t i = 0; i < g->size * g->size; i++) {
		g->host_a[i] = (float)((i + (size_t)iteration) % 7);
		g->host_b[i] = (float)(i % 5);
	}
	CHECK(clEnqueueWriteBuffer(g->queue, g->a, CL_FALSE, 0, g->matrix_bytes, g->host_a, 0, NULL,
				   NULL));
	mapped = clEnqueueMapBuffer(g->queue, g->b, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
				    g->matrix_bytes, 0, NULL, NULL, &err);
	CHECK(err);
	memcpy(mapped, g->host_b, g->matrix_bytes);
	CHECK(clEnqueueUnmapMemObject(g->queue, g->b, mapped, 0, NULL, NULL));
	CHECK(clEnqueueFillBuffer(g->queue, g->c, &zero, sizeof(zero), 0, g->matrix_bytes, 0, NULL,
				  NULL));
	end();
}

static void multiply(struct gemm *g)
{
	size_t global[2] = { g->size, g->size }, local[2] = { TILE, TILE };
	cl_int n = (cl_int)g->size;

	begin("multiply");
	CHECK(clSetKernelArg(g->multiply, 0, sizeof(cl_mem), &g->a));
	CHECK(clSetKernelArg(g->multiply, 1, sizeof(cl_mem), &g->b));
	CHECK(clSetKernelArg(g->multiply, 2, sizeof(cl_mem), &g->c));
	CHECK(clSetKernelArg(g->multiply, 3, sizeof(n), &n));
	CHECK(clEnqueueNDRangeKernel(g->queue, g->multiply, 2, NULL, global, local, 0, NULL, NULL));
	CHECK(clFinish(g->queue));
	end();
}

static void reduce(struct gemm *g)
{
	size_t global = g->size * GROUP, local = GROUP;
	cl_int n = (cl_int)g->size;

	begin("reduce");
	CHECK(clSetKernelArg(g->reduce, 0, sizeof(cl_mem), &g->c));
	CHECK(clSetKernelArg(g->reduce, 1, sizeof(cl_mem), &g->row_sums));
	CHECK(clSetKernelArg(g->reduce, 2, sizeof(n), &n));
	CHECK(clEnqueueNDRangeKernel(g->queue, g->reduce, 1, NULL, &global, &local, 0, NULL, NULL));
	end();
}

static void download(struct gemm *g)
{
	begin("download");
	CHECK(clEnqueueReadBuffer(g->queue, g->c, CL_FALSE, 0, g->matrix_bytes, g->host_c, 0, NULL,
				  NULL));
	CHECK(clEnqueueReadBuffer(g->queue, g->row_sums, CL_TRUE, 0, g->size * sizeof(cl_long),
				  g->host_row_sums, 0, NULL, NULL));
	end();
}

static void multiply_on_host(const struct gemm *g)
{
	size_t n = g->size;

	memset(g->reference, 0, g->matrix_bytes);
	for (size_t row = 0; row < n; row++)
		for (size_t k = 0; k < n; k++)
			for (size_t column = 0; column < n; column++)
				g->reference[row * n + column] +=
					g->host_a[row * n + k] * g->host_b[k * n + column];
}

static bool verify(const struct gemm *g, int iteration)
{
	cl_long sum = 0, expected = 0;
	bool equal;

	begin("verify");
	multiply_on_host(g);
	equal = memcmp(g->reference, g->host_c, g->matrix_bytes) == 0;
	for (size_t i = 0; i < g->size * g->size; i++)
		expected += (cl_long)g->reference[i];
	for (size_t row = 0; row < g->size; row++)
		sum += g->host_row_sums[row];
	printf("iteration %d: sum %jd, expected %jd\n", iteration, (intmax_t)sum,
	       (intmax_t)expected);
	end();
	return equal && sum == expected;
}

static void fini(struct gemm *g)
{
	CHECK(clReleaseMemObject(g->a));
	CHECK(clReleaseMemObject(g->b));
	CHECK(clReleaseMemObject(g->c));
	CHECK(clReleaseMemObject(g->row_sums));
	CHECK(clReleaseKernel(g->multiply));
	CHECK(clReleaseKernel(g->reduce));
	CHECK(clReleaseCommandQueue(g->queue));
	cl_app_close(&g->cl);
	free(g->host_a);
	free(g->host_b);
	free(g->host_c);
	free(g->reference);
	free(g->host_row_sums);
}

static void print_expected(int n)
{
	static const char *const steps[] = { "iteration", "upload",   "multiply",
					     "reduce",	  "download", "verify" };

	printf("expected: 1 tasks gemm::init\n");
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		printf("expected: %d tasks gemm::%s\n", n, steps[i]);
	printf("expected: %d kernels multiply\nexpected: %d kernels reduce\n", n, n);
	printf("expected: %d kernels\nexpected: %d writes\nexpected: %d reads\n", 2 * n, n, 2 * n);
	printf("expected: %d maps\nexpected: %d unmaps\nexpected: %d fills\n", n, n, n);
	printf("expected: %d tasks\n", 6 * n + 1);
}

int main(int argc, char **argv)
{
	bool expected = argc > 1 && strcmp(argv[1], "--expected") == 0;
	long size;
	int iterations;
	struct gemm gemm;
	char name[256];
	bool correct = true;

	argc -= expected;
	argv += expected;
	size = argc > 1 ? atol(argv[1]) : 256;
	iterations = argc > 2 ? atoi(argv[2]) : 5;
	if (size < TILE || size % TILE || size > 1024 || iterations < 1) {
		fprintf(stderr, "gemm: SIZE must be a multiple of 16, at most 1024\n");
		return 2;
	}
	domain = __itt_domain_create("gemm");
	init(&gemm, (size_t)size);
	CHECK(clGetDeviceInfo(gemm.cl.device, CL_DEVICE_NAME, sizeof(name), name, NULL));
	printf("Matrix multiplication %ld x %ld on %s\n", size, size, name);
	for (int i = 0; i < iterations; i++) {
		begin("iteration");
		upload(&gemm, i);
		multiply(&gemm);
		reduce(&gemm);
		download(&gemm);
		correct = verify(&gemm, i) && correct;
		end();
	}
	fini(&gemm);
	printf("Results are %s\n", correct ? "CORRECT" : "WRONG");
	if (expected)
		print_expected(iterations);
	return correct ? 0 : 1;
}
