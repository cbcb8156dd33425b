"""What a session's commands say of an answer or a trace that is not there: the disk is full, or the session just ends."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, mounted, root_only, wait_until

ITT = "--chrome-itt-logging"


@pytest.fixture
def name(tmp_path):
    """Of a session that no other test has."""
    return f"without{os.getpid()}.{tmp_path.name}"


@pytest.fixture
def disk(tmp_path):
    """A directory whose disk has no room for any byte."""
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, "size=64k"):
        yield place


def fill(disk):
    with open(disk / "full", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def command(what, name):
    return subprocess.run([XSTRACE, what, name], capture_output=True, text=True, timeout=60)


def start(xstrace, options):
    run = xstrace.start(options, "itt_steps", "tasks t 1000 wait".split(), stdin=subprocess.PIPE)
    run.wait_for_output("ready 1\n")
    return run


def finish(run):
    run.process.stdin.close()
    run.finish()
    assert run.status == 0 and not run.trace_files


@root_only
def test_stop_with_a_full_disk(xstrace, name, disk):
    """It names no trace that is not there, and says so."""
    fill(disk)
    run = start(xstrace, f"{ITT} --session {name} --output-dir-path {disk}")
    app = run.child("itt_steps")
    done = command("--stop", name)
    assert done.returncode == 125 and "is stopped: " in done.stdout and "traces" not in done.stdout
    assert done.stderr == f"xstrace: {disk}/itt_steps.{app}.json is not there: the disk had no room for it, or it was removed\n"
    finish(run)


@root_only
def test_dump_with_a_full_disk(xstrace, name, disk):
    fill(disk)
    run = start(xstrace, f"{ITT} --flight-recorder 60s --session {name} --output-dir-path {disk}")
    done = command("--dump", name)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == f"xstrace: --dump {name}: no trace could be written in {disk}; xstrace has said why where it runs\n"
    finish(run)


@root_only
def test_pause_of_a_library_with_a_full_disk(name, disk):
    environment = {**os.environ, "XSTRACE_SESSION": name, "TMPDIR": str(disk)}
    with subprocess.Popen([APPS / "on_demand"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as app:
        while app.stdout.readline() != "ready\n":
            pass
        fill(disk)
        assert command("--resume", name).returncode == 0
        done = command("--pause", name)
        assert done.returncode == 125 and "has ended its trace" in done.stdout and "Timeline" not in done.stdout
        assert done.stderr.startswith(f"xstrace: session {name}: the trace is not there: the disk had no room for it")
        app.stdin.close()
        assert app.wait(30) == 0
    wait_until(lambda: not list(Path("/dev/shm").glob(f"*{name}*")))


@root_only
@pytest.mark.parametrize("options, what, missing", [("", "--stacks", "the answer"), ("--flight-recorder 60s", "--dump", "the traces' names")])
def test_a_run_directory_that_is_full(xstrace, name, options, what, missing):
    """An answer that finds no room there is told as missing, not as an empty one."""
    with mounted("/dev/shm", "size=40m"):
        run = start(xstrace, f"{ITT} {options} --session {name}")
        directory = run.dir
        fill(Path("/dev/shm"))
        done = command(what, name)
        run.process.stdin.close()
        run.finish()
        Path("/dev/shm/full").unlink()
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == f"xstrace: {what} {name}: the run directory {directory} has no room for {missing}\n"


def test_stacks_while_the_session_ends(xstrace, name):
    """The run directory is gone before the command has read the answer."""
    run = start(xstrace, f"{ITT} --session {name}")
    os.kill(run.drain, signal.SIGSTOP)
    asked = subprocess.Popen([XSTRACE, "--stacks", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "/control" in Path(f"/proc/{asked.pid}/maps").read_text())
    time.sleep(0.2)  # it has asked: the next thing that it does
    os.kill(asked.pid, signal.SIGSTOP)
    os.kill(run.drain, signal.SIGCONT)
    wait_until(Path(run.dir, "k1").exists)
    run.process.stdin.close()
    run.finish()
    os.kill(asked.pid, signal.SIGCONT)
    said = asked.communicate(timeout=30)[1]
    assert (asked.returncode, said) == (125, f"xstrace: --stacks {name}: the session has just ended\n")
