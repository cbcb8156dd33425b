/*
 * What the launcher and the drain process do with a whole run: its variable, its name, its end,
 * asking for a dump. Nothing of it runs in a traced process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
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
	/* locks are of open files, and `directory` may be shared */
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0;
	     fd >= 0 && i < 200 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
		(void)usleep(1000);
	return fd;
}

bool xs_control_change(int directory, struct xs_control *control, enum xs_pause_reason reason,
		       bool on)
{
	int fd = lock(directory);
	bool changed = xs_control_pause(control, reason, on);

	if (fd >= 0)
		close(fd);
	return changed;
}

uint32_t xs_control_dump(struct xs_control *control, struct xs_mailbox *mailbox,
			 enum xs_dump_reason reason)
{
	uint32_t number;

	atomic_fetch_or_explicit(&control->dump_reasons, reason, memory_order_relaxed);
	/* pairs with the acquire in xs_flight_asked() */
	number = atomic_fetch_add_explicit(&control->dumps, 1, memory_order_release) + 1;
	xs_doorbell_ring(&mailbox->bell);
	return number;
}

uint32_t xs_control_ask(struct xs_control *control, struct xs_mailbox *mailbox, bool on)
{
	uint32_t old = atomic_load_explicit(&control->session_asks, memory_order_relaxed), request;

	do
		request = ((old >> 1) + 1) << 1 | on;
	while (!atomic_compare_exchange_weak_explicit(&control->session_asks, &old, request,
						      memory_order_release, memory_order_relaxed));
	xs_doorbell_ring(&mailbox->bell);
	return request;
}

bool xs_control_is_served(const struct xs_control *control, uint32_t request)
{
	uint32_t served = atomic_load_explicit(&control->session_served, memory_order_acquire);

	return (int32_t)((served & ~1u) - (request & ~1u)) >= 0;
}

/* As the kernel gives it. */
struct entry {
	uint64_t inode, offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

bool xs_shm_each(int directory, void (*each)(void *user, const char *name), void *user)
{
	_Alignas(struct entry) char list[8192];
	long n = lseek(directory, 0, SEEK_SET) < 0 ? -1 : 1;

	while (n > 0) {
		n = syscall(SYS_getdents64, directory, list, sizeof(list));
		for (long at = 0; at < n; at += ((const struct entry *)(list + at))->size)
			each(user, ((const struct entry *)(list + at))->name);
	}
	return n == 0 || errno == ENOENT; /* it was removed: there is nothing in it */
}

/* In the order of going: who is killed meanwhile leaves nothing else but these. */
static const char *const last[] = { "strings", "mailbox", "control" };

bool xs_shm_goes_last(const char *name)
{
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (!strcmp(name, last[i]))
			return true;
	return false;
}

static void remove_one(void *user, const char *name)
{
	if (name[0] != '.' && !xs_shm_goes_last(name))
		(void)unlinkat(*(const int *)user, name, 0);
}

int xs_shm_remove(int directory, const char *path)
{
	if (!xs_shm_each(directory, remove_one, &directory))
		return errno == ENOENT ? 0 : -1; /* another process was faster */
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		(void)unlinkat(directory, last[i], 0);
	return rmdir(path) < 0 && errno != ENOENT ? -1 : 0;
}
