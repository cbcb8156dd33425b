/*
 * xstrace-drain: the drain process of a run, started by the launcher before the application; with
 * --recover, the successor of one that died. Not meant to be called by hand: xstrace does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "costs.h"
#include "drain.h"
#include "options.h"
#include "overhead.h"
#include "run_open.h"
#include "text.h"

/* It outlives terminal, job control and polite job managers: it ends when its work is done. */
static void detach(void)
{
	static const int ignored[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGTERM, SIGTSTP,
				       SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2 };
	sigset_t none;
	int null;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* the launcher started us with all blocked */
	/*
	 * stdout and stdin are the application's: a pipe must end when the application does. stderr
	 * is where the end lines go
	 */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		/* closed: or a trace would become our stderr */
		if (fcntl(STDERR_FILENO, F_GETFD) < 0)
			(void)dup2(null, STDERR_FILENO);
	}
	(void)fcntl(XS_DRAIN_CHANNEL, F_SETFD, FD_CLOEXEC);
	(void)fcntl(XS_DRAIN_DIRECTORY, F_SETFD, FD_CLOEXEC);
	(void)fcntl(XS_DRAIN_CONTROL, F_SETFD, FD_CLOEXEC);
	(void)close_range(XS_DRAIN_CONTROL + 1, ~0u, 0); /* the application's */
}

static int recover(const char *dir)
{
	int error = xs_drain(dir, -1);

	if (error == -ENOENT) {
		error = xs_run_remove_left(dir);
		if (!error)
			xs_tell("[INFO] --recover %s: nothing was left to be written\n", dir);
	}
	if (!error)
		return 0;
	if (error == -ECANCELED) /* it has been said what is wrong */
		return XS_EXIT_SELF;
	if (error == -EBUSY)
		xs_tell("xstrace: --recover %s: that run still goes on; wait for its processes to "
			"end\n",
			dir);
	else if (error == -EALREADY)
		xs_tell("xstrace: --recover %s: another xstrace --recover is working there\n", dir);
	else if (error == -ENOENT && !access(dir, F_OK))
		xs_tell("xstrace: --recover %s: no run directory, it has no file 'control'\n", dir);
	else if (error == -EPERM)
		xs_tell("xstrace: --recover %s: no run directory of yours: it and its files must "
			"belong to you (uid %u), and nobody else "
			"may have rights there\n",
			dir, geteuid());
	else if (error == -EBADMSG)
		xs_tell("xstrace: --recover %s: not the run directory of this version of xstrace, "
			"or its file 'control' was cut\n",
			dir);
	else
		xs_tell("xstrace: --recover %s: %s\n", dir, strerror(-error));
	return XS_EXIT_SELF;
}

int main(int argc, char **argv)
{
	int error;

	xs_overhead_measured_by(xs_cost_of);
	if (argc == 3 && !strcmp(argv[1], "--recover"))
		return recover(argv[2]);
	if (argc != 2 || fcntl(XS_DRAIN_CHANNEL, F_GETFD) < 0 ||
	    fcntl(XS_DRAIN_DIRECTORY, F_GETFD) < 0) {
		xs_tell("xstrace-drain: xstrace starts this program; see xstrace --help\n");
		return XS_EXIT_SELF;
	}
	detach();
	error = xs_drain(argv[1], XS_DRAIN_CHANNEL);
	if (error < 0)
		xs_tell("xstrace: the drain process failed: %s\n", strerror(-error));
	return error < 0 ? XS_EXIT_SELF : 0;
}
