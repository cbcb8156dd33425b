"""Traces that a shell asks for in a program that contains xstrace: XSTRACE_SESSION, --resume, --pause, --stop (docs/LIBRARY.md)."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, Trace, wait_until

APP = APPS / "on_demand"


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """A directory for traces that nobody else uses."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@pytest.fixture
def name(tmp_path):
    """Of a session that no other test has; nothing of it stays."""
    name = f"lib{os.getpid()}.{tmp_path.name}"
    yield name
    wait_until(lambda: not list(links(name)), timeout=10)


def links(name):
    return Path("/dev/shm").glob(f"xstrace-session-{os.getuid()}-{name}*")


class App:
    """tests/apps/on_demand.c: a step and a range "work" every ms."""

    def __init__(self, name, *words, **env):
        self.process = subprocess.Popen(
            [APP, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XSTRACE_SESSION": name, **env},
        )
        self.pid = self.process.pid
        while (line := self.process.stdout.readline()) != "ready\n":
            assert line == "initialize: 0\n"

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        assert self.process.stderr.read() == ""


def control(what, name, status=0):
    result = subprocess.run([XSTRACE, what, name], capture_output=True, text=True, timeout=60)
    assert result.returncode == status, result
    assert (result.stderr == "") == (status == 0)
    return result.stdout or result.stderr


def stored(said):
    return [Trace(path) for path in re.findall(r"stored in (\S+)", said)]


def works(trace):
    return sum(s.name == "work" for s in trace.slices)


def test_traces_from_another_shell(name, private):
    """Each --resume begins a trace, and each --pause completes it."""
    app = App(name)
    assert "is paused already" in control("--pause", name)
    paths = set()
    for _ in range(3):
        said = control("--resume", name)
        assert f"Session {name} records a trace: run " in said and f"{app.pid} on_demand" in said
        assert "is not paused" in control("--resume", name)
        time.sleep(0.05)
        said = control("--pause", name)
        assert "has ended its trace" in said
        (trace,) = stored(said)
        assert trace.other["end"] == "stopped" and trace.other["lost"] == 0
        assert "schemaVersion" not in trace.header and {e["pid"] for e in trace.events} == {app.pid}
        paths.add(trace.path)
        assert works(trace) >= 5
    app.end()
    assert {path for path in private.rglob("*") if path.is_file()} == {Path(path) for path in paths}
    assert len(paths) == 3


def test_a_trace_of_the_programs_own(name, private):
    """It comes first: it ends the shell's trace, and --pause and --resume are for it then."""
    app = App(name)
    control("--resume", name)
    assert app.say("start") == "start: 0"
    (shells,) = private.rglob("on_demand*.json")
    assert Trace(shells).other["end"] == "stopped"
    assert "is not paused" in control("--resume", name)
    assert "is paused:" in control("--pause", name)
    assert "is paused already" in control("--pause", name)
    assert "records again" in control("--resume", name)
    assert app.say(f"stop {private}/own.json") == "stop: 0 0"
    assert "records a trace" in control("--resume", name)
    assert stored(control("--pause", name))
    app.end()


def test_programs_of_one_session(name):
    """The variable is inherited: a name is for all that have it, and each has a trace of its own."""
    apps = [App(name), App(name)]
    assert control("--resume", name).count("records a trace") == 2
    said = control("--pause", name)
    assert sorted(trace.events[0]["pid"] for trace in stored(said)) == sorted(app.pid for app in apps)
    apps[0].end()
    assert wait_until(lambda: control("--resume", name).count("\n") == 1)
    apps[1].end()


def test_stop(name, private):
    """It completes what is being recorded, for good; the program's calls say so."""
    app = App(name)
    control("--resume", name)
    said = control("--stop", name)
    assert "is stopped" in said and len(stored(said)) == 1
    assert "there is no session" in control("--resume", name, status=125)
    assert app.say("start") == "start: 1"
    app.end()
    # a trace of the program's own
    app = App(name)
    assert app.say("start") == "start: 0"
    assert "is stopped" in control("--stop", name)
    assert app.say(f"stop {private}/own.json").startswith("stop: 1")
    app.end()


def test_the_program_ends_meanwhile(name, private):
    app = App(name)
    control("--resume", name)
    wait_until(lambda: list(private.rglob("*.json")))  # it has recorded something
    os.kill(app.pid, signal.SIGKILL)
    app.process.wait(30)
    wait_until(lambda: not list(links(name)))
    (path,) = private.rglob("*.json")
    assert Trace(path).other["end"] == "killed"


def test_under_the_launcher(xstrace, name):
    """The launcher's session is the program's; its own variable has no effect then."""
    run = xstrace.start(
        f"--chrome-itt-logging --start-paused --session {name}",
        APP,
        env={**os.environ, "XSTRACE_SESSION": "other"},
        stdin=subprocess.PIPE,
    )
    run.child("on_demand")
    wait_until(lambda: "on_demand" in control("--pause", name))
    assert "records again" in control("--resume", name)
    wait_until(lambda: (run.log / "stdout").read_text().startswith("initialize: 0"))
    time.sleep(0.1)
    assert "there is no session" in control("--pause", "other", status=125)
    run.process.stdin.close()
    run.finish()
    assert works(run.trace)


def test_a_name_that_is_none(private):
    process = subprocess.run([APP], input="", capture_output=True, text=True, env={**os.environ, "XSTRACE_SESSION": "a b"})
    assert process.stdout.startswith("initialize: 1\n") and process.stderr == ""
    assert not list(private.iterdir())


@pytest.mark.parametrize("command", ["--pause", "--resume", "--stop"])
def test_a_drain_process_that_is_killed(name, command):
    """No command waits for it for ever, and the program goes on."""
    app = App(name)
    control("--resume", name)
    (link,) = links(name)
    directory = link.readlink()
    drain = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if drains(pid, directory))
    os.kill(drain, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{drain}") or not drains(drain, directory))
    assert "is over" in control(command, name, status=125)
    app.end()
    subprocess.run([XSTRACE, "--recover", directory], check=True, capture_output=True)


def drains(pid, directory):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"xstrace-drain") and os.fsencode(directory) in words
