"""--flight-recorder with CUDA: the device work of the time that is kept."""

import collections
import os
import signal
import time

import pytest
from conftest import wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")
FLIGHT = "--chrome-kernel-logging --flight-recorder"


def stored(run):
    return (run.log / "stderr").read_text().count("Timeline is stored in")


def recorder(trace):
    return trace.metadata["flight_recorder"]


def correlations(trace):
    return collections.Counter(one.args["correlation"] for one in trace.device)


def written_since(cuda, before, more):
    wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > before + more)


@pytest.mark.long
@pytest.mark.parametrize("version", [18, 130500])
def test_again_and_again(xstrace, tmp_path, version):
    """Each dump has all kernels from some moment on, each once, and those before are in none."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version)
    run = xstrace.start(f"{FLIGHT} 1s", "cuda_loop", [100_000_000, 100], env=cuda.env)
    written_since(cuda, 0, 10_000)
    for dump in range(3):
        written_since(cuda, cuda.path.stat().st_size, 200_000)
        time.sleep(0.3)  # what is executed is told ten times a second
        os.kill(run.pid, signal.SIGUSR1)
        wait_until(lambda: stored(run) > dump)
    os.kill(run.child("cuda_loop"), signal.SIGKILL)
    run.wait(60)
    run.collect()
    traces = sorted(run.traces, key=lambda trace: recorder(trace)["dump"])
    assert [recorder(trace)["reasons"] for trace in traces] == [["signal"]] * 3 + [["crash"]]
    executed = [c.correlation for c in cuda.kernels]
    for trace in traces:
        shown = correlations(trace)
        first, last = min(shown), max(shown)
        assert shown == collections.Counter(c for c in executed if first <= c <= last)
        begin, end = (round(recorder(trace)[key] * 1000) for key in ("from", "to"))
        assert all(one.end >= begin for one in trace.device)
        # CUPTI hands records over after some time; what it has written before is shown
        assert min(one.start for one in trace.device) < begin + 300_000_000
        assert max(one.end for one in trace.device) > end - 300_000_000
        calls = sum(one.name == "cudaLaunchKernel" for one in trace.calls)
        assert 0.5 < len(trace.device) / calls < 1.5
    # the last one is of a process that has ended: what it had launched is there or told
    missing = sum(traces[-1].other.get(key, 0) for key in ("open_commands", "untimed_commands"))
    assert len(executed) - executed.index(max(correlations(traces[-1]))) <= missing + 2


@pytest.mark.parametrize("options", ["--chrome-kernel-logging", "--chrome-device-logging"])
def test_a_crash(xstrace, tmp_path, options):
    cuda = SoftCUDA(tmp_path)
    run = xstrace(
        f"{options} --flight-recorder 60s",
        "cuda_streams",
        ["--threads", 3, "--kernels", 40, "--end", "abort"],
        env=cuda.env,
    )
    assert run.status == -signal.SIGABRT
    assert recorder(run.trace)["reasons"] == ["crash"]
    work = [*cuda.kernels, *cuda.copies, *cuda.fills]
    assert correlations(run.trace) <= collections.Counter(c.correlation for c in work)
    assert len(run.trace.device) + run.trace.other.get("untimed_commands", 0) == len(work)
    assert run.trace.other.get("open_commands", 0) == 0


def test_a_kernel_that_hangs(xstrace, tmp_path):
    """Killed long after the window has passed: what is still on its way is told."""
    cuda = SoftCUDA(tmp_path, DURATION_NS="*=60000000000")
    run = xstrace.start(f"{FLIGHT} 100ms", "cuda_loop", [3, 3], env=cuda.env)
    app = run.child("cuda_loop")
    wait_until(lambda: "cudaStreamSynchronize" in dumped(run))
    os.kill(app, signal.SIGKILL)
    run.wait(60)
    run.collect()
    trace = sorted(run.traces, key=lambda trace: recorder(trace)["dump"])[-1]
    assert trace.other["open_commands"] == 3 and not trace.device


def dumped(run):
    """The text of all dumps, with one that is asked for now."""
    before = stored(run)
    os.kill(run.pid, signal.SIGUSR1)
    wait_until(lambda: stored(run) > before or "has no file" in (run.log / "stderr").read_text())
    return "".join(path.read_text() for path in run.cwd.glob("*.json"))


@pytest.mark.long
def test_memory_is_bounded(xstrace, tmp_path):
    """The newest are there, the header says since when."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace.start(
        f"{FLIGHT} 60s --flight-memory 8M", "cuda_loop", [100_000_000, 100], env=cuda.env
    )
    written_since(cuda, 0, 10_000_000)
    os.kill(run.pid, signal.SIGUSR1)
    wait_until(lambda: stored(run))
    os.kill(run.child("cuda_loop"), signal.SIGKILL)
    run.wait(60)
    run.collect()
    trace = next(t for t in run.traces if recorder(t)["reasons"] == ["signal"])
    assert recorder(trace)["cut"] is True
    assert 0 < len(trace.device) < 60_000


@pytest.mark.parametrize("options", ["", "--start-paused", "--delay 100"])
@pytest.mark.parametrize("program", ["cuda_calls", "cuda_streams"])
def test_a_process_without_a_ring(xstrace, tmp_path, options, program):
    """It has recorded nothing itself, and yet CUPTI has given buffers back: they are read, and nothing is kept of that."""
    cuda = SoftCUDA(tmp_path)
    bare = xstrace.bare(program, [2000], env=cuda.env)
    run = xstrace(f"--chrome-device-logging --flight-recorder 60s {options}", program, [2000], env=cuda.env)
    assert run.status == bare.status == 0 and run.traces == []
    assert run.err == bare.err == ""
    assert [line for line in run.said if "drain process" in line] == []
    assert "was not asked to write" in run.said[-1]
