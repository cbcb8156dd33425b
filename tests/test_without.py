"""Builds in which one dependency is missing: that is left out, everything else works. With XSTRACE_TEST_CLIENTS=1, as each
is a build of its own."""

import json
import os
import signal
import subprocess

import pytest

from conftest import APPS, ROOT
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1")
PARTS = ("opencl", "level_zero", "cuda", "itt", "zstd", "musl")
OPTIONS = ("--chrome-kernel-logging", "--chrome-itt-logging", "--chrome-call-logging")


@pytest.fixture(scope="module", params=PARTS)
def without(request, tmp_path_factory):
    """(what is missing, a build without it)"""
    signal.alarm(900)
    build = tmp_path_factory.mktemp("without") / request.param
    setup = ["meson", "setup", f"-D{request.param}=disabled", "-Dtests=disabled", "-Doptimization=0", "-Dwerror=true", build, ROOT]
    for command in (setup, ["ninja", "-C", build]):
        result = subprocess.run(command, capture_output=True, text=True, timeout=800)
        assert result.returncode == 0, result.stdout[-3000:]
    return request.param, build


def test_what_other_distributions_warn_of(tmp_path):
    """Ubuntu's compiler has this set: a result that must be used is used."""
    signal.alarm(900)
    setup = ["meson", "setup", "-Dtests=disabled", "-Dwerror=true", tmp_path / "build", ROOT]
    for command in (setup, ["ninja", "-C", tmp_path / "build"]):
        result = subprocess.run(command, env={**os.environ, "CFLAGS": "-D_FORTIFY_SOURCE=2"}, capture_output=True, text=True, timeout=800)
        assert result.returncode == 0, result.stdout[-3000:]


def trace(build, folder, program, *arguments, options=OPTIONS, env=None):
    """The traced run, and the events of its trace: (finished process, categories of slices and how many)."""
    command = [build / "launcher/xstrace", *options, "--output-dir-path", folder, program, *arguments]
    run = subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120)
    files = list(folder.glob("*.json"))
    events = json.loads(files[0].read_text())["traceEvents"] if files else []
    return run, [event for event in events if event["ph"] == "X"]


def test_an_opencl_program_with_itt(without, tmp_path):
    if not (APPS / "gemm").exists():
        pytest.skip("no OpenCL, or no sources of ITT")
    missing, build = without
    run, slices = trace(build, tmp_path, APPS / "gemm")
    assert run.returncode == 0 and "Results are CORRECT" in run.stdout, run.stderr
    names = [event["name"] for event in slices]
    assert names.count("clFinish") == (0 if missing == "opencl" else 5)
    assert sum(name.startswith("multiply") for name in names) == (0 if missing == "opencl" else 5)
    assert names.count("gemm::iteration") == (0 if missing == "itt" else 5)


def test_a_cuda_program(without, tmp_path):
    if not HAVE_SOFTCUDA:
        pytest.skip("no headers of CUDA")
    missing, build = without
    run, slices = trace(build, tmp_path, APPS / "cuda_loop", "100", env=SoftCUDA(tmp_path).env)
    assert run.returncode == 0 and "expected: 100 kernels" in run.stdout, run.stderr
    assert sum(event["name"].startswith("empty") for event in slices) == (0 if missing == "cuda" else 100)


def test_compression(without, tmp_path):
    missing, build = without
    run, _ = trace(build, tmp_path, "/bin/echo", "out", options=("--chrome-itt-logging", "--compress", "zstd"))
    if missing == "zstd":
        assert run.returncode == 125 and run.stderr == "xstrace: --compress zstd: this xstrace was built without libzstd\n"
    else:
        assert (run.returncode, run.stdout) == (0, "out\n")


def test_the_library(without, tmp_path):
    """Without ITT's half it records nothing, and says so."""
    missing, build = without
    env = {**os.environ, "LD_LIBRARY_PATH": str(build / "library")}
    run = subprocess.run([APPS / "library", "windows", tmp_path, "1"], env=env, capture_output=True, text=True, timeout=60)
    if missing == "itt":
        assert (run.returncode, run.stdout) == (1, "prepare: 1, libxstrace.so was built without ITT, which the library needs\n")
    else:
        assert run.returncode == 0 and len(list(tmp_path.glob("*.json"))) == 1, run.stdout + run.stderr
