#include "shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

/*
 * Sets a new file's size. A file size limit (ulimit -f) must not kill the application for a file of ours, which takes memory and no
 * such room: a soft limit is raised for the moment; a hard one that is too small is an error.
 */
static int set_size(int fd, uint64_t size)
{
	struct rlimit limit, raised;
	int result;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= size)
		return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
	if (limit.rlim_max < size)
		return -EFBIG;
	raised = limit;
	raised.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &raised) < 0)
		return -EFBIG;
	result = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	return result;
}

bool xs_shm_present(void *start, uint64_t size)
{
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels say EINVAL, and a full file system is a SIGBUS there */
#endif
	long result = xs_sys(SYS_madvise, start, size, MADV_POPULATE_WRITE);

	return !result || result == -EINVAL;
}

int xs_shm_map(const char *dir, const char *name, bool create, uint64_t size, void **ret_map, uint64_t *ret_size)
{
	char path[PATH_MAX];
	size_t dir_length = strlen(dir), name_length = strlen(name);
	struct stat st;
	void *map;
	int fd, error = 0;

	if (dir_length + name_length + 2 > sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dir, dir_length);
	path[dir_length] = '/';
	memcpy(path + dir_length + 1, name, name_length + 1);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0600);
	if (fd < 0)
		return -errno;
	error = create ? set_size(fd, size) : fstat(fd, &st) < 0 ? -errno : 0;
	if (error < 0)
		goto out;
	if (!create) {
		if (!size)
			size = (uint64_t)st.st_size;
		if (!size || (uint64_t)st.st_size < size) {
			error = -EBADMSG;
			goto out;
		}
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		error = -errno;
		goto out;
	}
	if (create && !xs_shm_present(map, XS_PAGE)) {
		error = -ENOSPC;
		munmap(map, size);
		goto out;
	}
	*ret_map = map;
	if (ret_size)
		*ret_size = size;
out:
	if (error && create)
		unlink(path);
	close(fd);
	return error;
}

void xs_pauses_begin(struct xs_pauses *pauses, uint64_t tick)
{
	uint32_t count = atomic_load_explicit(&pauses->count, memory_order_relaxed), at = count % XS_PAUSES;

	atomic_store_explicit(&pauses->last[at].from, tick, memory_order_relaxed);
	atomic_store_explicit(&pauses->last[at].to, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&pauses->count, count + 1, memory_order_release);
}

void xs_pauses_end(struct xs_pauses *pauses, uint64_t tick)
{
	uint32_t count = atomic_load_explicit(&pauses->count, memory_order_relaxed);

	/* before recording is on again: whoever sees a record from then on sees this */
	if (count)
		atomic_store_explicit(&pauses->last[(count - 1) % XS_PAUSES].to, tick, memory_order_release);
}

bool xs_control_pause(struct xs_control *control, enum xs_pause_reason reason, bool on)
{
	uint32_t was = atomic_load_explicit(&control->paused, memory_order_relaxed), now;

	do {
		now = on ? was | reason : was & ~(uint32_t)reason;
		if (!now && was)
			xs_pauses_end(&control->pauses, xs_tick(control->use_tsc));
	} while (!atomic_compare_exchange_weak(&control->paused, &was, now));
	if (now && !was)
		xs_pauses_begin(&control->pauses, xs_tick(control->use_tsc));
	return now != was;
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

uint32_t xs_control_dump(struct xs_control *control, enum xs_dump_reason reason)
{
	uint32_t number;

	atomic_fetch_or_explicit(&control->dump_reasons, reason, memory_order_relaxed);
	/* pairs with the acquire in xs_flight_asked() */
	number = atomic_fetch_add_explicit(&control->dumps, 1, memory_order_release) + 1;
	xs_doorbell_ring(&control->bell);
	return number;
}

int xs_shm_remove(const char *dir)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;

	if (!entries)
		return errno == ENOENT ? 0 : -1; /* somebody was faster */
	while ((entry = readdir(entries)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(entries), entry->d_name, 0);
	closedir(entries);
	return rmdir(dir) < 0 && errno != ENOENT ? -1 : 0;
}

static char *put_number(char *text, uint64_t value)
{
	char digits[24];
	int n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*text++ = digits[--n];
	return text;
}

void xs_process_name(char *text, int32_t pid, uint32_t serial, uint32_t segment)
{
	*text++ = 'p';
	text = put_number(text, (uint64_t)pid);
	*text++ = '.';
	text = put_number(text, serial);
	if (segment) {
		*text++ = '.';
		*text++ = 's';
		text = put_number(text, segment);
	}
	*text = '\0';
}
