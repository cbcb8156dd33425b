/*
 * The application is stopped: so are we, for the shell, and continued when it goes on.
 */
#include "launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_LOOK_US 2000
#define LOOK_US	      100000

/* By a signal or, for a debugger, by ptrace. */
static bool is_stopped(int pid)
{
	char path[32], text[512], *state;
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		(void)close(fd);
	}
	text[n < 0 ? 0 : n] = '\0';
	state = strrchr(text, ')'); /* the name before it may hold anything */
	return state && state[1] && (state[2] == 'T' || state[2] == 't');
}

/* In a child of the launcher, which cannot look itself. */
static _Noreturn void wake(int launcher, int app)
{
	useconds_t pause = FIRST_LOOK_US;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(0);
	(void)setpgid(0, 0); /* who stops the job does not stop this */
	while (is_stopped(app) || !is_stopped(launcher)) {
		(void)usleep(pause);
		pause = pause * 2 < LOOK_US ? pause * 2 : LOOK_US;
	}
	(void)kill(launcher, SIGCONT);
	_exit(0);
}

/* All signals are blocked: SIGCONT, which ends a stop, is pending then. */
static bool is_continued(void)
{
	uint64_t pending = 0;

	(void)syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending & 1ull << (SIGCONT - 1);
}

/*
 * Of the terminal's signals a shell says which one stopped the job. They stop nobody in an orphaned
 * process group, or where they are ignored; SIGSTOP always does. It would take back a SIGCONT that
 * is pending: that stop is over. (With kill(0, SIGSTOP) we have been stopped with the application.)
 */
static void stop_by(int number)
{
	uint64_t one = 1ull << (number - 1);

	if (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU) {
		(void)raise(number);
		(void)syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, NULL, sizeof(one));
		(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &one, NULL, sizeof(one));
	}
	if (!is_continued())
		(void)raise(SIGSTOP);
}

bool xs_job_stop(int app, int number, siginfo_t *ret)
{
	static const struct timespec now;
	uint64_t continued = 1ull << (SIGCONT - 1);
	int self = getpid(), waker = fork();

	if (waker == 0)
		wake(self, app);
	stop_by(number);
	if (waker < 0)
		return false;
	(void)kill(waker, SIGKILL);
	(void)waitpid(waker, NULL, 0);
	return syscall(SYS_rt_sigtimedwait, &continued, ret, &now, sizeof(continued)) > 0 &&
	       ret->si_pid != waker;
}
