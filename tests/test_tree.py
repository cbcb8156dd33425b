"""The tree of processes: every way to make one, their names and numbers, and what is left behind."""

import collections
import contextlib
import functools
import glob
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import APPS, NOBODY, ROOT, VARIABLES, XSTRACE, Trace, compile_c, expected_lines, root_only, wait_until

ITT = "--chrome-itt-logging"
PY_MP = ROOT / "tests/apps/py_mp.py"
TREE = APPS / "itt_tree"


def said(run):
    """[(pid, its parent's)] as the processes printed them, in the order of their lines."""
    found = re.findall(r"^process: (\d+)\nparent: (\d+)$", run.out, re.M)
    return [(int(pid), int(parent)) for pid, parent in found]


def check_tree(run):
    """Each process as it said: its tasks, its parent; one run, and a name for each file."""
    run.check_expected()
    parents = dict(said(run))
    for trace in run.traces:
        assert trace.metadata["ppid"] == parents[trace.pid], trace.path
    assert sorted(t.pid for t in run.traces) == sorted(pid for pid, _ in said(run))
    assert len({t.metadata["run"] for t in run.traces}) == 1
    for path in run.trace_files:
        assert re.fullmatch(r"[^/]+\.\d+(-\d+)?\.json", path.name)
    return run


def all_at_once(xstrace, count, app, args):
    """Runs in one directory: looked at when all have ended."""
    runs = [xstrace.start(ITT, app, args) for _ in range(count)]
    for run in runs:
        run.wait()
    for run in runs:
        wait_until(lambda run=run: not run.dir)
    for run in runs:
        run.collect()
    return runs


def in_order(traces):
    return sorted(traces, key=lambda t: t.tasks[0].start)


def numbered(stem, count):
    """Names of files that would have had the same one."""
    return sorted([f"{stem}.json"] + [f"{stem}-{i}.json" for i in range(2, count + 1)])


WAYS = [
    "fork",
    "vfork",
    "spawn",
    "system",
    "exec",
    "clone",
    "orphan",
    "fork fork fork fork",
    "vfork fork exec spawn exec clone system vfork orphan fork exec exec",
    "spawn vfork spawn vfork",
]


@pytest.mark.parametrize("words", WAYS)
def test_every_way(xstrace, words):
    bare = xstrace.bare(TREE, words.split())
    run = check_tree(xstrace(ITT, TREE, words.split()))
    assert (run.status, run.err) == (bare.status, bare.err) == (0, "")
    assert len(run.traces) == 1 + len(words.split())


def test_chain_of_execs(xstrace):
    """One process, a file for each program that it was, in their order."""
    run = check_tree(xstrace(ITT, TREE, ["exec"] * 6))
    pid = run.traces[0].pid
    traces = in_order(run.traces)
    assert sorted(t.path.name for t in traces) == numbered(f"itt_tree.{pid}", 7)
    assert [t.other["end"] for t in traces] == ["exec"] * 6 + ["exited"]
    for before, behind in zip(traces, traces[1:]):
        assert before.tasks[0].end < behind.tasks[0].start


def test_many_images_of_one_process(tmp_path):
    """The cost of a thousand execs is that of ten hundreds: no image tries the names of all before it."""

    def cost(count):
        out = tmp_path / str(count)
        out.mkdir()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [XSTRACE, ITT, TREE, *["exec"] * count]
        subprocess.run(command, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert len(os.listdir(out)) == count + 1
        return after.ru_stime - before.ru_stime

    cost(20)
    assert cost(600) < 10 * cost(150)


def test_exec_of_another_program(xstrace):
    """The file is named by what the process was when it traced."""
    script = f"exec {sys.executable} -c \"import os; os.execv('{TREE}', ['x', 'exec'])\""
    run = check_tree(xstrace(ITT, "sh", ["-c", script]))
    pid = run.traces[0].pid
    assert sorted(p.name for p in run.trace_files) == numbered(f"itt_tree.{pid}", 2)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_parents_of_multiprocessing(xstrace, method):
    run = xstrace(ITT, sys.executable, [PY_MP, method]).check_expected()
    (main,) = (t for t in run.traces if t.count("tasks", "python::parent"))
    parents = {t.metadata["ppid"] for t in run.traces if t is not main}
    assert len(run.traces) == 4 and len(parents) == 1
    assert (parents == {main.pid}) == (method != "forkserver")


@pytest.mark.parametrize(
    "script, count",
    [
        ("$T | $T | $T", 3),
        ('x=$($T); echo "$x"; ($T); { $T; }; (($T) )', 4),
        ("$T & $T & wait; $T && $T || $T", 4),
        ("seq 9 | xargs -n1 -P4 sh -c $T", 9),
        ("exec $T fork vfork", 3),
        ("trap $T EXIT; exit 0", 1),
        ("nohup setsid $T fork", 2),
        ("timeout 20 $T", 1),
        ("nice env A=b $T spawn", 2),
        ("find . -maxdepth 0 -exec $T {} ';' 2>&1 | grep -v x", 0),
    ],
    ids=lambda value: re.sub("[^a-z]+", " ", str(value)).strip(),
)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_shells(xstrace, shell, script, count):
    if "maxdepth" in script:
        script, count = "find . -maxdepth 0 -exec $T ';'", 1
    run = xstrace(ITT, shell, ["-c", script.replace("x=$($T)", "x=$($T); true")], env={"T": TREE})
    assert run.status == 0 and run.err == ""
    # a pipeline's first ones print into the next, which do not read
    pids = {t.pid for t in run.traces}
    assert len(run.traces) == len(pids) == count
    assert all(t.count("tasks") == 1 for t in run.traces)
    assert len({t.metadata["run"] for t in run.traces}) == 1


# ---- who cannot be followed ----


def test_program_with_an_empty_environment(xstrace):
    """It runs as without us, and has no trace: nothing of ours has come to it. Those around it have."""
    words = ["fork", "naked", "fork"]
    bare, run = xstrace.bare(TREE, words), xstrace(ITT, TREE, words)
    assert (run.status, run.err) == (bare.status, bare.err) == (0, "")
    assert len(said(run)) == 4
    assert sorted(t.tasks[0].name for t in run.traces) == ["tree::fork", "tree::naked"]


def test_env_i(xstrace):
    run = xstrace(ITT, "env", ["-i", TREE])
    assert run.status == 0 and len(said(run)) == 1 and not run.trace_files
    assert ["No event of interest" in line for line in run.said] == [True]
    run = xstrace(ITT, "sh", ["-c", f"{TREE}; env -i {TREE}; {TREE}"])
    assert run.status == 0 and len(said(run)) == 3 and len(run.traces) == 2


# ---- equal numbers and names ----


def pid_can_be_chosen():
    """Root in its own PID namespace can."""
    done = subprocess.run([TREE, "same", "2"], capture_output=True)
    return done.returncode == 0


@root_only
@pytest.mark.parametrize("count, pause", [(2, 50), (12, 0), (12, 50)])
def test_pids_that_come_again(xstrace, count, pause):
    """At once after the end of who had it: each a process of its own, with a file of its own."""
    if not pid_can_be_chosen():
        pytest.skip("clone3 with set_tid is not allowed here")
    run = xstrace(ITT, TREE, ["same", count, pause])
    assert run.status == 0
    (pid,) = {pid for pid, _ in said(run)}
    names = [f"tree::same{i}" for i in range(count)]
    traces = in_order(run.traces)
    assert [[s.name for s in t.tasks] for t in traces] == [[name] for name in names]
    assert {t.pid for t in traces} == {pid} and len(traces) == count
    assert sorted(t.path.name for t in traces) == numbered(f"itt_tree.{pid}", count)
    if pause:  # the kernel tells when a process began to 10 ms
        assert {t.other["end"] for t in traces} <= {"exited", "unknown"}  # and not "exec"


@root_only
def test_equal_pids_of_many_runs_in_one_directory(xstrace):
    """In PID namespaces of their own all are process 1 and 2: no file is lost, none is written twice."""
    words = ["-pf", str(TREE), "fork"]
    if xstrace.bare("unshare", words).status:
        pytest.skip("no PID namespaces here")
    runs = all_at_once(xstrace, 8, "unshare", words)
    assert all(run.status == 0 for run in runs)
    paths = sorted({path for run in runs for path in run.trace_files})
    assert len(paths) == 16
    for pid in 1, 2:
        names = [p.name for p in paths if p.name.startswith(f"itt_tree.{pid}")]
        assert sorted(names) == numbered(f"itt_tree.{pid}", 8)
    traces = [Trace(path) for path in paths]
    assert all(t.count("tasks") == 1 for t in traces)
    of_run = {}
    for trace in traces:
        of_run.setdefault(trace.metadata["run"], []).append(trace.pid)
    assert sorted(map(sorted, of_run.values())) == [[1, 2]] * 8


def test_two_runs_one_directory(xstrace):
    """As above without any right: same program, same place, at once and again."""
    runs = all_at_once(xstrace, 6, TREE, ["fork", "exec"])
    paths = {path for run in runs for path in run.trace_files}
    assert len(paths) == 18
    assert len({Trace(path).metadata["run"] for path in paths}) == 6


# ---- many processes, and what they leave ----

EXECS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int bad = 0, status;
	for (int i = atoi(argv[1]); i > 0; i--) {
		pid_t pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", (char *)0);
			_exit(99);
		}
		bad += waitpid(pid, &status, 0) != pid || status;
	}
	printf("bad %d\n", bad);
	return 0;
}
"""


def drains():
    """Pids of all drain processes of this host, those too that nobody has waited for."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if "(xstrace-drain)" in path.read_text():
                found.add(int(path.parent.name))
    return found


def watch(run):
    """Runs it to its end: the most files and bytes that were in its directory."""
    files = memory = 0
    while run.process.poll() is None:
        with contextlib.suppress(OSError):
            names = os.listdir(run.dir or "")
            files = max(files, len(names))
            memory = max(memory, 512 * sum(os.stat(f"{run.dir}/{n}").st_blocks for n in names))
        time.sleep(0.005)
    run.finish()
    return files, memory


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["program", "shell"])
def test_2000_short_programs(xstrace, how):
    """None of them traces: no file, no message, and the run directory does not fill up."""
    if how == "program":
        words = [compile_c(xstrace.home / "execs", EXECS), "2000"]
    else:
        script = "i=0; while [ $i -lt 2000 ]; do /bin/true || echo bad; i=$((i+1)); done"
        words = ["sh", "-c", script]
    run = xstrace.start(ITT, *words[:1], words[1:])
    drain = run.drain
    files, memory = watch(run)
    assert (run.status, run.err) == (0, "") and run.out in ("bad 0\n", "")
    assert not run.trace_files and len(run.said) == 1
    assert "No event of interest" in run.said[0]
    assert files < 1000 and memory < 16 << 20, (files, memory)
    wait_until(lambda: drain not in drains())


def test_300_programs_that_trace(xstrace):
    """As many files as processes, and the directory of the run holds but those that live."""
    script = f"i=0; while [ $i -lt 300 ]; do {TREE} >/dev/null; i=$((i+1)); done"
    run = xstrace.start(ITT, "sh", ["-c", script])
    files, memory = watch(run)
    assert run.status == 0 and len(run.traces) == 300
    assert all(t.count("tasks", "tree::leaf") == 1 for t in run.traces)
    assert files < 200 and memory < 32 << 20, (files, memory)


STORM = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void task(const char *name)
{
	__itt_domain *domain = __itt_domain_create("storm");

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(name));
	__itt_task_end(domain);
}

int main(int argc, char *argv[])
{
	int count = atoi(argv[1]);

	if (argc > 2)
		getchar(); /* until the drain process is held */
	task(count ? "parent" : "image");
	for (int i = 0; i < count; i++) {
		if (!fork()) {
			task("child");
			if (i % 3 == 0)
				execl(argv[0], argv[0], "0", NULL);
			_exit(0);
		}
		wait(NULL);
	}
	puts("ok");
	return 0;
}
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("held", [True, False], ids=["at-once", "all-the-while"])
def test_short_programs_and_few_descriptors(xstrace, held):
    """More of them than the drain process may open files, whether or not it sees them all at once: those that are over make room."""
    count = 300 if held else 1500
    storm = compile_c(xstrace.home / "storm", STORM)
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (40, 40))
    run = xstrace.start(ITT, storm, [count, "wait"] if held else [count], preexec_fn=limit, stdin=subprocess.PIPE)
    if held:
        os.kill(run.drain, signal.SIGSTOP)
        run.process.stdin.close()
        wait_until(lambda: len(glob.glob(f"{run.dir}/p*")) == 1 + count + count // 3)
        os.kill(run.drain, signal.SIGCONT)
    run.finish()
    assert (run.status, run.out.count("ok")) == (0, 1 + count // 3)
    assert not any("lost" in line or "cannot" in line for line in run.said), run.said[-1]
    names = collections.Counter(trace.tasks[0].name for trace in run.traces)
    assert names == {"storm::parent": 1, "storm::child": count, "storm::image": count // 3}
    assert sum(trace.other["end"] == "exec" for trace in run.traces) == count // 3


def test_silent_children_of_a_program_that_traces(xstrace):
    """Forked ones that make no event, and programs without ITT, have no file."""
    script = f"{TREE} & true & (exit 0) & cat </dev/null | cat; wait"
    run = xstrace(ITT, "bash", ["-c", script])
    assert len(run.trace_files) == 1 and run.trace.count("tasks") == 1
    assert len(expected_lines(run.out)) == 1


# ---- programs that have lost the environment ----


STOPPER = """
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* As a debugger: the program stands at its first instruction for a second. */
int main(int argc, char **argv)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[1], argv + 1);
	}
	waitpid(pid, &status, 0);
	sleep(1);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	waitpid(pid, &status, 0);
	return status;
}
"""


def lost(run):
    return [line for line in run.said if " is not traced: " in line]


@pytest.mark.parametrize(
    "command",
    [
        ["env", "-i", "/bin/sleep", "2"],
        ["sh", "-c", "env -i /bin/sleep 2; true"],
        ["sh", "-c", "env -i /bin/sleep 2 & wait"],
        [sys.executable, "-c", "import subprocess; subprocess.run(['/bin/sleep', '2'], env={})"],
        ["env", "-i", "sh", "-c", "/bin/sleep 2; true"],
    ],
    ids=["itself", "child", "in the background", "spawned", "and its child"],
)
def test_a_program_without_our_variables_is_told(xstrace, command):
    run = xstrace(ITT, command[0], command[1:])
    assert run.status == 0
    (line,) = lost(run)
    assert re.search(r"process \d+ \((sleep|sh)\) is not traced: it was started without xstrace's variables", line)


NO_ROOM = ["prlimit", "--as=30000000"]
STATIC = "#include <unistd.h>\nint main(void) { return (int)sleep(2); }", "-static"
OLD = (
    """
void _start(void)
{
	long two_seconds[2] = {2, 0}, result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(162), "b"(two_seconds), "c"(0) : "memory"); /* nanosleep */
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(1), "b"(0)); /* exit */
}
""",
    *("-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"),
)
# as bubblewrap does: who makes the sandbox is a forked child that records nothing, and its child is the program
FORKED_TWICE = """
import ctypes, os, subprocess
if os.fork():
    os.wait()
else:
    assert not ctypes.CDLL(None).unshare(0x20000)
    if os.fork():
        os.wait()
        os._exit(0)
    assert not ctypes.CDLL(None).mount(b"none", b"/dev/shm", b"tmpfs", 0, None)
    os.execvp("sleep", ["sleep", "2"])
"""
# no function of the C library sees this exec
UNSEEN = """
extern char **environ;
int main(int argc, char **argv)
{
	char *words[] = { "./old", 0 };
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(59L), "D"(words[0]), "S"(words), "d"(environ) : "rcx", "r11", "memory");
	return 1;
}
"""


@root_only
@pytest.mark.parametrize(
    ("command", "name", "why"),
    [
        (["su", "nobody", "-s", "/bin/sh", "-c", "sleep 2"], "sh|sleep", f"it runs as user {NOBODY}, "),
        (["setpriv", f"--reuid={NOBODY}", "--clear-groups", "sleep", "2"], "sleep", f"it runs as user {NOBODY}, "),
        ([*NO_ROOM, "sleep", "2"], "sleep", r"it may have no more than 30000000 bytes of memory \(ulimit -v\), "),
        (["sh", "-c", "unset LD_PRELOAD; sleep 2; true"], "sleep", "libxstrace.so was not loaded into it: LD_PRELOAD "),
        (["sh", "-c", "./static; true"], "static", "it is statically linked"),
        (["sh", "-c", "exec ./unseen; ./old;"], "old", "it is not a 64-bit program"),
        (["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev/shm; exec sleep 2"], "sleep", "it cannot open /dev/shm/xstrace-"),
        (
            ["unshare", "-m", "--propagation", "private", sys.executable, "-c", FORKED_TWICE],
            "sleep",
            "it cannot open /dev/shm/xstrace-",
        ),
    ],
    ids=["su", "setpriv", "prlimit", "LD_PRELOAD", "static", "32-bit", "another /dev/shm", "forked twice"],
)
def test_why_a_program_is_not_traced(xstrace, command, name, why):
    """A line for each program, and the reason in it."""
    for made, (source, *flags) in {"static": STATIC, "old": OLD, "unseen": (UNSEEN,)}.items():
        if f"./{made};" in command[-1]:
            path = xstrace.home / f"{made}.c"
            path.write_text(source)
            if subprocess.run(["cc", "-o", xstrace.cwd / made, path, *flags]).returncode:
                pytest.skip("the compiler cannot make such a program")
    run = xstrace(ITT, command[0], command[1:])
    assert run.status == 0
    (line,) = lost(run)
    assert re.search(rf"process \d+ \(({name})\) is not traced: {why}", line), line


def test_the_library_of_another_xstrace(xstrace):
    """It does not join this one's run. The reason is not that it could not open it."""
    path = xstrace.home / "libxstrace.so"
    subprocess.run(["cc", "-shared", "-o", path, "-x", "c", "/dev/null"], check=True)
    run = xstrace(ITT, "env", [f"LD_PRELOAD={path}", "sleep", "2"])
    (line,) = lost(run)
    assert re.search(r"process \d+ \(sleep\) is not traced: the libxstrace.so in it is that of another xstrace", line), line


# ---- programs of 32 bits that a traced one starts ----

THIRTY_TWO = """
#include <stdio.h>
#include <stdlib.h>
extern char **environ;
int main(int n, char **words)
{
	printf("%d %s %s\\n", n, words[n - 1], getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
	for (; *environ; environ++) puts(*environ);
	return 5;
}
"""
WAYS = """
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void way(const char *name)
{
	char *words[] = { "old", "last", NULL };
	if (!strcmp(name, "execve")) execve("./old", words, environ);
	if (!strcmp(name, "execv")) execv("./old", words);
	if (!strcmp(name, "execvp")) execvp("old", words);
	if (!strcmp(name, "execvpe")) execvpe("old", words, environ);
	if (!strcmp(name, "execl")) execl("./old", "old", "last", NULL);
	if (!strcmp(name, "execlp")) execlp("old", "old", "last", NULL);
	if (!strcmp(name, "execle")) execle("./old", "old", "last", NULL, environ);
	if (!strcmp(name, "fexecve")) fexecve(open("old", O_RDONLY), words, environ);
	if (!strcmp(name, "script")) execl("./script", "script", "last", NULL);
}
int main(int n, char **arguments)
{
	char *words[] = { "old", "last", NULL }, *name = arguments[1];
	int status = -1, pid, failed = 0;
	if (!strcmp(name, "system")) status = system("./old last");
	else if (!strcmp(name, "posix_spawn")) failed = posix_spawn(&pid, "./old", NULL, NULL, words, environ);
	else if (!strcmp(name, "posix_spawnp")) failed = posix_spawnp(&pid, "old", NULL, NULL, words, environ);
	else if (!(pid = n > 2 ? fork() : vfork())) {
		way(name);
		_exit(99);
	}
	if (status < 0 && (failed || waitpid(pid, &status, 0) != pid)) return 98;
	return WEXITSTATUS(status);
}
"""
FUNCTIONS = "execve execv execvp execvpe execl execlp execle fexecve script system posix_spawn posix_spawnp".split()


@pytest.fixture
def ways(xstrace):
    """A program that starts a 32-bit one in the way that its argument names."""
    (xstrace.home / "old.c").write_text(THIRTY_TWO)
    if subprocess.run(["cc", "-m32", "-o", xstrace.cwd / "old", xstrace.home / "old.c"], capture_output=True).returncode:
        pytest.skip("the compiler makes no programs of 32 bits")
    if subprocess.run([xstrace.cwd / "old"], capture_output=True).returncode != 5:
        pytest.skip("this machine runs no programs of 32 bits")
    (xstrace.cwd / "script").write_text("#! ./old\n")
    (xstrace.cwd / "script").chmod(0o755)
    return compile_c(xstrace.home / "ways", WAYS)


def the_line_of(run):
    (line,) = [line for line in run.said if "64-bit" in line]
    return re.sub(r"process \d+", "process N", line)


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("how", [[], ["fork"]], ids=["vfork", "fork"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_child_of_32_bits(xstrace, ways, function, how):
    """Its loader has nothing to complain of; all else is as without us; one line, ours."""
    env = {"PATH": f":{os.environ['PATH']}"}
    bare = xstrace.bare(ways, [function, *how], env=env)
    run = xstrace(ITT, ways, [function, *how], env=env)
    (words, *variables), (bare_words, *bare_variables) = run.out.splitlines(), bare.out.splitlines()
    assert (run.status, words, run.err) == (bare.status, bare_words, "") == (5, f"{3 if function == 'script' else 2} last none", "")
    added = {variable.partition("=")[0] for variable in set(variables) - set(bare_variables)}
    assert set(bare_variables) <= set(variables) and added <= set(VARIABLES)
    starter = "sh" if function == "system" else "ways"
    name = {"script": "./script", "execvp": "old", "execvpe": "old", "execlp": "old", "fexecve": "old", "posix_spawnp": "old"}.get(
        function, "./old"
    )
    assert the_line_of(run) == f"[WARNING] process N ({starter}): it has started {name}, which is not a 64-bit program and is not traced"


DONTFORK = r"""
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, end;
	char line[4096], rights[8];
	int status;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && rights[3] == 's')
			madvise((void *)begin, end - begin, MADV_DONTFORK);
	fclose(maps);
	if (!fork()) {
		execl(argv[1], "old", "last", NULL);
		_exit(99);
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
"""


def test_a_child_of_32_bits_without_our_mappings(xstrace, ways):
    """There is nowhere to tell of it: its program runs all the same, and its loader has nothing to complain of."""
    run = xstrace(ITT, compile_c(xstrace.home / "dontfork", DONTFORK), ["./old"])
    assert (run.status, run.err) == (5, "") and run.out.startswith("2 last none\n")


def test_a_child_of_32_bits_of_one_that_is_not_followed(xstrace, ways):
    """Nobody tells of it, and its loader has nothing to complain of either."""
    run = xstrace(f"{ITT} --follow-child-process 0", "sh", ["-c", f"{ways} execve; {ways} system"])
    assert (run.status, run.err) == (5, "") and run.out.count("2 last none\n") == 2


def test_a_child_of_32_bits_keeps_the_users_preloads(xstrace, ways):
    """Also of an environment of many variables."""
    many = {f"V{i}": "v" for i in range(900)}
    env = {"LD_PRELOAD": "libm.so.6", **many}
    run = xstrace(f"{ITT} --stacks-on-crash", ways, ["execve"], env=env)
    assert (run.status, run.err) == (5, "") and run.out.startswith("2 last libm.so.6\n") and run.out.count("\nV") == len(many)


UNREADABLE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *ours = NULL;
	char **last = (char **)(page + 4096) - 1, *words[] = { "old", NULL }, *low[] = { (char *)8, NULL };
	munmap(page + 4096, 4096);
	for (char **one = environ; *one; one++)
		if (!strncmp(*one, "LD_PRELOAD=", 11)) ours = *one;
	char *cut[] = { ours ? ours : "A=b", page + 4096 - 14, NULL }, *beyond[] = { ours ? ours : "A=b", (char *)last + 8, NULL };
	memcpy(page + 4096 - 14, "LD_PRELOAD=abc", 14);
	char **wrong[] = { (char **)8, (char **)((char *)last + 8), (char **)((char *)last + 4), last, low, cut, beyond, (char **)~7ul };
	for (int i = 0; i < 8; i++) {
		*last = ours ? ours : "A=b";
		if (i == 5) memcpy(page + 4096 - 14, "LD_PRELOAD=abc", 14);
		printf("%d %d", execve(argv[1], words, wrong[i]), errno);
		printf(" %d", posix_spawn(NULL, argv[1], NULL, NULL, words, wrong[i]));
		printf(" %d", fexecve(open(argv[1], O_RDONLY), (char **)8, wrong[i]));
		printf(" %d\n", execve((char *)8, words, wrong[i]));
	}
	fflush(stdout);
	return execve(argv[1], (char **)8, environ) + 8;
}
"""


def test_what_the_kernel_cannot_read_it_refuses(xstrace, ways):
    """Not we by a fault: environments, names and arguments that lead nowhere, for programs of both classes."""
    app = compile_c(xstrace.home / "unreadable", UNREADABLE)
    for program in ("./old", "/bin/true"):
        bare, run = xstrace.bare(app, [program]), xstrace(ITT, app, [program])
        assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err) and run.out.count("\n") == 8
        assert bare.status == 7


def test_what_cannot_be_executed_fails_as_ever(xstrace, ways):
    for program in ("./missing", "/etc/passwd", "/", ""):
        code = f"import os\ntry: os.execv({program!r}, ['x'])\nexcept (OSError, ValueError) as e: print(e)"
        bare = xstrace.bare(sys.executable, ["-c", code])
        run = xstrace(ITT, sys.executable, ["-c", code])
        assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)


def test_many_that_are_not_traced(xstrace):
    """A line for each of the first; then how many more."""
    run = xstrace(ITT, "sh", ["-c", "for i in 1 2 3 4 5 6 7 8 9 10 11; do env -i sleep 3 & done; wait"])
    lines = lost(run)
    assert len(lines) == 8 and len(set(lines)) == 8
    assert "[WARNING] 3 more processes are not traced, for similar reasons" in run.said


@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "0.5"],
        ["sh", "-c", "sleep 0.5 & sleep 0.5; wait"],
        ["sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {APPS}/static_hello; sleep 0.06; done"],
        ["env", "-i", "/bin/true"],
        [sys.executable, "-c", "import os, time; os.fork(); os.environ.clear(); time.sleep(0.5)"],
    ],
    ids=str,
)
def test_others_are_not(xstrace, command):
    """Static programs, forked children, programs that are over at once, and those that cleared their variables later."""
    run = xstrace(ITT, command[0], command[1:])
    assert run.status == 0 and lost(run) == []


def test_a_program_that_is_slow_to_start_is_not_told(xstrace):
    """Stopped by a debugger before our library is there: it joins later, and is traced."""
    stopper = compile_c(xstrace.home / "stopper", STOPPER)
    run = xstrace(ITT, stopper, [APPS / "itt_tasks", "10", "1"])
    assert run.status == 0 and lost(run) == []
    assert run.trace.count("tasks") == 10


def test_thousands_of_children_that_record_nothing(xstrace):
    """The drain process looks at them, for those that are not traced, a small part of its time."""
    app = compile_c(
        xstrace.home / "server",
        "#include <ittnotify.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void)\n{\n"
        '\t__itt_domain *domain = __itt_domain_create("server");\n'
        "\t__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(\"forks\"));\n\t__itt_task_end(domain);\n"
        "\tfor (int i = 0; i < 2000; i++)\n\t\tif (!fork()) {\n\t\t\tsleep(6);\n\t\t\t_exit(0);\n\t\t}\n"
        "\twhile (wait(0) > 0)\n\t\t;\n\treturn 0;\n}\n",
    )
    run = xstrace("--chrome-itt-logging", app)
    assert run.trace.other["overhead"]["drain_cpu_ns"] < 500_000_000


def test_names_that_are_taken_again_and_again(xstrace):
    """Programs that are each the first process of a PID namespace, and two images of it: of all these the pid is 1, and of former runs, too."""
    app = compile_c(
        xstrace.home / "turn",
        "#include <ittnotify.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char **argv)\n{\n"
        '\t__itt_domain *domain = __itt_domain_create("turn");\n'
        "\t__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(\"task\"));\n\t__itt_task_end(domain);\n"
        '\tint left = atoi(argv[1]);\n\tchar text[16] = {(char)(left / 100 + 48), (char)(left / 10 % 10 + 48), (char)(left % 10 + 48)};\n'
        "\tif (left)\n\t\ttext[2]--, text[2] < 48 ? text[2] = 57, text[1]-- : 0, execl(argv[2], argv[2], text, argv[0], (char *)0);\n"
        "\treturn left;\n}\n",
    )
    os.link(app, xstrace.home / "other")
    out = xstrace.home / "out"
    out.mkdir()
    for name in "turn", "other":
        for number in range(1, 2000):
            (out / f"{name}.1{f'-{number}' if number > 1 else ''}.json").touch()
    run = xstrace(f"{ITT} --output-dir-path {out}", "unshare", ["--pid", "--fork", app, "59", xstrace.home / "other"])
    if run.status:
        pytest.skip("no PID namespaces")
    traces = [Trace(out / f"{name}.1-{number}.json") for number in range(2000, 2030) for name in ("turn", "other")]
    assert all(trace.count("tasks", "turn::task") == 1 for trace in traces)
    ns = max(trace.other["overhead"]["drain_cpu_ns"] for trace in traces)
    assert ns < 500_000_000
