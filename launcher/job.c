/*
 * The application is stopped: so are we, for the shell, and continued when it goes on.
 */
#include "launcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_LOOK_US 2000
#define LOOK_US	      100000
#define WATCH_STACK   (64u << 10)
#define SET_SIZE      8u /* of signals, as the kernel has them */

static uint64_t set_of(int number)
{
	return UINT64_C(1) << (number - 1);
}

static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, size - 1);
		(void)close(fd);
	}
	text[n < 0 ? 0 : n] = '\0';
}

/* By a signal or, for a debugger, by ptrace. */
static bool is_stopped(int pid)
{
	char path[32], text[512], *state;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_text(path, text, sizeof(text));
	state = strrchr(text, ')'); /* the name before it may hold anything */
	return state && state[1] && (state[2] == 'T' || state[2] == 't');
}

/* ---- SIGCONT leaves a trace ---- */

/*
 * A stop signal takes back a SIGCONT that is pending: if it comes between our last look and our own
 * stop, nobody would ever know. But SIGCONT also takes back the stop signals that are pending in
 * any thread. So a thread that does nothing always has one pending, the mark. No other signal meets
 * it there: those that others send to us are the process's.
 */
#define MARK SIGTTOU
static _Atomic int watch; /* the thread's id; 0: there is none; -1: it is about to begin */

static void mark(void)
{
	int thread = atomic_load(&watch);

	if (thread > 0)
		(void)syscall(SYS_tgkill, getpid(), thread, MARK);
}

/* A C library does not block its own when it makes a thread. */
static void block_all(void)
{
	uint64_t all = UINT64_MAX;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, SET_SIZE);
}

static void *hold_mark(void *unused)
{
	int self = (int)syscall(SYS_gettid);

	block_all();
	(void)syscall(SYS_tgkill, getpid(), self, MARK);
	atomic_store(&watch, self);
	for (;;)
		(void)pause();
	return unused;
}

void xs_job_watch(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (pthread_attr_init(&attributes))
		return;
	(void)pthread_attr_setstacksize(&attributes, WATCH_STACK);
	atomic_store(&watch, -1);
	if (pthread_create(&thread, &attributes, hold_mark, NULL))
		atomic_store(&watch, 0); /* we take the chance */
	block_all();
	(void)pthread_attr_destroy(&attributes);
}

void xs_job_watched(void)
{
	while (atomic_load(&watch) < 0) /* mostly it has begun */
		(void)usleep(50);
}

void xs_job_continued(void)
{
	mark();
}

bool xs_pending_in(int pid, int thread, const char *which, uint64_t *ret)
{
	char path[64], text[2048], *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, thread);
	read_text(path, text, sizeof(text));
	at = strstr(text, which);
	if (at)
		*ret = strtoull(at + strlen(which) + 1, NULL, 16); /* SigPnd: 0000000000000000 */
	return at;
}

/* Has no SIGCONT come since the mark was set? */
static bool is_marked(int launcher)
{
	int thread = atomic_load(&watch);
	uint64_t pending;

	return thread <= 0 || !xs_pending_in(launcher, thread, "SigPnd", &pending) ||
	       pending & set_of(MARK);
}

/*
 * In a child of the launcher, which cannot look itself. The value that comes with SIGCONT: another
 * one was lost.
 */
static _Noreturn void wake(int launcher, int app)
{
	union sigval lost = { 0 };
	useconds_t pause = FIRST_LOOK_US;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(0);
	(void)setpgid(0, 0); /* who stops the job does not stop this */
	for (;;) {
		if (is_stopped(launcher)) {
			lost.sival_int = !is_marked(launcher);
			if (lost.sival_int || !is_stopped(app))
				(void)sigqueue(launcher, SIGCONT, lost);
		} /* which kills this when it goes on */
		(void)usleep(pause);
		pause = pause * 2 < LOOK_US ? pause * 2 : LOOK_US;
	}
}

/* All signals are blocked: SIGCONT, which ends a stop, is pending then. */
static bool is_continued(void)
{
	uint64_t pending = 0;

	(void)syscall(SYS_rt_sigpending, &pending, SET_SIZE);
	return pending & set_of(SIGCONT);
}

/*
 * Of the terminal's signals a shell says which one stopped the job. They stop nobody in an orphaned
 * process group, or where they are ignored; SIGSTOP always does. Where SIGCONT is pending, the stop
 * is over. (With kill(0, SIGSTOP) we have been stopped with the application.)
 */
static void stop_by(int number)
{
	uint64_t one = set_of(number);

	if (is_continued())
		return;
	if (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU) {
		(void)raise(number);
		(void)syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, NULL, SET_SIZE);
		(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &one, NULL, SET_SIZE);
		if (is_continued())
			return;
	}
	(void)raise(SIGSTOP);
}

bool xs_job_stop(int app, int number, siginfo_t *ret)
{
	static const struct timespec now;
	uint64_t continued = set_of(SIGCONT);
	int self = getpid(), waker;

	/* it was taken back by a stop signal of somebody else's, which came later */
	if (!is_marked(self) && !is_continued())
		mark();
	waker = fork();
	if (waker == 0)
		wake(self, app);
	stop_by(number);
	if (waker > 0) {
		(void)kill(waker, SIGKILL);
		(void)waitpid(waker, NULL, 0);
	}
	if (syscall(SYS_rt_sigtimedwait, &continued, ret, &now, SET_SIZE) <= 0)
		return false;
	mark();
	if (ret->si_pid != waker)
		return true;
	ret->si_code = SI_TKILL; /* as it was: without a value */
	return ret->si_value.sival_int;
}
