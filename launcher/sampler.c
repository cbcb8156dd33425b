/*
 * --system-metrics: the program that samples the machine while the application runs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"
#include "rank.h"
#include "text.h"

#define PATIENCE_MS 1000 /* for its end */

/* As the application's start (spawn.c), but the terminal's signals are not for it. */
static __attribute__((noinline)) int start(struct xs_launch *launch, char *path, char *interval,
					   char **environment)
{
	char *argv[] = { "xstrace-system", interval, NULL };
	volatile int failed = 0;
	int launcher = getpid(), pid = vfork();

	if (pid == 0) {
		sigset_t none;

		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != launcher)
			_exit(XS_EXIT_SELF);

		(void)setsid();
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		launch->control->sampler_pid = getpid();
		execve(path, argv, environment);
		failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (pid < 0)
		failed = errno;
	return failed ? -failed : pid;
}

void xs_sampler_start(struct xs_launch *launch, char **environment)
{
	char path[PATH_MAX], interval[24];
	int pid;

	if (xs_local_rank())
		return;
	(void)snprintf(interval, sizeof(interval), "%llu",
		       1000ull * launch->options->system_metrics);
	pid = xs_find_program(XS_PART_SAMPLER, path);
	if (!pid)
		pid = start(launch, path, interval, environment);
	if (pid < 0)
		xs_tell("xstrace: --system-metrics: xstrace-system does not run: %s\n",
			strerror(-pid));
	else
		launch->sampler = pid;
}

void xs_sampler_died(int status)
{
	if (WIFSIGNALED(status))
		xs_tell("xstrace: --system-metrics ends here: signal %d has ended xstrace-system; "
			"the application goes on\n",
			WTERMSIG(status));
}

void xs_sampler_end(struct xs_launch *launch)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int status;

	if (launch->sampler <= 0)
		return;
	(void)kill(launch->sampler, SIGTERM);
	/* killed, it may still be in a driver's call: nobody waits for that */
	for (int i = 0; i < 2 * PATIENCE_MS && !waitpid(launch->sampler, &status, WNOHANG); i++) {
		if (i == PATIENCE_MS)
			(void)kill(launch->sampler, SIGKILL);
		(void)nanosleep(&ms, NULL);
	}
	launch->sampler = 0;
}
