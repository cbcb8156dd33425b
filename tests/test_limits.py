"""Limits of resources (ulimit): what runs with a limit as small as can be runs so under xstrace, traced or with one line that says why not."""

import os
import platform
import re
import resource
import signal
import subprocess

import pytest

from conftest import APPS, BUILD, XSTRACE, root_only

ITT = "--chrome-itt-logging"
SANITIZED = b"__asan_init" in (BUILD / "collector/libxstrace.so").read_bytes()
pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more of all")

PROGRAMS = {"true": ["/bin/true"], "itt": [str(APPS / "itt_tasks"), "20"], "threads": [str(APPS / "itt_threads"), "3"]}
PAGED = ("AS", "DATA", "STACK")
LIMITS = [*PAGED, "NOFILE", "FSIZE", "MEMLOCK", "CORE", "CPU", "MSGQUEUE", "SIGPENDING", "NICE", "RTPRIO", "RTTIME"]
MOST = {"AS": 1 << 30, "DATA": 1 << 30, "STACK": 8 << 20, "NOFILE": 64, "CPU": 4}


def limit(name, value, hard):
    kind = getattr(resource, f"RLIMIT_{name}", 15)  # RLIMIT_RTTIME has no name in Python

    def prepare():
        resource.setrlimit(kind, (value, value if hard else resource.getrlimit(kind)[1]))

    return prepare


def bare(command, prepare=None):
    try:
        done = subprocess.run(command, capture_output=True, preexec_fn=prepare, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None  # not even that
    return done.returncode, untimed(done.stdout), done.stderr


def untimed(text):
    """Without the times that a program has measured."""
    return re.sub(rb"\d[\d.]* ns", b"T ns", text)


def least(name, command):
    """The smallest value with which the program runs as it does without a limit; twice, since addresses are random."""
    unlimited = bare(command)
    unit = 4096 if name in PAGED else 1
    low, high = 0 if name == "CPU" else -1, MOST.get(name, 1)  # no CPU time at all ends a process at a moment that is chance
    while high - low > unit:
        middle = (low + high) // 2 // unit * unit
        if middle <= low:
            break
        if bare(command, limit(name, middle, True)) == unlimited:
            high = middle
        else:
            low = middle
    if name in PAGED:
        high += 2 * unit  # addresses are random
    assert bare(command, limit(name, high, True)) == unlimited
    return high


def check(xstrace, command, prepare):
    expected = bare(command)
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = xstrace.start(ITT, command[0], command[1:], preexec_fn=prepare, **out)
    text, said = run.process.communicate(timeout=40)
    run.finish()
    ours = [line for line in said.splitlines() if line.startswith((b"xstrace: ", b"["))]
    theirs = [line for line in said.splitlines() if line not in ours]
    assert (run.process.returncode, untimed(text), theirs) == (expected[0], expected[1], expected[2].splitlines())
    why = (b"leaves no room for tracing", b"not traced", b"No event of interest")
    assert run.trace_files or sum(any(word in line for word in why) for line in ours) == 1, said
    return run


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", LIMITS)
def test_the_least_that_a_program_runs_with(xstrace, name, program, hard):
    command = PROGRAMS[program]
    if (name, program) == ("DATA", "threads"):
        pytest.skip("the tables of names count, too: docs/ARCHITECTURE.md")
    check(xstrace, command, limit(name, least(name, command), hard))


@pytest.mark.parametrize("mib", [1, 2, 3, 5, 8, 12])
def test_little_memory_for_data(xstrace, mib):
    """Large tables are there when they are needed, and not before."""
    command = PROGRAMS["itt"]
    if bare(command, limit("DATA", mib << 20, True)) != bare(command):
        pytest.skip("not even without us")
    run = check(xstrace, command, limit("DATA", mib << 20, False))
    if mib >= 5:
        assert run.trace.count("tasks") == 20


def test_little_memory_while_it_runs(xstrace):
    """No room for the names' table: told, and the program goes on."""
    run = xstrace(ITT, "sh", ["-c", f"ulimit -v 60000; exec {APPS}/itt_tasks 20"], timeout=30)
    assert run.status == 0 and "expected: 20 tasks" in run.out
    assert run.trace_files or any("not traced" in line for line in run.said)


@root_only
@pytest.mark.parametrize("processes", [1, 2, 3, 10])
def test_few_processes(xstrace, processes):
    """RLIMIT_NPROC counts those of a user, who has none here but ours."""

    def prepare():
        os.setgroups([])
        os.setgid(54321)
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setuid(54321)

    os.chmod(xstrace.cwd, 0o777)
    for path in xstrace.cwd.parents:
        path.chmod(path.stat().st_mode | 1)
    if bare([str(APPS / "itt_tasks"), "20"], prepare) is None:
        pytest.skip("not even without us")
    check(xstrace, [str(APPS / "itt_tasks"), "20"], prepare)

    def prepare_with_alarm():
        prepare()
        signal.alarm(1)

    run = xstrace(ITT, "sleep", [20], preexec_fn=prepare_with_alarm, timeout=15)
    assert run.status == -signal.SIGALRM


@pytest.mark.parametrize("less", [0, 1500], ids=["none", "some"])
def test_no_room_for_the_variables_of_tracing(xstrace, less):
    """The kernel bounds arguments and environment together: who is just below that has the program as it is, and one line."""
    command = [str(XSTRACE), ITT, "sh", "-c", "exit $((7 + ${#XSTRACE_RUN}))"]

    def prepare():
        resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    def environment(size):
        return {"PATH": os.environ["PATH"], "A": "x" * (size // 2), "B": "x" * (size - size // 2)}

    def fits(size):
        try:
            return not subprocess.run(command, executable="/bin/true", env=environment(size), preexec_fn=prepare).returncode
        except OSError:
            return False

    low, high = 100 << 10, 140 << 10
    while high - low > 1:
        low, high = ((low + high) // 2, high) if fits((low + high) // 2) else (low, (low + high) // 2)
    run = subprocess.run(
        command, env=environment(low - len(str(XSTRACE)) - less), preexec_fn=prepare, cwd=xstrace.cwd, capture_output=True, text=True, timeout=30
    )
    if less:
        assert run.returncode > 7 and "untraced" not in run.stderr
    else:
        assert (run.returncode, run.stderr.count("\n"), "sh runs untraced: " in run.stderr) == (7, 1, True)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls")
@pytest.mark.parametrize(("call", "said"), [(14, "a sandbox refuses rt_sigprocmask()"), (28, None)], ids=["rt_sigprocmask", "madvise"])
def test_a_sandbox_around_xstrace(xstrace, call, said):
    """Which refuses what the launcher, or the memory of rings, needs: the program runs as always, untraced."""
    run = xstrace(ITT, "itt_tasks", [20], prefix=[APPS / "refuse", str(call)], timeout=30)
    assert run.status == 0 and "expected: 20 tasks" in run.out
    assert not said or any(said in line for line in run.said)
