/*
 * The application's file: finding it as execvp() would.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"
#include "regular.h"

static int check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int xs_program_find(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH");
	int result = -ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, size, "%s", name) >= (int)size)
			return -ENAMETOOLONG;
		return check(path);
	}
	for (list = list ? list : "/bin:/usr/bin";; list++) {
		size_t n = strcspn(list, ":");

		if (snprintf(path, size, "%.*s%s%s", (int)n, list, n ? "/" : "", name) <
		    (int)size) {
			int error = check(path);

			if (!error)
				return 0;
			if (error == -EACCES)
				result = error; /* as execvp: found but not allowed, unless one
						   further on is */
		}
		list += n;
		if (!*list)
			return result;
	}
}

bool xs_program_is_text(const char *path)
{
	char text[256];
	int fd = xs_open_regular(path);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return n >= 0 && !memchr(text, '\0', (size_t)n);
}
