"""CUDA inside the traced program, attacked: hung libraries, little stacks, cancelled threads, handlers, sandboxes, spoilt files.

Every program here is right without xstrace, and must be with it: the same output, the same status. What cannot be recorded is counted.
"""

import pytest
from conftest import expected_lines
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")

KERNELS = "--chrome-kernel-logging"
ALL = f"{KERNELS} --chrome-call-logging -c --call-stacks -o log.txt"


def same(xstrace, cuda, options, *args, app="cuda_hostile", env=None, timeout=60, **popen):
    """The program bare and traced; its own output and status are the same."""
    env = cuda.env | (env or {})
    bare = xstrace.bare(app, args, env=env, timeout=timeout, **popen)
    cuda.path.unlink(missing_ok=True)
    run = xstrace(options, app, args, env=env, timeout=timeout, **popen)
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    return run


def sync(tmp_path, **settings):
    """A launch is executed in its call, and nothing is logged: no cancellation point is in it."""
    cuda = SoftCUDA(tmp_path, SYNC=1, **settings)
    del cuda.env["SOFTCUDA_LOG"]
    return cuda


def kernels(run):
    return sum("registers" in one.args for trace in run.traces for one in trace.device)


def missing(run):
    keys = ("lost", "open_commands", "untimed_commands")
    return sum(trace.other.get(key, 0) for trace in run.traces for key in keys)


def launched(run):
    return expected_lines(run.out)[None, "expected", "kernels", None]


# ---- ends ----


@pytest.mark.parametrize("version", [18, 130500])
def test_a_libcupti_that_never_flushes(xstrace, tmp_path, version):
    """The program ends all the same; what CUPTI had written is shown, what it kept is counted."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version, FAULT="cuptiActivityFlushAll:block")
    run = same(xstrace, cuda, KERNELS, "launch", 1000)
    assert run.seconds < 30 and kernels(run) == 1000 and missing(run) == 0


def test_what_is_not_flushed_is_counted(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, FAULT="cuptiActivityFlushAll:block", LATE_MS=60000)
    run = same(xstrace, cuda, KERNELS, "launch", 1000)
    assert kernels(run) == 0 and missing(run) == 1000
    assert any("1000" in line for line in run.said)


def test_a_device_that_hangs_at_the_end(xstrace, tmp_path):
    """A program that does not wait for its last kernel ends at once, and that kernel is counted."""
    cuda = SoftCUDA(tmp_path, DURATION_NS="empty=60000000000")
    run = same(xstrace, cuda, KERNELS, "launch", 3)
    assert run.seconds < 30 and kernels(run) == 0 and missing(run) == 3


@pytest.mark.parametrize("end, status", [("exec", 0), ("sigterm", -15), ("_exit", 0), ("abort", -6)])
def test_ends_without_a_flush(xstrace, tmp_path, end, status):
    """Nothing of ours runs at these: what blocks there cannot matter."""
    cuda = SoftCUDA(tmp_path, FAULT="cuptiActivityFlushAll:block", SYNC=1)
    if end[0] in "_a":
        run = same(xstrace, cuda, KERNELS, "--end", end, app="cuda_streams")
    else:
        run = same(xstrace, cuda, KERNELS, end, 100)
    assert run.status == status
    assert kernels(run) == launched(run) == len(cuda.kernels)


# ---- stacks and threads ----


@pytest.mark.parametrize("options", [KERNELS, ALL])
@pytest.mark.parametrize("mode", ["threads", "sigstack"])
def test_little_stacks(xstrace, tmp_path, mode, options):
    run = same(xstrace, sync(tmp_path), options, mode)
    assert kernels(run) == launched(run)


@pytest.mark.parametrize("mode, times", [("deferred", 300), ("async", 300)])
def test_threads_that_are_cancelled(xstrace, tmp_path, mode, times):
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --chrome-call-logging", mode, times)
    assert kernels(run) >= 3
    assert any(one.name == "cudaGetDevice" for one in run.trace.calls) == (mode == "async")


def test_buffers_for_a_thread_that_is_to_be_cancelled(xstrace, tmp_path):
    """CUPTI asks for buffers on its thread: nothing that we do there is a cancellation point."""
    run = same(xstrace, sync(tmp_path), "--chrome-device-logging", "pending", 3)
    assert kernels(run) + missing(run) == launched(run)
    assert kernels(run) > 40000


def test_fork_on_a_thread_of_cuda(xstrace, tmp_path):
    run = same(xstrace, SoftCUDA(tmp_path), KERNELS, "fork")
    assert kernels(run) == launched(run)


def test_a_reset_while_another_thread_launches(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), KERNELS, "reset", 5000)
    assert kernels(run) > 0


# ---- what programs change ----


def test_libraries_closed_too_often(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), KERNELS, "dlclose")
    assert kernels(run) == launched(run)


def test_pauses_in_quick_turns(xstrace, tmp_path):
    """Each launch is in the trace or was made in a pause; none is there without its call."""
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --start-paused", "toggle", 200000)
    calls = sum(one.name == "cudaLaunchKernel" for one in run.trace.calls)
    assert 0 < kernels(run) <= calls < 200000
    assert calls - kernels(run) <= missing(run)


@pytest.mark.parametrize("mebibytes", [16, 64, 256])
def test_little_address_space(xstrace, tmp_path, mebibytes):
    run = same(xstrace, sync(tmp_path), f"{KERNELS} -v", "limit", mebibytes)
    there = kernels(run) if run.traces else 0
    assert there in (0, launched(run))
    assert there or any("memory" in line for line in run.said) or missing(run) >= launched(run)
