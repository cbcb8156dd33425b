/*
 * xstrace --stacks NAME: from another shell, prints where the threads of a session are.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

#define LINE_MAX_BYTES 4096

/* What the drain process has written for request `number`: text of programs' making. */
static bool print(const struct xs_launch *launch, uint32_t number)
{
	int directory = xs_shm_open_directory(launch->dir), fd;
	char line[LINE_MAX_BYTES];
	char name[XS_NAME_MAX];
	FILE *file;

	xs_stacks_name(name, number);
	fd = directory < 0 ? -1 : xs_shm_open(directory, name, XS_SHM_READ);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	while (file && fgets(line, sizeof(line), file)) {
		size_t n = strcspn(line, "\n");

		*xs_plain(line, line, n) = '\0';
		puts(line);
	}
	if (file)
		(void)fclose(file);
	if (directory >= 0)
		close(directory);
	return file;
}

static int show(const struct xs_launch *launch, const char *session)
{
	struct xs_control *control = launch->control;
	/* pairs with the acquire of the drain process */
	uint32_t number =
		atomic_fetch_add_explicit(&control->stacks_asked, 1, memory_order_release) + 1;

	xs_doorbell_ring(&launch->mailbox->bell);
	if (!xs_session_await(launch, session, "--stacks", &control->stacks_served, number))
		return XS_EXIT_SELF;
	if (print(launch, atomic_load_explicit(&control->stacks_served, memory_order_relaxed)))
		return 0;
	if (xs_session_ends(launch))
		xs_tell("xstrace: --stacks %s: the session has just ended\n", session);
	else
		xs_tell("xstrace: --stacks %s: the run directory %s has no room for the answer\n",
			session, launch->dir);
	return XS_EXIT_SELF;
}

int xs_session_stacks(const struct xs_options *options)
{
	return xs_session_each(options->stacks, show);
}
