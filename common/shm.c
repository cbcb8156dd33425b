#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	if (create ? ftruncate(fd, (off_t)size) < 0 : fstat(fd, &st) < 0) {
		error = -errno;
		goto out;
	}
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
	*ret_map = map;
	if (ret_size)
		*ret_size = size;
out:
	if (error && create)
		unlink(path);
	close(fd);
	return error;
}

int xs_shm_remove(const char *dir)
{
	static const char *const files[] = { "strings", "control", XS_LIBRARY_LINK };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlinkat(fd, files[i], 0);
	close(fd);
	return rmdir(dir);
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
