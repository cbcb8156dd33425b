/*
 * Programs that this one starts and that are not to be traced. Those of another class (32 bits):
 * their loader cannot preload our libraries and would say so on their stderr, once for each. And
 * those in a sandbox that may end them for a system call of ours (sandbox.c). They get LD_PRELOAD
 * without our libraries, the latter nothing that leads to the run, either, and the drain process
 * says that they are not traced.
 *
 * All of this may run in a child of vfork(), in the parent's memory, and in a signal handler: the
 * stack is all that is written to, and the process's own file.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "self.h"
#include "sys.h"

#define EXPORT	__attribute__((visibility("default")))
#define ROOM	8192u /* bytes of a larger environment are not copied: there may be little stack */
#define PAGE	4096u
#define NOWHERE 1u /* no page begins there */
#define DEPTH	4u /* interpreters of interpreters, as in the kernel */
#define CLASS	(sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

extern char **environ;

typedef int exec_function(const char *, char *const *, char *const *);
typedef int fexec_function(int, char *const *, char *const *);
typedef int execat_function(int, const char *, char *const *, char *const *, int);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const *, char *const *);

static struct {
	exec_function *execve, *execvpe;
	fexec_function *fexecve;
	execat_function *execveat; /* NULL: the C library has none */
	spawn_function *spawn, *spawnp;
} real;

/* Before anybody is in a child of vfork(), where the loader's lock may be held for good. */
static void find(void)
{
	if (real.execve)
		return;
	*(void **)&real.execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&real.fexecve = dlsym(RTLD_NEXT, "fexecve");
	*(void **)&real.execveat = dlsym(RTLD_NEXT, "execveat");
	*(void **)&real.spawn = dlsym(RTLD_NEXT, "posix_spawn");
	*(void **)&real.spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
	*(void **)&real.execve = dlsym(RTLD_NEXT, "execve");
}

__attribute__((constructor)) static void find_early(void)
{
	find();
}

/*
 * Is the byte there? The kernel is asked once for each page: `page` is the last one that was,
 * NOWHERE after one that was not.
 */
static bool is_there(uintptr_t *page, const void *at)
{
	uintptr_t its = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);

	if (its == *page)
		return true;
	*page = xs_page_readable(its) ? its : NOWHERE;
	return *page != NOWHERE;
}

/* ---- is it of another class? ---- */

static bool is_other_file(int fd, unsigned depth);

static bool is_other(const char *path, unsigned depth)
{
	long fd = xs_sys_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	bool is = fd >= 0 && is_other_file((int)fd, depth);

	if (fd >= 0)
		(void)xs_sys(SYS_close, fd);
	return is;
}

static bool is_other_file(int fd, unsigned depth)
{
	char head[128], *interpreter = head + 2;
	long n = xs_sys(SYS_pread64, fd, head, sizeof(head) - 1, 0);

	if (n <= EI_CLASS)
		return false;
	head[n] = '\0';
	if (!memcmp(head, ELFMAG, SELFMAG))
		return head[EI_CLASS] != CLASS;
	if (head[0] != '#' || head[1] != '!' || !depth)
		return false;
	interpreter += strspn(interpreter, " \t");
	interpreter[strcspn(interpreter, " \t\n")] = '\0';
	return is_other(interpreter, depth - 1);
}

static bool is_other_at(int directory, const char *path, int flags)
{
	uintptr_t page = NOWHERE;
	long fd;
	bool is;

	if (flags & AT_EMPTY_PATH && is_there(&page, path) && !*path)
		return is_other_file(directory, DEPTH);
	fd = xs_sys_open(directory, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	is = fd >= 0 && is_other_file((int)fd, DEPTH);
	if (fd >= 0)
		(void)xs_sys(SYS_close, fd);
	return is;
}

/* Where execvp() would find it. */
static bool is_other_in_path(const char *name)
{
	const char *list = getenv("PATH");
	char path[512];

	if (strchr(name, '/'))
		return is_other(name, DEPTH);
	for (size_t n, length = strlen(name); list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		if (n + length + 2 > sizeof(path))
			continue;
		memcpy(path, list, n);
		path[n] = '/';
		memcpy(path + n + !!n, name, length + 1);
		if (!xs_sys(SYS_faccessat, AT_FDCWD, path, X_OK))
			return is_other(path, DEPTH);
	}
	return false;
}

/* ---- what it gets ---- */

static bool is_ours(const char *library, size_t length)
{
	static const char name[] = "libxstrace";
	size_t behind = length;

	while (behind && library[behind - 1] != '/')
		behind--;
	return behind && length - behind >= sizeof(name) - 1 &&
	       !memcmp(library + behind, name, sizeof(name) - 1);
}

/* LD_PRELOAD's value without our libraries. */
static void without_ours(const char *list, char *out)
{
	bool first = true;

	for (size_t n; *list; list += n + (list[n] != '\0')) {
		n = strcspn(list, ": ");
		if (is_ours(list, n))
			continue;
		if (!first)
			*out++ = ':';
		memcpy(out, list, n);
		out += n;
		first = false;
	}
	*out = '\0';
}

static const char preload[] = "LD_PRELOAD=";
#define PRELOAD (sizeof(preload) - 1)
static const char run[] = XS_ENV_RUN "=";
#define RUN (sizeof(run) - 1)

/* LD_PRELOAD's value, if the string is that, and is there to its end. */
static const char *value_of(uintptr_t *page, const char *text)
{
	size_t n = 0;

	for (; n < PRELOAD; n++)
		if (!is_there(page, text + n) || text[n] != preload[n])
			return NULL;
	for (; is_there(page, text + n); n++)
		if (!text[n])
			return text + PRELOAD;
	return NULL;
}

/*
 * Is there anything of ours that it would get? Then its file is looked at. An environment that
 * cannot be read is the kernel's to refuse.
 */
static bool gets_ours(char *const *environment)
{
	uintptr_t pointers = NOWHERE, texts = NOWHERE;
	bool gets = false;
	const char *value;

	for (; environment; environment++) {
		if (!is_there(&pointers, environment) ||
		    !is_there(&pointers, (const char *)(environment + 1) - 1))
			return false;
		if (!*environment)
			return gets;
		value = value_of(&texts, *environment);
		if (texts == NOWHERE)
			return false;
		gets |= value && strstr(value, "/libxstrace");
	}
	return false;
}

/*
 * In a sandbox that forbids calls of ours? A child of vfork() may have put itself there; its
 * parent, whose memory it lives in, goes on as before.
 */
static bool is_sandboxed(void)
{
	long pid;

	find();
	if (atomic_load_explicit(&xs_starts_untraced, memory_order_relaxed))
		return true;
	if (!xs_child_starts_untraced)
		return false;
	pid = xs_sys(SYS_getpid);
	if (pid >= 0 && pid != xs_child_starts_untraced)
		return false;
	xs_tell_unseen(XS_UNSEEN_SANDBOX_EXEC);
	return true;
}

/* What a copy needs: pointers, and bytes of LD_PRELOAD. */
struct need {
	size_t pointers, bytes;
};

static struct need need_of(char *const *given)
{
	struct need need = { 1, 1 };

	for (; given && *given; given++, need.pointers++)
		if (!strncmp(*given, preload, PRELOAD))
			need.bytes += strlen(*given) + 1;
	if (need.pointers * sizeof(char *) + need.bytes > ROOM)
		need.pointers = 0;
	return need;
}

/* The environment that it gets: a copy in the memory that it needs, if there is any. */
static char *const *changed(char *const *given, struct need need, char **copy, char *text,
			    bool sandboxed)
{
	size_t n = 0;

	if (!need.pointers)
		return given;
	for (; given && *given; given++) {
		if (sandboxed && !strncmp(*given, run, RUN))
			continue;
		copy[n++] = *given;
		if (strncmp(*given, preload, PRELOAD) != 0)
			continue;
		memcpy(text, preload, PRELOAD);
		without_ours(*given + PRELOAD, text + PRELOAD);
		copy[n - 1] = text;
		n -= !text[PRELOAD];
		text += strlen(text) + 1;
	}
	copy[n] = NULL;
	return copy;
}

/*
 * Of a child that is forked and has not joined it is the parent's, and may be no part of the child
 * (MADV_DONTFORK).
 */
static void tell(const char *name)
{
	struct xs_process_file *file = xs_self.process;
	const uint32_t bit = 1u << XS_UNSEEN_CLASS;
	uintptr_t its = NOWHERE, page = NOWHERE;

	if (!file || !is_there(&its, &file->unseen) || !is_there(&its, file->other_class) ||
	    !is_there(&its, file->other_class + sizeof(file->other_class) - 1))
		return;
	if (atomic_fetch_or_explicit(&file->unseen, bit, memory_order_relaxed) & bit)
		return;
	for (size_t i = 0;
	     i < sizeof(file->other_class) - 1 && is_there(&page, name + i) && name[i]; i++)
		file->other_class[i] = name[i];
}

/* ---- functions ---- */

/* Not inlined: who starts other programs needs none of this stack. */
static __attribute__((noinline)) int exec_other(exec_function *function, const char *name,
						char *const *argv, char *const *environment,
						bool sandboxed)
{
	struct need need = need_of(environment);
	char *copy[need.pointers + 1], text[need.bytes];

	if (!sandboxed)
		tell(name);
	return function(name, argv, changed(environment, need, copy, text, sandboxed));
}

static __attribute__((noinline)) int fexec_other(int fd, char *const *argv,
						 char *const *environment, bool sandboxed)
{
	uintptr_t page = NOWHERE;
	struct need need = need_of(environment);
	char *copy[need.pointers + 1], text[need.bytes];

	if (!sandboxed)
		tell(is_there(&page, argv) && is_there(&page, (char *)(argv + 1) - 1) ? *argv
										      : NULL);
	return real.fexecve(fd, argv, changed(environment, need, copy, text, sandboxed));
}

static int execat(int directory, const char *path, char *const *argv, char *const *environment,
		  int flags)
{
	long error;

	if (real.execveat)
		return real.execveat(directory, path, argv, environment, flags);
	error = xs_sys_always(SYS_execveat, directory, path, argv, environment, flags);
	errno = (int)-error;
	return -1;
}

static __attribute__((noinline)) int execat_other(int directory, const char *path,
						  char *const *argv, char *const *environment,
						  int flags, bool sandboxed)
{
	struct need need = need_of(environment);
	char *copy[need.pointers + 1], text[need.bytes];

	if (!sandboxed)
		tell(path);
	return execat(directory, path, argv, changed(environment, need, copy, text, sandboxed),
		      flags);
}

static __attribute__((noinline)) int spawn_other(spawn_function *function, pid_t *pid,
						 const char *name,
						 const posix_spawn_file_actions_t *actions,
						 const posix_spawnattr_t *attributes,
						 char *const *argv, char *const *environment,
						 bool sandboxed)
{
	struct need need = need_of(environment);
	char *copy[need.pointers + 1], text[need.bytes];

	if (!sandboxed)
		tell(name);
	return function(pid, name, actions, attributes, argv,
			changed(environment, need, copy, text, sandboxed));
}

EXPORT int execve(const char *path, char *const *argv, char *const *environment)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other(path, DEPTH))
		       ? exec_other(real.execve, path, argv, environment, sandboxed)
		       : real.execve(path, argv, environment);
}

EXPORT int execvpe(const char *name, char *const *argv, char *const *environment)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other_in_path(name))
		       ? exec_other(real.execvpe, name, argv, environment, sandboxed)
		       : real.execvpe(name, argv, environment);
}

EXPORT int execv(const char *path, char *const *argv)
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *name, char *const *argv)
{
	return execvpe(name, argv, environ);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *environment)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other_file(fd, DEPTH))
		       ? fexec_other(fd, argv, environment, sandboxed)
		       : real.fexecve(fd, argv, environment);
}

EXPORT int execveat(int directory, const char *path, char *const *argv, char *const *environment,
		    int flags)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other_at(directory, path, flags))
		       ? execat_other(directory, path, argv, environment, flags, sandboxed)
		       : execat(directory, path, argv, environment, flags);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const *argv,
		       char *const *environment)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other(path, DEPTH))
		       ? spawn_other(real.spawn, pid, path, actions, attributes, argv, environment,
				     sandboxed)
		       : real.spawn(pid, path, actions, attributes, argv, environment);
}

EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const *argv,
			char *const *environment)
{
	bool sandboxed = is_sandboxed();

	return sandboxed || (gets_ours(environment) && is_other_in_path(name))
		       ? spawn_other(real.spawnp, pid, name, actions, attributes, argv, environment,
				     sandboxed)
		       : real.spawnp(pid, name, actions, attributes, argv, environment);
}

/* ---- those that take arguments one by one ---- */

static size_t count(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *))
		n++;
	return n;
}

/* `argv` has room for the first, those of the list and NULL. */
static void gather(char **argv, const char *first, size_t n, va_list list)
{
	*argv = (char *)(uintptr_t)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(list, char *);
}

/* All of them in an array on the caller's stack; `list` goes on behind them. */
#define GATHER(argv, first, list)                   \
	va_list list, again;                        \
	va_start(list, first);                      \
	va_copy(again, list);                       \
	const size_t argument_count = count(again); \
	va_end(again);                              \
	char *argv[argument_count + 1];             \
	gather(argv, first, argument_count, list)

EXPORT int execl(const char *path, const char *first, ...)
{
	GATHER(argv, first, list);
	va_end(list);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *name, const char *first, ...)
{
	GATHER(argv, first, list);
	va_end(list);
	return execvpe(name, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *environment;

	GATHER(argv, first, list);
	environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, environment);
}
