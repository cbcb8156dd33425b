/*
 * The run as the drain process finds it: its directory, its clock, and who belongs to it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "below.h"
#include "channel.h"
#include "lost.h"
#include "places.h"
#include "process.h"
#include "run_open.h"
#include "text.h"

#define DAY_NS 86400000000000ull

void xs_run_save_clock(struct xs_run *run)
{
	struct xs_control *control = run->control;
	uint32_t count = atomic_load_explicit(&control->segment_count, memory_order_relaxed);

	for (; count < run->clock.count; count++) {
		control->segments[count % XS_SEGMENTS_SAVED] = run->clock.segments[count];
		atomic_store_explicit(&control->segment_count, count + 1, memory_order_release);
	}
}

static int restore_clock(struct xs_run *run)
{
	const struct xs_control *control = run->control;
	uint32_t count = atomic_load_explicit(&control->segment_count, memory_order_acquire);
	uint32_t first = count > XS_SEGMENTS_SAVED ? count - XS_SEGMENTS_SAVED : 0;
	struct xs_segment segments[XS_SEGMENTS_SAVED];

	for (uint32_t i = first; i < count; i++)
		segments[i - first] = control->segments[i % XS_SEGMENTS_SAVED];
	return xs_timeline_restore(&run->clock, run->use_tsc ? XS_CLOCK_TSC : XS_CLOCK_MONOTONIC,
				   segments, count - first,
				   (int64_t)(control->real0 - control->mono0 - run->base));
}

/* The application's soft limits are not meant for us: many traces may be open at once, and long. */
static void raise_limits(struct xs_run *run)
{
	static const int kinds[] = { RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS,
				     RLIMIT_DATA };
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (getrlimit((__rlimit_resource_t)kinds[i], &limit) < 0)
			continue;
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit((__rlimit_resource_t)kinds[i], &limit);
	}
	run->descriptors = getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}

/*
 * Any process of the run may have cut such a file by now, with --recover too: what is gone reads as
 * zeros (faults.c), and everything else goes on.
 */
static int map_as_it_is(const struct xs_run *run, const char *name, uint64_t size, void **ret_map)
{
	int fd = xs_shm_open(run->directory, name, XS_SHM_OPEN), error = 0;

	if (fd < 0)
		return fd;
	*ret_map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ret_map == MAP_FAILED)
		error = -errno;
	close(fd);
	return error;
}

/*
 * `control` as the launcher has made it, whatever a process has done to the run's file since. NULL:
 * there was no room for that, or nobody gives it (--recover, xstrace-attach).
 */
static const struct xs_control *map_made(void)
{
	struct xs_control *made;
	struct stat st;

	if (fstat(XS_DRAIN_CONTROL, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink ||
	    st.st_size != sizeof(*made))
		return NULL;
	made = mmap(NULL, sizeof(*made), PROT_READ, MAP_PRIVATE, XS_DRAIN_CONTROL, 0);
	close(XS_DRAIN_CONTROL);
	return made == MAP_FAILED ? NULL : made;
}

/* What the launcher has made. */
static int map_files(struct xs_run *run)
{
	void *map;
	int error;

	/*
	 * the launcher's, opened when it was made: whatever happens to it meanwhile, it is ours to
	 * fill and to remove
	 */
	run->directory = run->recovering ? xs_shm_open_directory(run->dir) : XS_DRAIN_DIRECTORY;
	if (run->directory < 0)
		return run->directory;
	error = run->recovering ? xs_shm_map_at(run->directory, "control", XS_SHM_OPEN,
						sizeof(*run->control), &map, NULL)
				: map_as_it_is(run, "control", sizeof(*run->control), &map);
	if (error < 0)
		return error;
	run->control = map;
	run->made = run->recovering ? NULL : map_made();
	if (!run->made)
		run->made = run->control;
	if (!xs_control_valid(run->made, NULL))
		return -EBADMSG;
	error = map_as_it_is(run, "mailbox", sizeof(*run->mailbox), &map);
	if (error < 0)
		return error;
	run->mailbox = map;
	error = map_as_it_is(run, "strings", XS_STRINGS_SIZE, &map);
	if (error < 0)
		return error;
	run->strings = map;
	run->strings_size = XS_STRINGS_SIZE;
	run->place_text = xs_place_text;
	return 0;
}

/* --recover: others could have written there. */
static void check_options(struct xs_run *run)
{
	bool whole = xs_control_is_whole(run->control);

	if (xs_options_mend(&run->copied_options) && whole)
		return;
	run->incomplete = true;
	xs_tell("[WARNING] --recover %s: options in 'control' were overwritten; what is written "
		"may "
		"not be what was asked for\n",
		run->dir);
}

/* Somebody has kept the run's directory elsewhere. */
static bool is_copy(const struct xs_run *run)
{
	struct stat st;

	return run->made->directory && !fstat(run->directory, &st) &&
	       st.st_ino != run->made->directory;
}

/* Copies: what does not change while the run goes on. */
static void read_control(struct xs_run *run)
{
	const struct xs_control *control = run->made;

	xs_options_copy(&run->copied_options, &control->options);
	if (run->recovering) {
		run->copied = is_copy(run);
		check_options(run);
	}
	xs_run_variable(run->variable, run->dir, control);
	run->launcher_pid = control->launcher_pid;
	if (run->recovering)
		run->app_pid = control->app_pid;
	run->app_not_traced = control->app_not_traced;
	run->hosted_start = control->hosted_start;
	run->cuts = run->hosted_start || run->copied_options.on_demand;
	run->owns_output = control->owns_output;
	run->rank = control->rank;
	run->options = &run->copied_options;
	memcpy(run->run_id, control->run_id, sizeof(run->run_id) - 1);
	memcpy(run->command, control->command, sizeof(run->command));
	run->command_length = control->command_length;
	if (run->command_length > sizeof(run->command))
		run->command_length = sizeof(run->command);
	memcpy(run->arguments, control->arguments, sizeof(run->arguments) - 1);
	run->use_tsc = control->use_tsc;
	run->base = control->real0 / DAY_NS * DAY_NS;
	/* at least that to CLOCK_BOOTTIME, at that time */
	run->date_offset = (int64_t)(control->real0 - control->mono0);
}

static int open_clocks(struct xs_run *run)
{
	const struct xs_control *control = run->made;
	const struct xs_clock_pair first = { .tick = control->tick0, .mono = control->mono0 };
	bool again = run->recovering &&
		     atomic_load_explicit(&control->segment_count, memory_order_acquire);
	int error =
		again ? restore_clock(run)
		      : xs_timeline_init(&run->clock,
					 run->use_tsc ? XS_CLOCK_TSC : XS_CLOCK_MONOTONIC, first,
					 (int64_t)(control->real0 - control->mono0 - run->base));

	if (error < 0)
		return error;
	run->began = run->clock.segments[0].tick;
	if (run->began > first.tick)
		run->began = first.tick;
	return xs_timeline_init(&run->raw, XS_CLOCK_RAW, control->raw0, run->clock.offset);
}

int xs_run_open(struct xs_run *run, const char *dir, int channel)
{
	int error;

	run->recovering = channel < 0;
	run->channel = channel;
	raise_limits(run);
	if (!realpath(dir, run->dir)) {
		if (run->recovering)
			return -errno;
		(void)snprintf(run->dir, sizeof(run->dir), "%s", dir); /* somebody has moved it */
	}
	error = map_files(run);
	if (error < 0)
		return error;
	read_control(run);
	xs_below_resolve(run);
	if (gethostname(run->host, sizeof(run->host) - 1) < 0)
		run->host[0] = '\0';
	return open_clocks(run);
}

/*
 * In the middle of an exec: the new program is known, its arguments and its environment are not
 * there yet. A thread of the kernel has no program.
 */
static bool is_in_exec(int pid)
{
	char path[48], byte;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, &byte, 1) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, &byte, 1);
	close(fd);
	return !n;
}

#define EXEC_TURNS 50
#define EXEC_US	   200

/*
 * Does the process `pid` belong to this run, by the environment that it was started with? One that
 * is in exec, which mostly is any process of the machine, is waited for a little; then it counts.
 */
static bool belongs(const struct xs_run *run, int pid)
{
	int empty = 0;

	if (kill(pid, 0) < 0 && errno == ESRCH)
		return false;
	for (int turn = 0; turn < EXEC_TURNS && empty < 3; turn++) {
		int has = xs_has_variable(run, pid);

		if (has)
			return has > 0 && xs_pid_alive(pid, 0);
		if (is_in_exec(pid))
			(void)usleep(EXEC_US);
		else
			empty++; /* or the exec has ended between both looks */
	}
	return empty < 3 && xs_pid_alive(pid, 0);
}

/* The pid that the kernel gave out last; 0 when unknown. */
static int newest_pid(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	int pid = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %*s %*s %*s %d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

bool xs_run_has_descendant(const struct xs_run *run, bool (*is_one)(int pid))
{
	int first = run->app_pid, last = newest_pid(), seen = first;
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	/* the usual case: few processes are younger than the application */
	while (last > seen && last - first < 1000) {
		while (seen < last && !found)
			found = belongs(run, ++seen) && is_one(seen);
		if (found)
			return true;
		/* what was not there yet, and whose parent is gone by now */
		last = newest_pid();
	}
	if (last == seen)
		return false;
	dir = opendir("/proc");
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			belongs(run, atoi(entry->d_name)) && is_one(atoi(entry->d_name));
	closedir(dir);
	return found;
}

static bool any(int pid)
{
	(void)pid;
	return true;
}

bool xs_run_has_silent_descendants(const struct xs_run *run)
{
	return xs_run_has_descendant(run, any);
}

void xs_run_remove(const struct xs_run *run)
{
	int error;

	xs_session_remove(run->options->session, run->dir);
	if (run->owns_output)
		(void)rmdir(run->options->output_dir);
	error = xs_shm_remove(run->directory, run->dir);
	for (int i = 0; i < 10 && error < 0 && errno == ENOTEMPTY; i++)
		error = xs_shm_remove(run->directory,
				      run->dir); /* stopped, while a process was just joining */
	if (error < 0)
		xs_tell("xstrace: cannot remove %s: %s\n", run->dir, strerror(errno));
}

struct left {
	int directory;
	bool other; /* something is in it that xs_shm_remove() would have removed before, or is not
		       ours */
};

static void see(void *user, const char *name)
{
	struct left *left = user;
	int fd;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	fd = xs_shm_goes_last(name) ? xs_shm_open(left->directory, name, XS_SHM_READ) : -1;
	left->other |= fd < 0;
	if (fd >= 0)
		close(fd);
}

int xs_run_remove_left(const char *dir)
{
	struct left left = { .directory = -1 };
	char path[PATH_MAX];
	int error = 0;

	if (!realpath(dir, path) || strncmp(strrchr(path, '/'), "/xstrace-", 9) != 0)
		return -ENOENT;
	left.directory = xs_shm_open_directory(path);
	if (left.directory < 0)
		return left.directory;
	if (!xs_shm_each(left.directory, see, &left) || left.other)
		error = -ENOENT;
	else if (xs_shm_is_anyones(left.directory)) /* or it is just being made */
		error = -EBUSY;
	else if (xs_shm_remove(left.directory, path) < 0)
		error = -errno;
	close(left.directory);
	return error;
}
