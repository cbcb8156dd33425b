"""Level Zero: the real loader over the software GPU, whose log is the truth that every trace is compared with."""

import collections
import itertools
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import BUILD
from gpu_log import DRIVER, SoftGPU

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
        found[re.split(r"[\[(]", one.name)[0]].append(one.end - one.start)
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


MATRIX = [
    (kind, order, events, sync)
    for kind, order, events, sync in itertools.product(
        ("regular", "immediate"),
        ([], ["--in-order"]),
        ("none", "timed", "plain", "counter"),
        ("queue", "event", "fence", "none"),
    )
    if (kind, sync) != ("immediate", "fence") and (events != "counter" or order)
]


@pytest.mark.parametrize("same_thread", [0, 1])
@pytest.mark.parametrize("kind, order, events, sync", MATRIX)
def test_every_combination(xstrace, tmp_path, kind, order, events, sync, same_thread):
    args = ["--list", kind, *order, "--events", events, "--sync", sync, "--executions", 3]
    args += ["--kernels", 5, "--copies", 7, "--fills", 3, "--regions", 2, "--barriers"]
    if events != "none":
        args += ["--chain"]
    if sync == "none" and events != "counter":
        args += ["--device-reset"]
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


def test_executed_again_without_waiting(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, DURATION_NS="increment=20000")
    args = ["--list", "regular", "--kernels", 3, "--executions", 200, "--sync", "none"]
    run = xstrace(KERNELS, "ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    check(run, gpu)
    assert len(gpu.kernels) == 600
    synchronized = [c for c in run.trace.calls if c.name == "zeCommandQueueSynchronize"]
    assert len(synchronized) <= 1
