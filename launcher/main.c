/*
 * xstrace [options] app args…: starts the drain process and the application, and ends as the application does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"
#include "paths.h"
#include "program.h"
#include "text.h"
#include "version.h"

static int find_parts(char *library, char *drain)
{
	if (!xs_find_parts(library, drain))
		return 0;
	xs_tell("xstrace: libxstrace.so and xstrace-drain are not where they belong, in ../lib/xstrace beside this program\n");
	return -1;
}

/* The drain process's program knows how: this one becomes it. */
static int recover(const char *dir)
{
	char library[PATH_MAX], drain[PATH_MAX];

	if (find_parts(library, drain) < 0)
		return XS_EXIT_SELF;
	execl(drain, "xstrace-drain", "--recover", dir, (char *)NULL);
	xs_tell("xstrace: %s: %s\n", drain, strerror(errno));
	return XS_EXIT_SELF;
}

static int make_output(const struct xs_options *options, bool *ret_made)
{
	char inside[XS_PATH_MAX + 2];

	(void)snprintf(inside, sizeof(inside), "%s/.", options->output_dir);
	if (!options->output_dir[0])
		return 0;
	*ret_made = !mkdir(options->output_dir, 0777);
	if (*ret_made || (errno == EEXIST && !access(inside, F_OK)))
		return 0;
	xs_tell("xstrace: --%s %s: %s\n", options->result_dir[0] ? "result-dir" : "output-dir-path", options->output_dir, strerror(errno));
	return -errno;
}

/* Checked before the application starts: a run whose results cannot be written must not start. */
static int check_output(const struct xs_options *options, bool *ret_made)
{
	char dir[PATH_MAX], report[PATH_MAX];

	if (make_output(options, ret_made) < 0)
		return -1;
	(void)xs_path_from_root(options->output_dir, dir, sizeof(dir));
	if ((xs_want_chrome(options) || options->result_dir[0]) && access(dir, W_OK | X_OK) < 0) {
		xs_tell("xstrace: cannot write in %s: %s; --%s chooses another directory\n", dir, strerror(errno),
			options->result_dir[0] ? "result-dir" : "output-dir-path");
		return -1;
	}
	if (!options->output[0])
		return 0;
	(void)xs_path_from_root(options->output, report, sizeof(report)); /* where it says, whatever --output-dir-path is */
	(void)snprintf(dir, sizeof(dir), "%.*s", strrchr(report, '/') > report ? (int)(strrchr(report, '/') - report) : 1, report);
	if (access(dir, W_OK | X_OK) == 0)
		return 0;
	xs_tell("xstrace: --output %s: %s: %s\n", options->output, dir, strerror(errno));
	return -1;
}

static bool starts_ranks(const char *path)
{
	static const char *const launchers[] = { "mpiexec", "mpirun", "srun", "prun", "prterun", "orterun", "aprun", "jsrun", "palsrun" };
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
	return options->chrome_mpi || (options->host_timing && (xs_rank() >= 0 || starts_ranks(program)));
}

/* Each rank is to be traced by itself, wherever it runs: xstrace belongs behind the launcher of the job. */
static void warn_launcher(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	xs_tell("xstrace: %s starts other programs, perhaps on other machines, where they are not traced; give it xstrace to start: "
			"%s -n N xstrace [options] application\n",
		name, name);
}

static __attribute__((noinline)) int run_traced(const struct xs_options *options, char **all, char **argv, const char *path)
{
	char library[PATH_MAX], drain[PATH_MAX];
	struct xs_launch launch = { .dir = "" };
	struct xs_result result = { .directory = "" };
	const char *why_not, *judged;
	bool made = false, mpi;
	char **environment;
	int error, status;

	if (find_parts(library, drain) < 0 || xs_plain_library(library) < 0)
		return XS_EXIT_SELF;
	if (check_output(options, &made) < 0)
		return XS_EXIT_SELF;
	error = xs_launch_create(&launch, options, all, argv);
	if (error < 0) {
		xs_tell("xstrace: cannot make a run directory in /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR, /tmp or the output "
				"directory: %s\n",
			strerror(-error));
		return XS_EXIT_SELF;
	}
	launch.control->rank = xs_rank();
	if (options->session[0] && xs_session_register(&launch) < 0) {
		xs_launch_destroy(&launch);
		if (made)
			(void)rmdir(options->output_dir);
		return XS_EXIT_SELF;
	}
	why_not = xs_program_why_not(xs_program_kind(path, argv, &judged));
	if (why_not)
		xs_tell("xstrace: %s %s: it runs, but cannot be traced\n", judged, why_not);
	mpi = want_mpi(options, argv[0]);
	if (mpi && starts_ranks(argv[0]))
		warn_launcher(argv[0]);
	launch.control->app_not_traced = why_not != NULL;
	if (options->result_dir[0]) {
		error = xs_result_create(&result, &launch, all, argv);
		if (error < 0) {
			xs_tell("xstrace: cannot write in %s: %s; --result-dir chooses another directory\n", options->result_dir,
				strerror(-error));
			xs_launch_destroy(&launch);
			xs_result_remove(&result);
			if (made)
				(void)rmdir(options->output_dir);
			return XS_EXIT_SELF;
		}
	}
	environment = xs_environment(&launch, library, mpi);
	status = environment ? xs_run_application(&launch, drain, path, argv, environment) : -ENOMEM;
	if (status < 0) {
		xs_launch_destroy(&launch); /* if the drain process could not do that */
		xs_result_remove(&result);
		if (made)
			(void)rmdir(options->output_dir);
		xs_tell("xstrace: %s: %s\n", path, strerror(-status));
		return status == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
	}
	xs_end_like(status);
}

/* Needs little stack until it is known that there is more. */
static int run(const struct xs_options *options, char **all, char **argv)
{
	static char path[PATH_MAX];
	const char *scarce = xs_limits_scarce();
	int error = xs_program_find(argv[0], path, sizeof(path));

	if (error < 0) {
		xs_tell("xstrace: %s: %s\n", argv[0], error == -ENOENT ? "not found" : strerror(-error));
		return error == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
	}
	if (!scarce && (!options->ranks[0] || xs_rank_wanted(options)))
		return run_traced(options, all, argv, path);
	error = scarce ? xs_exec_untraced(scarce, path, argv) : xs_exec_application(path, argv);
	xs_tell("xstrace: %s: %s\n", path, strerror(-error));
	return error == -ENOENT ? XS_EXIT_NOT_FOUND : XS_EXIT_NOT_RUNNABLE;
}

int main(int argc, char **argv)
{
	static struct xs_options options;
	char error[512];
	int app;

	xs_limits_lift();
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
		xs_tell("xstrace: --demangle: this xstrace was built without the C++ runtime's static library\n");
		return XS_EXIT_SELF;
	}
#endif
	if (options.show_help) {
		xs_options_help(stdout);
		return 0;
	}
	if (options.show_version) {
		puts("xstrace " XS_VERSION);
		return 0;
	}
	if (options.recover[0]) {
		if (app < argc) {
			xs_tell("xstrace: --recover takes no application (%s)\n", argv[app]);
			return XS_EXIT_SELF;
		}
		return recover(options.recover);
	}
	if (options.pause[0] || options.resume[0] || options.stop[0]) {
		if (app < argc) {
			xs_tell("xstrace: --pause, --resume and --stop take no application (%s)\n", argv[app]);
			return XS_EXIT_SELF;
		}
		return xs_session_command(&options);
	}
	if (options.dump[0]) {
		if (app < argc) {
			xs_tell("xstrace: --dump takes no application (%s)\n", argv[app]);
			return XS_EXIT_SELF;
		}
		return xs_dump(options.dump);
	}
	if (options.device_list || options.metric_list) {
		if (app < argc) {
			xs_tell("xstrace: --device-list and --metric-list take no application (%s)\n", argv[app]);
			return XS_EXIT_SELF;
		}
		return xs_devices_print(options.device_list && options.metric_list ? "all" : options.device_list ? "list" : "metrics");
	}
	if (app == argc) {
		xs_tell("xstrace: no application given; xstrace [options] app args…, see xstrace --help\n");
		return XS_EXIT_SELF;
	}
	if (xs_read_kernels(&options) < 0 || (options.devices[0] && xs_devices_select(&options) < 0))
		return XS_EXIT_SELF;
	xs_tell_missing(&options);
	return run(&options, argv, argv + app);
}
