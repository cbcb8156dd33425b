/*
 * xstrace --dump NAME: from another shell, makes a session's flight recorder write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "text.h"

int xs_print_trace(char *path)
{
	bool gone = access(path, F_OK) && errno == ENOENT;

	*xs_plain(path, path, strlen(path)) = '\0';
	if (gone)
		xs_tell("xstrace: %s is gone: it was removed or moved\n", path);
	else
		printf("[INFO] Timeline is stored in %s\n", path);
	return gone ? XS_EXIT_SELF : 0;
}

static int tell_no_room(const struct xs_launch *launch, const char *session)
{
	xs_tell("xstrace: --dump %s: no trace could be written in %s; xstrace has said why where "
		"it "
		"runs\n",
		session,
		launch->control->options.output_dir[0] ? launch->control->options.output_dir
						       : "its working directory");
	return XS_EXIT_SELF;
}

static int tell_no_list(const struct xs_launch *launch, const char *session)
{
	if (xs_session_ends(launch))
		xs_tell("xstrace: --dump %s: the session has just ended\n", session);
	else
		xs_tell("xstrace: --dump %s: the run directory %s has no room for the traces' "
			"names\n",
			session, launch->dir);
	return XS_EXIT_SELF;
}

/*
 * The traces of the dump that served request `number`, one a line; later dumps leave it alone for a
 * while.
 */
static int tell_files(const struct xs_launch *launch, const char *session, uint32_t number)
{
	int directory = xs_shm_open_directory(launch->dir), fd, status = 0;
	char name[XS_NAME_MAX], *path = NULL;
	size_t room = 0, count = 0;
	FILE *list;

	xs_dump_name(name, number);
	fd = directory < 0 ? -1 : xs_shm_open(directory, name, XS_SHM_READ);
	list = fd < 0 ? NULL : fdopen(fd, "r");
	for (; list && getdelim(&path, &room, '\0', list) > 0; count++)
		status |= strcmp(path, XS_DUMP_UNWRITTEN) ? xs_print_trace(path)
							  : tell_no_room(launch, session);
	if (!list)
		status = tell_no_list(launch, session);
	else if (!count)
		printf("[INFO] No process has recorded anything\n");
	free(path);
	if (list)
		(void)fclose(list);
	if (directory >= 0)
		close(directory);
	return status;
}

static int dump(const struct xs_launch *launch, const char *name)
{
	struct xs_control *control = launch->control;
	uint32_t number;

	if (!control->options.flight) {
		xs_tell("xstrace: --dump %s: that session has no --flight-recorder\n", name);
		return XS_EXIT_SELF;
	}
	number = xs_control_dump(control, launch->mailbox, XS_DUMP_SESSION);
	if (!xs_session_await(launch, name, "--dump", &control->dumped, number))
		return XS_EXIT_SELF;
	return tell_files(launch, name,
			  atomic_load_explicit(&control->dumped, memory_order_relaxed));
}

int xs_dump(const struct xs_options *options)
{
	return xs_session_each(options->dump, dump);
}
