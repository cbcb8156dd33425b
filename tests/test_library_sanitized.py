"""The library under ASan and UBSan, and under TSan: tests/apps/library.c and library_odd.c built with its sources (tests/sanitized)."""

import os
import re

import pytest

from conftest import BUILD, wait_until

VARIANTS = ["asan", "tsan"]
REPORTS = {"asan": ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"), "tsan": ("TSAN_OPTIONS",)}

REPORT = re.compile("ERROR: |runtime error: |WARNING: ThreadSanitizer")


@pytest.fixture(params=VARIANTS)
def sanitized(request, xstrace, tmp_path, monkeypatch):
    """Runs a program; its output, once no sanitizer has said anything. The collector is found beside the program."""
    apps = BUILD / "tests" / "sanitized"
    if not (apps / f"library_{request.param}").exists():
        pytest.skip(f"no compiler for {request.param}")
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    (tmp_path / "collector").symlink_to(BUILD / "collector")
    (tmp_path / "library").mkdir()
    for app in apps.glob(f"*_{request.param}"):
        (tmp_path / "library" / app.name).symlink_to(app)
    reports = tmp_path / "reports"
    reports.mkdir()
    (tmp_path / "suppressions").write_text("called_from_lib:libxstrace.so\n")  # it is not built for TSan
    env = {name: f"log_path={reports}/{name}" for name in REPORTS[request.param]}
    if request.param == "tsan":
        env["TSAN_OPTIONS"] += f":suppressions={tmp_path}/suppressions"

    def run(program, *words, status=0):
        app = tmp_path / "library" / f"{program}_{request.param}"
        run = xstrace.bare(app, [str(word) for word in words], cwd=xstrace.home, env={**os.environ, **env}, timeout=200)
        # beside reports ASan says that it does not know the stack of who starts xstrace-host
        said = "".join(text for path in reports.iterdir() if REPORT.search(text := path.read_text()))
        assert (run.status, run.err, said) == (status, "", ""), said[:4000]
        return run.out

    yield run
    wait_until(lambda: not list(place.iterdir()), timeout=10)


def test_every_function_in_many_threads(sanitized):
    assert sanitized("library_odd", "every") == "some events: 1\nonce more: 0\n"


def test_threads(sanitized, xstrace):
    assert sanitized("library", "threads", xstrace.home) == "some ranges: 1\n"


def test_traces(sanitized, xstrace):
    assert sanitized("library", "windows", xstrace.home, 2).count("file ") == 2


@pytest.mark.parametrize("kind", ["misuse", "fork", "memory"])
def test_uses(sanitized, xstrace, kind):
    sanitized("library", kind, xstrace.home)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["post", "fork", "locked", "reaper", "descriptors"])
def test_odd_uses(sanitized, kind):
    sanitized("library_odd", kind)


@pytest.mark.parametrize("kind, status", [("exit", 3), ("_exit", 3), ("unused", 0)])
def test_ends(sanitized, xstrace, kind, status):
    sanitized("library", "end", kind, status=status)
    wait_until(lambda: list(xstrace.home.glob("library*.json")) or kind == "unused")


@pytest.mark.parametrize("words", [("twice", "a.json", "b.json"), ("gone", "place"), ("taken", "x.json"), ("empty",)], ids=lambda words: words[0])
def test_files(sanitized, xstrace, words):
    """Two threads that save one trace, and files that are missing."""
    (xstrace.home / "place").mkdir()
    sanitized("library_files", *words)
