/*
 * Any bytes as a trace for xstrace-tables, of JSON or of Perfetto's packets, packed or not: there
 * are tables, or a line that says why there are none.
 */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int tables_main(int argc, char **argv); /* tables/main.c */

static char directory[] = "/dev/shm/fuzz_tables.XXXXXX";
static char trace[64];
static int file;

/* The tables of the run before, or of all of them. */
static void clear(void)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

static void remove_all(void)
{
	clear();
	(void)rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	file = memfd_create("trace", MFD_CLOEXEC);
	if (file < 0 || !mkdtemp(directory))
		return 1;
	snprintf(trace, sizeof(trace), "/proc/self/fd/%d", file);
	return atexit(remove_all);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *words[] = { "xstrace-tables", "--threads", "1", "--memory-limit", "32M", "-o",
			  directory,	    trace,	 NULL };

	if (ftruncate(file, 0) < 0 || pwrite(file, data, size, 0) != (ssize_t)size)
		abort();
	optind = 0;
	(void)tables_main(sizeof(words) / sizeof(words[0]) - 1, words);
	clear();
	return 0;
}
