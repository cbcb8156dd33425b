#include "keep.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm.h"

#define MAPPINGS 64

static bool is_kept;	   /* the process's files are those of all runs */
static bool is_drain_kept; /* and the drain side's beside them, too */

static struct mapping {
	char name[XS_NAME_MAX];
	dev_t device;
	ino_t number;
	size_t size;
	enum xs_shm_access access;
	void *address;
	bool is_gone; /* of a file that the drain side has made: it was removed */
} mappings[MAPPINGS];
static unsigned mapping_count;

/* One of a process, p<pid>.<serial>…, or what the drain side has beside it, d<pid>.<serial>… */
static bool is_process_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return is_kept && (name[0] == 'p' || (is_drain_kept && name[0] == 'd')) && name[1] >= '0' &&
	       name[1] <= '9';
}

static struct mapping *find_name(const char *name)
{
	for (unsigned i = 0; i < mapping_count; i++)
		if (!strcmp(mappings[i].name, name))
			return &mappings[i];
	return NULL;
}

static struct mapping *find_file(const struct stat *st, uint64_t size, enum xs_shm_access access)
{
	for (unsigned i = 0; i < mapping_count; i++) {
		struct mapping *m = &mappings[i];

		if (m->device == st->st_dev && m->number == st->st_ino &&
		    m->size == (size ? size : (uint64_t)st->st_size) && m->access == access)
			return m;
	}
	return NULL;
}

static void note(const char *name, const struct stat *st, uint64_t size, enum xs_shm_access access,
		 void *address)
{
	struct mapping *m = &mappings[mapping_count];

	if (mapping_count == MAPPINGS || strlen(name) >= sizeof(m->name))
		return;
	mapping_count++;
	*m = (struct mapping){ .device = st->st_dev,
			       .number = st->st_ino,
			       .size = size ? size : (uint64_t)st->st_size,
			       .access = access,
			       .address = address };
	memcpy(m->name, name, strlen(name) + 1);
}

int __real_xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
			 void **ret_map, struct xs_shm_file *ret_file);
int __wrap_xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
			 void **ret_map, struct xs_shm_file *ret_file);

/* It is made, as empty as any new file. */
static int make(int directory, const char *name, uint64_t size, void **ret_map,
		struct xs_shm_file *ret_file)
{
	struct mapping *m = find_name(name);
	struct stat st;
	int error;

	if (m && (!m->is_gone || m->size != size))
		return -EEXIST;
	if (m) {
		m->is_gone = false;
		memset(m->address, 0, size);
		*ret_map = m->address;
		if (ret_file)
			*ret_file = (struct xs_shm_file){ size, m->number };
		return 0;
	}
	error = __real_xs_shm_map_at(directory, name, XS_SHM_CREATE, size, ret_map, ret_file);
	if (!error && !fstatat(directory, name, &st, 0))
		note(name, &st, size, XS_SHM_OPEN, *ret_map);
	return error;
}

int __wrap_xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
			 void **ret_map, struct xs_shm_file *ret_file)
{
	struct mapping *m = find_name(name);
	struct stat st;
	int fd, error;

	if (!is_process_file(name))
		return __real_xs_shm_map_at(directory, name, access, size, ret_map, ret_file);
	if (access == XS_SHM_CREATE)
		return make(directory, name, size, ret_map, ret_file);
	if (m && m->is_gone)
		return -ENOENT;
	fd = xs_shm_open(directory, name, access); /* what it looks at is looked at each time */
	if (fd < 0)
		return fd;
	error = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	m = error ? NULL : find_file(&st, size, access);
	if (m) {
		*ret_map = m->address;
		if (ret_file)
			*ret_file = (struct xs_shm_file){ m->size, m->number };
		return 0;
	}
	if (!error)
		error = __real_xs_shm_map_at(directory, name, access, size, ret_map, ret_file);
	if (!error)
		note(name, &st, size, access, *ret_map);
	return error;
}

int __real_munmap(void *address, size_t size);
int __wrap_munmap(void *address, size_t size);

int __wrap_munmap(void *address, size_t size)
{
	for (unsigned i = 0; i < mapping_count; i++)
		if (mappings[i].address == address && mappings[i].size == size)
			return 0;
	return __real_munmap(address, size);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_unlinkat(int directory, const char *path, int flags);
int __wrap_unlinkat(int directory, const char *path, int flags);

static void remove_it(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct mapping *m = find_name(slash ? slash + 1 : path);

	if (m && m->name[0] == 'd')
		m->is_gone = true;
}

int __wrap_unlink(const char *path)
{
	if (!is_process_file(path))
		return __real_unlink(path);
	remove_it(path);
	return 0;
}

int __wrap_unlinkat(int directory, const char *path, int flags)
{
	if (!is_process_file(path))
		return __real_unlinkat(directory, path, flags);
	remove_it(path);
	return 0;
}

void keep_files(bool keep)
{
	is_kept = keep;
}

void keep_drain_files(void)
{
	is_drain_kept = true;
}
