/*
 * xstrace [options] app args…: starts the drain process and the application, and ends as the
 * application does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "launcher.h"
#include "program.h"
#include "streams.h"
#include "text.h"
#include "version.h"

static int find_parts(char *library, char *drain)
{
	int error = xs_find_parts(library, drain);

	if (!error)
		return 0;
	if (error == -ESRCH)
		xs_tell("xstrace: /proc is missing or shows another PID namespace: mount it here "
			"(mount -t proc proc /proc; unshare: --mount-proc)\n");
	else
		xs_tell("xstrace: libxstrace.so and xstrace-drain are not where they belong, in "
			"../lib/xstrace beside this program\n");
	return -1;
}

/*
 * Where memory is limited (ulimit -d) the kernel may end a program by a signal before it has begun,
 * and nobody says why. So it is begun once without anything to do.
 */
static bool can_begin(const char *program)
{
	int status = 0, null;
	pid_t pid;

	xs_limits_lift();
	pid = fork();
	if (!pid) {
		null = open("/dev/null", O_WRONLY);
		(void)dup2(null, STDERR_FILENO);
		execl(program, program, (char *)NULL);
		_exit(XS_EXIT_SELF);
	}
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return !WIFSIGNALED(status);
}

/* The drain process's program knows how: this one becomes it. */
static int recover(const struct xs_options *options)
{
	char library[PATH_MAX], drain[PATH_MAX];

	if (find_parts(library, drain) < 0)
		return XS_EXIT_SELF;
	if (!can_begin(drain)) {
		xs_tell("xstrace: --recover %s: the kernel does not begin %s, for want of memory "
			"(ulimit -d)\n",
			options->recover, drain);
		return XS_EXIT_SELF;
	}
	execl(drain, "xstrace-drain", "--recover", options->recover, (char *)NULL);
	xs_tell("xstrace: %s: %s\n", drain, strerror(errno));
	return XS_EXIT_SELF;
}

static bool starts_ranks(const char *path)
{
	static const char *const launchers[] = { "mpiexec", "mpirun", "srun",  "prun",	 "prterun",
						 "orterun", "aprun",  "jsrun", "palsrun" };
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		size_t n = strlen(launchers[i]);

		if (!strncmp(name, launchers[i], n) && (!name[n] || name[n] == '.'))
			return true;
	}
	return false;
}

/* Is MPI to be traced? The table of API calls holds it where it costs others nothing: in ranks. */
static bool want_mpi(const struct xs_options *options, const char *program)
{
	return options->chrome_mpi ||
	       (options->host_timing && (xs_rank() >= 0 || starts_ranks(program)));
}

/*
 * Each rank is to be traced by itself, wherever it runs: xstrace belongs behind the launcher of the
 * job.
 */
static void warn_launcher(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	xs_tell("xstrace: %s starts other programs, perhaps on other machines, where they are not "
		"traced; give it xstrace to start: "
		"%s -n N xstrace [options] application\n",
		name, name);
}

/*
 * What a run has made before its application was started; nothing of it stays when that cannot be.
 */
struct made {
	const struct xs_options *options;
	struct xs_launch launch;
	struct xs_result result;
	bool directory; /* --output-dir-path's */
};

static int unmake(struct made *made)
{
	xs_launch_destroy(&made->launch);
	xs_result_remove(&made->result);
	if (made->directory)
		(void)rmdir(made->options->output_dir);
	return XS_EXIT_SELF;
}

/*
 * All that is needed before the application's start. 0, or -1 after one line that says what is
 * wrong.
 */
static int make(struct made *made, char **all, char **argv)
{
	const struct xs_options *options = made->options;
	int error = xs_launch_create(&made->launch, options, all, argv);

	if (error < 0) {
		xs_tell("xstrace: cannot make a run directory in /dev/shm, $XDG_RUNTIME_DIR, "
			"$TMPDIR, /tmp or the output "
			"directory: %s\n",
			strerror(-error));
		return -1;
	}
	made->launch.control->rank = xs_rank();
	if (options->session[0] && xs_session_register(&made->launch) < 0)
		return -1;
	error = options->result_dir[0] ? xs_result_create(&made->result, &made->launch, all, argv)
				       : 0;
	if (error < 0)
		xs_tell("xstrace: cannot write in %s: %s; --result-dir chooses another directory\n",
			options->result_dir, strerror(-error));
	return error < 0 ? -1 : 0;
}

static __attribute__((noinline)) int run_traced(const struct xs_options *options, char **all,
						char **argv, const char *path)
{
	struct made made = { .options = options, .launch = { .directory = -1 } };
	char library[PATH_MAX], drain[PATH_MAX], **environment;
	const char *why_not, *judged;
	enum xs_program kind;
	int status;
	bool mpi;

	if (find_parts(library, drain) < 0 || xs_check_library(library) < 0 ||
	    xs_plain_library(library) < 0)
		return XS_EXIT_SELF;
	/* the devices last: what is said of them may be that the application runs */
	if (xs_output_check(options, &made.directory) < 0 || xs_devices_check(options) < 0)
		return unmake(&made);
	xs_hold_signals();
	if (make(&made, all, argv) < 0)
		return unmake(&made);
	kind = xs_program_kind(path, argv, &judged);
	why_not = xs_program_why_not(kind);
	if (why_not)
		xs_tell("xstrace: %s %s: it runs, but %s be traced\n", judged, why_not,
			kind == XS_PROGRAM_OTHER_CLASS ? "neither it nor what it starts can"
						       : "cannot");
	made.launch.control->app_not_traced = why_not != NULL;
	mpi = want_mpi(options, argv[0]);
	if (mpi && starts_ranks(argv[0]))
		warn_launcher(argv[0]);
	/* its loader would say a line of its own for each library of ours */
	environment = kind == XS_PROGRAM_OTHER_CLASS ? environ
						     : xs_environment(&made.launch, library, mpi);
	status = environment ? xs_run_application(&made.launch, drain, path, all, argv, environment)
			     : -ENOMEM;
	if (status >= 0)
		xs_end_like(status);
	(void)unmake(&made); /* if the drain process could not do that */
	xs_tell("xstrace: %s: %s\n", path, strerror(-status));
	return status == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
}

/* Needs little stack until it is known that there is more. */
static int run(const struct xs_options *options, char **all, char **argv)
{
	static char path[PATH_MAX];
	const char *scarce = xs_limits_scarce();
	int error = xs_program_find(argv[0], path, sizeof(path));

	if (error < 0) {
		xs_tell("xstrace: %s: %s\n", argv[0],
			error == -ENOENT ? "not found" : strerror(-error));
		return error == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
	}
	if (!scarce && (!options->ranks[0] || xs_rank_wanted(options)))
		return run_traced(options, all, argv, path);
	error = scarce ? xs_exec_untraced(scarce, path, argv) : xs_exec_application(path, argv);
	xs_tell("xstrace: %s: %s\n", path, strerror(-error));
	return error == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
}

/* ---- what xstrace does in place of running an application ---- */

typedef int command_t(const struct xs_options *options);

static int print_help(const struct xs_options *options)
{
	const char *meant = xs_options_help(stdout, options->show_help);

	if (meant)
		xs_tell("xstrace: --help: no topic or option '%s'; try xstrace --help %s\n",
			options->show_help, meant);
	return meant ? XS_EXIT_SELF : 0;
}

static int print_version(const struct xs_options *options)
{
	(void)options;
	puts("xstrace " XS_VERSION);
	return 0;
}

static int print_devices(const struct xs_options *options)
{
	return xs_devices_print(options->device_list && options->metric_list ? "all"
				: options->device_list			     ? "list"
									     : "metrics");
}

static char **words, **application; /* all of them, the application's; the last is NULL */

static int run_doctor(const struct xs_options *options)
{
	return xs_doctor(options, application);
}

static int run_attach(const struct xs_options *options)
{
	return xs_attach(options, words, application);
}

/* The field of an option that was given does not begin with a zero byte, be it text or a flag. */
#define COMMAND(option, field, run) { "--" option, offsetof(struct xs_options, field), run }

static const struct command {
	const char *option;
	size_t field;
	command_t *run;
} commands[] = {
	COMMAND("help", show_help, print_help),
	COMMAND("version", show_version, print_version),
	COMMAND("recover", recover, recover),
	COMMAND("pause", pause, xs_session_pause),
	COMMAND("resume", resume, xs_session_resume),
	COMMAND("stop", stop, xs_session_stop),
	COMMAND("dump", dump, xs_dump),
	COMMAND("stacks", stacks, xs_session_stacks),
	COMMAND("top", top, xs_top),
	COMMAND("open", open, xs_open),
	COMMAND("device-list", device_list, print_devices),
	COMMAND("metric-list", metric_list, print_devices),
	COMMAND("doctor", doctor, run_doctor),
	COMMAND("attach", attach, run_attach),
};

/*
 * Help and version come before all else. Of the others one is done, and none but --doctor takes an
 * application (`app`, NULL: none given). *ret is NULL where there is no command. 0, or -1 after one
 * line that says what is wrong.
 */
static int find_command(const struct xs_options *options, const char *app, command_t **ret)
{
	const struct command *found = NULL;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];

		if (!((const char *)options)[command->field])
			continue;
		if (found && found->run != command->run) {
			xs_tell("xstrace: give one of %s and %s: each is a command of its own\n",
				found->option, command->option);
			return -1;
		}
		found = command;
		if (found->run == print_help || found->run == print_version)
			break;
	}
	if (found && app && found->run != print_help && found->run != print_version &&
	    found->run != run_doctor) {
		xs_tell("xstrace: %s takes no application (%s)\n", found->option, app);
		return -1;
	}
	if (options->json && (!found || found->run == print_devices)) {
		xs_tell("xstrace: --json is about --doctor\n");
		return -1;
	}
	*ret = found ? found->run : NULL;
	return 0;
}

/* What is closed leads nowhere: so no file of a command's gets that descriptor, and what is said.
 */
static void open_streams(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		(void)close(fd);
}

/* "--top NAME" is "--top=NAME": there is no application that it could be. */
static void join_name(int *argc, char **argv)
{
	char *joined;

	for (int i = 1; i + 1 < *argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--top") != 0 || argv[i + 1][0] == '-')
			continue;
		if (asprintf(&joined, "--top=%s", argv[i + 1]) < 0)
			return;
		argv[i] = joined;
		memmove(&argv[i + 1], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof(*argv));
		--*argc;
		return;
	}
}

int main(int argc, char **argv)
{
	static struct xs_options options;
	command_t *command;
	char error[512];
	int app, result;

	xs_launcher_began = xs_clock_ns(CLOCK_MONOTONIC);
	xs_limits_lift();
	join_name(&argc, argv);
	if (xs_options_parse(&options, argc, argv, &app, error, sizeof(error)) < 0) {
		xs_tell("xstrace: %s\n", error);
		return XS_EXIT_SELF;
	}
#ifndef XS_HAVE_ZSTD
	if (options.compress == XS_COMPRESS_ZSTD) {
		xs_tell("xstrace: --compress zstd: this xstrace was built without libzstd\n");
		return XS_EXIT_SELF;
	}
#endif
#ifndef XS_HAVE_DEMANGLE
	if (options.demangle) {
		xs_tell("xstrace: --demangle: this xstrace was built without the C++ runtime's "
			"static library\n");
		return XS_EXIT_SELF;
	}
#endif
	words = argv;
	application = argv + app;
	options.on_demand |= options.format && options.format != XS_FORMAT_PERFETTO &&
			     xs_wants_daemon(&options);
	if (find_command(&options, app < argc ? argv[app] : NULL, &command) < 0)
		return XS_EXIT_SELF;
	/* "--help output", as well as "--help=output" */
	if (command == print_help && app < argc && !strcmp(options.show_help, "all"))
		(void)snprintf(options.show_help, sizeof(options.show_help), "%s", argv[app]);
	if (command) {
		open_streams();
		xs_stdout_waits();
		result = command(&options);
		return xs_printed("xstrace") || result ? result : XS_EXIT_SELF;
	}
	if (app == argc && options.export[0])
		return xs_export(&options);
	if (app == argc) {
		xs_tell("xstrace: no application given; xstrace [options] app args…, see xstrace "
			"--help\n");
		return XS_EXIT_SELF;
	}
	if (xs_read_names(&options) < 0 ||
	    (options.devices[0] && xs_devices_select(&options) < 0) ||
	    xs_counters_select(&options) < 0)
		return XS_EXIT_SELF;
	xs_tell_missing(&options);
	return run(&options, argv, argv + app);
}
