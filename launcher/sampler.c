/*
 * --system-metrics, --metric-sampling, --stall-sampling and --cpu-metrics: programs that sample the
 * machine, its devices and the application while that runs; and the child that serves --export.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"
#include "rank.h"
#include "text.h"

#define PATIENCE_MS 1000  /* for its end */
#define READY_MS    10000 /* for its start */

/* As the application's start (spawn.c), but the terminal's signals are not for it. */
static __attribute__((noinline)) int start(char *path, char **argv, char **environment,
					   volatile int32_t *told, int kept)
{
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
		*told = getpid();
		if (kept >= 0)
			(void)fcntl(kept, F_SETFD, 0);
		execve(path, argv, environment);
		failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (pid < 0)
		failed = errno;
	return failed ? -failed : pid;
}

/*
 * Its pid; 0 after one line that says why there is none. `told`: where it says its pid itself;
 * `kept`: a descriptor that it gets, or -1.
 */
static int start_part(enum xs_part_program which, const char *option, char **argv,
		      char **environment, int32_t *told, int kept)
{
	char path[PATH_MAX];
	int pid = xs_find_program(which, path);

	if (!pid)
		pid = start(path, argv, environment, told, kept);
	if (pid < 0)
		xs_tell("xstrace: %s: %s does not run: %s\n", option, argv[0], strerror(-pid));
	return pid < 0 ? 0 : pid;
}

static void start_system(struct xs_launch *launch, char **environment)
{
	char interval[24];

	(void)snprintf(interval, sizeof(interval), "%llu",
		       1000ull * launch->options->system_metrics);
	launch->sampler = start_part(XS_PART_SAMPLER, "--system-metrics",
				     (char *[]){ "xstrace-system", interval, NULL }, environment,
				     &launch->control->sampler_pid, -1);
}

/* Until the other end of the pipe is closed, by the program or by its end. */
static void await(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	(void)poll(&poll_fd, 1, READY_MS);
}

/* The application's first kernel is sampled, too: it waits until the streamers are open. */
static void start_metrics(struct xs_launch *launch, char **environment)
{
	const struct xs_options *options = launch->options;
	char interval[24], devices[24], cuda[24], group[XS_PATH_MAX], ready[16];
	char *argv[] = { "xstrace-metrics", group, interval, devices, cuda, ready, NULL };
	int ends[2] = { -1, -1 };

	if (pipe2(ends, O_CLOEXEC) < 0)
		ends[0] = ends[1] = -1; /* then nobody waits */
	(void)snprintf(group, sizeof(group), "%s", xs_metric_group(options));
	(void)snprintf(interval, sizeof(interval), "%llu",
		       (unsigned long long)xs_sampling_interval(options));
	(void)snprintf(devices, sizeof(devices), "%llx",
		       (unsigned long long)options->level_zero_devices);
	(void)snprintf(cuda, sizeof(cuda), "%llx", (unsigned long long)options->cuda_devices);
	(void)snprintf(ready, sizeof(ready), "%d", ends[1]);
	launch->metrics =
		start_part(XS_PART_METRICS,
			   options->stall_sampling ? "--stall-sampling" : "--metric-sampling", argv,
			   environment, &launch->control->metrics_pid, ends[1]);
	if (ends[1] < 0)
		return;
	(void)close(ends[1]);
	if (launch->metrics)
		await(ends[0]);
	(void)close(ends[0]);
}

/* It waits for the events of the application, which come by the socket. */
static void start_processors(struct xs_launch *launch, char **environment)
{
	const struct xs_options *options = launch->options;
	char events[16], interval[24], socket[16];
	char *argv[] = { "xstrace-cpu", events, interval, socket, NULL };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		xs_tell("xstrace: --cpu-metrics: kernels get no counts: %s\n", strerror(errno));
		return;
	}
	(void)snprintf(events, sizeof(events), "%x", options->cpu_events);
	(void)snprintf(interval, sizeof(interval), "%llu",
		       options->sampling_interval ? (unsigned long long)options->sampling_interval
						  : 1000ull);
	(void)snprintf(socket, sizeof(socket), "%d", ends[1]);
	launch->processors = start_part(XS_PART_PROCESSORS, "--cpu-metrics", argv, environment,
					&launch->control->processors_pid, ends[1]);
	(void)close(ends[1]);
	launch->counters = ends[0];
}

void xs_sampler_started(struct xs_launch *launch)
{
	if (launch->counters >= 0)
		(void)close(launch->counters);
	launch->counters = -1;
}

void xs_sampler_start(struct xs_launch *launch, char **environment)
{
	const struct xs_options *options = launch->options;

	launch->counters = -1;
	if (options->system_metrics && !xs_local_rank(environ))
		start_system(launch, environment);
	/* a rank that was chosen samples, whichever it is */
	if ((options->metric_sampling || options->stall_sampling) &&
	    (options->ranks[0] || !xs_local_rank(environ)))
		start_metrics(launch, environment);
	if (options->cpu_events)
		start_processors(launch, environment);
	launch->exporter = xs_export_start(launch);
}

static void died(const char *program, int *pid, int status)
{
	*pid = 0;
	if (WIFSIGNALED(status))
		xs_tell("xstrace: signal %d has ended %s, which samples no more; the application "
			"goes on\n",
			WTERMSIG(status), program);
}

void xs_sampler_reaped(struct xs_launch *launch, int pid, int status)
{
	if (WIFSTOPPED(status))
		return;
	if (pid == launch->sampler)
		died("xstrace-system", &launch->sampler, status);
	if (pid == launch->metrics)
		died("xstrace-metrics", &launch->metrics, status);
	if (pid == launch->processors)
		died("xstrace-cpu", &launch->processors, status);
	if (pid == launch->exporter)
		launch->exporter = 0; /* it has said why */
}

/* Waits for it, and for no driver that does not come back. */
static void end(int *pid)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int status;

	for (int i = 0; *pid > 0 && i < 2 * PATIENCE_MS && !waitpid(*pid, &status, WNOHANG); i++) {
		if (i == PATIENCE_MS)
			(void)kill(*pid, SIGKILL);
		(void)nanosleep(&ms, NULL);
	}
	*pid = 0;
}

void xs_sampler_end(struct xs_launch *launch)
{
	/* all at once */
	if (launch->sampler > 0)
		(void)kill(launch->sampler, SIGTERM);
	if (launch->metrics > 0)
		(void)kill(launch->metrics, SIGTERM);
	if (launch->processors > 0)
		(void)kill(launch->processors, SIGTERM);
	if (launch->exporter > 0)
		(void)kill(launch->exporter, SIGTERM);
	end(&launch->sampler);
	end(&launch->metrics);
	end(&launch->processors);
	end(&launch->exporter);
}
