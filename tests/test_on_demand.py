"""--on-demand: traces that dynolog asks for (docs/KINETO.md, tests/dynolog.py)."""

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, check_trace, wait_until
from dynolog import Dynolog, message

APP = APPS / "on_demand"
IN_ATTRIB, IN_CREATE = 0x4, 0x100


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the traces may be, and a configuration that asks often."""
    config = tmp_path / "kineto.conf"
    config.write_text("# of this test\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS = 0\n")
    monkeypatch.setenv("KINETO_CONFIG", str(config))
    monkeypatch.setenv("KINETO_ONDEMAND_TRACE_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def sockets():
    """A short path: that of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="dyno") as sockets:
        yield Path(sockets)
        wait_until(lambda: not list(sockets_in(sockets)), timeout=10)


def sockets_in(directory):
    return Path(directory).glob("dynoconfigclient*")


@pytest.fixture
def daemon(place, sockets):
    with Dynolog(sockets) as daemon:
        yield daemon
        assert not daemon.wrong


class App:
    """tests/apps/on_demand.c, bare or under xstrace."""

    def __init__(self, xstrace, daemon, options=None, words=()):
        self.run = None
        if options is None:
            self.process = subprocess.Popen(
                [APP, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **daemon.env},
            )
            self.pid = self.process.pid
            while self.process.stdout.readline() != "ready\n":
                pass
        else:
            self.run = xstrace.start(options, APP, list(words), env=daemon.env, stdin=subprocess.PIPE)
            self.process = self.run.process
            self.pid = self.run.child("on_demand")

    def say(self, line):
        self.process.stdin.write(line + "\n" if self.run is None else (line + "\n").encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() if self.run is None else None

    def end(self):
        self.process.stdin.close()
        if self.run is None:
            self.process.wait(30)
            assert self.process.stderr.read() == ""
            return self.process.returncode
        self.run.finish()
        return self.run.status


def load(path, timeout=30):
    wait_until(path.exists, timeout)
    assert check_trace(path, strict=True) == []
    data = json.loads(path.read_text())
    assert data["schemaVersion"] == 1
    return data


def named(data, beginning):
    return [e for e in data["traceEvents"] if e["ph"] == "X" and e["name"].startswith(beginning)]


def span(data):
    slices = [e for e in data["traceEvents"] if e["ph"] == "X"]
    return max(e["ts"] + e["dur"] for e in slices) - min(e["ts"] for e in slices)


@pytest.fixture(params=["launched", "contained"])
def app(request, xstrace, daemon, place):
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging" if request.param == "launched" else None)
    daemon.wait_for(app.pid)
    yield app
    if app.process.poll() is None:
        assert app.end() == 0
    assert not list(place.glob("*.tmp*"))


def trace_of(place, app, name="trace"):
    return place / f"{name}_{app.pid}.json"


def test_duration(app, daemon, place):
    """A second's request, and one after it: each is one file, of that time alone."""
    for number in range(2):
        assert daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/t{number}.json\nACTIVITIES_DURATION_MSECS=300") == [app.pid]
        data = load(trace_of(place, app, f"t{number}"))
        assert 200_000 < span(data) < 400_000
        assert 20 < len(named(data, "work")) <= 300
        assert data["trace_id"] == str(1000 + app.pid)
        assert data["traceName"].startswith(str(place))
    assert (app.pid, 0, 0) in daemon.registered


def test_iterations(app, daemon, place):
    """Whole steps, beginning with the next multiple."""
    config = f"""ACTIVITIES_LOG_FILE={place}/trace.json
PROFILE_START_ITERATION=0
PROFILE_START_ITERATION_ROUNDUP=50
ACTIVITIES_ITERATIONS=7"""
    daemon.gputrace([], config)
    steps = named(load(trace_of(place, app)), "ProfilerStep#")
    numbers = [int(e["name"].partition("#")[2]) for e in steps]
    assert numbers == list(range(numbers[0], numbers[0] + 7)) and numbers[0] % 50 == 0
    assert not any(e.get("args", {}).get("unfinished") for e in steps)


def test_start_time(app, daemon, place):
    start = time.time() + 1
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nPROFILE_START_TIME={int(start * 1000)}\nACTIVITIES_DURATION_MSECS=100")
    data = load(trace_of(place, app))
    first = min(e["ts"] for e in named(data, "work")) / 1e6 + data["baseTimeNanoseconds"] / 1e9
    assert start - 0.01 < first < start + 0.5


def test_all_that_dyno_sends(app, daemon, place):
    """The lines of dyno gputrace with every option (cli/src/commands/gputrace.rs)."""
    config = f"""ACTIVITIES_LOG_FILE={place}/trace.json
PROFILE_START_TIME=0
ACTIVITIES_DURATION_MSECS=50
PROFILE_REPORT_INPUT_SHAPES=true
PROFILE_PROFILE_MEMORY=true
PROFILE_MEMORY=true
PROFILE_MEMORY_DURATION_MSECS=50
PROFILE_WITH_STACK=false
PROFILE_WITH_FLOPS=false
PROFILE_WITH_MODULES=false"""
    daemon.gputrace([app.pid], config)
    assert named(load(trace_of(place, app)), "work")


def test_types(app, daemon, place):
    """Events of other types are left out; names of types in any case."""
    for number, (types, there) in enumerate((("CPU_OP, kernel", False), ("user_annotation", True))):
        config = f"ACTIVITIES_LOG_FILE={place}/t{number}.json\nACTIVITIES_DURATION_MSECS=50\nACTIVITY_TYPES={types}"
        daemon.gputrace([app.pid], config)
        assert bool(named(load(trace_of(place, app, f"t{number}")), "")) == there


@pytest.mark.parametrize(
    "config, why",
    [
        ("ACTIVITIES_DURATION_MSECS=soon", 'its line "ACTIVITIES_DURATION_MSECS=soon" is not understood'),
        ("no key at all", 'its line "no key at all" is not understood'),
        ("PROFILE_START_TIME=1000", "its PROFILE_START_TIME is more than 10 s ago"),
        ("ACTIVITIES_ENABLED=no", "it has ACTIVITIES_ENABLED=0"),
        ("ACTIVITY_TYPES=cpu_op,nonsense", "ACTIVITY_TYPES=cpu_op,nonsense"),
        ("A=" + "x" * 5000, "a line of it has 5002 bytes"),
    ],
)
def test_what_is_refused(xstrace, daemon, place, config, why):
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    daemon.gputrace([app.pid], config)
    wait_until(lambda: why in (app.run.log / "stderr").read_text())
    # and the next one is served
    daemon.wait_for(app.pid, again=True)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nACTIVITIES_DURATION_MSECS=50")
    load(trace_of(place, app))
    assert app.end() == 0 and not app.run.err


def test_a_file_elsewhere(xstrace, daemon, place):
    """As Kineto: what is asked for by a daemon is written only where KINETO_ONDEMAND_TRACE_DIR says."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    usual = f"/tmp/libkineto_activities_{app.pid}.json"
    outside = f"{place}/../elsewhere.json"
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={outside}\nACTIVITIES_DURATION_MSECS=50")
    try:
        wait_until(lambda: os.path.exists(usual))
    finally:
        assert app.end() == 0
        os.unlink(usual)
    assert "KINETO_ONDEMAND_TRACE_DIR" in "".join(app.run.said)


@pytest.mark.parametrize("how", ["link", "others"])
def test_a_directory_that_others_can_change(xstrace, daemon, place, tmp_path_factory, how):
    """The daemon may be any user's program, and so may who has made the directory."""
    outside = tmp_path_factory.mktemp("outside")
    if how == "link":
        (place / "d").symlink_to(outside)
    else:
        (place / "d").mkdir()
        (place / "d").chmod(0o777)
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    usual = f"/tmp/libkineto_activities_{app.pid}.json"
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/d/x\nACTIVITIES_DURATION_MSECS=50")
    try:
        wait_until(lambda: os.path.exists(usual))
    finally:
        assert app.end() == 0
        os.unlink(usual)
    assert "on the way to which is a link" in "".join(app.run.said)
    assert not os.listdir(outside) and not os.listdir(place / "d")


@pytest.mark.parametrize("how", ["text", "fifo", "directory", "link", "trace"])
def test_what_is_there_already(xstrace, daemon, place, how):
    """Only a trace is replaced by a trace."""
    there = place / "there"
    if how in ("text", "trace"):
        there.write_text("keep me" if how == "text" else '{\n  "schemaVersion": 1,\n "traceEvents": []}')
    elif how == "link":
        (place / "old").write_text("keep me")
        there.symlink_to("old")
    else:
        os.mkfifo(there) if how == "fifo" else there.mkdir()
    before = os.lstat(there)
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={there}\nACTIVITIES_DURATION_MSECS=50")
    wait_until(lambda: "Timeline is stored" in (app.run.log / "stderr").read_text())
    assert app.end() == 0
    replaced = os.lstat(there).st_ino != before.st_ino
    assert replaced == (how == "trace") and "xstrace::" not in "".join(p.read_text() for p in place.glob("old"))
    load(there if replaced else place / "there.tmp")
    app.run.trace_files = []


def test_one_of_two_processes(xstrace, daemon, place):
    """Who is not asked leaves no file, although it records meanwhile."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    app.say("child")
    wait_until(lambda: len(daemon.asked) == 2)
    (child,) = set(daemon.asked) - {app.pid}
    assert app.pid in daemon.asked[child]
    # the parent's pid means both: the child's ancestor is asked for, too
    assert set(daemon.gputrace([app.pid], "ACTIVITIES_ENABLED=0")) == {app.pid, child}
    wait_until(lambda: not daemon.requests)
    assert daemon.gputrace([child], f"ACTIVITIES_LOG_FILE={place}/trace.json\nACTIVITIES_DURATION_MSECS=100") == [child]
    data = load(place / f"trace_{child}.json")
    assert {e["pid"] for e in named(data, "work")} == {child}
    assert app.end() == 0
    assert not app.run.trace_files and not list(place.glob(f"*{app.pid}*.json*"))


def test_nobody_asks(xstrace, daemon):
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    assert app.end() == 0 and not app.run.trace_files and not app.run.said


def test_a_trace_of_the_programs_own(xstrace, daemon, place):
    """It comes first: a request meanwhile is refused, and one that is being served ends."""
    app = App(xstrace, daemon)
    daemon.wait_for(app.pid)
    assert app.say("start") == "start: 0"
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/refused.json\nACTIVITIES_DURATION_MSECS=50")
    wait_until(lambda: not daemon.requests)
    assert app.say(f"stop {place}/own.json") == "stop: 0 0"
    assert not trace_of(place, app, "refused").exists()
    assert json.loads((place / "own.json").read_text())["traceEvents"]
    daemon.wait_for(app.pid, again=True)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/ended.json\nACTIVITIES_DURATION_MSECS=60000")
    wait_until(lambda: list(place.glob("ended*.tmp")))
    assert app.say("start") == "start: 0"
    assert named(load(trace_of(place, app, "ended")), "work")
    assert app.say(f"stop {place}/second.json") == "stop: 0 0"
    assert "schemaVersion" not in json.loads((place / "second.json").read_text())
    assert app.end() == 0


def test_the_program_ends_meanwhile(app, daemon, place):
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nACTIVITIES_DURATION_MSECS=60000")
    wait_until(lambda: list(place.glob("trace*.tmp")))
    os.kill(app.pid, signal.SIGKILL)
    assert named(load(trace_of(place, app)), "work")
    app.process.wait(30)


def test_no_steps(xstrace, daemon, place):
    """As Kineto: a program that tells no steps is traced for a time."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging", ["ranges"])
    daemon.wait_for(app.pid)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nPROFILE_START_ITERATION=0\nACTIVITIES_ITERATIONS=3")
    assert 300_000 < span(load(trace_of(place, app))) < 700_000
    assert app.end() == 0


def test_abstract_socket(xstrace, place):
    try:
        with Dynolog(None) as daemon:
            app = App(xstrace, daemon, "--format kineto --chrome-itt-logging")  # KINETO_USE_DAEMON does the rest
            daemon.wait_for(app.pid)
            environment = open(f"/proc/{app.pid}/environ").read()
            daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.pt.trace.json\nACTIVITIES_DURATION_MSECS=50")
            load(place / f"trace_{app.pid}.pt.trace.json")
            assert app.end() == 0
    except OSError as error:
        pytest.skip(f"a daemon is there: {error}")
    assert "KINETO_USE_DAEMON" not in environment  # or PyTorch would take the requests


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_all_may_write_to_a_socket_from_its_first_moment(xstrace, daemon, place, sockets, mask):
    """Its rights are never changed by its name: where that is, somebody else may have put a link meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, str(sockets).encode(), IN_CREATE | IN_ATTRIB) > 0
    before = os.umask(mask)
    try:
        app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    finally:
        os.umask(before)
    daemon.wait_for(app.pid)
    (own,) = sockets_in(sockets)
    assert own.stat().st_mode & 0o777 == 0o666
    seen, at, data = [], 0, os.read(watch, 65536)
    os.close(watch)
    while at < len(data):
        _, kind, _, length = struct.unpack_from("iIII", data, at)
        seen.append((kind, data[at + 16 : at + 16 + length].rstrip(b"\0").decode()))
        at += 16 + length
    assert [kind for kind, name in seen if name == own.name] == [IN_CREATE]
    assert app.end() == 0


# ---- a daemon that misbehaves ----


def garbage(daemon):
    def answer(sender, pid):
        for data in (b"", b"x", b"\xff" * 40, message("req", b"\0"), message("req", os.urandom(3000)), message("nonsense", b"x")):
            daemon.socket.sendto(data, sender)
        daemon.socket.sendto(message("req", b"A=1")[:-1], sender)

    return answer


def huge(daemon):
    return lambda sender, pid: daemon.socket.sendto(message("req", b"A=1\n" * 20000), sender)


def silent(daemon):
    return lambda sender, pid: None


def flood(daemon):
    def answer(sender, pid):
        daemon.socket.setblocking(False)
        try:
            for _ in range(1000):
                daemon.socket.sendto(message("req", b"ACTIVITIES_ENABLED=0\n"), sender)
        except BlockingIOError:
            pass
        daemon.socket.settimeout(0.05)

    return answer


@pytest.mark.parametrize("how", [garbage, huge, silent, flood])
def test_hostile(xstrace, daemon, place, how):
    """It costs the program nothing, few lines, and a request that makes sense is served after it."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.answer = how(daemon)
    daemon.wait_for(app.pid)
    questions = daemon.questions
    wait_until(lambda: daemon.questions > questions + 10)
    daemon.answer = daemon.answer_properly
    daemon.wait_for(app.pid, again=True)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nACTIVITIES_DURATION_MSECS=50")
    load(trace_of(place, app))
    assert app.end() == 0 and not app.run.err
    assert len(app.run.said) < 40


def test_another_sender(xstrace, daemon, place, sockets):
    """Only what comes from the daemon's own address counts."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    (own,) = sockets_in(sockets)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"{sockets}/dynolog2")
        other.sendto(message("req", f"ACTIVITIES_LOG_FILE={place}/no.json\nACTIVITIES_DURATION_MSECS=10".encode()), str(own))
    wait_until(lambda: "no message of its protocol" in (app.run.log / "stderr").read_text())
    assert app.end() == 0
    assert not list(place.glob("no*"))


def test_it_comes_late_dies_and_comes_again(xstrace, place, sockets):
    first, again = Dynolog(sockets), Dynolog(sockets)
    app = App(xstrace, first, "--on-demand --chrome-itt-logging")
    time.sleep(0.3)
    for number, daemon in enumerate((first, again)):
        with daemon:
            daemon.wait_for(app.pid)
            assert number or [pid for pid, _, _ in daemon.registered] == [app.pid]
            daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/t{number}.json\nACTIVITIES_DURATION_MSECS=50")
            load(trace_of(place, app, f"t{number}"))
    assert app.end() == 0 and not app.run.err


def test_configuration(xstrace, daemon, place):
    """KINETO_CONFIG says how often to ask, or not to ask at all."""
    (place / "kineto.conf").write_text("ENABLE_IPC_FABRIC=false\n")
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    assert app.end() == 0 and not daemon.questions
    assert "ENABLE_IPC_FABRIC" in "".join(app.run.said)


@pytest.mark.parametrize("options", ["-d", "--flight-recorder 1s --chrome-itt-logging", "--chrome-itt-logging --compress zstd"])
def test_options_that_do_not_fit(options):
    run = subprocess.run([XSTRACE, "--on-demand", *options.split(), "/bin/true"], capture_output=True, text=True)
    assert run.returncode == 125 and "--on-demand" in run.stderr and run.stderr.count("\n") == 1


def test_the_drain_process_is_killed(xstrace, daemon, place, sockets):
    """The program goes on, and does not wait at its steps; --recover completes the trace."""
    app = App(xstrace, daemon, "--on-demand --chrome-itt-logging")
    daemon.wait_for(app.pid)
    daemon.gputrace([app.pid], f"ACTIVITIES_LOG_FILE={place}/trace.json\nPROFILE_START_ITERATION=0\nACTIVITIES_ITERATIONS=1000000")
    (part,) = wait_until(lambda: list(place.glob("trace*.tmp")))
    directory = app.run.dir
    time.sleep(0.2)
    os.kill(app.run.drain, signal.SIGKILL)
    app.process.stdin.close()
    app.run.wait()
    assert app.run.status == 0
    subprocess.run([XSTRACE, "--recover", directory], check=True, capture_output=True)
    assert check_trace(part, strict=True) == [] and named(json.loads(part.read_text()), "ProfilerStep#")
    for path in sockets_in(sockets):  # a socket of a killed process stays
        path.unlink()
