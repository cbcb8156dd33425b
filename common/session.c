/*
 * What the launcher and the drain process do with a whole run: its variable, its name, its end, asking for a dump. Nothing of it runs in a
 * traced process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "shm.h"

void xs_run_variable(char *text, const char *dir, const struct xs_control *control)
{
	(void)snprintf(text, XS_ENV_RUN_MAX, "%s:%.*s", dir, (int)XS_SECRET, control->secret);
}

bool xs_session_link(unsigned n, unsigned uid, const char *session, char *path)
{
	static const char *const dirs[] = { "/dev/shm", "/tmp" };

	if (n >= sizeof(dirs) / sizeof(dirs[0]))
		return false;
	(void)snprintf(path, PATH_MAX, "%s/xstrace-session-%u-%s", dirs[n], uid, session);
	return true;
}

void xs_session_remove(const char *session, const char *dir)
{
	char path[PATH_MAX], here[PATH_MAX], there[PATH_MAX];

	if (!session[0] || !realpath(dir, here))
		return;
	for (unsigned n = 0; xs_session_link(n, geteuid(), session, path); n++)
		if (realpath(path, there) && !strcmp(here, there))
			(void)unlink(path);
}

/* A descriptor whose end is the lock's end; -1: none. */
static int lock(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* locks are of open files, and `directory` may be shared */

	for (int i = 0; fd >= 0 && i < 200 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
		(void)usleep(1000);
	return fd;
}

bool xs_control_change(int directory, struct xs_control *control, enum xs_pause_reason reason, bool on)
{
	int fd = lock(directory);
	bool changed = xs_control_pause(control, reason, on);

	if (fd >= 0)
		close(fd);
	return changed;
}

uint32_t xs_control_dump(struct xs_control *control, struct xs_mailbox *mailbox, enum xs_dump_reason reason)
{
	uint32_t number;

	atomic_fetch_or_explicit(&control->dump_reasons, reason, memory_order_relaxed);
	/* pairs with the acquire in xs_flight_asked() */
	number = atomic_fetch_add_explicit(&control->dumps, 1, memory_order_release) + 1;
	xs_doorbell_ring(&mailbox->bell);
	return number;
}

int xs_shm_remove(int directory, const char *path)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!entries)
		return errno == ENOENT ? 0 : -1; /* somebody was faster */
	while ((entry = readdir(entries)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(entries), entry->d_name, 0);
	closedir(entries);
	return rmdir(path) < 0 && errno != ENOENT ? -1 : 0;
}
