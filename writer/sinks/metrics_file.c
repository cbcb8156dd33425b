/*
 * Files of what devices were sampled.
 */
#include "metrics_file.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "stored.h"
#include "text.h"

int xs_metrics_open(struct xs_process *process, uint32_t device, struct xs_output *out, char *path)
{
	const struct xs_options *options = process->run->options;
	int fd = STDERR_FILENO, error;

	path[0] = '\0';
	if (options->output[0] || options->result_dir[0])
		fd = xs_file_create_metrics(process, device, path, PATH_MAX);
	if (fd < 0) {
		xs_tell("xstrace: cannot write %s: %s; the samples follow here\n", path,
			strerror(-fd));
		path[0] = '\0';
		fd = STDERR_FILENO;
	}
	error = xs_output_init(out, fd, 0, XS_COMPRESS_NONE);
	out->borrowed = fd == STDERR_FILENO;
	return error;
}

void xs_metrics_close(struct xs_output *out, const char *path)
{
	int error = xs_output_close(out, "", 0);

	if (error < 0)
		xs_tell("xstrace: cannot write all metrics%s%s: %s\n", path[0] ? " to " : "", path,
			strerror(-error));
	if (path[0])
		xs_tell_output("Device metrics are", path, out, error);
}
