#include "program.h"
#include "regular.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADERS 64u /* of a file, that are looked at */
#define DYNAMIC 256u
#define DEPTH	4 /* a script's interpreter may be a script, and what the loader loads, too */

struct elf {
	int fd;
	Elf64_Phdr program[HEADERS];
	unsigned count;
};

static const Elf64_Phdr *find(const struct elf *elf, uint32_t type)
{
	for (unsigned i = 0; i < elf->count; i++)
		if (elf->program[i].p_type == type)
			return &elf->program[i];
	return NULL;
}

/* Where in the file what is loaded at that address lies; -1: nowhere. */
static off_t place(const struct elf *elf, uint64_t address)
{
	for (unsigned i = 0; i < elf->count; i++) {
		const Elf64_Phdr *part = &elf->program[i];

		if (part->p_type == PT_LOAD && address >= part->p_vaddr &&
		    address - part->p_vaddr < part->p_filesz)
			return (off_t)(part->p_offset + (address - part->p_vaddr));
	}
	return -1;
}

/* The name that the file gives itself (DT_SONAME); empty: none. */
static void read_soname(const struct elf *elf, char *name, size_t size)
{
	const Elf64_Phdr *dynamic = find(elf, PT_DYNAMIC);
	uint64_t strings = 0, offset = UINT64_MAX;
	Elf64_Dyn entries[DYNAMIC];
	ssize_t n;

	name[0] = '\0';
	n = dynamic ? pread(elf->fd, entries,
			    dynamic->p_filesz < sizeof(entries) ? dynamic->p_filesz
								: sizeof(entries),
			    (off_t)dynamic->p_offset)
		    : -1;
	for (ssize_t i = 0; n > 0 && i < n / (ssize_t)sizeof(*entries); i++) {
		if (entries[i].d_tag == DT_STRTAB)
			strings = entries[i].d_un.d_ptr;
		if (entries[i].d_tag == DT_SONAME)
			offset = entries[i].d_un.d_val;
	}
	if (!strings || offset == UINT64_MAX || place(elf, strings + offset) < 0)
		return;
	n = pread(elf->fd, name, size - 1, place(elf, strings + offset));
	name[n > 0 ? n : 0] = '\0';
}

/*
 * The loader's file may have any name; what it calls itself is the name in PT_INTERP of all
 * programs.
 */
static bool is_loader(const struct elf *elf)
{
	char name[64];

	read_soname(elf, name, sizeof(name));
	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "ld64.so", 7);
}

/* What the loader is told to load; NULL: nothing, it shows something. */
static char *const *behind_loader(char *const *argv)
{
	static const char *const with_value[] = {
		"--library-path",	  "--inhibit-rpath",	 "--audit", "--preload", "--argv0",
		"--glibc-hwcaps-prepend", "--glibc-hwcaps-mask",
	};

	if (!argv || !*argv)
		return NULL;
	for (argv++; *argv && (*argv)[0] == '-'; argv++)
		for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++)
			if (!strcmp(*argv, with_value[i]) && argv[1]) {
				argv++;
				break;
			}
	return *argv ? argv : NULL;
}

static enum xs_program kind(const char *path, char *const *argv, int depth, const char **ret_file);

static bool is_of_this_class(const Elf64_Ehdr *head)
{
	return head->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

static bool read_headers(struct elf *elf, const Elf64_Ehdr *head)
{
	ssize_t n;

	if (head->e_phentsize != sizeof(*elf->program))
		return false;
	elf->count = head->e_phnum < HEADERS ? head->e_phnum : HEADERS;
	n = pread(elf->fd, elf->program, elf->count * sizeof(*elf->program), (off_t)head->e_phoff);
	return n == (ssize_t)(elf->count * sizeof(*elf->program));
}

static enum xs_program kind_of_elf(struct elf *elf, const Elf64_Ehdr *head, char *const *argv,
				   int depth, const char **ret_file)
{
	if (!is_of_this_class(head))
		return XS_PROGRAM_OTHER_CLASS;
	if (!read_headers(elf, head))
		return XS_PROGRAM_UNKNOWN;
	if (find(elf, PT_INTERP))
		return XS_PROGRAM_DYNAMIC;
	if (!is_loader(elf))
		return XS_PROGRAM_STATIC;
	argv = behind_loader(argv);
	return argv ? kind(*argv, argv, depth + 1, ret_file) : XS_PROGRAM_UNKNOWN;
}

static enum xs_program kind(const char *path, char *const *argv, int depth, const char **ret_file)
{
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head = { .text = "" };
	enum xs_program result = XS_PROGRAM_UNKNOWN;
	struct elf elf = { .fd = depth > DEPTH ? -1 : xs_open_regular(path) };
	struct stat st;
	ssize_t n;

	*ret_file = path;
	if (elf.fd < 0)
		return XS_PROGRAM_UNKNOWN;
	n = pread(elf.fd, &head, sizeof(head) - 1, 0);
	if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG)) {
		result = kind_of_elf(&elf, &head.elf, argv, depth, ret_file);
		/* the loader ignores LD_PRELOAD paths when rights are gained */
		if (!fstat(elf.fd, &st) && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
					    ((st.st_mode & S_ISGID) && st.st_gid != getegid())))
			result = XS_PROGRAM_SETUID;
	} else if (n > 2 && head.text[0] == '#' && head.text[1] == '!') {
		char *interpreter = head.text + 2 + strspn(head.text + 2, " \t");

		interpreter[strcspn(interpreter, " \t\n")] = '\0';
		result = kind(interpreter, NULL, depth + 1, ret_file);
		*ret_file = path;
	}
	close(elf.fd);
	return result;
}

enum xs_program xs_program_kind(const char *path, char *const *argv, const char **ret_file)
{
	return kind(path, argv, 0, ret_file);
}

const char *xs_program_why_not(enum xs_program kind)
{
	switch (kind) {
	case XS_PROGRAM_STATIC:
		return "is statically linked";
	case XS_PROGRAM_OTHER_CLASS:
		return sizeof(void *) == 8 ? "is not a 64-bit program" : "is not a 32-bit program";
	case XS_PROGRAM_SETUID:
		return "gains rights (setuid)";
	default:
		return NULL;
	}
}

/* Is all in the file that is loaded of it? */
static bool is_whole(const struct elf *elf, uint64_t size)
{
	uint64_t end = 0;

	for (unsigned i = 0; i < elf->count; i++) {
		const Elf64_Phdr *part = &elf->program[i];

		if (part->p_type == PT_LOAD && part->p_offset + part->p_filesz > end)
			end = part->p_offset + part->p_filesz;
	}
	return end && end <= size;
}

int xs_library_check(const char *path)
{
	struct elf elf = { .fd = xs_open_regular(path) };
	int result = elf.fd < 0 ? -errno : -ENOEXEC;
	Elf64_Ehdr head;
	struct stat st;

	if (elf.fd < 0)
		return result;
	if (pread(elf.fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_type == ET_DYN &&
	    is_of_this_class(&head) && read_headers(&elf, &head) && !fstat(elf.fd, &st) &&
	    is_whole(&elf, (uint64_t)st.st_size))
		result = 0;
	close(elf.fd);
	return result;
}
