/*
 * python_frames PID [SEED]: stops each thread of a process, and prints the Python stack of each, as
 * common/python_frames.c reads it:
 *
 *     version MINOR
 *     thread TID PTHREAD
 *     frame LINE IS_ENTRY FIRST_LINE FUNCTION|FILE
 *
 * With a seed, some of what is read is changed at random, a thousand times over, and nothing is
 * printed but how often: the reader must come to an end.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "python_frames.h"

#define THREADS 256u
#define FRAMES	200u

static pid_t pid;
static uint64_t seed;

static int read_memory(void *data, uint64_t address, void *to, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { (void *)address, bytes };

	(void)data;
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)bytes)
		return -1;
	if (seed) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		if (seed >> 58 == 0)
			((unsigned char *)to)[(seed >> 33) % bytes] ^= (unsigned char)(seed >> 24);
	}
	return 0;
}

static void stop_all(void)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && !ptrace(PTRACE_SEIZE, tid, NULL, NULL) &&
		    !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
			(void)waitpid(tid, NULL, __WALL);
	}
	if (tasks)
		(void)closedir(tasks);
}

static int find(struct xs_python *python)
{
	char path[64], line[4096], file[4096];
	int result = -ENOENT;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && result == -ENOENT && fgets(line, sizeof(line), maps)) {
		uint64_t start, offset;

		if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %4095s", &start, &offset,
			   file) == 3 &&
		    !offset && file[0] == '/')
			result = xs_python_find(python, read_memory, NULL, start);
	}
	if (maps)
		(void)fclose(maps);
	return result;
}

static uint32_t show(const struct xs_python *python, bool quiet)
{
	static struct xs_python_thread threads[THREADS];
	static struct xs_python_frame frames[FRAMES];
	uint32_t count = xs_python_threads(python, threads, THREADS), all = 0;
	struct xs_python_text function, file;
	bool more;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t depth = xs_python_frames(python, threads[i].state, frames, FRAMES, &more);

		if (!quiet)
			printf("thread %" PRIu64 " %" PRIu64 "%s\n", threads[i].tid,
			       threads[i].pthread, more ? " more" : "");
		for (uint32_t k = 0; k < depth; k++) {
			uint32_t line = xs_python_line(python, &frames[k]),
				 first = xs_python_first_line(python, frames[k].code);

			xs_python_function(python, frames[k].code, &function);
			xs_python_file(python, frames[k].code, &file);
			all += function.length + file.length;
			if (!quiet)
				printf("frame %u %d %u %s|%s\n", line, frames[k].is_entry, first,
				       function.text, file.text);
		}
	}
	return all;
}

int main(int argc, char **argv)
{
	struct xs_python python;
	int result;

	if (argc < 2)
		return 2;
	pid = atoi(argv[1]);
	stop_all();
	result = find(&python);
	if (argc == 2) {
		printf("version %u\n", python.minor);
		if (!result)
			(void)show(&python, false);
		return -result;
	}
	for (unsigned i = 0; i < 1000; i++) {
		seed = strtoull(argv[2], NULL, 10) + i + 1;
		if (!find(&python))
			(void)show(&python, true);
	}
	printf("spoilt 1000\n");
	return 0;
}
