/*
 * The two children: the drain process and the application; and being transparent between the application and who started us.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "writer.h"

/* The drain process outlives terminal, job control and polite job managers: it ends when its work is done. */
static _Noreturn void be_drain(struct xs_launch *launch)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2 };
	int null, error;

	(void)setsid(); /* unless we lead a group already (start_drain()), which protects as well */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	/* stdout and stdin are the application's: a pipe must end when the application does. stderr is where the end lines go */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		if (fcntl(STDERR_FILENO, F_GETFD) < 0) /* closed: or a trace would become our stderr */
			(void)dup2(null, STDERR_FILENO);
	}
	(void)close_range(3, ~0u, 0);
	error = xs_drain(launch->dir, false);
	if (error < 0)
		fprintf(stderr, "xstrace: the drain process failed: %s\n", strerror(-error));
	exit(error < 0 ? XS_EXIT_SELF : 0);
}

/* Its pid or -errno. `mask`: the signal mask that we were started with. */
static int start_drain(struct xs_launch *launch, const sigset_t *mask)
{
	struct xs_doorbell *bell = &launch->control->bell;
	int pid = fork();

	if (pid == 0) {
		(void)sigprocmask(SIG_SETMASK, mask, NULL);
		bell->consumer_start = xs_process_start(getpid());
		be_drain(launch);
	}
	if (pid < 0)
		return -errno;
	/* at once, and not when the child gets to setsid(): a signal to our group must not reach it */
	(void)setpgid(pid, pid);
	bell->consumer_pid = pid;
	return pid;
}

/* Signals that say something about the sender's wish and not about our own doing. */
static bool forwardable(const siginfo_t *info, int app)
{
	if (info->si_signo == SIGCHLD || info->si_pid == app)
		return false;
	/* the terminal sends to the whole foreground group: the application has it already */
	return info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

static void tell_drain_died(const struct xs_launch *launch, int status)
{
	fprintf(stderr,
		"xstrace: the drain process ended (%s %d); the application goes on. To write the trace afterwards: "
		"xstrace --recover %s\n",
		WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		launch->dir);
}

/* Waits for the trace of the application's own process; descendants may still run. */
static void wait_for_trace(struct xs_launch *launch, int drain)
{
	struct xs_control *control = launch->control;
	uint64_t patience = xs_clock_ns(CLOCK_MONOTONIC) + 300000;
	int status;

	atomic_store_explicit(&control->app_exited, 1, memory_order_release);
	atomic_fetch_add_explicit(&control->bell.rung, 1, memory_order_relaxed);
	xs_futex_wake(&control->bell.rung);
	/* mostly it is a matter of 100 us, as long as it would take to wake us up */
	while (drain > 0 && !atomic_load_explicit(&control->app_finished, memory_order_acquire) &&
	       xs_clock_ns(CLOCK_MONOTONIC) < patience)
		(void)sched_yield();
	while (drain > 0 && !atomic_load_explicit(&control->app_finished, memory_order_acquire)) {
		xs_futex_wait(&control->app_finished, 0, 20000000);
		if (waitpid(drain, &status, WNOHANG) == drain) {
			if (!atomic_load_explicit(&control->app_finished, memory_order_acquire))
				tell_drain_died(launch, status);
			return;
		}
	}
	/* a matter of microseconds, and no zombie is left where pid 1 does not care for orphans */
	if (atomic_load_explicit(&control->app_finished, memory_order_acquire) == XS_RUN_FINISHED)
		(void)waitpid(drain, &status, 0);
}

/* One child changed state; true when it was the application and it has ended. */
static bool reap(struct xs_launch *launch, int app, int *drain, int *ret_status)
{
	int status, pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == *drain && !WIFSTOPPED(status)) {
			tell_drain_died(launch, status);
			*drain = 0;
		}
		if (pid != app)
			continue;
		if (WIFSTOPPED(status)) {
			(void)raise(SIGSTOP); /* stopped as the application is; the shell sees one job */
			continue;
		}
		*ret_status = status;
		return true;
	}
	return false;
}

/* A script without a #! line is run by the shell, as execvp(3) and every shell do. NULL: no memory. */
static char **shell_arguments(const char *path, char **argv)
{
	size_t count = 0;
	char **result;

	while (argv[count])
		count++;
	result = calloc(count + 2, sizeof(*result));
	if (!result)
		return NULL;
	result[0] = "/bin/sh";
	result[1] = (char *)path;
	memcpy(result + 2, argv + 1, count * sizeof(*argv)); /* with the NULL */
	return result;
}

/* vfork: the child only undoes what we did to signals, and calls exec. Its pid, or -errno of fork or exec. */
static __attribute__((noinline)) int start_application(struct xs_control *control, const char *path, char **argv,
						       char **shell_argv, char **environment,
						       const sigset_t *mask, const struct sigaction *sigchld)
{
	volatile int failed = 0;
	int launcher = getpid();
	int app = vfork();

	if (app == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGKILL of the launcher is meant for the application */
		if (getppid() != launcher)
			_exit(XS_EXIT_SELF);
		control->app_pid = getpid();
		(void)sigaction(SIGCHLD, sigchld, NULL);
		(void)sigprocmask(SIG_SETMASK, mask, NULL);
		execve(path, argv, environment);
		if (errno == ENOEXEC && shell_argv)
			execve(shell_argv[0], shell_argv, environment);
		failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (app < 0)
		failed = errno;
	atomic_store_explicit(&control->app_started, 1, memory_order_release);
	return failed ? -failed : app;
}

int xs_run_application(struct xs_launch *launch, const char *path, char **argv, char **environment)
{
	struct sigaction child = { .sa_handler = SIG_DFL }, old_child;
	char **shell_argv = xs_program_is_text(path) ? shell_arguments(path, argv) : NULL;
	int app, drain, status = 0;
	sigset_t all, old;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	(void)sigaction(SIGCHLD, &child, &old_child); /* ignored, it would take our children's status away */
	/* first: from its first instruction on, the application may be killed together with us */
	drain = start_drain(launch, &old);
	app = drain < 0 ? drain
			: start_application(launch->control, path, argv, shell_argv, environment, &old, &old_child);
	(void)sigaction(SIGCHLD, &child, NULL);
	while (app > 0 && !reap(launch, app, &drain, &status)) {
		siginfo_t info;

		if (sigwaitinfo(&all, &info) > 0 && forwardable(&info, app))
			(void)kill(app, info.si_signo);
	}
	launch->control->app_not_traced |= app < 0;
	launch->control->app_status = status;
	wait_for_trace(launch, drain);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return app < 0 ? app : status;
}

_Noreturn void xs_end_like(int status)
{
	struct rlimit none = { 0, 0 };
	sigset_t set;

	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status));
	(void)setrlimit(RLIMIT_CORE, &none); /* one core file, the application's, is enough */
	(void)signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(WTERMSIG(status));
	exit(128 + WTERMSIG(status));
}
