/*
 * Making the run directory: in memory where there is room, private, with a name that nobody can
 * guess.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "launcher.h"
#include "memory.h"
#include "process.h"
#include "strtab.h"

/* Names and a few rings; with less, threads would find no memory. */
#define ROOM_WANTED (32ull << 20)
/* The run's own files, and two for each of some processes. */
#define FILES_WANTED 64u

uint64_t xs_launcher_began;

static bool usable(const char *dir)
{
	struct statvfs fs;

	return dir && dir[0] == '/' && strlen(dir) < PATH_MAX - 64 && !access(dir, W_OK | X_OK) &&
	       !statvfs(dir, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_WANTED &&
	       /* some file systems have no limit, and say 0 */
	       (!fs.f_files || fs.f_favail >= FILES_WANTED);
}

static int make_directory(struct xs_launch *launch, const char *output_dir)
{
	char cwd[PATH_MAX];
	const char *candidates[] = {
		"/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp",
		output_dir, getcwd(cwd, sizeof(cwd)),
	};
	int error = ENOSPC;
	mode_t mask;
	bool made;
	int fd;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		if (!usable(candidates[i]))
			continue;
		(void)snprintf(launch->dir, sizeof(launch->dir), "%s/xstrace-XXXXXX",
			       candidates[i]);
		mask = umask(0077);
		made = mkdtemp(launch->dir); /* mode 0700 */
		error = made ? EPERM : errno;
		(void)umask(mask);
		/*
		 * others have no rights in it, whatever file system and umask say; what it is made
		 * in may be no place for that
		 */
		fd = made ? xs_shm_open_directory(launch->dir) : -1;
		launch->directory = fd < 0 ? -1 : xs_channel_move_up(fd);
		if (launch->directory >= 0)
			return 0;
		if (made)
			(void)rmdir(launch->dir);
	}
	return -error;
}

static void put_command(struct xs_control *control, char **argv)
{
	size_t used = 0, room = sizeof(control->command);

	for (; *argv && used < room; argv++) {
		size_t n = strlen(*argv) + 1;

		if (n > room - used)
			n = room - used;
		memcpy(control->command + used, *argv, n);
		used += n;
	}
	control->command_length = (uint32_t)used;
}

void xs_launch_destroy(struct xs_launch *launch)
{
	if (launch->options)
		xs_session_remove(launch->options->session, launch->dir);
	if (launch->directory >= 0)
		(void)xs_shm_remove(launch->directory, launch->dir);
}

/* The launcher's own arguments, between `all` and the application's. */
static void put_arguments(struct xs_control *control, char **all, char **argv)
{
	size_t used = 0, room = sizeof(control->arguments);

	for (all++; all < argv && used < room; all++)
		used += (size_t)snprintf(control->arguments + used, room - used, "%s%s",
					 used ? " " : "", *all);
}

static void put_options(struct xs_control *control, const struct xs_options *options)
{
	xs_options_copy(&control->options, options);
	control->options_sum = xs_options_sum(&control->options);
}

/* The start of the timeline. */
static void put_time(struct xs_control *control)
{
	struct xs_clock_pair first =
		xs_clock_pair(control->use_tsc ? XS_CLOCK_TSC : XS_CLOCK_MONOTONIC);

	control->tick0 = first.tick;
	control->mono0 = first.mono;
	control->real0 = xs_clock_ns(CLOCK_REALTIME) - (xs_clock_ns(CLOCK_MONOTONIC) - first.mono);
	control->raw0 = xs_clock_pair(XS_CLOCK_RAW);
}

static int make_secret(char *secret)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char random[XS_SECRET / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (size_t i = 0; i < sizeof(random); i++) {
		secret[2 * i] = digits[random[i] / 16];
		secret[2 * i + 1] = digits[random[i] % 16];
	}
	return 0;
}

/* What the drain process shows counts by: it makes no names itself. */
static void name_events(struct xs_strings *strings, const struct xs_options *options, uint32_t *ret)
{
	if (!options->cpu_metrics[0])
		return;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		ret[event] = xs_intern(strings, xs_cpu_event_name(event),
				       (uint32_t)strlen(xs_cpu_event_name(event)), 0);
	ret[XS_CPU_EVENTS] = xs_intern(strings, "ipc", 3, 0);
}

static void name_stacks(struct xs_strings *strings, const struct xs_options *options, uint32_t *ret)
{
	if (!xs_want_stacks(options))
		return;
	ret[0] = xs_intern(strings, "thread is here", 14, 0);
	ret[1] = xs_intern(strings, "stack", 5, 0);
}

static int make_strings(struct xs_launch *launch, uint32_t *ret_cpu_names,
			uint32_t *ret_stack_names)
{
	void *map;
	int error = xs_shm_map_at(launch->directory, "strings", XS_SHM_CREATE, XS_STRINGS_SIZE,
				  &map, NULL);

	if (error < 0)
		return error;
	xs_strings_init(map);
	name_events(map, launch->options, ret_cpu_names);
	name_stacks(map, launch->options, ret_stack_names);
	munmap(map, XS_STRINGS_SIZE);
	return 0;
}

/* A quarter of what the group may have; the rest is the application's and the drain process's. */
static uint64_t rings_most(void)
{
	uint64_t limit = xs_memory_limit();

	/* no limit, as the older kernels' groups say it: all pages that there can be */
	return limit >> 60 ? 0 : limit / 4;
}

/* Of 0 all may look into each other, of 2 and 3 nobody who is not root may (docs/STACKS.md). */
static bool yama_wants_names(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = file ? fgetc(file) : EOF;

	if (file)
		(void)fclose(file);
	return scope == '1';
}

static void put_place(struct xs_control *control, const struct xs_launch *launch)
{
	const char *name = strrchr(launch->dir, '/') + 1;
	struct stat st;

	memcpy(control->run_id, name, strlen(name) + 1);
	control->directory = fstat(launch->directory, &st) < 0 ? 0 : st.st_ino;
}

int xs_launch_create(struct xs_launch *launch, const struct xs_options *options, char **all,
		     char **argv)
{
	uint32_t cpu_names[XS_CPU_EVENTS + 1] = { 0 }, stack_names[2] = { 0 };
	struct xs_control *control;
	void *map;
	int error = make_directory(launch, options->output_dir);

	launch->options = options;
	if (error < 0)
		return error;
	xs_shm_mark(launch->directory);
	error = make_strings(launch, cpu_names, stack_names);
	if (error < 0)
		goto fail;
	error = xs_shm_map_at(launch->directory, "mailbox", XS_SHM_CREATE, sizeof(*launch->mailbox),
			      &map, NULL);
	if (error < 0)
		goto fail;
	launch->mailbox = map;
	error = xs_shm_map_at(launch->directory, "control", XS_SHM_CREATE, sizeof(*control), &map,
			      NULL);
	if (error < 0)
		goto fail;
	control = launch->control = map;
	error = make_secret(control->secret);
	if (error < 0)
		goto fail;
	control->version = XS_SHM_VERSION;
	control->use_tsc = xs_clock_tsc_usable();
	control->launcher_pid = getpid();
	control->launcher_parent = getppid();
	control->rank = -1;
	control->rings_most = rings_most();
	put_options(control, options);
	memcpy(control->cpu_names, cpu_names, sizeof(cpu_names));
	memcpy(control->stack_names, stack_names, sizeof(stack_names));
	control->names_tracer = xs_want_stacks(options) && yama_wants_names();
	put_place(control, launch);
	put_command(control, argv);
	put_arguments(control, all, argv);
	put_time(control);
	if (options->session[0]) {
		control->launcher_start = xs_pid_start(getpid());
		control->launcher_namespace = xs_pid_namespace(0);
	}
	if (options->delay)
		(void)xs_control_pause(control, XS_PAUSE_WINDOW, true);
	if (options->on_demand)
		(void)xs_control_pause(control, XS_PAUSE_LIBRARY, true);
	if (options->session[0] && options->start_paused)
		(void)xs_control_pause(control, XS_PAUSE_SESSION, true);
	/* all of the above; pairs with the acquire of who opens it */
	atomic_store_explicit(&control->magic, XS_MAGIC, memory_order_release);
	return 0;
fail:
	xs_launch_destroy(launch);
	return error;
}
