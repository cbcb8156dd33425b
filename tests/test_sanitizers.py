"""What needs a build with a sanitizer of its own; only with XSTRACE_TEST_CLIENTS=1."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1")
HERE = Path(__file__).parent


def sanitize(script, *args):
    """In a build of its own, which takes minutes. The time is bounded: a program that hangs is a failure."""
    signal.alarm(1500)
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([HERE / script, *args], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{script}: no report" in done.stdout


def test_no_data_race_in_level_zero(time_limit):
    """The whole of test_level_zero.py, with collector, driver and programs built with ThreadSanitizer."""
    sanitize("sanitize-threads")


def test_no_report_of_hostile_data(time_limit):
    """Every kind of end and of output, and hostile data, with everything built with AddressSanitizer and UBSan."""
    sanitize("sanitize", "tests/test_hostile.py", "-k", "control or paths or cut or names")
