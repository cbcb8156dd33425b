/*
 * What needs a driver's library, which this program, linked statically, cannot load:
 * xstrace-devices does it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

static int find(char *path)
{
	int error = xs_find_program(XS_PART_DEVICES, path);

	if (error < 0)
		xs_tell("xstrace: xstrace-devices is not where it belongs, in ../lib/xstrace "
			"beside this program\n");
	return error;
}

int xs_devices_print(const char *what)
{
	char path[PATH_MAX];

	if (find(path) < 0)
		return XS_EXIT_SELF;
	execl(path, "xstrace-devices", what, (char *)NULL);
	xs_tell("xstrace: %s: %s\n", path, strerror(errno));
	return XS_EXIT_SELF;
}

int xs_devices_check(const struct xs_options *options)
{
	struct sigaction child = { .sa_handler = SIG_DFL }, old;
	char path[PATH_MAX], group[XS_PATH_MAX];
	char *argv[] = { "xstrace-devices", "query", group, NULL };
	const char *option = options->metric_query	? "metric-query"
			     : options->metric_sampling ? "metric-sampling"
							: "stall-sampling";
	int status = -1;
	pid_t pid;

	if (!xs_want_hardware(options))
		return 0;
	if (!options->metric_query)
		argv[1] = options->metric_sampling ? "sample" : "stalls";
	if (find(path) < 0)
		return -1;
	(void)snprintf(group, sizeof(group), "%s", xs_metric_group(options));
	(void)sigaction(SIGCHLD, &child, &old);
	pid = fork();
	if (pid == 0) {
		execv(path, argv);
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)sigaction(SIGCHLD, &old, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == XS_EXIT_SELF)
		return -1; /* it has said why */
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		xs_tell("xstrace: --%s: looking for the devices' metrics failed; try xstrace "
			"--metric-list\n",
			option);
	return 0;
}

/*
 * A driver's library may print what it likes, on stderr too: what we want comes through a pipe of
 * its own.
 */
static pid_t start(const char *path, char *list, int fds[2])
{
	char *argv[] = { "xstrace-devices", "select", list, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execv(path, argv);
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	return pid;
}

int xs_devices_select(struct xs_options *options)
{
	unsigned long long opencl, level_zero, cuda;
	char path[PATH_MAX], line[4096], *last = NULL;
	struct sigaction child = { .sa_handler = SIG_DFL }, old;
	int fds[2], status = -1;
	FILE *answer;
	pid_t pid;

	if (find(path) < 0)
		return -1;
	if (pipe(fds) < 0) {
		xs_tell("xstrace: --devices-to-sample: %s\n", strerror(errno));
		return -1;
	}
	(void)sigaction(SIGCHLD, &child, &old);
	pid = start(path, options->devices, fds);
	close(fds[1]);
	answer = fdopen(fds[0], "r");
	/* the last line: a library may have printed others before it */
	while (answer && fgets(line, sizeof(line), answer))
		last = line;
	if (answer)
		fclose(answer);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)sigaction(SIGCHLD, &old, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == XS_EXIT_SELF)
		return -1; /* it has said why */
	if (!WIFEXITED(status) || WEXITSTATUS(status) || !last ||
	    sscanf(last, "%llx %llx %llx", &opencl, &level_zero, &cuda) != 3) {
		xs_tell("xstrace: --devices-to-sample %s: looking for the devices failed; try "
			"xstrace --device-list\n",
			options->devices);
		return -1;
	}
	options->opencl_devices = opencl;
	options->level_zero_devices = level_zero;
	options->cuda_devices = cuda;
	return 0;
}
