"""CUDA inside the traced program, attacked: hung libraries, little stacks, cancelled threads, handlers, sandboxes, spoilt files.

Every program here is right without xstrace, and must be with it: the same output, the same status. What cannot be recorded is counted.
"""

import os
import re
import signal
import subprocess

import pytest
from conftest import APPS, XSTRACE, expected_lines, mounted, root_only, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from test_hostile import MODES, Place, begun, drains
from test_hostile import place as place  # a fixture

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


# ---- jumps, rights ----


def test_a_launch_that_is_left_by_a_jump(xstrace, tmp_path):
    """The driver's functions that the program calls then are not taken for the launch's own for ever, and are counted until then."""
    run = same(xstrace, sync(tmp_path), ALL, "jump", 1000)
    shown = sum(call.name == "cuCtxGetDevice" for call in run.trace.calls)
    assert shown >= 1000 - 64 and 1000 < shown + run.trace.other["lost"] <= 1000 + 10


def calls_of(run, name):
    return sorted((c for c in run.trace.calls if c.name == name), key=lambda c: c.start)


def test_calls_that_are_left_by_a_jump_from_a_fault(xstrace, tmp_path):
    """The driver gives the left call's number to all later ones: each of them, and what it puts on the device, is there, when it was."""
    cuda = SoftCUDA(tmp_path)
    run = same(xstrace, cuda, f"{KERNELS} --chrome-call-logging", "faults", 100)
    assert len({one.correlation for one in cuda.kernels}) == 1
    assert kernels(run) == 100 and sum("memset" in one.name.lower() for one in run.trace.device) == 10
    assert "open_commands" not in run.trace.other and not [line for line in run.said if "missing" in line]
    assert len(calls_of(run, "cudaLaunchKernel")) == len(calls_of(run, "cudaGetDevice")) == 100
    assert run.trace.other["lost"] == 10
    starts = sorted(one.start for one in run.trace.device)
    truth = sorted(one.start for one in cuda.kernels + cuda.fills)
    shifts = [start - true for start, true in zip(starts, truth)]
    assert len(starts) == len(truth) and max(shifts) - min(shifts) < 100_000


def has_left(run):
    """Is it said that calls may be missing behind one that was left? In the trace and on stderr."""
    texts = [text for text in run.trace.other.get("not_seen", []) if "has left a call of CUDA" in text]
    assert len(texts) == sum("has left a call of CUDA" in line for line in run.said) <= 1
    return bool(texts)


def test_a_launch_that_is_left_by_a_jump_and_is_the_last(xstrace, tmp_path):
    """It is counted, with the driver's function, and not shown as one that went on to the end."""
    run = same(xstrace, sync(tmp_path), ALL, "jump", 0)
    assert run.trace.other["lost"] == 2 and not calls_of(run, "cudaLaunchKernel") and has_left(run)


CALLS = f"{KERNELS} --chrome-call-logging"
STACKS = f"{CALLS} --call-stacks"  # then handlers find us in the middle of a callback, hardly ever at its begin


def jumps(xstrace, tmp_path, options, *args, **settings):
    cuda = sync(tmp_path, **settings)
    return same(xstrace, cuda, options, *args, app="cuda_jumps", env={"JUMPS_CALLS": str(tmp_path / "calls")})


def uncounted(run, tmp_path):
    """How many of the calls that the program has made under its timer are neither in the trace nor counted."""
    shown = len(calls_of(run, "cudaPeekAtLastError")) + len(calls_of(run, "cudaRuntimeGetVersion"))
    return int((tmp_path / "calls").read_text()) - shown - run.trace.other["lost"]


@pytest.mark.parametrize("options", [CALLS, STACKS])
def test_threads_that_leave_cupti_by_a_jump(xstrace, tmp_path, options):
    """CUPTI tells no more of such a thread: that is said, and the call that was left is counted when the thread ends."""
    run = jumps(xstrace, tmp_path, options, "threads", 200)
    # what is left in the first instructions of ours is not known yet
    assert has_left(run) and abs(uncounted(run, tmp_path)) <= 30
    assert run.trace.other["lost"] >= 150


def test_a_process_that_leaves_cupti_by_a_jump(xstrace, tmp_path):
    """The same at the end of the process, for the thread that ends it."""
    run = jumps(xstrace, tmp_path, STACKS, "again", 0)
    assert not has_left(run) and run.trace.other["lost"] == 0
    runs = [jumps(xstrace, tmp_path, STACKS, "once") for _ in range(3)]
    assert sum(map(has_left, runs)) >= 2 and sum(run.trace.other["lost"] for run in runs) >= 2


@pytest.mark.parametrize("options", [CALLS, STACKS])
def test_a_cupti_that_goes_on_after_a_jump(xstrace, tmp_path, options):
    """Then every call is there that comes after one which was left, and each of those is counted."""
    run = jumps(xstrace, tmp_path, options, "again", 100, TELLS_WITHIN=1)
    assert len(calls_of(run, "cudaGetDevice")) == 1000 and not has_left(run)
    assert abs(uncounted(run, tmp_path)) <= 15 and run.trace.other["lost"] >= 75


def test_an_end_of_the_process_while_cupti_tells(xstrace, tmp_path):
    """Nobody has jumped: nothing is missing but the call that the process has ended in."""
    run = jumps(xstrace, tmp_path, STACKS, "exit")
    assert not has_left(run) and run.trace.other["lost"] <= 1


@pytest.mark.parametrize("options", [CALLS, STACKS])
def test_calls_of_a_handler_while_cupti_tells(xstrace, tmp_path, options):
    """Where CUPTI tells of them, they are there or counted, as are those that they have interrupted."""
    run = jumps(xstrace, tmp_path, options, "within", 500, TELLS_WITHIN=1)
    assert uncounted(run, tmp_path) == 0 and not has_left(run)
    assert len(calls_of(run, "cudaRuntimeGetVersion")) > (250 if options == CALLS else 0)


def test_another_process_in_this_thread(xstrace, tmp_path):
    """clone(CLONE_VM) with the thread's own variables: the parent's calls are all there, one behind the other, the child's are counted."""
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --chrome-call-logging", "clone", 100)
    calls = calls_of(run, "cudaLaunchHostFunc")
    assert len(calls) == 100 and all(a.end <= b.start for a, b in zip(calls, calls[1:]))
    # a function of the driver's within the call counts, too
    assert 100 <= run.trace.other["lost"] <= 200
    assert kernels(run) == 100 and "open_commands" not in run.trace.other


def test_setuid(xstrace, tmp_path):
    """glibc waits for all threads, also for ours."""
    run = same(xstrace, SoftCUDA(tmp_path), KERNELS, "setuid", 10)
    assert kernels(run) == 10


# ---- ends ----


@pytest.mark.parametrize("version", [18, 130500])
def test_a_libcupti_that_never_flushes(xstrace, tmp_path, version):
    """The program ends all the same; what CUPTI has not told is counted."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version, FAULT="cuptiActivityFlushAll:block")
    run = same(xstrace, cuda, KERNELS, "launch", 1000)
    assert run.seconds < 30 and kernels(run) == 0 and missing(run) == 1000


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
    assert run.seconds < 30 and launched(run) == len(cuda.kernels)
    assert missing(run) == len(cuda.kernels) + len(cuda.copies) + len(cuda.fills)


# ---- stacks and threads ----


@pytest.mark.parametrize("options", [KERNELS, ALL])
@pytest.mark.parametrize("mode", ["threads", "sigstack"])
def test_little_stacks(xstrace, tmp_path, mode, options):
    run = same(xstrace, sync(tmp_path), options, mode)
    assert kernels(run) == launched(run)


@pytest.mark.long
@pytest.mark.parametrize("mode, times", [("deferred", 100), ("async", 100)])
def test_threads_that_are_cancelled(xstrace, tmp_path, mode, times):
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --chrome-call-logging", mode, times)
    assert kernels(run) >= 3
    assert any(one.name == "cudaGetDevice" for one in run.trace.calls) == (mode == "async")


@pytest.mark.long
def test_buffers_for_a_thread_that_is_to_be_cancelled(xstrace, tmp_path):
    """CUPTI asks for buffers on its thread: nothing that we do there is a cancellation point."""
    run = same(xstrace, sync(tmp_path), "--chrome-device-logging", "pending", 3)
    assert kernels(run) + missing(run) == launched(run)
    assert kernels(run) > 40000


def test_fork_on_a_thread_of_cuda(xstrace, tmp_path):
    run = same(xstrace, SoftCUDA(tmp_path), KERNELS, "fork")
    assert kernels(run) + missing(run) == launched(run)  # nobody waits for the last one


def test_a_reset_while_another_thread_launches(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), KERNELS, "reset", 5000)
    assert kernels(run) > 0


# ---- what programs change ----


def test_libraries_closed_too_often(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), KERNELS, "dlclose")
    assert kernels(run) == launched(run)


@pytest.mark.long
def test_pauses_in_quick_turns(xstrace, tmp_path):
    """What was made in a pause is not in the trace."""
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --start-paused", "toggle", 80000)
    # where a pause ends within cudaLaunchKernel(), what is recorded is the driver's function
    calls = sum(one.name in ("cudaLaunchKernel", "cuLaunchKernel") for one in run.trace.calls)
    assert 0 < kernels(run) < 80000 and 0 < calls < 80000


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("version", [18, 130500])
@pytest.mark.parametrize("options", [KERNELS, "--chrome-device-logging"])
@pytest.mark.parametrize("sync", ["0", "1"])
def test_pauses_are_exact(xstrace, tmp_path, options, version, sync):
    """What is launched between a resume and the next pause is shown, and nothing else."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version, SYNC=sync)
    run = same(xstrace, cuda, f"{options} --start-paused", "turns", 3000)
    assert kernels(run) == launched(run) > 8000 and missing(run) == 0


@pytest.mark.parametrize("mebibytes", [16, 64, 256])
def test_little_address_space(xstrace, tmp_path, mebibytes):
    run = same(xstrace, sync(tmp_path), f"{KERNELS} -v", "limit", mebibytes)
    there = kernels(run) if run.traces else 0
    assert there in (0, launched(run))
    assert there or any("memory" in line for line in run.said) or missing(run) >= launched(run)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("size", ["33m", "37m", "48m"])
@root_only
def test_little_shared_memory(xstrace, tmp_path, size):
    """A buffer that finds no memory is CUPTI's to drop records for: nobody dies of SIGBUS."""
    cuda = sync(tmp_path, OUT_OF_ORDER=2)
    with mounted("/dev/shm", f"size={size}"):
        run = same(xstrace, cuda, "--chrome-device-logging", "launch", 40000)
        assert not os.listdir("/dev/shm")
        assert kernels(run) + missing(run) >= launched(run)


@pytest.mark.long
@root_only
def test_shared_memory_that_is_full_later(xstrace, tmp_path):
    """Something else takes what is left while the program runs."""
    cuda = sync(tmp_path)
    with mounted("/dev/shm", "size=64m"):
        script = f"{APPS}/cuda_hostile launch 10; head -c 100M /dev/zero >/dev/shm/junk 2>/dev/null; {APPS}/cuda_hostile launch 100000"
        run = same(xstrace, cuda, "--chrome-device-logging", "-c", script, app="sh")
        os.unlink("/dev/shm/junk")
    assert kernels(run) >= 10


def test_a_subscriber_that_comes_and_goes(xstrace, tmp_path):
    """Beside another one each has its own calls and records."""
    run = same(xstrace, sync(tmp_path, CUPTI_VERSION=130500), KERNELS, "subscriber")
    assert kernels(run) == launched(run)


@pytest.mark.parametrize("threads", ["filter", "all"])
def test_a_filter_that_kills(xstrace, tmp_path, threads):
    """CUPTI calls us on the program's thread: no system call is made there from then on, and our own thread has ended.

    A flush that takes 2.2 s in all is not waited for, but the thread that has asked for it is.
    """
    run = same(xstrace, sync(tmp_path, FLUSH_MS=1100 if threads == "all" else 0), f"{KERNELS} --chrome-call-logging", threads, app="cuda_sealed")
    # those before the filter; of the others what found room in buffers that were there
    assert kernels(run) >= 10 and missing(run) > 0
    assert any("sandbox (seccomp)" in line for line in run.said)


def test_strict_mode(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), f"{KERNELS} --chrome-call-logging", "strict", app="cuda_sealed")
    assert kernels(run) >= 10
    assert any("strict mode" in line for line in run.said)


def test_a_program_that_forbids_itself_the_clock(xstrace, tmp_path):
    """CUPTI still asks us for the time of each record: it comes by a system call."""
    run = same(xstrace, sync(tmp_path, ASKS_KERNEL=1), f"{KERNELS} --chrome-call-logging", "clock", app="cuda_sealed")
    assert kernels(run) >= 10
    assert any("PR_SET_TSC" in line for line in run.said)


# ---- handlers, and NVTX ----

NVTX = f"{KERNELS} --chrome-call-logging --chrome-itt-logging"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mode", ["interrupt", "jump"])
def test_handlers_that_trace(xstrace, tmp_path, mode):
    """Threads of CUPTI's own get no signal of the program's: a jump would end on another thread's stack."""
    run = same(xstrace, sync(tmp_path), NVTX, mode, 4, app="nvtx_hostile")
    run.check_expected()
    assert any(task.name == "NVTX::in handler" for task in run.trace.tasks)


def test_a_thousand_threads(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), NVTX, "threads", 1000, app="nvtx_hostile")
    run.check_expected()
    assert missing(run) == 0


def test_odd_names(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), f"{NVTX} -h -v -o log.txt", "names", app="nvtx_hostile")
    run.check_expected()
    names = {task.name for task in run.trace.tasks}
    assert 'NVTX::"}],"traceEvents":[{"ph":"X"' in names
    assert "NVTX::%s%n%d" in names and any(re.fullmatch("NVTX::x{1000,}.*", name) for name in names)


def test_nonsense(xstrace, tmp_path):
    run = same(xstrace, sync(tmp_path), NVTX, "nonsense", app="nvtx_hostile")
    run.check_expected()


# ---- the run's files ----


def loop(place, options=("--chrome-device-logging",)):
    """Launches for more than half a second, with small buffers in quick turns."""
    cuda = SoftCUDA(place.out, CUT_EVERY=50)
    place.env = place.env | cuda.env
    del place.env["SOFTCUDA_LOG"]
    return place.start([XSTRACE, *options, "--on-full", "drop", APPS / "cuda_loop", "60000"])


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_scribbled_buffers(place, mode):
    """A process of the same user writes into CUPTI's buffers and into what tells of them."""
    run = loop(place)
    scribbler = place.scribble(run.dir, "c", mode, 600, seed=MODES.index(mode))
    place.wait(run, 0, 60)
    assert scribbler.wait(30) == 0 and int(scribbler.stdout.read().split()[1]) > 0
    assert "expected: 60000 kernels" in place.stdout.read_text()


@pytest.mark.long
def test_forged_names(place):
    """A name's pointer changes while it is looked at: no text is read where none is."""
    run = loop(place)
    forger = subprocess.Popen([APPS / "cuda_forger", run.dir, "1500"], stdout=subprocess.PIPE, text=True)
    place.wait(run, 0, 60)
    assert forger.wait(30) == 0 and int(forger.stdout.read().split()[1]) > 1000
    assert "expected: 60000 kernels" in place.stdout.read_text()


def test_buffers_that_are_cut(place: Place):
    """The program itself may die of it, the drain process may not; it ends."""
    place.mine = place.mine | {"core"}
    run = loop(place)
    wait_until(lambda: run.poll() is not None or begun(run.dir))
    scribbler = place.scribble(run.dir, "c", "cut", 1500)
    status = run.wait(60)
    wait_until(lambda: not drains(run.dir), 60)
    scribbler.communicate(timeout=30)
    assert status in (0, -signal.SIGBUS, 128 + signal.SIGBUS), place.stderr.read_text()
    place.look()
