/*
 * A run of the program's own: xstrace-host makes it and leaves, this process joins it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "process.h"
#include "ring.h"
#include "state.h"

extern char **environ;

#define ARGUMENTS_MAX 64u
#define STACK	      (64u << 10)
#define PATIENCE_NS   30000000000u /* for the drain process to complete a trace */

/* ---- xstrace-host ---- */

/* What begins the run, and what that answers; the lock is held. */
static struct {
	char path[PATH_MAX], pid[16], answer[XS_ENV_RUN_MAX > 1024 ? XS_ENV_RUN_MAX : 1024];
	char *argv[ARGUMENTS_MAX];
} host;

static bool find_host(void)
{
	static const char *const places[] = { "xstrace/xstrace-host", "../xstrace/xstrace-host",
					      "xstrace-host", "../launcher/xstrace-host" };
	const char *end;
	Dl_info info;

	/* beside the collector, wherever this library is linked into */
	if (!dladdr((const void *)xs_library.collector.library, &info) || !info.dli_fname)
		return false;
	end = strrchr(info.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(host.path, sizeof(host.path), "%.*s%s",
			       end ? (int)(end + 1 - info.dli_fname) : 0, info.dli_fname,
			       places[i]);
		if (!access(host.path, X_OK))
			return true;
	}
	return false;
}

typedef int clone_function(int (*function)(void *), void *stack, int flags, void *user, ...);

struct child {
	clone_function *clone;
	char **argv, *stack; /* for the second of the two */
	int fd, error;
};

/*
 * The C library's own. That of ThreadSanitizer takes every child for one of fork(), in whose copy
 * of the memory it puts its books in order; here that memory is the parent's.
 */
static clone_function *own_clone(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *found;

	found = libc ? dlsym(libc, "clone") : NULL;
	return found ? *(clone_function **)&found : clone;
}

/* Shares our memory until it calls exec. */
static int become_host(void *user)
{
	struct child *child = user;

	(void)fcntl(child->fd, F_SETFD, 0);
	execve(child->argv[0], child->argv, environ);
	child->error = errno;
	_exit(127);
}

/* Leaves a child that has no parent of ours. */
static int leave_orphan(void *user)
{
	struct child *child = user;

	if (child->clone(become_host, child->stack, CLONE_VM | CLONE_VFORK, child) < 0)
		child->error = errno;
	_exit(0);
}

/*
 * Starts a process that the program does not see: its own child is the one between, which sends no
 * SIGCHLD and is not found by wait(), as it never calls exec. 0 or -errno.
 */
static int spawn(char **argv, int fd)
{
	char *stacks =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct child child = {
		.clone = own_clone(), .argv = argv, .stack = stacks + STACK, .fd = fd
	};
	uint64_t all = UINT64_MAX, old;
	int pid, reaper = 0;

	if (stacks == MAP_FAILED)
		return -ENOMEM;
	/* a subreaper would get the orphan as its own child */
	(void)prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	if (reaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	/* all blocked: no handler of the program's runs in the child; xstrace-drain expects it */
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	pid = child.clone(leave_orphan, stacks + 2 * STACK, CLONE_VM | CLONE_VFORK, &child);
	if (pid < 0)
		child.error = errno;
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	if (reaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)munmap(stacks, 2 * STACK);
	return -child.error;
}

/* What the host answers, with its NUL; false: it answers nothing. */
static bool hear(int fd)
{
	size_t length = 0;

	while (length < sizeof(host.answer)) {
		ssize_t n = read(fd, host.answer + length, sizeof(host.answer) - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		length += (size_t)n;
		if (!host.answer[length - 1])
			return true;
	}
	return false;
}

static int run_host(void)
{
	char number[16];
	int ends[2], error;
	bool heard;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return xs_refuse(XSTRACE_IO, "no descriptors left: %s", strerror(errno));
	(void)snprintf(number, sizeof(number), "%d", ends[1]);
	host.argv[2] = number;
	error = spawn(host.argv, ends[1]);
	close(ends[1]);
	heard = !error && hear(ends[0]);
	close(ends[0]);
	if (error)
		return xs_refuse(XSTRACE_OFF, "%s cannot be started: %s", host.path,
				 strerror(-error));
	if (!heard)
		return xs_refuse(XSTRACE_OFF, "%s has ended without an answer", host.path);
	if (host.answer[0] == '!')
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "%s", host.answer + 1);
	return host.answer[0] == '-' ? xs_refuse(XSTRACE_OFF, "%s", host.answer + 1) : XSTRACE_OK;
}

/* ---- the run ---- */

static int map_run(const char *variable)
{
	const char *secret;
	void *map;
	int error;

	if (!xs_run_parse(variable, xs_library.run_directory, sizeof(xs_library.run_directory),
			  &secret))
		return xs_refuse(XSTRACE_OFF, "xstrace-host is of another version");
	error = xs_shm_map(xs_library.run_directory, "control", XS_SHM_OPEN,
			   sizeof(*xs_library.control), &map, NULL);
	if (error < 0)
		return xs_refuse(XSTRACE_IO, "%s: %s", xs_library.run_directory, strerror(-error));
	/* a child is not to write there */
	(void)madvise(map, sizeof(*xs_library.control), MADV_DONTFORK);
	xs_library.control = map;
	error = xs_shm_map(xs_library.run_directory, "mailbox", XS_SHM_OPEN,
			   sizeof(*xs_library.mailbox), &map, NULL);
	if (error < 0)
		return xs_refuse(XSTRACE_IO, "%s: %s", xs_library.run_directory, strerror(-error));
	(void)madvise(map, sizeof(*xs_library.mailbox), MADV_DONTFORK);
	xs_library.mailbox = map;
	return XSTRACE_OK;
}

static int join(const char *variable)
{
	int result = map_run(variable);

	if (result)
		return result;
	if (!xs_library.collector.begin(variable))
		return xs_refuse(XSTRACE_OFF, "the collector cannot join the run in %s",
				 xs_library.run_directory);
	atomic_store_explicit(&xs_library.table, xs_library.collector.library(),
			      memory_order_release);
	xs_library.how = XS_HOW_HOSTED;
	return XSTRACE_OK;
}

/* The host's command line; false: there are too many options. */
static bool fill_command(char *words, const char *directory, bool devices)
{
	char **argv = host.argv, *rest = words, *word, *session = getenv("XSTRACE_SESSION");
	size_t count = 2; /* run_host() has the third */

	argv[0] = host.path;
	argv[1] = host.pid;
	argv[++count] = "--";
	argv[++count] = "--chrome-itt-logging";
	if (devices)
		argv[++count] = "--chrome-kernel-logging";
	if (directory) {
		argv[++count] = "--output-dir-path";
		argv[++count] = (char *)directory;
	}
	if (session && *session) {
		argv[++count] = "--session";
		argv[++count] = session;
	}
	while ((word = strtok_r(rest, " \t\n", &rest))) {
		if (count + 3 >= ARGUMENTS_MAX)
			return false;
		argv[++count] = word;
	}
	argv[++count] = program_invocation_short_name;
	argv[++count] = NULL;
	return true;
}

int xs_host_begin(const char *options, const char *directory, bool devices)
{
	char *words = strdup(options ? options : "");
	int result;

	if (!words || !find_host()) {
		free(words);
		return xs_refuse(XSTRACE_OFF, "xstrace-host is not where libxstrace.so is");
	}
	(void)snprintf(host.pid, sizeof(host.pid), "%d", getpid());
	if (fill_command(words, directory, devices))
		result = run_host();
	else
		result = xs_refuse(XSTRACE_BAD_ARGUMENT, "options: more than %u words",
				   ARGUMENTS_MAX - 12);
	if (!result)
		result = join(host.answer);
	free(words);
	xs_library.has_devices = devices && !result;
	return result;
}

/* ---- recording, and the end of a trace ---- */

static bool drain_lives(void)
{
	const struct xs_consumer *consumer = &xs_library.control->consumer;

	return xs_pid_alive(consumer->pid, consumer->start);
}

/* The drain process is dead, or done (--stop). */
static bool is_over(void)
{
	return atomic_load_explicit(&xs_library.control->finished, memory_order_acquire) ||
	       !drain_lives();
}

static int refuse_directory(int error)
{
	errno = -error;
	return xs_refuse(XSTRACE_IO, "%s: %s", xs_library.run_directory, strerror(-error));
}

int xs_host_switch(enum xs_pause_reason what, bool on)
{
	int directory = xs_shm_open_directory(xs_library.run_directory);
	bool lives = drain_lives();

	if (directory >= 0 && lives)
		(void)xs_control_change(directory, xs_library.control, what, !on);
	if (directory >= 0)
		close(directory);
	if (!lives)
		return xs_refuse(XSTRACE_OFF, "the drain process of this run has ended");
	return directory < 0 ? refuse_directory(directory) : XSTRACE_OK;
}

static void ring_bell(void)
{
	atomic_fetch_add_explicit(&xs_library.mailbox->bell.rung, 1, memory_order_release);
	xs_futex_wake(&xs_library.mailbox->bell.rung);
}

int xs_host_open(struct xs_host_files *ret)
{
	int error;

	*ret = (struct xs_host_files){ xs_shm_open_directory(xs_library.run_directory), -1 };
	/* without its drain process the run is over, and its directory may be gone */
	if (ret->directory < 0)
		return is_over() ? XSTRACE_OK : refuse_directory(ret->directory);
	ret->spare = fcntl(ret->directory, F_DUPFD_CLOEXEC, 0);
	if (ret->spare >= 0)
		return XSTRACE_OK;
	error = -errno;
	close(ret->directory);
	return refuse_directory(error);
}

static void close_files(struct xs_host_files *files)
{
	if (files->spare >= 0)
		close(files->spare);
	if (files->directory >= 0)
		close(files->directory);
	files->spare = files->directory = -1;
}

/* The first trace of the list is this process's; others there cannot be. */
static int read_list(struct xs_host_files *files, uint32_t number, char *path)
{
	char name[XS_NAME_MAX];
	ssize_t n;
	int fd;

	xs_dump_name(name, number);
	close(files->spare); /* the list's descriptor */
	files->spare = fd = xs_shm_open(files->directory, name, XS_SHM_READ);
	if (fd == -ENOENT) /* the drain process had no room for it */
		return XSTRACE_OK;
	n = fd < 0 ? fd : read(fd, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	return fd < 0 ? refuse_directory(fd) : XSTRACE_OK;
}

/* The drain process has cut; else why not. */
static int wait_for_cut(struct xs_control *control, uint32_t number)
{
	uint64_t until = xs_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	for (;;) {
		uint32_t cut = atomic_load_explicit(&control->cut, memory_order_acquire);

		if ((int32_t)(cut - number) >= 0)
			return XSTRACE_OK;
		if (atomic_load_explicit(&control->finished, memory_order_acquire))
			return xs_refuse(XSTRACE_OFF,
					 "xstrace --stop has ended this run; the trace "
					 "is complete where it lies");
		if (!drain_lives())
			return xs_refuse(XSTRACE_OFF,
					 "the drain process has died; xstrace --recover %s writes "
					 "the trace",
					 xs_library.run_directory);
		if (xs_clock_ns(CLOCK_MONOTONIC) > until)
			return xs_refuse(XSTRACE_TIMEOUT, "the drain process does not answer");
		xs_futex_wait(&control->cut, cut, 50000000);
	}
}

int xs_host_cut(struct xs_host_files *files, char *path)
{
	struct xs_control *control = xs_library.control;
	uint32_t number;
	int result;

	(void)xs_control_change(files->directory, control, XS_PAUSE_LIBRARY, true);
	(void)xs_control_change(files->directory, control, XS_PARTS, false);
	number = atomic_fetch_add_explicit(&control->cuts, 1, memory_order_release) + 1;
	ring_bell();
	result = wait_for_cut(control, number);
	if (!result)
		result = read_list(files, number, path);
	close_files(files);
	atomic_store_explicit(&control->own_trace, 0, memory_order_release);
	return result;
}

int xs_host_start(void)
{
	struct xs_control *control = xs_library.control;
	static char path[PATH_MAX]; /* the lock is held */
	struct xs_host_files files;
	int result = XSTRACE_OK;

	/* what the drain process does at the same time: may_record() in writer/drain */
	atomic_store_explicit(&control->own_trace, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&control->demand, memory_order_relaxed)) {
		result = xs_host_open(&files);
		if (!result)
			result = xs_host_cut(&files, path);
		atomic_store_explicit(&control->own_trace, 1, memory_order_relaxed);
	}
	if (!result)
		result = xs_host_switch(XS_PAUSE_LIBRARY, true);
	if (result)
		atomic_store_explicit(&control->own_trace, 0, memory_order_relaxed);
	return result;
}
