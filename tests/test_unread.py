"""Files of a process that the drain process, or --recover, cannot read: which, and why, is told, and what can be had another time stays."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import XSTRACE, compile_c, wait_until
from test_endings import recover

ITT = "--chrome-itt-logging"
MIB = 1 << 20

# The rings of twelve threads at once need a second file.
CROWD = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static pthread_barrier_t all;
static void trace(int count)
{
	for (int i = 0; i < count; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
}
static void *one(void *unused)
{
	pthread_barrier_wait(&all);
	trace(100);
	pthread_barrier_wait(&all);
	return 0;
}
int main(void)
{
	pthread_t threads[12];
	domain = __itt_domain_create("d");
	name = __itt_string_handle_create("n");
	trace(100);
	puts("ready 1"), fflush(stdout), getchar();
	pthread_barrier_init(&all, 0, 12);
	for (int i = 0; i < 12; i++)
		pthread_create(threads + i, 0, one, 0);
	for (int i = 0; i < 12; i++)
		pthread_join(threads[i], 0);
	puts("ready 2"), fflush(stdout), getchar();
	return 0;
}
"""
TASKS = 1300


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("crowd") / "crowd", CROWD)


def start(xstrace, crowd, options=""):
    """A run whose trace has begun, before the process has its second file."""
    run = xstrace.start(f"{ITT} {options}", crowd, stdin=subprocess.PIPE)
    run.wait_for_output("ready 1")
    wait_until(lambda: [path for path in run.cwd.glob("crowd.*") if path.stat().st_size > 1000])
    time.sleep(0.1)
    return run


def go_on(run):
    with contextlib.suppress(BrokenPipeError):
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()


def killed_run(xstrace, crowd, options=""):
    """The second file is there, and the drain process that was killed has not seen it."""
    run = start(xstrace, crowd, options)
    os.kill(run.drain, signal.SIGKILL)
    wait_until(lambda: "xstrace-drain" not in run.children())
    run.process.stdin.write(b"\n\n")
    run.process.stdin.close()
    run.wait()
    return run


def spoil(file, how):
    if how == "cut":
        os.truncate(file, 0)
    elif how == "half":
        os.truncate(file, file.stat().st_size // 2)
    elif how == "zeros":
        size = file.stat().st_size
        file.write_bytes(b"")
        os.truncate(file, size)
    elif how == "mode":
        file.chmod(0o644)
    else:
        file.unlink()
        if how == "pipe":
            os.mkfifo(file, 0o600)


REASONS = {"removed": "removed", "cut": "cut", "half": "cut", "zeros": "overwritten", "mode": "alone", "pipe": "another file"}


def check_told(lines, file, how):
    (line,) = [line for line in lines if "could not be read" in line]
    assert f"1 file of process {file.name[1:].split('.')[0]} (crowd)" in line and file.name in line and REASONS[how] in line, line


@pytest.mark.parametrize("how", REASONS)
def test_a_file_of_rings_that_is_spoilt(xstrace, crowd, how):
    """Before the drain process looks at it: what it holds is missing, and nothing else."""
    run = start(xstrace, crowd)
    os.kill(run.drain, signal.SIGSTOP)
    go_on(run)
    run.wait_for_output("ready 2")
    (file,) = Path(run.dir).glob("p*.s1")
    spoil(file, how)
    os.kill(run.drain, signal.SIGCONT)
    run.process.stdin.close()
    run.finish()
    assert run.status == 0
    check_told(run.said, file, how)
    assert 100 < run.trace.count("tasks") < TASKS and run.trace.other["unread_files"] == 1


@pytest.mark.parametrize("dumps", [False, True])
def test_no_addresses_for_a_file_of_rings(xstrace, crowd, dumps):
    """There are some for all else, such as the process that writes a dump."""
    run = xstrace.start(f"{ITT} --ring-size 4M" + dumps * " --session crowded --flight-recorder 60s", crowd, stdin=subprocess.PIPE)
    run.wait_for_output("ready 1")
    time.sleep(0.2)
    limit = int(Path(f"/proc/{run.drain}/statm").read_text().split()[0]) * 4096 + 100 * MIB
    resource.prlimit(run.drain, resource.RLIMIT_AS, (limit, limit))
    go_on(run)
    run.wait_for_output("ready 2")
    if dumps:
        subprocess.run([XSTRACE, "--dump", "crowded"], capture_output=True, timeout=60, check=True)
    run.process.stdin.close()
    run.finish()
    (line,) = [line for line in run.said if "could not be read" in line]
    assert ".s1: Cannot allocate memory; events are missing" in line
    assert 100 <= run.trace.count("tasks") < TASKS and run.trace.other["unread_files"] == 1


def copied(file):
    """A file that is equal to another one takes its place."""
    other = file.with_name("copy")
    shutil.copy2(file, other)  # with its mode
    other.rename(file)


def check_copied(run, lines, file):
    """What it holds is read. But the process would go on writing into the file that it made."""
    (line,) = [line for line in lines if "could not be read" in line]
    assert f"{file.name}: it is another file" in line, line
    assert run.trace.count("tasks") == TASKS and run.trace.other["unread_files"] == 1


@pytest.mark.parametrize("which", ["p*.s1", "p*.1"])
def test_a_copy_in_the_place_of_a_file_of_rings(xstrace, crowd, which):
    """Before the drain process looks at it."""
    run = xstrace.start(ITT, "/bin/sh", ["-c", f"echo ready 0; read line; exec {crowd}"], stdin=subprocess.PIPE)
    run.wait_for_output("ready 0")
    time.sleep(0.1)
    os.kill(run.drain, signal.SIGSTOP)
    for ready in ("ready 1", "ready 2"):
        go_on(run)
        run.wait_for_output(ready)
    (file,) = Path(run.dir).glob(which)
    copied(file)
    os.kill(run.drain, signal.SIGCONT)
    run.process.stdin.close()
    run.finish()
    assert run.status == 0
    check_copied(run, run.said, file)


@pytest.mark.parametrize("which", ["p*.s1", "p*.0"])
def test_recover_with_a_copy_of_a_file_of_rings(xstrace, crowd, which):
    run = killed_run(xstrace, crowd)
    (file,) = Path(run.dir).glob(which)
    copied(file)
    lines = recover_in_part(run)
    run.collect()
    check_copied(run, lines, file)


def test_recover_in_a_copy_of_the_runs_directory(xstrace, crowd):
    """There each file is another one, and nothing is missing because of that."""
    run = killed_run(xstrace, crowd)
    aside = Path(f"{run.dir}-copy")
    shutil.copytree(run.dir, aside)
    shutil.rmtree(run.dir)
    done = xstrace.bare(XSTRACE, ["--recover", aside], cwd=run.cwd)
    assert done.status == 0 and not aside.exists(), done.said
    run.collect()
    assert run.trace.count("tasks") == TASKS and "unread_files" not in run.trace.other


def recover_in_part(run, limit=None):
    before = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60, preexec_fn=before)
    assert done.returncode == 125, (done.returncode, done.stderr)
    return done.stderr.splitlines()


@pytest.mark.parametrize("how", REASONS)
def test_recover_without_a_file_of_rings(xstrace, crowd, how):
    run = killed_run(xstrace, crowd)
    path = run.dir
    (file,) = Path(path).glob("p*.s1")
    spoil(file, how)
    lines = recover_in_part(run)
    check_told(lines, file, how)
    assert len(lines) == 2 and path in lines[0] and not os.path.exists(path)
    run.collect()
    assert 100 < run.trace.count("tasks") < TASKS and run.trace.other["unread_files"] == 1


def empty(file):
    """All behind the file's own head."""
    size = file.stat().st_size
    os.truncate(file, 4096)
    os.truncate(file, size)


@pytest.mark.parametrize("killed", [False, True])
def test_rings_that_are_empty_again(xstrace, crowd, killed):
    """A ring that a thread has taken says which thread it was. A hole where that stood is no ring of which nothing is missing."""
    run = killed_run(xstrace, crowd) if killed else start(xstrace, crowd)
    if not killed:
        os.kill(run.drain, signal.SIGSTOP)
        go_on(run)
        run.wait_for_output("ready 2")
    (file,) = Path(run.dir).glob("p*.s1")
    empty(file)
    if killed:
        lines = recover_in_part(run)
    else:
        os.kill(run.drain, signal.SIGCONT)
        run.process.stdin.close()
        lines = run.finish().said
    assert any("5 rings of process" in line and "not as they should be" in line for line in lines), lines
    run.collect()
    assert run.trace.other["corrupt_rings"] == 5 and run.trace.count("tasks") == TASKS - 500


@pytest.mark.parametrize("limit, file", [(150 * MIB, ".s1"), (50 * MIB, "")])
def test_recover_without_addresses(xstrace, crowd, limit, file):
    """It can be repeated with more: nothing is removed, and each task is written once."""
    run = killed_run(xstrace, crowd, "--ring-size 4M")
    (own,) = [path.name for path in Path(run.dir).glob("p*") if "s" not in path.name]
    for _ in range(2):
        (line,) = recover_in_part(run, limit)
        assert f" {own}{file}" in line and "Cannot allocate memory" in line and "again" in line and run.dir in line
    recover(run)
    assert run.trace.count("tasks") == TASKS and run.trace.other["lost"] == 0 and "unread_files" not in run.trace.other


@pytest.mark.parametrize("hard", [True, False])
def test_recover_that_cannot_begin(xstrace, crowd, hard):
    """With so little memory for data the kernel ends a program while it starts it. A soft limit is raised."""
    run = killed_run(xstrace, crowd)
    path = run.dir
    limits = (MIB, MIB if hard else resource.RLIM_INFINITY)
    done = subprocess.run(
        [XSTRACE, "--recover", path], cwd=run.cwd, capture_output=True, text=True, timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, limits)
    )
    if hard:
        assert done.returncode == 125 and done.stderr.count("\n") == 1 and f"--recover {path}" in done.stderr and "ulimit -d" in done.stderr
        recover(run)
    else:
        assert done.returncode == 0, done.stderr
        run.collect()
    assert run.trace.count("tasks") == TASKS


WORDS = {"slots": (0, 52, 8), "used": (0, 64, 8), "segments": (0, 68, 1), "slots of the second": (1, 8, 64), "used of the second": (1, 12, None)}


@pytest.mark.parametrize("value", [0, 1, 1 << 20])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_says_how_many_rings_there_are(xstrace, crowd, word, value):
    """Somebody has changed it before --recover: the rings tell themselves which have records. (`segments` says how many files.)"""
    run = killed_run(xstrace, crowd)
    number, at, was = WORDS[word]
    (file,) = [file for file in Path(run.dir).glob("p*") if file.name.endswith(".s1") == bool(number)]
    data = bytearray(file.read_bytes())
    if was is not None:
        assert int.from_bytes(data[at : at + 4], "little") == was
    same = int.from_bytes(data[at : at + 4], "little") == value
    with open(file, "r+b") as out:
        out.seek(at)
        out.write(value.to_bytes(4, "little"))
    done = xstrace.bare(XSTRACE, ["--recover", run.dir], cwd=run.cwd)
    assert done.status == 125 or same or (value > 1 and "used" in word), done.said
    run.collect()
    assert run.trace.count("tasks") == TASKS and run.trace.other["lost"] == 0, done.said
