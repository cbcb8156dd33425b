/*
 * What will be seen of a program, as far as its files tell: how it is linked, which runtimes it
 * brings, which it is likely to open.
 */
#include "doctor.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "regular.h"

#define LISTED (64u << 10) /* bytes of what the loader lists */

static const struct runtime {
	const char *name;
	const char *library; /* that the loader lists */
	const char *word;    /* in files of programs that open it, or contain it */
	const char *shown;
} runtimes[] = {
	{ "OpenCL", "libOpenCL.so", "libOpenCL.so",
	  "calls, kernels, copies: --chrome-call-logging --chrome-kernel-logging, -h -d" },
	{ "Level Zero", "libze_loader.so", "libze_loader.so",
	  "calls, kernels, copies: --chrome-call-logging --chrome-kernel-logging, -h -d" },
	{ "CUDA", "libcuda", "libcuda.so.1",
	  "calls, kernels, copies: --chrome-call-logging --chrome-kernel-logging, -h -d" },
	{ "SYCL", "libsycl.so", "libsycl.so", "commands and memory: --chrome-sycl-logging" },
	{ "OpenMP", "libomp.so", "__kmpc_fork_call",
	  "regions, loops, barriers: --openmp-report --chrome-openmp-logging" },
	{ "OpenMP", "libiomp5.so", "libiomp5.so",
	  "regions, loops, barriers: --openmp-report --chrome-openmp-logging" },
	{ "OpenMP of gcc", "libgomp.so", "libgomp.so.1",
	  "nothing of OpenMP: gcc's runtime does not tell; LD_PRELOAD=libomp.so.5 does" },
	{ "MPI", "libmpi", "MPI_Init",
	  "calls and messages: mpiexec -n N xstrace --chrome-mpi-logging app" },
	{ "ITT", "libittnotify", "INTEL_LIBITTNOTIFY64", "tasks: --chrome-itt-logging" },
	{ "NVTX", "libnvToolsExt.so", "NVTX_INJECTION64_PATH", "ranges: --chrome-itt-logging" },
};
#define RUNTIMES (sizeof(runtimes) / sizeof(runtimes[0]))

/* Its dynamic loader, by PT_INTERP; empty: none, or no ELF file of 64 bits. */
static void interpreter_of(const char *path, char *name, size_t size)
{
	int fd = xs_open_regular(path);
	Elf64_Ehdr head;
	Elf64_Phdr part;
	ssize_t n;

	name[0] = '\0';
	if (fd < 0)
		return;
	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	    !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_ident[EI_CLASS] == ELFCLASS64)
		for (unsigned i = 0; i < head.e_phnum && i < 64; i++) {
			if (pread(fd, &part, sizeof(part),
				  (off_t)(head.e_phoff + i * sizeof(part))) != sizeof(part) ||
			    part.p_type != PT_INTERP)
				continue;
			n = pread(fd, name, part.p_filesz < size - 1 ? part.p_filesz : size - 1,
				  (off_t)part.p_offset);
			name[n > 0 ? n : 0] = '\0';
		}
	close(fd);
}

/* A script's interpreter, as its first line has it; NULL: it is no script. */
static const char *script_of(const char *path, char *name, size_t size)
{
	char line[512], *at, *word;

	dr_first_line(path, line, sizeof(line));
	if (strncmp(line, "#!", 2) != 0)
		return NULL;
	at = line + 2 + strspn(line + 2, " \t");
	word = strtok(at, " \t");
	if (word && strlen(word) > 4 && !strcmp(word + strlen(word) - 4, "/env"))
		for (word = strtok(NULL, " \t"); word && word[0] == '-';)
			word = strtok(NULL, " \t");
	if (!word)
		return NULL;
	(void)snprintf(name, size, "%s", word);
	return name;
}

/* A pipe, which would have to be waited for, is none. */
static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp() finds it; false: nowhere. */
static bool find(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH");

	if (strchr(name, '/'))
		return (size_t)snprintf(path, size, "%s", name) < size && is_program(path);
	for (list = list ? list : "/bin:/usr/bin";; list++) {
		size_t n = strcspn(list, ":");

		if ((size_t)snprintf(path, size, "%.*s/%s", (int)n, n ? list : ".", name) < size &&
		    is_program(path))
			return true;
		list += n;
		if (!*list)
			return false;
	}
}

/*
 * A file may name any program as its loader, which would run: only one that root has put there,
 * and that is called as loaders are, is asked.
 */
static bool is_of_the_system(const char *interpreter)
{
	const char *name = strrchr(interpreter, '/');
	struct stat st;

	return interpreter[0] == '/' && !strncmp(name, "/ld", 3) && !stat(interpreter, &st) &&
	       S_ISREG(st.st_mode) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* What the loader would load, a line each; the program itself does not run. */
static void list_libraries(const char *path, char *text, size_t size)
{
	char interpreter[PATH_MAX];
	char *argv[] = { interpreter, "--list", (char *)path, NULL };

	interpreter_of(path, interpreter, sizeof(interpreter));
	text[0] = '\0';
	if (is_of_the_system(interpreter))
		(void)dr_run(argv, text, size);
}

/* In the program's file, or in one of its libraries that is not the system's. */
static bool mentions(const char *path, const char *listed, const char *word)
{
	char file[PATH_MAX];

	if (dr_file_has(path, word))
		return true;
	for (const char *at = strstr(listed, "=> /"); at; at = strstr(at + 1, "=> /")) {
		(void)snprintf(file, sizeof(file), "%.*s", (int)strcspn(at + 3, " \n"), at + 3);
		if (strncmp(file, "/lib", 4) != 0 && strncmp(file, "/usr/lib", 8) != 0 &&
		    dr_file_has(file, word))
			return true;
	}
	return false;
}

/* Where the loader's list names a library that begins so; NULL: nowhere. */
static const char *lists(const char *listed, const char *library)
{
	for (const char *at = strstr(listed, library); at; at = strstr(at + 1, library))
		if (at == listed || at[-1] == '\t' || at[-1] == ' ' || at[-1] == '/')
			return at;
	return NULL;
}

/* The loader tells of one that it looks for by name, or that the program names by its path. */
static void tell_missing(const char *listed)
{
	static const char by_path[] = "error while loading shared libraries: ";
	const char *name = strstr(listed, "=> not found"), *path = strstr(listed, by_path);

	while (name && name > listed && name[-1] != '\n')
		name--;
	if (name)
		name += strspn(name, "\t ");
	else if (path)
		name = path + strlen(by_path);
	if (name)
		dr_say(DR_BAD, "libraries", "install it, or set LD_LIBRARY_PATH",
		       "%.*s is not found: the program does not start", (int)strcspn(name, " :\n"),
		       name);
}

static void tell_runtimes(const char *path)
{
	static char listed[LISTED];
	bool some = false;

	list_libraries(path, listed, sizeof(listed));
	tell_missing(listed);
	for (size_t i = 0; i < RUNTIMES; i++) {
		const struct runtime *runtime = &runtimes[i];
		const char *linked = lists(listed, runtime->library);

		if (!linked && !mentions(path, listed, runtime->word))
			continue;
		some = true;
		dr_say(strstr(runtime->shown, "nothing") ? DR_NOTE : DR_OK, runtime->name, NULL,
		       "%s%.*s; shown: %s",
		       linked ? "is linked with "
			      : "its files name it, so it may open or contain it",
		       linked ? (int)strcspn(linked, " \n") : 0, linked ? linked : "",
		       runtime->shown);
	}
	if (strstr(path, "python"))
		dr_say(DR_OK, "Python", NULL,
		       "an interpreter: what its modules load is traced too; functions: "
		       "--python-stacks; PyTorch: emit_itt() with --chrome-itt-logging");
	else if (!some)
		dr_say(DR_NOTE, "runtimes",
		       "if it starts other programs, or opens plug-ins: try it",
		       "neither the program nor its libraries name an API that xstrace traces");
}

/* False: nothing of it can be traced. */
static bool tell_kind(const char *path, char *const *argv)
{
	char interpreter[PATH_MAX];
	const char *judged;
	enum xs_program kind = xs_program_kind(path, argv, &judged);
	const char *why = xs_program_why_not(kind);

	interpreter_of(path, interpreter, sizeof(interpreter));
	if (why)
		dr_say(DR_BAD, "program",
		       strstr(why, "static")   ? "link it dynamically"
		       : strstr(why, "setuid") ? "run it as its owner, or a copy without the bit"
					       : "build it for this machine's 64 bits",
		       "%s %s: it runs, but cannot be traced", judged, why);
	else if (strstr(interpreter, "ld-musl"))
		dr_say(DR_NOTE, "program", "build it with glibc if you need --call-stacks",
		       "%s is linked with musl: it is traced, but --call-stacks needs glibc's "
		       "loader",
		       path);
	else if (kind == XS_PROGRAM_UNKNOWN)
		dr_say(DR_NOTE, "program", "try whether it runs",
		       "%s is neither an ELF file nor a script with an interpreter", path);
	else
		dr_say(DR_OK, "program", NULL, "%s can be traced", path);
	return !why;
}

void dr_app(char *const *argv)
{
	char path[PATH_MAX], script[512], interpreter[512];
	const char *found;

	dr_section("This program", "program");
	if (!find(argv[0], path, sizeof(path))) {
		dr_say(DR_BAD, "program", "give its path", "%s is no program that can be found",
		       argv[0]);
		return;
	}
	found = script_of(path, script, sizeof(script));
	if (!found) {
		if (tell_kind(path, argv))
			tell_runtimes(path);
	} else if (!find(found, interpreter, sizeof(interpreter))) {
		dr_say(DR_BAD, "interpreter", "install it, or mend the first line",
		       "%s is no program that can be found", found);
	} else {
		dr_say(DR_OK, "interpreter", NULL, "%s is a script of %s, which is looked at here",
		       path, interpreter);
		if (tell_kind(interpreter, NULL))
			tell_runtimes(interpreter);
	}
}
