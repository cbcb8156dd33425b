/*
 * The kernels of unitrace's test programs, for the software GPU: SOFTGPU_SPIRV names this module,
 * since nobody here compiles SPIR-V. The last row is no kernel: sycl/sycl.hpp writes a SYCL
 * kernel's name over its name before it makes a module of these bytes.
 */
#include "softgpu.h"

#include "closure.h"

static void empty(const struct softgpu_group *group)
{
	(void)group;
}

/*
 * GEMM(const float *a, const float *b, float *c, unsigned n): a group is a tile of c; rows inside,
 * so that a compiler can use vectors. Four steps of k at a time: the suite asks for n = 4096, where
 * loads and stores of `sums` take most of the time; n is a multiple of four.
 */
static void gemm(const struct softgpu_group *group)
{
	const float *a = SOFTGPU_ARG(group, 0, float *), *b = SOFTGPU_ARG(group, 1, float *);
	float *c = SOFTGPU_ARG(group, 2, float *);
	uint32_t n = SOFTGPU_ARG(group, 3, uint32_t), x0 = group->id[0] * group->size[0],
		 width = group->size[0];

	for (uint32_t y = group->id[1] * group->size[1]; y < (group->id[1] + 1) * group->size[1];
	     y++) {
		float sums[1024] = { 0 };

		for (uint32_t k = 0; k < n; k += 4) {
			const float *row = a + (size_t)y * n + k, *b0 = b + (size_t)k * n + x0,
				    *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;

			for (uint32_t x = 0; x < width; x++)
				sums[x] += row[0] * b0[x] + row[1] * b1[x] + row[2] * b2[x] +
					   row[3] * b3[x];
		}
		for (uint32_t x = 0; x < width; x++)
			c[(size_t)y * n + x0 + x] = sums[x];
	}
}

/* add_one(int *data, uint32_t n) */
static void add_one(const struct softgpu_group *group)
{
	int *data = SOFTGPU_ARG(group, 0, int *);
	uint32_t n = SOFTGPU_ARG(group, 1, uint32_t);

	for (uint32_t i = group->id[0] * group->size[0];
	     i < (group->id[0] + 1) * group->size[0] && i < n; i++)
		data[i] += 1;
}

/* multiply_two(int *data, uint32_t n) */
static void multiply_two(const struct softgpu_group *group)
{
	int *data = SOFTGPU_ARG(group, 0, int *);
	uint32_t n = SOFTGPU_ARG(group, 1, uint32_t);

	for (uint32_t i = group->id[0] * group->size[0];
	     i < (group->id[0] + 1) * group->size[0] && i < n; i++)
		data[i] *= 2;
}

/* A SYCL kernel is a function and what it has captured, both of the program itself. */
static void closure(const struct softgpu_group *group)
{
	unitrace_kernel_function *function = SOFTGPU_ARG(group, 0, unitrace_kernel_function *);

	function(SOFTGPU_ARG(group, 1, void *), group->id, group->count, group->size);
}

extern const struct softgpu_kernel softgpu_kernels[];

static const char closure_name[UNITRACE_NAME_MAX] = UNITRACE_NAME_MARK;

__attribute__((visibility("default"))) const struct softgpu_kernel softgpu_kernels[] = {
	{ "empty", empty, 0, 32, 0, 0, 0, 128 },
	{ "GEMM", gemm, 4, 32, 0, 0, 0, 128 },
	{ "add_one", add_one, 2, 32, 0, 0, 0, 128 },
	{ "multiply_two", multiply_two, 2, 32, 0, 0, 0, 128 },
	{ closure_name, closure, 2, 32, 0, 0, 0, 128 },
	{ NULL, NULL, 0, 0, 0, 0, 0, 0 },
};
