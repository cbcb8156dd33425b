"""Level Zero: the real loader over the software GPU, whose log is the truth that every trace is compared with."""

import collections
import ctypes
import os
import re
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from conftest import APPS, BUILD, XSTRACE, wait_until
from gpu_log import DRIVER, MATRIX, SoftGPU, matrix_args

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")

BARE = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)}
KERNELS = "--chrome-kernel-logging"
FREQUENCY = 19200000
NAMES = {
    "copy": "zeCommandListAppendMemoryCopy",
    "fill": "zeCommandListAppendMemoryFill",
    "region": "zeCommandListAppendMemoryCopyRegion",
}


def ns(ticks, frequency=FREQUENCY):
    return ticks * 1_000_000_000 // frequency


def shown(trace):
    """Device work by name without sizes: durations in ns, sorted."""
    found = collections.defaultdict(list)
    for one in trace.device:
        found[re.split(r"[\[(]|WithParameters", one.name)[0]].append(one.end - one.start)
    return {name: sorted(durations) for name, durations in found.items()}


def executed(gpu, frequency=FREQUENCY):
    """The same of the log, without what only we append."""
    found = collections.defaultdict(list)
    for one in gpu.kernels + gpu.copies:
        found[NAMES.get(one.kind, one.name)].append(ns(one.end - one.start, frequency))
    return {name: sorted(durations) for name, durations in found.items()}


def check(run, gpu, frequency=FREQUENCY, loose=0):
    """Every command is there once, with the duration that the device measured (to the rounding of both ends)."""
    trace, truth = shown(run.trace), executed(gpu, frequency)
    barriers = trace.pop("zeCommandListAppendBarrier", [])
    for other in ("zeCommandListAppendQueryKernelTimestamps", "zeCommandListAppendWriteGlobalTimestamp"):
        trace.pop(other, None)
    assert {k: len(v) for k, v in trace.items()} == {k: len(v) for k, v in truth.items()}
    for name, durations in truth.items():
        for ours, theirs in zip(trace[name], durations):
            assert abs(ours - theirs) <= 1 + theirs * 2e-5 + loose, name
    assert not gpu.misuse
    return barriers


def same_as_bare(run, bare):
    assert (run.status, run.out) == (bare.status, bare.out)


@pytest.mark.long(keep=28)
@pytest.mark.parametrize("same_thread", [0, 1])
@pytest.mark.parametrize("kind, order, events, sync", MATRIX)
def test_every_combination(xstrace, tmp_path, kind, order, events, sync, same_thread):
    args = matrix_args(kind, order, events, sync)
    gpu = SoftGPU(tmp_path, SYNC=same_thread, STRICT=1)
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    barriers = check(run, gpu)
    assert len(barriers) == int(re.search(r"(\d+) barriers", run.out).group(1))
    same_as_bare(run, xstrace.bare("ze_matrix", args, env=BARE))
    assert sum(one.args.get("bytes", 0) for one in run.trace.device) == sum(c.bytes for c in gpu.copies)


@pytest.mark.parametrize("end", ["destroy", "return"])
@pytest.mark.parametrize("sync", ["queue", "event"])
@pytest.mark.parametrize("kind", ["immediate", "regular"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_launched_is_reported(xstrace, tmp_path, count, kind, sync, end):
    gpu = SoftGPU(tmp_path)
    args = ["--list", kind, "--kernels", count, "--sync", sync, "--end", end, "--kernel", "empty"]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    check(run, gpu)
    assert len(gpu.kernels) == count


def test_a_hundred_thousand_kernels(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    args = ["--list", "immediate", "--kernels", 100000, "--sync", "none", "--end", "return", "--kernel", "empty"]
    run = xstrace("-d", "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    assert re.search(r'^ *"empty", +100000,', run.err, re.M)
    assert not any("WARNING" in line for line in run.said)


def test_executed_again_without_waiting(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, DURATION_NS="increment=20000")
    args = ["--list", "regular", "--kernels", 3, "--executions", 200, "--sync", "none"]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    check(run, gpu)
    assert len(gpu.kernels) == 600
    synchronized = [c for c in run.trace.calls if c.name == "zeCommandQueueSynchronize"]
    assert len(synchronized) <= 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("reset", [[], ["--events", "timed", "--device-reset"]])
def test_thousands_of_executions_in_flight(xstrace, tmp_path, reset):
    """The device needs 2 s for what the host submits in much less; each execution's times are kept."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=200000", WORKERS=1)
    args = ["--list", "regular", "--kernel", "empty", "--kernels", 2, "--executions", 5000, "--sync", "none", *reset]
    run = xstrace("-d", "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    assert re.search(r'^ *"empty", +10000,', run.err, re.M), run.err
    assert not any("WARNING" in line for line in run.said)


@pytest.mark.parametrize("option", [KERNELS, "--chrome-call-logging", "-d -h -c"])
@pytest.mark.parametrize("mode", ["leave", "exit", "use"])
def test_forked_child(xstrace, tmp_path, mode, option):
    """The child neither hangs nor fails, whatever it does with the device, and all of the parent's work is there."""
    same_thread = int(mode == "use")  # a child has no threads of the driver
    gpu = SoftGPU(tmp_path, SYNC=same_thread)
    run = xstrace(option, "ze_fork", [mode], env=gpu.env)
    bare = xstrace.bare("ze_fork", [mode], env=BARE | {"SOFTGPU_SYNC": str(same_thread)})
    assert (run.status, sorted(run.out.splitlines())) == (bare.status, sorted(bare.out.splitlines()))
    assert run.status == 0 and "child:" not in run.out
    assert len(gpu.kernels) == (250 if mode == "use" else 150)
    if option == KERNELS:
        parent = gpu.kernels[0].pid
        (trace,) = [t for t in run.traces if t.pid == parent]
        assert len(trace.device) == 150
    elif option != "--chrome-call-logging":
        assert re.search(r'^ *"empty", +150,', run.err, re.M), run.err


def groups_of(name):
    """Of "empty[SIMD32 {7; 2; 1} {32; 1; 1}]": "7,2,1"."""
    return re.search(r"\{(.*?)\}", name).group(1).replace("; ", ",")


def shapes(names):
    """How many kernels ran in so many groups."""
    return collections.Counter(map(groups_of, names))


@pytest.mark.long(keep=19)
@pytest.mark.parametrize("event", [[], ["--event"]])
@pytest.mark.parametrize("order", [[], ["--in-order"]])
@pytest.mark.parametrize("same_thread", [0, 1])
@pytest.mark.parametrize("mode", ["lists", "graph", "graph --older", "graph --into", "fork", "fork --older", "newer", "mutable"])
def test_replayed(xstrace, tmp_path, mode, same_thread, order, event):
    """Lists and graphs appended to an immediate list, lists that are changed: every run of every kernel, as the device saw it."""
    gpu = SoftGPU(tmp_path, SYNC=same_thread, STRICT=1)
    args = [*mode.split(), 20, *order, *event]
    run = xstrace(KERNELS, "ze_replay", args, env=gpu.env)
    assert run.status == 0, run.err
    assert not any("WARNING" in line for line in run.said)
    check(run, gpu)
    assert shapes(one.name for one in run.trace.device if one.base == "empty") == collections.Counter(k.groups for k in gpu.kernels)
    same_as_bare(run, xstrace.bare("ze_replay", args, env=BARE))


def enclosing(slices, event):
    """The innermost of the slices that the end of an arrow lies in."""
    found = [s for s in slices if s.track == (event["pid"], event["tid"]) and s.start <= event["ts"] <= s.end]
    return min(found, key=lambda s: s.end - s.start)


def arrows(trace, name):
    """(where it starts, where it ends) of the arrows of that name."""
    by_track = collections.defaultdict(list)
    for one in trace.slices:
        by_track[one.track].append(one)
    ends = {e["id"]: e for e in trace.events if e["ph"] == "f" and e["name"] == name}
    starts = [e for e in trace.events if e["ph"] == "s" and e["name"] == name]
    return [tuple(enclosing(by_track[e["pid"], e["tid"]], e) for e in (start, ends[start["id"]])) for start in starts]


WAITS = {
    ("regular", "queue"): "zeCommandQueueSynchronize",
    ("regular", "fence"): "zeFenceHostSynchronize",
    ("regular", "event"): "zeEventHostSynchronize",
    ("immediate", "list"): "zeCommandListHostSynchronize",
    ("immediate", "event"): "zeEventHostSynchronize",
}


@pytest.mark.parametrize("events", ["none", "timed"])
@pytest.mark.parametrize("kind, sync", WAITS)
def test_arrows_to_the_call_that_waited(xstrace, tmp_path, kind, sync, events):
    """From each kernel to the call that waited for it, to it from the call that appended it and from the one that executed it."""
    gpu = SoftGPU(tmp_path)
    args = ["--list", kind, "--in-order", "--sync", sync, "--kernels", 5, "--executions", 3, "--events", events]
    trace = xstrace(KERNELS, "ze_matrix", args, env=gpu.env).trace
    kernels = [one for one in trace.device if one.base == "increment"]
    assert len(kernels) == 15
    waits = [(start, end) for start, end in arrows(trace, "wait") if start.base == "increment"]
    assert {start.args["id"] for start, _ in waits} == {one.args["id"] for one in kernels}
    assert {end.name for _, end in waits} == {WAITS[kind, sync]}
    calls = sorted((c for c in trace.calls if c.name == WAITS[kind, sync]), key=lambda c: c.start)
    for start, end in waits:  # the first that returned after it
        assert end.start == next(c.start for c in calls if c.end >= start.start), start
    assert collections.Counter(s.name for s, e in arrows(trace, "dep") if e.base == "increment") == {"zeCommandListAppendLaunchKernel": 15}
    submits = [(s.name, s.start) for s, e in arrows(trace, "submit") if e.base == "increment"]
    if kind == "regular":
        assert {name for name, _ in submits} == {"zeCommandQueueExecuteCommandLists"}
        assert sorted(collections.Counter(submits).values()) == [5, 5, 5]
    else:
        assert submits == []


def test_arrows_to_synchronous_appends(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    args = ["--list", "immediate", "--synchronous", "--sync", "none", "--kernels", 5]
    trace = xstrace(KERNELS, "ze_matrix", args, env=gpu.env).trace
    waits = [(start, end) for start, end in arrows(trace, "wait") if start.base == "increment"]
    assert len({start.args["id"] for start, _ in waits}) == len(waits) == 5
    assert {end.name for _, end in waits} == {"zeCommandListAppendLaunchKernel"}


def test_arrows_to_calls_that_execute_on_a_synchronous_queue(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    args = ["--list", "regular", "--synchronous", "--sync", "none", "--kernels", 5]
    trace = xstrace(KERNELS, "ze_matrix", args, env=gpu.env).trace
    waits = [(start, end) for start, end in arrows(trace, "wait") if start.base == "increment"]
    assert len({start.args["id"] for start, _ in waits}) == len(waits) == 5
    assert {end.name for _, end in waits} == {"zeCommandQueueExecuteCommandLists"}


@pytest.mark.parametrize("mode", ["lists", "graph", "graph --older"])
def test_arrows_from_replays(xstrace, tmp_path, mode):
    """Each run of what is executed as a whole has an arrow from the call that did."""
    gpu = SoftGPU(tmp_path)
    trace = xstrace(KERNELS, "ze_replay", [*mode.split(), 4], env=gpu.env).trace
    function = "zeCommandListImmediateAppendCommandListsExp" if mode == "lists" else "zeCommandListAppendGraphE(xt|xp)"
    submits = arrows(trace, "submit")
    assert len(submits) == 12 and all(re.fullmatch(function, start.name) for start, _ in submits)
    assert len({start.start for start, _ in submits}) == 4


def test_kernel_logging_has_the_calls_that_belong_to_kernels(xstrace, tmp_path):
    """And no others, also when a report wants them all; a question that is answered with no is none."""
    for options in KERNELS, f"{KERNELS} -h":
        trace = xstrace(options, "ze_matrix", ["--kernels", 2, "--sync", "fence"], env=SoftGPU(tmp_path).env).trace
        names = {call.name for call in trace.calls}
        for name in (
            "zeModuleCreate", "zeKernelCreate", "zeCommandListCreate", "zeCommandListClose", "zeCommandListAppendLaunchKernel",
            "zeCommandQueueExecuteCommandLists", "zeFenceHostSynchronize", "zeCommandQueueCreate", "zeCommandListDestroy",
        ):  # fmt: skip
            assert name in names
        assert not {name for name in names if re.match("zeMem|zeDevice|zeDriver|zeInit|zeKernelSetArg", name)}
    everything = xstrace(f"{KERNELS} --chrome-call-logging", "ze_matrix", ["--kernels", 2], env=SoftGPU(tmp_path).env).trace
    assert {"zeMemAllocHost", "zeInit"} & {call.name for call in everything.calls}


@pytest.mark.parametrize("end", ["kill", "_exit"])
@pytest.mark.parametrize("events", ["none", "timed", "plain"])
def test_synchronous_launches_are_complete(xstrace, tmp_path, events, end):
    """However the program ends just behind them."""
    gpu = SoftGPU(tmp_path)
    args = ["--list", "immediate", "--synchronous", "--in-order", "--sync", "none", "--kernels", 21, "--events", events, "--end", end]
    trace = xstrace(KERNELS, "ze_matrix", args, env=gpu.env).trace
    assert len([one for one in trace.device if one.base == "increment"]) == 21
    assert "open_commands" not in trace.other


def test_synchronous_launches_are_complete_when_the_session_is_stopped(xstrace, tmp_path):
    gpu, name = SoftGPU(tmp_path), f"stopped-{tmp_path.name}"
    args = ["--list", "immediate", "--synchronous", "--in-order", "--sync", "none", "--kernels", 21, "--end", "wait"]
    run = xstrace.start(f"{KERNELS} --session {name}", "ze_matrix", args, env=gpu.env, stdin=subprocess.PIPE)
    wait_until(lambda: "right" in (run.log / "stdout").read_text())
    subprocess.run([XSTRACE, "--stop", name], check=True, capture_output=True)
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    run.finish()
    assert len([one for one in run.trace.device if one.base == "increment"]) == 21
    assert "open_commands" not in run.trace.other


@pytest.mark.parametrize("mode", ["lists", "graph"])
def test_captured_while_paused(xstrace, tmp_path, mode):
    """What is executed while recording is shown, though nothing was recorded when it was made."""
    gpu = SoftGPU(tmp_path)
    name = f"captured-{mode}-{tmp_path.name}"
    run = xstrace.start(f"{KERNELS} --session {name}", "ze_replay", [mode, 7, "--step"], env=gpu.env, stdin=subprocess.PIPE)
    said = lambda: (run.log / "stdout").read_text().split()  # noqa: E731
    for word, command in ("begin", "--pause"), ("made", "--resume"):
        wait_until(lambda word=word: word in said())
        subprocess.run([XSTRACE, command, name], check=True, capture_output=True)
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
    run.finish()
    assert run.status == 0 and not gpu.misuse, run.err
    work = [one for one in run.trace.device if one.base == "empty"]
    assert shapes(one.name for one in work) == collections.Counter(k.groups for k in gpu.kernels)
    # what nobody saw being appended is shown as the work of the call that executed it
    function = "zeCommandListImmediateAppendCommandListsExp" if mode == "lists" else "zeCommandListAppendGraphExt"
    assert collections.Counter(start.name for start, _ in arrows(run.trace, "dep"))[function] == 21
    assert arrows(run.trace, "submit") == []


def test_newer_functions(xstrace, tmp_path):
    """By name, though the headers may not know them; and memory that the driver was told of is the host's."""
    gpu = SoftGPU(tmp_path)
    run = xstrace(f"{KERNELS} --chrome-call-logging", "ze_replay", ["imported"], env=gpu.env)
    assert run.status == 0 and "immediate: 1" in run.out
    calls = collections.Counter(call.name for call in run.trace.calls)
    for name in "zeCommandListIsImmediate", "zexDriverImportExternalPointer", "zexDriverReleaseImportedPointer":
        assert calls[name] == 1
    assert [one.name for one in run.trace.device] == ["zeCommandListAppendMemoryCopy(H2D)[64]"]


@pytest.mark.parametrize("mode", ["ipc", "opened"])
@pytest.mark.parametrize("order, missing", [(["--in-order"], 0), ([], 20), (["--event"], 0), (["--event", "--in-order"], 0)])
def test_events_for_other_processes(xstrace, tmp_path, order, missing, mode):
    """Their pools stay as they are. Without times, ours are signalled before them in order; else nobody knows the times, and that is told."""
    if mode == "opened" and not hasattr(ctypes.CDLL("libze_loader.so.1"), "zeEventPoolGetFlags"):
        missing = 20  # nobody tells whether it has times
    gpu = SoftGPU(tmp_path, STRICT=1)
    run = xstrace(KERNELS, "ze_replay", [mode, 20, *order], env=gpu.env)
    assert run.status == 0, run.err
    assert len(gpu.kernels) == 20 and not gpu.misuse
    assert len([line for line in run.said if f"{missing} commands of process" in line]) == (missing > 0)
    assert run.traces == [] or len(run.trace.device) == 20 - missing
    assert not missing or not run.traces or run.trace.other["untimed_commands"] == missing


@pytest.mark.parametrize("event", [[], ["--event"]])
def test_events_that_count(xstrace, tmp_path, event):
    """Made by themselves, as runtimes of today do it: what they tell of is timed, and the program sees what it asked for."""
    gpu = SoftGPU(tmp_path, STRICT=1)
    run = xstrace(KERNELS, "ze_replay", ["counter", 20, "--in-order", *event], env=gpu.env)
    assert run.status == 0 and not gpu.misuse, run.err
    assert not any("WARNING" in line for line in run.said)
    work = [one for one in run.trace.device if one.base == "empty"]
    assert shapes(one.name for one in work) == collections.Counter(k.groups for k in gpu.kernels)
    for groups in {k.groups for k in gpu.kernels}:  # each has its own times, not those of the next one that signalled the same event
        ours = sorted(one.end - one.start for one in work if groups_of(one.name) == groups)
        theirs = sorted(ns(k.end - k.start) for k in gpu.kernels if k.groups == groups)
        assert all(abs(a - b) <= 1 + b * 2e-5 for a, b in zip(ours, theirs, strict=True))
    same_as_bare(run, xstrace.bare("ze_replay", ["counter", 20, "--in-order", *event], env=BARE))


def test_wrap_of_the_kernel_clock(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, FIRST_TICK=2**32 - 4000000, BITS=32, DURATION_NS="spin=2000000")
    args = ["--list", "immediate", "--in-order", "--kernel", "spin", "--kernels", 150, "--us", 1]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    check(run, gpu)
    assert gpu.kernels[0].start < 2**32 < gpu.kernels[-1].end
    ends = sorted(one.end for one in run.trace.device)
    assert ends[-1] - ends[0] < 10**10  # and not the period of the clock, 223 s


@pytest.mark.parametrize("ppm", [300, -300])
def test_drift(xstrace, tmp_path, ppm):
    """A device whose clock is wrong by 300 ppm would be 90 us off after 0.3 s; its work stays where it was."""
    gpu = SoftGPU(tmp_path, DRIFT_PPM=ppm)
    args = ["--list", "immediate", "--kernel", "spin", "--us", 1000, "--kernels", 4]
    args += ["--executions", 100, "--sync", "event", "--in-order"]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    work = sorted((s for s in run.trace.device if s.base == "spin"), key=lambda s: s.start)
    offsets = [ours.start - theirs.start_ns for ours, theirs in zip(work, gpu.kernels)]
    assert len(work) == len(gpu.kernels) == 400
    assert max(offsets) - min(offsets) < 20000
    for ours, theirs in zip(work, gpu.kernels):
        assert abs((ours.end - ours.start) - (theirs.end_ns - theirs.start_ns)) < 3000 + (ours.end - ours.start) * 4e-4


def place(trace, slice):
    return trace.names("process_name")[slice.track[0], slice.track[0]], trace.names("thread_name")[slice.track]


def test_devices_engines_tiles(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, DEVICES=3, TILES=2)
    args = ["--device", 2, "--tile", 1, "--engine", "0,3", "--threads", 4, "--executions", 20, "--kernels", 3]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    check(run, gpu)
    processes, threads = zip(*(place(run.trace, s) for s in run.trace.device))
    assert len(set(processes)) == 1 and re.search(r"^DEVICE<.*>\[.*\] 0:3c:0:0 #2\.1$", processes[0])
    assert {re.sub(r"^Thread \d+ | lane \d+$", "", name) for name in threads} == {"L0 Compute Engine<0,3>"}
    gpu.path.unlink()
    copies = SoftGPU(tmp_path, DEVICES=3)
    run = xstrace(KERNELS, "ze_matrix", ["--engine", "2,1", "--kernels", 0, "--copies", 6], env=copies.env)
    check(run, copies)
    assert {re.sub(r"^Thread \d+ | lane \d+$", "", place(run.trace, s)[1]) for s in run.trace.device} == {"L0 Copy Engine<2,1>"}


@pytest.mark.parametrize("option, shape", [("--chrome-no-thread-on-device", r"L0 Compute Engine<0,0>"), ("--chrome-no-engine-on-device", r"Thread \d+ L0")])
def test_fewer_tracks(xstrace, tmp_path, option, shape):
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace(f"{KERNELS} {option}", "ze_matrix", ["--list", "immediate", "--threads", 2], env=gpu.env)
    assert all(re.fullmatch(shape + r"( lane \d+)?", place(run.trace, s)[1]) for s in run.trace.device)


@pytest.mark.parametrize("kind", ["immediate", "regular"])
def test_tiles_apart(xstrace, tmp_path, kind):
    """Of two tiles, tile i starts i ticks after the command and ends 1 - i ticks before its end."""
    gpu = SoftGPU(tmp_path, TILES=2, DURATION_NS="empty=100000")
    args = ["--list", kind, "--kernel", "empty", "--kernels", 6]
    run = xstrace(f"{KERNELS} --separate-tiles", "ze_matrix", args, env=gpu.env)
    tiles = collections.Counter(place(run.trace, s)[0].rpartition("#")[2] for s in run.trace.device)
    assert tiles == {"0.0": 6, "0.1": 6}
    for one in run.trace.device:
        assert abs(one.end - one.start - ns(gpu.kernels[0].end - gpu.kernels[0].start - 1)) <= 2
    whole = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert len(whole.trace.device) == 6


def test_names_and_arguments(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    args = ["--list", "immediate", "--kernels", 1, "--copies", 3, "--fills", 1, "--regions", 1]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    names = sorted(s.name for s in run.trace.device)
    assert names == [
        "increment[SIMD32 {1; 1; 1} {1; 1; 1}]",
        "zeCommandListAppendMemoryCopy(D2S)[4096]",
        "zeCommandListAppendMemoryCopy(H2D)[4096]",
        "zeCommandListAppendMemoryCopy(S2H)[4096]",
        "zeCommandListAppendMemoryCopyRegion(H2D)[480]",
        "zeCommandListAppendMemoryFill[2048]",
    ]


def numbers_of(run):
    return {key: int(number) for key, number in re.findall(r"(\w+): (\d+)", run.out)}


def test_threads_that_execute_lists_at_once(xstrace, tmp_path):
    """
    They take our lock in turns. One that slept for it each time would take a hundred times as long as without us, most
    times; the driver has a lock, too, so it is time that counts, not how often a thread sleeps.
    """
    threads, rounds, bare, traced = 8, 4000, [], []
    env = SoftGPU(tmp_path, SYNC=1).env
    del env["SOFTGPU_LOG"]  # it has a lock of its own
    for _ in range(5):
        bare.append(numbers_of(xstrace.bare("ze_threads", [threads, rounds], env=env))["us"])
        run = xstrace("-d", "ze_threads", [threads, rounds], env=env)
        assert re.search(rf"^ *\"?empty.*, +{numbers_of(run)['kernels']},", run.err, re.M), run.err
        traced.append(numbers_of(run)["us"])
    assert sum(took > 5 * statistics.median(bare) for took in traced) <= 1, (traced, bare)


def test_arrows_of_a_pass_that_reads_much(xstrace, tmp_path):
    """A drain process that was held up reads many commands of a queue before the calls that waited for them: each has its arrow."""
    env = SoftGPU(tmp_path, SYNC=1).env
    words = ["-c", 'read line; exec "$@"', "sh", APPS / "ze_lists", 200, 100]
    run = xstrace.start(KERNELS, "sh", words, env=env, stdin=subprocess.PIPE)
    os.kill(run.drain, signal.SIGSTOP)
    run.process.stdin.close()
    time.sleep(1.5)
    os.kill(run.drain, signal.SIGCONT)
    run.finish()
    (trace,) = (trace for trace in run.traces if trace.device)
    waits = sum(event["ph"] == "s" and event["name"] == "wait" for event in trace.events)
    assert waits == len(trace.device) == 20000 and "omitted" not in trace.other


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sync", [0, 1])
@pytest.mark.parametrize("how", ["immediate", "regular"])
def test_threads_that_append_to_one_list_at_once(xstrace, tmp_path, how, sync):
    """Some drivers bear it: the program ends as without us, and each command is shown, or told as missing."""
    gpu = SoftGPU(tmp_path, BEARS=1, SYNC=sync)
    for _ in range(3):
        run = xstrace(KERNELS, "ze_race", [4, 1000, how], env=gpu.env)
        made = int(re.search(r"fills: (\d+)", run.out)[1])
        other = run.trace.other
        found = len(run.trace.device) + sum(other.get(key, 0) for key in ("lost", "open_commands", "untimed_commands", "corrupt_rings"))
        assert run.status == 0 and found == made, (made, other)


@pytest.mark.long
@pytest.mark.parametrize("option", ["-d", KERNELS])
def test_a_handler_that_jumps_out_of_appends(xstrace, option):
    """The driver allocates memory for our events, and must not be left within that."""
    env = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYNC": "1"}
    for _ in range(3):
        run = xstrace(option, "ze_jumps", [500], env=env)
        assert (run.status, run.out) == (0, "jumped\n"), run.err


@pytest.mark.parametrize("option", ["-d", KERNELS])
def test_a_cancelled_thread_appends(xstrace, option):
    """What the driver does for our events may be a cancellation point, where the program's own call is none."""
    env = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYNC": "1", "SOFTGPU_CANCELS": "1"}
    said = "cancelled, 100 fills, SIGUSR1 open\n"
    assert xstrace.bare("ze_cancelled", [100], env=env).out == said
    run = xstrace(option, "ze_cancelled", [100], env=env)
    assert (run.status, run.out) == (0, said), run.err


def test_beside_mpi_logging(xstrace, tmp_path):
    """libxstrace-mpi.so, which comes first, has a dlopen() too: the loader's way to our layer goes on through it."""
    run = xstrace("--chrome-kernel-logging --chrome-mpi-logging", "ze_matrix", ["--kernels", 3], env=SoftGPU(tmp_path, SYNC=1).env)
    assert run.status == 0 and len(run.trace.device) == 3


def test_kernel_filters(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    args = ["--list", "immediate", "--kernels", 3, "--copies", 2]
    for option, kernels in (("--exclude-kernels incr", 0), ("--include-kernels incr", 3), ("--include-kernels other", 0)):
        run = xstrace(f"{KERNELS} {option}", "ze_matrix", args, env=gpu.env)
        assert (run.trace.count("kernels"), len(run.trace.device)) == (kernels, kernels + 2)


def test_calls(xstrace, tmp_path):
    """All functions, in the order in which they were called, with the results of those that failed."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("--chrome-call-logging", "ze_fail", env=gpu.env)
    same_as_bare(run, xstrace.bare("ze_fail", env=gpu.env))
    calls = [c.name for c in sorted(run.trace.calls, key=lambda c: c.start)]
    assert calls[0] == "zeInit" and calls[-1] == "zeContextDestroy"
    failed = [c for c in run.trace.calls if "result" in c.args]
    assert {c.name for c in failed} >= {"zeCommandQueueCreate", "zeKernelCreate", "zeMemAllocHost"}
    assert len(failed) >= 15


def test_failing_program_sees_the_same_errors(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    for options in (KERNELS, "-d", "-h", f"{KERNELS} --start-paused"):
        same_as_bare(xstrace(options, "ze_fail", env=gpu.env), xstrace.bare("ze_fail", env=gpu.env))


FAULTS = [
    "append:3:out_of_device_memory",
    "lost:5",
    "zeEventPoolCreate:1:out_of_host_memory",
    "zeEventQueryKernelTimestamp:2:unknown",
    "zeFenceCreate:1:out_of_host_memory",
    "zeContextCreate:1:out_of_host_memory",
    "zeCommandListCreate:1:out_of_device_memory",
    "zeDeviceGetGlobalTimestamps:1:unsupported_feature",
    "zeMemAllocHost:2:out_of_host_memory",
    "zeInit:1:uninitialized",
    "late:4:2000",
    "hold:2",
]


@pytest.mark.parametrize("kind", ["immediate", "regular"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults(xstrace, tmp_path, fault, kind):
    """The program gets what it would get, and ends as it would end. (A call that we make too is counted as well: it may be ours that fails.)"""
    args = ["--list", kind, "--kernels", 6, "--copies", 2, "--executions", 2, "--sync", "queue"]
    gpu = SoftGPU(tmp_path, FAULT=fault)
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    bare = xstrace.bare("ze_matrix", args, env=gpu.env)
    if fault.split(":")[0] in ("append", "lost", "zeContextCreate", "zeInit", "late", "hold"):
        same_as_bare(run, bare)
    else:
        assert run.status in (bare.status, 0)


def test_an_event_that_does_not_tell(xstrace, tmp_path):
    """A command whose event of the program's refuses its times is missing, and that is said."""
    gpu = SoftGPU(tmp_path, FAULT="zeEventQueryKernelTimestamp:1:unknown", SYNC=1)
    run = xstrace(KERNELS, "ze_matrix", ["--list", "immediate", "--kernels", 6, "--events", "timed", "--sync", "queue"], env=gpu.env)
    assert run.status == 0 and len(gpu.kernels) == 6, run.err
    assert len([s for s in run.trace.device if s.args.get("global")]) == 5
    assert run.trace.other["untimed_commands"] == 1 and any("1 command of process" in line for line in run.said)


def test_without_a_driver(xstrace, tmp_path):
    env = {"ZE_ENABLE_ALT_DRIVERS": "/nonexistent.so"}
    for options in (KERNELS, "-h", "-d"):
        same_as_bare(xstrace(options, "ze_matrix", env=env), xstrace.bare("ze_matrix", env=env))
        assert xstrace(options, "echo", ["hello"], env=env).out == "hello\n"


def loader():
    """The one that programs here are linked with."""
    told = subprocess.run(["ldd", BUILD / "tests/apps/ze_matrix"], capture_output=True, text=True, check=True).stdout
    return Path(re.search(r"libze_loader\.so\.1 => (\S+)", told).group(1))


def copy_of(library, path):
    path.write_bytes(library.read_bytes())
    return path


@pytest.mark.parametrize("how", [[], ["deep"]], ids=["plain", "deep"])
@pytest.mark.parametrize("renamed", [False, True])
def test_dlopened_loader(xstrace, tmp_path, how, renamed):
    """Also under another name, and where what it calls is looked up without us (RTLD_DEEPBIND)."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    args = [*how, copy_of(loader(), tmp_path / "libbundled.so.7")] if renamed else how
    run = xstrace(f"{KERNELS} --chrome-call-logging", "ze_dlopen", args, env=gpu.env)
    same_as_bare(run, xstrace.bare("ze_dlopen", args, env=BARE))
    assert len(run.trace.device) == 3 and "zeInit" in {c.name for c in run.trace.calls}
    assert not any("WARNING" in line for line in run.said)


def test_deep_beside_the_users_validation_layer(xstrace):
    env = BARE | {"ZE_ENABLE_VALIDATION_LAYER": "1"}
    run = xstrace(KERNELS, "ze_dlopen", ["deep"], env=env)
    same_as_bare(run, xstrace.bare("ze_dlopen", ["deep"], env=env))
    assert len([line for line in run.said if "WARNING" in line and "RTLD_DEEPBIND" in line]) == 1


@pytest.mark.parametrize("drivers", [1, 2])
def test_second_loader(xstrace, tmp_path, drivers):
    """With one driver both call the driver's functions; with several each has its own, and those of the second are told to be unseen."""
    names = [str(copy_of(DRIVER, tmp_path / f"driver{i}.so")) for i in range(drivers)]
    env = {"ZE_ENABLE_ALT_DRIVERS": ",".join(names), "SOFTGPU_SYNC": "1"}
    args = [loader(), copy_of(loader(), tmp_path / "libbundled.so.7")]
    run = xstrace(KERNELS, "ze_dlopen", args, env=env)
    same_as_bare(run, xstrace.bare("ze_dlopen", args, env=env))
    assert run.out.count("copied by the device") == 2 and run.status == 0
    assert len([line for line in run.said if "WARNING" in line and "second Level Zero loader" in line]) == drivers - 1
    assert len(run.trace.device) == (6 if drivers == 1 else 3)


@pytest.mark.parametrize("kind", ["tables", "symbols"])
def test_static_loader(xstrace, tmp_path, kind):
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace(f"{KERNELS} --chrome-call-logging", "ze_static", [kind], env=gpu.env)
    same_as_bare(run, xstrace.bare("ze_static", [kind], env=BARE))
    check(run, gpu)
    calls = collections.Counter(c.name for c in run.trace.calls)
    assert calls["zeInit"] >= 1 and calls["zeCommandListAppendMemoryCopy"] == 2
    once = ["zeDriverGet", "zeDeviceGet", "zeContextCreate", "zeMemAllocDevice", "zeCommandListCreateImmediate"]
    once += ["zeCommandListAppendBarrier", "zeCommandListDestroy", "zeMemFree", "zeContextDestroy"]
    assert [calls[name] for name in once] == [1] * len(once)


def test_nothing_is_loaded_before_zeinit(xstrace):
    run = xstrace(KERNELS, "cat", ["/proc/self/maps"])
    assert "libxstrace.so" in run.out and "libxstrace-ze.so" not in run.out and "libze" not in run.out


def test_the_users_own_validation_layer_is_there_too(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    env = gpu.env | {"ZE_ENABLE_VALIDATION_LAYER": "1", "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "ld")}
    run = xstrace(KERNELS, "ze_matrix", ["--list", "immediate"], env=env)
    assert run.status == 0 and run.trace.count("kernels") == 4
    loaded = "".join(path.read_text() for path in tmp_path.glob("ld.*"))
    assert "libxstrace-ze.so" in loaded and re.search(r"libze_validation_layer\.so\.1 ", loaded)


@pytest.mark.parametrize("end, status", [("return", 0), ("_exit", 0), ("abort", -signal.SIGABRT)])
def test_ends(xstrace, tmp_path, end, status):
    gpu = SoftGPU(tmp_path)
    run = xstrace(KERNELS, "ze_matrix", ["--list", "immediate", "--kernels", 50, "--sync", "list", "--end", end], env=gpu.env)
    assert run.status == status and run.trace.count("kernels") == 50


def test_paused(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    run = xstrace(f"{KERNELS} --start-paused", "ze_matrix", ["--executions", 3], env=gpu.env)
    same_as_bare(run, xstrace.bare("ze_matrix", ["--executions", 3], env=gpu.env))
    assert not run.traces or not run.trace.device


def test_threads(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    for kind in ("immediate", "regular"):
        gpu.path.unlink(missing_ok=True)
        gpu.__dict__.pop("lines", None), gpu.__dict__.pop("commands", None)
        args = ["--list", kind, "--threads", 4, "--executions", 10, "--kernels", 40, "--events", "timed", "--sync", "event"]
        check(xstrace(KERNELS, "ze_matrix", args, env=gpu.env), gpu)


def test_kernel_properties(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("-d", "ze_matrix", ["--list", "immediate"], env=gpu.env)
    assert re.search(r'^ *"increment",  +(AOT|JIT), +32, +1, +\d+, +\d+, +\d+, +\d+$', run.err, re.M), run.err
