/*
 * The files of a process: what they are called. None that exists is ever overwritten: a taken name
 *gets a number.
 *
 *	<comm>.<pid>[.<rank>].json                in the output directory (.pftrace: Perfetto's)
 *	<output>.<pid>[.<rank>]<suffix>           reports, with -o; never in the output directory
 *	<output>.metrics.<pid>[.<rank>]<suffix>   hardware metrics, with -o
 *	[rank_<r>.]<comm>.<pid>/chrome_trace.json and others, in the directory of --result-dir: as
 *unitrace calls them
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "below.h"
#include "files.h"
#include "hash.h"
#include "kept.h"
#include "paths.h"
#include "stored.h"
#include "text.h"

#define TRIES 10000u

/*
 * Which number the newest name of its kind got. A process that calls exec a thousand times has a
 * thousand names that are taken, and so have programs that are each the first process of a PID
 * namespace: each begins where the one before ended, or all would be tried. Images may take turns,
 * so neither may have the other's place.
 */
#define NUMBERED 256u
#define WAYS	 4u /* a divisor of it: places that a name may have */
static struct numbered {
	char comm[16];
	int32_t pid;
	unsigned kind, number; /* kind: enum xs_file; XS_FILE_COUNT: a directory */
} numbered[NUMBERED];

static struct numbered *numbered_of(const struct xs_process *process, unsigned kind)
{
	static unsigned turn;
	uint64_t words[4] = { (uint32_t)process->pid, kind };
	struct numbered *set, *of;

	_Static_assert(sizeof(of->comm) == sizeof(process->comm), "a process's name");
	_Static_assert(sizeof(of->comm) == 2 * sizeof(words[0]), "room for it");
	memcpy(&words[2], process->comm, strnlen(process->comm, sizeof(of->comm)));
	set = &numbered[xs_hash(words, 4) % (NUMBERED / WAYS) * WAYS];
	for (of = set; of < set + WAYS; of++)
		if (of->pid == process->pid && of->kind == kind &&
		    !memcmp(of->comm, &words[2], sizeof(of->comm)))
			return of;
	of = &set[turn++ % WAYS];
	*of = (struct numbered){ .pid = process->pid, .kind = kind, .number = 1 };
	memcpy(of->comm, &words[2], sizeof(of->comm));
	return of;
}

/* In a directory of --result-dir; a report's suffix is that of its format. */
static const char *const names[XS_FILE_COUNT] = {
	"host_timing",	    "device_timing",	  "device_submission", "device_timeline",
	"call_logging",	    "ccl_summary_report", "task_counters",     "openmp_report",
	"python_functions", "sampled_functions",  "chrome_trace",      "call_stacks",
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
	if (options->format == XS_FORMAT_PERFETTO)
		return options->compress ? ".pftrace.zst" : ".pftrace";
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

/* The process's own name for files. */
static void put_comm(const struct xs_process *process, char comm[sizeof(process->comm)])
{
	*xs_plain_file(comm, process->comm, strlen(process->comm)) = '\0';
}

/* A killed drain process has left the directory's path, not where it was given from. */
static enum xs_base base_of_result(const struct xs_process *process)
{
	return process->run->recovering ? XS_BASE_PATH : XS_BASE_OUTPUT;
}

/*
 * The directory that the trace of a killed drain process lies in. Whatever its file says, it is one
 * that --result-dir makes: in that directory, with no more on the way.
 */
static char *known_directory(const struct xs_process *process, const char *parent)
{
	const char *known = process->run->recovering && process->kept ? process->kept->output : "";
	size_t length = strlen(parent);
	const char *slash, *end;

	if (!memchr(known, '\0', PATH_MAX) || strncmp(known, parent, length) != 0 ||
	    known[length] != '/')
		return NULL;
	slash = strchr(known + length + 1, '/');
	end = slash ? slash - 1 : NULL;
	if (!end || slash[1] == '\0' || strchr(slash + 1, '/') || *end == '.' || *end == '/')
		return NULL;
	return strndup(known, (size_t)(slash - known));
}

/*
 * --result-dir: makes the process's directory, unless that was done, by a killed drain process too.
 */
static int make_directory(struct xs_process *process)
{
	char path[PATH_MAX], parent[PATH_MAX], comm[sizeof(process->comm)], rank[24] = "",
									    number[16];
	struct numbered *of = numbered_of(process, XS_FILE_COUNT);
	unsigned first = of->number;
	int error = xs_path_from_root(process->run->options->output_dir, parent, sizeof(parent));

	if (process->directory)
		return 0;
	if (error < 0)
		return error;
	process->directory = known_directory(process, parent);
	if (process->directory)
		return 0;
	put_comm(process, comm);
	if (xs_process_rank(process) >= 0)
		(void)snprintf(rank, sizeof(rank), "rank_%d.", xs_process_rank(process));
	for (unsigned n = first; n - first < TRIES; n++) {
		of->number = n;
		if (snprintf(path, sizeof(path), "%s/%s%s.%d%s", parent, rank, comm, process->pid,
			     number_of(n, number, sizeof(number))) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		error = xs_below_make_directory(process->run, base_of_result(process), path, 1);
		if (!error) {
			process->directory = strdup(path);
			return process->directory ? 0 : -ENOMEM;
		}
		if (error != -EEXIST)
			return error;
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

/* "rep.txt" becomes "rep<what>.<pid>[.<rank>].txt", "rep" "rep<what>.<pid>". */
static int put_report_name(const struct xs_process *process, const char *output, const char *what,
			   const char *number, char *path, size_t size)
{
	const char *dot = strrchr(strrchr(output, '/'), '.');
	int stem = dot ? (int)(dot - output) : (int)strlen(output);
	char rank[16];

	return snprintf(path, size, "%.*s%s.%d%s%s%s", stem, output, what, process->pid,
			rank_of(process, rank, sizeof(rank)), number, dot ? dot : "");
}

/* Which file the trace is; fd -1: it is still to be made. */
static void note(struct xs_kept_file *kept, const char *path, int fd)
{
	struct stat st = { .st_ino = 0 };

	if (fd >= 0)
		(void)fstat(fd, &st);
	xs_kept_identify(kept, st.st_dev, st.st_ino);
	if (fd < 0)
		xs_kept_name_trace(kept, path);
}

bool xs_file_lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

/*
 * A trace that is not there yet. It has its lock before it has its name: whoever finds it empty
 * finds that it is written. Not every file system can do that, some lock a moment later.
 */
static int create_trace(struct xs_run *run, enum xs_base base, const char *path, unsigned depth)
{
	const char *name;
	int directory = xs_below_open(run, base, path, depth, &name), fd, result;
	char from[32];

	if (directory < 0)
		return directory;
	/* the names of former runs are tried one by one: not with a new file for each */
	if (!faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		close(directory);
		return -EEXIST;
	}
	fd = openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
	if (fd >= 0) {
		(void)xs_file_lock(fd);
		(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
		result = linkat(AT_FDCWD, from, directory, name, AT_SYMLINK_FOLLOW) ? -errno : fd;
		if (result < 0)
			close(fd);
		if (result >= 0 || result == -EEXIST) {
			close(directory);
			return result;
		}
	}
	close(directory);
	fd = xs_below_create(run, base, path, depth);
	if (fd >= 0)
		(void)xs_file_lock(fd);
	return fd;
}

/* A file that there are no descriptors for. */
static int give_up(struct xs_run *run, enum xs_base base, const char *path, unsigned depth, int fd)
{
	const char *name;
	int directory;

	close(fd);
	directory = xs_below_open(run, base, path, depth, &name);
	if (directory >= 0) {
		(void)unlinkat(directory, name, 0);
		close(directory);
	}
	return -EMFILE;
}

int xs_file_create(struct xs_process *process, enum xs_file kind, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	const char *suffix = suffix_of(options, kind);
	/* a directory, or a name, that is the trace's own has no others in it */
	bool own = options->result_dir[0] || process->trace_path;
	struct numbered *of = own ? NULL : numbered_of(process, kind);
	unsigned first = of ? of->number : 1, depth = options->result_dir[0] ? 2 : 1;
	enum xs_base base = options->result_dir[0]			   ? base_of_result(process)
			    : process->trace_path && kind == XS_FILE_TRACE ? XS_BASE_PATH
			    : is_report(kind)				   ? XS_BASE_REPORT
									   : XS_BASE_OUTPUT;
	/* dir: the directory; of a report, its name as it was given */
	char comm[sizeof(process->comm)], dir[PATH_MAX];
	int error =
		options->result_dir[0]
			? make_directory(process)
			: xs_path_from_root(is_report(kind) ? options->output : options->output_dir,
					    dir, sizeof(dir));

	/* for who tells the error */
	(void)snprintf(path, size, "%s", options->result_dir[0] ? options->output_dir : dir);
	if (error < 0)
		return error;
	put_comm(process, comm);
	for (unsigned n = first; n - first < TRIES; n++) {
		char number[16], rank[16];
		int fd, length;

		if (of)
			of->number = n;
		(void)number_of(n, number, sizeof(number));
		if (options->result_dir[0])
			length = snprintf(path, size, "%s/%s%s%s", process->directory, names[kind],
					  number, suffix);
		else if (process->trace_path && kind == XS_FILE_TRACE)
			length = snprintf(path, size, "%s%s", process->trace_path, number);
		else if (is_report(kind))
			length = put_report_name(process, dir, "", number, path, size);
		else
			length = snprintf(path, size, "%s/%s.%d%s%s%s", dir, comm, process->pid,
					  rank_of(process, rank, sizeof(rank)), number, suffix);
		if (length >= (int)size)
			return -ENAMETOOLONG;
		/* before it exists: --recover must know each file that we began */
		if (kind == XS_FILE_TRACE && !process->run->flight && process->kept)
			note(process->kept, path, -1);
		fd = kind == XS_FILE_TRACE ? create_trace(process->run, base, path, depth)
					   : xs_below_create(process->run, base, path, depth);
		if (fd >= 0 && !xs_run_can_spare(process->run, fd))
			return give_up(process->run, base, path, depth, fd);
		if (fd >= 0 && kind == XS_FILE_TRACE && !process->run->flight && process->kept)
			note(process->kept, path, fd);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

FILE *xs_file_begin(struct xs_process *process, enum xs_file kind, char *path, size_t size)
{
	int fd = xs_file_create(process, kind, path, size);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (out)
		return out;
	xs_file_failed(process);
	xs_tell("xstrace: cannot write %s: %s\n", path, strerror(fd < 0 ? -fd : errno));
	if (fd >= 0)
		close(fd);
	return NULL;
}

bool xs_file_end(FILE *out, const char *what, const char *path)
{
	struct stat file;
	bool bad = fflush(out) || ferror(out) || fstat(fileno(out), &file);

	if (fclose(out) || bad) {
		xs_tell("xstrace: cannot write all of %s: %s\n", path, strerror(errno));
		return false;
	}
	xs_tell_stored(what, path, file.st_dev, file.st_ino, 0);
	return true;
}

/* metrics/ in the process's directory, and the file's name there without its end. */
static int metrics_stem(struct xs_process *process, uint32_t device, char *stem, size_t size)
{
	int error = make_directory(process);

	if (error < 0)
		return error;
	if (snprintf(stem, size, "%s/metrics", process->directory) >= (int)size - 24)
		return -ENAMETOOLONG;
	error = xs_below_make_directory(process->run, base_of_result(process), stem, 2);
	if (error < 0 && error != -EEXIST)
		return error;
	(void)snprintf(stem + strlen(stem), 24, "/metrics_%u", device);
	return 0;
}

int xs_file_create_metrics(struct xs_process *process, uint32_t device, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	bool own = options->result_dir[0];
	enum xs_base base = own ? base_of_result(process) : XS_BASE_REPORT;
	unsigned depth = own ? 3 : 1;
	char stem[PATH_MAX], number[16];
	int fd, error = own ? metrics_stem(process, device, stem, sizeof(stem))
			    : xs_path_from_root(options->output, stem, sizeof(stem));

	(void)snprintf(path, size, "%s", own ? options->output_dir : stem);
	if (error < 0)
		return error;
	for (unsigned n = 1; n < TRIES; n++) {
		(void)number_of(n, number, sizeof(number));
		if ((own ? snprintf(path, size, "%s%s.csv", stem, number)
			 : put_report_name(process, stem, ".metrics", number, path, size)) >=
		    (int)size)
			return -ENAMETOOLONG;
		fd = xs_below_create(process->run, base, path, depth);
		if (fd >= 0 && !xs_run_can_spare(process->run, fd))
			return give_up(process->run, base, path, depth, fd);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

int xs_file_create_nameless(const struct xs_process *process)
{
	char dir[PATH_MAX];
	int fd = -1;

	if (xs_path_from_root(process->run->options->output_dir, dir, sizeof(dir)) >= 0)
		fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (xs_run_can_spare(process->run, fd))
		return fd;
	close(fd);
	return -EMFILE;
}

void xs_file_failed(struct xs_process *process)
{
	if (!process->run->recovering)
		return;
	process->again = true;
	process->run->again = true;
}

void xs_tell_write_error(struct xs_process *process, int error)
{
	const char *known = process->kept ? process->kept->output : "";
	struct xs_run *run = process->run;
	char dir[PATH_MAX];

	xs_file_failed(process);
	if (run->disk_error_told)
		return;
	(void)xs_path_from_root(run->options->output_dir, dir, sizeof(dir));
	if (run->recovering)
		xs_tell("xstrace: --recover %s: cannot write all of %.*s: %s; the run directory "
			"still has what is missing. Mend that and run this command again\n",
			run->dir, PATH_MAX - 1, known[0] ? known : dir, strerror(-error));
	else
		xs_tell("xstrace: cannot write the trace in %s: %s; the application goes on, what "
			"follows is lost\n",
			dir, strerror(-error));
	run->disk_error_told = true;
}
