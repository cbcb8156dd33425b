/*
 * A kernel of which it is known what it costs the kernel of the system: "touch" is the first to
 * write to so many pages, and has nothing but arithmetic before and behind that; "spin" has
 * nothing else.
 *
 *	cl_counts PAGES
 */
#include <sys/mman.h>

#include "cl_app.h"

static const char source[] =
	"uint rest(uint n, uint x) { for (uint i = 0; i < n; i++) x = x * 1664525u + 1013904223u ^ "
	"x >> 7; return x; }\n"
	"kernel void touch(global volatile uchar *c, uint pages, uint n) {\n"
	"  uint x = rest(n, pages);\n"
	"  for (uint i = 0; i < pages; i++) c[i * 4096u] = (uchar)(x | 1u);\n"
	"  c[0] = (uchar)(rest(n, x) | 1u); }\n"
	"kernel void spin(global volatile uchar *c, uint pages, uint n) { c[0] = (uchar)rest(n, "
	"1); "
	"}\n";

int main(int argc, char **argv)
{
	const size_t page = 4096, one = 1;
	cl_uint pages = argc > 1 ? (cl_uint)atoi(argv[1]) : 1000, rounds = 8000000;
	static const char *const names[] = { "spin", "touch", "spin" };
	cl_command_queue queue;
	struct cl_app cl;
	char *memory;
	cl_mem buffer;
	cl_int err;

	cl_app_open(&cl, source);
	queue = clCreateCommandQueue(cl.context, cl.device, 0, &err);
	CHECK(err);
	memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	REQUIRE(memory != MAP_FAILED && !madvise(memory, pages * page, MADV_NOHUGEPAGE));
	buffer = clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, pages * page,
				memory, &err);
	CHECK(err);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cl_kernel kernel = cl_app_kernel(&cl, names[i]);

		/* what making them ready costs is not theirs */
		cl_uint some = i == 1 ? pages : 1, none = 0;

		CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
		CHECK(clSetKernelArg(kernel, 1, sizeof(none), &none));
		CHECK(clSetKernelArg(kernel, 2, sizeof(rounds), &none));
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
		CHECK(clFinish(queue));
		sleep_ms(20);
		CHECK(clSetKernelArg(kernel, 1, sizeof(some), &some));
		CHECK(clSetKernelArg(kernel, 2, sizeof(rounds), &rounds));
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
		CHECK(clFinish(queue));
		sleep_ms(20);
		CHECK(clReleaseKernel(kernel));
	}
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseCommandQueue(queue));
	cl_app_close(&cl);
	printf("expected: 6 kernels\n");
	return 0;
}
