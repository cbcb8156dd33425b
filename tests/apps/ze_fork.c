/*
 * A child that is forked after zeInit, with work of its parent on its way:
 *	ze_fork [leave|exit|use]
 * It leaves by _exit, or by exit with all that was registered for that, or uses the device before,
 *as it inherited it and anew (which needs a driver without threads). The parent waits for it in
 *between and goes on. Prints how many kernels each launched, the child's into its own line.
 */
#include "ze_app.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNELS = 50 };

static void launch(ze_command_list_handle_t list, ze_kernel_handle_t kernel)
{
	const ze_group_count_t one = { 1, 1, 1 };

	for (unsigned i = 0; i < KERNELS; i++)
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
}

static void use_anew(void)
{
	struct ze_app app;
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	launch(list, kernel);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "leave";
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	struct ze_app app;
	int status = -1;
	pid_t pid;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	launch(list, kernel);
	pid = fork();
	if (!pid) {
		if (!strcmp(mode, "use")) {
			launch(list, kernel);
			ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
			use_anew();
			printf("child %d kernels\n", 2 * KERNELS);
		}
		if (strcmp(mode, "leave"))
			exit(0);
		_exit(0);
	}
	launch(list, kernel);
	if (waitpid(pid, &status, 0) != pid || status)
		printf("child: status %d\n", status);
	launch(list, kernel);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	printf("%d kernels\n", 3 * KERNELS);
	ZE_CHECK(zeCommandListDestroy(list));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	return 0;
}
