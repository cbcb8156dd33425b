"""OpenCL programs on PoCL: every call, every command, and what the trace says about them."""

import itertools
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import APPS, COMMANDS, ROOT, compile_c, expected_lines, mounted, root_only, wait_until

KERNEL = "--chrome-kernel-logging"
CALL = "--chrome-call-logging"
DEVICE = "--chrome-device-logging"
ZEROS = [0, 0, 0]
SHAPES = {
    "add": ([4096, 1, 1], [64, 1, 1]),
    "scale": ([4096, 1, 1], ZEROS),
    "tile": ([64, 64, 1], [8, 8, 1]),
    "box": ([16, 16, 8], ZEROS),
    "gated": ([4096, 1, 1], ZEROS),
}
MATRIX = [
    f"--queue {queue} --create {create} --events {events}{profiling}"
    for queue, create, events, profiling in itertools.product(
        ("in-order", "out-of-order", "several"),
        ("list", "legacy", "null"),
        ("none", "held", "waited", "callbacks", "released"),
        ("", " --no-profiling"),
    )
    if create != "null" or (profiling and queue != "out-of-order")
]


def check_device(trace):
    """What holds for the device work of every trace; most of it xstrace-check cannot know."""
    calls = {(s.track, s.start): s for s in trace.calls if s.name.startswith("clEnqueue")}
    starts = {e["id"]: e for e in trace.events if e["ph"] == "s" and e["name"] == "dep"}
    ends = {(e["pid"], e["tid"], e["ts"]): e["id"] for e in trace.events if e["ph"] == "f" and e["name"] == "dep"}
    ids = [s.args["id"] for s in trace.device]
    assert len(set(ids)) == len(ids)
    for work in trace.device:
        assert work.args["queued"] <= work.args["submit"] <= work.start <= work.end, work
        if not calls:
            continue
        flow = starts[ends[(*work.track, work.start)]]
        call = calls[(flow["pid"], flow["tid"]), flow["ts"]]
        kind = "clEnqueueNDRangeKernel" if "global" in work.args else work.base
        assert call.name == kind
        assert call.start <= work.args["queued"] + 5000 and call.start <= work.start, (call, work)
    if calls:
        assert len(starts) == len(ends) == len(trace.device)


def queue_tracks(trace):
    """Names of the device's tracks."""
    return sorted(name for track, name in trace.names("thread_name").items() if track[0] >= 2**31)


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("options", MATRIX)
def test_every_kind_of_queue_and_event(xstrace, options):
    """The program itself checks that it sees its objects as without us."""
    run = xstrace(KERNEL, "cl_matrix", options.split())
    assert (run.status, run.err) == (0, "")
    run.check_expected()
    check_device(run.trace)


@pytest.mark.parametrize("option", ["--chrome-device-logging", "--chrome-call-logging", "-h"])
def test_two_threads_that_are_the_first(xstrace, option):
    """PoCL hands out a device that another thread is still making: what is asked of it must wait."""
    for _ in range(5):
        run = xstrace(option, "cl_at_once", [])
        assert run.status == 0 and run.out == "writes: 2\n"
        if "device" in option:
            assert len(run.trace.device) >= 2


@pytest.mark.parametrize("queue", ["in-order", "out-of-order", "several"])
def test_shared_virtual_memory(xstrace, queue):
    run = xstrace(f"{KERNEL} {CALL}", "cl_matrix", ["--svm", "--queue", queue])
    assert run.status == 0
    run.check_expected()
    check_device(run.trace)
    svm = [s for s in run.trace.device if "SVM" in s.name and "Unmap" not in s.name]
    assert len(svm) == 9 and all(s.args["bytes"] == 16384 for s in svm)


def test_names_sizes_and_bytes(xstrace):
    trace = xstrace(KERNEL, "cl_matrix").trace
    for work in trace.device:
        if "global" in work.args:
            assert (work.args["global"], work.args["local"]) == SHAPES[work.base]
            sizes = "{%d; %d; %d} {%d; %d; %d}" % (*work.args["global"], *work.args["local"])
            pattern = rf"{work.base}\[(SIMD\d+ )?{re.escape(sizes)}\]"
            assert re.fullmatch(pattern, work.name)
        elif re.search("Unmap|Migrate|Marker|Barrier", work.name):
            assert work.name == work.base and "bytes" not in work.args
        else:
            assert work.name == f"{work.base}[16384]" and work.args["bytes"] == 16384


def test_a_kernel_of_many_sizes(xstrace):
    """More than are remembered of a kernel, by threads that end, and by a handle that comes again."""
    run = xstrace(KERNEL, "cl_sizes", [300]).check_expected()
    for name in ("grow", "other"):
        sizes = [s.args["global"] for s in sorted(run.trace.device, key=lambda s: s.start) if s.base == name]
        assert sizes == [[n, 1, 1] for n in (*range(1, 301), *range(300, 0, -1))]


def test_items_in_step(xstrace):
    """Those of the launch's sub-groups, and not what the runtime prefers a group to be a multiple of."""
    run = xstrace(KERNEL, "cl_matrix", env={"OPENCL_LAYERS": str(APPS / "cl_groups.so")})
    expected = {"add": 16, "scale": 8, "tile": 8, "box": 8}
    for name, simd in expected.items():
        assert {re.search(r"SIMD(\d+)", s.name)[1] for s in run.trace.device if s.base == name} == {str(simd)}, name


def libraries(out):
    """In which library a program of ours found a function of an extension."""
    return {line.split()[0]: line.split()[1].split(".")[0] for line in out.splitlines() if line.startswith("cl")}


@pytest.mark.parametrize("events, queue", [("null", "own"), ("held", "own"), ("null", "given"), ("held", "given")])
def test_command_buffers(xstrace, events, queue):
    """One slice each, from when the queue got there until all of it has run: PoCL's own event is that of a marker."""
    args = [5, events, queue]
    run = xstrace(KERNEL, "cl_buffers", args)
    assert run.status == 0 and run.out.splitlines()[-1] == xstrace.bare("cl_buffers", args).out.splitlines()[-1]
    work = [s for s in run.trace.device if s.base == "command buffer (add x3, twice)"]
    waits = sorted((s for s in run.trace.calls if s.name == "clFinish"), key=lambda s: s.start)
    calls = sorted((s for s in run.trace.calls if s.name == "clEnqueueCommandBufferKHR"), key=lambda s: s.start)
    starts = {e["id"]: e["ts"] for e in run.trace.events if e["ph"] == "s" and e["name"] == "dep"}
    flows = [(starts[e["id"]], e["ts"]) for e in run.trace.events if e["ph"] == "f" and e["name"] == "dep"]
    assert len(work) == len(calls) == 5
    for command, call, wait in zip(sorted(work, key=lambda s: s.start), calls, waits):
        assert command.args["queued"] <= command.args["submit"] <= command.start < command.end
        assert call.start <= command.args["queued"] + 5000 and command.end <= wait.end + 5000
        assert (call.start, command.start) in flows
        # four kernels: far more than a marker takes
        assert command.end - command.start > 1
    ran = [int(n) for line in run.out.splitlines() if line.startswith("ran") for n in line.split()[1:]]
    assert len(ran) == (10 if events == "held" else 0) and ran == sorted(ran)


def test_filters_of_kernels_and_command_buffers(xstrace):
    """Its name has those of its kernels, and is what the filters look at."""
    for option, shown in ("--include-kernels twice", 2), ("--include-kernels thrice", 0), ("--exclude-kernels add", 0):
        trace = xstrace(f"{KERNEL} {option}", "cl_buffers", [2]).trace
        assert sum(s.base.startswith("command buffer") for s in trace.device) == shown, option


@pytest.mark.parametrize("option", [DEVICE, CALL])
def test_functions_whose_arguments_have_changed_are_left_alone(xstrace, option):
    """A wrapper of the older version would hand on too few of them."""
    found = libraries(xstrace(option, "cl_buffers", [1]).out)
    settled = {"clCreateCommandBufferKHR", "clCommandNDRangeKernelKHR"}
    if option == CALL:
        settled |= {"clFinalizeCommandBufferKHR", "clReleaseCommandBufferKHR"}
    assert {name for name, library in found.items() if library == "libxstrace"} == settled
    assert "clCommandCopyBufferKHR" in found


def test_processes_and_threads_have_names(xstrace):
    trace = xstrace(KERNEL, "cl_matrix").trace
    processes = {pid: name for (pid, _), name in trace.names("process_name").items()}
    host = trace.metadata["host"]
    assert processes.pop(trace.pid) == f"HOST<{host}> cl_matrix"
    assert len(processes) == 1
    assert all(n.startswith(f"DEVICE<{host}>[") and len(n) > 15 for n in processes.values())
    assert trace.names("thread_name")[trace.pid, trace.pid] == "cl_matrix"


@pytest.mark.parametrize("events", ["none", "held"])
def test_an_in_order_queue_is_one_track(xstrace, events):
    """Nothing overlaps in it, so it needs no lanes, and its commands keep their order."""
    args = ["--events", events, "--rounds", "10"]
    trace = xstrace(KERNEL, "cl_matrix", args).trace
    assert len(queue_tracks(trace)) == 1, queue_tracks(trace)
    ids = [int(s.args["id"]) for s in sorted(trace.device, key=lambda s: (s.start, s.end))]
    assert ids == sorted(ids)


def test_times_are_the_runtimes_own(xstrace):
    """No lane, and no lack of one, moves a command in time ("started" says that it was moved)."""
    env = {"POCL_MAX_PTHREAD_COUNT": "32"}
    run = xstrace(KERNEL, "cl_matrix", ["--rounds", 100], env=env).check_expected()
    assert not [s for s in run.trace.device if "started" in s.args]


@pytest.mark.parametrize("queue", ["in-order", "out-of-order"])
def test_work_ends_before_the_call_that_waited_returns(xstrace, queue):
    trace = xstrace(f"{CALL} {KERNEL}", "cl_matrix", ["--queue", queue]).trace
    finishes = sorted((s for s in trace.calls if s.name == "clFinish"), key=lambda s: s.start)
    starts = {s.start: s for s in trace.calls if s.name.startswith("clEnqueue")}
    flows = {e["id"]: e["ts"] for e in trace.events if e["ph"] == "s"}
    checked = 0
    for event in (e for e in trace.events if e["ph"] == "f" and e["name"] == "dep"):
        work = next(s for s in trace.device if s.track == (event["pid"], event["tid"]) and s.start == event["ts"])
        call = starts[flows[event["id"]]]
        waited = next(f for f in finishes if f.start >= call.end)
        if re.search("Read|WriteBuffer$", call.name):
            waited = call  # blocking in this program
        assert work.end <= waited.end, (work, waited)
        checked += 1
    assert checked == len(trace.device)


def test_every_call_is_there(xstrace):
    """The calls of the program, in its order and with nothing else (see cl_dlopen.c)."""
    run = xstrace(CALL, "cl_dlopen")
    source = (ROOT / "tests/apps/cl_dlopen.c").read_text()
    calls = re.findall(r"CALL\((\w+)\)\(", source)
    threads = run.trace.by_thread(run.trace.calls)
    assert [s.name for s in threads[run.trace.pid]] == calls
    assert len(run.trace.slices) == len(calls)
    assert not run.trace.device


def test_failed_calls_say_so(xstrace):
    trace = xstrace(f"{CALL} {KERNEL}", "cl_matrix", ["--rounds", "2"]).trace
    failed = [(s.name, s.args["result"]) for s in trace.calls if "result" in s.args]
    assert failed.count(("clEnqueueReadBuffer", -30)) == 2
    assert sum(name == "clEnqueueNDRangeKernel" for name, _ in failed) == 2
    assert all(result < 0 for _, result in failed)


@pytest.mark.parametrize("app", ["cl_dlopen", "cl_matrix"])
def test_device_logging_alone_shows_the_device_alone(xstrace, app):
    run = xstrace(DEVICE, app).check_expected()
    assert not run.trace.host
    assert {e["ph"] for e in run.trace.events} == {"M", "X"}
    check_device(run.trace)


OF_KERNELS = "clEnqueue|clFinish|clFlush|clWaitForEvents|clCreate(CommandQueue|Program|Kernel)|clCloneKernel|cl(Build|Compile|Link)Program|clReleaseCommandQueue"


@pytest.mark.parametrize("options", [KERNEL, f"{KERNEL} -h"])
def test_kernel_logging_shows_the_calls_that_belong_to_kernels(xstrace, options):
    """And no others, also when a report wants them all."""
    names = {s.name for s in xstrace(options, "cl_matrix").trace.host}
    assert not [name for name in names if not re.match(OF_KERNELS, name)]
    assert {"clFinish", "clBuildProgram", "clCreateKernel"} <= names


@pytest.mark.parametrize("count, least", [(1500, 1500), (8000, 2100)], ids=["remembered", "too many"])
def test_queues_made_again_and_again(xstrace, count, least):
    """Each command has its arrow to the call that waited for it. Of more than 2,048 queues those are forgotten that are no more used."""
    trace = xstrace("--chrome-kernel-logging", "cl_queues", [count]).trace
    assert least <= sum(e["ph"] == "s" and e["name"] == "wait" for e in trace.events) <= count
    assert "omitted" not in trace.other


@pytest.mark.parametrize("queue", ["in-order", "out-of-order"])
@pytest.mark.parametrize("events, wait", [("none", "clFinish"), ("waited", "clWaitForEvents")])
def test_arrows_to_the_call_that_waited(xstrace, events, wait, queue):
    """From each command to the first call that waited for it."""
    trace = xstrace(KERNEL, "cl_matrix", ["--queue", queue, "--events", events]).trace
    starts = {e["id"]: e for e in trace.events if e["ph"] == "s" and e["name"] == "wait"}
    ends = {e["id"]: e for e in trace.events if e["ph"] == "f" and e["name"] == "wait"}
    work = {}
    for number, start in starts.items():
        (one,) = [s for s in trace.device if s.track == (start["pid"], start["tid"]) and s.start <= start["ts"] <= s.end]
        calls = [s for s in trace.calls if s.track == (ends[number]["pid"], ends[number]["tid"]) and s.start <= ends[number]["ts"] <= s.end]
        work[one.args["id"]] = calls[0].name
    assert set(work) == {one.args["id"] for one in trace.device}
    assert set(work.values()) <= {"clFinish", "clWaitForEvents", *(s.name for s in trace.calls if re.search("Read|Write|Map", s.name))}
    assert wait in work.values()


TWO_THREADS = """
import threading
import pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
kernel = cl.Kernel(cl.Program(context, "kernel void k(void) {}").build(), "k")
queues = [cl.CommandQueue(context) for _ in range(2)]
def work():
    for queue in queues:
        for _ in range(5):
            cl.enqueue_nd_range_kernel(queue, kernel, (8,), None)
        queue.finish()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("expected: 20 kernels k")
"""


@pytest.mark.parametrize(
    "options, count, pattern",
    [
        ("", 4, r"Thread \d+ CL Queue<0x[0-9a-f]+>"),
        ("--chrome-no-thread-on-device", 2, r"CL Queue<0x[0-9a-f]+>"),
        ("--chrome-no-engine-on-device", 2, r"Thread \d+ CL"),
        ("--chrome-no-thread-on-device --chrome-no-engine-on-device", 1, "CL"),
    ],
)
def test_tracks_of_the_device(xstrace, options, count, pattern):
    """Two threads, two queues, each thread uses both."""
    run = xstrace(f"{KERNEL} {options}", sys.executable, ["-c", TWO_THREADS]).check_expected()
    names = {re.sub(r" lane \d+$", "", name) for name in queue_tracks(run.trace)}
    assert len(names) == count and all(re.fullmatch(pattern, name) for name in names), names


# ---- what programs in C do not do here: lines of Python ----

SETUP = """
import ctypes, sys, threading
import numpy as np
import pyopencl as cl
device = cl.get_platforms()[0].get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context)
def build(source, name):
    return cl.Kernel(cl.Program(context, source).build(), name)
def run(kernel, queue=queue, wait=None):
    return cl.enqueue_nd_range_kernel(queue, kernel, (8,), None, wait_for=wait)
"""


def python(xstrace, body, options=KERNEL):
    run = xstrace(options, sys.executable, ["-c", SETUP + body])
    assert run.status == 0, run.err
    check_device(run.trace)
    return run.trace


def test_images(xstrace):
    body = """
format = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNORM_INT8)
a, b = (cl.Image(context, cl.mem_flags.READ_WRITE, format, shape=(64, 32)) for _ in range(2))
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64 * 32 * 4)
data = np.zeros((32, 64, 4), np.uint8)
cl.enqueue_copy(queue, a, data, origin=(0, 0), region=(64, 32))
cl.enqueue_fill_image(queue, b, np.zeros(4, np.float32), (0, 0), (64, 16))
cl.enqueue_copy(queue, b, a, src_origin=(0, 0), dest_origin=(0, 0), region=(32, 32))
cl.enqueue_copy(queue, buffer, a, offset=0, origin=(0, 0), region=(64, 32))
cl.enqueue_copy(queue, b, buffer, offset=0, origin=(0, 0), region=(16, 32))
mapped = cl.enqueue_map_image(queue, b, cl.map_flags.READ, (0, 0), (64, 32), (32, 64, 4), np.uint8)
del mapped
cl.enqueue_copy(queue, data, a, origin=(0, 0), region=(64, 8))
queue.finish()
"""
    found = {s.base: s.args.get("bytes") for s in python(xstrace, body).device}
    found.pop("clEnqueueUnmapMemObject", None)
    assert found == {
        "clEnqueueWriteImage": 8192,
        "clEnqueueFillImage": 4096,
        "clEnqueueCopyImage": 4096,
        "clEnqueueCopyImageToBuffer": 8192,
        "clEnqueueCopyBufferToImage": 2048,
        "clEnqueueMapImage": 8192,
        "clEnqueueReadImage": 2048,
    }


def test_long_kernel_names(xstrace):
    """Templates make them."""
    body = """
for n in (10, 100, 200):
    name = "k" * n
    run(build(f"kernel void {name}(void) {{}}", name))
queue.finish()
"""
    names = sorted((s.base for s in python(xstrace, body).device), key=len)
    assert names == ["k" * n for n in (10, 100, 200)]


def test_sub_devices(xstrace):
    body = """
parts = device.create_sub_devices([cl.device_partition_property.EQUALLY, 1])
context = cl.Context(parts)
queues = [cl.CommandQueue(context, part) for part in parts]
kernel = build("kernel void k(void) {}", "k")
for queue in queues * 3:
    run(kernel, queue)
for queue in queues:
    queue.finish()
print(len(parts))
"""
    trace = python(xstrace, body)
    assert trace.count("kernels", "k") == 3 * len({s.track[0] for s in trace.device}) > 3


def test_commands_that_fail(xstrace):
    """What waits for a failed event never runs: no device slice, and nobody waits for it."""
    body = """
kernel = build("kernel void k(void) {}", "k")
run(kernel).wait()
gate = cl.UserEvent(context)
other = cl.CommandQueue(context)
failed = run(kernel, other, [gate])
gate.set_status(-5)
try:
    failed.wait()
except cl.Error as error:
    print(error)
run(kernel).wait()
"""
    assert python(xstrace, body).count("kernels", "k") == 2


def test_threads_that_share_a_queue(xstrace):
    body = """
kernels = [build(f"kernel void k{i}(void) {{}}", f"k{i}") for i in range(8)]
out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
shared = cl.CommandQueue(context, properties=out_of_order)
def work(kernel):
    for _ in range(150):
        run(kernel, shared)
    shared.finish()
threads = [threading.Thread(target=work, args=(kernel,)) for kernel in kernels]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    trace = python(xstrace, body)
    assert [trace.count("kernels", f"k{i}") for i in range(8)] == [150] * 8


def test_two_loaders_in_one_process(xstrace):
    """pyopencl's own, and the system's by its name; each with its calls."""
    body = """
run(build("kernel void first(void) {}", "first")).wait()
library = ctypes.CDLL("libOpenCL.so.1")
platform, found = ctypes.c_void_p(), ctypes.c_void_p()
assert library.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
size = ctypes.c_size_t
every = ctypes.c_ulong(0xffffffff)
assert library.clGetDeviceIDs(platform, every, 1, ctypes.byref(found), None) == 0
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(library, name).restype = ctypes.c_void_p
one = (ctypes.c_void_p * 1)(found)
context2 = ctypes.c_void_p(library.clCreateContext(None, 1, one, None, None, None))
queue2 = ctypes.c_void_p(library.clCreateCommandQueue(context2, found, ctypes.c_ulong(0), None))
buffer = ctypes.c_void_p(library.clCreateBuffer(context2, size(1), size(64), None, None))
data = ctypes.create_string_buffer(64)
write = library.clEnqueueWriteBuffer
assert write(queue2, buffer, 1, size(0), size(64), data, 0, None, None) == 0
assert library.clFinish(queue2) == 0
run(build("kernel void second(void) {}", "second")).wait()
"""
    trace = python(xstrace, body, f"{KERNEL} {CALL}")
    assert sorted(s.base for s in trace.device) == ["clEnqueueWriteBuffer", "first", "second"]


@pytest.mark.parametrize("policy", ["drop", "overwrite", "block"])
def test_full_rings(xstrace, policy):
    """Where calls or commands are lost, no flow begins or ends on nothing."""
    options = f"{KERNEL} {CALL} --ring-size 64K --on-full {policy}"
    run = xstrace.start(options, "cl_enqueue", [3, 500], env={"POCL_MAX_PTHREAD_COUNT": "8"})
    drain = run.drain
    if policy == "drop":
        os.kill(drain, signal.SIGSTOP)
        wait_until(lambda: "expected" in (run.log / "stdout").read_text())
        os.kill(drain, signal.SIGCONT)
    run.finish()
    assert (run.status, run.err) == (0, "")
    assert (run.trace.other["lost"] > 0) == (policy != "block")
    assert len(run.trace.device) > 200


@root_only
def test_full_disk(xstrace):
    """The cut is not between the two ends of a flow, and what there is room for holds both."""
    for size in (200, 210, 220, 230, 250, 300):
        with mounted(xstrace.cwd, f"size={size}k"):
            run = xstrace(KERNEL, "cl_enqueue", [20, 50])
            assert (run.status, run.err) == (0, "") and run.trace.calls and run.trace.device
            assert run.trace.other["lost"]


# ---- reports ----


def table(text, title):
    """{name: calls} of the rows of one report, all backends together."""
    rows = {}
    for part in text.split("\n=== ")[1:]:
        if part.startswith(title):
            for line in part.splitlines():
                if match := re.fullmatch(r" *(.+?), +(\d+)(?:, +[\d.]+){5}", line):
                    rows[match[1]] = rows.get(match[1], 0) + int(match[2])
    return rows


@pytest.mark.parametrize("options", ["", "-h -d", "-hd", "-d", "-h"])
def test_reports(xstrace, options):
    """The second kind of sink counts as the first one does; without an option there are both."""
    run = xstrace(options, "cl_matrix", ["--queue", "several"])
    assert run.status == 0 and not run.trace_files
    device, host = table(run.err, "Device Timing"), table(run.err, "API Timing")
    assert bool(device) == (options != "-h") and bool(host) == (options != "-d")
    for (_, _, kind, name), n in expected_lines(run.out).items():
        if kind == "commands":
            found = sum(device.values())
        elif kind == "kernels":
            found = sum(c for k, c in device.items() if not k.startswith("cl") and name in (None, k))
        else:
            found = sum(c for k, c in device.items() if re.match(COMMANDS[kind], k))
        assert found == n or options == "-h", (kind, name)
    if host:
        assert host["clEnqueueNDRangeKernel"] == 15 + 3  # with the three that fail
        assert host["clCreateBuffer"] == 12


def test_report_goes_to_a_file(xstrace):
    run = xstrace("-h -d -o rep.txt", "cl_dlopen")
    pid = re.search(r"rep\.(\d+)\.txt", run.said[0])[1]
    text = (run.cwd / f"rep.{pid}.txt").read_text()
    assert run.err == ""
    assert table(text, "Device Timing")["twice"] == 1
    assert [f.name for f in run.cwd.iterdir()] == [f"rep.{pid}.txt"]


def test_verbose_report_has_shapes(xstrace):
    run = xstrace("-d -v", "cl_matrix", ["--rounds", "1"])
    rows = table(run.err, "Device Timing")
    assert any(re.fullmatch(r"add\[SIMD\d+ \{4096; 1; 1\} \{64; 1; 1\}\]", row) for row in rows)
    assert "clEnqueueWriteBuffer[16384]" in rows


def test_report_and_trace_in_one_run(xstrace):
    run = xstrace(f"-d {KERNEL}", "cl_matrix").check_expected()
    assert table(run.err, "Device Timing")["add"] == run.trace.count("kernels", "add") == 3


# ---- programs that nobody here wrote ----


def check_calls_match_commands(trace):
    """Each command was enqueued, and each call that enqueues made one command."""
    check_device(trace)
    calls = [s for s in trace.calls if s.name.startswith("clEnqueue") and "result" not in s.args]
    assert len(calls) == len(trace.device) > 0


def test_clinfo(xstrace):
    bare = xstrace.bare("clinfo")
    run = xstrace(f"{CALL} {KERNEL}", "clinfo")
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    assert sum(s.name == "clGetDeviceInfo" for s in run.trace.calls) > 50


@pytest.mark.long
def test_clpeak(xstrace):
    run = xstrace(f"{CALL} {KERNEL}", "clpeak", ["--kernel-latency"])
    assert run.status == 0 and "Kernel launch latency" in run.out
    check_calls_match_commands(run.trace)


def test_pyopencl(xstrace):
    """Its wheel brings a loader of its own."""
    args = [ROOT / "tests/apps/pyopencl_demo.py"]
    run = xstrace(f"{CALL} {KERNEL}", sys.executable, args)
    assert run.status == 0 and "CORRECT" in run.out
    run.check_expected()
    check_calls_match_commands(run.trace)


def test_gemm_in_itt_tasks(xstrace):
    """The demo's program: tasks, calls and device work in one trace."""
    run = xstrace(f"{KERNEL} --chrome-itt-logging", "gemm", ["--expected"])
    assert run.status == 0
    run.check_expected()
    check_device(run.trace)


def test_thousands_of_commands(xstrace):
    """With rings far smaller than what goes through them."""
    run = xstrace(f"{KERNEL} --ring-size 64K", "cl_enqueue", [3, 2000]).check_expected()
    check_device(run.trace)
    assert run.trace.other["lost"] == 0


LONG = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <unistd.h>
static cl_event released;
static void *release(void *unused)
{
	usleep(2500000);
	clSetUserEventStatus(released, CL_COMPLETE);
	return NULL;
}
int main(void)
{
	static char bytes[4096];
	cl_platform_id platform;
	cl_device_id device;
	pthread_t thread;
	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
	cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(bytes), NULL, NULL);
	released = clCreateUserEvent(context, NULL);
	pthread_create(&thread, NULL, release, NULL);
	clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof(bytes), bytes, 1, &released, NULL);
	return 0;
}
"""


def test_a_blocking_call_that_lasts_for_seconds(xstrace):
    """More ticks than 32 bits hold: its command has its arrow to it all the same."""
    trace = xstrace("--chrome-kernel-logging", compile_c(xstrace.home / "long", LONG, "-lOpenCL", "-lpthread")).trace
    (call,) = [call for call in trace.calls if call.name == "clEnqueueWriteBuffer"]
    assert call.end - call.start > 2_400_000_000
    (end,) = [event for event in trace.events if event["ph"] == "f" and event["name"] == "wait"]
    assert call.start < end["ts"] <= call.end


MANY_WAITS = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
int main(void)
{
	static char bytes[64];
	cl_platform_id platform;
	cl_device_id device;
	getchar();
	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
	cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(bytes), NULL, NULL);
	for (int i = 0; i < 3000; i++) {
		clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof(bytes), bytes, 0, NULL, NULL);
		clFinish(queue);
	}
}
"""


def test_waits_that_are_read_before_their_commands(xstrace):
    """Another thread's ring has the commands: a drain process that was held up reads them after many waits, and each finds its own."""
    app = compile_c(xstrace.home / "waits", MANY_WAITS, "-lOpenCL")
    run = xstrace.start("--chrome-kernel-logging", app, [], stdin=subprocess.PIPE)
    os.kill(run.drain, signal.SIGSTOP)
    run.process.stdin.close()
    time.sleep(1)
    os.kill(run.drain, signal.SIGCONT)
    trace = run.finish().trace
    ends = sorted(event["ts"] for event in trace.events if event["ph"] == "f" and event["name"] == "wait")
    finishes = sorted((call.start, call.end) for call in trace.calls if call.name == "clFinish")
    assert len(trace.device) == len(ends) == len(finishes) == 3000
    assert all(start <= end <= stop for end, (start, stop) in zip(ends, finishes, strict=True))


REFERENCES = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
int main(void)
{
	cl_platform_id platform;
	cl_device_id device;
	unsigned seen = 0, value = 1;
	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
	cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
	for (int i = 0; i < 4000; i++) {
		cl_event event;
		cl_int status = CL_QUEUED;
		cl_uint count;
		clEnqueueFillBuffer(queue, memory, &value, 4, 0, 4096, 0, NULL, &event);
		clFlush(queue);
		while (status > CL_COMPLETE) {
			clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(count), &count, NULL);
			seen |= 1u << count;
			clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
		}
		clReleaseEvent(event);
	}
	clFinish(queue);
	for (int count = 0; count < 32; count++)
		if (seen >> count & 1)
			printf("%d\n", count);
	return 0;
}
"""


def test_references_that_are_counted_while_ours_goes(xstrace):
    """The application's own and the runtime's: 2 and 3 with PoCL. Ours goes when the command ends, which may be in the middle of the call."""
    program = compile_c(xstrace.home / "references", REFERENCES, "-lOpenCL")
    bare = set(xstrace.bare(program).out.split())
    run = xstrace(KERNEL, program)
    assert set(run.out.split()) <= bare and run.status == 0


REOPENS = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#define F(name, ...) ((__typeof__(&name))dlsym(library, #name))(__VA_ARGS__)
int main(int argc, char **argv)
{
	for (int i = 0; i < 5; i++) {
		void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
		cl_platform_id platform;
		cl_device_id device;
		int value = i;
		F(clGetPlatformIDs, 1, &platform, NULL);
		F(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
		cl_context context = F(clCreateContext, NULL, 1, &device, NULL, NULL, NULL);
		cl_command_queue queue = F(clCreateCommandQueue, context, device, 0, NULL);
		cl_mem memory = F(clCreateBuffer, context, CL_MEM_READ_WRITE, 1 << 20, NULL, NULL);
		F(clEnqueueFillBuffer, queue, memory, &value, 4, 0, 1 << 20, 0, NULL, NULL);
		F(clFlush, queue);
		if (argc == 1) /* else what is in flight ends without a loader */
			F(clFinish, queue);
		printf("%d\n", dlclose(library));
	}
	return 0;
}
"""


@pytest.mark.parametrize("in_flight", [[], ["in flight"]])
def test_loader_that_is_closed_and_opened_again(xstrace, in_flight):
    program = compile_c(xstrace.home / "reopens", REOPENS, "-ldl")
    bare = xstrace.bare(program, in_flight)
    run = xstrace(KERNEL, program, in_flight)
    assert (run.status, run.out) == (bare.status, bare.out) == (0, "0\n" * 5)
    other = run.trace.other
    assert len(run.trace.device) + other.get("open_commands", 0) + other.get("untimed_commands", 0) == 5
