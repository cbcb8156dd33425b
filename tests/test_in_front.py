"""Functions in front of the C library's: the program's own, a sanitizer's, valgrind's. Ours neither call them by accident nor are judged by them."""

import re
import shutil
import subprocess

import pytest

from conftest import APPS, BUILD, ROOT, compile_c
from test_inside import plain_only

ITT = "--chrome-itt-logging"
LIBRARIES = sorted(path.name for path in (BUILD / "collector").glob("libxstrace*.so"))

# as Erlang's emulator does it: each calls the next function of its name. Whoever calls one of them is told, and stopped if it comes again and again
OWN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int calls;

static void *next(const char *name)
{
	dprintf(1, "%s\n", name);
	if (++calls > 50)
		_exit(77);
	return dlsym(RTLD_NEXT, name);
}
#define NEXT(name) ((__typeof__(&name))next(#name))

int __sigaction(int n, const struct sigaction *to, struct sigaction *was)
{
	return ((__typeof__(&sigaction))next("__sigaction"))(n, to, was);
}
int sigaction(int n, const struct sigaction *to, struct sigaction *was)
{
	return ((__typeof__(&sigaction))next("__sigaction"))(n, to, was);
}
int execve(const char *path, char *const *argv, char *const *environment)
{
	return NEXT(execve)(path, argv, environment);
}
int execvpe(const char *name, char *const *argv, char *const *environment)
{
	return NEXT(execvpe)(name, argv, environment);
}
int execv(const char *path, char *const *argv) { return NEXT(execv)(path, argv); }
int execvp(const char *name, char *const *argv) { return NEXT(execvp)(name, argv); }
void *dlopen(const char *path, int mode) { return NEXT(dlopen)(path, mode); }
int dlclose(void *library) { return NEXT(dlclose)(library); }

static void end(int n)
{
	_exit(7);
}

int main(int argc, char **argv)
{
	char *echo[] = { "echo", "ran", NULL };
	struct sigaction action = { .sa_handler = end };
	void *library;

	for (int how = 0; how < 5; how++)
		if (!fork()) {
			switch (how) {
			case 0: execv("/bin/echo", echo);
			case 1: execvp("echo", echo);
			case 2: execl("/bin/echo", "echo", "ran", NULL);
			case 3: execlp("echo", "echo", "ran", NULL);
			case 4: execle("/bin/echo", "echo", "ran", NULL, environ);
			}
			_exit(1);
		} else
			wait(NULL);
	library = dlopen("libm.so.6", RTLD_NOW);
	dlclose(library);
	sigaction(SIGSEGV, &action, NULL);
	raise(SIGSEGV);
}
"""


@plain_only
@pytest.mark.parametrize("name", LIBRARIES)
def test_no_library_looks_for_its_own_functions(name):
    """A call by way of the dynamic loader leads into a program that has a function of that name, which calls the next one: ours again."""
    path = BUILD / "collector" / name
    relocations = subprocess.run(["readelf", "-rW", path], check=True, capture_output=True, text=True).stdout
    looked_for = set(re.findall(r" R_\w+ +[0-9a-f]+ +([\w.]+)", relocations))
    assert len(relocations.splitlines()) > 5
    symbols = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    functions = {line.split()[-1].partition("@")[0] for line in symbols.splitlines() if line.split()[-2] in "TW"}
    assert looked_for & functions == set()


@pytest.mark.parametrize("options", [ITT, "--stacks-on-crash -h", "--chrome-mpi-logging"])
def test_a_program_with_functions_of_those_names(xstrace, tmp_path, options):
    program = compile_c(tmp_path / "own", OWN, "-rdynamic")
    bare = xstrace.bare(program)
    run = xstrace(options, program)
    assert bare.status == 7 and bare.out.count("ran") == 5
    assert (run.status, run.out) == (bare.status, bare.out)


# ---- sanitizers ----

# a deep frame of the program leaves behind, where our frames come, what MemorySanitizer takes for never written
TASKS = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dlfcn.h>

__attribute__((noinline)) static void deep(void)
{
	char frame[200000];

	__asm__ volatile("" : : "r"(frame) : "memory");
}

static void *work(void *unused)
{
	__itt_domain *domain = __itt_domain_create("domain");
	char name[32];

	if (!domain)
		return NULL;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "task %d", i);
		__itt_string_handle *handle = __itt_string_handle_create(name);
		deep();
		__itt_task_begin(domain, __itt_null, __itt_null, handle);
		deep();
		__itt_metadata_str_add(domain, __itt_null, handle, name, strlen(name));
		deep();
		__itt_task_end(domain);
		__itt_thread_set_name(name);
		deep();
		__itt_sync_create(&name, "type", name, 0);
		__itt_sync_prepare(&name);
		__itt_sync_acquired(&name);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	deep();
	__itt_domain_create("domain"); /* before there are threads: ittnotify's own race */
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	deep();
	dlclose(dlopen("libm.so.6", RTLD_NOW));
	setenv("LD_PRELOAD", "", 1);
	deep();
	system("echo ran");
	return 5;
}
"""


def sanitized(compiler, kind, path):
    """None: this machine cannot build it."""
    if not shutil.which(compiler):
        return None
    ittapi = ROOT / ".deps/ittapi"
    source = path.with_suffix(".c")
    source.write_text(TASKS)
    # MemorySanitizer must know all of the program's code; ittnotify's is none of what ThreadSanitizer is asked about
    itt = ["-I", ittapi / "src/ittnotify", ittapi / "src/ittnotify/ittnotify_static.c"] if kind == "memory" else [APPS / "libittnotify.a"]
    command = [compiler, "-w", "-O1", f"-fsanitize={kind}", "-o", path, source, "-I", ittapi / "include", *itt, "-ldl", "-pthread"]
    return None if subprocess.run(command, capture_output=True).returncode else path


@pytest.mark.long(keep=1)
@plain_only
@pytest.mark.parametrize("options", [ITT, f"{ITT} --python-stacks -h", f"{ITT} --chrome-sycl-logging --call-stacks -h --stacks-on-crash"])
@pytest.mark.parametrize("compiler,kind", [("clang", "memory"), ("cc", "thread"), ("cc", "address")])
def test_sanitizers_find_nothing_of_ours(xstrace, tmp_path, compiler, kind, options):
    program = sanitized(compiler, kind, tmp_path / "tasks") or pytest.skip(f"no {compiler} with this sanitizer")
    bare = xstrace.bare(program)
    if (bare.status, bare.out) != (5, "ran\n"):
        pytest.skip("the sanitizer does not run here")
    run = xstrace(options, program)
    assert (run.status, run.out) == (bare.status, bare.out), run.err
    assert "Sanitizer" not in run.err
    assert max(trace.count("tasks") for trace in run.traces) == 400


# ---- valgrind ----

STARTS = r"""
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
	char *yes[] = { "true", NULL }, *own[] = { "A=1", NULL };
	char **heap = calloc(2, sizeof(*heap));
	pid_t child;

	heap[0] = malloc(4); /* a block with no room behind its text, and none written before it */
	heap[0][0] = 'A', heap[0][1] = '=', heap[0][2] = '1', heap[0][3] = '\0';
	posix_spawn(&child, "/bin/true", NULL, NULL, yes, environ);
	waitpid(child, NULL, 0);
	posix_spawn(&child, "/bin/true", NULL, NULL, yes, heap);
	waitpid(child, NULL, 0);
	execl("/nowhere", "nowhere", NULL);
	execve("/nowhere", yes, own);
	free(heap[0]);
	free(heap);
	return system("true") ? 1 : 5;
}
"""


@pytest.mark.long
@plain_only
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_valgrind_finds_nothing_of_ours(xstrace, tmp_path):
    """What it finds is the exit status, and lines on stderr."""
    words = ["-q", "--leak-check=full", "--error-exitcode=9", compile_c(tmp_path / "starts", STARTS)]
    bare = xstrace.bare("valgrind", words)
    if bare.status != 5:
        pytest.skip("valgrind finds something without us")
    for options in ITT, f"{ITT} --call-stacks -h --stacks-on-crash":
        run = xstrace(options, "valgrind", words)
        assert (run.status, run.err) == (bare.status, bare.err)
