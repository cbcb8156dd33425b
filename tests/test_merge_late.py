"""Late progress in xstrace-merge's report; and traces that are still being written when they are to be merged."""

import ctypes
import fcntl
import json
import os
import signal
import struct
import subprocess
import time

import pytest

from conftest import APPS, ROOT, XSTRACE, wait_until
from merging import MERGE, merge, talk
from ranks import MPI, MPICC, MPIEXEC, Job, Ranks, needs_mpi

ITT = "--chrome-itt-logging"


@pytest.fixture(scope="module")
def mpi_late(tmp_path_factory):
    if not (APPS / "libittnotify.a").exists():
        pytest.skip("no ittnotify")
    path = tmp_path_factory.mktemp("late") / "mpi_late"
    itt = ["-I", ROOT / ".deps/ittapi/include", APPS / "libittnotify.a", "-ldl", "-pthread"]
    subprocess.run([MPICC, "-O1", "-Wall", "-o", path, ROOT / "tests/apps/mpi_late.c", *itt], check=True)
    return path


@needs_mpi
def test_late_progress(xstrace, mpi_late):
    """Who sends or waits while its partner, whose receive or send is under way, computes: for how long, and in which task of that rank."""
    job = Ranks(xstrace, f"{MPI} {ITT}", mpi_late, [xstrace.cwd])
    assert job.run.status == 0, job.run.err
    paths = [t.path for t in job.traces.values()]
    told = [line.split()[1:] for line in (xstrace.cwd / "said.1").read_text().splitlines() if line.startswith("late ")]
    merge("--report", "r.json", *paths, cwd=xstrace.cwd)
    report = json.loads((xstrace.cwd / "r.json").read_text())
    rows = {row["call"]: row for row in report["mpi"]}
    tasks = {(one["rank"], one["task"]): one for one in report["late_progress"]}
    for function, task, ns in told:
        ns = int(ns)
        if function == "-" or max(s.end - s.start for s in job.calls(0) if s.name == function) < ns / 2:
            assert (1, task) not in tasks  # libraries that copy out of the sender's memory do not wait for it
            continue
        row = rows[function]
        ranks = {one["rank"]: one for one in row["ranks"]}
        # the other came a bit later, and the partner does little beside its task
        assert 0.9 * ns < tasks[1, task]["time_ns"] < 1.02 * ns + 10**7 and tasks[1, task]["waits"] == 1
        assert 0.9 * ns < row["late_progress_ns"] < 1.02 * ns + 2 * 10**7 and row["late_progress_ns"] <= row["time_ns"]
        # all of it but moments in which rank 1 waits likewise
        assert ranks[0]["late_progress_ns"] == ranks[1]["late_progress_for_ns"] > row["late_progress_ns"] - 10**6
        assert sum(one["late_progress_ns"] for one in row["ranks"]) == row["late_progress_ns"]
        assert row["wait_ns"] < ns / 2  # it did not come late: it was there before
    assert report["late_progress_left_out"] == 0 and not [task for rank, task in tasks if rank == 0 and task]
    text = merge("--report", "-", *paths, cwd=xstrace.cwd).stdout.splitlines()
    assert "Late progress (ns)" in text[0]
    (line,) = [line for line in text if line.endswith("  late::forces")]
    assert line.split()[:3] == ["1", str(tasks[1, "late::forces"]["time_ns"]), "1"]


def lock(path):
    """As the drain process holds it."""
    fd = os.open(path, os.O_RDWR)
    fcntl.fcntl(fd, 37, struct.pack("hhqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))  # F_OFD_SETLK
    return fd


def test_a_trace_that_is_still_written_is_waited_for(tmp_path):
    paths = talk(Job(["a", "a"]), 2).write(tmp_path)
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    fd = lock(paths[1])

    def finish():
        with open(paths[1], "ab") as file:
            file.write(whole[len(whole) // 2 :])
        os.close(fd)

    merging = subprocess.Popen([MERGE, "-o", "all.json", *paths], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    first = merging.stderr.readline()
    assert first == f"[INFO] {paths[1]}: still being written; waiting for the end, 10 s at most\n"
    finish()
    rest = merging.stderr.read()
    assert merging.wait() == 0 and "was cut" not in rest and "still being" not in rest
    other = json.loads((tmp_path / "all.json").read_text())["otherData"]
    assert all("cut" not in one and "still_written" not in one for one in other["inputs"])


@pytest.mark.parametrize("seconds", ["0", "1"])
def test_a_trace_whose_writer_does_not_end_is_named(tmp_path, seconds):
    paths = talk(Job(["a", "a", "a"]), 2).write(tmp_path)
    paths[1].write_bytes(paths[1].read_bytes()[:-300])
    paths[2].write_bytes(paths[2].read_bytes()[:-300])
    fd = lock(paths[1])
    begin = time.monotonic()
    said = merge("-o", "all.json", "--wait", seconds, *paths, cwd=tmp_path).stderr
    assert int(seconds) <= time.monotonic() - begin < int(seconds) + 30
    assert f"{paths[1]}: is still being written; what is there by now is merged" in said
    assert f"{paths[2]}: was cut" in said and f"{paths[1]}: was cut" not in said  # nobody writes that one
    other = json.loads((tmp_path / "all.json").read_text())["otherData"]
    assert [one.get("still_written", False) for one in other["inputs"]] == [False, True, False]
    os.close(fd)


def test_a_drain_process_that_lives_is_waited_for(xstrace):
    """A real one, which is held up while its application is killed: the merge waits for it, and has the whole trace."""
    run = xstrace.start(ITT, "itt_steps", ["tasks", "a", "3", "wait"], stdin=subprocess.PIPE)
    (path,) = wait_until(lambda: list(xstrace.cwd.glob("itt_steps.*.json")))
    drain, app = run.drain, run.child("itt_steps")
    os.kill(drain, signal.SIGSTOP)
    try:
        os.kill(app, signal.SIGKILL)
        merging = subprocess.Popen([MERGE, "-o", "all.merged", path], cwd=xstrace.cwd, stderr=subprocess.PIPE, text=True)
        assert merging.stderr.readline() == f"[INFO] {path}: still being written; waiting for the end, 10 s at most\n"
    finally:
        os.kill(drain, signal.SIGCONT)
    said = merging.stderr.read()
    assert merging.wait() == 0 and "cut" not in said
    run.finish()
    (one,) = json.loads((xstrace.cwd / "all.merged").read_text())["otherData"]["inputs"]
    assert (one["end"], one["status"]) == ("killed", 9) and "still_written" not in one


PTRACE_SYSCALL, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 24, 17, 0x4206, 0x4207


def is_locked(path):
    with open(path, "rb") as file:
        lock = fcntl.fcntl(file, 36, struct.pack("hhqqixxxx", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))  # F_OFD_GETLK
    return struct.unpack_from("h", lock)[0] != fcntl.F_UNLCK


def test_a_trace_is_locked_as_soon_as_it_has_a_name(xstrace):
    """The drain process may be stopped anywhere: it is, at each system call, until its file is there."""
    run = xstrace.start(ITT, "sh", ["-c", f"read go; exec {APPS}/itt_steps tasks a 3 wait"], stdin=subprocess.PIPE)
    drain, libc = run.drain, ctypes.CDLL(None, use_errno=True)
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        assert libc.ptrace(request, drain, None, None) == 0, os.strerror(ctypes.get_errno())
    run.process.stdin.write(b"go\n")
    run.process.stdin.flush()
    while True:
        assert os.WIFSTOPPED(os.waitpid(drain, 0)[1])
        if found := list(xstrace.cwd.glob("itt_steps.*.json")):
            break
        libc.ptrace(PTRACE_SYSCALL, drain, None, None)
    locked = is_locked(found[0])
    libc.ptrace(PTRACE_DETACH, drain, None, None)
    run.process.stdin.close()
    run.finish()
    assert locked


@needs_mpi
def test_traces_of_an_aborted_job_are_whole(xstrace):
    """mpiexec is back before they are; the merge that follows at once has all that there is."""
    source = """#include <mpi.h>
int main(int argc, char **argv) { int rank, flag; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
for (int i = 0; i < 20000; i++) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
if (rank) MPI_Abort(MPI_COMM_WORLD, 3); MPI_Barrier(MPI_COMM_WORLD); return 0; }"""
    (xstrace.cwd / "aborts.c").write_text(source)
    subprocess.run([MPICC, "-o", "aborts", "aborts.c"], cwd=xstrace.cwd, check=True)
    run = xstrace.bare(MPIEXEC, [str(word) for word in ("-n", 2, XSTRACE, MPI, xstrace.cwd / "aborts")])
    assert run.status != 0
    said = merge("-o", "all.merged", ".", cwd=xstrace.cwd).stderr
    assert "cut" not in said and "is still being written" not in said
    inputs = json.loads((xstrace.cwd / "all.merged").read_text())["otherData"]["inputs"]
    assert inputs and all(one["end"] in ("killed", "exited") for one in inputs)
