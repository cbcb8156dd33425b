"""--chrome-kmd-logging: a bpftrace beside the application, well-behaved or not. The real one needs a kernel that lets it; these tests
put a program of its name first in $PATH."""

import os
import re
import signal
import time

import pytest

from conftest import Trace, alive, check_trace, wait_until

OPTION = "--chrome-kmd-logging"
# says how it was called and what it may expect, then what a test gives
FAKE = """#!/usr/bin/env python3
import os, signal, sys, time
log = open(os.environ["FAKE_LOG"], "w")
def note(*words):
    print(*words, file=log, flush=True)
note("args", sys.argv[1:])
note("pid", os.getpid())
note("stdin", repr(sys.stdin.read()))
python_ignores = ("SIGPIPE", "SIGXFSZ")
note("ignored", [s.name for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN and s.name not in python_ignores])
def interrupted(*unused):
    note("interrupted")
    print("77,last_one,%d,5" % time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, interrupted)
print("Attaching 2 probes...", flush=True)
boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
"""
WAIT = "while True:\n    time.sleep(0.01)\n"


class Kmd:
    """Runs with a bpftrace of ours."""

    def __init__(self, xstrace):
        self.xstrace = xstrace
        self.bin = xstrace.home / "bin"
        self.bin.mkdir()
        self.log = xstrace.home / "fake.log"
        self.script = xstrace.home / "a script.bt"
        self.script.write_text("kprobe:xe_exec_ioctl {}\n")
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "FAKE_LOG": str(self.log)}

    def fake(self, text, before=FAKE):
        path = self.bin / "bpftrace"
        path.write_text(before + text)
        path.chmod(0o755)

    def start(self, app, *args, options="", script=None):
        words = [OPTION, script or self.script, *options.split()]
        return self.xstrace.start(words, app, args, env=self.env)

    def run(self, *args, **more):
        run = self.start(*args, **more)
        run.wait()
        wait_until(lambda: not run.dir)
        run.read_output()
        return run

    @property
    def notes(self):
        return dict(line.split(" ", 1) if " " in line else (line, "") for line in self.log.read_text().splitlines())

    def gone(self):
        return not alive(int(self.notes["pid"]))


def until_done(kmd):
    """A program that ends when bpftrace has noted "done"."""
    return "sh", "-c", f"until grep -q done {kmd.log}; do sleep 0.05; done"


@pytest.fixture
def kmd(xstrace):
    return Kmd(xstrace)


def kernel_trace(run, where="oskmd.*.json"):
    (path,) = run.cwd.glob(where)
    assert check_trace(path, strict=True) == []
    return Trace(path)


def test_events(kmd):
    kmd.fake(
        "print('123,xe_exec_ioctl,%d,4500' % boot)\n"
        "print('124,fault \"x\",%d,1,address 0x5,more' % (boot + 10000))\n"
        "sys.stdout.flush()\n" + WAIT
    )
    before = time.time()
    run = kmd.run("sleep", "0.1")
    assert (run.status, run.out, run.err) == (0, "", "")
    trace = kernel_trace(run)
    names = {s.name: s for s in trace.slices}
    assert list(names) == ["xe_exec_ioctl", 'fault "x"', "last_one"]
    first = names["xe_exec_ioctl"]
    assert (first.track, first.cat, first.end - first.start) == ((0, 123), "os_op", 4500)
    assert names['fault "x"'].args == {"data": "address 0x5,more"}
    assert names['fault "x"'].start - first.start == 10000
    # the time of day
    ns = trace.header["baseTimeNanoseconds"] + first.start
    assert before - 1 <= ns / 1e9 <= time.time()
    host = os.uname().nodename
    assert list(trace.names("process_name").values()) == [f"HOST-OS-KMD<{host}>"]
    assert any("Kernel events are stored in" in line for line in run.said)
    assert run.cwd / f"oskmd.{run.pid}.json" == trace.path


def test_how_it_is_run(kmd):
    """One argument, whatever is in it; no input; signals as a program expects them; over with the application."""
    kmd.fake(WAIT)
    run = kmd.run("sleep", "0.1")
    assert run.status == 0
    notes = kmd.notes
    assert notes["args"] == repr([str(kmd.script)])
    assert notes["stdin"] == "''" and "interrupted" in notes and notes["ignored"] == "[]"
    assert kmd.gone()


def test_the_application_starts_once_it_has_begun(kmd):
    text = FAKE.replace('print("Attaching', 'time.sleep(0.5)\nprint("Attaching')
    kmd.fake("note('begun', time.monotonic_ns())\n" + WAIT, before=text)
    run = kmd.run("python3", "-c", "import time; print(time.monotonic_ns())")
    assert int(run.out) > int(kmd.notes["begun"]) - 50_000_000


def test_beside_a_trace_of_the_application(kmd):
    kmd.fake("print('1,a,%d,1' % boot, flush=True)\n" + WAIT)
    run = kmd.start("itt_tasks", "10", options="--chrome-itt-logging")
    run.wait().collect()
    kernel = [t for t in run.traces if t.pid == 0]
    assert len(run.traces) == 2 and len(kernel) == 1
    (other,) = [t for t in run.traces if t.pid]
    assert other.tasks and other.metadata["run"] == kernel[0].metadata["run"]
    assert other.header["baseTimeNanoseconds"] == kernel[0].header["baseTimeNanoseconds"]


@pytest.mark.long
def test_many_events(kmd):
    kmd.fake("for i in range(300000):\n    print('5,event%d,%d,1' % (i % 7, boot + 10 * i))\nsys.stdout.flush()\nnote('done')\n" + WAIT)
    run = kmd.run(*until_done(kmd))
    trace = kernel_trace(run)
    assert trace.other["events"] == len(trace.slices) == 300001


def test_lines_that_are_none(kmd):
    bad = [",,,", "x,y,1,2", "1,,1,2", "1,a,-5,2", "1,a,5", "1,a,5,", "@map[5]: 7", "1,a,99999999999999999999,1"]
    bad += ["5,long," + "9" * 10000 + ",1", "-1,a,1,2"]
    kmd.fake("\n".join(f"print({line!r})" for line in bad) + "\nprint('9,good,%d,1' % boot, flush=True)\nnote('done')\n" + WAIT)
    trace = kernel_trace(kmd.run(*until_done(kmd)))
    assert [s.name for s in trace.slices] == ["good", "last_one"]


def test_ignores_being_asked(kmd):
    kmd.fake(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('1,a,%d,1' % boot, flush=True)\n" + WAIT
    )
    run = kmd.run("true")
    assert run.status == 0 and run.seconds < 60
    assert any("it was killed" in line for line in run.said)
    assert [s.name for s in kernel_trace(run).slices] == ["a"] and kmd.gone()


def test_leaves_a_child_that_holds_its_output(kmd):
    kmd.fake("signal.signal(signal.SIGINT, signal.SIG_DFL)\nif os.fork() == 0:\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    time.sleep(60)\n    os._exit(0)\n" + WAIT)
    run = kmd.run("true")
    assert run.status == 0 and run.seconds < 40


def test_never_begins(kmd):
    """The application waits some seconds, not for ever."""
    kmd.fake(WAIT, before=FAKE.replace('print("Attaching 2 probes...", flush=True)', ""))
    run = kmd.run("echo", "ran")
    assert (run.status, run.out) == (0, "ran\n") and 4 < run.seconds < 60
    assert any("has not begun" in line for line in run.said)


def test_dies_early(kmd):
    kmd.fake("print('1,a,%d,1' % boot, flush=True)\nsys.exit(3)\n")
    run = kmd.run("sleep", "0.2")
    assert run.status == 0
    assert any("bpftrace ended (status 3)" in line for line in run.said)
    assert [s.name for s in kernel_trace(run).slices] == ["a"]


def test_dies_by_a_signal(kmd):
    kmd.fake("os.kill(os.getpid(), signal.SIGKILL)\n")
    run = kmd.run("sleep", "0.3")
    assert run.status == 0
    assert any("bpftrace ended (signal 9)" in line for line in run.said)
    assert list(run.cwd.iterdir()) == []


def test_is_not_installed(kmd):
    kmd.env["PATH"] = str(kmd.bin)
    run = kmd.run("/bin/echo", "ran")
    assert (run.status, run.out) == (0, "ran\n")
    assert any("bpftrace cannot be run: it is not installed" in line for line in run.said)


def test_there_is_no_script(kmd):
    kmd.fake(WAIT)
    run = kmd.run("echo", "ran", script="/nonexistent.bt")
    assert (run.status, run.out) == (0, "ran\n") and not kmd.log.exists()
    assert any("/nonexistent.bt: No such file" in line for line in run.said)


def test_the_launcher_is_killed(kmd):
    kmd.fake("print('1,a,%d,1' % boot, flush=True)\n" + WAIT)
    run = kmd.start("sleep", "30")
    wait_until(lambda: "sleep" in run.children())
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not run.dir)
    assert [s.name for s in kernel_trace(run).slices] == ["a", "last_one"] and kmd.gone()


def test_the_drain_process_is_killed(kmd):
    kmd.fake(WAIT)
    run = kmd.start("sleep", "0.5")
    wait_until(lambda: "sleep" in run.children())
    kmd.xstrace.left_behind = True
    os.kill(run.drain, signal.SIGKILL)
    run.wait()
    assert run.status == 0
    wait_until(kmd.gone)


def test_in_a_result_directory(kmd):
    kmd.fake("print('1,a,%d,1' % boot, flush=True)\n" + WAIT)
    run = kmd.run("true", options="--result-dir R")
    assert kernel_trace(run, f"R/xstrace.{run.pid}/oskmd.json").slices


def test_not_with_the_flight_recorder(kmd):
    run = kmd.run("true", options="--flight-recorder 5s --chrome-itt-logging")
    assert run.status == 125 and len(run.said) == 1 and OPTION in run.said[0]
    assert re.search("without it", run.said[0])
