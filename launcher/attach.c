/*
 * --attach: becomes xstrace-attach, which samples a program that runs without xstrace. It has a run
 * of its own, so its results and its session are those of any run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "launcher.h"
#include "text.h"

/* The run goes; so does a directory that was made for its results. */
static int undo(struct xs_launch *launch, const struct xs_options *options, bool made)
{
	xs_launch_destroy(launch);
	if (made)
		(void)rmdir(options->output_dir);
	return XS_EXIT_SELF;
}

int xs_attach(const struct xs_options *options, char **all, char **end)
{
	struct xs_launch launch = { .directory = -1 };
	char path[PATH_MAX], *argv[] = { "xstrace-attach", launch.dir, NULL };
	bool made = false;
	int error;

	if (xs_find_program(XS_PART_ATTACH, path) < 0) {
		xs_tell("xstrace: --attach: this xstrace was built without libunwind, or "
			"xstrace-attach is not in ../lib/xstrace beside this program\n");
		return XS_EXIT_SELF;
	}
	if (xs_output_check(options, &made) < 0)
		return XS_EXIT_SELF;
	error = xs_launch_create(&launch, options, all, end);
	if (error < 0) {
		xs_tell("xstrace: cannot make a run directory: %s\n", strerror(-error));
		return undo(&launch, options, made);
	}
	if (options->session[0] && xs_session_register(&launch) < 0)
		return undo(&launch, options, made);
	launch.control->owns_output = made;
	launch.control->consumer.pid = getpid();
	(void)dup2(launch.directory, XS_DRAIN_DIRECTORY);
	(void)close(XS_DRAIN_CONTROL); /* the user's, if there is one */
	execv(path, argv);
	xs_tell("xstrace: %s: %s\n", path, strerror(errno));
	return undo(&launch, options, made);
}
