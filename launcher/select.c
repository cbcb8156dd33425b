/*
 * What is to be traced, as far as that is known before the application starts: its rank, and the
 * names of kernels.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include "kernel_filter.h"
#include "launcher.h"
#include "rank.h"
#include "text.h"

int32_t xs_rank(void)
{
	int32_t rank, size;

	return xs_job_rank(environ, &rank, &size) ? rank : -1;
}

bool xs_rank_wanted(const struct xs_options *options)
{
	int32_t rank = xs_rank();

	if (rank >= 0)
		return xs_is_listed(options->ranks, (uint64_t)rank);
	/* it may start ranks: each process looks for itself (collector.c) */
	xs_tell("xstrace: --ranks-to-sample %s: no rank in the environment (" XS_RANK_VARIABLES
		"); processes without a rank are traced\n",
		options->ranks);
	return true;
}

/*
 * Adds the file's text to `names`; a file of which something does not fit is an error, not a
 * shorter list.
 */
static int read_file(const char *option, const char *path, char *names)
{
	size_t used = strlen(names), n;
	FILE *file;

	if (used)
		names[used++] = '\n';
	file = fopen(path, "re");
	errno = file ? 0 : errno;
	n = file ? fread(names + used, 1, XS_NAMES_MAX - used, file) : 0;
	if (!file || ferror(file)) {
		xs_tell("xstrace: --%s-file %s: %s\n", option, path, strerror(errno));
		n = SIZE_MAX;
	} else if (n == XS_NAMES_MAX - used) {
		xs_tell("xstrace: --%s-file %s: more than %u bytes of names\n", option, path,
			XS_NAMES_MAX - 1);
		n = SIZE_MAX;
	} else if (memchr(names + used, '\0', n)) {
		xs_tell("xstrace: --%s-file %s: not a text file\n", option, path);
		n = SIZE_MAX;
	}
	if (file)
		fclose(file);
	if (n == SIZE_MAX)
		return -1;
	names[used + n] = '\0';
	return 0;
}

/* `paths`: each with its NUL, an empty one behind the last. */
static int read_list(const char *option, const char *what, const char *paths, char *names)
{
	const char *file = paths[0] ? "-file" : "";
	bool given = names[0] || paths[0];

	for (; *paths; paths += strlen(paths) + 1)
		if (read_file(option, paths, names) < 0)
			return -1;
	xs_names_split(names);
	if (given && !names[0]) {
		xs_tell("xstrace: --%s%s names no %s\n", option, file, what);
		return -1;
	}
	return 0;
}

int xs_read_names(struct xs_options *options)
{
	if (read_list("include-kernels", "kernel", options->include_kernels_files,
		      options->include_kernels) < 0 ||
	    read_list("exclude-kernels", "kernel", options->exclude_kernels_files,
		      options->exclude_kernels) < 0)
		return -1;
	return read_list("exclude-calls", "function", "", options->exclude_calls);
}

/* ---- options that are accepted and change nothing ---- */

void xs_tell_missing(const struct xs_options *options)
{
	if (options->system_time)
		xs_tell("xstrace: --system-time: traces count from the epoch, the time since the "
			"machine's start is not shown\n");
}
