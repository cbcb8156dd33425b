/*
 * What commands do to the runs of a session: --pause, --resume, --stop.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "text.h"

#define SECONDS 10u /* that the drain process may take to complete traces */
#define LISTED	8u  /* processes and traces that a line names */

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

static void add_member(struct members *members, int directory, const char *name,
		       uint64_t launcher_namespace)
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
	member->pid_namespace = file.pid_namespace ? file.pid_namespace : launcher_namespace;
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
			add_member(&all, dirfd(dir), entry->d_name,
				   launch->control->launcher_namespace);
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

static bool read_kept(const struct member *member, struct xs_kept_file *ret)
{
	return member->kept >= 0 &&
	       pread(member->kept, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret) &&
	       ret->output[0] && memchr(ret->output, '\0', sizeof(ret->output));
}

static void tell_traces(const struct members *members)
{
	size_t n = 0, unwritten = 0;

	for (size_t i = 0; i < members->count; i++) {
		struct xs_kept_file kept;

		if (!read_kept(&members->list[i], &kept))
			continue;
		unwritten += kept.unwritten == XS_KEPT_UNWRITTEN;
		if (kept.unwritten != XS_KEPT_UNWRITTEN && n++ < LISTED)
			printf("%s%s", n == 1 ? "; traces: " : ", ", kept.output);
	}
	if (n > LISTED)
		printf(", …");
	if (!n && !unwritten)
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

/* Traces that are complete and not there. The exit status. */
static int tell_unwritten(const struct members *members)
{
	int status = 0;

	for (size_t i = 0; i < members->count; i++) {
		struct xs_kept_file kept;

		if (!read_kept(&members->list[i], &kept) || kept.unwritten != XS_KEPT_UNWRITTEN)
			continue;
		*xs_plain(kept.output, kept.output, strlen(kept.output)) = '\0';
		xs_tell("xstrace: %s is not there: the disk had no room for it, or it was "
			"removed\n",
			kept.output);
		status = XS_EXIT_SELF;
	}
	return status;
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

/*
 * Asks the drain process for a trace of the program, or for its end. False: it is no run that a
 * program has begun for itself, or the drain process does not answer.
 */
static bool ask(const struct xs_launch *launch, bool on, enum xs_session_answer *ret)
{
	struct xs_control *control = launch->control;
	uint64_t deadline = xs_clock_ns(CLOCK_MONOTONIC) + SECONDS * 1000000000ull;
	uint32_t request;

	*ret = XS_SESSION_OTHER;
	if (!control->hosted_start)
		return false;
	request = xs_control_ask(control, launch->mailbox, on);
	while (!xs_control_is_served(control, request)) {
		uint32_t seen =
			atomic_load_explicit(&control->session_served, memory_order_relaxed);

		if (xs_clock_ns(CLOCK_MONOTONIC) > deadline || !xs_session_drain_lives(control))
			return false;
		xs_futex_wait(&control->session_served, seen, 20000000);
	}
	*ret = atomic_load_explicit(&control->session_answer, memory_order_relaxed);
	return true;
}

/* The trace that has ended on our request. It was written by a process that may be spoilt. */
static int tell_asked(const struct xs_launch *launch, const char *session)
{
	char path[PATH_MAX];

	memcpy(path, launch->control->session_trace, sizeof(path));
	path[sizeof(path) - 1] = '\0';
	if (path[0])
		return xs_print_trace(path);
	xs_tell("xstrace: session %s: the trace is not there: the disk had no room for it, or the "
		"program has just ended\n",
		session);
	return XS_EXIT_SELF;
}

static int pause_run(const struct xs_launch *launch, const char *session)
{
	const char *what = "is paused already";
	enum xs_session_answer answer;
	struct members members;

	if (ask(launch, false, &answer) && answer == XS_SESSION_DONE)
		what = "has ended its trace";
	else if (answer == XS_SESSION_OTHER && change(launch, XS_PAUSE_SESSION, true))
		what = "is paused";
	xs_doorbell_ring(&launch->mailbox->bell);
	members = find_members(launch);
	tell(launch, session, what, &members, false);
	return answer == XS_SESSION_DONE ? tell_asked(launch, session) : 0;
}

static int resume_run(const struct xs_launch *launch, const char *session)
{
	const char *what = "records again";
	enum xs_session_answer answer;
	struct members members;
	bool changed;

	if (atomic_load_explicit(&launch->control->paused, memory_order_relaxed) &
	    XS_PAUSE_STOPPED) {
		xs_tell("xstrace: session %s is being stopped: it records no more, and its traces "
			"are completed\n",
			session);
		return XS_EXIT_SELF;
	}
	changed = change(launch, XS_PAUSE_SESSION, false);
	if (ask(launch, true, &answer) && answer == XS_SESSION_DONE)
		what = "records a trace";
	else if (atomic_load_explicit(&launch->control->paused, memory_order_relaxed) &
		 XS_PAUSE_WINDOW)
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
	uint64_t deadline = xs_clock_ns(CLOCK_MONOTONIC) + SECONDS * 1000000000ull;

	while (!atomic_load_explicit(&control->finished, memory_order_acquire) &&
	       xs_clock_ns(CLOCK_MONOTONIC) < deadline && xs_session_drain_lives(control))
		xs_futex_wait(&control->finished, 0, 20000000);
	return atomic_load_explicit(&control->finished, memory_order_acquire);
}

static int wait_for_stop(const struct xs_launch *launch, const char *session,
			 const struct members *members)
{
	if (wait_for_end(launch->control)) {
		tell(launch, session, "is stopped", members, true);
		return tell_unwritten(members);
	}
	if (xs_session_drain_lives(launch->control))
		xs_tell("xstrace: session %s has stopped recording, but its traces are not "
			"complete after %u s; they will be completed\n",
			session, SECONDS);
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
		enum xs_session_answer answer;

		if (ask(&runs[i], false, &answer) && answer == XS_SESSION_DONE)
			status |= tell_asked(&runs[i], session);
		members[i] = find_members(&runs[i]); /* before their files go */
		wait_for_names(&runs[i], &members[i]);
		if (xs_session_drain_lives(runs[i].control))
			(void)change(&runs[i], XS_PAUSE_STOPPED, true);
		xs_doorbell_ring(&runs[i].mailbox->bell);
	}
	for (size_t i = 0; members && i < count; i++)
		status |= wait_for_stop(&runs[i], session, &members[i]);
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
