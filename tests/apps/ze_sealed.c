/*
 * A program that puts itself into a sandbox, in which a call to the kernel for memory, signals,
 * time to sleep or a thread's id ends it, and goes on launching. ze_sealed LAUNCHES
 * (SOFTGPU_SYNC=1: the driver runs on the calling thread, and needs none of these)
 *
 *	ze_sealed strict	seccomp's strict mode, and destroys all that it has
 */
#include "ze_app.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void seal(void)
{
	static const unsigned refused[] = { SYS_mmap,	     SYS_munmap,
					    SYS_madvise,     SYS_rt_sigprocmask,
					    SYS_gettid,	     SYS_futex,
					    SYS_nanosleep,   SYS_clock_nanosleep,
					    SYS_sched_yield, SYS_process_vm_readv,
					    SYS_openat,	     SYS_getpid,
					    SYS_mprotect,    SYS_readlinkat };
	enum { COUNT = sizeof(refused) / sizeof(refused[0]) };
	struct sock_filter filter[2 * COUNT + 2] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							      offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .len = 2 * COUNT + 2, .filter = filter };

	for (unsigned i = 0; i < COUNT; i++) {
		filter[1 + 2 * i] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
		filter[2 + 2 * i] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	filter[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(77);
}

static void strict(const struct ze_app *app, ze_command_queue_handle_t queue,
		   ze_command_list_handle_t immediate)
{
	(void)fflush(stdout);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(77);
	(void)zeCommandListDestroy(immediate);
	(void)zeCommandQueueDestroy(queue);
	(void)zeContextDestroy(app->context);
	(void)!write(1, "went on\n", 8);
	(void)syscall(SYS_exit, 0);
}

int main(int argc, char **argv)
{
	unsigned launches = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t immediate, list;
	ze_command_queue_handle_t queue;
	ze_kernel_handle_t kernel;
	struct ze_app app;

	/* the C library keeps what is freed, and asks the kernel for nothing */
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 0);
	immediate = ze_app_immediate(&app, 0, 0, false);
	list = ze_app_list(&app, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
	ZE_CHECK(zeCommandListClose(list));
	if (argc > 1 && !strcmp(argv[1], "strict")) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(immediate, kernel, &one, NULL, 0, NULL));
		strict(&app, queue, immediate);
	}
	printf("sealed\n");
	(void)fflush(stdout);
	seal();
	for (unsigned i = 0; i < launches; i++) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(immediate, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
		ZE_CHECK(zeCommandQueueSynchronize(queue, 0));
	}
	printf("went on\n");
	(void)fflush(stdout);
	_exit(0); /* the driver would give back memory */
}
