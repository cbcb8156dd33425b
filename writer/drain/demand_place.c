/*
 * Where a trace of --on-demand may be. Any user's program may stand in the daemon's place, so a
 * path that it names must not lead to where that user could not write.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demand_config.h"

size_t xs_demand_base(const char *path)
{
	const char *directory = getenv("KINETO_ONDEMAND_TRACE_DIR");
	size_t length;

	if (!directory || !directory[0])
		directory = "/tmp/";
	length = strlen(directory);
	return !strncmp(path, directory, length) &&
			       (directory[length - 1] == '/' || path[length] == '/')
		       ? length
		       : 0;
}

/* Can nobody but this user and root put anything else into the place of what is in there? */
static bool is_ours(int directory)
{
	struct stat info;

	if (fstat(directory, &info) || (info.st_uid && info.st_uid != geteuid()))
		return false;
	return info.st_mode & S_ISVTX ||
	       !(info.st_mode & S_IWOTH || (info.st_mode & S_IWGRP && info.st_gid != getegid()));
}

bool xs_demand_is_safe(const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	char name[PATH_MAX];
	const char *at = path + xs_demand_base(path), *slash;
	int directory, next;
	bool safe = true;

	memcpy(name, path, (size_t)(at - path));
	name[at - path] = '\0';
	directory = open(name, flags); /* links on the way there are the user's choice */
	while (safe && directory >= 0 && (slash = strchr(at, '/'))) {
		memcpy(name, at, (size_t)(slash - at));
		name[slash - at] = '\0';
		at = slash + 1;
		if (!name[0])
			continue;
		next = openat(directory, name, flags | O_NOFOLLOW);
		(void)close(directory);
		directory = next;
		safe = directory >= 0 && is_ours(directory);
	}
	safe &= directory >= 0;
	if (directory >= 0)
		(void)close(directory);
	return safe;
}

/* Kineto's begin with a line's end behind the brace. */
static bool begins_as_a_trace(int fd)
{
	static const char *const words[] = { "\"schemaVersion\"", "\"displayTimeUnit\"",
					     "\"traceEvents\"" };
	char text[128];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	bool found = false;

	text[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		found |= strstr(text, words[i]) != NULL;
	return text[0] == '{' && found;
}

bool xs_demand_may_replace(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat info;
	bool may;

	if (fd < 0)
		return lstat(path, &info) < 0;
	may = !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
	      begins_as_a_trace(fd);
	(void)close(fd);
	return may;
}
