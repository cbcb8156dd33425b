"""Programs that start, load or fork others: what comes of each under xstrace, and what is in the traces."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import APPS, NOBODY, ROOT, XSTRACE, Trace, alive, compile_c, copy_build, root_only, wait_until

ITT = "--chrome-itt-logging"
PY_MP = ROOT / "tests/apps/py_mp.py"


CHAIN = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long kilobytes(void)
{
	char line[256];
	long size = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), file) && !sscanf(line, "VmSize: %ld", &size))
		;
	fclose(file);
	return size;
}

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("d");
	__itt_string_handle *name = __itt_string_handle_create("t");
	long first = 0;

	for (int i = 0; i < atoi(argv[1]); i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
		first = first ? first : kilobytes();
		if (fork()) {
			wait(NULL);
			_exit(0);
		}
	}
	printf("%ld more\n", kilobytes() - first);
	return 0;
}
"""


def test_a_chain_of_forks_that_trace(xstrace):
    """Nobody keeps the rings of all its ancestors, as memory or as address space."""
    run = xstrace(ITT, compile_c(xstrace.home / "chain", CHAIN), [30], timeout=120)
    assert run.status == 0 and int(run.out.split()[0]) < 4096
    assert [trace.count("tasks") for trace in run.traces] == 30 * [1]


ONE_BY_ONE = r"""
#include <ittnotify.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	while (access(argv[1], F_OK))
		usleep(1000);
	for (int i = 0; i < 300; i++) {
		if (!fork()) {
			__itt_domain *domain = __itt_domain_create("d");

			__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("t"));
			__itt_task_end(domain);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
"""


def test_traces_of_children_that_have_ended_are_there_at_the_end(xstrace):
    """All, however late the drain process comes to them; xstrace has told of each when it ends."""
    app, go = compile_c(xstrace.home / "one_by_one", ONE_BY_ONE), xstrace.home / "go"
    run = xstrace.start(ITT, app, [go])
    drain = run.drain
    pid = run.child("one_by_one")
    os.kill(drain, signal.SIGSTOP)
    go.touch()
    wait_until(lambda: not alive(pid), timeout=30)
    os.kill(drain, signal.SIGCONT)
    assert run.process.wait(timeout=30) == 0
    assert len(list(run.cwd.glob("*.json"))) == 300
    run.finish()
    assert sum("Timeline is stored" in line for line in run.said) == 300


def test_shell_script(xstrace):
    script = xstrace.home / "script"
    script.write_text(
        f"#!/bin/sh\n{APPS}/itt_tasks 10\n{APPS}/itt_tasks 20 | cat\necho $1; exit 9\n"
    )
    script.chmod(0o755)
    run = xstrace(ITT, script, ["argument"])
    assert run.status == 9 and run.out.endswith("argument\n") and run.err == ""
    assert sorted(t.count("tasks") for t in run.traces) == [10, 20]


def test_script_without_an_interpreter_line(xstrace):
    """Shells and env(1) run it with sh."""
    script = xstrace.home / "script"
    script.write_text(f"{APPS}/itt_tasks 10\nexit 9\n")
    script.chmod(0o755)
    run = xstrace(ITT, script)
    assert run.status == 9 == xstrace.bare("env", [script]).status
    run.check_expected()


@pytest.mark.parametrize("line", ["#! ", "#!./other", "#!/bin/" + "./" * 200 + "sh"], ids=["blank", "a script", "long"])
def test_script_whose_interpreter_line_the_kernel_does_not_take(xstrace, line):
    """Then shells and env(1) run it with sh, too."""
    script = xstrace.cwd / "script"
    (xstrace.cwd / "other").write_text("no interpreter line\n")
    script.write_text(f"{line}\n{APPS}/itt_tasks 10\nexit 9\n")
    for one in (script, xstrace.cwd / "other"):
        one.chmod(0o755)
    run = xstrace(ITT, script)
    assert run.status == xstrace.bare("env", [script]).status
    if line != "#!./other":
        assert run.status == 9
        run.check_expected()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_python_multiprocessing(xstrace, method):
    bare = xstrace.bare(sys.executable, [PY_MP, method])
    run = xstrace(ITT, sys.executable, [PY_MP, method])
    assert (run.status, run.err) == (bare.status, bare.err)
    run.check_expected()
    assert len(run.traces) == 4


def test_many_processes(xstrace):
    """One after another and at once, each with a trace of its own."""
    script = f"for i in $(seq 40); do {APPS}/itt_tasks 3 & {APPS}/itt_tasks 4; done; wait"
    run = xstrace(ITT, "sh", ["-c", script])
    assert run.status == 0
    assert sorted(t.count("tasks") for t in run.traces) == [3] * 40 + [4] * 40
    assert len({t.metadata["run"] for t in run.traces}) == 1


@pytest.mark.parametrize("app, args", [("closer", []), ("closer", ["late"]), ("chdirer", [])])
def test_programs_that_disturb_tracers(xstrace, app, args):
    run = xstrace(ITT, app, args)
    assert run.status == 0
    run.check_expected()


@root_only
def test_program_that_drops_its_rights(xstrace):
    run = xstrace(ITT, "dropper")
    assert run.status == 0 and f"uid: {NOBODY}" in run.out
    run.check_expected()


def test_static_program(xstrace):
    run = xstrace(ITT, "static_hello")
    assert (run.status, run.out, run.err) == (5, "hello, static\n", "")
    assert sum("static" in line and "cannot be traced" in line for line in run.said) == 1


THIRTY_TWO = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { puts("hello, 32"); fflush(stdout); return system("true; exit 5") >> 8; }
"""


def test_a_program_of_32_bits(xstrace, tmp_path):
    """One line, xstrace's: nothing for its loader to complain about; what it starts is as untraced as it is."""
    program = tmp_path / "p"
    (tmp_path / "p.c").write_text(THIRTY_TWO)
    if subprocess.run(["cc", "-m32", "-o", program, tmp_path / "p.c"], capture_output=True).returncode:
        pytest.skip("the compiler makes no programs of 32 bits")
    if subprocess.run([program], capture_output=True).returncode != 5:
        pytest.skip("this machine runs no programs of 32 bits")
    run = xstrace(ITT, program)
    assert (run.status, run.out, run.err) == (5, "hello, 32\n", "") and run.traces == []
    assert run.said == [f"xstrace: {program} is not a 64-bit program: it runs, but neither it nor what it starts can be traced"]


@root_only
def test_setuid_program(xstrace, public):
    copy = shutil.copy(APPS / "env_probe", public / "setuid_probe")
    os.chown(copy, 1234, 1234)
    os.chmod(copy, 0o4755)
    copy_build(public)
    more = {"cwd": public, "user": NOBODY, "group": NOBODY, "extra_groups": []}
    bare = xstrace.bare(copy, **more)
    run = xstrace(ITT, copy, launcher=public / "launcher/xstrace", **more)
    uids = r"status Uid:\s+65534\s+1234"
    assert run.status == bare.status == 0
    assert re.search(uids, run.out) and re.search(uids, bare.out)
    assert len([line for line in run.said if "setuid" in line]) == 1
    assert run.err == ""


@root_only
def test_another_users_run_directory_is_private(xstrace):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    assert stat.S_IMODE(os.stat(run.dir).st_mode) == 0o700
    for name in os.listdir(run.dir):
        assert stat.S_IMODE(os.stat(f"{run.dir}/{name}").st_mode) == 0o600
    os.kill(run.pid, signal.SIGTERM)
    run.finish()


def test_xstrace_of_xstrace(xstrace):
    """The inner one's trace is the one that there is."""
    run = xstrace(ITT, XSTRACE, [ITT, APPS / "itt_tasks", "50"])
    assert run.status == 0
    run.check_expected()
    wait_until(lambda: not [d for d in os.listdir("/dev/shm") if d.startswith("xstrace-")])


@pytest.mark.long
def test_many_at_once(xstrace):
    runs = [xstrace.start(ITT, "itt_tasks", [2000 + i, 2]) for i in range(12)]
    for run in runs:
        run.wait()
        assert run.status == 0
        run.collect()
    counts = {path: Trace(path).count("tasks") for run in runs for path in run.trace_files}
    assert sorted(counts.values()) == [2 * (2000 + i) for i in range(12)]


@root_only
@pytest.mark.parametrize(
    "flags", ["-pf", "-pf --mount-proc", "-Ur", "-Urpf --mount-proc", "-n", "-m"]
)
def test_program_in_namespaces(xstrace, flags):
    """As sandboxes make them: there, pids are others."""
    words = ["unshare", *flags.split(), str(APPS / "itt_tasks"), "20"]
    if xstrace.bare("unshare", words[1:]).status:
        pytest.skip("not allowed here")
    run = xstrace(ITT, "unshare", words[1:])
    assert run.status == 0
    run.check_expected()


@root_only
def test_a_process_of_a_namespace_without_proc(xstrace):
    """It cannot tell which namespace it is in; its number there is that of a stranger here, who may live for ever."""
    script = f"umount -l /proc; {APPS}/itt_tasks 20; exec {APPS}/itt_tasks 20"
    run = xstrace(ITT, "unshare", ["-pf", "--mount", "sh", "-c", script], timeout=30)
    assert run.status == 0
    assert sorted(trace.count("tasks") for trace in run.traces) == [20, 20]


@root_only
def test_the_same_pid_in_another_namespace(xstrace):
    """That is not the application, which has ended with another status."""
    within = f"echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid && {APPS}/itt_steps tasks a 5 wait; :"
    script = 'exec 3<&0; unshare -pf sh -c "$1" sh $$ <&3 & echo $$; exit 3'
    run = xstrace.start(ITT, "sh", ["-c", script, "sh", within], stdin=subprocess.PIPE)
    (path,) = wait_until(lambda: list(xstrace.cwd.glob("itt_steps.*")))
    run.wait()
    run.process.stdin.close()
    trace = run.collect().trace
    assert (run.status, path.name.split(".")[1]) == (3, run.out.splitlines()[0])
    assert trace.count("tasks") == 5 and trace.other.get("status") in (None, 0)


@root_only
def test_proc_of_another_namespace(xstrace):
    """There, others have our numbers: whether the application runs cannot be seen, and nobody waits for a stranger."""
    for words in (["-pf"], ["-m", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh"]):
        command = ["unshare", *words, XSTRACE, ITT, APPS / "itt_tasks", "5"]
        done = subprocess.run(command, cwd=xstrace.cwd, capture_output=True, text=True, timeout=30)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 125 and line.startswith("xstrace: /proc is missing or shows another PID namespace")
        assert not done.stdout and not list(xstrace.cwd.iterdir())


@root_only
def test_xstrace_as_process_1(xstrace):
    """Its end is that of all in the namespace: what still runs there has its trace, and no run directory stays."""
    script = f"({APPS}/itt_steps tasks a 10; sleep 100) & {APPS}/itt_steps tasks b 20; sleep 0.5; exit 3"
    within = 'mount -t tmpfs none /dev/shm; unshare -pf --mount-proc "$@"; status=$?; ls /dev/shm >&2; exit $status'
    words = ["unshare", "-m", "sh", "-c", within, "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("not allowed here")
    command = [*words, XSTRACE, ITT, "sh", "-c", script]
    done = subprocess.run(command, cwd=xstrace.cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and all(line.startswith("[INFO]") for line in done.stderr.splitlines())
    assert sorted(Trace(path).count("tasks") for path in xstrace.cwd.glob("itt_steps.*.json")) == [10, 20]


@pytest.mark.parametrize("part", range(2))
def test_an_exec_at_the_end_of_the_application(tmp_path, part):
    """The only process of the run has neither arguments nor environment then: it is waited for, and has its trace."""
    script = f"{'env A=1 ' * 6} {APPS}/itt_tasks 5 & exit 3"
    for i in range(40):
        home = tmp_path / str(i)
        home.mkdir()
        assert subprocess.run([XSTRACE, ITT, "sh", "-c", script], cwd=home, capture_output=True).returncode == 3
        (path,) = wait_until(lambda home=home: list(home.glob("itt_tasks.*.json")), 10)
        wait_until(lambda path=path: path.read_text().endswith("]}}\n"))
        assert sum(thread["records"] for thread in Trace(path).other["threads"]) == 10


def test_process_that_ends_while_its_child_traces(xstrace):
    """Orphans of orphans, each with a trace."""
    script = f"(({APPS}/itt_tasks 5; sleep 0.1; {APPS}/itt_tasks 6) &) & exec {APPS}/itt_tasks 4"
    run = xstrace(ITT, "sh", ["-c", script])
    assert sorted(t.count("tasks") for t in run.traces) == [4, 5, 6]


THREADS_AND_KEYS = r"""
#include <ittnotify.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static pthread_key_t key;
static void trace(void)
{
	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_task_end(domain);
}
static void at_end(void *left)
{
	trace();
	if (left > (void *)1) pthread_setspecific(key, left - 1);
}
static void *body(void *n) { if (n) pthread_setspecific(key, n); trace(); return NULL; }
int main(int argc, char **argv)
{
	long count = atol(argv[1]), again = atol(argv[2]), at_once = atol(argv[3]);
	pthread_attr_t attr;
	pthread_t ids[64];
	domain = __itt_domain_create("d"); name = __itt_string_handle_create("n");
	pthread_key_create(&key, at_end); /* before the collector's: its destructors run first */
	trace();
	if (argc > 4) {
		struct rlimit none = { 3, 3 };
		setrlimit(RLIMIT_NOFILE, &none);
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (long i = 0; i < count; i += at_once) {
		for (long k = 0; k < at_once; k++)
			if (pthread_create(&ids[k], &attr, body, (void *)again)) return 1;
		for (long k = 0; k < at_once; k++) pthread_join(ids[k], NULL);
	}
	printf("expected: %ld tasks d::n\n", 1 + count * (1 + again));
	return 0;
}
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("again, at_once", [(0, 4), (1, 4), (4, 4), (4, 8), (4, 16)])
def test_threads_that_trace_at_their_very_end(xstrace, again, at_once):
    """On the smallest stacks; destructors of thread data trace when ours has already run. Rings of the dead have one new owner each."""
    app = compile_c(xstrace.home / "keys", THREADS_AND_KEYS)
    run = xstrace.start(ITT, app, [4000, again, at_once])
    peak = 0
    while run.process.poll() is None:
        with contextlib.suppress(OSError):
            # the drain process's own, as the backlog, come and go as busy as the machine is
            peak = max(peak, sum(name.startswith("p") for name in os.listdir(run.dir or "")))
        time.sleep(0.005)
    run.finish().check_expected()
    assert run.trace.other["lost"] == 0
    assert 1 <= peak <= 2  # the first file, at most one segment


FORKS = r"""
#include <ittnotify.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static volatile int children, am_child;
static int traces;
static const char *by;
static void pairs(long n)
{
	while (n--) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
}
static void *body(void *unused) { pairs(10); return NULL; }
static void handler(int number)
{
	pid_t pid = !by ? fork() : *by == '_' ? _Fork() : *by == 'f' ? syscall(SYS_fork) : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		am_child = 1;
		usleep(3000); /* the parent goes on meanwhile */
		if (traces) { pairs(100); _exit(0); }
		return; /* into what was interrupted */
	}
	if (traces) while (waitpid(pid, NULL, 0) < 0 && errno == EINTR);
	children++;
}
int main(int argc, char **argv)
{
	struct itimerval once = { { 0 }, { 0, 200 } }; /* a few thousand tasks */
	long made = 1;
	int before = -1;
	domain = __itt_domain_create("d"); name = __itt_string_handle_create("n");
	pairs(1);
	if (!strcmp(argv[1], "thread") || !strcmp(argv[1], "raw")) {
		/* raw: nobody who watches forks hears of it */
		pid_t pid = *argv[1] == 'r' ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
		if (!pid) {
			pthread_t id;
			pthread_create(&id, NULL, body, NULL);
			pthread_join(id, NULL);
			pairs(100);
			_exit(0);
		}
		pairs(5);
		waitpid(pid, NULL, 0);
		pairs(3);
		printf("expected: 9 tasks d::n\n");
		return 0;
	}
	traces = !strcmp(argv[1], "traces");
	by = argv[2];
	signal(SIGALRM, handler);
	while (children < 100 && !am_child) {
		if (before != children) { before = children; setitimer(ITIMER_REAL, &once, NULL); }
		pairs(1);
		made++;
	}
	if (am_child) _exit(0);
	while (wait(NULL) > 0 || errno == EINTR);
	printf("expected: %ld tasks d::n\n", made);
	printf("%d children\n", children);
	return 0;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("how", ["thread", "raw", "returns", "traces", "returns _Fork", "returns fork", "returns clone", "traces _Fork"])
def test_a_child_never_writes_into_its_parents_ring(xstrace, how):
    """Another thread of the child is the first to trace; or the child was forked in a handler, within an event, which it then ends."""
    app = compile_c(xstrace.home / "forks", FORKS)
    run = xstrace(ITT, app, how.split())
    parent, *children = sorted(run.traces, key=lambda trace: trace.pid)
    expected = int(re.search(r"expected: (\d+)", run.out)[1])
    assert parent.count("tasks", "d::n") == expected and parent.other["lost"] == 0
    assert not [line for line in run.said if "not as they should be" in line or "not as it should be" in line]
    if how in ("thread", "raw"):
        assert [trace.count("tasks", "d::n") for trace in children] == [110]
    if how.startswith("traces"):
        shown = sum(trace.count("tasks", "d::n") for trace in children)
        lost = sum(int(found[1]) for line in run.said if (found := re.search(r"(\d+) events of process", line)))
        assert 2 * shown + lost == 2 * 100 * int(re.search(r"(\d+) children", run.out)[1])


KEPT = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[8192], rights[5];
	int status;
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("n"));
	__itt_task_end(domain);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && rights[3] == 's')
			madvise((void *)from, to - from, MADV_DONTFORK);
	if (!fork()) _exit(5);
	wait(&status);
	printf("%d\n", status);
	return 0;
}
"""


def test_a_child_without_our_mappings_that_does_not_trace(xstrace):
    run = xstrace(ITT, compile_c(xstrace.home / "kept", KEPT))
    assert (run.status, run.out) == (0, "1280\n")


def test_no_descriptor_left(xstrace):
    """With more threads than the first file has rings: what cannot be recorded is counted."""
    app = compile_c(xstrace.home / "keys", THREADS_AND_KEYS)
    run = xstrace(ITT, app, [960, 0, 48, "no descriptors"])
    assert run.status == 0 and run.err == ""
    other = run.trace.other
    assert other["events"] + other["lost"] == 2 * 961


@root_only
def test_after_chroot(xstrace):
    """No path is valid any more."""
    body = """
import os, threading
from ittapi import domain, string_handle, task_begin, task_end
d, s = domain("d"), string_handle("s")
def work(*unused):
    task_begin(d, s)
    task_end(d)
    barrier.wait()
barrier = threading.Barrier(1)
work()
os.chroot("/proc/self/fd")
os.chdir("/")
barrier = threading.Barrier(30)
threads = [threading.Thread(target=work) for _ in range(30)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
"""
    run = xstrace(ITT, sys.executable, ["-c", body])
    assert (run.status, run.out, run.err) == (0, "done\n", "")
    assert run.trace.other["events"] + run.trace.other["lost"] == 2 * 31


def test_fork_while_other_threads_trace(xstrace):
    """The child has no thread but one, and maybe a lock that nobody will open."""
    source = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static __itt_domain *d; static __itt_string_handle *s; static volatile int stop;
static void trace(void) { __itt_task_begin(d, __itt_null, __itt_null, s); __itt_task_end(d); }
static void *thread(void *x) { trace(); return x; }
static void *loop(void *x)
{
	pthread_t t;
	while (!stop) { pthread_create(&t, NULL, thread, NULL); pthread_join(t, NULL); trace(); }
	return x;
}
int main(void)
{
	pthread_t t[3];
	int bad = 0, status;
	d = __itt_domain_create("d"); s = __itt_string_handle_create("s");
	trace(); /* or we fork while ittnotify itself starts, with its lock held */
	for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, loop, NULL);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (!pid) {
			alarm(10);
			trace();
			pthread_create(&t[0], NULL, thread, NULL);
			pthread_join(t[0], NULL);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	stop = 1;
	for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
	printf("bad %d\n", bad);
	return 0;
}
"""
    run = xstrace(ITT, compile_c(xstrace.home / "forks", source))
    assert (run.status, run.out) == (0, "bad 0\n")
    assert len(run.traces) == 61
    assert sorted(t.count("tasks") for t in run.traces)[:60] == [2] * 60


# As the static part looks for a collector, with a table that takes long to fill.
LONG_START = r"""
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define ROWS 3000000
struct row { const char *name; void **function; void *init, *null; int group; };
static struct {
	unsigned char magic[8];
	unsigned long version[3];
	volatile long initialized, mutex_initialized, counter;
	pthread_mutex_t mutex;
	void *library, *handler;
	const char **path;
	struct row *rows;
} global = { .mutex_initialized = 1, .counter = 1, .mutex = PTHREAD_MUTEX_INITIALIZER };
static void *volatile first, *volatile last;
static void *start(void *x)
{
	void (*init)(void *, int);
	pthread_mutex_lock(&global.mutex);
	global.library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY);
	*(void **)&init = dlsym(global.library, "__itt_api_init");
	init(&global, ~0);
	global.initialized = 1;
	pthread_mutex_unlock(&global.mutex);
	return x;
}
int main(void)
{
	pthread_t thread;
	int status, in_time;
	global.rows = calloc(ROWS + 1, sizeof(*global.rows));
	for (int i = 0; i < ROWS; i++)
		global.rows[i] = (struct row){ "__itt_task_begin", (void **)(i < ROWS / 2 ? &first : &last) };
	pthread_create(&thread, NULL, start, NULL);
	while (!first) ;
	in_time = !last;
	if (!fork()) {
		alarm(20);
		/* as ITT_MUTEX_INIT_AND_LOCK does it */
		if (!global.mutex_initialized) {
			pthread_mutex_init(&global.mutex, NULL);
			global.mutex_initialized = 1;
		}
		pthread_mutex_lock(&global.mutex);
		_exit(global.initialized && last ? 0 : 1);
	}
	wait(&status);
	pthread_join(thread, NULL);
	printf("in time %d, child %d, parent %d\n", in_time, status, !last);
	return 0;
}
"""


def test_fork_while_ittnotify_starts(xstrace):
    """The child would wait at its first ITT call for a lock that nobody opens."""
    run = xstrace(ITT, compile_c(xstrace.home / "start", LONG_START))
    assert (run.status, run.out) == (0, "in time 1, child 0, parent 0\n")


NAMESPACES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static void trace(int count)
{
	while (count--) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
}
int main(int argc, char **argv)
{
	void (*plugin)(void);
	domain = __itt_domain_create("d"); name = __itt_string_handle_create("n");
	trace(10);
	for (int i = 1; i < argc; i++) {
		void *library = dlmopen(LM_ID_NEWLM, argv[i][0] ? argv[i] : getenv("INTEL_LIBITTNOTIFY64"), RTLD_NOW);
		*(void **)&plugin = library ? dlsym(library, "in_namespace") : NULL;
		if (plugin)
			plugin();
	}
	trace(500000);
	printf("expected: 500010 tasks d::n\n");
	if (plugin)
		printf("expected: 3 tasks p::n\n");
	return 0;
}
"""
IN_NAMESPACE = r"""
#include <ittnotify.h>
void in_namespace(void)
{
	__itt_domain *domain = __itt_domain_create("p");
	for (int i = 0; i < 3; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("n"));
		__itt_task_end(domain);
	}
}
"""


@pytest.mark.long
@pytest.mark.parametrize("what", ["collector", "plugin"])
def test_second_namespace(xstrace, what):
    """A copy of the library there joined the run as what had come by an exec: nobody read the first one's rings any more."""
    program = compile_c(xstrace.home / "namespaces", NAMESPACES)
    plugin = compile_c(xstrace.home / "plugin.so", IN_NAMESPACE, "-shared", "-fPIC")
    run = xstrace(f"{ITT} --ring-size 64K --backlog 0", program, ["" if what == "collector" else plugin])
    assert run.status == 0
    run.check_expected()
    assert run.trace.other["end"] == "exited"


COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void *dlopen(const char *path, int flags)
{
	void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
	printf("dlopen\n");
	return next(path, flags);
}
"""
OPENS = r"""
#include <dlfcn.h>
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	__itt_domain *domain = __itt_domain_create("d");
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("n"));
	__itt_task_end(domain);
	puts("traced");
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_LAZY);
		printf("%d %d %d\n", !dlsym(library, "__itt_task_begin"), !!dlsym(library, "main"), dlclose(library));
	}
	puts("expected: 1 tasks d::n");
	return 0;
}
"""


def test_first_event_opens_nothing(xstrace):
    """glibc's dlopen() takes longest of what the static part does with its lock held. Later handles are glibc's own."""
    counter = compile_c(xstrace.home / "counter.so", COUNTER, "-shared", "-fPIC")
    # linked with it, so it stands behind us
    program = compile_c(xstrace.home / "opens", OPENS, "-Wl,--no-as-needed", counter)
    run = xstrace(ITT, program)
    assert run.out.startswith("traced\n" + "dlopen\n0 0 0\n" * 3)
    run.check_expected()


@pytest.mark.long
def test_memory_of_app_and_drain_process(xstrace):
    """A ring and a little in the app; in the drain process the same for a lot as for a little."""
    peaks = []
    for count in (20000, 700000):
        run = xstrace.start(ITT, "itt_tasks", [count, "--hold"])
        wait_until(lambda: "expected" in (run.log / "stdout").read_text())
        pids = run.child("itt_tasks"), run.drain
        texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        peaks.append([int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024 for text in texts])
        os.kill(pids[0], signal.SIGTERM)
        run.finish()
    bare = xstrace.bare(
        "sh", ["-c", f"{APPS}/itt_tasks 1000 --hold & sleep 0.1; cat /proc/$!/status; kill $!"]
    )
    base = int(re.search(r"VmHWM:\s+(\d+)", bare.out)[1]) // 1024
    assert peaks[1][0] <= base + 1 + 8
    assert peaks[1][1] <= min(64, peaks[0][1] + 4)
