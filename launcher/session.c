/*
 * Sessions: runs that have a name (--session). What commands do to them: commands.c.
 *
 * The name is a link to the run directory. It is made exclusively, believed only if it and what it
 * leads to are this user's own, and outlives the launcher: the drain process removes it. Each rank
 * of a job is a run with a link of its own, NAME:RANK, and so is a run that a program has begun
 * for itself, NAME:ID; a command is for all of them.
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

enum session_state {
	NO_SESSION,
	SESSION_OVER,
	SESSION_RUNS,
	SESSION_FOREIGN, /* somebody else's, or not made by this version of xstrace */
};

/* For a second it has been stopped whenever one looked: nobody is about to go on with it. */
#define STOPPED_LOOKS 20

bool xs_session_drain_lives(const struct xs_control *control)
{
	return control->consumer.pid &&
	       xs_pid_alive(control->consumer.pid, control->consumer.start);
}

bool xs_session_ends(const struct xs_launch *launch)
{
	for (unsigned i = 0; i < 20; i++) {
		if (atomic_load_explicit(&launch->control->finished, memory_order_acquire) ||
		    !xs_session_drain_lives(launch->control) || access(launch->dir, F_OK) < 0)
			return true;
		(void)usleep(5000);
	}
	return false;
}

bool xs_session_await(const struct xs_launch *launch, const char *session, const char *option,
		      _Atomic uint32_t *served, uint32_t request)
{
	const struct xs_control *control = launch->control;

	for (unsigned stopped = 0; stopped < STOPPED_LOOKS;) {
		uint32_t seen = atomic_load_explicit(served, memory_order_acquire);

		if ((int32_t)(seen - request) >= 0)
			return true;
		if (!xs_session_drain_lives(control)) {
			xs_tell("xstrace: %s %s: the session has just ended\n", option, session);
			return false;
		}
		stopped = xs_pid_stopped(control->consumer.pid) ? stopped + 1 : 0;
		xs_futex_wait(served, seen, 50000000);
	}
	xs_tell("xstrace: %s %s: the session's drain process is stopped: kill -CONT %d, then ask "
		"again\n",
		option, session, control->consumer.pid);
	return false;
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
	if ((xs_session_drain_lives(control) ||
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

/* launch->dir is a run directory, as long as it is there and this user's. */
static enum session_state look_into(struct xs_launch *launch)
{
	int directory = xs_shm_open_directory(launch->dir);
	enum session_state state;

	if (directory < 0)
		return directory == -ENOENT ? SESSION_OVER : SESSION_FOREIGN;
	state = look_inside(launch, directory);
	close(directory);
	return state;
}

static enum session_state look_at(const char *path, struct xs_launch *launch)
{
	struct stat st;
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
	return look_into(launch);
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

	/* a name that a program and its children have in their environment is for each of them */
	if (launch->control->hosted_start)
		(void)sprintf(session + strlen(session), ":%s",
			      strrchr(launch->control->run_id, '-') + 1);
	else if (launch->control->rank >= 0)
		(void)sprintf(session + strlen(session), ":%d", launch->control->rank);
	launch->control->options_sum = xs_options_sum(&launch->control->options);
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

/* Is it the link of the session, or of a run in it? `head`: the link's name. */
static bool is_link_of(const char *entry, const char *head)
{
	size_t n = strlen(head);

	return !strncmp(entry, head, n) && (!entry[n] || entry[n] == ':');
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
	const struct xs_control *first = ((const struct xs_launch *)a)->control,
				*second = ((const struct xs_launch *)b)->control;

	if (first->rank != second->rank)
		return first->rank < second->rank ? -1 : 1;
	return first->app_pid < second->app_pid ? -1 : first->app_pid > second->app_pid;
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

void xs_session_close(struct xs_launch *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		munmap(runs[i].control, sizeof(*runs[i].control));
		munmap(runs[i].mailbox, sizeof(*runs[i].mailbox));
	}
	free(runs);
}

static struct found find(const char *name)
{
	struct found found = { .runs = NULL };
	char path[PATH_MAX];

	for (unsigned n = 0; xs_session_link(n, geteuid(), name, path); n++)
		look_for_links(&found, path);
	return found;
}

bool xs_session_is_there(const char *name)
{
	struct found found = find(name);

	xs_session_close(found.runs, found.count);
	return found.count;
}

size_t xs_session_open(const char *name, struct xs_launch **ret_runs)
{
	struct found found = find(name);
	unsigned uid;

	if (found.count) {
		qsort(found.runs, found.count, sizeof(*found.runs), by_rank);
		*ret_runs = found.runs;
		return found.count;
	}
	*ret_runs = NULL;
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

/* ---- all runs of this user ---- */

static void add_any(struct found *found, const char *parent, const char *name)
{
	struct xs_launch *grown;
	struct stat st;

	if (strncmp(name, "xstrace-", 8) != 0 || strlen(name) != sizeof("xstrace-XXXXXX") - 1)
		return;
	grown = realloc(found->runs, (found->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	found->runs = grown;
	grown[found->count] = (struct xs_launch){ .dir = "" };
	if (snprintf(grown[found->count].dir, PATH_MAX, "%s/%s", parent, name) < PATH_MAX &&
	    !lstat(grown[found->count].dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    look_into(&grown[found->count]) == SESSION_RUNS)
		found->count++;
}

static bool is_again(const char *const *parents, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (parents[i] && !strcmp(parents[i], parents[at]))
			return true;
	return false;
}

size_t xs_session_all(struct xs_launch **ret_runs)
{
	const char *parents[] = { "/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };
	struct found found = { .runs = NULL };

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		DIR *dir = parents[i] && !is_again(parents, i) ? opendir(parents[i]) : NULL;
		struct dirent *entry;

		while (dir && (entry = readdir(dir)))
			add_any(&found, parents[i], entry->d_name);
		if (dir)
			closedir(dir);
	}
	if (found.count)
		qsort(found.runs, found.count, sizeof(*found.runs), by_rank);
	*ret_runs = found.runs;
	return found.count;
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
