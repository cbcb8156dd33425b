"""What `meson install` puts somewhere works from anywhere, and exports what it should."""

import fnmatch
import os
import re
import shutil
import subprocess

import pytest

from conftest import APPS, BUILD, ROOT, check_trace


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The installed tree, moved away from where it was installed to."""
    place = tmp_path_factory.mktemp("install")
    meson = shutil.which("meson") or pytest.skip("no meson")
    command = [
        meson,
        "install",
        "-C",
        BUILD,
        "--no-rebuild",
        "--quiet",
        "--destdir",
        place / "first",
    ]
    subprocess.run(command, check=True, timeout=60)
    prefix = next((place / "first").rglob("bin/xstrace")).parent.parent
    shutil.move(prefix, place / "elsewhere")
    shutil.rmtree(place / "first")
    return place / "elsewhere"


def test_installed_tree_works(xstrace, installed):
    options = "--chrome-itt-logging --chrome-kernel-logging"
    run = xstrace(options, "gemm", ["--expected"], launcher=installed / "bin/xstrace")
    assert run.status == 0
    run.check_expected()


def test_the_installed_program_finds_devices(xstrace, installed):
    run = xstrace.bare(installed / "bin/xstrace", ["--device-list"])
    assert run.status == 0 and run.out.startswith("Device #0: ")


def test_the_installed_library_finds_devices(xstrace, installed):
    """xstrace-host, which it starts, lies beside the program that looks for them."""
    (library,) = installed.rglob("libxstrace-api.so.0")
    env = {"LD_LIBRARY_PATH": str(library.parent), "TMPDIR": str(xstrace.home)}
    run = xstrace.bare(APPS / "library", ["options", "--devices-to-sample 0"], env=env)
    assert (run.status, run.out) == (0, "prepare: 0\n")


def test_through_a_link_and_path(xstrace, installed):
    """As packages put it: a link in a directory of $PATH."""
    links = xstrace.home / "links"
    links.mkdir()
    (links / "xs").symlink_to(installed / "bin/xstrace")
    env = {"PATH": f"{links}:{os.environ['PATH']}"}
    run = xstrace("--chrome-itt-logging", "itt_tasks", [7], launcher="xs", env=env)
    assert run.status == 0
    run.check_expected()


def test_without_the_library(xstrace, installed):
    copy = xstrace.home / "bin" / "xstrace"
    copy.parent.mkdir()
    shutil.copy(installed / "bin/xstrace", copy)
    run = xstrace("-d", "true", launcher=copy)
    assert run.status == 125 and len(run.said) == 1 and "libxstrace.so" in run.said[0]


# what the dynamic loader does not survive, and what it says lines of its own about; xstrace says one line, and the program runs
BROKEN = {
    "missing": lambda path, whole: None,
    "empty": lambda path, whole: path.touch(),
    "cut": lambda path, whole: path.write_bytes(whole.read_bytes()[:3000]),
    "cut late": lambda path, whole: path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2]),
    "no library": lambda path, whole: path.write_text("#!/bin/sh\n" * 99),
    "a directory": lambda path, whole: path.mkdir(),
    "a pipe": lambda path, whole: os.mkfifo(path),
}


@pytest.mark.long(keep=16)
@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", ["libxstrace.so", "libxstrace-mpi.so", "libxstrace-crash.so", "libxstrace-jit.so", "libxstrace-ze.so"])
def test_a_library_that_is_broken(xstrace, installed, name, how):
    """As after an installation that was interrupted, or for which the disk was too small."""
    shutil.copytree(installed, xstrace.home / "copy")
    (path,) = (xstrace.home / "copy").rglob(f"lib/xstrace/{name}")
    whole = path.rename(xstrace.home / "whole")
    BROKEN[how](path, whole)
    options = "--chrome-itt-logging --chrome-mpi-logging --chrome-kernel-logging --stacks-on-crash"
    run = xstrace(options, "itt_tasks", [7], launcher=xstrace.home / "copy/bin/xstrace")
    told = [line for line in run.said if name in line]
    assert run.err == ""
    if name == "libxstrace.so":
        assert run.status == 125 and len(run.said) == len(told) == 1 and "again" in run.said[0] + "again" * (how == "missing")
        return
    assert run.status == 0 and run.trace.count("tasks") == 7
    # the last two are not in every build
    assert len(told) == (0 if how == "missing" and name in ("libxstrace-jit.so", "libxstrace-ze.so") else 1), run.said


def test_a_very_long_path(xstrace, installed):
    """ITT's static part has little room for the collector's."""
    place = xstrace.home.joinpath(*["x" * 200] * 12)
    place.mkdir(parents=True)
    shutil.copytree(installed, place / "copy")
    run = xstrace("--chrome-itt-logging", "itt_tasks", [7], launcher=place / "copy/bin/xstrace", env={"XDG_RUNTIME_DIR": "", "XDG_CACHE_HOME": ""})
    assert run.status == 0 and run.trace.count("tasks") == 7


@pytest.mark.long
def test_installed_scripts(xstrace, installed):
    run = xstrace("--chrome-itt-logging", "itt_tasks", [7])
    commands = ["xstrace-check", "xstrace-path", "xstrace-query", "xstrace-summary", "xstrace-merge --report -", "mergetrace.py --check"]
    commands += ["xstrace-check --repair", "summary.py --input"]
    assert {"categorize.py", "uniview.py", "xstrace-diff"} <= {path.name for path in (installed / "bin").iterdir()}
    for command in commands:
        name, *options = command.split()
        done = subprocess.run(
            [installed / "bin" / name, *options, run.trace_files[0]],
            env={"PATH": os.environ["PATH"]},
            input="select count(*) from slices",  # for xstrace-query
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def test_installed_mergetrace_merges_with_the_installed_merger(xstrace, installed):
    """As users of unitrace call it."""
    run = xstrace("--chrome-itt-logging", "itt_tasks", [7])
    command = [installed / "bin/mergetrace.py", run.trace_files[0], "-o", "all.json"]
    done = subprocess.run(command, cwd=run.cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert check_trace(run.cwd / "all.json", strict=True) == []


def symbols(path, *options):
    out = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def test_exports_are_those_of_the_map(installed):
    """One wrong flag exports nothing, and programs run untraced without a word."""
    source = (BUILD / "collector/libxstrace.map").read_text()
    patterns = re.findall(r"[\w*]+(?=;)", source.split("global:")[1].split("local:")[0])
    defined = symbols(installed / "lib/xstrace/libxstrace.so", "--defined-only")
    assert {name for name in defined if not any(fnmatch.fnmatch(name, p) for p in patterns)} == set()
    for pattern in patterns:
        assert fnmatch.filter(defined, pattern), pattern


def test_every_itt_function_of_the_source_is_exported(installed):
    source = "".join(path.read_text() for path in (ROOT / "itt_collector").glob("*.c"))
    wanted = set(re.findall(r"^EXPORT .*?(__itt_\w+)\(", source, re.M))
    assert len(wanted) >= 90
    assert wanted <= symbols(installed / "lib/xstrace/libxstrace.so", "--defined-only")


def test_the_library_needs_libc_alone(installed):
    path = installed / "lib/xstrace/libxstrace.so"
    out = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.+?)\]", out)
    assert [name for name in needed if not re.match(r"libc\.so|ld-linux", name)] == []
    assert not re.search("RPATH|RUNPATH|TEXTREL", out) and "NODELETE" in out


def test_the_library_does_not_interpose_allocation_or_options(installed):
    """It must not even call what would change the app: its heap, its optind, its streams."""
    undefined = symbols(installed / "lib/xstrace/libxstrace.so", "--undefined-only")
    bad = """malloc calloc realloc free getopt getopt_long exit abort printf setenv putenv signal
        sigaction"""
    assert undefined & set(bad.split()) == set()
    # one part alone makes a thread, where a program uses CUDA
    inside = [p for part in "collector itt_collector gpu interpose library/inside".split() for p in (ROOT / part).rglob("*.c")]
    assert [p.name for p in inside if "pthread_create(" in p.read_text()] == ["flusher.c"]
