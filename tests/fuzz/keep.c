#include "keep.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPINGS 64

static bool is_kept; /* the process's files are those of all runs */

static struct mapping {
	dev_t device;
	ino_t number;
	size_t size;
	int protection;
	void *address;
} mappings[MAPPINGS];
static unsigned mapping_count;

void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t size);
int __wrap_munmap(void *address, size_t size);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	struct stat st;
	void *map;

	/* one that has its place is wanted there, and nowhere else */
	if (fd < 0 || !(flags & MAP_SHARED) || flags & MAP_FIXED || offset || fstat(fd, &st) < 0)
		return __real_mmap(address, size, protection, flags, fd, offset);
	for (unsigned i = 0; i < mapping_count; i++) {
		struct mapping *m = &mappings[i];

		if (m->device == st.st_dev && m->number == st.st_ino && m->size == size &&
		    m->protection == protection)
			return m->address;
	}
	map = __real_mmap(address, size, protection, flags | MAP_POPULATE, fd, offset);
	if (map != MAP_FAILED && mapping_count < MAPPINGS)
		mappings[mapping_count++] =
			(struct mapping){ st.st_dev, st.st_ino, size, protection, map };
	return map;
}

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

/* One of a process: p<pid>.<serial>… */
static bool is_process_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return is_kept && name[0] == 'p' && name[1] >= '0' && name[1] <= '9';
}

int __wrap_unlink(const char *path)
{
	return is_process_file(path) ? 0 : __real_unlink(path);
}

int __wrap_unlinkat(int directory, const char *path, int flags)
{
	return is_process_file(path) ? 0 : __real_unlinkat(directory, path, flags);
}

void keep_files(bool keep)
{
	is_kept = keep;
}
