"""Programs that nobody here wrote and that take long; only with XSTRACE_TEST_CLIENTS=1."""

import os
import subprocess
import sys

import pytest
from test_opencl import CALL, KERNEL, check_calls_match_commands

pytestmark = pytest.mark.skipif(
    os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1"
)
EXAMPLES = "demo.py demo_array.py demo_elementwise.py demo_mandelbrot.py narray.py transpose.py".split()


@pytest.fixture(autouse=True)
def more_time(time_limit):
    import signal

    signal.alarm(900)


def test_clpeak_in_full(xstrace):
    bare = xstrace.bare("clpeak", timeout=400)
    run = xstrace(f"{CALL} {KERNEL} --compress zstd", "clpeak", timeout=400)
    assert run.status == bare.status == 0
    lines = [[line.split(":")[0] for line in text.splitlines()] for text in (run.out, bare.out)]
    assert lines[0] == lines[1]
    check_calls_match_commands(run.trace)


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The examples of pyopencl's own source package (the wheel has none)."""
    place = tmp_path_factory.mktemp("pyopencl")
    version = subprocess.run(
        [sys.executable, "-c", "import pyopencl; print(pyopencl.VERSION_TEXT)"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
               "--no-build-isolation", "-d", place, f"pyopencl=={version}"]
    if subprocess.run(command, timeout=300).returncode:
        pytest.skip("pip cannot get pyopencl's sources")
    subprocess.run(["tar", "-xzf", *place.glob("pyopencl-*.tar.gz"), "-C", place], check=True)
    return next(place.glob("pyopencl-*/examples"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_pyopencl(xstrace, examples, name):
    if not (examples / name).exists():
        pytest.skip("no such example in this version")
    env = {"PYOPENCL_CTX": "0"}
    bare = xstrace.bare(sys.executable, [examples / name], env=env, timeout=200)
    if bare.status:
        pytest.skip(f"does not run without xstrace either: {bare.err[-200:]}")
    run = xstrace(f"{CALL} {KERNEL}", sys.executable, [examples / name], env=env, timeout=200)
    assert run.status == 0, run.err
    check_calls_match_commands(run.trace)
