/*
 * The spool: a file on disk for what the backlog has no memory for. Its name stands in a file that
 * only drain processes open, so that --recover finds it; it is removed at the end.
 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "paths.h"
#include "text.h"

/* A file there would take the memory that there is none of. */
static bool is_memory(const char *directory)
{
	struct statfs fs;

	return statfs(directory, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

/* Before it exists: a successor must know what it has to remove. */
static int create_in(const char *directory, struct xs_spool_place *place)
{
	uint64_t number = 0;
	struct stat st;
	int fd;

	if (directory[0] != '/' || is_memory(directory))
		return -ENOENT;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = xs_clock_ns(CLOCK_MONOTONIC);
	if (snprintf(place->path, sizeof(place->path), "%s/.xstrace-backlog-%d-%016llx", directory,
		     getpid(), (unsigned long long)number) >= (int)sizeof(place->path))
		return -ENAMETOOLONG;
	fd = open(place->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!fchmod(fd, 0600) && !fstat(fd, &st)) { /* an odd umask takes more away */
		place->device = st.st_dev;
		place->inode = st.st_ino;
		return fd;
	}
	xs_spool_remove(place, fd);
	close(fd);
	return -EPERM;
}

int xs_spool_create(const struct xs_run *run, struct xs_spool_place *place)
{
	const char *temporary = getenv("TMPDIR");
	char output[PATH_MAX];
	/* where the user puts what is larger still: the text of it */
	bool known = !xs_path_from_root(run->options->output_dir, output, sizeof(output));
	const char *const directories[] = { known ? output : "", temporary ? temporary : "",
					    "/var/tmp" };
	int fd = -ENOENT;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) && fd < 0; i++)
		fd = create_in(directories[i], place);
	if (fd < 0)
		place->path[0] = '\0';
	return fd;
}

int xs_spool_open(const struct xs_spool_place *place)
{
	struct stat st;
	int fd;

	if (place->path[0] != '/' || !memchr(place->path, '\0', sizeof(place->path)))
		return -ENOENT;
	fd = open(place->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 07777) == 0600 && st.st_nlink == 1 &&
	    (!place->inode || (st.st_ino == place->inode && st.st_dev == place->device)))
		return fd;
	close(fd);
	return -EPERM;
}

void xs_spool_remove(struct xs_spool_place *place, int fd)
{
	struct stat own, named;

	if (!fstat(fd, &own) && !lstat(place->path, &named) && own.st_dev == named.st_dev &&
	    own.st_ino == named.st_ino && unlink(place->path) < 0) {
		/* a directory may take files and give none back (chattr +a) */
		xs_tell("[WARNING] %s cannot be removed: %s; nothing needs it any more\n",
			place->path, strerror(errno));
		if (ftruncate(fd, 0) < 0) {
			/* it stays as large as it is */
		}
	}
	place->path[0] = '\0';
}
