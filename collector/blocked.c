#include "blocked.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "sys.h"

#define NOT_BLOCKED UINT64_MAX /* the kernel blocks no SIGKILL */
/*
 * glibc's: setuid() and its like wait until each thread has taken it, also one that has ended
 * otherwise (nptl/nptl_setxid.c).
 */
#define SETXID 33

struct xs_blocked xs_block(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	uint64_t blocked = ~(1ull << (SETXID - 1));
	struct xs_blocked before = { 0 };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		blocked &= ~(1ull << (faults[i] - 1));
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel_state);
	/* the process does not seal itself between the two: the second call would not be made */
	if (xs_sys_begin() && !xs_sys_always(SYS_rt_sigprocmask, SIG_BLOCK, &blocked,
					     &before.signals, sizeof(blocked)))
		return before;
	xs_sys_end();
	before.signals = NOT_BLOCKED;
	return before;
}

bool xs_is_blocked(struct xs_blocked blocked)
{
	return blocked.signals != NOT_BLOCKED;
}

void xs_unblock(struct xs_blocked before)
{
	if (xs_is_blocked(before)) {
		(void)xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &before.signals, NULL,
				    sizeof(before.signals));
		xs_sys_end();
	}
	/* last: the thread may end here, if it can be cancelled anywhere */
	(void)pthread_setcancelstate(before.cancel_state, NULL);
}
