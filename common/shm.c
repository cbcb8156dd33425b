#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

/*
 * Sets a new file's size. A file size limit (ulimit -f) must not kill the application for a file of
 * ours, which takes memory and no such room: a soft limit is raised for the moment; a hard one that
 * is too small is an error.
 */
static int set_size(int fd, uint64_t size)
{
	struct rlimit limit, raised;
	int result;

	if (xs_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) < 0 || limit.rlim_cur >= size)
		return (int)xs_sys(SYS_ftruncate, fd, size);
	if (limit.rlim_max < size)
		return -EFBIG;
	raised = limit;
	raised.rlim_cur = limit.rlim_max;
	if (xs_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &raised, NULL) < 0)
		return -EFBIG;
	result = (int)xs_sys(SYS_ftruncate, fd, size);
	(void)xs_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL);
	return result;
}

bool xs_shm_present(void *start, uint64_t size)
{
	long result = xs_sys(SYS_madvise, start, size, MADV_POPULATE_WRITE);

	if (result == -EPERM || result == -EACCES || result == -ENOSYS)
		return !xs_is_sealed(); /* a sandbox around the run refuses it: as older kernels */
	return !result || result == -EINVAL;
}

static void close_it(int fd)
{
	(void)xs_sys(SYS_close, fd);
}

/*
 * Directly: open() and close() are points where a thread may be cancelled, and this runs inside
 * applications. O_NONBLOCK: a pipe in a file's place is not waited for.
 */
static int open_at(int directory, const char *name, int flags)
{
	return (int)xs_sys_open(directory, name, flags | O_NOFOLLOW | O_NONBLOCK);
}

/* `rights`: for the owner; others have none. */
static bool is_own(const struct stat *st, mode_t type, mode_t rights)
{
	return (st->st_mode & S_IFMT) == type && st->st_uid == (uid_t)xs_sys(SYS_geteuid) &&
	       (st->st_mode & 0777) == rights;
}

int xs_shm_open_directory(const char *path)
{
	int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (!xs_sys(SYS_fstat, fd, &st) && is_own(&st, S_IFDIR, 0700))
		return fd;
	close_it(fd);
	return -EPERM;
}

void xs_shm_mark(int directory)
{
	struct flock whole = { .l_type = F_RDLCK };

	(void)fcntl(directory, F_SETLK, &whole);
}

bool xs_shm_is_marked(int directory, pid_t pid)
{
	struct flock lock = { .l_type = F_WRLCK };

	return !xs_sys(SYS_fcntl, directory, F_GETLK, &lock) && lock.l_type == F_RDLCK &&
	       lock.l_pid == pid;
}

bool xs_shm_is_anyones(int directory)
{
	struct flock lock = { .l_type = F_WRLCK };

	return !xs_sys(SYS_fcntl, directory, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static int open_own(int directory, const char *name, enum xs_shm_access access, struct stat *st)
{
	int fd = open_at(directory, name,
			 access == XS_SHM_READ	   ? O_RDONLY
			 : access == XS_SHM_CREATE ? O_RDWR | O_CREAT | O_EXCL
						   : O_RDWR);

	if (fd < 0)
		return fd;
	if (!xs_sys(SYS_fstat, fd, st) && st->st_nlink == 1 &&
	    (is_own(st, S_IFREG, 0600) ||
	     (access == XS_SHM_CREATE &&
	      !xs_sys(SYS_fchmod, fd, 0600)))) /* an odd umask takes more away */
		return fd;
	close_it(fd);
	return -EPERM;
}

int xs_shm_open(int directory, const char *name, enum xs_shm_access access)
{
	struct stat st;

	return open_own(directory, name, access, &st);
}

int xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
		  void **ret_map, struct xs_shm_file *ret_file)
{
	struct stat st;
	int fd = open_own(directory, name, access, &st), error;
	void *map;
	long at;

	if (fd < 0)
		return fd;
	error = access == XS_SHM_CREATE ? set_size(fd, size) : 0;
	if (error < 0)
		goto out;
	if (access != XS_SHM_CREATE) {
		if (!size)
			size = (uint64_t)st.st_size;
		if (!size || (uint64_t)st.st_size < size) {
			error = -EBADMSG;
			goto out;
		}
	}
	at = xs_sys(SYS_mmap, NULL, size,
		    access == XS_SHM_READ ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at < 0 && at >= -4095) {
		error = (int)at;
		goto out;
	}
	map = (void *)at;
	if (access == XS_SHM_CREATE && !xs_shm_present(map, XS_PAGE)) {
		error = -ENOSPC;
		(void)xs_sys(SYS_munmap, map, size);
		goto out;
	}
	*ret_map = map;
	if (ret_file)
		*ret_file = (struct xs_shm_file){ .size = size, .inode = st.st_ino };
out:
	if (error && access == XS_SHM_CREATE)
		(void)xs_sys(SYS_unlinkat, directory, name, 0);
	close_it(fd);
	return error;
}

int xs_shm_map(const char *path, const char *name, enum xs_shm_access access, uint64_t size,
	       void **ret_map, struct xs_shm_file *ret_file)
{
	int directory = xs_shm_open_directory(path), error;

	if (directory < 0)
		return directory;
	error = xs_shm_map_at(directory, name, access, size, ret_map, ret_file);
	close_it(directory);
	return error;
}

uint64_t xs_file_word(uint64_t inode, int32_t pid, uint32_t serial, uint32_t number)
{
	uint64_t word = inode * 0x9e3779b97f4a7c15ull;

	word = (word ^ word >> 32 ^ ((uint64_t)(uint32_t)pid << 32 | serial)) *
	       0xbf58476d1ce4e5b9ull;
	word = (word ^ word >> 29 ^ number) * 0x94d049bb133111ebull;
	return word | 1;
}

bool xs_run_parse(const char *value, char *dir, size_t size, const char **ret_secret)
{
	const char *colon = value ? strrchr(value, ':') : NULL;
	size_t length = colon ? (size_t)(colon - value) : 0;

	if (!length || length >= size || strlen(colon + 1) != XS_SECRET)
		return false;
	memcpy(dir, value, length);
	dir[length] = '\0';
	*ret_secret = colon + 1;
	return true;
}

bool xs_control_valid(const struct xs_control *control, const char *secret)
{
	/* pairs with the release of the launcher, which has written all else before */
	return atomic_load_explicit(&control->magic, memory_order_acquire) == XS_MAGIC &&
	       control->version == XS_SHM_VERSION &&
	       (!secret || !memcmp(control->secret, secret, XS_SECRET));
}

bool xs_control_is_whole(const struct xs_control *control)
{
	return control->options_sum == xs_options_sum(&control->options);
}

void xs_pauses_begin(struct xs_pauses *pauses, uint64_t tick)
{
	uint32_t count = atomic_load_explicit(&pauses->count, memory_order_relaxed),
		 at = count % XS_PAUSES;

	atomic_store_explicit(&pauses->last[at].from, tick, memory_order_relaxed);
	atomic_store_explicit(&pauses->last[at].to, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&pauses->count, count + 1, memory_order_release);
}

void xs_pauses_end(struct xs_pauses *pauses, uint64_t tick)
{
	uint32_t count = atomic_load_explicit(&pauses->count, memory_order_relaxed);

	/* before recording is on again: whoever sees a record from then on sees this */
	if (count)
		atomic_store_explicit(&pauses->last[(count - 1) % XS_PAUSES].to, tick,
				      memory_order_release);
}

bool xs_control_pause(struct xs_control *control, enum xs_pause_reason reason, bool on)
{
	uint32_t was = atomic_load_explicit(&control->paused, memory_order_relaxed), now;

	if (on)
		atomic_fetch_or_explicit(&control->paused_ever, reason, memory_order_relaxed);
	do {
		now = on ? was | reason : was & ~(uint32_t)reason;
		if (!(now & XS_PAUSE_ALL) && was & XS_PAUSE_ALL)
			xs_pauses_end(&control->pauses, xs_tick(control->use_tsc));
		if (was & ~now & XS_PART_HOST)
			xs_pauses_end(&control->host_pauses, xs_tick(control->use_tsc));
	} while (!atomic_compare_exchange_weak(&control->paused, &was, now));
	if (now & XS_PAUSE_ALL && !(was & XS_PAUSE_ALL))
		xs_pauses_begin(&control->pauses, xs_tick(control->use_tsc));
	if (now & ~was & XS_PART_HOST)
		xs_pauses_begin(&control->host_pauses, xs_tick(control->use_tsc));
	return now != was;
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

static void put_file_name(char *text, char kind, int32_t pid, uint32_t serial, uint32_t segment)
{
	*text++ = kind;
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

void xs_process_file_name(char *text, int32_t pid, uint32_t serial, uint32_t segment)
{
	put_file_name(text, 'p', pid, serial, segment);
}

void xs_kept_name(char *text, int32_t pid, uint32_t serial, uint32_t segment)
{
	put_file_name(text, 'd', pid, serial, segment);
}

void xs_activity_name(char *text, int32_t pid, uint32_t serial, uint32_t number)
{
	put_file_name(text, 'c', pid, serial, 0);
	text += strlen(text);
	*text++ = '.';
	*put_number(text, number) = '\0';
}

void xs_dump_name(char *text, uint32_t number)
{
	*text++ = 't';
	*put_number(text, number) = '\0';
}

void xs_stacks_name(char *text, uint32_t number)
{
	*text++ = 'k';
	*put_number(text, number) = '\0';
}

/* A number without anything around it. Returns its end; NULL: it is none. */
static const char *take_number(const char *text, uint64_t most, uint64_t *ret)
{
	const char *start = text;

	for (*ret = 0; *text >= '0' && *text <= '9' && *ret <= most; text++)
		*ret = *ret * 10 + (uint64_t)(*text - '0');
	return text == start || *ret > most || (*start == '0' && text > start + 1) ? NULL : text;
}

bool xs_process_file_parse(const char *text, int32_t *ret_pid, uint32_t *ret_serial)
{
	uint64_t pid, serial;
	const char *at = *text == 'p' ? take_number(text + 1, INT32_MAX, &pid) : NULL;

	at = at && *at == '.' && pid ? take_number(at + 1, UINT32_MAX, &serial) : NULL;
	if (!at || *at)
		return false;
	*ret_pid = (int32_t)pid;
	*ret_serial = (uint32_t)serial;
	return true;
}
