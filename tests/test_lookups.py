"""Programs that ask dlsym(), which is ours: the functions that lead into a sandbox are seen, however they were found; every other answer is as without us."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import compile_c
from test_inside import plain_only

ITT = "--chrome-itt-logging"

# ---- sandboxes ----

SANDBOX = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ittnotify.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static __itt_domain *domain;
static void *lookup(const char *how, const char *name)
{
	if (!strcmp(how, "default")) return dlsym(RTLD_DEFAULT, name);
	if (!strcmp(how, "next")) return dlsym(RTLD_NEXT, name);
	if (!strcmp(how, "program")) return dlsym(dlopen(NULL, RTLD_NOW), name);
	return dlsym(dlopen("libc.so.6", RTLD_NOW), name);
}
static void tasks(const char *name, int n)
{
	char text[32];
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s %d", name, i);
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(text));
		__itt_task_end(domain);
	}
}
int main(int argc, char **argv)
{
	struct sock_filter allow[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 6, allow };
	const char *how = argv[1];
	int strict = !strcmp(argv[3], "strict"), direct = !strcmp(how, "direct"), failed;
	int (*own_prctl)(int, ...) = direct ? prctl : lookup(how, "prctl");
	long (*own_syscall)(long, ...) = direct ? syscall : lookup(how, "syscall");
	if (!own_prctl || !own_syscall || dlerror()) return 1;
	domain = __itt_domain_create("sandbox");
	tasks("before", 10);
	if (own_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 2;
	if (!strcmp(argv[2], "prctl"))
		failed = strict ? own_prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : own_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	else
		failed = own_syscall(SYS_seccomp, strict ? SECCOMP_SET_MODE_STRICT : SECCOMP_SET_MODE_FILTER, 0, strict ? NULL : &program);
	if (failed) own_syscall(SYS_exit, 3);
	tasks("within", 2000);
	write(1, "sealed\n", 7);
	own_syscall(SYS_exit, 0);
}
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("lookups") / "sandbox", SANDBOX)


@plain_only
@pytest.mark.parametrize("mode", ["filter", "strict"])
@pytest.mark.parametrize("name", ["prctl", "syscall"])
@pytest.mark.parametrize("how", ["direct", "default", "next", "program", "library"])
def test_a_sandbox_by_any_lookup(xstrace, sandbox, how, name, mode):
    words = [sandbox, [how, name, mode]]
    bare = xstrace.bare(*words)
    run = xstrace(f"{ITT} --ring-size 256K", *words)
    assert (bare.status, bare.out) == (0, "sealed\n")
    assert (run.status, run.out, run.err) == (bare.status, bare.out, "")
    names = [task.name for task in run.trace.tasks]
    assert names[:10] == [f"sandbox::before {i}" for i in range(10)]
    assert any("strict mode" in line if mode == "strict" else "sandbox (seccomp)" in line for line in run.said)


@plain_only
@pytest.mark.parametrize("options", [ITT, f"{ITT} --chrome-mpi-logging"])
def test_a_sandbox_where_mpis_library_is_in_front(xstrace, sandbox, options):
    """It has a dlsym() of its own, which leads to ours."""
    run = xstrace(options, sandbox, ["library", "syscall", "filter"])
    assert (run.status, run.out) == (0, "sealed\n")
    assert any("sandbox (seccomp)" in line for line in run.said)


STARTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter forbid[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, forbid };
	const char *how = argv[1], *path = "/usr/bin/env";
	char *words[] = { "env", NULL }, *copy[512] = { NULL };
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	int status = 0;
	pid_t pid;
	for (int i = 0; i < 511 && environ[i]; i++) copy[i] = environ[i];
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;
	if (!strcmp(how, "execve")) ((int (*)(const char *, char **, char **))dlsym(libc, "execve"))(path, words, copy);
	if (!strcmp(how, "execvpe")) ((int (*)(const char *, char **, char **))dlsym(libc, "execvpe"))("env", words, copy);
	if (!strcmp(how, "execveat")) execveat(AT_FDCWD, path, words, copy, 0);
	if (!strcmp(how, "descriptor")) execveat(open(path, O_RDONLY), "", words, copy, AT_EMPTY_PATH);
	if (!strcmp(how, "number")) syscall(SYS_execve, path, words, copy);
	if (!strcmp(how, "numberat")) syscall(SYS_execveat, AT_FDCWD, path, words, copy, 0);
	if (!strcmp(how, "spawn") &&
	    !((int (*)(pid_t *, const char *, void *, void *, char **, char **))dlsym(libc, "posix_spawn"))(&pid, path, NULL, NULL, words, copy) &&
	    waitpid(pid, &status, 0) == pid)
		return status;
	return 3;
}
"""


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("starts") / "starts", STARTS)


@plain_only
@pytest.mark.parametrize("how", ["execve", "execvpe", "execveat", "descriptor", "number", "numberat", "spawn"])
def test_a_program_that_is_started_in_a_sandbox(xstrace, starts, how):
    """It gets nothing of ours, whatever starts it: our library would make calls that end it."""
    bare, run = xstrace.bare(starts, [how]), xstrace(ITT, starts, [how])
    variables = {line.split("=")[0] for line in run.out.splitlines()}
    assert (bare.status, run.status) == (0, 0) and "PATH" in variables
    assert not variables & {"XSTRACE_RUN", "LD_PRELOAD"}


def test_the_parent_by_ctypes(xstrace):
    """Python's own function and the C library's agree: the parent is who has started xstrace."""
    run = xstrace(ITT, sys.executable, ["-c", "import ctypes, os; print(os.getppid(), ctypes.CDLL('libc.so.6').getppid())"])
    assert run.out.split() == [str(os.getpid())] * 2


PYTHON = """
import ctypes, os, struct, sys
libc = ctypes.CDLL("libc.so.6")
def work(n): return n
for i in range(100): work(i)
allowed = 1, 3, 5, 8, 9, 10, 11, 12, 60, 72, 202, 231, 262
steps = [(0x20, 0, 0, 0)] + [(0x15, len(allowed) - i, 0, n) for i, n in enumerate(allowed)] + [(6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(text))
libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, ctypes.byref(program), 0, 0)
for i in range(1000): work(i)
os.write(1, b"sealed\\n")
os._exit(0)
"""


@plain_only
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_a_sandbox_by_ctypes(xstrace):
    words = [sys.executable, ["-c", PYTHON]]
    bare = xstrace.bare(*words)
    if (bare.status, bare.out) != (0, "sealed\n"):
        pytest.skip("this Python makes other system calls")
    run = xstrace("--python-stacks", *words)
    assert (run.status, run.out, run.err) == (0, "sealed\n", "")
    assert sum(re.search(r"(^|\W)work\b", task.name) is not None for task in run.trace.tasks) >= 100
    assert any("sandbox (seccomp)" in line for line in run.said)


# ---- a library with such a function of its own ----

# behind us: ours calls it. It asks the C library alone, and must not get ours, which would call it again
OWN_PRCTL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <unistd.h>
static int depth;
int prctl(int option, ...)
{
	int (*next)(int, ...) = dlsym(dlopen("libc.so.6", RTLD_NOW), "prctl");
	va_list list;
	va_start(list, option);
	unsigned long a = va_arg(list, unsigned long);
	va_end(list);
	if (depth++) _exit(77);
	int result = next(option, a, 0, 0, 0);
	depth--;
	write(1, "own\n", 4);
	return result;
}
"""
CALLS_PRCTL = r"""
#include <sys/prctl.h>
int main(void) { return prctl(PR_SET_DUMPABLE, 1) || prctl(PR_GET_DUMPABLE) != 1 ? 1 : 7; }
"""


@plain_only
@pytest.mark.parametrize("how", ["linked", "preloaded"])
def test_a_library_that_has_the_function_too(xstrace, tmp_path, how):
    library = compile_c(tmp_path / "libown.so", OWN_PRCTL, "-shared", "-fPIC")
    program = compile_c(
        tmp_path / "calls", CALLS_PRCTL, *(["-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}"] if how == "linked" else [])
    )
    env = {"LD_PRELOAD": str(library)} if how == "preloaded" else {}
    bare = xstrace.bare(program, env=env)
    run = xstrace(ITT, program, env=env)
    assert (bare.status, bare.out) == (7, "own\nown\n")
    assert (run.status, run.out, run.err) == (bare.status, bare.out, "")


# behind us, and linked with the C library: the next prctl() is the C library's
NEXT_PRCTL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
int is_next(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	int (*next)(int, ...) = dlsym(RTLD_NEXT, "prctl"), (*ours)(int, ...) = dlsym(libc, "prctl"), (*all)(int, ...) = dlsym(RTLD_DEFAULT, "prctl");
	Dl_info info;
	return ours == all && next != ours && dladdr(next, &info) && info.dli_fbase != 0 && next == dlvsym(libc, "prctl", VERSION);
}
"""


@plain_only
def test_the_next_one_is_not_ours(xstrace, tmp_path):
    """Who stands in front of a function asks for the next one, to call it."""
    version = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}.get(os.uname().machine) or pytest.skip("not known here")
    library = compile_c(tmp_path / "libnext.so", NEXT_PRCTL, "-shared", "-fPIC", f'-DVERSION="{version}"')
    text = "extern int is_next(void); int main(void) { return is_next() ? 7 : 1; }"
    program = compile_c(tmp_path / "calls", text, library, f"-Wl,-rpath,{tmp_path}")
    run = xstrace(ITT, program)
    assert (run.status, run.err) == (7, "")


# ---- all other questions ----

ASKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static const char *const names[] = {
	"puts", "printf", "prlimit", "pthread_create", "putchar", "p", "s", "system", "syslog", "sysconf", "prctl_", "syscalls", "malloc",
	"dlerror", "cos", "environ", "", "nowhere", "asked", "_dl_argv", "main", "pr", "sy", "prctlx", "synced",
};
__attribute__((noinline)) static void show(const char *who, const char *name, void *found, const char *error)
{
	Dl_info info;
	const char *object = found && dladdr(found, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
	printf("%s %s: ", who, name);
	if (!found) printf("%s\n", error ? error : "no error");
	else if (object) printf("%s+%lx\n", object, (long)found - (long)info.dli_fbase);
	else printf("somewhere\n");
}
/* its own code asks: with a call, and as its last deed, which is a jump */
static void *jumps(void *handle, const char *name) { return dlsym(handle, name); }
static void *(*volatile jump)(void *, const char *) = jumps;
void ASKED(const char *who)
{
	void *own = dlopen(OWN, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW), *program = dlopen(NULL, RTLD_NOW);
	struct { const char *name; void *handle; } asked[] = { { "next", RTLD_NEXT }, { "default", RTLD_DEFAULT }, { "own", own }, { "libc", libc }, { "program", program } };
	char text[64];
	for (unsigned i = 0; i < 5; i++)
		for (unsigned n = 0; n < sizeof(names) / sizeof(*names); n++) {
			void *found;
			snprintf(text, sizeof(text), "%s %s", who, asked[i].name);
			found = dlsym(asked[i].handle, names[n]);
			show(text, names[n], found, dlerror());
			found = jump(asked[i].handle, names[n]);
			show(text, names[n], found, dlerror());
		}
	/* an error stays until a question is answered; what is found leaves none */
	const char *watched[] = { "prctl", "syscall" };
	for (int i = 0; i < 2; i++) {
		dlsym(libc, "nowhere");
		void *found = dlsym(libc, watched[i]), *none;
		printf("%s %s %d %s\n", who, watched[i], !!found, dlerror());
		none = dlsym(own, "nowhere");
		printf("%s %d %s\n", who, !!none, dlerror());
		printf("%s %s\n", who, dlerror());
		none = dlsym(dlopen("libm.so.6", RTLD_NOW), i ? "syscall_" : "prctl_");
		printf("%s %d %s\n", who, !!none, dlerror());
	}
}
"""
LIBRARY = r"""
int puts(const char *text) { return printf("%s\n", text); }
int synced(void) { return 1; }
"""
PROGRAM = r"""
extern void in_library(const char *who);
static void *thread(void *plugin) { ((void (*)(const char *))plugin)("thread"); ASKED("thread"); return NULL; }
/* before main(), and before the constructors of others */
__attribute__((constructor(101))) static void early(void) { show("early", "printf", dlsym(RTLD_NEXT, "printf"), dlerror()); }
int main(void)
{
	void *local = dlopen(LOCAL, RTLD_NOW | RTLD_LOCAL), *deep = dlopen(DEEP, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	pthread_t id;
	if (!local || !deep) return 1;
	dlsym(local, "nowhere_at_all");
	ASKED("main");
	in_library("library");
	((void (*)(const char *))dlsym(local, "in_local"))("local");
	((void (*)(const char *))dlsym(deep, "in_deep"))("deep");
	pthread_create(&id, NULL, thread, dlsym(local, "in_local"));
	pthread_join(id, NULL);
	return 7;
}
"""


def asking(tmp_path):
    def source(name):
        return ASKS.replace("ASKED", name).replace("OWN", f'"{tmp_path}/liblibrary.so"')

    shared = ["-shared", "-fPIC", "-foptimize-sibling-calls"]
    compile_c(tmp_path / "liblibrary.so", source("in_library") + LIBRARY, *shared)
    for name in "local", "deep":
        compile_c(tmp_path / f"lib{name}.so", source(f"in_{name}") + LIBRARY, *shared, "-lm")
    places = [f'-D{name.upper()}="{tmp_path}/lib{name}.so"' for name in ("local", "deep")]
    flags = ["-rdynamic", "-foptimize-sibling-calls", *places, "-Wl,--no-as-needed", tmp_path / "liblibrary.so", f"-Wl,-rpath,{tmp_path}"]
    return compile_c(tmp_path / "asking", source("in_main") + PROGRAM.replace("ASKED", "in_main"), *flags)


@plain_only
@pytest.mark.parametrize("options", [ITT, "--chrome-mpi-logging", "--stacks-on-crash --python-stacks -h"])
def test_every_other_answer(xstrace, tmp_path, options):
    program = asking(tmp_path)
    bare = xstrace.bare(program)
    run = xstrace(options, program)
    assert bare.status == run.status == 7
    assert bare.out.count("\n") > 1500 and "undefined symbol: nowhere" in bare.out and "liblibrary.so: undefined symbol" in bare.out
    assert run.out.splitlines() == bare.out.splitlines()


# a library that has a dlsym() of its own, as overlays of games do: a preloaded one comes before us, a linked one behind us
OWN_DLSYM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
static int there(void) { return 42; }
void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);
	if (!next) next = dlvsym(RTLD_NEXT, "dlsym", VERSION);
	return strcmp(name, "only_here") ? next(handle, name) : there;
}
"""
ASKS_OWN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	int (*here)(void) = dlsym(RTLD_DEFAULT, "only_here");
	int (*print)(const char *) = dlsym(dlopen("libc.so.6", RTLD_NOW), "puts");
	int (*control)(int, ...) = dlsym(dlopen("libc.so.6", RTLD_NOW), "prctl");
	print(here && here() == 42 && control(3, 0, 0, 0, 0) == 1 ? "found" : "not found");
	return 0;
}
"""


@plain_only
@pytest.mark.parametrize("how", ["linked", "preloaded"])
def test_a_dlsym_of_the_users(xstrace, tmp_path, how):
    version = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}.get(os.uname().machine, "GLIBC_2.34")
    library = compile_c(tmp_path / "libown.so", OWN_DLSYM, "-shared", "-fPIC", f'-DVERSION="{version}"')
    program = compile_c(
        tmp_path / "asks", ASKS_OWN, *(["-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}"] if how == "linked" else [])
    )
    env = {"LD_PRELOAD": str(library)} if how == "preloaded" else {}
    bare = xstrace.bare(program, env=env)
    run = xstrace(ITT, program, env=env)
    assert (bare.status, bare.out) == (0, "found\n")
    assert (run.status, run.out, run.err) == (0, "found\n", "")


MUSL = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <sys/prctl.h>
int main(void)
{
	void *libc = dlopen("libc.so", RTLD_NOW);
	int (*print)(const char *) = dlsym(libc, "puts"), (*control)(int, ...) = dlsym(libc, "prctl");
	void *none = dlsym(RTLD_DEFAULT, "nowhere");
	printf("%d %s\n", !!none, dlerror());
	print(control && control(PR_GET_DUMPABLE) == 1 && dlsym(RTLD_NEXT, "printf") ? "found" : "not found");
	return 0;
}
"""


@plain_only
@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl")
def test_a_program_of_musl(xstrace, tmp_path):
    """Its functions have no versions."""
    source = tmp_path / "asks.c"
    source.write_text(MUSL)
    subprocess.run(["musl-gcc", "-w", "-o", tmp_path / "asks", source], check=True)
    bare = xstrace.bare(tmp_path / "asks")
    if bare.status:
        pytest.skip("musl's loader is not there")
    run = xstrace(ITT, tmp_path / "asks")
    assert (run.status, run.out) == (0, bare.out) and "found\n" in run.out


@plain_only
def test_cost_of_the_common_path():
    """A question for another name is a jump, and not a call: who asks is known by the return address."""
    from conftest import BUILD

    code = subprocess.run(
        ["objdump", "-d", "--disassemble=dlsym", BUILD / "collector/libxstrace.so"], check=True, capture_output=True, text=True
    ).stdout
    assert len(re.findall(r"\t(?:call|bl)\b", code)) == 1


# the dynamic loader binds the libraries that were loaded last first: we are not bound yet when it asks this function
RESOLVED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
static int found(void) { return 1; }
static int not_found(void) { return 2; }
static void *resolve(void) { return dlsym(RTLD_DEFAULT, "puts") ? (void *)found : (void *)not_found; }
int resolved(void) __attribute__((ifunc("resolve")));
/* before our constructors: the same question again */
__attribute__((constructor)) static void ask(void) { if (!dlsym(RTLD_DEFAULT, "puts")) __builtin_trap(); }
"""
RESOLVES = "int resolved(void); int (*pointer)(void) = resolved; int resolves(void) { return resolved(); }"


@plain_only
def test_an_answer_before_we_are_bound(xstrace, tmp_path):
    """An indirect function gets none, and this is not kept in mind."""
    library = compile_c(tmp_path / "libresolved.so", RESOLVED, "-shared", "-fPIC")
    path = f"-Wl,-rpath,{tmp_path}"
    other = compile_c(tmp_path / "libresolves.so", RESOLVES, "-shared", "-fPIC", library, path, "-Wl,-z,now")
    program = compile_c(tmp_path / "program", "int resolves(void); int main(void) { return resolves() ? 7 : 1; }", other, library, path)
    run = xstrace(ITT, program)
    assert (run.status, run.err) == (7, "")


WAITING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include "ittnotify.h"
static __itt_domain *domain;
static void named(void) { __itt_task_end(domain); }
static void *calls(void *name)
{
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (void *)named);
	named();
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (void *)puts);
	named();
	return (void *)(long)(prctl(PR_SET_NAME, "within") || setenv("WITHIN", "1", 1) || unsetenv("WITHIN") || putenv(name));
}
void start(void)
{
	void *failed = NULL;
	pthread_t thread;
	pthread_create(&thread, NULL, calls, "WITHIN=2");
	pthread_join(thread, &failed);
	printf("%s\n", failed ? "failed" : "went on");
}
int main(int argc, char **argv)
{
	domain = __itt_domain_create("loading");
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("before"));
	named();
	if (dlopen("/nonexistent", RTLD_NOW)) return 1;
	setenv("BEFORE", "1", 1);
	puts(dlerror() ? "told" : "not told");
	return !dlopen(argv[1], RTLD_NOW);
}
"""
WAITS = "void start(void); __attribute__((constructor)) static void begin(void) { start(); }"


def test_a_thread_that_a_constructor_waits_for(xstrace, tmp_path):
    """dlopen() holds the loader's lock meanwhile: the thread must not need it for us. Nor do we take the program's dlerror()."""
    app = compile_c(tmp_path / "waiting", WAITING, "-rdynamic")
    library = compile_c(tmp_path / "waits.so", WAITS, "-shared", "-fPIC")
    run = xstrace("--chrome-itt-logging", app, [library], timeout=30)
    assert (run.status, run.out) == (0, "told\nwent on\n")
    names = [task.name for task in run.trace.tasks]
    assert names[0] == "loading::before" and names[2] == "loading::puts" and names[1].startswith("loading::waiting+0x")
