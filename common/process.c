#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys.h"
#include "valgrind.h"

#define PID_FS_MAGIC 0x50494446 /* Linux 6.9, <linux/magic.h> */

/*
 * "/proc/PID/…", in plain digits: usable in any context, stdio is not. `path` has room for 48
 * bytes.
 */
static void proc_path(char *path, pid_t pid, const char *name)
{
	char digits[16];
	int n = 0;

	memcpy(path, "/proc/", 6);
	path += 6;
	do
		digits[n++] = (char)('0' + pid % 10);
	while (pid /= 10);
	while (n)
		*path++ = digits[--n];
	strcpy(path, name);
}

struct stat_text {
	uint64_t start;
	int parent, threads;
	char state;
	int status; /* as of wait(), once it is a zombie */
};

static bool read_stat(pid_t pid, struct stat_text *ret)
{
	/* of a zombie, whose status is wanted, most numbers are 0 */
	char path[48], text[800], *p, *last;
	uint64_t value = 0;
	long n;
	int fd;

	proc_path(path, pid, "/stat");
	fd = (int)xs_sys_open(AT_FDCWD, path, O_RDONLY);
	if (fd < 0)
		return false;
	n = xs_sys(SYS_read, fd, text, sizeof(text) - 1);
	(void)xs_sys(SYS_close, fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')'); /* the name may hold anything, brackets too */
	if (!p || !p[1] || !p[2])
		return false;
	ret->state = p[2];
	ret->parent = atoi(p + 3);
	last = strrchr(p, ' ');
	ret->status = last ? atoi(last) : 0;
	p += 2;
	for (int field = 3; field < 22; field++) {
		p = strchr(p, ' ');
		if (!p)
			return false;
		p++;
		if (field + 1 == 20)
			ret->threads = atoi(p);
	}
	while (*p >= '0' && *p <= '9')
		value = value * 10 + (uint64_t)(*p++ - '0');
	ret->start = value;
	return true;
}

size_t xs_pid_arguments(pid_t pid, char *text, size_t size)
{
	char path[48];
	long n;
	int fd;

	proc_path(path, pid, "/cmdline");
	fd = (int)xs_sys_open(AT_FDCWD, path, O_RDONLY);
	if (fd < 0)
		return 0;
	n = xs_sys(SYS_read, fd, text, size);
	(void)xs_sys(SYS_close, fd);
	return n > 0 ? (size_t)n : 0;
}

uint64_t xs_pid_start(pid_t pid)
{
	struct stat_text stat;

	return read_stat(pid, &stat) ? stat.start : 0;
}

uint64_t xs_pid_identity(pid_t pid)
{
	/* which valgrind may not know, and says so */
	int fd = xs_in_valgrind() ? -ENOSYS : (int)xs_sys_aside(xs_sys(SYS_pidfd_open, pid, 0));
	struct statfs fs;
	struct stat st;
	bool known;

	if (fd < 0)
		return xs_pid_start(pid);
	/* before Linux 6.9 all pidfds have one inode, of another file system */
	known = !xs_sys(SYS_fstatfs, fd, &fs) && fs.f_type == PID_FS_MAGIC &&
		!xs_sys(SYS_fstat, fd, &st);
	(void)xs_sys(SYS_close, fd);
	return known ? st.st_ino : xs_pid_start(pid);
}

pid_t xs_pid_parent(pid_t pid)
{
	struct stat_text stat;

	return read_stat(pid, &stat) ? stat.parent : 0;
}

bool xs_pid_alive(pid_t pid, uint64_t start)
{
	struct stat_text stat;

	/* a program's main thread may end before the others: that is a zombie, too */
	if (read_stat(pid, &stat))
		return ((stat.state != 'Z' && stat.state != 'X') || stat.threads > 1) &&
		       (!start || stat.start == start);
	return xs_sys(SYS_kill, pid, 0) != -ESRCH;
}

bool xs_pid_stopped(pid_t pid)
{
	struct stat_text stat;

	return read_stat(pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

/* Linux's struct pidfd_info, <linux/pidfd.h>. */
struct exit_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define EXIT_INFO      _IOWR(0xFF, 11, struct exit_info)
#define EXIT_INFO_EXIT 8u

/* Known once its parent has been told. */
static bool read_exit(int pidfd, int *ret)
{
	struct exit_info info = { .mask = EXIT_INFO_EXIT };

	if (pidfd < 0 || ioctl(pidfd, EXIT_INFO, &info) || !(info.mask & EXIT_INFO_EXIT))
		return false;
	*ret = info.exit_code;
	return true;
}

bool xs_pid_status(pid_t pid, uint64_t start, int pidfd, int *ret)
{
	struct stat_text stat;

	if (read_exit(pidfd, ret))
		return true;
	/* 0 is also what those are told who must not know */
	if (read_stat(pid, &stat) && (stat.state == 'Z' || stat.state == 'X') &&
	    (!start || stat.start == start) && (stat.status || !kill(pid, 0))) {
		*ret = stat.status;
		return true;
	}
	return read_exit(pidfd, ret); /* its parent may have been told just now */
}

uint64_t xs_pid_namespace(pid_t pid)
{
	char path[48] = "/proc/self/ns/pid";
	struct stat st;

	if (pid)
		proc_path(path, pid, "/ns/pid");
	return xs_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) < 0 ? 0 : st.st_ino;
}

bool xs_proc_is_ours(void)
{
	char number[16];
	long n = xs_sys(SYS_readlinkat, AT_FDCWD, "/proc/self", number, sizeof(number) - 1);

	if (n <= 0)
		return false;
	number[n] = '\0';
	return atoi(number) == xs_sys(SYS_getpid);
}

/* The last number of the line "NSpid: 4711 12 1": the pid in the innermost namespace. */
static pid_t inner_pid(pid_t pid)
{
	char path[48], line[256];
	pid_t result = 0;
	FILE *file;

	proc_path(path, pid, "/status");
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!result && fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t'))
			result = atoi(strrchr(line, '\t'));
	fclose(file);
	return result;
}

static bool has_mapped(pid_t pid, const char *file)
{
	char path[48], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *maps;

	proc_path(path, pid, "/maps");
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &room, maps) > 0)
		found = strstr(line, file) != NULL;
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

pid_t xs_pid_outer(pid_t pid, uint64_t pid_namespace, const char *file)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	if (!dir)
		return 0;
	while (!found && (entry = readdir(dir))) {
		pid_t candidate = atoi(entry->d_name);

		if (candidate > 0 && inner_pid(candidate) == pid &&
		    (pid_namespace == XS_PID_NAMESPACE_UNKNOWN
			     ? has_mapped(candidate, file)
			     : xs_pid_namespace(candidate) == pid_namespace))
			found = candidate;
	}
	closedir(dir);
	return found;
}

pid_t xs_pid_living(pid_t pid)
{
	struct stat_text stat;
	struct dirent *entry;
	pid_t found = pid;
	char path[48];
	DIR *dir;

	if (read_stat(pid, &stat) && stat.state != 'Z')
		return pid;
	proc_path(path, pid, "/task");
	dir = opendir(path);
	if (!dir)
		return pid;
	while (found == pid && (entry = readdir(dir))) {
		pid_t candidate = atoi(entry->d_name);

		if (candidate > 0 && read_stat(candidate, &stat) && stat.state != 'Z')
			found = candidate;
	}
	closedir(dir);
	return found;
}
