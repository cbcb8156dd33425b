/*
 * Forges records of devices in CUDA's buffers of a run, as any process of the same user can:
 *	cuda_forger DIRECTORY MS
 * Their names point to a text in one moment and to no memory in the next, so whoever looks at such
 * a pointer before he follows it is deceived. Prints how often they were changed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "activity.h"
#include "app.h"

#define BUFFERS 8u
#define FORGED	2048u /* records at the begin of each buffer */

/* A record of a device, as long as the shortest one that has a name. */
struct forged {
	uint32_t kind, words[27], id, more[5];
	uint64_t name;
};

static void *map(const char *path, const char *name, size_t size)
{
	char full[512];
	void *at;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	fd = open(full, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* c<pid>.<serial>.<n>, by n; the first process's. */
static void find(const char *path, void *found[BUFFERS + 1])
{
	DIR *list = opendir(path);
	struct dirent *entry;

	while (list && (entry = readdir(list))) {
		const char *last = strrchr(entry->d_name, '.');
		unsigned n = last ? (unsigned)atoi(last + 1) : BUFFERS + 1;

		if (entry->d_name[0] != 'c' || n > BUFFERS || found[n])
			continue;
		found[n] = map(path, entry->d_name,
			       n ? XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES
				 : sizeof(struct xs_activity_file));
	}
	if (list)
		closedir(list);
}

static void forge(struct xs_activity_file *file, unsigned char *buffer, uint64_t name)
{
	struct forged *record = (void *)(buffer + XS_ACTIVITY_HEADER);

	for (unsigned i = 0; i < FORGED; i++) {
		record[i].kind = 8;
		record[i].id = i % XS_ACTIVITY_DEVICES;
		*(volatile uint64_t *)&record[i].name = name;
	}
	atomic_store(&file->size[8], sizeof(*record));
}

int main(int argc, char **argv)
{
	void *found[BUFFERS + 1] = { NULL };
	uint64_t end, text = 0;
	unsigned long times = 0;

	if (argc < 3)
		return 2;
	end = now_ns() + strtoull(argv[2], NULL, 10) * 1000000;
	for (; now_ns() < end; times++) {
		struct xs_activity_file *file = found[0];

		if (times % 64 == 0)
			find(argv[1], found);
		for (unsigned i = 0; file && !text && i < XS_ACTIVITY_NAMES; i++)
			text = atomic_load(&file->name[i].pointer);
		for (unsigned i = 1; text && i <= BUFFERS; i++)
			if (found[i])
				forge(file, found[i], times % 2 ? text : 64);
	}
	printf("forged: %lu\n", times);
	return 0;
}
