#include "last_words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "run_open.h"
#include "text.h"

#define FIRST	20000000u   /* ns: between the first looks */
#define LONGEST 1000000000u /* between two looks */

/* A file's own name, as descriptors of all processes have it: "pipe:[4711]". False: none. */
static bool read_name(int directory, const char *descriptor, char *name, size_t size)
{
	ssize_t n = readlinkat(directory, descriptor, name, size - 1);

	name[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/* Has the process our stderr? One that lives and cannot be looked at may have. */
static bool has_stderr(int pid)
{
	char path[48], ours[PATH_MAX], its[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (!read_name(AT_FDCWD, "/proc/self/fd/2", ours, sizeof(ours)))
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno != ENOENT && errno != ESRCH;
	while (!found && (entry = readdir(dir)))
		found = read_name(dirfd(dir), entry->d_name, its, sizeof(its)) &&
			!strcmp(its, ours);
	closedir(dir);
	return found;
}

static bool is_wanted(const struct xs_loop *loop)
{
	for (const struct xs_process *p = loop->processes; p; p = p->next)
		if (has_stderr(p->pid))
			return true;
	return xs_run_has_descendant(&loop->run, has_stderr);
}

static bool ends_with_its_writers(void)
{
	struct stat st;

	return !fstat(STDERR_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

void xs_last_words(struct xs_loop *loop)
{
	struct xs_last_words *words = &loop->last_words;
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);
	int null;

	if (words->over || now < words->next)
		return;
	if (!words->next)
		words->over = !ends_with_its_writers();
	words->pause = !words->pause		    ? FIRST
		       : words->pause < LONGEST / 2 ? words->pause * 2
						    : LONGEST;
	words->next = now + words->pause;
	if (words->over)
		return;
	words->unwanted = is_wanted(loop) ? 0 : words->unwanted + 1;
	/* a process that is just calling exec has no environment to know it by: look twice */
	if (words->unwanted < 2)
		return;
	words->over = true;
	xs_tell("[INFO] Processes of the run go on without this stderr: no line tells of their "
		"traces\n");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return;
	(void)dup2(null, STDERR_FILENO);
	close(null);
}
