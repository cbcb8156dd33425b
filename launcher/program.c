/*
 * The application's file: finding it, and telling beforehand what cannot be traced.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"

static int check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int xs_program_find(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH");
	int result = -ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, size, "%s", name) >= (int)size)
			return -ENAMETOOLONG;
		return check(path);
	}
	for (list = list ? list : "/bin:/usr/bin";; list++) {
		size_t n = strcspn(list, ":");

		if (snprintf(path, size, "%.*s%s%s", (int)n, list, n ? "/" : "", name) < (int)size) {
			int error = check(path);

			if (!error)
				return 0;
			if (error == -EACCES)
				result = error; /* as execvp: found but not allowed, unless one further on is */
		}
		list += n;
		if (!*list)
			return result;
	}
}

static enum xs_program kind_of_elf(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr program;

	if (head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return XS_PROGRAM_OTHER_CLASS;
	for (int i = 0; i < head->e_phnum; i++) {
		uint64_t offset = head->e_phoff + (uint64_t)i * head->e_phentsize;

		if (pread(fd, &program, sizeof(program), (off_t)offset) != sizeof(program))
			return XS_PROGRAM_UNKNOWN;
		if (program.p_type == PT_INTERP)
			return XS_PROGRAM_DYNAMIC;
	}
	return XS_PROGRAM_STATIC;
}

static enum xs_program kind(const char *path, int depth)
{
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head = { .text = "" };
	enum xs_program result = XS_PROGRAM_UNKNOWN;
	struct stat st;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return XS_PROGRAM_UNKNOWN;
	n = pread(fd, &head, sizeof(head) - 1, 0);
	if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG)) {
		result = kind_of_elf(fd, &head.elf);
		/* the loader ignores LD_PRELOAD paths when rights are gained */
		if (!fstat(fd, &st) && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
					((st.st_mode & S_ISGID) && st.st_gid != getegid())))
			result = XS_PROGRAM_SETUID;
	} else if (n > 2 && head.text[0] == '#' && head.text[1] == '!' && depth < 4) {
		char *interpreter = head.text + 2 + strspn(head.text + 2, " \t");

		interpreter[strcspn(interpreter, " \t\n")] = '\0';
		result = kind(interpreter, depth + 1);
	}
	close(fd);
	return result;
}

enum xs_program xs_program_kind(const char *path)
{
	return kind(path, 0);
}

bool xs_program_is_text(const char *path)
{
	char text[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return n >= 0 && !memchr(text, '\0', (size_t)n) && !(n >= 2 && text[0] == '#' && text[1] == '!');
}
