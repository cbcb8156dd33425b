#include "below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* The directory at the end of path[0 … length), from `from` (which is closed) without a link. */
static int walk(int from, const char *path, size_t length)
{
	const char *end = path + length;

	while (from >= 0 && path < end) {
		char name[NAME_MAX + 1];
		size_t n = strcspn(path, "/");
		int next = -ENAMETOOLONG;

		if (n > (size_t)(end - path))
			n = (size_t)(end - path);
		if (n && n < sizeof(name)) {
			memcpy(name, path, n);
			name[n] = '\0';
			next = openat(from, name, DIRECTORY | O_NOFOLLOW);
			if (next < 0)
				next = -errno;
		}
		if (n) {
			close(from);
			from = next;
		}
		path += n + (path + n < end);
	}
	return from;
}

static int walk_from_root(const char *path)
{
	int from = open(path[0] == '/' ? "/" : ".", DIRECTORY);

	return from < 0 ? -errno : walk(from, path, strlen(path));
}

static char *resolved(const char *path)
{
	int fd = walk_from_root(path);
	char *result = fd < 0 ? realpath(path, NULL) : NULL;

	if (fd >= 0)
		close(fd);
	return result ? result : strdup(path);
}

void xs_below_resolve(struct xs_run *run)
{
	const char *report = run->options->output, *name = strrchr(report, '/');
	char directory[XS_PATH_MAX];

	(void)snprintf(directory, sizeof(directory), "%.*s",
		       name == report ? 1
		       : name	      ? (int)(name - report)
				      : 0,
		       report);
	run->bases[XS_BASE_OUTPUT] = resolved(run->options->output_dir);
	run->bases[XS_BASE_REPORT] = resolved(directory);
}

void xs_below_fini(struct xs_run *run)
{
	for (size_t i = 0; i < sizeof(run->bases) / sizeof(run->bases[0]); i++) {
		free(run->bases[i]);
		run->bases[i] = NULL;
	}
}

int xs_below_open(struct xs_run *run, enum xs_base base, const char *path, unsigned depth,
		  const char **ret_name)
{
	const char *name = strrchr(path, '/') + 1, *below = name;
	int fd;

	*ret_name = name;
	while (--depth)
		for (below--; below[-1] != '/'; below--)
			;
	if (base == XS_BASE_PATH) {
		char directory[PATH_MAX];

		(void)snprintf(directory, sizeof(directory), "%.*s", (int)(below - path), path);
		fd = open(directory, DIRECTORY);
		return walk(fd < 0 ? -errno : fd, below, (size_t)(name - below));
	}
	if (!run->bases[XS_BASE_OUTPUT])
		xs_below_resolve(run);
	if (!run->bases[base])
		return -ENOMEM;
	return walk(walk_from_root(run->bases[base]), below, (size_t)(name - below));
}

int xs_below_make_directory(struct xs_run *run, enum xs_base base, const char *path, unsigned depth)
{
	const char *name;
	int directory = xs_below_open(run, base, path, depth, &name), error = 0;

	if (directory < 0)
		return directory;
	if (mkdirat(directory, name, 0777) < 0)
		error = -errno;
	close(directory);
	return error;
}

int xs_below_create(struct xs_run *run, enum xs_base base, const char *path, unsigned depth)
{
	const char *name;
	int directory = xs_below_open(run, base, path, depth, &name), fd;

	if (directory < 0)
		return directory;
	fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		fd = -errno;
	close(directory);
	return fd;
}
