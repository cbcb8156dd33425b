"""What needs a build with a sanitizer of its own; only with XSTRACE_TEST_CLIENTS=1."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1")
HERE = Path(__file__).parent


def test_no_data_race_in_level_zero(time_limit):
    """The whole of test_level_zero.py, with collector, driver and programs built with ThreadSanitizer."""
    signal.alarm(1500)
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([HERE / "sanitize-threads"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sanitize-threads: no report" in done.stdout
