/*
 * xstrace --dump NAME: from another shell, makes a session's flight recorder write.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"

int xs_session_find(const char *name, char *dir, size_t size)
{
	char link[PATH_MAX + XS_PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/dev/shm/xstrace-session-%u-%s", (unsigned)geteuid(), name);
	/* everybody may make links there: only our own is believed */
	if (strchr(name, '/') || lstat(link, &st) < 0 || st.st_uid != geteuid())
		return -ENOENT;
	n = readlink(link, dir, size - 1);
	if (n < 0)
		return -errno;
	dir[n] = '\0';
	return 0;
}

static bool drain_lives(const struct xs_control *control)
{
	return xs_process_alive(control->bell.consumer_pid, control->bell.consumer_start);
}

static bool written(const struct xs_control *control, uint32_t number)
{
	return (int32_t)(atomic_load_explicit(&control->dumped, memory_order_acquire) - number) >= 0;
}

static int dump(struct xs_control *control, const char *name)
{
	uint32_t number;

	if (!control->options.flight) {
		fprintf(stderr, "xstrace: --dump %s: that session has no --flight-recorder\n", name);
		return XS_EXIT_SELF;
	}
	number = xs_control_dump(control, XS_DUMP_SESSION);
	while (!written(control, number)) {
		uint32_t seen = atomic_load_explicit(&control->dumped, memory_order_acquire);

		if (!drain_lives(control)) {
			fprintf(stderr, "xstrace: --dump %s: the session has just ended\n", name);
			return XS_EXIT_SELF;
		}
		if ((int32_t)(seen - number) < 0)
			xs_futex_wait(&control->dumped, seen, 50000000);
	}
	return 0;
}

int xs_dump(const char *name)
{
	struct xs_control *control;
	char dir[PATH_MAX];
	int error = xs_session_find(name, dir, sizeof(dir)), status;
	void *map;

	if (!error)
		error = xs_shm_map(dir, "control", false, sizeof(*control), &map, NULL);
	if (error < 0) {
		fprintf(stderr, "xstrace: --dump %s: there is no such session of this user\n", name);
		return XS_EXIT_SELF;
	}
	control = map;
	if (atomic_load_explicit(&control->magic, memory_order_acquire) != XS_MAGIC || control->version != XS_SHM_VERSION) {
		fprintf(stderr, "xstrace: --dump %s: the session is another version's\n", name);
		status = XS_EXIT_SELF;
	} else {
		status = dump(control, name);
	}
	munmap(map, sizeof(*control));
	return status;
}
