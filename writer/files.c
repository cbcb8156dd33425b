/*
 * The files of a process: what they are called. None that exists is ever overwritten.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "writer.h"

static const char *suffix_of(const struct xs_options *options, enum xs_file kind)
{
	if (kind == XS_FILE_FOLDED)
		return ".folded";
	return options->compress ? ".json.zst" : ".json";
}

/* The output directory as an absolute path. */
static int directory(const struct xs_options *options, char *path, size_t size)
{
	const char *dir = options->output_dir;
	size_t n;

	if (dir[0] == '/')
		return snprintf(path, size, "%s", dir) < (int)size ? 0 : -ENAMETOOLONG;
	if (!getcwd(path, size))
		return -errno;
	n = strlen(path);
	if (dir[0] && snprintf(path + n, size - n, "/%s", dir) >= (int)(size - n))
		return -ENAMETOOLONG;
	return 0;
}

int xs_file_create(struct xs_process *process, enum xs_file kind, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	const char *suffix = suffix_of(options, kind);
	char comm[sizeof(process->comm)], dir[PATH_MAX];
	int error = directory(options, dir, sizeof(dir));

	if (error < 0)
		return error;
	memcpy(comm, process->comm, sizeof(comm));
	for (char *c = comm; *c; c++)
		if (*c == '/')
			*c = '_';
	for (unsigned n = 1; n < 10000; n++) {
		char number[16] = "";
		int fd;

		if (n > 1)
			(void)snprintf(number, sizeof(number), "-%u", n);
		if (snprintf(path, size, "%s/%s.%d%s%s", dir, comm, process->pid, number, suffix) >= (int)size)
			return -ENAMETOOLONG;
		/* before it exists: whoever recovers the run must know each file that we began */
		if (kind == XS_FILE_TRACE && !process->run->flight)
			memcpy(process->file->output, path, strlen(path) + 1);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 && !xs_run_can_spare(process->run, fd)) {
			close(fd);
			(void)unlink(path);
			return -EMFILE;
		}
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}
