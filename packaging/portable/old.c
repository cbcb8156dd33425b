/*
 * What glibc before 2.33 has no function for, as its headers had the body: linked into what is to
 * run with glibc 2.28. Nobody else sees them.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef stat
#undef fstat
#undef lstat

int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int fd, struct stat64 *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int fstatat64(int directory, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, directory, path, st, flags);
}
