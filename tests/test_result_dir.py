"""--result-dir: a directory for each process, and one that says what was run."""

import json
import os
import re
import signal
import sys

import pytest

from conftest import APPS, NOBODY, Trace, copy_build, is_root, wait_until

ALL = "--chrome-call-logging -h -d -s -t --call-stacks"
FILES = {
    "chrome_trace.json",
    "host_timing.txt",
    "device_timing.txt",
    "device_submission.txt",
    "device_timeline.txt",
    "call_stacks.folded",
}


def directories(path):
    """(those of traced processes, those of launchers), by name."""
    found = sorted(p for p in path.iterdir())
    assert all(p.is_dir() for p in found)
    mine = [p for p in found if "xstrace." in p.name]
    return [p for p in found if p not in mine], mine


def test_the_files_of_a_process(xstrace):
    run = xstrace(f"--result-dir R {ALL}", "cl_stacks")
    assert (run.status, run.err) == (0, "")
    ((process,), (own,)) = directories(run.cwd / "R")
    assert process.name == f"cl_stacks.{Trace(process / 'chrome_trace.json').pid}"
    assert {p.name for p in process.iterdir()} == FILES
    assert all(p.stat().st_size for p in process.iterdir())
    assert "=== API Timing Summary ===" in (process / "host_timing.txt").read_text()
    assert "=== Device Timing Summary ===" in (process / "device_timing.txt").read_text()
    assert "=== Device" not in (process / "host_timing.txt").read_text()
    assert own.name == f"xstrace.{run.pid}"


def test_the_configuration(xstrace):
    """unitrace's scripts read the first six."""
    args = ["chain", 'with "quotes" \\ and\nlines', "ünïcode"]
    run = xstrace(f"--result-dir R {ALL}", "cl_stacks", args)
    config = json.loads((run.cwd / f"R/xstrace.{run.pid}/run_config.json").read_text())
    assert list(config)[:6] == ["unitrace version", "app", "unitrace_args", "app_args", "Host", "pid"]
    assert config["app"] == str(APPS / "cl_stacks")
    assert config["app_args"] == args
    assert config["unitrace_args"] == ["--result-dir", "R", *ALL.split()]
    assert config["Host"] == os.uname().nodename and config["pid"] == str(run.pid)
    assert config["directory"] == str(run.cwd)


def test_ranks_and_descendants(xstrace):
    script = f"{APPS}/cl_stacks; {APPS}/cl_stacks chain 2; true"
    run = xstrace("--result-dir R --chrome-call-logging", "sh", ["-c", script], env={"PMI_RANK": "7"})
    processes, (own,) = directories(run.cwd / "R")
    assert len(processes) == 2
    assert all(re.fullmatch(r"rank_7\.cl_stacks\.\d+", p.name) for p in processes)
    assert own.name == f"rank_7.xstrace.{run.pid}"


def test_nothing_is_overwritten(xstrace):
    """Names that are taken already get a number."""
    script = f"mkdir R/cl_stacks.$$; touch R/cl_stacks.$$/chrome_trace.json; exec {APPS}/cl_stacks"
    run = xstrace("--result-dir R --chrome-call-logging", "sh", ["-c", script])
    old, new = sorted(p for p in (run.cwd / "R").iterdir() if p.name.startswith("cl_"))
    assert new.name == old.name + "-2"
    assert (old / "chrome_trace.json").read_text() == ""
    assert Trace(new / "chrome_trace.json").calls


def test_a_program_that_has_nothing_to_show_has_no_directory(xstrace):
    run = xstrace("--result-dir R -h", "true")
    assert directories(run.cwd / "R")[0] == []


def test_compressed_and_in_other_formats(xstrace):
    options = "--result-dir R --chrome-call-logging --compress zstd -h --report-format csv"
    run = xstrace(options, "cl_stacks")
    ((process,), _) = directories(run.cwd / "R")
    assert {p.name for p in process.iterdir()} == {"chrome_trace.json.zst", "host_timing.csv"}


def test_recovered_files_are_in_the_same_directory(xstrace):
    run = xstrace.start("--result-dir R --chrome-itt-logging", "itt_pace", ["200000", "10"])
    process = wait_until(lambda: list(run.cwd.glob("R/itt_pace.*/chrome_trace.json")))[0]
    xstrace.left_behind = True
    os.kill(run.drain, signal.SIGKILL)
    run.wait()
    directory = re.search(r"--recover (\S+)", "\n".join(run.said))[1]
    again = xstrace.bare(xstrace_program(), ["--recover", directory])
    assert again.status == 0
    assert [p.name for p in run.cwd.glob("R/itt*/*")] == [process.name]
    assert Trace(process).tasks


def xstrace_program():
    from conftest import XSTRACE

    return XSTRACE


@pytest.mark.parametrize("what", ["file", "missing parent", "unwritable"])
def test_unusable_directories_are_told_before_the_program_starts(xstrace, public, what):
    path = xstrace.cwd / "there"
    more = {}
    if what == "file":
        path.write_text("")
    elif what == "missing parent":
        path = path / "deeper"
    elif not is_root:
        path.mkdir(0o500)
    else:
        path.mkdir(0o755)
        xstrace.cwd.chmod(0o755)
        more = {"user": NOBODY, "launcher": copy_build(public)}
        for parent in xstrace.cwd.parents[:3]:
            parent.chmod(0o755)
    run = xstrace.start(f"--result-dir {path} -h", "echo", ["ran"], **more)
    run.wait()
    assert (run.status, run.out, run.err) == (125, "", "")
    assert len(run.said) == 1 and str(path) in run.said[0]


@pytest.mark.parametrize("other", ["-o rep.txt", "--output-dir-path out"])
def test_conflicts(xstrace, other):
    run = xstrace(f"--result-dir R {other}", "true")
    assert run.status == 125 and len(run.said) == 1 and "--result-dir" in run.said[0]
    assert list(run.cwd.iterdir()) == []


def test_a_program_that_cannot_be_run_leaves_nothing(xstrace):
    garbage = xstrace.home / "garbage"
    garbage.write_text("\x7fELF\0\0garbage")
    garbage.chmod(0o755)
    run = xstrace("--result-dir R -h", garbage)
    assert run.status == 126
    assert list(run.cwd.iterdir()) == []


@pytest.mark.parametrize("options", ["--output-dir-path R/deep", "-o R/deep/rep.txt"])
def test_no_link_is_followed_that_came_later(xstrace, options):
    """Who may write on the way to the results would choose where this user, who may be root, makes files."""
    (xstrace.home / "secret").mkdir()
    (xstrace.home / "R/deep").mkdir(parents=True)
    written = 'while [ -z "$(ls R/deep)" ]; do sleep 0.01; done'  # or the first program's file were made in between
    script = f"cd {xstrace.home}; {APPS}/cl_stacks; {written}; mv R/deep moved; ln -s ../secret R/deep; {APPS}/cl_stacks"
    run = xstrace(f"{options} --chrome-call-logging -h", "sh", ["-c", script], cwd=xstrace.home)
    assert run.status == 0 and "Not a directory" in "".join(run.said)
    assert not list((xstrace.home / "secret").iterdir())


REPLACES = """
import glob, os, time
def f(): pass
while not glob.glob("R/*/chrome_trace.json"):
    f()
    time.sleep(0.01)
(found,) = {os.path.dirname(path) for path in glob.glob("R/*/chrome_trace.json")}
os.rename(found, "moved")
os.symlink("../secret", found)
"""


def test_no_link_is_followed_in_the_place_of_a_processs_directory(xstrace):
    """Its report comes at its end."""
    (xstrace.home / "secret").mkdir()
    (xstrace.home / "R").mkdir()
    run = xstrace("--result-dir R --python-stacks -h", sys.executable, ["-c", REPLACES], cwd=xstrace.home)
    assert run.status == 0 and "Not a directory" in "".join(run.said)
    assert not list((xstrace.home / "secret").iterdir())


def test_links_that_were_there_are_followed(xstrace):
    (xstrace.home / "real/deep").mkdir(parents=True)
    (xstrace.home / "link").symlink_to("real")
    for options in ("--result-dir link/deep", "--output-dir-path link/deep -o link/rep.txt"):
        run = xstrace(f"{options} --chrome-call-logging -h", "cl_stacks", cwd=xstrace.home)
        assert run.status == 0
    found = sorted(re.sub(r"\d+", "N", str(path.relative_to(xstrace.home / "real"))) for path in (xstrace.home / "real").rglob("*"))
    assert found == [
        "deep",
        "deep/cl_stacks.N",
        "deep/cl_stacks.N.json",
        "deep/cl_stacks.N/chrome_trace.json",
        "deep/cl_stacks.N/host_timing.txt",
        "deep/xstrace.N",
        "deep/xstrace.N/run_config.json",
        "rep.N.txt",
    ]
