/*
 * xstrace-host PID FD -- [options] name: begins a run for a program that contains the library
 * (library/), and leaves. The drain process that it starts watches the program itself.
 *
 * FD gets the run's variable (xs_run_variable()), or a line that says why there is none. Before it
 * stands a '!' where the program has asked for what cannot be, and a '-' where its environment does
 * not let it be. The program is told nothing else, and its terminal nothing at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher.h"
#include "option_values.h"
#include "process.h"
#include "text.h"

static int answer = -1;

static int say(char who, const char *format, va_list args)
{
	char line[1024];
	int n;

	line[0] = who;
	n = vsnprintf(line + 1, sizeof(line) - 1, format, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	(void)!write(answer, line, (size_t)n + 2);
	return XS_EXIT_SELF;
}

/* What the program asks for is wrong. */
static int __attribute__((format(printf, 1, 2))) refuse(const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = say('!', format, args);
	va_end(args);
	return status;
}

/* The program is right: its user, or the machine, does not let it be. */
static int __attribute__((format(printf, 1, 2))) cannot(const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = say('-', format, args);
	va_end(args);
	return status;
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
	if (!parent || parent[0] != '/')
		parent = "/tmp";
	(void)snprintf(path, sizeof(path), "%s/xstrace-XXXXXX", parent);
	if (strlen(path) >= sizeof(options->output_dir) || !mkdtemp(path))
		return cannot("no directory for traces can be made in %s: %s", parent,
			      strerror(errno));
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

/*
 * Options that are commands, that say when to record, which the program does itself, or that the
 * launcher sees to, which is not there. Each option is here or does something here
 * (tests/test_library.py: every_option).
 */
static int refuse_options(const struct xs_options *o)
{
	static const char command[] = "it is a command of its own",
			  when[] = "xstrace_start() and xstrace_stop() say when to record",
			  launch[] = "start the program with xstrace for that";
	const struct {
		bool given;
		const char *option, *why;
	} rows[] = {
		{ o->show_help[0], "help", command },
		{ o->show_version, "version", command },
		{ o->recover[0], "recover", command },
		{ o->pause[0], "pause", command },
		{ o->resume[0], "resume", command },
		{ o->stop[0], "stop", command },
		{ o->dump[0], "dump", command },
		{ o->stacks[0], "stacks", command },
		{ o->attach[0], "attach", command },
		{ o->top[0], "top", command },
		{ o->open[0], "open", command },
		{ o->json, "json", command },
		{ o->device_list, "device-list", command },
		{ o->metric_list, "metric-list", command },
		{ o->doctor, "doctor", command },
		{ o->start_paused, "start-paused", when },
		{ o->delay != 0, "delay", when },
		{ o->duration != 0, "duration", when },
		{ o->iterations[0], "iterations", when },
		{ o->flight != 0, "flight-recorder", launch },
		{ o->kmd_script[0], "chrome-kmd-logging", launch },
		{ o->metric_query, "metric-query", launch },
		{ o->metric_sampling, "metric-sampling", launch },
		{ o->stall_sampling, "stall-sampling", launch },
		{ o->metric_group[0], "group", launch },
		{ o->sampling_interval != 0, "sampling-interval", launch },
		{ o->idle_sampling, "idle-sampling", launch },
		{ o->system_metrics != 0, "system-metrics", launch },
		{ o->cpu_metrics[0], "cpu-metrics", launch },
		{ o->export[0], "export", launch },
		{ o->watchdog != 0, "watchdog", launch },
		{ o->ranks[0], "ranks-to-sample", launch },
		{ o->result_dir[0], "result-dir", "xstrace_config.directory chooses the place" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].given)
			return refuse("--%s is not for a run that the program begins itself: %s",
				      rows[i].option, rows[i].why);
	if (xs_want_reports(o) && !o->output[0])
		return refuse("reports (-h, -d, -s, -t, -c, -r) need --output here: the terminal "
			      "is the program's");
	return 0;
}

/*
 * Reads the files and looks for the devices that options name. What is wrong is said on stderr as
 * in the launcher; here it is the answer.
 */
static int look_up(struct xs_options *options)
{
	int old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), said = memfd_create("", MFD_CLOEXEC);
	char text[512];
	int result = 0;
	ssize_t n;

	if (said >= 0)
		(void)dup2(said, STDERR_FILENO);
	if (xs_report_check(options) < 0 || xs_read_names(options) < 0 ||
	    (options->devices[0] && xs_devices_select(options) < 0)) {
		n = said < 0 ? 0 : pread(said, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		result = refuse("%s", text + (strncmp(text, "xstrace: ", 9) ? 0 : 9));
	}
	if (old >= 0)
		(void)dup2(old, STDERR_FILENO);
	else
		(void)close(STDERR_FILENO);
	return result;
}

/*
 * Where the run's traces are told gets its memory while there is some, for a program and for
 * commands: who fills the run directory is to find his trace, which says how much is lost.
 */
static void reserve_answers(const struct xs_launch *launch)
{
	char name[XS_NAME_MAX];
	void *map;

	(void)xs_shm_present(launch->control, sizeof(*launch->control));
	xs_dump_name(name, 0);
	if (!xs_shm_map_at(launch->directory, name, XS_SHM_CREATE, PATH_MAX, &map, NULL))
		munmap(map, PATH_MAX);
}

static int begin(int pid, struct xs_options *options, bool own_output, char **all, char **argv)
{
	struct xs_launch launch = { .directory = -1 };
	char library[PATH_MAX], drain[PATH_MAX], variable[XS_ENV_RUN_MAX];
	int error = xs_find_parts(library, drain);

	if (error < 0)
		return error == -ESRCH
			       ? cannot("/proc is missing or shows another PID namespace: mount it")
			       : cannot("libxstrace.so and xstrace-drain are not beside "
					"xstrace-host");
	if (find_output(options))
		return XS_EXIT_SELF;
	error = xs_launch_create(&launch, options, all, argv);
	if (error < 0) {
		return cannot("cannot make a run directory in /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR "
			      "or /tmp: %s",
			      strerror(-error));
	}
	launch.control->rank = xs_rank();
	launch.control->app_pid = pid;
	launch.control->hosted_start = xs_pid_start(pid);
	launch.control->owns_output = own_output;
	(void)xs_control_pause(launch.control, XS_PAUSE_LIBRARY, true);
	if (options->session[0] && xs_session_register(&launch) < 0) {
		xs_launch_destroy(&launch);
		return cannot("--session %s: there is such a session already", options->session);
	}
	reserve_answers(&launch);
	silence(options);
	error = xs_start_drain(&launch, drain);
	if (error < 0) {
		xs_launch_destroy(&launch);
		return cannot("%s: %s", drain, strerror(-error));
	}
	xs_channel_say(launch.drain, XS_WORD_APP, pid);
	xs_run_variable(variable, launch.dir, launch.control);
	(void)!write(answer, variable, strlen(variable) + 1);
	return 0;
}

static int host(int pid, struct xs_options *options, char **all, char **argv)
{
	bool own_output = !options->output_dir[0];
	int status = begin(pid, options, own_output, all, argv);

	if (status && own_output && options->output_dir[0])
		(void)rmdir(options->output_dir);
	return status;
}

int main(int argc, char **argv)
{
	static struct xs_options options;
	const char *session = getenv("XSTRACE_SESSION"); /* among the options, too */
	char error[512];
	int app, pid;

	if (argc < 5 || strcmp(argv[3], "--") != 0 || (pid = atoi(argv[1])) <= 0) {
		xs_tell("xstrace-host: libxstrace-api starts this program\n");
		return XS_EXIT_SELF;
	}
	answer = atoi(argv[2]);
	(void)fcntl(answer, F_SETFD, FD_CLOEXEC);
	xs_limits_lift();
	if (session && *session && !xs_is_session(session))
		return cannot("XSTRACE_SESSION: '%s' is not a name of at most 128 letters, digits, "
			      "'_', '-' and '.'",
			      session);
	/* without the name, which must not become the last option's value */
	if (xs_options_parse(&options, argc - 4, argv + 3, &app, error, sizeof(error)) < 0)
		return refuse("%s", error);
	if (app != argc - 4)
		return refuse("'%s' is no option: the program runs already", argv[3 + app]);
	if (refuse_options(&options) || look_up(&options))
		return XS_EXIT_SELF;
	options.on_demand |= xs_wants_daemon(&options);
	options.follow_children = 0; /* the trace is that of the program that asked for it */
	return host(pid, &options, argv + 3, argv + 3 + app);
}
