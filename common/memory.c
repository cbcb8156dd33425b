/*
 * How much memory there is: what the kernel says of the machine, and of this process's group.
 */
#include "memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The beginning of a file, with a NUL. False: it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

uint64_t xs_memory_available(void)
{
	static const char key[] = "\nMemAvailable:";
	char text[512];
	const char *line = read_text("/proc/meminfo", text, sizeof(text)) ? strstr(text, key)
									  : NULL;

	return line ? strtoull(line + sizeof(key) - 1, NULL, 10) << 10 : UINT64_MAX;
}

static uint64_t limit_in(const char *directory, const char *name)
{
	char path[PATH_MAX + 64], text[64];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (!read_text(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return UINT64_MAX; /* "max" */
	return strtoull(text, NULL, 10);
}

/*
 * The least limit of a group and of those around it. `own`: its path below `root`, up to a line's
 * end. Where that leads to nothing (a container sees its own group as the root) the root counts.
 */
static uint64_t least_limit(const char *root, const char *own, const char *name)
{
	uint64_t least = UINT64_MAX, limit;
	char path[PATH_MAX];
	size_t length = strlen(root);

	(void)snprintf(path, sizeof(path), "%s%.*s", root, (int)strcspn(own, "\n"), own);
	while (strlen(path) >= length) {
		limit = limit_in(path, name);
		least = limit < least ? limit : least;
		*strrchr(path, '/') = '\0';
	}
	return least;
}

uint64_t xs_memory_limit(void)
{
	static const char older[] = ":memory:", newer[] = "0::";
	char groups[PATH_MAX];
	bool known = read_text("/proc/self/cgroup", groups, sizeof(groups));
	const char *in_older = known ? strstr(groups, older) : NULL;
	const char *in_newer = known ? strstr(groups, newer) : NULL;
	uint64_t first = least_limit("/sys/fs/cgroup/memory",
				     in_older ? in_older + sizeof(older) - 1 : "",
				     "memory.limit_in_bytes");
	uint64_t second = least_limit("/sys/fs/cgroup",
				      in_newer ? in_newer + sizeof(newer) - 1 : "", "memory.max");

	return first < second ? first : second;
}
