/*
 * The kernel's pages: new ones, and whether one can be read.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "self.h"
#include "sys.h"
#include "valgrind.h"

#define PAGE 4096u

void *xs_map_memory(size_t size)
{
	long map = xs_sys(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	return map < 0 && map >= -4095 ? NULL : (void *)map;
}

/* Of valgrind's checks this needs none: they are of our side of the copy. */
static bool can_be_copied(uintptr_t page)
{
	char first;
	struct iovec to = { &first, 1 }, from = { (void *)page, 1 };

	return xs_sys(SYS_process_vm_readv, xs_sys(SYS_getpid), &to, 1, &from, 1, 0) == 1;
}

bool xs_page_readable(uintptr_t address)
{
	long result;

	if (address < PAGE) /* no set at all, to the kernel */
		return false;
	if (xs_in_valgrind())
		return can_be_copied(address & ~(uintptr_t)(PAGE - 1));
	/* an impossible operation: the kernel reads the set first, and says whether it could */
	result = xs_sys(SYS_rt_sigprocmask, ~0, address & ~(uintptr_t)(PAGE - 1), NULL, 8);
	return result != -EFAULT && result != -EPERM;
}

/* Up to a page's end each: nothing is read behind the first one that cannot be. */
static size_t copy_by_pages(char *to, const char *from, size_t size)
{
	size_t done = 0, n;

	while (done < size && xs_page_readable((uintptr_t)from + done)) {
		n = PAGE - ((uintptr_t)from + done) % PAGE;
		n = n < size - done ? n : size - done;
		memcpy(to + done, from + done, n);
		done += n;
	}
	return done;
}

size_t xs_copy_readable(void *to, const void *from, size_t size)
{
	size_t first = PAGE - (uintptr_t)from % PAGE;
	struct iovec here = { to, size },
		     there[2] = { { (void *)from, first < size ? first : size },
				  { (char *)from + first, size - first } };
	long n;

	/* a filter that the program was started with may end it for a call that it never makes */
	if (xs_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) || xs_in_valgrind())
		return copy_by_pages(to, from, size);
	n = xs_sys(SYS_process_vm_readv, xs_sys(SYS_getpid), &here, 1, there, first < size ? 2 : 1,
		   0);
	return n > 0 ? (size_t)n : 0;
}
