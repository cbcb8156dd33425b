/*
 * Writes into a run directory what no friend would write there, as any process of the same user
 *can.
 *
 *	scribbler DIRECTORY KINDS MODE SEED MS [TEXT]
 *
 * KINDS: beginnings of the files' names, separated by commas (control, mailbox, strings, p). What
 *is in them is found out by looking, so that no layout stands here: a number that grows is a head
 *or a tail, a number of the size of an address is one. MODE: see modes[]. TEXT (mode paths) takes
 *the place of each absolute path. New files are found as they come. Prints the number of things
 *that it wrote, and ends after MS.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "app.h"

#define FILES 64
/* most that is not a record or a text lies in front, or at a multiple of this */
#define HEADER	4096u
#define GROWING 4096

struct mapped {
	char name[64];
	unsigned char *data;
	size_t size, used;     /* used: up to the last byte that is not 0 */
	unsigned char *before; /* a copy, to find what grows */
	uint32_t growing[GROWING];
	unsigned growing_count;
};

static struct mapped files[FILES];
static unsigned file_count;
enum { LEAST = 200 }; /* writes */
static uint64_t state, written;
static const char *text;
static sigjmp_buf cut;

static uint64_t dice(uint64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return sides ? state % sides : state;
}

static bool is_wanted(const char *name, const char *kinds)
{
	for (const char *kind = kinds; *kind;
	     kind += strcspn(kind, ",") + (kind[strcspn(kind, ",")] == ',')) {
		size_t n = strcspn(kind, ",");

		if (!strncmp(name, kind, n) &&
		    (name[n] == '\0' || (n == 1 && name[n] >= '0' && name[n] <= '9')))
			return true;
	}
	return false;
}

static void look_for_files(const char *path, const char *kinds)
{
	DIR *list = opendir(path);
	struct dirent *entry;

	while (list && (entry = readdir(list)) && file_count < FILES) {
		struct mapped *file = &files[file_count];
		struct stat st;
		bool known = !is_wanted(entry->d_name, kinds) ||
			     strlen(entry->d_name) >= sizeof(file->name);
		int fd;

		for (unsigned i = 0; i < file_count && !known; i++)
			known = !strcmp(files[i].name, entry->d_name);
		fd = known ? -1 : openat(dirfd(list), entry->d_name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_size >= 16) {
			file->size = (size_t)st.st_size;
			file->data =
				mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			file->before = malloc(file->size);
			if (file->data != MAP_FAILED && file->before) {
				strcpy(file->name, entry->d_name);
				file_count++;
			}
		}
		close(fd);
	}
	if (list)
		closedir(list);
}

/* Heads, tails, counters: 8-byte words that are larger than at the last look, by not too much. */
static void look_for_growth(struct mapped *file)
{
	/* memory that nobody has touched comes slowly: more would take all of the time */
	size_t size = file->size < 4u << 20 ? file->size : 4u << 20;

	file->growing_count = 0;
	file->used = file->size < 64 ? file->size : 64;
	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t now, before;

		memcpy(&now, file->data + at, 8);
		memcpy(&before, file->before + at, 8);
		if (now)
			file->used = at + 8;
		if (now > before && now - before < 1u << 28 && now < 1ull << 48 &&
		    file->growing_count < GROWING)
			file->growing[file->growing_count++] = (uint32_t)at;
		memcpy(file->before + at, &now, 8);
	}
}

/* A place: half of the time in a header. */
static size_t place(const struct mapped *file, size_t size, size_t step)
{
	size_t room = file->used > size ? file->used - size : 1, at = dice(room);

	if (dice(2))
		at = at / HEADER * HEADER + dice(512);
	at -= at % step;
	return at + size <= file->size ? at : 0;
}

static void put(struct mapped *file, size_t at, uint64_t value, size_t size)
{
	memcpy(file->data + at, &value, size);
	written++;
}

static void do_bytes(struct mapped *file)
{
	put(file, place(file, 1, 1), dice(256), 1);
}

static void do_words(struct mapped *file)
{
	size_t size = dice(2) ? 4 : 8;

	put(file, place(file, size, size), dice(0), size);
}

static void do_pointers(struct mapped *file)
{
	static const uint64_t odd[] = { 1,
					8,
					4096,
					0x7fffffffffff,
					0x800000000000,
					0xffff800000000000,
					UINT64_MAX,
					UINT64_MAX - 7 };
	uint64_t value = dice(2)   ? odd[dice(8)]
			 : dice(2) ? (uint64_t)(uintptr_t)&value
				   : (uint64_t)(uintptr_t)file->before;

	put(file, place(file, 8, 8), value, 8);
}

static void do_lengths(struct mapped *file)
{
	static const uint64_t odd[] = { 0,	    1,		2,	     3,		0x7f,
					0x80,	    0xff,	0x7fff,	     0xffff,	0x7fffffff,
					0x80000000, 0xffffffff, 0x100000000, 1ull << 40 };
	size_t size = 1u << dice(4);
	/* in a record's first 16 bytes */
	size_t at = dice(2) ? place(file, 16, 16) + 8 + dice(8) / size * size
			    : place(file, 8, size);

	put(file, at, dice(4) ? odd[dice(14)] : file->size + dice(3) - 1, size);
}

static void do_heads(struct mapped *file)
{
	uint64_t value, step = 1ull << dice(24);
	size_t at;

	if (!file->growing_count)
		return;
	at = file->growing[dice(file->growing_count)];
	memcpy(&value, file->data + at, 8);
	put(file, at, dice(8) == 0 ? dice(0) : dice(2) ? value + step : value - step, 8);
}

static void do_zero(struct mapped *file)
{
	size_t size = 8u << dice(8), at = place(file, size, 8);

	memset(file->data + at, 0, at + size <= file->size ? size : 8);
	written++;
}

static void do_bits(struct mapped *file)
{
	size_t at = place(file, 1, 1);

	put(file, at, file->data[at] ^ 1u << dice(8), 1);
}

static void do_swap(struct mapped *file)
{
	size_t size = 16u << dice(4), a = place(file, size, 16), b = place(file, size, 16);
	unsigned char kept[256];

	if (a + size > file->size || b + size > file->size)
		return;
	memcpy(kept, file->data + a, size);
	memmove(file->data + a, file->data + b, size);
	memcpy(file->data + b, kept, size);
	written++;
}

/* Everything that looks like the beginning of a path. */
static void do_paths(struct mapped *file)
{
	for (size_t at = 0; at + 256 < file->used; at += 8)
		if (file->data[at] == '/' && file->data[at + 1] >= 'a' &&
		    file->data[at + 1] <= 'z' && strnlen((char *)file->data + at, 256) < 256) {
			snprintf((char *)file->data + at, 256, "%s", text);
			written++;
		}
}

static void do_cut(struct mapped *file)
{
	(void)file;
}

static const struct {
	const char *name;
	void (*one)(struct mapped *file);
} modes[] = { { "bytes", do_bytes },	 { "words", do_words }, { "pointers", do_pointers },
	      { "lengths", do_lengths }, { "heads", do_heads }, { "zero", do_zero },
	      { "bits", do_bits },	 { "swap", do_swap },	{ "paths", do_paths },
	      { "cut", do_cut } };

/* A file has become shorter: what is left to do ends. */
static void on_bus(int number)
{
	(void)number;
	siglongjmp(cut, 1);
}

/* Makes one file shorter, or removes it. */
static void cut_one(const char *path)
{
	char name[512];

	snprintf(name, sizeof(name), "%s/%s", path, files[dice(file_count)].name);
	if (truncate(name, (off_t)dice(1 << dice(20))) == 0)
		written++;
}

int main(int argc, char **argv)
{
	void (*volatile one)(struct mapped *file) = NULL;
	volatile uint64_t look = 0;
	uint64_t end, latest;

	if (argc < 6)
		return 2;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[3], modes[i].name))
			one = modes[i].one;
	if (!one)
		return 2;
	state = strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	text = argc > 6 ? argv[6] : "";
	end = now_ns() + strtoull(argv[5], NULL, 10) * 1000000;
	latest = end + strtoull(argv[5], NULL, 10) * 2000000;
	signal(SIGBUS, on_bus);
	/* where others have the processors, it goes on until it has done what it is there for */
	while (!sigsetjmp(cut, 1) &&
	       (now_ns() < end || (file_count && written <= LEAST && now_ns() < latest))) {
		uint64_t begun = now_ns();

		if (begun > look) {
			look_for_files(argv[1], argv[2]);
			for (unsigned i = 0; i < file_count; i++)
				look_for_growth(&files[i]);
			/* a look at large files takes long where others work, too: most is writing
			 */
			look = now_ns() + 5 * (now_ns() - begun) + 20000000;
		}
		if (file_count && one == do_cut)
			cut_one(argv[1]);
		else if (file_count)
			one(&files[dice(file_count)]);
		usleep((useconds_t)dice(200));
	}
	printf("scribbled: %ju\n", (uintmax_t)written);
	return 0;
}
