"""xstrace-check and xstrace-summary as commands: their status, their lines, and where they are installed."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from made import CHECK, SCRIPTS, SUMMARY, normal_events, run, slice_, text_of_trace
from xstrace import Trace, check, summarize, summary, trace


def test_check_command(make, tmp_path):
    good = make(normal_events(1), "good.json")
    bad = make([*normal_events(1), slice_("a", 9, 5)], "bad.json")
    done = run(CHECK, good)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{good}: 10 events, ok\n", "")
    done = run(CHECK, good, bad)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{good}: 10 events, ok",
        f"{bad}: negative dur: event 11: -0.004 us",
        f"{bad}: 11 events, 1 problem",
    ]
    done = run(CHECK, tmp_path / "none.json", bad, good)
    assert done.returncode == 2
    assert done.stderr == f"xstrace-check: {tmp_path}/none.json: No such file or directory\n"
    assert done.stdout.endswith(f"{good}: 10 events, ok\n")
    assert run(CHECK).returncode == 2


def test_check_command_strict_and_notes(make):
    cut = make(text_of_trace(normal_events(1))[:-40])
    done = run(CHECK, cut)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{cut}: note: the file was cut; what may have stood behind the cut is not missed",
        f"{cut}: 10 events, ok",
    ]
    done = run(CHECK, "--strict", cut)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"{cut}: the file was cut", f"{cut}: 10 events, 1 problem"]


def test_summary_command(make, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    path = make(normal_events(1))
    done = run(SUMMARY, path)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.splitlines() == summarize(str(path))
    other = make(normal_events(2), "u.json")
    done = run(SUMMARY, path, tmp_path / "none", other)
    assert done.returncode == 2
    assert done.stdout == "\n".join(summarize(str(path)) + [""] + summarize(str(other))) + "\n"
    assert done.stderr == f"xstrace-summary: {tmp_path}/none: No such file or directory\n"


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_unusable_input_is_one_line(make, tmp_path, command):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", make("hello"), make("{}", "\n\x1b[31m.json")):
        done = run(command, path)
        assert done.returncode == 2 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and done.stderr[:-1].isprintable()


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_output_in_any_locale(make, command):
    text = text_of_trace(normal_events(1) + [slice_("@", 10, 12), slice_("\u2603", 11, 13)])
    done = run(
        command, make(text.replace("@", "\\ud800")), env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode in (0, 1) and done.stderr == "" and done.stdout.isascii()


def install(tree, package):
    shutil.copytree(SCRIPTS.parent / "python/xstrace", package / "xstrace")
    (tree / "bin").mkdir(exist_ok=True)
    for command in (CHECK, SUMMARY):
        shutil.copy(command, tree / "bin")


@pytest.mark.parametrize("place", ["bin", "share/xstrace"])
def test_installed_tree(make, tmp_path, place):
    tree = tmp_path / "tree"
    install(tree, tree / place)
    if place != "bin":
        (tree / "bin" / "xstrace").write_text("the launcher has this name")
    (tmp_path / "link").symlink_to(tree / "bin" / "xstrace-check")
    path = make(normal_events(1))
    for command in (tree / "bin" / "xstrace-check", tmp_path / "link"):
        done = run(command, path, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
    assert run(tree / "bin" / "xstrace-summary", path).returncode == 0


def test_entry_points():
    text = (SCRIPTS.parent / "pyproject.toml").read_text()
    found = re.findall(r'^"?([\w.-]+)"? = "xstrace\.commands:(\w+)"$', text, re.MULTILINE)
    own = [(f"xstrace-{name}", name) for name in ("check", "diff", "path", "query", "report", "summary")]
    theirs = [("analyzeperfmetrics.py", "analyze"), ("roofline.py", "roofline"), ("uniview.py", "view")]
    assert sorted(found) == sorted([*own, *theirs, ("xstrace-open", "opener")])  # xstrace.open is a function
    assert callable(check.main) and callable(summary.main) and Trace is trace.Trace


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_broken_pipe_is_quiet(make, command):
    path = make(normal_events(1))
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([command, path], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_interrupt_is_quiet(tmp_path, command):
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [command, fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        with open(fifo, "wb"):  # returns when the command has opened it
            process.send_signal(signal.SIGINT)
            assert process.stdout.read() == b""
    assert process.returncode == -signal.SIGINT


def test_a_pipe_can_be_read(tmp_path):
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with subprocess.Popen([CHECK, fifo], stdout=subprocess.PIPE) as process:
        fifo.write_text(text_of_trace(normal_events(1)))
        assert process.stdout.read().decode() == f"{fifo}: 10 events, ok\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_full_disk(make, command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [command, make(normal_events(1))], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr.decode() == f"{command.name}: cannot write: No space left on device\n"


def test_closed_stdout(make):
    done = subprocess.run(["sh", "-c", '"$0" "$1" >&-', str(CHECK), str(make(normal_events(1)))])
    assert done.returncode == 0
