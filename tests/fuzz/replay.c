/*
 * The inputs of a fuzz target once more, with clocks that stand still and numbers that are not
 * random: what the drain side writes is the same each time, and is kept. tests/same-output compares
 * what two builds write.
 *
 *	replay_<target> DIRECTORY INPUT…	(absolute paths)
 *
 * leaves DIRECTORY/<input>.<file> for each file that the input led to, and DIRECTORY/<input>.err.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "rundir.h"

#define SECOND 1000000000ull
#define BEGIN  (1000 * SECOND) /* of each clock: the run is made */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *directory;
static char input[64];
static uint64_t now = BEGIN, pace = 1000; /* pace: ns from one look at a clock to the next */

/* ---- by the linker's --wrap ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = (now += pace) + (clock == CLOCK_REALTIME ? 86400 * 20000 * SECOND : 0);

	ts->tv_sec = (time_t)(ns / SECOND);
	ts->tv_nsec = (long)(ns % SECOND);
	return 0;
}

bool __wrap_xs_clock_tsc_usable(void);
bool __wrap_xs_clock_tsc_usable(void)
{
	return false;
}

ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
	(void)flags;
	memset(to, 0x5a, size);
	return (ssize_t)size;
}

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
	return 4000001; /* nobody's */
}

void __real_rundir_open(struct rundir *dir, const struct xs_options *options);
void __wrap_rundir_open(struct rundir *dir, const struct xs_options *options);
void __wrap_rundir_open(struct rundir *dir, const struct xs_options *options)
{
	__real_rundir_open(dir, options);
	memcpy(dir->run.run_id, "xstrace-replay", sizeof("xstrace-replay"));
}

void __real_rundir_clear(struct rundir *dir);
void __wrap_rundir_clear(struct rundir *dir);
/* A target throws away what it has judged. Reports without a path of their own lie where we are. */
void __wrap_rundir_clear(struct rundir *dir)
{
	static const char keep[] = "for f in '%s'/* '%s'/rep*; do [ ! -f \"$f\" ] || "
				   "mv \"$f\" '%s/%s.'\"${f##*/}\"; done";
	char command[4 * PATH_MAX];

	(void)snprintf(command, sizeof(command), keep, dir->out, directory, directory, input);
	if (system(command))
		exit(1);
	__real_rundir_clear(dir);
}

/* ---- */

static int run(const char *path)
{
	char copy[PATH_MAX], errors[PATH_MAX + 128];
	static unsigned char data[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, data, sizeof(data));

	if (fd >= 0)
		close(fd);
	if (size < 0) {
		printf("%s: %s\n", path, strerror(errno));
		return 1;
	}
	(void)snprintf(copy, sizeof(copy), "%s", path);
	(void)snprintf(input, sizeof(input), "%s", basename(copy));
	(void)snprintf(errors, sizeof(errors), "%s/%s.err", directory, input);
	fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return 1;
	close(fd);
	(void)LLVMFuzzerTestOneInput(data, (size_t)size);
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc;

	if (argc < 3) {
		printf("usage: replay_<target> DIRECTORY INPUT...\n");
		return 2;
	}
	directory = argv[1];
	if (chdir(directory) < 0) {
		printf("%s: %s\n", directory, strerror(errno));
		return 1;
	}
	(void)LLVMFuzzerInitialize(&argc, &argv);
	pace = 0;
	now = BEGIN + SECOND; /* of whatever an input does, nothing is still to come */
	for (int i = 2; i < count; i++)
		if (run(argv[i]))
			return 1;
	return 0;
}
