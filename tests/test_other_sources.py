"""What is recorded when, and into what, for all that is neither ITT's nor a GPU's: SYCL's runtime, OpenMP's, functions of Python."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import APPS, ROOT, XSTRACE, wait_until
from test_openmp import needs_clang

# as words.h
PYTHON = """
import ctypes, os, sys
here = ctypes.CDLL(None)
def a(): pass
def b(): pass
def c(): pass
def d(): pass
for word in sys.argv[1:]:
    if word[0] == "=":
        globals()[word[1:]]()
    elif word[:4] == "set:":
        os.environ["PTI_ENABLE_COLLECTION"] = word[4:]
    elif word == "!":
        print("ready", flush=True)
        sys.stdin.readline()
    elif hasattr(here, "__itt_" + word):
        getattr(here, "__itt_" + word)()
"""


class Source:
    """One of them: its option, the program's command, and what its slices' names say."""

    def __init__(self, option, command, pattern, report):
        self.option, self.command, self.pattern, self.report = option, command, re.compile(pattern), report

    def shown(self, run):
        """Names of the work that is in the traces, in their order: "a c"."""
        slices = sorted((s for trace in run.traces for s in trace.slices), key=lambda s: s.start)
        return " ".join(match[1] for s in slices if (match := self.pattern.fullmatch(s.name)))


@pytest.fixture(scope="session")
def regions(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "omp_words"
    subprocess.run(["clang", "-O1", "-w", "-fopenmp", "-D_GNU_SOURCE", ROOT / "tests/apps/omp_words.c", "-o", path], check=True)
    return path


@pytest.fixture(params=["sycl", pytest.param("openmp", marks=needs_clang), "python"])
def source(request, tmp_path):
    if request.param == "sycl":
        return Source("--chrome-sycl-logging", [APPS / "sycl_app", "words"], r"submit ([a-f])", "ur_functions")
    if request.param == "openmp":
        return Source("--chrome-openmp-logging", [request.getfixturevalue("regions")], r"OpenMP::parallel ([a-f])\+0x\w+", None)
    (tmp_path / "app.py").write_text(PYTHON)
    return Source("--python-stacks", [sys.executable, tmp_path / "app.py"], r"Python::([a-f]) \(.*\)", "python_functions")


def run_words(xstrace, source, options, text):
    run = xstrace(f"{source.option} {options}", source.command[0], [*source.command[1:], *text.split()])
    assert run.status == 0, run.err
    return run


@pytest.mark.parametrize(
    "options, text, shown",
    [
        ("--start-paused", "=a resume =b =c pause =d", "b c"),
        ("--start-paused", "resume =a pause =b resume =c", "a c"),
        ("", "=a pause =b resume =c", "a b c"),  # ITT decides where the run says so
        ("--start-paused", "=a set:1 =b set:0 =c set:1 =d", "b d"),
        ("--delay 60", "=a =b", ""),
        ("--include-kernels none", "=a =b", "a b"),  # a filter of device work
        ("--start-paused --format perfetto", "resume =a pause =b resume =c", "a c"),
        ("--start-paused --format kineto", "resume =a pause =b resume =c", "a c"),
        ("--compress zstd", "=a =b", "a b"),
        ("--flight-recorder 60s", "=a =b =c", ""),  # nobody has asked
        ("-h -d -c -s -t -v --chrome-itt-logging", "=a =b =c", "a b c"),
    ],
)
def test_what_is_recorded(xstrace, source, options, text, shown):
    if "zstd" in options and not shutil.which("zstd"):
        pytest.skip("no zstd")
    run = run_words(xstrace, source, options, text)
    assert source.shown(run) == shown


def started(xstrace, source, options, text):
    run = xstrace.start(f"{source.option} {options}", source.command[0], [*source.command[1:], *text.split()], stdin=subprocess.PIPE)
    return run


def next_line(run, count):
    """The program has printed so many lines, and waits."""
    wait_until(lambda: (run.log / "stdout").read_text().count("ready") == count)


def go_on(run):
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()


def test_a_session_decides(xstrace, source):
    name = f"other{os.getpid()}"
    run = started(xstrace, source, f"--session {name} --start-paused", "=a ! =b ! =c ! =d ! =a")
    for count, what in enumerate(["--resume", "--pause", "--resume", "--stop"], 1):
        next_line(run, count)
        result = subprocess.run([XSTRACE, what, name], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
        go_on(run)
    run.finish()
    assert run.status == 0 and source.shown(run) == "b d"


def test_a_dump_of_the_flight_recorder(xstrace, source):
    """It has what was recorded when it was asked for; a pause is not in it."""
    run = started(xstrace, source, "--flight-recorder 60s --start-paused", "resume =a pause =b resume =c ! =d !")
    next_line(run, 1)
    os.kill(run.pid, signal.SIGUSR1)
    wait_until(lambda: (run.log / "stderr").read_text().count("Timeline") == 1)
    go_on(run)
    next_line(run, 2)
    go_on(run)
    run.finish()
    assert run.status == 0 and source.shown(run) == "a c"


def test_a_report_has_what_was_recorded(xstrace, source, tmp_path):
    """-h as JSON: calls of SYCL's below, functions of Python; OpenMP has a report of its own."""
    option = "--openmp-report" if source.report is None else "-h"
    run = run_words(xstrace, source, f"{option} --start-paused --report-format json -o {tmp_path}/rep.json", "=a resume =b =b pause =c")
    assert run.status == 0
    (path,) = Path(tmp_path).glob("rep.*.json")
    rows = json.loads(path.read_text())
    if source.report == "python_functions":
        assert [row["calls"] for row in rows if row["report"] == source.report and row.get("name", "").startswith("Python::b ")] == [2]
        assert not [row for row in rows if row["report"] == source.report and row.get("name", "").startswith(("Python::a ", "Python::c "))]
    elif source.report is None:
        assert [row["calls"] for row in rows if row["report"] == "openmp_regions"] == [2]
    else:
        assert [row["calls"] for row in rows if row.get("name") == "urEnqueueKernelLaunch"] == [2]
