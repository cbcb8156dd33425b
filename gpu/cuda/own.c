/*
 * What is our own and not the program's: calls; and times when no signal of its arrives, and none
 * for threads that are made meanwhile.
 */
#include <signal.h>

#include "xs_cuda.h"
#include "sys.h"

__thread bool xs_cuda_is_ours __attribute__((tls_model("initial-exec")));

uint64_t xs_cuda_block(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	uint64_t blocked = UINT64_MAX, before = 0;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		blocked &= ~(1ull << (faults[i] - 1));
	(void)xs_sys(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof(blocked));
	return before;
}

void xs_cuda_unblock(uint64_t before)
{
	(void)xs_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}
