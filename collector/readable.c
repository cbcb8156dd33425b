/*
 * Whether memory of the program's can be read.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "collector.h"
#include "sys.h"

#define PAGE 4096u

bool xs_page_readable(uintptr_t address)
{
	long result;

	if (address < PAGE) /* no set at all, to the kernel */
		return false;
	/* an impossible operation: the kernel reads the set first, and says whether it could */
	result = xs_sys(SYS_rt_sigprocmask, ~0, address & ~(uintptr_t)(PAGE - 1), NULL, 8);
	return result != -EFAULT && result != -EPERM;
}
