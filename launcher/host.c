/*
 * xstrace-host PID FD -- [options] name: begins a run for a program that contains the library
 * (library/), and leaves. The drain process that it starts watches the program itself.
 *
 * FD gets the run's variable (xs_run_variable()), or a line that says why there is none, with a '!'
 * before it. The program is told nothing else, and its terminal nothing at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "text.h"

static int answer = -1;

static int __attribute__((format(printf, 1, 2))) refuse(const char *format, ...)
{
	char line[1024];
	va_list args;
	int n;

	line[0] = '!';
	va_start(args, format);
	n = vsnprintf(line + 1, sizeof(line) - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	(void)!write(answer, line, (size_t)n + 2);
	return XS_EXIT_SELF;
}

/* Where traces lie until they are saved; of their own unless the program has chosen it. */
static int find_output(struct xs_options *options)
{
	const char *parent = getenv("TMPDIR");
	char path[PATH_MAX];

	if (options->output_dir[0]) {
		if (!access(options->output_dir, W_OK | X_OK))
			return 0;
		return refuse("%s: %s", options->output_dir, strerror(errno));
	}
	(void)snprintf(path, sizeof(path), "%s/xstrace-XXXXXX",
		       parent && parent[0] == '/' ? parent : "/tmp");
	if (strlen(path) >= sizeof(options->output_dir) || !mkdtemp(path))
		return refuse("%s: %s", path, strerror(errno));
	(void)strcpy(options->output_dir, path);
	return 0;
}

/* What the drain process has to say is said in the trace; with -v on the program's stderr, too. */
static void silence(const struct xs_options *options)
{
	int null = options->verbose ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
}

static int host(int pid, struct xs_options *options, char **all, char **argv)
{
	bool own_output = !options->output_dir[0];
	struct xs_launch launch = { .directory = -1 };
	char library[PATH_MAX], drain[PATH_MAX], variable[XS_ENV_RUN_MAX];
	int error = xs_find_parts(library, drain);

	if (error < 0)
		return refuse("libxstrace.so and xstrace-drain are not beside xstrace-host");
	if (find_output(options))
		return XS_EXIT_SELF;
	error = xs_launch_create(&launch, options, all, argv);
	if (error < 0)
		return refuse("cannot make a run directory in /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR "
			      "or /tmp: %s",
			      strerror(-error));
	launch.control->rank = xs_rank();
	launch.control->app_pid = pid;
	launch.control->hosted_start = xs_pid_start(pid);
	launch.control->owns_output = own_output;
	(void)xs_control_pause(launch.control, XS_PAUSE_LIBRARY, true);
	if (options->session[0] && xs_session_register(&launch) < 0) {
		xs_launch_destroy(&launch);
		return refuse("--session %s: there is such a session already", options->session);
	}
	silence(options);
	error = xs_start_drain(&launch, drain);
	if (error < 0) {
		xs_launch_destroy(&launch);
		return refuse("%s: %s", drain, strerror(-error));
	}
	xs_channel_say(launch.drain, XS_WORD_APP, pid);
	xs_run_variable(variable, launch.dir, launch.control);
	(void)!write(answer, variable, strlen(variable) + 1);
	return 0;
}

int main(int argc, char **argv)
{
	static struct xs_options options;
	char error[512];
	int app, pid;

	if (argc < 5 || strcmp(argv[3], "--") != 0 || (pid = atoi(argv[1])) <= 0) {
		xs_tell("xstrace-host: libxstrace-api starts this program\n");
		return XS_EXIT_SELF;
	}
	answer = atoi(argv[2]);
	(void)fcntl(answer, F_SETFD, FD_CLOEXEC);
	xs_limits_lift();
	if (xs_options_parse(&options, argc - 3, argv + 3, &app, error, sizeof(error)) < 0)
		return refuse("%s", error);
	options.on_demand |= xs_wants_daemon(&options);
	options.follow_children = 0; /* the trace is that of the program that asked for it */
	return host(pid, &options, argv + 3, argv + 3 + app);
}
