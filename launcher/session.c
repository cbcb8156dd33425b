/*
 * Sessions: runs that have a name, and controlling them from another shell (--session; --pause,
 * --resume, --stop).
 *
 * The name is a link to the run directory. It is made exclusively, believed only if it and what it
 * leads to are this user's own, and outlives the launcher: the drain process removes it. Each rank
 * of a job is a run with a link of its own, NAME:RANK; a command is for all of them.
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
#define LISTED	     8u /* processes and traces that a line names */

enum session_state {
	NO_SESSION,
	SESSION_OVER,
	SESSION_RUNS,
	SESSION_FOREIGN, /* somebody else's, or not made by this version of xstrace */
};

static bool drain_lives(const struct xs_control *control)
{
	return control->consumer.pid &&
	       xs_pid_alive(control->consumer.pid, control->consumer.start);
}

/* Looks at a run directory; when it runs, its files stay mapped. */
static enum session_state look_inside(struct xs_launch *launch, int directory)
{
	struct xs_control *control;
	void *map, *mailbox;
	int error = xs_shm_map_at(directory, "control", XS_SHM_OPEN, sizeof(*control), &map, NULL);

	if (error < 0)
		return error == -EPERM ? SESSION_FOREIGN : SESSION_OVER;
	control = map;
	if (!xs_control_valid(control, NULL)) {
		munmap(map, sizeof(*control));
		return SESSION_FOREIGN;
	}
	if ((drain_lives(control) ||
	     xs_pid_alive(control->launcher_pid, control->launcher_start)) &&
	    !xs_shm_map_at(directory, "mailbox", XS_SHM_OPEN, sizeof(*launch->mailbox), &mailbox,
			   NULL)) {
		launch->control = control;
		launch->mailbox = mailbox;
		return SESSION_RUNS;
	}
	munmap(map, sizeof(*control));
	return SESSION_OVER;
}

static enum session_state look_at(const char *path, struct xs_launch *launch)
{
	enum session_state state;
	struct stat st;
	int directory;
	ssize_t n;

	*launch = (struct xs_launch){ .dir = "" };
	if (lstat(path, &st) < 0)
		return NO_SESSION;
	n = S_ISLNK(st.st_mode) && st.st_uid == geteuid()
		    ? readlink(path, launch->dir, sizeof(launch->dir) - 1)
		    : -1;
	if (n < 0)
		return SESSION_FOREIGN;
	launch->dir[n] = '\0';
	directory = xs_shm_open_directory(launch->dir);
	if (directory < 0)
		return directory == -ENOENT ? SESSION_OVER : SESSION_FOREIGN;
	state = look_inside(launch, directory);
	close(directory);
	return state;
}

static void tell_foreign(const char *session, const char *path)
{
	xs_tell("xstrace: session %s: %s is another user's, or was not made by this version of "
		"xstrace\n",
		session, path);
}

/* ---- giving a run its name ---- */

/*
 * The link of a run that is over. It is moved aside first: if another launcher has just done the
 * same and made its own, that one is put back.
 */
static void remove_stale(const char *path, const char *dir)
{
	char aside[PATH_MAX], found[PATH_MAX];
	ssize_t n;

	(void)snprintf(aside, sizeof(aside), "%.*s/xstrace-stale-%d",
		       (int)(strrchr(path, '/') - path), path, getpid());
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
			xs_tell("xstrace: session %s runs already (process %d, run %s); choose "
				"another name\n",
				session,
				other.control->app_pid ? other.control->app_pid
						       : other.control->launcher_pid,
				other.control->run_id);
			munmap(other.control, sizeof(*other.control));
			munmap(other.mailbox, sizeof(*other.mailbox));
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
	char *session = launch->control->options.session;
	char path[PATH_MAX];
	int error = EEXIST;

	if (launch->control->rank >= 0)
		(void)sprintf(session + strlen(session), ":%d", launch->control->rank);
	/* EEXIST: another process was faster; the next round looks at its link */
	for (int i = 0; i < 3 && error == EEXIST; i++) {
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

/* Is this "xstrace-session-<uid>-<session>", of another user, and does its run still exist? */
static bool is_others(int dir, const char *name, const char *session, unsigned *ret_uid)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int at = 0;

	if (sscanf(name, "xstrace-session-%u-%n", ret_uid, &at) != 1 || !at ||
	    strcmp(name + at, session) || *ret_uid == geteuid())
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

/* Is it the link of the session, or of a rank in it? `head`: the link's name. */
static bool is_link_of(const char *entry, const char *head)
{
	size_t n = strlen(head);

	if (strncmp(entry, head, n))
		return false;
	entry += n;
	return !*entry ||
	       (*entry == ':' && entry[1] && !entry[1 + strspn(entry + 1, "0123456789")]);
}

/* What a look into a directory of links has found. */
struct found {
	struct xs_launch *runs;
	size_t count;
	bool over;
	char foreign[PATH_MAX]; /* empty: none */
};

static void add_run(struct found *found, const char *path)
{
	struct xs_launch *grown = realloc(found->runs, (found->count + 1) * sizeof(*grown));

	if (!grown)
		return;
	found->runs = grown;
	switch (look_at(path, &grown[found->count])) {
	case SESSION_RUNS:
		found->count++;
		break;
	case SESSION_FOREIGN:
		memcpy(found->foreign, path, strlen(path) + 1);
		break;
	case SESSION_OVER:
		found->over = true;
		break;
	case NO_SESSION:
		break;
	}
}

static int by_rank(const void *a, const void *b)
{
	int32_t first = ((const struct xs_launch *)a)->control->rank,
		second = ((const struct xs_launch *)b)->control->rank;

	return first < second ? -1 : first > second;
}

/* `path`: where the session's own link would be. */
static void look_for_links(struct found *found, const char *path)
{
	size_t length = (size_t)(strrchr(path, '/') - path);
	char directory[PATH_MAX], link[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(directory, sizeof(directory), "%.*s", (int)length, path);
	dir = opendir(directory);
	while (dir && (entry = readdir(dir)))
		if (is_link_of(entry->d_name, path + length + 1) &&
		    snprintf(link, sizeof(link), "%s/%s", directory, entry->d_name) <
			    (int)sizeof(link))
			add_run(found, link);
	if (dir)
		closedir(dir);
}

size_t xs_session_open(const char *name, struct xs_launch **ret_runs)
{
	struct found found = { .runs = NULL };
	char path[PATH_MAX];
	unsigned uid;

	for (unsigned n = 0; xs_session_link(n, geteuid(), name, path); n++)
		look_for_links(&found, path);
	*ret_runs = found.runs;
	if (found.count) {
		qsort(found.runs, found.count, sizeof(*found.runs), by_rank);
		return found.count;
	}
	free(found.runs);
	if (found.foreign[0])
		tell_foreign(name, found.foreign);
	else if (found.over)
		xs_tell("xstrace: session %s is over: launcher and drain process have ended\n",
			name);
	else if (belongs_to_another(name, &uid))
		xs_tell("xstrace: session %s belongs to another user (uid %u)\n", name, uid);
	else
		xs_tell("xstrace: there is no session %s now; xstrace --session %s … gives a run "
			"that name\n",
			name, name);
	return 0;
}

/* ---- processes of the session ---- */

/*
 * What its files say, read once: they are the process's own, which may be cut or written at any
 * time.
 */
struct member {
	int32_t pid;
	uint32_t serial;
	uint64_t pid_namespace;
	char comm[16];
	/*
	 * what the drain process says of it; -1: nothing yet. It can be read after it has been
	 * removed
	 */
	int kept;
};

struct members {
	struct member *list;
	size_t count;
};

static int by_serial(const void *a, const void *b)
{
	const struct member *first = a, *second = b;

	return first->serial < second->serial ? -1 : first->serial > second->serial;
}

/* A process that has not called exec since, nor ended (as far as that can be seen from here). */
static bool is_current(const struct members *members, size_t at)
{
	const struct member *member = &members->list[at];

	for (size_t i = at + 1; i < members->count; i++)
		if (members->list[i].pid == member->pid &&
		    members->list[i].pid_namespace == member->pid_namespace)
			return false;
	return member->pid_namespace != xs_pid_namespace(0) || xs_pid_alive(member->pid, 0);
}

static bool read_file(int directory, const char *name, void *data, size_t size)
{
	int fd = xs_shm_open(directory, name, XS_SHM_READ);
	ssize_t n = fd < 0 ? -1 : pread(fd, data, size, 0);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)size;
}

static int open_kept(int directory, const struct member *member)
{
	char name[XS_NAME_MAX];
	int fd;

	xs_kept_name(name, member->pid, member->serial, 0);
	fd = xs_shm_open(directory, name, XS_SHM_READ);
	return fd < 0 ? -1 : fd;
}

static void add_member(struct members *members, int directory, const char *name)
{
	struct member *grown = realloc(members->list, (members->count + 1) * sizeof(*grown)),
		      *member;
	struct xs_process_file file;

	if (!grown)
		return;
	members->list = grown;
	member = &grown[members->count];
	if (!xs_process_file_parse(name, &member->pid, &member->serial) ||
	    !read_file(directory, name, &file, sizeof(file)) ||
	    atomic_load_explicit(&file.magic, memory_order_relaxed) != XS_MAGIC)
		return;
	member->pid_namespace = file.pid_namespace;
	memcpy(member->comm, file.comm, sizeof(member->comm));
	member->comm[sizeof(member->comm) - 1] = '\0';
	for (size_t i = 0; i < sizeof(member->comm) && member->comm[i]; i++)
		if ((unsigned char)member->comm[i] < ' ' ||
		    member->comm[i] == 127) /* it goes to a terminal */
			member->comm[i] = '?';
	member->kept = open_kept(directory, member);
	members->count++;
}

static struct members find_members(const struct xs_launch *launch)
{
	struct members all = { NULL, 0 };
	int fd = xs_shm_open_directory(launch->dir);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t kept = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] == 'p')
			add_member(&all, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	if (all.count)
		qsort(all.list, all.count, sizeof(*all.list), by_serial);
	for (size_t i = 0; i < all.count; i++)
		if (is_current(&all, i))
			all.list[kept++] = all.list[i];
	all.count = kept;
	return all;
}

/*
 * Processes that have just joined are known to the drain process in a moment; it is to say how
 * their traces are called.
 */
static void wait_for_names(const struct xs_launch *launch, struct members *members)
{
	int directory = xs_shm_open_directory(launch->dir);

	for (int i = 0; i < 20 && directory >= 0 && !launch->control->options.flight; i++) {
		bool all = true;

		for (size_t m = 0; m < members->count; m++) {
			struct member *member = &members->list[m];

			if (member->kept < 0)
				member->kept = open_kept(directory, member);
			all &= member->kept >= 0;
		}
		if (all)
			break;
		(void)usleep(5000);
	}
	if (directory >= 0)
		close(directory);
}

static void tell_traces(const struct members *members)
{
	size_t n = 0;

	for (size_t i = 0; i < members->count; i++) {
		int fd = members->list[i].kept;
		struct xs_kept_file kept;

		if (fd < 0 || pread(fd, &kept, sizeof(kept), 0) != (ssize_t)sizeof(kept) ||
		    !kept.output[0] || !memchr(kept.output, '\0', sizeof(kept.output)))
			continue;
		if (n++ < LISTED)
			printf("%s%s", n == 1 ? "; traces: " : ", ", kept.output);
	}
	if (n > LISTED)
		printf(", …");
	if (!n)
		printf("; reports, if any, are where xstrace runs");
}

static void tell(const struct xs_launch *launch, const char *session, const char *what,
		 const struct members *members, bool traces)
{
	printf("[INFO] Session %s %s: ", session, what);
	if (launch->control->rank >= 0)
		printf("rank %d, ", launch->control->rank);
	printf("run %s, %zu process%s", launch->control->run_id, members->count,
	       members->count == 1 ? "" : "es");
	for (size_t i = 0; i < members->count && i < LISTED; i++)
		printf("%s%d %s", i ? ", " : " (", members->list[i].pid, members->list[i].comm);
	printf("%s%s", members->count > LISTED ? ", …" : "", members->count ? ")" : "");
	if (traces)
		tell_traces(members);
	putchar('\n');
}

/* ---- the commands: of one run, which a rank's is too ---- */

static bool change(const struct xs_launch *launch, enum xs_pause_reason reason, bool on)
{
	int directory = xs_shm_open_directory(launch->dir);
	bool changed = xs_control_change(directory, launch->control, reason, on);

	if (directory >= 0)
		close(directory);
	return changed;
}

static int pause_run(const struct xs_launch *launch, const char *session)
{
	bool changed = change(launch, XS_PAUSE_SESSION, true);
	struct members members;

	xs_doorbell_ring(&launch->mailbox->bell);
	members = find_members(launch);
	tell(launch, session, changed ? "is paused" : "is paused already", &members, false);
	return 0;
}

static int resume_run(const struct xs_launch *launch, const char *session)
{
	bool changed = change(launch, XS_PAUSE_SESSION, false);
	const char *what = "records again";
	struct members members;

	if (atomic_load_explicit(&launch->control->paused, memory_order_relaxed) & XS_PAUSE_WINDOW)
		what = "is paused no more, but --delay or --duration still keeps it from recording";
	else if (launch->control->options.iterations[0])
		what = "is paused no more; it records what --iterations says";
	else if (!changed)
		what = "is not paused";
	xs_doorbell_ring(&launch->mailbox->bell);
	members = find_members(launch);
	tell(launch, session, what, &members, false);
	return 0;
}

/* False: the drain process has died, or takes too long. */
static bool wait_for_end(struct xs_control *control)
{
	uint64_t deadline = xs_clock_ns(CLOCK_MONOTONIC) + STOP_SECONDS * 1000000000ull;

	while (!atomic_load_explicit(&control->finished, memory_order_acquire) &&
	       xs_clock_ns(CLOCK_MONOTONIC) < deadline && drain_lives(control))
		xs_futex_wait(&control->finished, 0, 20000000);
	return atomic_load_explicit(&control->finished, memory_order_acquire);
}

static int wait_for_stop(const struct xs_launch *launch, const char *session,
			 const struct members *members)
{
	if (wait_for_end(launch->control)) {
		tell(launch, session, "is stopped", members, true);
		return 0;
	}
	if (drain_lives(launch->control))
		xs_tell("xstrace: session %s has stopped recording, but its traces are not "
			"complete after %u s; they will be completed\n",
			session, STOP_SECONDS);
	else
		xs_tell("xstrace: session %s cannot be stopped: its drain process is dead; once "
			"the application has ended, "
			"xstrace --recover %s writes the traces\n",
			session, launch->dir);
	return XS_EXIT_SELF;
}

/* All stop before any is waited for. */
static int stop_runs(const struct xs_launch *runs, size_t count, const char *session)
{
	struct members *members = calloc(count, sizeof(*members));
	int status = members ? 0 : XS_EXIT_SELF;

	for (size_t i = 0; members && i < count; i++) {
		members[i] = find_members(&runs[i]); /* before their files go */
		wait_for_names(&runs[i], &members[i]);
		if (drain_lives(runs[i].control))
			(void)change(&runs[i], XS_PAUSE_STOPPED, true);
		xs_doorbell_ring(&runs[i].mailbox->bell);
	}
	for (size_t i = 0; members && i < count; i++)
		status |= wait_for_stop(&runs[i], session, &members[i]);
	return status;
}

int xs_session_each(const char *session, int (*act)(const struct xs_launch *, const char *))
{
	struct xs_launch *runs;
	size_t count = xs_session_open(session, &runs);
	int status = count ? 0 : XS_EXIT_SELF;

	for (size_t i = 0; i < count; i++)
		status |= act(&runs[i], session);
	return status;
}

int xs_session_pause(const struct xs_options *options)
{
	return xs_session_each(options->pause, pause_run);
}

int xs_session_resume(const struct xs_options *options)
{
	return xs_session_each(options->resume, resume_run);
}

int xs_session_stop(const struct xs_options *options)
{
	struct xs_launch *runs;
	size_t count = xs_session_open(options->stop, &runs);

	return count ? stop_runs(runs, count, options->stop) : XS_EXIT_SELF;
}
