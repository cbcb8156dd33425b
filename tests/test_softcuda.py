"""The software CUDA without a tracer: what the programs launch is what its log holds, and what a client of its CUPTI is told."""

import collections
import random
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")

# the size of a kernel's record in each of the versions that people have
VERSIONS = {12: 144, 18: 200, 28: 208, 130000: 216, 130300: 232, 130500: 248}
KERNEL, CONCURRENT = 3, 10
KINDS = {"copies": "copy", "fills": "set", "peers": "peer", "kernels": "kernel", "hosts": "host", "graphs": "graph"}


class Told:
    """What the collector (tests/softcuda/collector.c) was told, row by row."""

    def __init__(self, path):
        self.rows = [line.split("\t") for line in path.read_text().splitlines()]

    def of(self, kind):
        return [row[1:] for row in self.rows if row[0] == kind]

    @property
    def dropped(self):
        return sum(int(count) for (count,) in self.of("dropped"))


def collect(xstrace, tmp_path, cuda, program, args=(), status=0, **settings):
    path = tmp_path / "collector.log"
    path.unlink(missing_ok=True)
    cuda.path.unlink(missing_ok=True)
    major = cuda.libraries.name
    env = cuda.env | {
        "CUDA_INJECTION64_PATH": str(BUILD / f"tests/softcuda/{major}/softcuda_collector.so"),
        "COLLECTOR_LOG": str(path),
    }
    env |= {f"COLLECTOR_{name}": str(value) for name, value in settings.items()}
    run = xstrace.bare(program, args, env=env)
    assert run.status == status, run.err
    return run, Told(path)


def expected(run):
    return {kind: int(n) for n, kind in re.findall(r"^expected: (\d+) (\w+)$", run.out, re.M)}


def logged(cuda):
    return collections.Counter(command.kind for command in cuda.commands)


def truth(cuda, version):
    """The log's commands as rows of the collector."""
    rows = collections.Counter()
    for c in cuda.commands:
        graph = (c.graph, c.node) if version >= 17 else (0, 0)
        where = (c.correlation, c.start, c.end, c.device, c.context, c.stream)
        if c.kind == "kernel":
            rows[("kernel", c.name, *where, *graph, c.grid, c.block, c.shared)] += 1
        elif c.kind == "copy":
            rows[("copy", c.copy, *where, *graph, c.bytes)] += 1
        elif c.kind == "set":
            rows[("set", *where, *graph, c.bytes)] += 1
        elif c.kind == "peer":
            rows[("peer", *where, c.bytes)] += 1
    return collections.Counter({tuple(map(str, row)): n for row, n in rows.items()})


def reported(told):
    rows = collections.Counter()
    for kind in ("kernel", "copy"):
        rows.update((kind, *row) for row in told.of(kind))
    rows.update(("set", *row[1:]) for row in told.of("set"))
    rows.update(("peer", *row[1:7], row[9]) for row in told.of("peer"))
    return rows


PROGRAMS = [
    ("cuda_streams", ["--streams", 3, "--kernels", 7]),
    ("cuda_streams", ["--threads", 6, "--streams", 2, "--kernels", 20]),
    ("cuda_graphs", [5]),
    ("cuda_driver", [3]),
    ("cuda_errors", []),
    ("cuda_managed", [2]),
    ("cuda_reset", []),
    ("cuda_nvtx", []),
]


@pytest.mark.parametrize("sync", [0, 1])
@pytest.mark.parametrize("program, args", PROGRAMS, ids=[f"{p} {' '.join(map(str, a))}" for p, a in PROGRAMS])
def test_log_holds_what_was_launched(xstrace, tmp_path, program, args, sync):
    cuda = SoftCUDA(tmp_path, SYNC=sync, DEVICES=2)
    run = xstrace.bare(program, args, env=cuda.env)
    assert run.status == 0, run.err
    counts = logged(cuda)
    for kind, count in expected(run).items():
        if kind in KINDS:
            assert counts[KINDS[kind]] == count, kind
    for command in cuda.commands:
        assert command.start < command.end and command.start_ns <= command.end_ns


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program, args", PROGRAMS, ids=[f"{p} {' '.join(map(str, a))}" for p, a in PROGRAMS])
def test_client_is_told_the_truth(xstrace, tmp_path, program, args, version):
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version, DEVICES=2)
    run, told = collect(xstrace, tmp_path, cuda, program, args)
    assert told.of("version") == [[str(version), "0"]]
    assert reported(told) == truth(cuda, version)
    assert told.dropped == 0 and not told.of("failed")
    assert len(told.of("kernel")) == expected(run).get("kernels", len(cuda.kernels))


@pytest.mark.parametrize("version", VERSIONS)
def test_record_sizes(xstrace, tmp_path, version):
    """One buffer with kernels alone: its length is their number times their size."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version)
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", ["--kernels", 10], KINDS=CONCURRENT)
    assert sum(int(valid) for valid, _, _ in told.of("buffer")) == VERSIONS[version] * 20


@pytest.mark.parametrize(
    "fault",
    [{"LATE_MS": 20}, {"OUT_OF_ORDER": 3}, {"CUT_EVERY": 2}],
    ids=lambda fault: next(iter(fault)),
)
def test_misbehaviour_loses_nothing(xstrace, tmp_path, fault):
    cuda = SoftCUDA(tmp_path, **fault)
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", ["--kernels", 50], KINDS="1,2,10")
    assert reported(told) == truth(cuda, 130500) and told.dropped == 0
    starts = [int(row[2]) for row in told.of("kernel")]
    if "OUT_OF_ORDER" in fault:
        assert starts != sorted(starts)
    if "CUT_EVERY" in fault:
        assert {count for _, count, _ in told.of("buffer")} <= {"0", "1", "2"}


def test_dropped_is_counted(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, DROP_EVERY=7)
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", ["--kernels", 50], KINDS=CONCURRENT)
    assert (len(told.of("kernel")), told.dropped) == (86, 14) == (100 - len(cuda.notes), len(cuda.notes))


def test_refused_buffers_are_dropped_records(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path)
    _, told = collect(
        xstrace, tmp_path, cuda, "cuda_streams", ["--kernels", 50], KINDS=CONCURRENT, REFUSE=3, BUFFER=1000
    )
    assert len(told.of("kernel")) + told.dropped == 100 and told.dropped == len(cuda.notes) > 5


@pytest.mark.parametrize("size", [0, 8, 100])
def test_buffers_too_small_for_a_record(xstrace, tmp_path, size):
    cuda = SoftCUDA(tmp_path)
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", [], KINDS=CONCURRENT, BUFFER=size)
    assert told.dropped == 10 and not told.of("kernel")


@pytest.mark.parametrize("function, result", [("cuptiActivityEnable", 35), ("cuptiSubscribe", 39), ("cuptiActivityEnable", 15), ("cuptiGetVersion", 999)])
def test_calls_of_cupti_fail_as_asked(xstrace, tmp_path, function, result):
    cuda = SoftCUDA(tmp_path, FAULT=f"{function}:{result}")
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", [], CALLS=1)
    if function == "cuptiGetVersion":
        assert told.of("version") == [["0", "999"]]
    else:
        assert {tuple(row) for row in told.of("failed")} == {(function, str(result))}


@pytest.mark.parametrize("by_subscriber", [False, True])
def test_callbacks(xstrace, tmp_path, by_subscriber):
    cuda = SoftCUDA(tmp_path)
    more = {"SUBSCRIBER": 1} if by_subscriber else {}
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", [], CALLS=1, KINDS="1,2,5,10", **more)
    assert reported(told) == truth(cuda, 130500)
    enters = [row for row in told.of("enter") if row[1] == "cudaLaunchKernel_v7000"]
    assert {row[3] for row in enters} == {"_Z9incrementPii"} and len(enters) == 10
    kernels = {row[1] for row in told.of("kernel")}
    assert {row[2] for row in enters} == kernels and not told.of("wrong")
    within = {row[2] for row in told.of("enter") if row[1] == "cuLaunchKernel"}
    assert within == kernels  # the driver's call has the id of the runtime's that makes it
    assert len(told.of("exit")) == len(told.of("enter"))
    callbacks = collections.Counter(tuple(row) for row in told.of("callback"))
    assert callbacks[("3", "1")] == 1  # a context
    assert callbacks[("3", "3")] == 3  # two streams, and the default one
    assert callbacks[("4", "1")] == 2 and callbacks[("4", "2")] == 1  # waits for streams, and for the device


def test_graphs_as_one(xstrace, tmp_path):
    """With their own kind enabled, a launch of a graph is one record, and its nodes are none."""
    cuda = SoftCUDA(tmp_path)
    run, told = collect(xstrace, tmp_path, cuda, "cuda_graphs", [3], KINDS="1,2,10,51")
    graphs = [(c.graph, c.correlation, c.start, c.end) for c in cuda.of("graph")]
    assert graphs == [tuple(map(int, row[:4])) for row in told.of("graph")]
    assert len(graphs) == expected(run)["graphs"] and not told.of("kernel")


def test_graph_callbacks(xstrace, tmp_path):
    _, told = collect(xstrace, tmp_path, SoftCUDA(tmp_path), "cuda_graphs", [1], CALLS=1)
    callbacks = collections.Counter(tuple(row) for row in told.of("callback"))
    assert callbacks[("3", "18")] == 3 and callbacks[("3", "19")] == 3  # executables come and go
    assert callbacks[("3", "9")] == 4  # graphs: three, and the loop's body
    assert callbacks[("3", "13")] == 5 + 3 + 4 and callbacks[("3", "20")] > callbacks[("3", "13")]


def test_ranges_and_marks(xstrace, tmp_path):
    for program in ("cuda_nvtx", "cuda_nvtx2"):
        cuda = SoftCUDA(tmp_path)
        cuda.env["NVTX_INJECTION64_PATH"] = str(cuda.libraries / "libcupti.so.13")
        run, told = collect(xstrace, tmp_path, cuda, program, [3], CALLS=1)
        rows = told.of("marker")
        begun = collections.Counter((d, name) for flags, _, _, name, d in rows if flags == "2")
        marks = collections.Counter((d, name) for flags, _, _, name, d in rows if flags == "1")
        ended = {id for flags, id, _, _, _ in rows if flags == "4"}
        assert ended == {id for flags, id, _, _, _ in rows if flags == "2"}
        for n, kind, domain, name in re.findall(
            r"^expected: (\d+) (ranges|marks) (?:(.*)::)?(.*)$", run.out, re.M
        ):
            found = begun if kind == "ranges" else marks
            assert found[(domain or "-", name)] == int(n), name
        assert {"nvtxRangePushA", "nvtxDomainMarkEx"} <= {name for (name,) in told.of("nvtx")}


def test_managed_memory(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, DEVICES=2)
    run, told = collect(xstrace, tmp_path, cuda, "cuda_managed", [2])
    moved = [(kind, value) for kind, value, *_ in told.of("managed")]
    assert moved == [("1", "16384"), ("2", "16384"), ("4", "1"), ("1", "16384"), ("2", "16384")] * 2
    assert told.of("pool") == [["1", "0"], ["3", "0"], ["2", "0"]]  # made, trimmed, destroyed
    assert int(re.search(r"expected: (\d+) migrations", run.out)[1]) == len(cuda.notes) == 8


def test_fork(xstrace, tmp_path):
    for when in ("before", "after"):
        cuda = SoftCUDA(tmp_path)
        cuda.path.unlink(missing_ok=True)
        run = xstrace.bare("cuda_fork", [when], env=cuda.env)
        assert run.status == 0, run.err
        wanted = {int(pid): int(n) for pid, n in re.findall(r"process: (\d+)\nexpected: (\d+)", run.out)}
        found = collections.Counter(kernel.pid for kernel in cuda.kernels)
        assert {pid: found[pid] for pid in wanted} == wanted


def test_a_lost_device(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, LOST_AFTER=5, SYNC=1)
    run = xstrace.bare("cuda_streams", env=cuda.env)
    assert run.status == 98 and ": 719 unspecified launch failure" in run.err
    assert len(cuda.commands) == 5


NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


@pytest.mark.skipif(not NVCC, reason="no nvcc")
def test_a_program_of_nvcc(xstrace, tmp_path):
    program = tmp_path / "vadd"
    command = [NVCC, "-O1", "-arch=sm_90", "-cudart", "shared", "-Xlinker", "-export-dynamic"]
    command += ["-I", ROOT / "tests/softcuda", ROOT / "tests/apps/cuda_vadd.cu", "-o", program]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    major = re.search(r"libcudart\.so\.(\d+)", subprocess.run(["ldd", program], capture_output=True, text=True).stdout)[1]
    cuda = SoftCUDA(tmp_path, int(major))
    run, told = collect(xstrace, tmp_path, cuda, program, [5], CALLS=1)
    assert logged(cuda) >= collections.Counter(kernel=5, copy=3, set=1) and not run.err
    assert {row[0] for row in told.of("kernel")} == {"_Z4vaddPKfS0_Pfi"}
    assert reported(told) == truth(cuda, 130500)


def test_killed_at_a_random_moment(xstrace, tmp_path):
    """The log holds what was executed until then, whole lines alone."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace.bare("cuda_streams", ["--end", "never"], env=cuda.env, prefix=["timeout", "-s", "KILL", f"{random.uniform(0.1, 0.4):.3f}"])
    assert run.status in (-9, 137) and len(cuda.kernels) > 5


def test_clock_of_the_client(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path)
    _, told = collect(xstrace, tmp_path, cuda, "cuda_streams", [], CLOCK=1)
    assert reported(told) == truth(cuda, 130500)
    for command in cuda.commands:
        assert command.start_ns <= command.start < command.end <= command.end_ns + 1


@pytest.mark.parametrize("end, status", [("return", 0), ("_exit", 0), ("abort", -6)])
def test_log_is_complete_however_the_program_ends(xstrace, tmp_path, end, status):
    cuda = SoftCUDA(tmp_path)
    run = xstrace.bare("cuda_streams", ["--end", end], env=cuda.env)
    assert run.status == status and len(cuda.kernels) == 10


def test_calls_of_the_program_fail_as_asked(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, FAULT="cudaMalloc:2:2")
    run = xstrace.bare("cuda_streams", env=cuda.env)
    assert run.status == 98 and "out of memory" in run.err and len(cuda.kernels) == 5


@pytest.mark.parametrize("setting, code", [("NO_DRIVER", 35), ("OLD_DRIVER", 35), ("DEVICES", 100)])
def test_no_driver(xstrace, tmp_path, setting, code):
    cuda = SoftCUDA(tmp_path, **{setting: 0 if setting == "DEVICES" else 1})
    run = xstrace.bare("cuda_streams", env=cuda.env)
    assert run.status == 98 and f": {code} " in run.err


def test_wrong_settings_end_the_program(xstrace, tmp_path):
    for name, value in (("DEVICES", "many"), ("FAULT", "cudaMalloc"), ("DURATION_NS", "gemm")):
        run = xstrace.bare("cuda_loop", [1], env=SoftCUDA(tmp_path, **{name: value}).env)
        assert run.status == 124 and f"SOFTCUDA_{name}={value}" in run.err


def test_durations(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, DURATION_NS="empty=200000")
    run = xstrace.bare("cuda_loop", [20], env=cuda.env)
    assert run.status == 0 and len(cuda.kernels) == 20
    assert all(kernel.end - kernel.start >= 200000 for kernel in cuda.kernels)
