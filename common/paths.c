#include "paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int xs_path_from_root(const char *path, char *out, size_t size)
{
	const char *given = path;
	/* bytes of out; of these, what the kernel says: no link is among them */
	size_t used = 0, real = 0;

	if (path[0] != '/') {
		if (!getcwd(out, size)) {
			int error = errno;

			(void)snprintf(out, size, "%s", path[0] ? path : ".");
			return error == ERANGE ? -ENAMETOOLONG : -error;
		}
		used = real = strcmp(out, "/") ? strlen(out) : 0;
	}
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && !memcmp(path, "..", 2) && used == real) {
			while (used && out[--used] != '/')
				;
			real = used;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (used + n + 2 > size) {
				(void)snprintf(out, size, "%s", given);
				return -ENAMETOOLONG;
			}
			out[used++] = '/';
			memcpy(out + used, path, n);
			used += n;
		}
		path += n;
	}
	if (!used)
		out[used++] = '/';
	out[used] = '\0';
	return 0;
}

void xs_path_of_program(const char *name, const char *folder, char *out)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 64);
	char *end;

	out[n > 0 ? n : 0] = '\0';
	end = strrchr(out, '/');
	end = end ? end + 1 : out;
	(void)snprintf(end, (size_t)(out + PATH_MAX - end), "%s", name);
	if (access(out, X_OK) < 0)
		(void)snprintf(end, (size_t)(out + PATH_MAX - end), "../%s/%s", folder, name);
}
