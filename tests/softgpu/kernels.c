/* Kernels for the test programs: a module of the software GPU (softgpu.h). */
#include "softgpu.h"

#include <time.h>

static void empty(const struct softgpu_group *group)
{
	(void)group;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* spin(uint32_t microseconds): the first group takes that long */
static void spin(const struct softgpu_group *group)
{
	uint64_t end = now_ns() + SOFTGPU_ARG(group, 0, uint32_t) * 1000ull;

	if (group->id[0] || group->id[1] || group->id[2])
		return;
	while (now_ns() < end)
		;
}

/* nap(uint32_t microseconds): the same, and the processor is free for others */
static void nap(const struct softgpu_group *group)
{
	uint32_t us = SOFTGPU_ARG(group, 0, uint32_t);
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	if (!group->id[0] && !group->id[1] && !group->id[2])
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* add(const float *a, const float *b, float *c, uint32_t n) */
static void add(const struct softgpu_group *group)
{
	const float *a = SOFTGPU_ARG(group, 0, float *), *b = SOFTGPU_ARG(group, 1, float *);
	float *c = SOFTGPU_ARG(group, 2, float *);
	uint32_t n = SOFTGPU_ARG(group, 3, uint32_t), first = group->id[0] * group->size[0];

	for (uint32_t i = first; i < first + group->size[0] && i < n; i++)
		c[i] = a[i] + b[i];
}

/*
 * gemm(const float *a, const float *b, float *c, uint32_t n): c = a * b of n times n; a group is a
 * tile of c
 */
static void gemm(const struct softgpu_group *group)
{
	const float *a = SOFTGPU_ARG(group, 0, float *), *b = SOFTGPU_ARG(group, 1, float *);
	float *c = SOFTGPU_ARG(group, 2, float *);
	uint32_t n = SOFTGPU_ARG(group, 3, uint32_t);

	for (uint32_t y = group->id[1] * group->size[1];
	     y < (group->id[1] + 1) * group->size[1] && y < n; y++) {
		for (uint32_t x = group->id[0] * group->size[0];
		     x < (group->id[0] + 1) * group->size[0] && x < n; x++) {
			float sum = 0;

			for (uint32_t k = 0; k < n; k++)
				sum += a[(size_t)y * n + k] * b[(size_t)k * n + x];
			c[(size_t)y * n + x] = sum;
		}
	}
}

/*
 * reverse(uint32_t *data, local memory): each group turns its part around, by way of its local
 * memory
 */
static void reverse(const struct softgpu_group *group)
{
	uint32_t *data = SOFTGPU_ARG(group, 0, uint32_t *) + (size_t)group->id[0] * group->size[0];
	uint32_t *local = SOFTGPU_ARG(group, 1, uint32_t *);

	for (uint32_t i = 0; i < group->size[0]; i++)
		local[i] = data[i];
	for (uint32_t i = 0; i < group->size[0]; i++)
		data[i] = local[group->size[0] - 1 - i];
}

/*
 * increment(uint32_t *counter): once a group, so that a test can count executions; one queue at a
 * time
 */
static void increment(const struct softgpu_group *group)
{
	uint32_t *counter = SOFTGPU_ARG(group, 0, uint32_t *);

	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

extern const struct softgpu_kernel softgpu_kernels[];
extern uint32_t softgpu_global[4];

__attribute__((visibility("default"))) uint32_t softgpu_global[4] = { 1, 2, 3, 4 };

__attribute__((visibility("default"))) const struct softgpu_kernel softgpu_kernels[] = {
	{ "empty", empty, 0, 32, 0, 0, 0, 128 },
	{ "spin", spin, 1, 8, 0, 0, 0, 128 },
	{ "nap", nap, 1, 8, 0, 0, 0, 128 },
	{ "add", add, 4, 32, 0, 0, 0, 128 },
	{ "gemm", gemm, 4, 16, 4096, 64, 192, 256 },
	{ "reverse", reverse, 2, 16, 0, 0, 0, 128 },
	{ "increment", increment, 1, 32, 0, 0, 0, 128 },
	/* as a compiler names an instance of a template */
	{ "_ZTSZN4demo5scaleIfEEvPT_S1_mENKUlvE_clEvEUlT_E_", increment, 1, 32, 0, 0, 0, 128 },
	{ NULL, NULL, 0, 0, 0, 0, 0, 0 },
};
