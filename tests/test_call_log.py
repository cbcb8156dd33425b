"""-c: every call with its arguments and results, as the program made them."""

import os
import re
import signal
import time

import pytest

from conftest import BUILD, compile_c, wait_until

SOFTGPU = BUILD / "tests/softgpu/libze_softgpu.so"
ZE = {"ZE_ENABLE_ALT_DRIVERS": str(SOFTGPU)}
level_zero_only = pytest.mark.skipif(not SOFTGPU.exists(), reason="Level Zero is not built")

BEGIN = re.compile(r">>>> \[(\d+)\] (?:<PID:(\d+)> )?(?:<TID:(\d+)> )?(\w+):((?: .*)?)")
END = re.compile(
    r"<<<< \[(\d+)\] (?:<PID:(\d+)> )?(?:<TID:(\d+)> )?(\w+) \[(\d+) ns\](.*?)"
    r"(?: -> (\w+) ?\((-?\w+)\)( \[FAILED\])?| (\(unfinished\)))?"
)


class Call:
    """One call of the log: name, given (text), stored (text), result, code, failed; begin and end in ns."""

    def __init__(self, begin, end):
        self.name, self.given, self.tid, self.pid = begin[4], begin[5], begin[3], begin[2]
        self.begin, self.end, self.duration = int(begin[1]), int(end[1]), int(end[5])
        self.stored, self.result, self.code = end[6], end[7], end[8]
        self.failed, self.unfinished = bool(end[9]), bool(end[10])


def parse(text, per_thread=True):
    """All calls, in the order in which they end; every line is one of the log's.

    The lines are in the order of time, but for a thread that loses the processor between its clock
    and its record.
    """
    calls, open_calls, last, late = [], {}, 0, 0
    for line in text.splitlines():
        begin, end = BEGIN.fullmatch(line), END.fullmatch(line)
        assert begin or end, line
        match = begin or end
        late += int(match[1]) < last
        last = max(last, int(match[1]))
        stack = open_calls.setdefault(match[3] if per_thread else None, [])
        if begin:
            stack.append(begin)
        else:
            assert stack and stack[-1][4] == end[4], line
            calls.append(Call(stack.pop(), end))
    assert not any(open_calls.values()) and late <= len(calls) // 500
    return calls


def only(calls, name):
    found = [call for call in calls if call.name == name]
    assert len(found) == 1, name
    return found[0]


def test_arguments_and_results(xstrace):
    """A small program: what it says in its source."""
    run = xstrace("-c", "cl_dlopen")
    calls = parse(run.err)
    pointer = "0x[0-9a-f]+"
    context = only(calls, "clCreateContext")
    device = re.search(f" devices = {pointer} \\{{({pointer})\\}} ", context.given)[1]
    assert f" devices[0] = {device}" in only(calls, "clGetDeviceIDs").stored
    assert " deviceType = CL_DEVICE_TYPE_ALL " in only(calls, "clGetDeviceIDs").given
    kernel = only(calls, "clCreateKernel")
    assert ' kernelName = "twice" ' in kernel.given
    handle = re.search(f"result = ({pointer})", kernel.stored)[1]
    launch = only(calls, "clEnqueueNDRangeKernel")
    assert f" kernel = {handle} (twice) workDim = 1 globalWorkOffset = 0x0 " in launch.given
    assert re.search(f" globalWorkSize = {pointer} \\{{256\\}} localWorkSize = 0x0 ", launch.given)
    buffer = only(calls, "clCreateBuffer")
    assert " flags = CL_MEM_READ_WRITE size = 1024 hostPtr = 0x0 " in buffer.given
    buffer = re.search(f"result = ({pointer})", buffer.stored)[1]
    assert re.search(f" argSize = 8 argValue = {pointer} {buffer}$", only(calls, "clSetKernelArg").given)
    write = only(calls, "clEnqueueWriteBuffer")
    assert f" buffer = {buffer} blockingWrite = CL_TRUE offset = 0 size = 1024 " in write.given
    assert all((c.result, c.code, c.failed) == ("CL_SUCCESS", "0", False) for c in calls)
    assert all(c.end - c.begin >= c.duration for c in calls)


def test_failed_calls_are_marked(xstrace):
    run = xstrace("-c -h", "cl_matrix")
    calls = parse(run.err.split("\nProcess ")[0], per_thread=False)
    failed = [call for call in calls if call.failed]
    assert sorted({c.name for c in failed}) == ["clEnqueueNDRangeKernel", "clEnqueueReadBuffer"]
    assert len(failed) == 6 and all(c.result.startswith("CL_INVALID_") for c in failed)
    assert all(int(c.code) < 0 and not c.stored for c in failed)
    # the table counts the same calls
    assert f"{'All':>14}, {len(calls):12}, {6:12}, " in run.err


def test_pid_and_tid(xstrace):
    run = xstrace("-c --pid --tid", "cl_dlopen")
    calls = parse(run.err)
    assert len({(c.pid, c.tid) for c in calls}) == 1 and calls[0].pid == calls[0].tid


def test_goes_to_the_file(xstrace):
    run = xstrace("-c -h -o log.txt", "cl_dlopen")
    text = next(run.cwd.iterdir()).read_text()
    assert run.err == "" and text.startswith(">>>> [") and "=== API Timing Summary ===" in text
    assert len(run.said) == 1 and "Log is stored in" in run.said[0]


THREADS = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
static cl_platform_id platform;
static void *work(void *data)
{
	char text[256]; size_t size;
	for (int i = 0; i < 2000; i++)
		clGetPlatformInfo(platform, CL_PLATFORM_PROFILE, sizeof(text), text, &size);
	return data;
}
int main(void)
{
	pthread_t threads[4];
	if (clGetPlatformIDs(1, &platform, 0)) return 1;
	for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
	return 0;
}
"""


def test_threads_in_the_order_of_time(xstrace):
    program = compile_c(xstrace.home / "threads", THREADS, "-l:libOpenCL.so.1")
    run = xstrace("-c --tid", program)
    calls = parse(run.err)  # which checks the order of all lines
    threads = {c.tid for c in calls}
    assert len(calls) == 4 * 2000 + 1 and len(threads) == 5
    info = [c for c in calls if c.name == "clGetPlatformInfo"]
    assert all(' paramName = CL_PLATFORM_PROFILE paramValueSize = 256 ' in c.given for c in info)
    assert {c.stored for c in info} == {' paramValue = "FULL_PROFILE" paramValueSizeRet = 13'}


NESTED = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
static cl_device_id device;
static void CL_CALLBACK inner(cl_program program, void *data)
{
	cl_build_status status;
	clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status, 0);
}
int main(void)
{
	const char *source = "kernel void k(int x) {}";
	cl_platform_id platform;
	if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0)) return 1;
	cl_context context = clCreateContext(0, 1, &device, 0, 0, 0);
	cl_program program = clCreateProgramWithSource(context, 1, &source, 0, 0);
	return clBuildProgram(program, 1, &device, "-w -DA=\"b\n\"", inner, 0);
}
"""


def test_nested_calls(xstrace):
    """A callback that the call runs calls in turn."""
    program = compile_c(xstrace.home / "nested", NESTED, "-l:libOpenCL.so.1")
    run = xstrace("-c --tid", program)
    calls = parse(run.err)
    outer, inner = only(calls, "clBuildProgram"), only(calls, "clGetProgramBuildInfo")
    if outer.tid == inner.tid:
        assert outer.begin < inner.begin < inner.end < outer.end
    assert r'options = "-w -DA=\"b\n\""' in outer.given + outer.stored


BOGUS = r"""
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>
#define BAD ((void *)16)
int main(void)
{
	const char *source = "kernel void k(int x) {}";
	cl_platform_id platform; cl_device_id device; cl_int error; size_t one = 1;
	if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0)) return 1;
	cl_context context = clCreateContext(0, 1, &device, 0, 0, 0);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, 0);
	cl_program program = clCreateProgramWithSource(context, 1, &source, 0, 0);
	clBuildProgram(program, 0, 0, 0, 0, 0);
	cl_kernel kernel = clCreateKernel(program, "k", 0);
	/* pointers that the runtime looks at only when the rest is right */
	printf("%d\n", clEnqueueNDRangeKernel(queue, kernel, 77, BAD, BAD, BAD, 0, 0, 0));
	printf("%d\n", clSetKernelArg(kernel, 99, 4, BAD));
	printf("%d\n", clSetKernelArg(kernel, 0, 1ull << 40, BAD));
	printf("%d\n", clEnqueueNDRangeKernel(queue, kernel, 1, 0, &one, 0, 0, BAD, 0));
	printf("%d\n", clGetDeviceInfo(device, 0x7777, 8, BAD, 0));
	printf("%d\n", clGetPlatformIDs(0, BAD, 0));
	printf("%p ", (void *)clCreateBuffer(context, 0x700000, 8, BAD, &error));
	printf("%d\n", error);
	printf("%d\n", clEnqueueCopyBufferRect(0, 0, 0, BAD, BAD, BAD, 0, 0, 0, 0, 0, 0, 0));
	printf("%p ", (void *)clCreateCommandQueueWithProperties(0, device, BAD, &error));
	printf("%d\n", error);
	return 0;
}
"""


def test_bogus_pointers_harm_nobody(xstrace):
    """What the API does not look at is not looked at by us, whether values are shown (-c) or commands timed (-d)."""
    program = compile_c(xstrace.home / "bogus", BOGUS, "-l:libOpenCL.so.1")
    bare = xstrace.bare(program)
    run = xstrace("-c -d", program)
    assert (run.status, run.out) == (bare.status, bare.out) and bare.status == 0
    assert sum(call.failed for call in parse(run.err, per_thread=False)) >= 6


HANGING = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
int main(void)
{
	cl_platform_id platform; cl_device_id device;
	if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0)) return 1;
	cl_context context = clCreateContext(0, 1, &device, 0, 0, 0);
	cl_event event = clCreateUserEvent(context, 0);
	puts("ready"), fflush(stdout);
	return clWaitForEvents(1, &event);
}
"""


def test_a_call_that_hangs_is_shown(xstrace):
    """While it hangs, and after a kill."""
    program = compile_c(xstrace.home / "hanging", HANGING, "-l:libOpenCL.so.1")
    run = xstrace.start("-c -o log.txt", program)
    run.wait_for_output()
    log = wait_until(lambda: next(iter(run.cwd.glob("log.*.txt")), None))
    line = wait_until(lambda: re.search(r"^>>>> .* clWaitForEvents: .*\n", log.read_text(), re.M))
    assert "numEvents = 1" in line[0] and "<<<<" not in log.read_text()[line.end() :]
    time.sleep(0.05)
    os.kill(run.child("hanging"), signal.SIGKILL)
    run.finish()
    call = parse(log.read_text(), per_thread=False)[-1]
    assert call.name == "clWaitForEvents" and call.unfinished and call.duration > 50_000_000


def test_in_the_trace(xstrace):
    """With --chrome-call-logging too: what the log says, as arguments of the slices."""
    run = xstrace("-c --chrome-call-logging -o log.txt", "cl_matrix")
    log = parse(next(run.cwd.glob("log*")).read_text(), per_thread=False)
    assert len(log) == len(run.trace.calls)
    launches = [s for s in run.trace.calls if s.name == "clEnqueueNDRangeKernel"]
    good = [s for s in launches if "result" not in s.args]
    assert len(launches) - len(good) == 3
    assert all(s.args["returned"] == "CL_SUCCESS (0)" for s in good)
    assert {s.args["in"]["workDim"] for s in good} == {1, 2, 3}
    assert [64, 64] in [s.args["in"]["globalWorkSize"] for s in good]
    named = [s for s in run.trace.calls if s.name == "clCreateKernel"]
    assert {s.args["in"]["kernelName"] for s in named} >= {"add", "scale", "tile", "box"}
    assert all(s.args["out"]["result"].startswith("0x") for s in named)


@level_zero_only
def test_level_zero(xstrace):
    run = xstrace("-c --tid", "ze_matrix", env=ZE)
    calls = parse("".join(line for line in run.err.splitlines(True) if line[:4] in (">>>>", "<<<<")))
    assert run.status == 0
    driver = only(calls, "zeDriverGet")
    assert re.match(r" pCount = 0x[0-9a-f]+ \(Count = 0x[0-9a-f]+\) phDrivers", driver.given)
    assert re.match(r" Count = 0x1 hDrivers\[0\] = 0x[0-9a-f]+$", driver.stored)
    assert (driver.result, driver.code) == ("ZE_RESULT_SUCCESS", "0x0")
    kernel = next(c for c in calls if c.name == "zeKernelCreate")
    assert "{stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, pNext = 0x0, flags = 0, pKernelName = 0x" in kernel.given
    name = re.search(r'} "(\w+)" phKernel', kernel.given)[1]
    launch = next(c for c in calls if c.name == "zeCommandListAppendLaunchKernel")
    assert f" ({name}) pLaunchFuncArgs = 0x" in launch.given
    assert re.search(r"{groupCountX = \d+, groupCountY = 1, groupCountZ = 1} ", launch.given)
    pool = next(c for c in calls if c.name == "zeEventPoolCreate")
    assert re.search(r"flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE\S*, count = \d+}", pool.given)
    properties = [c for c in calls if c.name == "zeDeviceGetProperties"]
    assert all("name = " in c.stored for c in properties)


@level_zero_only
def test_structs_by_value(xstrace):
    """As newer functions of Level Zero take them; in the trace, too."""
    run = xstrace("-c --tid", "ze_replay", ["newer", 1, "--in-order"], env=ZE)
    calls = parse("".join(line for line in run.err.splitlines(True) if line[:4] in (">>>>", "<<<<")))
    launch = next(c for c in calls if c.name == "zeCommandListAppendLaunchKernelWithArguments")
    count, size = ("{groupCountX = %d, groupCountY = 1, groupCountZ = 1}" % n for n in (3, 16))
    assert f" groupCounts = {count} groupSizes = {size} pArguments = 0x0 " in launch.given
    run = xstrace("-c --chrome-call-logging", "ze_replay", ["newer", 1, "--in-order"], env=ZE)
    launch = next(s for s in run.trace.calls if s.name == launch.name)
    assert launch.args["in"]["groupCounts"] == {"groupCountX": 3, "groupCountY": 1, "groupCountZ": 1}


@level_zero_only
def test_level_zero_failures(xstrace):
    env = {**ZE, "SOFTGPU_FAULT": "zeMemAllocHost:1:out_of_host_memory"}
    run = xstrace("-c -o log.txt", "ze_matrix", env=env)
    log = parse(next(run.cwd.glob("log*")).read_text(), per_thread=False)
    failed = [call for call in log if call.name == "zeMemAllocHost"][0]
    assert failed.failed and failed.result == "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"
    assert failed.code == "0x70000002" and failed.stored == ""


def test_millions_stream(xstrace):
    """The log of many calls, through a small ring: whole, and the drain process stays small."""
    run = xstrace.start("-c -h -o log.txt --ring-size 64K", "cl_enqueue", [31, 1000])
    peak = 0
    drain = run.drain
    while run.process.poll() is None:
        try:
            status = open(f"/proc/{drain}/status").read()
            peak = max(peak, int(re.search(r"VmHWM:\s+(\d+)", status)[1]))
        except (OSError, TypeError):
            pass
        time.sleep(0.01)
    run.finish()
    text = next(run.cwd.glob("log*")).read_text()
    lines = text.split("\n=== API")[0].splitlines()
    calls = int(re.search(r"^ +All, +(\d+), ", text, re.M)[1])
    assert len(lines) == 2 * calls > 300_000
    assert sum(line.startswith(">>>> ") for line in lines) == calls
    assert 0 < peak < 64 << 10
