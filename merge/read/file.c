#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int xm_temporary(void)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	if (!dir || !dir[0])
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	(void)snprintf(path, sizeof(path), "%s/xstrace-merge.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

static int write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(fd, data, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

/* All that comes from `from`: into a file; *ret_size are its bytes. Its descriptor or -errno. */
static int spool(int from, off_t *ret_size)
{
	int fd = xm_temporary(), result = fd < 0 ? fd : 0;
	char data[65536];

	*ret_size = 0;
	while (!result) {
		ssize_t n = read(from, data, sizeof(data));

		if (!n)
			return fd;
		if (n < 0) {
			result = errno == EINTR ? 0 : -errno;
			continue;
		}
		result = write_all(fd, data, (size_t)n);
		*ret_size += n;
	}
	if (fd >= 0)
		close(fd);
	return result;
}

int xm_file_open(struct xm_file *file, const char *path, const struct stat *st)
{
	bool is_file = S_ISREG(st->st_mode);
	struct stat opened;
	int pipe;

	file->fd = -1;
	if (!is_file && !S_ISFIFO(st->st_mode))
		return S_ISDIR(st->st_mode) ? -EISDIR : -EMEDIUMTYPE;
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &opened) < 0 || S_ISREG(opened.st_mode) != is_file) {
		xm_file_close(file);
		return -ESTALE;
	}
	file->size = opened.st_size;
	if (is_file)
		return 0;
	pipe = file->fd;
	file->fd = spool(pipe, &file->size);
	close(pipe);
	return file->fd < 0 ? file->fd : 0;
}

bool xm_file_is_written(const struct xm_file *file)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return file->fd >= 0 && !fcntl(file->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

void xm_file_look_again(struct xm_file *file)
{
	struct stat st;

	if (!fstat(file->fd, &st))
		file->size = st.st_size;
}

void xm_file_close(struct xm_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
