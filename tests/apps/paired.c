/*
 * Steps of equal work with events in between: how long they take with and without a tracer says
 * what the events cost. `paired KIND`: prints "step <ns>" for each, by its own clock.
 *
 * KIND: tasks (two nested ones), metadata (a task with a value), marks, calls (PAIRED_OPENCL),
 * mpi (PAIRED_MPI). tests/test_overhead.py compiles it for each.
 */
#include <ittnotify.h>

#include "app.h"

#define STEPS  120
#define EVENTS 100

static __itt_domain *domain;
static __itt_string_handle *step, *outer, *inner, *key;

static void tasks(void)
{
	__itt_task_begin(domain, __itt_null, __itt_null, outer);
	__itt_task_begin(domain, __itt_null, __itt_null, inner);
	__itt_task_end(domain);
	__itt_task_end(domain);
}

static void metadata(void)
{
	uint64_t value = 1;

	__itt_task_begin(domain, __itt_null, __itt_null, inner);
	__itt_metadata_add(domain, __itt_null, key, __itt_metadata_u64, 1, &value);
	__itt_task_end(domain);
}

static void marks(void)
{
	__itt_marker(domain, __itt_null, key, __itt_scope_task);
}

#ifdef PAIRED_OPENCL
#include <CL/cl.h>
static cl_device_id device;

static void begin(void)
{
	cl_platform_id platform;

	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		exit(77);
}

static void calls(void)
{
	cl_uint units;

	(void)clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
}
#elif defined(PAIRED_MPI)
#include <mpi.h>

static void begin(void)
{
	MPI_Init(NULL, NULL); /* one rank */
	(void)atexit((void (*)(void))MPI_Finalize);
}

static void calls(void)
{
	int out = 1, in;

	MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}
#else
static void begin(void)
{
}

static void calls(void)
{
}
#endif

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Branches, calls and memory: some 300 ns. */
static void work(void)
{
	static int numbers[16];
	static unsigned seed = 1;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = (int)((seed = seed * 1103515245u + 12345u) >> 8);
	qsort(numbers, ARRAY_SIZE(numbers), sizeof(numbers[0]), ascending);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*event)(void);
	} kinds[] = {
		{ "tasks", tasks }, { "metadata", metadata }, { "marks", marks }, { "calls", calls }
	};
	void (*event)(void) = NULL;
	static uint64_t took[STEPS];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (argc > 1 && !strcmp(argv[1], kinds[i].name))
			event = kinds[i].event;
	if (!event)
		return 2;
	domain = __itt_domain_create("app");
	step = __itt_string_handle_create("step");
	outer = __itt_string_handle_create("outer");
	inner = __itt_string_handle_create("inner");
	key = __itt_string_handle_create("key");
	begin();
	for (int s = 0; s < STEPS; s++) {
		uint64_t start = now_ns();

		__itt_task_begin(domain, __itt_null, __itt_null, step);
		for (int i = 0; i < EVENTS; i++) {
			work();
			event();
		}
		__itt_task_end(domain);
		took[s] = now_ns() - start;
	}
	for (int s = 0; s < STEPS; s++)
		printf("step %lu\n", (unsigned long)took[s]);
	return 0;
}
