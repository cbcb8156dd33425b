/*
 * xstrace --open TRACE: the Python package shows it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

int xs_open(const struct xs_options *options)
{
	char path[PATH_MAX];
	char *argv[] = { "xstrace-open", "--", (char *)options->open, NULL };

	if (!xs_find_program(XS_PART_OPEN, path))
		(void)execv(path, argv);
	(void)execvp(argv[0], argv);
	xs_tell("xstrace: --open %s: no xstrace-open (%s), which needs Python 3.11 or later: it "
		"comes "
		"with xstrace's scripts or its wheel\n",
		options->open, strerror(errno));
	return XS_EXIT_SELF;
}
