#include "sys.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The kernel's table for processes of few files has 64: a number beyond makes it another one. */
#define ASIDE 56

_Atomic uint32_t xs_seal, xs_seal_complete, xs_sys_going;
__thread uint32_t xs_sys_mine __attribute__((tls_model("initial-exec")));

static bool is_one_file(long a, long b)
{
	struct stat file, other;

	return !xs_sys(SYS_fstat, a, &file) && !xs_sys(SYS_fstat, b, &other) &&
	       file.st_dev == other.st_dev && file.st_ino == other.st_ino;
}

long xs_sys_aside(long fd)
{
	long aside;

	if (fd < 0 || fd >= ASIDE)
		return fd;
	aside = xs_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, ASIDE);
	if (aside < 0) /* ulimit -n */
		return fd;
	/* a thread that closes all that it does not know may have closed it, and opened its own */
	if (is_one_file(fd, aside))
		(void)xs_sys(SYS_close, fd);
	return aside;
}

long xs_sys_open(int directory, const char *path, int flags)
{
	return xs_sys_aside(xs_sys(SYS_openat, directory, path, flags | O_CLOEXEC, 0600));
}
