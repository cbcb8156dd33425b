"""Programs that nobody here wrote and that take long; only with XSTRACE_TEST_CLIENTS=1."""

import os
import re
import subprocess
import sys

import pytest

from test_opencl import CALL, KERNEL, check_calls_match_commands

pytestmark = pytest.mark.skipif(
    os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1"
)
EXAMPLES = """demo demo_array demo_array_svm demo_elementwise demo_elementwise_complex svm narray
    demo-struct-reduce demo_mandelbrot dump-properties pi-monte-carlo n-body""".split()


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
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        "pyopencl",
        "-d",
        place,
        f"pyopencl=={version}",
    ]
    if subprocess.run(command, timeout=300).returncode:
        pytest.skip("pip cannot get pyopencl's sources")
    subprocess.run(["tar", "-xzf", *place.glob("pyopencl-*.tar.gz"), "-C", place], check=True)
    return next(place.glob("pyopencl-*/examples"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_pyopencl(xstrace, examples, name):
    args = [examples / f"{name}.py"]
    env = {"PYOPENCL_CTX": "0", "MPLBACKEND": "agg"}
    bare = xstrace.bare(sys.executable, args, env=env, timeout=200)
    if bare.status:
        pytest.skip(f"does not run without xstrace either: {bare.err[-100:]}")
    run = xstrace(f"{CALL} {KERNEL}", sys.executable, args, env=env, timeout=200)
    assert run.status == 0, run.err
    if name == "dump-properties":
        assert re.sub("0x[0-9a-f]+", "", run.out) == re.sub("0x[0-9a-f]+", "", bare.out)
    else:
        check_calls_match_commands(next(t for t in run.traces if t.device))
