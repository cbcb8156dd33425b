"""The software GPU without a tracer: what the test programs launch is what its log holds."""

import collections
import os
import re
from pathlib import Path

import pytest
from conftest import BUILD
from gpu_log import DRIVER, MATRIX, SoftGPU, matrix_args

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")

COUNTS = {
    "kernel": "kernels",
    "copy": "copies",
    "fill": "fills",
    "region": "regions",
    "barrier": "barriers",
}


def launched(run):
    numbers = re.search(r"launched (.*) on .* lists: right$", run.out, re.M).group(1).split()
    return dict(zip(numbers[1::2], map(int, numbers[::2])))


def logged(gpu):
    counts = collections.Counter(command.kind for command in gpu.commands)
    return {name: counts[kind] for kind, name in COUNTS.items()}


@pytest.mark.parametrize("same_thread", [0, 1])
@pytest.mark.parametrize("kind, order, events, sync", MATRIX)
def test_log_holds_what_was_launched(xstrace, tmp_path, kind, order, events, sync, same_thread):
    gpu = SoftGPU(tmp_path, SYNC=same_thread, STRICT=1)
    args = matrix_args(kind, order, events, sync)
    run = xstrace.bare("ze_matrix", args, env=gpu.env)
    assert run.status == 0, run.err
    assert logged(gpu) == launched(run)
    assert not gpu.misuse
    assert sum(copy.bytes for copy in gpu.copies) == 3 * (7 * 4096 + 3 * 2048 + 2 * 96 * 5)
    assert {k.name for k in gpu.kernels} == {"increment"}
    assert [k.groups for k in gpu.kernels if k.execution == gpu.kernels[0].execution][0] == "1,1,1"
    for command in gpu.commands:
        assert command.start < command.end and command.start_ns <= command.end_ns
    if kind == "regular":
        assert {command.execution for command in gpu.commands} == {1, 2, 3}


def test_timestamps_are_the_logs(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, FIRST_TICK=2**32 - 1000, BITS=32)
    run = xstrace.bare(
        "ze_matrix",
        ["--list", "immediate", "--events", "timed", "--timestamps", "--kernels", 40],
        env=gpu.env,
    )
    told = {tuple(map(int, m)) for m in re.findall(r"^\d+: (\d+) (\d+)$", run.out, re.M)}
    assert told == {(k.start % 2**32, k.end % 2**32) for k in gpu.kernels} and len(told) > 1
    assert gpu.commands[0].start >= 2**32 - 1000


def test_devices_tiles_engines_threads(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, DEVICES=3, TILES=2)
    args = [
        "--device",
        2,
        "--tile",
        1,
        "--engine",
        "0,3",
        "--threads",
        4,
        "--executions",
        20,
        "--kernels",
        3,
    ]
    run = xstrace.bare("ze_matrix", args, env=gpu.env)
    assert logged(gpu) == launched(run) and len(gpu.kernels) == 240
    assert {(k.device, k.tile, k.ordinal, k.index) for k in gpu.kernels} == {(2, 1, 0, 3)}
    assert len({k.queue for k in gpu.kernels}) == 4
    copies = SoftGPU(tmp_path, DEVICES=3)
    copies.path.unlink()
    run = xstrace.bare(
        "ze_matrix", ["--engine", "2,1", "--kernels", 0, "--copies", 6], env=copies.env
    )
    assert {(c.tile, c.ordinal, c.index) for c in copies.copies} == {(-1, 2, 1)}


@pytest.mark.parametrize("end", ["return", "_exit", "abort"])
def test_log_is_complete_however_the_program_ends(xstrace, tmp_path, end):
    gpu = SoftGPU(tmp_path)
    xstrace.bare("ze_matrix", ["--kernels", 50, "--end", end], env=gpu.env)
    assert len(gpu.kernels) == 50


def test_other_programs(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    assert "launched 2 copies: copied by the device" in xstrace.bare("ze_dlopen", env=gpu.env).out
    fails = xstrace.bare("ze_fail", env=gpu.env)
    assert fails.status == 0 and len(fails.out.splitlines()) > 30
    prices = dict(
        line.split()
        for line in xstrace.bare("ze_calls", [1000, 1000], env=gpu.env).out.splitlines()
    )
    calls = "zeEventQueryStatus", "zeDriverGetApiVersion", "zeCommandListAppendLaunchKernel"
    assert set(prices) == {*calls, *(f"{call}_sustained" for call in calls)}


def test_wrong_settings_end_the_program(xstrace, tmp_path):
    for name, value in (
        ("DEVICES", "many"),
        ("FAULT", "append"),
        ("DURATION_NS", "gemm"),
        ("CLOCK", "none"),
    ):
        run = xstrace.bare("ze_dlopen", env=SoftGPU(tmp_path, **{name: value}).env)
        assert run.status == 124 and f"softgpu: SOFTGPU_{name}={value}" in run.err


@pytest.mark.skipif(
    "XSTRACE_TEST_ZE_LOADER" not in os.environ,
    reason="XSTRACE_TEST_ZE_LOADER does not name the folder of another libze_loader.so.1",
)
@pytest.mark.parametrize("name", ["commands", "objects", "tools"])
def test_another_loader(xstrace, tmp_path, name):
    """All of the driver's own tests under the libze_loader.so.1 in the folder that is named."""
    env = {
        "LD_LIBRARY_PATH": str(Path(os.environ["XSTRACE_TEST_ZE_LOADER"]).resolve()),
        "ZE_ENABLE_ALT_DRIVERS": str(DRIVER),
        "XSTRACE_TEST_ZE_KERNELS": str(DRIVER.parent / "ze_kernels.so"),
    }
    run = xstrace.bare(BUILD / f"tests/softgpu/conformance_{name}", env=env)
    assert run.status == 0 and "1.." in run.out
    assert "not ok" not in run.out, run.out
