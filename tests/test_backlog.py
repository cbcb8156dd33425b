"""Rings that fill faster than their records become text: the program goes on, and nothing is lost or out of order."""

import os
import re
import signal
import subprocess

import pytest

from conftest import XSTRACE, wait_until
from test_endings import check_truth, recover

ITT = "--chrome-itt-logging"
SMALL = f"{ITT} --ring-size 64K"
MIB = 1 << 20


def backlog_bytes(run):
    """Memory of the run's backlog; 0: it has none."""
    try:
        return os.stat(f"{run.dir}/backlog").st_blocks * 512
    except OSError:
        return 0


def in_order(trace):
    for tasks in trace.by_thread(trace.tasks).values():
        starts = [task.start for task in tasks]
        assert starts == sorted(starts)


@pytest.mark.parametrize("options", ["", "--backlog 0", "--backlog 256K", "--backlog 1M", "--compress zstd", "--on-full drop"])
def test_nothing_is_lost(xstrace, options):
    run = xstrace(f"{SMALL} {options}", "itt_tasks", [12000, 4])
    if "drop" not in options:
        run.check_expected()
        assert run.trace.other["lost"] == 0
    assert "corrupt_rings" not in run.trace.other
    in_order(run.trace)


def start_stress(xstrace, options, least, threads=2):
    """A program that works until it is killed, and has so much in its backlog; and its pid."""
    path = xstrace.home / "truth"
    run = xstrace.start(options, "itt_stress", [path, threads, 0])
    app = run.child("itt_stress")
    run.wait_for_output()
    wait_until(lambda: backlog_bytes(run) >= least)
    return run, app, path


@pytest.mark.parametrize("options", ["", "--compress zstd"])
def test_a_killed_program_has_all_that_it_did(xstrace, options):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M {options}", MIB)
    os.kill(app, signal.SIGKILL)
    run.finish()
    assert run.status == -signal.SIGKILL
    check_truth(run.trace, path)
    assert run.trace.other["lost"] == 0


def test_a_full_backlog_grows_no_further(xstrace):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 1M", MIB * 3 // 4)
    for _ in range(50):
        assert backlog_bytes(run) <= MIB + 65536  # and its table
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path)


def test_a_full_backlog_costs_little(xstrace):
    """Many threads that all want more of it than there is wait about as long as without one."""

    def seconds(options):
        run = xstrace(f"{SMALL} {options}", "itt_tasks", [5000, 64])
        run.check_expected()
        return run.seconds

    for _ in range(3):  # others may have the processors
        without, full = seconds("--backlog 0"), seconds("--backlog 1M")
        if full < 3 * without:
            return
    pytest.fail(f"{full:.2f} s, and {without:.2f} s without a backlog")


@pytest.mark.parametrize("twice", [False, True])
def test_a_killed_drain_process_leaves_its_backlog(xstrace, twice):
    """All that was moved is in the trace; what the program did later may be lost."""
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M", MIB)
    os.kill(run.drain, signal.SIGKILL)
    moved = backlog_bytes(run)
    os.kill(app, signal.SIGKILL)
    run.wait()
    if twice:  # a successor, too, is killed in the middle of it
        wait_until(lambda: not os.path.exists(f"/proc/{app}"))
        process = subprocess.Popen([XSTRACE, "--recover", run.dir], cwd=run.cwd, stderr=subprocess.DEVNULL)
        process.kill()
        process.wait()
    recover(run)
    check_truth(run.trace, path, all_of_them=False)
    assert "corrupt_rings" not in run.trace.other
    # some of its chunks may have been read already, or be new: a half is on the safe side
    assert run.trace.other["events"] * 16 >= moved // 2


def test_a_backlog_that_was_cut_is_told(xstrace):
    run, app, _ = start_stress(xstrace, f"{SMALL} --backlog 2M", MIB)
    os.kill(run.drain, signal.SIGKILL)
    os.truncate(f"{run.dir}/backlog", 4096)
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{app}"))
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60)
    run.collect()
    rings = run.trace.other["corrupt_rings"]
    assert re.search(rf"\[WARNING\] {rings} rings? of process {app} \(itt_stress\) (was|were) not as they should be", done.stderr), done.stderr


def test_memory_is_given_back(xstrace):
    """While the program goes on, once the text is written; 4 MiB are kept for the next time."""
    run, app, _ = start_stress(xstrace, f"{SMALL} --backlog 8M", 7 * MIB)
    os.kill(app, signal.SIGSTOP)
    wait_until(lambda: backlog_bytes(run) <= 5 * MIB)
    os.kill(run.pid, signal.SIGCONT)  # it stops as its child does
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not run.dir)
    (trace,) = run.cwd.glob("*.json")
    assert trace.stat().st_size > 10 * MIB  # far too much to be read here
    trace.unlink()


def test_stop_writes_the_backlog(xstrace):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M --session backlog-{os.getpid()}", MIB)
    stop = [XSTRACE, "--stop", f"backlog-{os.getpid()}"]
    result = subprocess.run(stop, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path, all_of_them=False)
    assert run.trace.other["lost"] == 0 and run.trace.other["events"] * 16 >= MIB


def test_logged_calls_are_complete(xstrace):
    """-c reads all rings in the order of time: each call has its two lines, in their order."""
    logs = {}
    for options in ("--backlog 0", "--backlog 64M"):
        run = xstrace(f"-c --ring-size 64K {options} -o log.txt", "cl_enqueue", [3, 1000])
        (log,) = run.cwd.glob("log*.txt")
        calls = re.findall(r"^(>>>>|<<<<) \[\d+\] (clSetKernelArg|clGetDeviceInfo)\b", log.read_text(), re.M)
        log.unlink()
        logs[options] = calls
    assert len(logs["--backlog 0"]) > 8000 and logs["--backlog 0"] == logs["--backlog 64M"]
