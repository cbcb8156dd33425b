/*
 * Steps whose parts have the lengths that they are given, so that a change can be foretold and then
 * made. ze_steps STEPS HOST_US KERNEL_US KERNELS: in each step a task "steps::prepare" of HOST_US,
 * KERNELS launches that take KERNEL_US each, a task "steps::beside" of HOST_US while they run, and
 * a wait.
 */
#include "ze_app.h"

#include <time.h>

#include "itt_app.h"

static __itt_domain *domain;

static void work(const char *name, unsigned us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	task_begin(domain, __itt_string_handle_create(name));
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time))
		;
	task_end(domain);
}

int main(int argc, char **argv)
{
	static const ze_group_count_t one = { 1, 1, 1 };
	unsigned given[4] = { 10, 2000, 3000, 2 };
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	struct ze_app app;

	for (int i = 1; i < argc && i <= 4; i++)
		given[i - 1] = (unsigned)atoi(argv[i]);
	domain = __itt_domain_create("steps");
	ze_app_open(&app, 0, -1);
	kernel = ze_app_kernel(&app, "nap");
	ze_app_arg(kernel, 0, sizeof(given[2]), &given[2]);
	list = ze_app_immediate(&app, 0, 0, true);
	for (unsigned step = 0; step < given[0]; step++) {
		work("prepare", given[1]);
		for (unsigned i = 0; i < given[3]; i++)
			ZE_CHECK(
				zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		work("beside", given[1]);
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	}
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	return 0;
}
