/*
 * The two children: the drain process and the application; and being transparent between the
 * application and who started us.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "text.h"

extern char **environ;

/*
 * Signal sets as the kernel has them: a C library hides two or three signals of its own, and which
 * ones differs between those that the launcher and the application may be linked with.
 */
#define KERNEL_SET_SIZE 8u
#define ALL_SIGNALS	UINT64_MAX

/* False: a sandbox around us refuses it. ret_old may be NULL. */
static bool set_mask(uint64_t mask, uint64_t *ret_old)
{
	return !syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, ret_old, KERNEL_SET_SIZE);
}

/*
 * The drain process is a program of its own: its C library starts while the application starts. Its
 * pid or -errno. All signals are blocked, and stay so in it until it has said which ones it ignores
 * (writer/drain/main.c).
 */
static __attribute__((noinline)) int start_drain(struct xs_launch *launch, char *path, int end,
						 int control)
{
	char *argv[] = { "xstrace-drain", launch->dir, NULL };
	volatile int failed = 0;
	int pid = vfork();

	if (pid == 0) {
		/* before the application starts: a signal to our group must not reach it */
		(void)setsid();
		(void)dup2(end, XS_DRAIN_CHANNEL);
		(void)dup2(launch->directory, XS_DRAIN_DIRECTORY);
		if (control >= 0)
			(void)dup2(control, XS_DRAIN_CONTROL);
		else
			(void)close(XS_DRAIN_CONTROL); /* the application's */
		launch->control->consumer.pid = getpid();
		execv(path, argv);
		failed = errno;
		_exit(XS_EXIT_SELF);
	}
	if (pid < 0)
		failed = errno;
	return failed ? -failed : pid;
}

/* Parent and process group of a process; false: it is gone. */
static bool look_up(int pid, int *ret_parent, int *ret_group)
{
	char path[48], text[1024];
	const char *at = NULL;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fgets(text, sizeof(text), file))
		at = strrchr(text, ')'); /* the name may hold anything */
	if (file)
		fclose(file);
	return at && sscanf(at, ") %*c %d %d", ret_parent, ret_group) == 2;
}

enum sender { OTHER, APPLICATION, DESCENDANT };

static enum sender sender_of(const siginfo_t *info, int app)
{
	int parent, group, ancestor = info->si_pid, depth = 0;

	while (ancestor != app && ancestor > 1 && depth++ < 100) {
		if (!look_up(ancestor, &parent, &group))
			return OTHER;
		ancestor = parent;
	}
	if (ancestor != app)
		return OTHER;
	return info->si_pid == app ? APPLICATION : DESCENDANT;
}

/* Only kill() has more than one receiver. */
static enum xs_meant meant_of(const siginfo_t *info, int app)
{
	enum xs_meant meant = xs_group_meant(info->si_signo);
	int parent, group;

	if (info->si_code != SI_USER)
		return XS_MEANT_US;
	/* the application's are for the group as long as it is there, if nobody knows */
	if (meant == XS_MEANT_UNKNOWN && info->si_pid == app &&
	    (!look_up(app, &parent, &group) || group == getpgrp()))
		return XS_MEANT_GROUP;
	return meant;
}

static void send(int pid, const siginfo_t *info)
{
	if (info->si_code == SI_QUEUE)
		(void)sigqueue(pid, info->si_signo, info->si_value);
	else
		(void)kill(pid, info->si_signo);
}

/*
 * Notes who our parent is. True: the signal says no more than that it is another one than before.
 */
static bool follow_parent(struct xs_control *control, const siginfo_t *info)
{
	int before = atomic_load_explicit(&control->launcher_parent, memory_order_relaxed),
	    now = getppid();

	atomic_store_explicit(&control->launcher_parent, now, memory_order_relaxed);
	return now != before && info->si_signo == SIGURG && info->si_pid == before;
}

/*
 * A shell that has job control leads a group of its own. Without us it would lead the one that we
 * lead, and all that is sent to that is for it.
 */
static bool is_in_our_place(int app)
{
	return getpgrp() == getpid() && getpgid(app) == app;
}

/*
 * Signals that say something about the sender's wish and not about our own doing (the terminal's
 * are for the whole foreground group: the application has them already; and so are those that
 * others send to our group). Those of the application are for its parent, if it knows us as that
 * (collector/parent.c). Its descendants may have found us by our arguments, which are also the
 * application's, and mean that one; they can reach it themselves.
 */
static void pass_on(const struct xs_launch *launch, int app, const siginfo_t *info)
{
	enum xs_meant meant = meant_of(info, app);
	int parent = getppid();

	/*
	 * the terminal is gone: the kernel tells the leader of its session, which would be the
	 * application
	 */
	if (info->si_code == SI_KERNEL && (info->si_signo == SIGHUP || info->si_signo == SIGCONT) &&
	    getsid(0) == getpid())
		(void)kill(app, info->si_signo);
	/* of a timer that was not ours, just before it became the application's */
	if (info->si_code == SI_KERNEL &&
	    (info->si_signo == SIGALRM || info->si_signo == SIGPROF || info->si_signo == SIGVTALRM))
		(void)kill(app, info->si_signo);
	if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL)
		return;
	switch (sender_of(info, app)) {
	case OTHER:
		if (info->si_signo == SIGUSR1 && launch->options->flight)
			(void)xs_control_dump(launch->control, launch->mailbox, XS_DUMP_SIGNAL);
		else if (meant != XS_MEANT_GROUP || is_in_our_place(app))
			send(app, info);
		break;
	case APPLICATION:
		if (parent > 1 && meant != XS_MEANT_GROUP)
			send(parent, info);
		break;
	case DESCENDANT:
		break;
	}
}

static void tell_drain_died(const struct xs_launch *launch, int status)
{
	xs_tell("xstrace: the drain process ended (%s %d); the application goes on. To write the "
		"trace afterwards: "
		"xstrace --recover %s\n",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), launch->dir);
}

/* What the drain process has said by now, or until it says something. False: it has ended. */
static bool hear_drain(struct xs_launch *launch, bool wait)
{
	struct xs_message message;
	enum xs_heard heard;

	while ((heard = xs_channel_hear(launch->drain, wait, &message)) == XS_HEARD) {
		wait = false;
		if (message.word == XS_WORD_APP_FINISHED || message.word == XS_WORD_RUN_FINISHED)
			launch->finished = message.word;
	}
	return heard != XS_HEARD_END;
}

/*
 * Process 1 of a PID namespace takes all others there with it, the drain process too: descendants
 * that still run are about to end, and their traces are completed first. False: the drain process
 * has ended.
 */
static bool stop_for_good(struct xs_launch *launch)
{
	bool lives = true;

	(void)xs_control_pause(launch->control, XS_PAUSE_STOPPED, true);
	xs_doorbell_ring(&launch->mailbox->bell);
	while (lives && launch->finished != XS_WORD_RUN_FINISHED)
		lives = hear_drain(launch, true);
	return lives;
}

/*
 * Waits for the trace of the application's own process; descendants may still run. app < 0: it
 * could not be run.
 */
static void wait_for_trace(struct xs_launch *launch, int drain, int app, int app_status)
{
	uint64_t patience = xs_clock_ns(CLOCK_MONOTONIC) + 300000;
	bool lives = drain > 0;
	int status;

	xs_channel_say(launch->drain, app < 0 ? XS_WORD_NO_APP : XS_WORD_APP_ENDED, app_status);
	atomic_fetch_add_explicit(&launch->mailbox->bell.rung, 1, memory_order_relaxed);
	xs_futex_wake(&launch->mailbox->bell.rung);
	/* mostly it is a matter of 100 us, as long as it would take to wake us up */
	while (lives && !launch->finished && xs_clock_ns(CLOCK_MONOTONIC) < patience) {
		lives = hear_drain(launch, false);
		if (!launch->finished)
			(void)sched_yield();
	}
	while (lives && !launch->finished)
		lives = hear_drain(launch, true);
	if (lives && launch->finished == XS_WORD_APP_FINISHED && getpid() == 1)
		lives = stop_for_good(launch);
	/* a matter of microseconds, and no zombie is left where pid 1 does not care for orphans */
	if (drain > 0 && launch->finished != XS_WORD_APP_FINISHED &&
	    waitpid(drain, &status, 0) == drain && !launch->finished)
		tell_drain_died(launch, status);
}

/* One child changed state; true when it was the application and it has ended. */
static bool reap(struct xs_launch *launch, int app, int *drain, int *ret_status)
{
	int status, pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == *drain && !WIFSTOPPED(status)) {
			(void)hear_drain(launch, false);
			/* not a word about one that was told to end (--stop) */
			if (launch->finished != XS_WORD_RUN_FINISHED)
				tell_drain_died(launch, status);
			*drain = 0;
		}
		xs_sampler_reaped(launch, pid, status);
		xs_group_reaped(WIFSTOPPED(status) ? 0 : pid);
		if (pid != app)
			continue;
		if (WIFSTOPPED(status)) {
			siginfo_t info;

			if (xs_job_stop(app, WSTOPSIG(status), &info))
				pass_on(launch, app, &info);
			else
				(void)xs_group_meant(SIGCONT); /* what was seen is over */
			continue;
		}
		*ret_status = status;
		return true;
	}
	return false;
}

/*
 * A script without a #! line is run by the shell, as execvp(3) and every shell do. NULL: no memory.
 */
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

/* Returns if that cannot be; errno says why. */
static void become(const char *path, char **argv, char **shell_argv, char **environment)
{
	execve(path, argv, environment);
	if (errno == ENOEXEC && shell_argv)
		execve(shell_argv[0], shell_argv, environment);
}

static const int clocks[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

/* Timers of who called exec to start us (alarm()) are the application's: exec keeps them. */
static void take_timers(struct itimerval *timers)
{
	static const struct itimerval off;

	for (size_t i = 0; i < CLOCKS; i++)
		if (setitimer(clocks[i], &off, &timers[i]))
			timers[i] = off;
}

static void give_timers(const struct itimerval *timers)
{
	for (size_t i = 0; i < CLOCKS; i++)
		if (timerisset(&timers[i].it_value))
			(void)setitimer(clocks[i], &timers[i], NULL);
}

/*
 * vfork: the child only undoes what we did to signals, and calls exec. Its pid, or -errno of fork
 * or exec. Where our variables are what is too much for exec, it runs without them.
 */
static __attribute__((noinline)) int start_application(struct xs_launch *launch, const char *path,
						       char **argv, char **shell_argv,
						       char **environment, uint64_t mask,
						       const struct sigaction *sigchld)
{
	struct itimerval timers[CLOCKS];
	volatile int failed = 0;
	volatile bool bare = false;
	int launcher = getpid(), reaps = 0, app;

	take_timers(timers);
	/* of who called exec to start us: orphans of the application come to it, and not to us */
	if (!prctl(PR_GET_CHILD_SUBREAPER, &reaps) && reaps)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	app = vfork();
	if (app == 0) {
		/* SIGKILL of the launcher is meant for the application */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launcher)
			_exit(XS_EXIT_SELF);
		launch->control->app_pid = getpid();
		/* it has been said when the program begins */
		xs_channel_say(launch->drain, XS_WORD_APP, getpid());
		(void)sigaction(SIGCHLD, sigchld, NULL);
		if (reaps)
			(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
		(void)set_mask(mask, NULL);
		xs_counters_offer(launch);
		xs_limits_restore();
		give_timers(timers);
		launch->control->launch_ns = xs_clock_ns(CLOCK_MONOTONIC) - xs_launcher_began;
		become(path, argv, shell_argv, environment);
		if (errno == E2BIG && environment != environ) {
			bare = true;
			xs_channel_say(launch->drain, XS_WORD_APP_BARE, 0);
			become(path, argv, shell_argv, environ);
		}
		failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (app < 0) {
		failed = errno;
		/* it may run in our place */
		give_timers(timers);
		(void)prctl(PR_SET_CHILD_SUBREAPER, reaps);
	}
	if (bare && !failed)
		xs_tell("xstrace: %s runs untraced: beside its arguments and environment the "
			"kernel has no room for the variables of tracing\n",
			path);
	return failed ? -failed : app;
}

/*
 * --chrome-kmd-logging: until bpftrace has begun, or will not. The drain process has the patience;
 * it may die meanwhile.
 */
static void wait_for_kmd(const struct xs_launch *launch)
{
	struct xs_message message;

	(void)xs_channel_hear(launch->drain, true, &message);
}

/* Pages that nobody has written are not made for this: of the options, most are not given. */
static bool copy_pages(int from, const struct xs_control *control, int fd)
{
	off_t at = 0, end;

	if (ftruncate(fd, sizeof(*control)) < 0)
		return false;
	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end > (off_t)sizeof(*control))
			end = sizeof(*control);
		if (end <= at)
			return end >= 0;
		if (pwrite(fd, (const char *)control + at, (size_t)(end - at), at) != end - at)
			return false;
		at = end;
	}
	return errno == ENXIO; /* no more data */
}

/*
 * What the drain process is to believe of `control`: the application may have cut the run's file
 * before the drain process has started. -1: there is no room for it, and the file itself is read.
 */
static int copy_control(const struct xs_launch *launch)
{
	int from = xs_shm_open(launch->directory, "control", XS_SHM_READ), fd;

	if (from < 0)
		return -1;
	fd = memfd_create("xstrace-control", MFD_CLOEXEC);
	if (fd >= 0)
		fd = xs_channel_move_up(fd);
	if (fd >= 0 && !copy_pages(from, launch->control, fd)) {
		close(fd);
		fd = -1;
	}
	close(from);
	return fd < 0 ? -1 : fd;
}

int xs_start_drain(struct xs_launch *launch, char *path)
{
	int ends[2], drain = xs_channel_open(ends), control;

	if (drain)
		return drain;
	launch->drain = ends[0];
	control = copy_control(launch);
	drain = start_drain(launch, path, ends[1], control);
	close(ends[1]);
	if (control >= 0)
		close(control);
	return drain;
}

/* As they were before xs_hold_signals(). */
static uint64_t signals_before;
static bool signals_held;

void xs_hold_signals(void)
{
	signals_held = set_mask(ALL_SIGNALS, &signals_before);
}

/* We wait for signals, which none that is not blocked reaches. */
static int run_in_a_sandbox(struct xs_launch *launch, const char *path, char **argv)
{
	xs_launch_destroy(launch);
	xs_tell("xstrace: %s runs untraced: a sandbox refuses rt_sigprocmask()\n", path);
	return xs_exec_application(path, argv);
}

/* A signal that ends a process has come before there is an application. */
static bool is_to_end(uint64_t mask)
{
	static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	uint64_t pending = 0;

	(void)syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	pending &= ~mask;
	for (size_t i = 0; pending && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction action;

		if (pending & UINT64_C(1) << (numbers[i] - 1) &&
		    !sigaction(numbers[i], NULL, &action) && action.sa_handler == SIG_DFL)
			return true;
	}
	return false;
}

/* Its status. What comes for it meanwhile is passed on. */
static int wait_for_application(struct xs_launch *launch, int app, char **argv, int *drain)
{
	uint64_t all = ALL_SIGNALS;
	int status = 0;

	xs_group_watch(argv);
	while (!reap(launch, app, drain, &status)) {
		siginfo_t info;

		if (syscall(SYS_rt_sigtimedwait, &all, &info, NULL, KERNEL_SET_SIZE) <= 0)
			continue;
		if (info.si_signo == SIGCONT)
			xs_job_continued();
		if (!follow_parent(launch->control, &info))
			pass_on(launch, app, &info);
	}
	xs_group_end();
	return status;
}

/* There is no application. */
static void give_up(struct xs_launch *launch, int drain)
{
	xs_sampler_end(launch);
	if (drain > 0) {
		(void)kill(drain, SIGKILL);
		(void)waitpid(drain, NULL, 0);
	}
	xs_launch_destroy(launch);
}

int xs_run_application(struct xs_launch *launch, char *drain_path, const char *path, char **all,
		       char **argv, char **environment)
{
	struct sigaction child = { .sa_handler = SIG_DFL }, old_child;
	char **shell_argv = xs_program_is_text(path) ? shell_arguments(path, argv) : NULL;
	int app, drain, status = 0, death_signal = 0;
	uint64_t old = signals_before;

	if (!signals_held)
		return run_in_a_sandbox(launch, path, argv);
	/*
	 * who was asked to end with its parent does; else we learn in this way that the parent is
	 * another one
	 */
	if (!prctl(PR_GET_PDEATHSIG, &death_signal) && !death_signal)
		(void)prctl(PR_SET_PDEATHSIG, SIGURG);
	/* ignored, it would take our children's status away */
	(void)sigaction(SIGCHLD, &child, &old_child);
	xs_job_watch();
	/* first: from its first instruction on, the application may be killed together with us */
	drain = xs_start_drain(launch, drain_path);
	if (drain == -EAGAIN)
		goto alone;
	if (drain < 0) {
		xs_tell("xstrace: %s: %s\n", drain_path, strerror(-drain));
		xs_launch_destroy(launch);
		return XS_EXIT_SELF << 8;
	}
	if (launch->options->kmd_script[0])
		wait_for_kmd(launch);
	xs_sampler_start(launch, environment);
	if (is_to_end(old))
		goto ended;
	xs_job_watched();
	app = start_application(launch, path, argv, shell_argv, environment, old, &old_child);
	xs_sampler_started(launch);
	if (app == -EAGAIN)
		goto alone;
	(void)sigaction(SIGCHLD, &child, NULL);
	if (app > 0)
		status = wait_for_application(launch, app, all, &drain);
	xs_sampler_end(launch);
	wait_for_trace(launch, drain, app, status);
	xs_group_ended();
	/* signals stay blocked: one that comes now would have ended nobody without us */
	return app < 0 ? app : status;
alone:
	/* RLIMIT_NPROC: it may be just enough for the application, in our place */
	give_up(launch, drain);
	(void)sigaction(SIGCHLD, &old_child, NULL);
	(void)prctl(PR_SET_PDEATHSIG, death_signal);
	(void)set_mask(old, NULL);
	return xs_exec_untraced("processes (ulimit -u)", path, argv);
ended:
	give_up(launch, drain);
	(void)set_mask(old, NULL); /* and here it ends us */
	return XS_EXIT_SELF << 8;
}

int xs_exec_application(const char *path, char **argv)
{
	char **shell_argv = xs_program_is_text(path) ? shell_arguments(path, argv) : NULL;

	xs_limits_restore();
	become(path, argv, shell_argv, environ);
	return -errno;
}

int xs_exec_untraced(const char *scarce, const char *path, char **argv)
{
	xs_tell("xstrace: %s runs untraced: its limit of %s leaves no room for tracing\n", path,
		scarce);
	return xs_exec_application(path, argv);
}

_Noreturn void xs_end_like(int status)
{
	/* struct sigaction of the kernel, all zero: SIG_DFL */
	static const uint64_t default_action[8];

	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status));
	/*
	 * one core file, the application's, is enough; a limit of 0 would not keep it from a
	 * program that takes them (core_pattern)
	 */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)syscall(SYS_rt_sigaction, WTERMSIG(status), default_action, NULL, KERNEL_SET_SIZE);
	(void)kill(getpid(), WTERMSIG(status));
	(void)set_mask(~(UINT64_C(1) << (WTERMSIG(status) - 1)), NULL);
	exit(128 + WTERMSIG(status));
}
