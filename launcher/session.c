/*
 * Sessions: runs that have a name, and controlling them from another shell (--session; --pause, --resume, --stop).
 *
 * The name is a link to the run directory. It is made exclusively, believed only if it and what it leads to are this user's own, and
 * outlives the launcher: the drain process removes it.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "text.h"

#define STOP_SECONDS 10u
#define LISTED 8u /* processes and traces that a line names */

enum session_state {
	NO_SESSION,
	SESSION_OVER,
	SESSION_RUNS,
	SESSION_FOREIGN, /* somebody else's, or not made by this version of xstrace */
};

static bool drain_lives(const struct xs_control *control)
{
	return control->bell.consumer_pid && xs_process_alive(control->bell.consumer_pid, control->bell.consumer_start);
}

/* Looks at a run directory of ours; when it runs, its control file stays mapped. */
static enum session_state look_inside(struct xs_launch *launch)
{
	struct xs_control *control;
	void *map;

	if (xs_shm_map(launch->dir, "control", false, sizeof(*control), &map, NULL) < 0)
		return SESSION_OVER;
	control = map;
	if (atomic_load_explicit(&control->magic, memory_order_acquire) != XS_MAGIC || control->version != XS_SHM_VERSION) {
		munmap(map, sizeof(*control));
		return SESSION_FOREIGN;
	}
	if (drain_lives(control) || xs_process_alive(control->launcher_pid, control->launcher_start)) {
		launch->control = control;
		return SESSION_RUNS;
	}
	munmap(map, sizeof(*control));
	return SESSION_OVER;
}

static enum session_state look_at(const char *path, struct xs_launch *launch)
{
	struct stat st;
	ssize_t n;

	*launch = (struct xs_launch){ .dir = "" };
	if (lstat(path, &st) < 0)
		return NO_SESSION;
	n = S_ISLNK(st.st_mode) && st.st_uid == geteuid() ? readlink(path, launch->dir, sizeof(launch->dir) - 1) : -1;
	if (n < 0)
		return SESSION_FOREIGN;
	launch->dir[n] = '\0';
	if (lstat(launch->dir, &st) < 0)
		return SESSION_OVER;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return SESSION_FOREIGN;
	return look_inside(launch);
}

static int tell_foreign(const char *session, const char *path)
{
	xs_tell("xstrace: session %s: %s is another user's, or was not made by this version of xstrace\n", session, path);
	return -1;
}

/* ---- giving a run its name ---- */

/*
 * The link of a run that is over. It is moved aside first: if another launcher has just done the same and made its own, that
 * one is put back.
 */
static void remove_stale(const char *path, const char *dir)
{
	char aside[PATH_MAX], found[PATH_MAX];
	ssize_t n;

	(void)snprintf(aside, sizeof(aside), "%.*s/xstrace-stale-%d", (int)(strrchr(path, '/') - path), path, getpid());
	if (rename(path, aside) < 0)
		return;
	n = readlink(aside, found, sizeof(found) - 1);
	if (n >= 0 && (size_t)n == strlen(dir) && !memcmp(found, dir, (size_t)n))
		(void)unlink(aside);
	else
		(void)rename(aside, path);
}

/* Is the name free, perhaps after what was left of it is gone? */
static bool is_free(const char *session)
{
	struct xs_launch other;
	char path[PATH_MAX];

	for (unsigned n = 0; xs_session_link(n, geteuid(), session, path); n++) {
		switch (look_at(path, &other)) {
		case SESSION_RUNS:
			xs_tell("xstrace: session %s runs already (process %d, run %s); choose another name\n", session,
				other.control->app_pid ? other.control->app_pid : other.control->launcher_pid,
				other.control->run_id);
			munmap(other.control, sizeof(*other.control));
			return false;
		case SESSION_FOREIGN:
			tell_foreign(session, path);
			return false;
		case SESSION_OVER:
			remove_stale(path, other.dir);
			break;
		case NO_SESSION:
			break;
		}
	}
	return true;
}

int xs_session_register(const struct xs_launch *launch)
{
	const char *session = launch->control->options.session;
	char path[PATH_MAX];
	int error = EEXIST;

	for (int i = 0; i < 3 && error == EEXIST; i++) { /* EEXIST: somebody was faster; how he fares is seen in the next round */
		if (!is_free(session))
			return -1;
		for (unsigned n = 0; xs_session_link(n, geteuid(), session, path); n++) {
			if (!symlink(launch->dir, path))
				return 0;
			error = errno;
			if (error == EEXIST)
				break;
		}
	}
	xs_tell("xstrace: --session %s: %s: %s\n", session, path, strerror(error));
	return -1;
}

/* ---- finding it again ---- */

/* Is this "xstrace-session-<uid>-<session>", of a user who is not we, and does its run still exist? */
static bool is_others(int dir, const char *name, const char *session, unsigned *ret_uid)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int at = 0;

	if (sscanf(name, "xstrace-session-%u-%n", ret_uid, &at) != 1 || !at || strcmp(name + at, session) ||
	    *ret_uid == geteuid())
		return false;
	n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !lstat(target, &st) && S_ISDIR(st.st_mode) && st.st_uid == *ret_uid;
}

static bool belongs_to_another(const char *session, unsigned *ret_uid)
{
	char path[PATH_MAX];
	bool found = false;

	for (unsigned n = 0; !found && xs_session_link(n, geteuid(), session, path); n++) {
		struct dirent *entry;
		DIR *dir;

		*strrchr(path, '/') = '\0';
		dir = opendir(path);
		while (dir && !found && (entry = readdir(dir)))
			found = is_others(dirfd(dir), entry->d_name, session, ret_uid);
		if (dir)
			closedir(dir);
	}
	return found;
}

int xs_session_open(const char *name, struct xs_launch *launch)
{
	char path[PATH_MAX];
	bool over = false;
	unsigned uid;

	for (unsigned n = 0; xs_session_link(n, geteuid(), name, path); n++) {
		switch (look_at(path, launch)) {
		case SESSION_RUNS:
			return 0;
		case SESSION_FOREIGN:
			return tell_foreign(name, path);
		case SESSION_OVER:
			over = true;
			break;
		case NO_SESSION:
			break;
		}
	}
	if (over)
		xs_tell("xstrace: session %s is over: launcher and drain process have ended\n", name);
	else if (belongs_to_another(name, &uid))
		xs_tell("xstrace: session %s belongs to another user (uid %u)\n", name, uid);
	else
		xs_tell("xstrace: there is no session %s now; xstrace --session %s … gives a run that name\n", name, name);
	return -1;
}

/* ---- who is in it ---- */

struct members {
	const struct xs_process_file **file; /* each stays readable after the drain process has removed it */
	size_t count;
};

static int by_serial(const void *a, const void *b)
{
	const struct xs_process_file *first = *(const struct xs_process_file *const *)a;
	const struct xs_process_file *second = *(const struct xs_process_file *const *)b;

	return first->serial < second->serial ? -1 : first->serial > second->serial;
}

/* A process that has not called exec since, nor ended (as far as that can be seen from here). */
static bool is_current(const struct members *members, size_t at)
{
	const struct xs_process_file *file = members->file[at];

	for (size_t i = at + 1; i < members->count; i++)
		if (members->file[i]->pid == file->pid && members->file[i]->pid_namespace == file->pid_namespace)
			return false;
	return file->pid_namespace != xs_process_namespace(0) || xs_process_alive(file->pid, 0);
}

static void add_member(struct members *members, const char *dir, const char *name)
{
	const struct xs_process_file **grown = realloc(members->file, (members->count + 1) * sizeof(*grown));
	struct xs_process_file *file;
	void *map;

	if (!grown)
		return;
	members->file = grown;
	if (xs_shm_map(dir, name, false, XS_PROCESS_HEADER, &map, NULL) < 0)
		return;
	file = map;
	if (atomic_load_explicit(&file->magic, memory_order_acquire) == XS_MAGIC)
		members->file[members->count++] = file;
	else
		munmap(map, XS_PROCESS_HEADER);
}

static struct members find_members(const struct xs_launch *launch)
{
	struct members all = { NULL, 0 };
	DIR *dir = opendir(launch->dir);
	struct dirent *entry;
	size_t kept = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] == 'p' && !strstr(entry->d_name, ".s"))
			add_member(&all, launch->dir, entry->d_name);
	if (dir)
		closedir(dir);
	if (all.count)
		qsort(all.file, all.count, sizeof(*all.file), by_serial);
	for (size_t i = 0; i < all.count; i++)
		if (is_current(&all, i))
			all.file[kept++] = all.file[i];
	all.count = kept;
	return all;
}

static void tell_traces(const struct members *members)
{
	size_t n = 0;

	for (size_t i = 0; i < members->count; i++) {
		const char *path = members->file[i]->output;

		if (path[0] && n++ < LISTED)
			printf("%s%.*s", n == 1 ? "; traces: " : ", ", PATH_MAX - 1, path);
	}
	if (n > LISTED)
		printf(", …");
	if (!n)
		printf("; reports, if any, are where xstrace runs");
}

static void tell(const struct xs_launch *launch, const char *session, const char *what, const struct members *members,
		 bool traces)
{
	printf("[INFO] Session %s %s: run %s, %zu process%s", session, what, launch->control->run_id, members->count,
	       members->count == 1 ? "" : "es");
	for (size_t i = 0; i < members->count && i < LISTED; i++)
		printf("%s%d %.15s", i ? ", " : " (", members->file[i]->pid, members->file[i]->comm);
	printf("%s%s", members->count > LISTED ? ", …" : "", members->count ? ")" : "");
	if (traces)
		tell_traces(members);
	putchar('\n');
}

/* ---- the commands ---- */

static int pause_session(const char *session)
{
	struct xs_launch launch;
	struct members members;
	bool changed;

	if (xs_session_open(session, &launch) < 0)
		return XS_EXIT_SELF;
	changed = xs_control_pause(launch.control, XS_PAUSE_SESSION, true);
	xs_doorbell_ring(&launch.control->bell);
	members = find_members(&launch);
	tell(&launch, session, changed ? "is paused" : "is paused already", &members, false);
	return 0;
}

static int resume_session(const char *session)
{
	struct xs_launch launch;
	struct members members;
	const char *what = "records again";

	if (xs_session_open(session, &launch) < 0)
		return XS_EXIT_SELF;
	if (!xs_control_pause(launch.control, XS_PAUSE_SESSION, false))
		what = "is not paused";
	else if (atomic_load_explicit(&launch.control->paused, memory_order_relaxed) & XS_PAUSE_WINDOW)
		what = "is paused no more, but --delay or --duration still keeps it from recording";
	xs_doorbell_ring(&launch.control->bell);
	members = find_members(&launch);
	tell(&launch, session, what, &members, false);
	return 0;
}

/* False: the drain process has died, or takes too long. */
static bool wait_for_end(struct xs_control *control)
{
	uint64_t deadline = xs_clock_ns(CLOCK_MONOTONIC) + STOP_SECONDS * 1000000000ull;
	uint32_t finished;

	while ((finished = atomic_load_explicit(&control->app_finished, memory_order_acquire)) != XS_RUN_FINISHED &&
	       xs_clock_ns(CLOCK_MONOTONIC) < deadline && drain_lives(control))
		xs_futex_wait(&control->app_finished, finished, 20000000);
	return atomic_load_explicit(&control->app_finished, memory_order_acquire) == XS_RUN_FINISHED;
}

static int stop_session(const char *session)
{
	struct xs_launch launch;
	struct members members;

	if (xs_session_open(session, &launch) < 0)
		return XS_EXIT_SELF;
	members = find_members(&launch); /* before their files go */
	if (drain_lives(launch.control)) {
		(void)xs_control_pause(launch.control, XS_PAUSE_STOPPED, true);
		xs_doorbell_ring(&launch.control->bell);
		if (wait_for_end(launch.control)) {
			tell(&launch, session, "is stopped", &members, true);
			return 0;
		}
	}
	if (drain_lives(launch.control))
		xs_tell("xstrace: session %s records no more, but its traces are not complete after %u s; they will be\n",
			session, STOP_SECONDS);
	else
		xs_tell("xstrace: session %s cannot be stopped: its drain process is dead; once the application has ended, "
				"xstrace --recover %s writes the traces\n",
			session, launch.dir);
	return XS_EXIT_SELF;
}

int xs_session_command(const struct xs_options *options)
{
	if (!!options->pause[0] + !!options->resume[0] + !!options->stop[0] > 1) {
		xs_tell("xstrace: give one of --pause, --resume and --stop\n");
		return XS_EXIT_SELF;
	}
	if (options->pause[0])
		return pause_session(options->pause);
	if (options->resume[0])
		return resume_session(options->resume);
	return stop_session(options->stop);
}
