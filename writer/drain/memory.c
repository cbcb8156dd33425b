/*
 * How much memory there is, for the backlog: what it takes must not be missing elsewhere.
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

uint64_t xs_memory_limit(void)
{
	static const char root[] = "/sys/fs/cgroup";
	/* the older kind: in a container its own group is seen as the root */
	uint64_t least = limit_in("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), limit;
	char path[sizeof(root) + PATH_MAX], groups[PATH_MAX];
	char *own = read_text("/proc/self/cgroup", groups, sizeof(groups)) ? strstr(groups, "0::/")
									   : NULL;

	if (!own)
		return least;
	own[strcspn(own, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "%s%s", root, own + 3);
	/* what is around a group limits it, too */
	while (strlen(path) >= sizeof(root) - 1) {
		limit = limit_in(path, "memory.max");
		least = limit < least ? limit : least;
		*strrchr(path, '/') = '\0';
	}
	return least;
}
