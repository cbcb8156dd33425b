"""--call-stacks: where calls were made, in code without frame pointers, on odd stacks, in libraries that are gone."""

import collections
import os
import platform
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

CALL = "--chrome-call-logging --call-stacks"
SOFTGPU = BUILD / "tests/softgpu/libze_softgpu.so"
PLUGIN = """
static __attribute__((noinline)) void inside_%(name)s(void (*call)(void))
{
	call();
	__asm__ volatile("" ::: "memory");
}
__attribute__((visibility("default"))) void plugin(void (*call)(void))
{
	volatile char room[%(room)d];
	room[0] = 0;
	inside_%(name)s(call);
	__asm__ volatile("" ::: "memory");
}
"""


def functions(slice_):
    """Names of the frames, outermost first."""
    return [frame.rpartition("+")[0] or frame for frame in slice_.args["stack"]]


def stacks_of(run, call="clRetainContext"):
    found = [functions(s) for s in sorted(run.trace.calls, key=lambda s: s.start) if s.name == call]
    assert found
    return found


def below_main(stack):
    return stack[stack.index("main") :]


def folded(run):
    """{(frame, ...): ns} of the run's only folded file."""
    (path,) = run.cwd.glob("*.folded")
    lines = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
    result = {tuple(frames.split(";")): int(ns) for frames, ns in lines}
    assert len(result) == len(lines), "a stack has one line"
    return result


def make_plugin(directory, name, room=16, *flags):
    path = directory / f"{name}.so"
    source = directory / f"{name}.c"
    source.write_text(PLUGIN % {"name": name, "room": room})
    subprocess.run(["cc", "-w", "-O2", "-shared", "-fPIC", "-o", path, source, *flags], check=True)
    return path


def test_the_functions_that_lead_to_a_call(xstrace):
    run = xstrace(CALL, "cl_stacks", ["chain", 4])
    assert (run.status, run.err) == (0, "")
    (stack,) = stacks_of(run)
    assert below_main(stack) == ["main", *["chain"] * 5, "leaf"]
    assert stack[0] == "_start"
    assert all("stack" in s.args for s in run.trace.calls)
    assert not [s for s in run.trace.calls if any("xstrace" in f for f in s.args["stack"])]


def test_a_kernel_launch_has_the_applications_function(xstrace):
    run = xstrace("--chrome-kernel-logging --call-stacks", "cl_stacks")
    (stack,) = stacks_of(run, "clEnqueueNDRangeKernel")
    assert below_main(stack)[:2] == ["main", "launch"]


@pytest.mark.parametrize("depth", [1, 2, 16, 100, 128])
def test_recursion_deeper_than_asked_for(xstrace, depth):
    """The innermost frames count most."""
    run = xstrace(f"--chrome-call-logging --call-stacks={depth}", "cl_stacks", ["chain", 200])
    (stack,) = stacks_of(run)
    assert stack == ["…", *["chain"] * (depth - 1), "leaf"]
    assert any(frames[0] == "…" for frames in folded(run))


@pytest.mark.parametrize("size", [100, 5000, 300000])
def test_a_realigned_frame_of_no_fixed_size(xstrace, size):
    (stack,) = stacks_of(xstrace(CALL, "cl_stacks", ["realigned", size]))
    assert below_main(stack) == ["main", "realigned", "chain", "chain", "leaf"]


def test_a_thread(xstrace):
    (stack,) = stacks_of(xstrace(CALL, "cl_stacks", ["threads"]))
    assert stack[-2:] == ["in_thread", "leaf"] and "main" not in stack and len(stack) <= 5


def test_a_signal_handler_on_its_own_stack(xstrace):
    """The walk goes on where the signal came."""
    (stack,) = stacks_of(xstrace(CALL, "cl_stacks", ["handler"]))
    stack = below_main(stack)
    assert stack[:2] == ["main", "interrupted"] and stack[-2:] == ["handler", "leaf"]


def test_a_coroutine(xstrace):
    inside, after = stacks_of(xstrace(CALL, "cl_stacks", ["coroutine"]))
    assert inside[-2:] == ["coroutine", "leaf"] and "main" not in inside
    assert below_main(after) == ["main", "resume", "leaf"]


def test_little_room_on_the_stack(xstrace):
    run = xstrace(CALL, "cl_stacks", ["deep"])
    assert run.status == 0
    (stack,) = stacks_of(run)
    assert stack[-2:] == ["near_the_end", "leaf"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
@pytest.mark.parametrize("where", ["thread", "coroutine"])
def test_code_made_at_run_time_that_keeps_a_number_in_rbp(xstrace, where):
    """The memory that it points to is followed only on the thread's own stack, and only if it is there."""
    run = xstrace(CALL, "cl_stacks", ["made", where])
    assert (run.status, run.err) == (0, "")
    first, second = stacks_of(run)
    assert first[-1] == second[-1] == "leaf"
    assert len(second) == 2 and second[0].startswith("0x")  # the code itself; what called it cannot be known
    assert len(first) == 2 or where == "coroutine"


def test_libraries_that_are_closed_and_come_to_the_same_place(xstrace):
    """Each is named by what it was when the call was made, also when its file is gone."""
    names = ["first", "second", "third"]
    paths = [make_plugin(xstrace.home, name, 16 + 160 * i) for i, name in enumerate(names)]
    relative = os.path.relpath(paths[2], xstrace.cwd)
    run = xstrace(CALL, "cl_stacks", ["plugin", *paths[:2], relative, *paths[:2]])
    stacks = [below_main(stack) for stack in stacks_of(run)]
    assert stacks == [["main", "run_plugin", "plugin", f"inside_{n}", "leaf"] for n in [*names, *names[:2]]]


def test_a_stripped_library(xstrace):
    """What is exported has a name; the rest is where it lies in the file."""
    path = make_plugin(xstrace.home, "bare", 16, "-s")
    (stack,) = stacks_of(xstrace(CALL, "cl_stacks", ["plugin", path]))
    assert below_main(stack) == ["main", "run_plugin", "plugin", "bare.so", "leaf"]


@pytest.mark.parametrize("replaced", [False, True], ids=["gone", "replaced"])
def test_a_library_whose_file_is_gone_or_another(xstrace, replaced):
    """The build id tells that names out of the new file would be wrong."""
    path = make_plugin(xstrace.home, "one")
    new = make_plugin(xstrace.home, "other", 800) if replaced else "-"
    (stack,) = stacks_of(xstrace(CALL, "cl_stacks", ["replaced", path, new]))
    assert below_main(stack) == ["main", "run_plugin", "one.so", "one.so", "leaf"]


def test_a_killed_process(xstrace):
    run = xstrace(CALL, "cl_stacks", ["killed"])
    assert run.status == -signal.SIGKILL
    (stack,) = stacks_of(run)
    assert below_main(stack) == ["main", "chain", "leaf"]
    assert any(frames[-2:] == ("leaf", "clRetainContext") for frames in folded(run))


def test_the_folded_file_has_the_time_of_the_calls(xstrace):
    run = xstrace(CALL, "cl_stacks", ["chain", 3])
    lines = folded(run)
    expected = collections.Counter()
    for call in run.trace.calls:
        frames = functions(call)
        if frames[-1] != call.name:
            frames.append(call.name)
        expected[tuple(frames)] += round(call.end - call.start)
    assert lines == expected


def test_without_a_trace(xstrace):
    """Reports alone: the folded file is written, and device work alone makes its launches known."""
    for options in ("-h", "-d", ""):
        run = xstrace(f"{options} --call-stacks", "cl_stacks")
        lines = folded(run)
        assert any(frames[-2:] == ("launch", "clEnqueueNDRangeKernel") for frames in lines)
        assert any("Call stacks are stored in" in line for line in run.said)
        for path in run.cwd.glob("*.folded"):
            path.unlink()


def test_python(xstrace):
    """Deep stacks in code of many kinds: each leads back to the program's beginning."""
    run = xstrace(f"{CALL}=128", sys.executable, [ROOT / "tests/apps/pyopencl_demo.py"])
    assert run.status == 0
    starts = {functions(s)[0] for s in run.trace.calls}
    assert starts == {"_start"}, starts


@pytest.mark.skipif(not SOFTGPU.exists(), reason="no Level Zero headers")
@pytest.mark.parametrize("options", ["--chrome-call-logging", "--chrome-kernel-logging", "-d"])
def test_level_zero(xstrace, options):
    env = {"ZE_ENABLE_ALT_DRIVERS": str(SOFTGPU)}
    run = xstrace(f"{options} --call-stacks", "ze_matrix", ["--kernels", "3"], env=env)
    assert run.status == 0
    launches = [frames for frames in folded(run) if frames[-1] == "zeCommandListAppendLaunchKernel"]
    assert launches and all("main" in frames for frames in launches)
    if "chrome" in options:
        calls = [s for s in run.trace.calls if s.name == "zeCommandListAppendLaunchKernel"]
        assert len(calls) == 3 and all("main" in functions(s) for s in calls)
