#include "keep.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 16
#define MAPPINGS 64

static struct {
	char name[XS_NAME_MAX], kept[XS_NAME_MAX + 8];
} files[FILES];
static unsigned file_count;

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

	if (fd < 0 || !(flags & MAP_SHARED) || offset || fstat(fd, &st) < 0)
		return __real_mmap(address, size, protection, flags, fd, offset);
	for (unsigned i = 0; i < mapping_count; i++) {
		struct mapping *m = &mappings[i];

		if (m->device == st.st_dev && m->number == st.st_ino && m->size == size && m->protection == protection)
			return m->address;
	}
	map = __real_mmap(address, size, protection, flags | MAP_POPULATE, fd, offset);
	if (map != MAP_FAILED && mapping_count < MAPPINGS)
		mappings[mapping_count++] = (struct mapping){ st.st_dev, st.st_ino, size, protection, map };
	return map;
}

int __wrap_munmap(void *address, size_t size)
{
	for (unsigned i = 0; i < mapping_count; i++)
		if (mappings[i].address == address && mappings[i].size == size)
			return 0;
	return __real_munmap(address, size);
}

static void path_of(char *path, size_t size, const struct rundir *dir, const char *name)
{
	(void)snprintf(path, size, "%s/%s", dir->launch.dir, name);
}

void keep_files(struct rundir *dir)
{
	DIR *list = opendir(dir->launch.dir);
	struct dirent *entry;

	while (list && (entry = readdir(list))) {
		char from[PATH_MAX + 64], to[PATH_MAX + 64];

		if (entry->d_name[0] != 'p' || strlen(entry->d_name) >= XS_NAME_MAX || file_count == FILES)
			continue;
		(void)snprintf(files[file_count].name, sizeof(files[0].name), "%s", entry->d_name);
		(void)snprintf(files[file_count].kept, sizeof(files[0].kept), "kept.%s", entry->d_name);
		path_of(from, sizeof(from), dir, files[file_count].name);
		path_of(to, sizeof(to), dir, files[file_count].kept);
		if (link(from, to) < 0)
			abort();
		file_count++;
	}
	if (list)
		closedir(list);
}

void keep_restore(struct rundir *dir)
{
	for (unsigned i = 0; i < file_count; i++) {
		char from[PATH_MAX + 64], to[PATH_MAX + 64];

		path_of(from, sizeof(from), dir, files[i].kept);
		path_of(to, sizeof(to), dir, files[i].name);
		(void)link(from, to);
	}
}
