/*
 * What a process is, for people: its command line, or the title that it has put there in its place (setproctitle, postgres, gunicorn), and the
 * name that it has given itself (PR_SET_NAME). It is looked at while the process lives, since a dead one has no command line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"
#include "writer.h"

#define FIRST_NS 50000000ull
#define LAST_NS 1000000000ull
#define TITLE_BYTES 100u /* shown of a command line, whole characters */

static size_t read_proc(int32_t pid, const char *name, char *text, size_t size)
{
	char path[48];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size);
		close(fd);
	}
	return n > 0 ? (size_t)n : 0;
}

size_t xs_title_cut(const char *text, size_t length, size_t most)
{
	if (length <= most)
		return length;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/* Of argv[0] the directory goes. A title that the program has made is one text, with blanks, and paths in it are none of its own. */
static size_t directory_of(const char *line)
{
	size_t n = strcspn(line, " ");
	const char *slash = memrchr(line, '/', n);

	if (!slash || (line[n] && line[0] != '/' && line[0] != '.'))
		return 0;
	return (size_t)(slash + 1 - line);
}

/* line: the arguments, a NUL behind each, and one more. */
static void make_title(char *title, const char *line, size_t length, const char *comm)
{
	char words[2 * TITLE_BYTES], *o = title;
	size_t from = directory_of(line), n;

	while (length > from && (!line[length - 1] || line[length - 1] == ' '))
		length--; /* room of a longer title */
	length = length > from ? length - from : 0;
	n = xs_title_cut(line + from, length, TITLE_BYTES);
	for (size_t i = 0; i < n; i++)
		words[i] = line[from + i] ? line[from + i] : ' ';
	words[n] = '\0';
	if (!n || !strstr(words, comm)) {
		o = xs_plain(o, comm, strlen(comm));
		o = stpcpy(o, n ? ": " : "");
	}
	o = xs_plain(o, words, n);
	(void)strcpy(o, n < length ? "…" : "");
}

void xs_title_look(struct xs_process *process)
{
	char line[XS_ARGUMENTS_MAX + 1], comm[sizeof(process->comm)];
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);
	size_t n, length;

	if (now < process->title_next)
		return;
	process->title_wait = !process->title_wait ? FIRST_NS : process->title_wait < LAST_NS ? 2 * process->title_wait : LAST_NS;
	process->title_next = now + process->title_wait;
	if (process->start == UINT64_MAX || process->run->recovering)
		return; /* gone before it was found: what has its pid now is another */
	length = read_proc(process->watched, "cmdline", line, sizeof(line) - 1);
	n = read_proc(process->watched, "comm", comm, sizeof(comm) - 1);
	if (!length || !n)
		return;
	line[length] = '\0';
	comm[n - (comm[n - 1] == '\n')] = '\0';
	if (!process->arguments) {
		process->arguments = malloc(length + 1);
		if (process->arguments)
			memcpy(process->arguments, line, length + 1);
		process->arguments_length = process->arguments ? (uint32_t)length : 0;
	}
	make_title(process->title, line, length, comm);
}

const char *xs_title_of(struct xs_process *process)
{
	if (!process->title[0])
		*xs_plain(process->title, process->comm, strlen(process->comm)) = '\0';
	return process->title;
}
