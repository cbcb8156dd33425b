/*
 * The price of calls: ns each, of the cheapest of several rounds, and ("_sustained") of all.
 *	ze_calls [CALLS [LAUNCHES]]
 */
#include "ze_app.h"

#include <time.h>

enum { ROUNDS = 5 };

static struct ze_app app;
static ze_event_handle_t event;
static ze_command_list_handle_t immediate;
static ze_kernel_handle_t kernel;

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void query(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)zeEventQueryStatus(event);
}

static void version(unsigned count)
{
	ze_api_version_t ret;

	for (unsigned i = 0; i < count; i++)
		ZE_CHECK(zeDriverGetApiVersion(app.driver, &ret));
}

static void launch(unsigned count)
{
	const ze_group_count_t one = { 1, 1, 1 };

	for (unsigned i = 1; i <= count; i++) {
		ze_event_handle_t last = i % 64 ? NULL : event;

		ZE_CHECK(zeCommandListAppendLaunchKernel(immediate, kernel, &one, last, 0, NULL));
		if (last) {
			ZE_CHECK(zeEventHostSynchronize(last, UINT64_MAX));
			ZE_CHECK(zeEventHostReset(last));
		}
	}
}

static void measure(const char *name, void (*calls)(unsigned), unsigned count)
{
	double best = 0, all = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now(), ns;

		calls(count);
		ns = (now() - start) / count;
		all += ns / ROUNDS;
		if (!i || ns < best)
			best = ns;
	}
	printf("%s %.1f\n%s_sustained %.1f\n", name, best, name, all);
}

int main(int argc, char **argv)
{
	unsigned calls = argc > 1 ? (unsigned)atoi(argv[1]) : 200000,
		 launches = argc > 2 ? (unsigned)atoi(argv[2]) : 20000;
	ze_event_pool_handle_t pool;

	ze_app_open(&app, 0, -1);
	pool = ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	event = ze_app_event(pool, 0);
	immediate = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	measure("zeEventQueryStatus", query, calls);
	measure("zeDriverGetApiVersion", version, calls);
	measure("zeCommandListAppendLaunchKernel", launch, launches);
	ZE_CHECK(ze_app_list_sync(&app, immediate, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(immediate));
	ZE_CHECK(zeKernelDestroy(kernel));
	ZE_CHECK(zeEventDestroy(event));
	ZE_CHECK(zeEventPoolDestroy(pool));
	ze_app_close(&app);
	return 0;
}
