/*
 * What a process is, for people: its command line, or the title that it has put there in its place
 * (setproctitle, postgres, gunicorn), and the name that it has given itself (PR_SET_NAME). It is
 * looked at while the process lives, since a dead one has no command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "text.h"
#include "title.h"

#define FIRST_NS    50000000ull
#define LAST_NS	    1000000000ull
#define TITLE_BYTES 100u /* shown of a command line, whole characters */

/* False: it has ended. */
static bool read_comm(int32_t pid, char *comm, size_t size)
{
	char path[48];
	FILE *file;
	bool good;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	good = file && fgets(comm, (int)size, file);
	if (file)
		(void)fclose(file);
	if (good)
		comm[strcspn(comm, "\n")] = '\0';
	return good;
}

size_t xs_title_cut(const char *text, size_t length, size_t most)
{
	if (length <= most)
		return length;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/*
 * Of argv[0] the directory goes. A title that the program has made is one text, with blanks, and
 * paths in it are none of its own.
 */
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

void xs_title_first(struct xs_process *process, const char *arguments, uint32_t length)
{
	length = length < XS_ARGUMENTS_MAX ? length : XS_ARGUMENTS_MAX;
	process->arguments = length ? malloc(length + 1u) : NULL;
	if (!process->arguments)
		return;
	memcpy(process->arguments, arguments, length);
	process->arguments[length] = '\0';
	process->arguments_length = length;
	make_title(process->title, process->arguments, length, process->comm);
}

void xs_title_look(struct xs_process *process)
{
	char line[XS_ARGUMENTS_MAX + 1], comm[sizeof(process->comm)];
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);
	size_t length;

	if (now < process->title_next || process->copy)
		return;
	process->title_wait = !process->title_wait	      ? FIRST_NS
			      : process->title_wait < LAST_NS ? 2 * process->title_wait
							      : LAST_NS;
	process->title_next = now + process->title_wait;
	if (process->start == UINT64_MAX || process->run->recovering)
		return; /* gone before it was found: what has its pid now is another */
	length = xs_pid_arguments(process->watched, line, sizeof(line) - 1);
	line[length] = '\0';
	/*
	 * in this order: where the arguments are those of the next program already, the name is,
	 * too
	 */
	if (length && read_comm(process->watched, comm, sizeof(comm)))
		make_title(process->title, line, length, comm);
}

const char *xs_title_of(struct xs_process *process)
{
	if (!process->title[0])
		*xs_plain(process->title, process->comm, strlen(process->comm)) = '\0';
	return process->title;
}
