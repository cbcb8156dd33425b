/*
 * The file of a trace: a new one, or (--recover) the one that a killed drain process has begun.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chrome.h"
#include "files.h"
#include "kept.h"
#include "text.h"

/* Does the file begin as a trace of this run, or with nothing at all? */
static bool begins_as_ours(const struct xs_run *run, int fd)
{
	static const unsigned char zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	char head[1024], mark[64];
	ssize_t n = pread(fd, head, sizeof(head) - 1, 0);

	if (n <= 0)
		return n == 0;
	if (run->options->format == XS_FORMAT_PERFETTO && !run->options->compress)
		return memmem(head, (size_t)n, run->run_id, strlen(run->run_id));
	if (run->options->compress)
		return n >= (ssize_t)sizeof(zstd) && !memcmp(head, zstd, sizeof(zstd));
	head[n] = '\0';
	if (strncmp(head, XS_CHROME_OPENING, strlen(XS_CHROME_OPENING)) &&
	    strncmp(head, XS_KINETO_OPENING, strlen(XS_KINETO_OPENING)))
		return false;
	(void)snprintf(mark, sizeof(mark), "\"run\":\"%s\"", run->run_id);
	return strstr(head, mark);
}

/*
 * Is it the very file that the killed drain process was writing? The text says what is wrong; NULL:
 * it is.
 */
static const char *why_not(const struct xs_process *process, int fd, uint64_t offset)
{
	const struct xs_kept_file *kept = process->kept;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "no regular file";
	if (st.st_uid != geteuid())
		return "another user's";
	if (kept->inode ? st.st_ino != kept->inode || st.st_dev != kept->device : st.st_size > 0)
		return "another file than the drain process made";
	if ((uint64_t)st.st_size < offset)
		return "shorter than the drain process left it";
	return begins_as_ours(process->run, fd) ? NULL : "no trace of this run";
}

/* It may have been moved away, so that the rest is written. */
static void tell_gone(struct xs_process *process, const char *path)
{
	process->run->incomplete = true;
	xs_tell("[WARNING] --recover %s: %s is gone; what had been written there before is missing "
		"in the trace that is written now\n",
		process->run->dir, path);
}

/*
 * After a killed drain process: the file that it was writing, cut back to what was committed.
 * -EPERM: it is another one.
 */
static int reopen(struct xs_process *process, char *path, size_t size, uint64_t *ret_offset)
{
	uint64_t offset = xs_kept_bytes(process->kept);
	const char *wrong;
	int fd;

	(void)snprintf(path, size, "%.*s", PATH_MAX - 1, process->kept->output);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	wrong = fd < 0 ? strerror(errno) : why_not(process, fd, offset);
	if (!wrong && !xs_file_lock(fd))
		wrong = "somebody is writing it, or it is another process's, too";
	if (!wrong && (ftruncate(fd, (off_t)offset) < 0 || lseek(fd, 0, SEEK_END) < 0))
		wrong = strerror(errno);
	*ret_offset = offset;
	if (!wrong)
		return fd;
	if (fd >= 0)
		close(fd);
	/*
	 * killed before the file was made: the name may be another's, which it was just finding out
	 */
	if (!process->kept->inode && !offset)
		return -ENOENT;
	xs_tell("xstrace: --recover %s: %s: %s; nothing is written. Put the file back, or move it "
		"away to have the rest of the trace\n",
		process->run->dir, path, wrong);
	process->run->refused = true;
	return -EPERM;
}

/* Is there a directory for a file of that path? */
static bool has_directory(const char *path)
{
	char *directory = strdup(path), *end = directory ? strrchr(directory, '/') : NULL;
	bool has;

	if (end)
		*end = '\0';
	has = !end || end == directory || !access(directory, F_OK);
	free(directory);
	return has;
}

/*
 * A new file; with --recover in place of one that is gone. Where that one's directory is gone, too,
 * or no file can be made, all that is known of it stays: the directory may come back.
 */
static int create(struct xs_process *process, struct xs_chrome *chrome)
{
	struct xs_kept_file *kept = process->run->recovering ? process->kept : NULL;
	uint64_t device = kept ? kept->device : 0, inode = kept ? kept->inode : 0;
	uint64_t bytes = kept ? xs_kept_bytes(kept) : 0;
	int error = kept ? -xs_kept_error(kept) : 0;
	char *output = inode ? strndup(kept->output, PATH_MAX - 1) : NULL;
	int fd;

	if (output && !has_directory(output)) {
		free(output);
		return -ENOENT;
	}
	if (output) /* that length is of no other file */
		xs_kept_commit(kept, &process->turn, XS_KEPT_ENDED, error);
	fd = xs_file_create(process, XS_FILE_TRACE, chrome->path, sizeof(chrome->path));
	if (output && fd >= 0)
		tell_gone(process, output);
	if (output && fd < 0) {
		xs_kept_identify(kept, device, inode);
		xs_kept_name_trace(kept, output);
		xs_kept_commit(kept, &process->turn, bytes, error);
	}
	free(output);
	return fd;
}

int xs_chrome_open_file(struct xs_process *process, struct xs_chrome *chrome, uint64_t *ret_offset)
{
	bool again = process->run->recovering && process->kept && process->kept->output[0];
	int fd = again ? reopen(process, chrome->path, sizeof(chrome->path), ret_offset) : -ENOENT;

	if (process->run->refused) /* this one, or another process's: nothing is changed */
		return -EPERM;
	if (fd == -ENOENT) {
		*ret_offset = 0;
		return create(process, chrome);
	}
	return fd;
}
