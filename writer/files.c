/*
 * The files of a process: what they are called. None that exists is ever overwritten: a taken name gets a number.
 *
 *	<comm>.<pid>[.<rank>].json                in the output directory
 *	<output>.<pid>[.<rank>]<suffix>           reports, with -o
 *	[rank_<r>.]<comm>.<pid>/chrome_trace.json and others, in the directory of --result-dir: as unitrace calls them
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"
#include "writer.h"

#define TRIES 10000u

/* In a directory of --result-dir; a report's suffix is that of its format. */
static const char *const names[XS_FILE_COUNT] = {
	"host_timing", "device_timing", "device_submission", "device_timeline", "call_logging", "ccl_summary_report",
	"chrome_trace", "call_stacks",
};

static bool is_report(enum xs_file kind)
{
	return kind < XS_FILE_TRACE;
}

static const char *suffix_of(const struct xs_options *options, enum xs_file kind)
{
	static const char *const formats[] = { ".txt", ".json", ".csv" };

	if (kind == XS_FILE_FOLDED)
		return ".folded";
	if (is_report(kind))
		return formats[options->report_format];
	return options->compress ? ".json.zst" : ".json";
}

/* "", or "-2", … */
static const char *number_of(unsigned n, char *text, size_t size)
{
	text[0] = '\0';
	if (n > 1)
		(void)snprintf(text, size, "-%u", n);
	return text;
}

/* The output directory as an absolute path. */
static int output_directory(const struct xs_options *options, char *path, size_t size)
{
	const char *dir = options->output_dir;
	size_t n;

	if (dir[0] == '/')
		return snprintf(path, size, "%s", dir) < (int)size ? 0 : -ENAMETOOLONG;
	if (!getcwd(path, size))
		return -errno;
	n = strlen(path);
	if (dir[0] && snprintf(path + n, size - n, "/%s", dir) >= (int)(size - n))
		return -ENAMETOOLONG;
	return 0;
}

/* The process's own name for files. */
static void put_comm(const struct xs_process *process, char comm[sizeof(process->comm)])
{
	*xs_plain_file(comm, process->comm, strlen(process->comm)) = '\0';
}

/* --result-dir: makes the process's directory, unless that was done, by a killed drain process too. */
static int make_directory(struct xs_process *process)
{
	char path[PATH_MAX], parent[PATH_MAX], comm[sizeof(process->comm)], rank[24] = "", number[16];
	const char *known = process->run->recovering ? process->file->output : "";
	int error = output_directory(process->run->options, parent, sizeof(parent));

	if (process->directory)
		return 0;
	if (error < 0)
		return error;
	if (known[0] == '/' && memchr(known, '\0', PATH_MAX)) {
		process->directory = strndup(known, (size_t)(strrchr(known, '/') - known));
		return process->directory ? 0 : -ENOMEM;
	}
	put_comm(process, comm);
	if (xs_process_rank(process) >= 0)
		(void)snprintf(rank, sizeof(rank), "rank_%d.", xs_process_rank(process));
	for (unsigned n = 1; n < TRIES; n++) {
		if (snprintf(path, sizeof(path), "%s/%s%s.%d%s", parent, rank, comm, process->pid, number_of(n, number, sizeof(number))) >=
		    (int)sizeof(path))
			return -ENAMETOOLONG;
		if (!mkdir(path, 0777)) {
			process->directory = strdup(path);
			return process->directory ? 0 : -ENOMEM;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* "", or ".<rank>" */
static const char *rank_of(const struct xs_process *process, char *text, size_t size)
{
	text[0] = '\0';
	if (xs_process_rank(process) >= 0)
		(void)snprintf(text, size, ".%d", xs_process_rank(process));
	return text;
}

/* "rep.txt" becomes "rep.<pid>[.<rank>].txt", "rep" "rep.<pid>". */
static int put_report_name(const struct xs_process *process, const char *number, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	const char *slash = strrchr(options->output, '/');
	const char *dot = strrchr(slash ? slash : options->output, '.');
	int stem = dot ? (int)(dot - options->output) : (int)strlen(options->output);
	char rank[16];

	return snprintf(path, size, "%s%s%.*s.%d%s%s%s", options->output_dir, options->output_dir[0] ? "/" : "", stem, options->output,
			process->pid, rank_of(process, rank, sizeof(rank)), number, dot ? dot : "");
}

int xs_file_create(struct xs_process *process, enum xs_file kind, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	const char *suffix = suffix_of(options, kind);
	char comm[sizeof(process->comm)], dir[PATH_MAX];
	int error = options->result_dir[0] ? make_directory(process) : output_directory(options, dir, sizeof(dir));

	(void)snprintf(path, size, "%s", options->output_dir); /* for who tells the error */
	if (error < 0)
		return error;
	put_comm(process, comm);
	for (unsigned n = 1; n < TRIES; n++) {
		char number[16], rank[16];
		int fd, length;

		(void)number_of(n, number, sizeof(number));
		if (options->result_dir[0])
			length = snprintf(path, size, "%s/%s%s%s", process->directory, names[kind], number, suffix);
		else if (is_report(kind))
			length = put_report_name(process, number, path, size);
		else
			length = snprintf(path, size, "%s/%s.%d%s%s%s", dir, comm, process->pid, rank_of(process, rank, sizeof(rank)),
					  number, suffix);
		if (length >= (int)size)
			return -ENAMETOOLONG;
		/* before it exists: whoever recovers the run must know each file that we began */
		if (kind == XS_FILE_TRACE && !process->run->flight)
			memcpy(process->file->output, path, strlen(path) + 1);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 && !xs_run_can_spare(process->run, fd)) {
			close(fd);
			(void)unlink(path);
			return -EMFILE;
		}
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}
