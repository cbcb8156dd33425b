"""What a session's commands say of an answer that is not there: the session just ends."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import XSTRACE, wait_until

ITT = "--chrome-itt-logging"


@pytest.fixture
def name(tmp_path):
    """Of a session that no other test has."""
    return f"without{os.getpid()}.{tmp_path.name}"


def start(xstrace, options):
    run = xstrace.start(options, "itt_steps", "tasks t 1000 wait".split(), stdin=subprocess.PIPE)
    run.wait_for_output("ready 1\n")
    return run


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
