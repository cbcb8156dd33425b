/*
 * A program that is killed by any system call that it does not make itself, while CUDA works:
 *	cuda_sealed filter|all|strict|clock
 * `all` is for all threads, the others for the calling one. With SOFTCUDA_SYNC=1 a launch makes no
 * system call.
 */
#include "cuda_app.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { BEFORE = 10, WITHIN = 50000 };

#define ALLOW(call)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* What the C library needs for memory, locks and the end, and no more. */
static void put_filter(bool all)
{
	struct sock_filter allow[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(write),
		ALLOW(futex),
		ALLOW(clock_nanosleep),
		ALLOW(brk),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(exit),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(allow), .filter = allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    (all ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			   &program)
		 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
		die("seccomp");
}

static void launch(int times)
{
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
}

/* In strict mode the C library cannot end a thread. */
static void *strict(void *none)
{
	int device;

	(void)none;
	launch(BEFORE);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		die("seccomp");
	for (int i = 0; i < WITHIN; i++)
		(void)cudaGetDevice(&device);
	syscall(SYS_exit, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "strict")) {
		(void)pthread_join(start_thread(strict, NULL), NULL);
		launch(BEFORE);
		printf("sealed\n");
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "clock")) {
		launch(BEFORE);
		if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
			die("PR_SET_TSC");
		launch(WITHIN);
		printf("sealed\n");
		return 0;
	}
	printf("buffered\n"); /* stdio has its memory */
	fflush(stdout);
	launch(BEFORE);
	put_filter(argc > 1 && !strcmp(argv[1], "all"));
	launch(WITHIN);
	sleep_ms(300);
	printf("sealed\n");
	return 0;
}
