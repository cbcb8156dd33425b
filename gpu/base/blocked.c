#include "blocked.h"

#include <signal.h>
#include <stddef.h>

#include "sys.h"

#define NOT_BLOCKED UINT64_MAX /* the kernel blocks no SIGKILL */
/*
 * glibc's: setuid() and its like wait until each thread has taken it, also one that has ended
 * otherwise (nptl/nptl_setxid.c).
 */
#define SETXID 33

uint64_t xs_block_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	uint64_t blocked = ~(1ull << (SETXID - 1)), before = 0;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		blocked &= ~(1ull << (faults[i] - 1));
	/* the process does not seal itself between the two: the second call would not be made */
	if (xs_sys_begin() &&
	    !xs_sys_always(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof(blocked)))
		return before;
	xs_sys_end();
	return NOT_BLOCKED;
}

void xs_unblock_signals(uint64_t before)
{
	if (before == NOT_BLOCKED)
		return;
	(void)xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	xs_sys_end();
}
