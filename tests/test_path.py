"""xstrace-path on runs whose longest chain is known: by hand, by programs that are played through, by real ones that are really changed."""

import contextlib
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

import pytest

pytest.importorskip("numpy")
pytest.importorskip("duckdb")

from conftest import APPS, BUILD, ROOT, Trace, check_trace, limited
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from gpu_log import DRIVER, SoftGPU
from merging import merge
from planned_paths import DEVICE, Planned, play, random_programs
from others import CLIENTS, PROGRAMS, need, needs_clients
from ranks import MPI, MPICC, Job, Ranks, needs_mpi

from test_openmp import needs_clang
from xstrace import TraceError, open_trace
from xstrace.check import check_trace as problems_of
from xstrace.path import critical_path

COMMAND = ROOT / "scripts/xstrace-path"
REPLAY = BUILD / "replay/xstrace-replay"
ALL = "--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging"


def command(*args, status=0, **popen):
    """Runs it; the CompletedProcess."""
    result = subprocess.run([sys.executable, COMMAND, *map(str, args)], capture_output=True, text=True, timeout=60, **popen)
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
    return result


def path_of(run, tmp_path, *changes):
    """The result for a Planned; what every result must keep is checked."""
    told = critical_path(str(run.write(tmp_path / "planned.json")), changes)
    check(told)
    return told


def check(told):
    assert told["reproduced"]
    assert sum(told["kinds"].values()) == told["length_ns"] == sum(row["ns"] for row in told["names"])
    assert all(row["ns"] > 0 for row in told["names"])


def shares(told):
    return {(row["kind"], row["name"]): row["ns"] for row in told["names"]}


def lengths(told):
    return [row["length_ns"] for row in told["what_if"]]


def chain(run, tmp_path):
    """What the track shows: [(name, ns)], from the run's begin to its end; and the arrows [(pid, pid)]."""
    command(run.write(tmp_path / "planned.json"), "-o", tmp_path / "drawn.json")
    assert check_trace(tmp_path / "drawn.json", strict=True) == []
    trace = Trace(tmp_path / "drawn.json")
    steps = sorted((s for s in trace.slices if s.cat == "critical_path"), key=lambda s: s.start)
    assert all(a.end == b.start for a, b in zip(steps, steps[1:])) and len({s.track for s in steps}) == 1
    points = {}
    for event in trace.events:
        if event["ph"] in "sf" and event["cat"] == "critical_path":
            points.setdefault(event["id"], {})[event["ph"]] = event["pid"]
    return [(s.name, s.end - s.start) for s in steps], [(p["s"], p["f"]) for p in points.values()]


# ---- planned by hand ----


def one_kernel():
    """A task that prepares, a launch, a kernel, a wait, and a rest."""
    run = Planned()
    main, queue = run.thread("main"), run.queue("queue")
    run.slice(main, 0, 1000, "app::prepare")
    run.slice(main, 1000, 1400, "clEnqueueNDRangeKernel")
    run.slice(main, 1500, 9700, "clFinish")
    run.slice(main, 9700, 10000, "app::rest")
    run.slice(queue, 3000, 9000, "gemm[SIMD8 {1; 1; 1} {1; 1; 1}]", "gpu_op")
    run.arrow("dep", main, 1000, queue, 3000)
    run.arrow("wait", queue, 9000, main, 9700)
    return run


def test_a_launch_a_kernel_and_a_wait(tmp_path):
    steps, arrows = chain(one_kernel(), tmp_path)
    assert steps == [("app::prepare", 1000), ("launch latency: gemm", 2000), ("gemm", 6000), ("wake-up: clFinish", 700), ("app::rest", 300)]
    assert arrows == [(100, DEVICE), (DEVICE, 100)]
    changes = ("kernel gemm x0.5", "launch latency x0", "task prepare x2", "wake-up x0", "kernel gemm x0", "clFinish x0")
    told = path_of(one_kernel(), tmp_path, *changes)
    # the host has 500 ns to do before it waits; without the kernel it returns after 700 more
    assert lengths(told)[:-1] == [7000, 8000, 11000, 9300, 4000, 9300]
    assert told["waits"] == [{"who": "HOST<h> app 100", "whom": "DEVICE<h>[gpu 0]", "count": 1, "ns": 7500}]
    slack = {row["name"]: row["ns"] for row in told["slack"]}
    assert slack["clEnqueueNDRangeKernel"] == 7500 and slack["gemm"] == slack["app::prepare"] == 0


def test_two_queues_and_an_order(tmp_path):
    """A copy on one queue, then a kernel on another that was told to wait; a kernel that nobody waits for ends earlier."""
    run = Planned()
    main, early, copies, kernels, late = run.thread("main"), *map(run.queue, ("early", "copies", "kernels", "late"))
    run.slice(early, 1200, 2000, "other", "gpu_op")
    run.slice(late, 1200, 2000, "other", "gpu_op")
    run.slice(main, 0, 200, "cudaMemcpyAsync")
    run.slice(main, 200, 400, "cudaLaunchKernel")
    run.slice(main, 400, 8000, "cudaDeviceSynchronize")
    run.slice(copies, 1000, 4000, "memcpy HtoD[1024]", "gpu_op")
    run.slice(kernels, 1200, 2000, "other", "gpu_op")
    run.slice(kernels, 4100, 7500, "gemm", "gpu_op")
    run.arrow("dep", main, 0, copies, 1000)
    run.arrow("dep", main, 200, kernels, 4100)
    run.arrow("order", copies, 4000, kernels, 4100)
    run.arrow("wait", kernels, 7500, main, 8000)
    steps, _ = chain(run, tmp_path)
    assert [name for name, _ in steps] == [
        "launch latency: memcpy HtoD",
        "memcpy HtoD",
        "queueing: gemm",
        "gemm",
        "wake-up: cudaDeviceSynchronize",
    ]
    told = path_of(run, tmp_path, "copy * x0.5", "kernel gemm x0.5", "device * x0")
    assert {row["name"]: row["ns"] for row in told["slack"]}["other"] == 2000  # the least of three
    # without any work: both launches, a gap behind each piece, a wake-up
    assert lengths(told)[:3] == [6500, 6300, 1200 + 100 + 500]


def test_a_list_of_commands(tmp_path):
    """The call that executes a list launches its commands, not the one that appended them."""
    run = Planned()
    main, queue = run.thread("main"), run.queue("queue")
    run.slice(main, 0, 100, "zeCommandListAppendLaunchKernel")
    run.slice(main, 5000, 5200, "zeCommandQueueExecuteCommandLists")
    run.slice(main, 5300, 9000, "zeCommandQueueSynchronize")
    run.slice(queue, 6000, 8500, "k", "gpu_op")
    run.arrow("dep", main, 50, queue, 6000)
    run.arrow("submit", main, 5000, queue, 6000)
    run.arrow("wait", queue, 8500, main, 9000)
    steps, _ = chain(run, tmp_path)
    assert steps == [
        ("zeCommandListAppendLaunchKernel", 100),
        ("(outside any slice)", 4900),
        ("launch latency: k", 1000),
        ("k", 2500),
        ("wake-up: zeCommandQueueSynchronize", 500),
    ]


def test_a_late_sender_and_a_late_receiver(tmp_path):
    run = Planned()
    a = run.thread("main", 100, process="RANK 0 HOST<h> app")
    b = run.thread("main", 200, process="RANK 1 HOST<h> app")
    run.slice(a, 0, 5000, "app::slow")
    run.slice(a, 5000, 5300, "MPI_Send")
    run.slice(b, 0, 1000, "app::fast")
    run.slice(b, 1000, 6000, "MPI_Recv")
    run.arrow("message", a, 5000, b, 5001, "mpi")
    # the other way round, and too large to leave before there is a receive
    run.slice(b, 6000, 12000, "MPI_Send")
    run.slice(a, 5300, 11000, "app::slower")
    run.slice(a, 11000, 13000, "MPI_Recv")
    run.arrow("message", b, 6000, a, 11000, "mpi")
    run.slice(b, 12000, 14000, "app::end")
    steps, arrows = chain(run, tmp_path)
    assert steps == [("app::slow", 5000), ("MPI_Send", 300), ("app::slower", 5700), ("message: MPI_Send", 1000), ("app::end", 2000)]
    assert arrows == [(100, 200)]
    told = path_of(run, tmp_path, "task slower x0", "message x0")
    # the receive is then there before the send, which leaves at once
    assert lengths(told)[:2] == [6000 + 300 + 2000, 13000]
    waits = {(w["who"][:6], w["whom"][:6]): w["ns"] for w in told["waits"]}
    assert waits == {("RANK 1", "RANK 0"): 4000 + 5000}


def test_collectives_of_merged_ranks(tmp_path):
    """Who gives, who gets: a barrier, a broadcast and a reduction, through xstrace-merge."""
    job = Job(["a"] * 3)
    for rank, ns in enumerate((10**6, 5 * 10**6, 2 * 10**6)):
        job.compute(rank, ns, f"work::of{rank}")
    job.everyone("Barrier")
    for rank, ns in enumerate((4 * 10**6, 10**6, 10**6)):
        job.compute(rank, ns, f"work::then{rank}")
    job.of_root("Bcast", 0, bytes=64)
    for rank, ns in enumerate((10**6, 10**6, 7 * 10**6)):
        job.compute(rank, ns, f"work::late{rank}")
    job.of_root("Reduce", 0, bytes=64)
    merge("-o", "all.json", *job.write(tmp_path), cwd=tmp_path)
    changes = ["task of1 x0", "task then0 x0", "task late2 x0.5", "task then1 x0"]
    told = critical_path(str(tmp_path / "all.json"), changes)
    check(told)
    work = [name for kind, name in shares(told) if name.startswith("work::")]
    assert sorted(work) == ["work::late2", "work::of1", "work::then0"]
    saved = [told["length_ns"] - length for length in lengths(told)[:4]]
    # in place of rank 1 rank 2 comes last; then all wait for nobody; half of the last
    assert abs(saved[0] - 3 * 10**6) < 20_000 and abs(saved[1] - 3 * 10**6) < 30_000
    assert abs(saved[2] - 35 * 10**5) < 1000 and saved[3] == 0


def test_threads_and_processes(tmp_path):
    """A process's child and its own thread, each of which it begins and waits for without a call."""
    run = Planned()
    main, thread = run.thread("main"), run.thread("worker")
    child = run.thread("main", 200, process="HOST<h> child")
    run.slice(main, 0, 1000, "app::start")
    run.slice(child, 1500, 8000, "child::all")
    run.arrow("child", main, 900, child, 1500, "process")
    run.slice(main, 8100, 9000, "app::between")
    run.slice(thread, 9050, 15000, "worker::all")
    run.slice(main, 15100, 16000, "app::end")
    steps, _ = chain(run, tmp_path)
    assert [name for name, _ in steps] == [
        "app::start",
        "start: child::all",
        "child::all",
        "join: (outside any slice)",
        "app::between",
        "start: worker::all",
        "worker::all",
        "join: (outside any slice)",
        "app::end",
    ]
    told = path_of(run, tmp_path, "task child::all x0.5", "task worker::all x0.5")
    assert lengths(told) == [16000 - 3250, 16000 - 2975, 16000 - 3250 - 2975]


def test_a_thread_that_nobody_waits_for(tmp_path):
    run = Planned()
    main, thread = run.thread("main"), run.thread("worker")
    run.slice(main, 0, 10000, "app::all")
    run.slice(main, 3000, 9000, "app::part")
    run.slice(thread, 1000, 5000, "worker::all")
    steps, _ = chain(run, tmp_path)
    assert steps == [("app::all", 3000), ("app::part", 6000), ("app::all", 1000)]


def test_tasks_hold_what_lies_in_them(tmp_path):
    """A rule about a task holds for the host's time in what it encloses, once; not for devices."""
    run = Planned()
    main, queue = run.thread("main"), run.queue("queue")
    run.slice(main, 0, 10000, "app::step")
    run.slice(main, 1000, 3000, "app::step")
    run.slice(main, 3000, 3500, "clEnqueueNDRangeKernel")
    run.slice(main, 4000, 9000, "clFinish")
    run.slice(queue, 4000, 8000, "k", "gpu_op")
    run.arrow("dep", main, 3000, queue, 4000)
    run.arrow("wait", queue, 8000, main, 9000)
    told = path_of(run, tmp_path, "task step x0.5", "task app::st?p x0", "call * x0", "host * x0")
    # 3000 before the launch and 1000 behind the wait are the host's; launch, kernel and wake-up are not
    assert lengths(told)[:4] == [8000, 6000, 9000, 6000]


def test_regions_of_openmp(tmp_path):
    """The worker is called by the region's begin, and the first thread goes on when the last of both has come."""
    run = Planned()
    main, worker = run.thread("main"), run.thread("OpenMP worker")
    idle = "OpenMP::barrier at the end of the region, then idle"
    for at, parts in ((0, ((100, 3000), (500, 9000))), (20_000, ((100, 9000), (300, 2000)))):
        run.slice(main, at, at + 10_000, "OpenMP::parallel f+0x1", threads=[2])
        for track, (begin, end) in zip((main, worker), parts):
            run.slice(track, at + begin, at + end, "OpenMP::implicit task")
            run.slice(track, at + begin + 100, at + end - 100, "OpenMP::loop f+0x1", iterations=[9])
        run.slice(main, at + parts[0][1], at + 9900, "OpenMP::barrier at the end of the region f+0x1")
    run.slice(worker, 9000, 20_200, idle)
    run.slice(worker, 22_000, 99_000, idle)
    told = path_of(run, tmp_path, "task loop* x0.5", "task loop* x0")
    assert told["length_ns"] == 30_000 and told["waits"] == []
    assert shares(told)["host", "OpenMP::loop f+0x1"] == 8300 + 8700
    # without its loops the second region waits for the worker, which begins 200 ns later
    assert lengths(told)[:2] == [30_000 - 4150 - 4350, 30_000 - 8300 - 8700 + 200]


def test_waits_without_a_known_cause(tmp_path):
    run = Planned()
    main, queue = run.thread("main"), run.queue("queue")
    run.slice(main, 0, 4000, "MPI_Recv", comm="world", peer=1, tag=0)
    run.slice(main, 4000, 5000, "app::work")
    run.slice(queue, 1000, 2000, "k", "gpu_op")
    run.slice(queue, 7000, 9000, "k", "gpu_op")
    told = path_of(run, tmp_path, "kernel * x1", "idle x0")
    # nobody says who launched the kernels: the second one ends last, and is begun for no known reason
    assert told["kinds"] == {"idle": 6000, "kernel": 3000} and lengths(told)[1] == 4000 + 1000
    run.slice(main, 9000, 12000, "clFinish")
    told = path_of(run, tmp_path, "MPI_* x0", "clFinish x0.5")
    assert told["kinds"] == {"waiting": 7000, "host": 5000} and lengths(told)[:2] == [9000, 10500]


# ---- programs that are played through ----

CHANGES = {
    "kernel k1 x0.5": {"k1": 0.5},
    "kernel k1 x2": {"k1": 2},
    "kernel * x0.1": {"k0": 0.1, "k1": 0.1, "k2": 0.1},
    "task w1 x0": {"w1": 0},
    "task train::* x0.2": {"w0": 0.2, "w1": 0.2, "w2": 0.2},
    "launch latency x0": {"launch": 0},
    "message x0": {"message": 0},
    "collective x3": {"collective": 3},
}


@pytest.mark.long
def test_foretold_and_played(tmp_path):
    """What is foretold is what the changed program does: to the ns nearly always, and within 2 % everywhere."""
    exact = 0
    for seed in range(10):
        programs = random_programs(2 + seed % 3, 4 + seed % 4, seed)
        run, length = play(programs)
        told = path_of(run, tmp_path, *CHANGES)
        assert told["length_ns"] == length
        for changed, foretold in zip(CHANGES.values(), lengths(told)):
            true = play(programs, changed)[1]
            assert abs(foretold - true) < 0.02 * true, (seed, changed)
            exact += abs(foretold - true) <= 30  # every length is rounded by itself
    assert exact >= 0.85 * 10 * len(CHANGES)


def test_thousands_of_ranks(tmp_path):
    """2,000 ranks that come together: no table of pairs, and the last one is found."""
    run = Planned()
    for rank in range(2000):
        thread = run.thread("main", 1000 + rank, process=f"RANK {rank} HOST<h> app")
        late = 10**6 if rank == 1234 else 1000 + rank
        run.slice(thread, 0, late, f"work::of{rank}")
        run.slice(thread, late, 10**6 + 500, "MPI_Barrier", comm="world", seq=1)
        run.slice(thread, 10**6 + 500, 10**6 + 600 + rank, "work::rest")
    told = path_of(run, tmp_path, "task of1234 x0")
    assert shares(told) == {("host", "work::of1234"): 10**6, ("collective", "MPI_Barrier"): 500, ("host", "work::rest"): 2099}
    assert lengths(told) == [2999 + 500 + 2099]
    assert told["graph"]["edges"] == 4000 and len(told["waits"]) == 1999


# ---- changes ----


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "change, why",
    [
        ("kernel gemm", "is no change"),
        ("kernel gemm x-1", "is no change"),
        ("kernel gemm x1e9", "is no change"),
        ("kernel gemm x1001", "at most 1000"),
        ("x0", "says no name and no kind"),
        ("", "is no change"),
        ("kernel nothing x0", "the trace has 1 kernels: gemm"),
        ("copy * x0", "the trace has no copies"),
        ("kernel [ x0", "no such name"),
        ("kernel \x1b[31m\n x0", "no such name"),
        ("task " + "(a+)+$" * 1000 + " x0", "no such name"),
    ],
)
def test_changes_that_cannot_be(tmp_path, change, why):
    path = one_kernel().write(tmp_path / "planned.json")
    said = command(path, "--what-if", change, status=2).stderr
    assert why in said and said.count("\n") == 1 and said.isprintable() is False and "\x1b" not in said
    with pytest.raises(TraceError):
        critical_path(str(path), [change])


def test_changes_are_made_alone_and_together(tmp_path):
    told = path_of(one_kernel(), tmp_path, "kernel gemm x.5", "gemm ×0.5", "* x1")
    assert lengths(told) == [7000, 7000, 10000, 5500]  # both about the same: a quarter
    assert [row["changes"] for row in told["what_if"]][-1] == ["kernel gemm x.5", "gemm ×0.5", "* x1"]
    with pytest.raises(TraceError, match="64 changes"):
        path_of(one_kernel(), tmp_path, *["gemm x1"] * 65)


# ---- the copy with the track ----


@pytest.mark.long
def test_drawn_into_every_kind_of_file(tmp_path):
    text = one_kernel().text()
    events = json.loads(text)["traceEvents"]
    forms = {
        "plain.json": text.encode(),
        "packed.json.gz": gzip.compress(text.encode()),
        "array.json": json.dumps(events).encode(),
        "odd.json": b'{"x":"\\"traceEvents\\":[",\n "traceEvents" : [ ' + json.dumps(events)[1:].encode() + b"}",
        "cut.json": text.encode()[: text.index('],"otherData"') - 1],
    }
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        command(tmp_path / name, "-o", tmp_path / f"drawn.{name}.json")
        drawn = Trace(tmp_path / f"drawn.{name}.json")
        assert sum(s.end - s.start for s in drawn.slices if s.cat == "critical_path") == 10000, name
        others = [e for e in drawn.events if e.get("cat") != "critical_path" and e.get("pid") != (1 << 31) - 2]
        assert len(others) == len(events), name
    assert not [path for path in tmp_path.iterdir() if path.suffix.strip(".").isdigit()]


# what is wrong with a trace: (the trace of a good text, the exit status, what a line says)
FAULTS = {
    "two traces": (lambda text: text + "\n" + text, 1, "text behind the end of the trace; left out"),
    "cut": (lambda text: text[: text.index('],"otherData"') + 1], 0, "was cut"),
    "damaged": (lambda text: text.replace('"app::rest"', '"app::rest" {{'), 1, "left out"),
    "comma": (lambda text: text.replace('],"otherData"', ',],"otherData"'), 0, ""),
    "byte order mark": (lambda text: "\ufeff" + text, 0, ""),
    "no number": (lambda text: text.replace('"name":"app::rest"', '"args":{"x":NaN},"name":"app::rest"'), 0, ""),
    "control character": (lambda text: text.replace("app::rest", "app::\trest"), 0, ""),
}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_left_out_is_said_each_time_and_is_in_no_copy(tmp_path, fault):
    """Also where the tables are there already; and a copy is JSON whatever the trace is, with each event that could be read."""
    spoil, status, says = FAULTS[fault]
    text = one_kernel().text()
    if '"otherData"' not in text:
        text = text.rstrip().removesuffix("}") + ',"otherData":{}}'
    text = re.sub(r'\]\s*,\s*"otherData"', '],"otherData"', text).replace('"name": "app::rest"', '"name":"app::rest"')
    path = tmp_path / "in.json"
    path.write_text(spoil(text))
    assert path.read_text() != text
    said = [command(path, "-o", tmp_path / f"{n}.json", status=status).stderr for n in range(2)]
    assert said[0] == said[1] and said[0].startswith("xstrace-path: ") == bool(says) and says in said[0]
    drawn = [json.loads((tmp_path / f"{n}.json").read_text()) for n in range(2)]
    assert drawn[0] == drawn[1] and problems_of(str(tmp_path / "0.json")) == []
    events = [event for event in drawn[0]["traceEvents"] if event.get("cat") != "critical_path" and event["pid"] != (1 << 31) - 2]
    assert len(events) == len(json.loads(text)["traceEvents"]) - (fault == "damaged")
    assert drawn[0]["repaired"] is True


def test_files_of_a_directory_that_are_no_traces_are_said(tmp_path):
    (tmp_path / "in").mkdir()
    one_kernel().write(tmp_path / "in/good.json")
    (tmp_path / "in/empty.json").write_text("")
    for _ in range(2):
        assert command(tmp_path / "in").stderr == f"xstrace-path: {tmp_path}/in/empty.json: empty; left out\n"


def test_drawn_into_packets_and_into_several(tmp_path):
    """Perfetto's format stays it, and tells the same chain as JSON; of several traces each gets the whole chain, in its own times."""
    traces = tmp_path / "traces"
    (traces / "below").mkdir(parents=True)
    samples = ROOT / "tests/samples/0.1.0"
    shutil.copy(samples / "gemm.pftrace", traces / "gemm.pftrace")
    shutil.copy(samples / "gemm.json.gz", traces / "gemm.json.gz")
    text = gzip.decompress((samples / "gemm.json.gz").read_bytes()).decode()
    base = int(re.search(r'"baseTimeNanoseconds":(\d+)', text)[1])
    (traces / "below/gemm.json").write_text(text.replace(str(base), str(base + 86_400 * 10**9), 1))  # a day behind: its own day begins later than the chain
    before = (traces / "gemm.pftrace").read_bytes()
    command(traces / "gemm.pftrace", "-o", tmp_path / "one.pftrace")
    assert (tmp_path / "one.pftrace").read_bytes().startswith(before)
    told = critical_path(str(traces / "gemm.pftrace"))
    assert drawn(tmp_path / "one.pftrace") == (told["begin_ns"], told["length_ns"])
    command(traces, "-o", tmp_path / "drawn")
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == ["gemm-2.json", "gemm.json", "gemm.pftrace"]
    told = critical_path(str(traces))
    places = {path.name: drawn(path) for path in (tmp_path / "drawn").iterdir()}
    whole, day = (told["begin_ns"], told["length_ns"]), base + 86_400 * 10**9
    assert places == {"gemm-2.json": (day, whole[0] + whole[1] - day), "gemm.json": whole, "gemm.pftrace": whole}


def drawn(path):
    """(when the chain begins, since the epoch; how long it is), in ns, of a trace in which nothing is wrong; of one trace it has arrows, too."""
    assert problems_of(str(path), strict=True) == []
    with open_trace(str(path)) as trace:
        events = [event for event in trace if event.get("cat") == "critical_path"]
    assert {event["ph"] for event in events} in ([{"X", "s", "f"}] if path.stem == "one" else [{"X"}, {"X", "s", "f"}])
    slices = [event for event in events if event["ph"] == "X"]
    return min(event["ts"] for event in slices) + trace.base_ns, sum(event["dur"] for event in slices)


@pytest.mark.long
def test_what_cannot_be_drawn(tmp_path):
    path = one_kernel().write(tmp_path / "planned.json")
    (tmp_path / "file").write_text("")
    one_kernel().write(tmp_path / "other.json")
    whole = (ROOT / "tests/samples/0.1.0/gemm.pftrace").read_bytes()
    (tmp_path / "cut.pftrace").write_bytes(whole[: len(whole) - 7])
    in_vain = ([path, path], [tmp_path / "other.json", path, tmp_path / "file"], [path, tmp_path / "no/x.json"], [tmp_path / "cut.pftrace", "x"])
    for args in ([*traces, "-o", output] for *traces, output in in_vain):
        said = command(*args, status=2, cwd=tmp_path).stderr
        assert said.startswith("xstrace-path: ") and said.count("\n") == 1 + ("was cut" in said)
    said = command(path, "-o", tmp_path / "x.json", status=2, preexec_fn=limited(resource.RLIMIT_FSIZE, 1000)).stderr
    assert "x.json: File too large" in said and not (tmp_path / "x.json").exists()
    assert path.read_text() == one_kernel().text()
    # what is no file is not replaced by one
    read, write = os.pipe()
    subprocess.run([sys.executable, COMMAND, path, "-o", f"/dev/fd/{write}"], pass_fds=[write], check=True, capture_output=True)
    os.close(write)
    with open(read, "rb") as pipe:
        assert json.load(pipe)["traceEvents"][0]["args"]["name"] == "Critical path"


# ---- what does not fit ----


def test_arrows_that_do_not_fit(tmp_path):
    """Dangling, backward and circular arrows, overlaps, times in no order: a chain as long as the run, and a line."""
    run = one_kernel()
    main, queue, other = (100, 100), (DEVICE, DEVICE), run.thread("other", 300, process="HOST<h> other")
    run.slice(other, 2000, 2000, "MPI_Send")
    run.slice(other, 2000, 2000, "MPI_Recv")
    run.slice(main, 2000, 2000, "MPI_Recv")
    run.slice(main, 2000, 2000, "MPI_Send")
    run.arrow("message", other, 2000, main, 2000, "mpi")
    run.arrow("message", main, 2000, other, 2000, "mpi")
    run.arrow("dep", main, 9800, queue, 3000)
    run.arrow("wait", queue, 9000, None, 0)
    run.arrow("dep", None, 0, queue, 3000)
    run.slice(other, 3000, 5000, "app::a")
    run.slice(other, 4000, 6000, "app::b")
    told = path_of(run, tmp_path, "kernel gemm x0.5")
    assert told["length_ns"] == 10000 and told["reproduced"]
    assert {key: told["graph"][key] for key in ("late", "circular", "overlaps")} == {"late": 1, "circular": 0, "overlaps": 1}
    out = command(tmp_path / "planned.json").stdout
    assert "1 arrows arrive before they leave" in out and "1 slices overlap" in out


def test_a_circle(tmp_path):
    """Moments that are the same to the clock, and each behind the other."""
    run = Planned()
    threads = [run.thread("main", pid) for pid in (100, 200, 300)]
    for thread in threads:
        run.slice(thread, 0, 1000, "app::a")
        run.slice(thread, 1000, 1000, "MPI_Send")
        run.slice(thread, 1000, 2000, "app::b")
    for n, thread in enumerate(threads):
        run.arrow("continuation_of", thread, 1000, threads[(n + 1) % 3], 1000, "relation")
        run.arrow("message", thread, 1000, threads[(n + 1) % 3], 1000, "mpi")
    told = path_of(run, tmp_path, "task b x0.5", "message x0")
    assert told["length_ns"] == 2000 and lengths(told)[0] == 1500 and told["reproduced"] and told["graph"]["circular"] == 2


@pytest.mark.long
def test_files_that_are_none(tmp_path):
    text = one_kernel().text()
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "none.json").write_text('{"traceEvents":[]}')
    (tmp_path / "text.json").write_text("hello\x1b[31m")
    (tmp_path / "marks.json").write_text('{"traceEvents":[{"ph":"i","ts":1,"pid":1,"tid":1,"name":"x","s":"t"}]}')
    for name in ("empty.json", "none.json", "text.json", "marks.json", "missing.json"):
        said = command(tmp_path / name, status=2).stderr
        assert said.startswith("xstrace-path: ") and "\x1b" not in said, said
    dice = random.Random(3)
    for _ in range(6):
        (tmp_path / "cut.json").write_text(text[: dice.randrange(900, len(text))])
        result = subprocess.run([sys.executable, COMMAND, "--json", tmp_path / "cut.json"], capture_output=True, text=True, timeout=60)
        assert result.returncode in (0, 2) and "Traceback" not in result.stderr
        if result.returncode == 0:
            check(json.loads(result.stdout))


def test_names_that_want_the_terminal(tmp_path):
    run = Planned()
    main = run.thread("main\x1b[2J", process="HOST<h> \x1b]0;title\x07")
    for n, name in enumerate(("\x1b[31mred", "a\nb", "x" * 100_000, "<b>'\"; drop table slices", "", "\u202egnp")):
        run.slice(main, 1000 * n, 1000 * n + 1000, name)
    told = path_of(run, tmp_path, "a\nb x0", "<b>'\"; drop table slices x0.5")
    assert lengths(told)[:2] == [5000, 5500] and len(told["names"]) == 6
    out = command(tmp_path / "planned.json").stdout
    assert "\x1b" not in out and "\u202e" not in out and max(map(len, out.splitlines())) < 200


def test_the_core_believes_nothing():
    """xstrace-replay with anything on its stdin: one line, and no crash."""
    dice = random.Random(5)
    head = struct.pack("<10Q", 0x3161506572727378, 2, 2, 2, 1, 1, 2, 1, 2, 4)
    rest = struct.pack("<4q4I2B2I2B", 0, 500, 1000, 900, 0, 1, 1, 1, 1, 2, 0, 1, 0, 1)
    rest += struct.pack("<2IqB", 0, 1, 100, 0) + struct.pack("<4I2B", 0, 0, 0, 1, 1, 2) + struct.pack("<d2Q2H", 0.5, 0, 1, 0, 65535)
    good = subprocess.run([REPLAY], input=head + rest, capture_output=True, timeout=20)
    assert good.returncode == 0 and len(good.stdout) > 100, good.stderr
    beyond = rest[:-12] + struct.pack("<Q", 2) + rest[-4:]  # a scenario of a rule that there is not
    assert subprocess.run([REPLAY], input=head + beyond, capture_output=True, timeout=20).returncode == 1
    for n in range(150):
        data = bytearray(head + rest)
        for _ in range(dice.randrange(1, 5)):
            at = dice.randrange(8 if n % 2 else 80, len(data))
            data[at] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        if n % 5 == 0:
            data = data[: dice.randrange(len(data))]
        result = subprocess.run([REPLAY], input=bytes(data), capture_output=True, timeout=20)
        assert result.returncode in (0, 1), (n, result.returncode)
        assert result.returncode == 0 or result.stderr.startswith(b"xstrace-replay: ")


def test_help_and_a_missing_core(tmp_path):
    out = command("--help").stdout
    assert "xstrace-path all.json --what-if" in out and "launch latency" in out
    path = one_kernel().write(tmp_path / "planned.json")
    json.loads(command(path, "--json", "--what-if", "gemm x0").stdout)
    assert "takes a number" in command(path, "--top", 0, status=2).stderr
    assert "takes bytes" in command(path, "--memory-limit", "x", status=2).stderr


# ---- real programs ----


def test_gemm(xstrace):
    """The demo on PoCL: all kernels are on the chain, and all adds up."""
    run = xstrace(ALL, "gemm", [128, 4])
    told = critical_path(str(run.trace.path), ["kernel multiply x0.5", "* x1"])
    check(told)
    kernels = sum(s.end - s.start for s in run.trace.device if s.base == "multiply")
    on_chain = shares(told)["kernel", "multiply"]
    assert 0.5 * kernels < on_chain <= kernels
    assert lengths(told)[1] == told["length_ns"]
    assert 0 < told["length_ns"] - lengths(told)[0] <= on_chain / 2 + 2
    command(run.trace.path, "-o", xstrace.cwd / "drawn.json")
    assert check_trace(xstrace.cwd / "drawn.json", strict=True) == []
    (xstrace.cwd / "drawn.json").unlink()


def first_of_all():
    """A preexec_fn: where it may, the program runs before what else the machine does, whose time is none of its own."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def at_once():
    """The same for a program that mostly sleeps: it goes on when its time has come, and not when another one's slice has ended."""
    if os.cpu_count() == 1:  # a rank that waits does not let others come
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class Changed:
    """A run with changes foretold, and runs that really have them.

    On a busy machine the shortest of several counts, and what is waited for takes so long that a late return from it is little.
    """

    def __init__(self, measure, before, changes, after):
        """measure(args, changes): lengths. before: args; after: a list of args, one for each change."""
        foretold, true = [], []
        for _ in range(ROUNDS):
            foretold.append(measure(before, changes))
            true.append([measure(args, [])[-1] for args in after])
            self.pairs = list(zip(map(min, zip(*foretold)), map(min, zip(*true))))
            if all(abs(told - length) < 0.1 * length for told, length in self.pairs):
                return
        raise AssertionError(self.pairs)


ROUNDS = 8


@pytest.mark.skipif(not DRIVER.exists() or not (APPS / "ze_steps").exists(), reason="no Level Zero headers, or no ittnotify")
def test_foretold_and_really_changed(xstrace, tmp_path):
    """Level Zero, software GPU: kernels and host tasks that really take half, or a tenth."""

    def measure(args, changes):
        run = xstrace(ALL, "ze_steps", args, env=SoftGPU(tmp_path).env, preexec_fn=at_once)
        told = critical_path(str(run.trace.path), ["* x1", *changes])
        check(told)
        return lengths(told)[1 : len(changes) + 1] or lengths(told)

    changes = ["kernel nap x0.5", "task * x0.5", "kernel nap x0.1"]
    Changed(measure, (6, 12000, 20000, 2), changes, [(6, 12000, 10000, 2), (6, 6000, 20000, 2), (6, 12000, 2000, 2)])


@needs_mpi
def test_ranks_foretold_and_really_changed(xstrace, tmp_path):
    """Ranks of MPICH that wait for the slowest one, whose work really takes half."""
    if not (APPS / "libittnotify.a").exists():
        pytest.skip("no ittnotify")
    program = tmp_path / "mpi_steps"
    itt = ["-I", ROOT / ".deps/ittapi/include", APPS / "libittnotify.a", "-ldl", "-pthread"]
    subprocess.run([MPICC, "-O1", "-Wall", "-o", program, ROOT / "tests/apps/mpi_steps.c", *itt], check=True)
    # how long the job takes to begin and to end has nothing to do with its steps
    around = ["MPI_Init x0", "MPI_Finalize x0"]

    def measure(us, changes):
        job = Ranks(xstrace, f"{MPI} --chrome-itt-logging", program, [xstrace.cwd, 6, us, 1000], ranks=2, preexec_fn=at_once)
        merge("-o", "all.json", *(t.path for t in job.traces.values()), cwd=tmp_path)
        told = critical_path(str(tmp_path / "all.json"), [*around, *changes])
        check(told)
        (tmp_path / "all.json").unlink()
        assert max(told["waits"], key=lambda wait: wait["ns"])["whom"].startswith("RANK 1")
        return lengths(told)[-1:]

    Changed(measure, 24000, ["task compute x0.5"], [12000])


@needs_clang
def test_openmp_foretold_and_really_changed(xstrace, tmp_path):
    """A loop that really has twice as many iterations, or half: the region is as long as its slower thread, not as both."""
    program = tmp_path / "omp_steps"
    subprocess.run(["clang", "-O1", "-Wall", "-fopenmp", "-D_GNU_SOURCE", "-o", program, ROOT / "tests/apps/omp_steps.c"], check=True)

    def measure(args, changes):
        # threads that spin until the next region are in each other's way where processors are few
        run = xstrace("--chrome-openmp-logging", program, args, env={"OMP_WAIT_POLICY": "passive"}, preexec_fn=at_once)
        told = critical_path(str(run.trace.path), ["* x1", *changes])
        check(told)
        return lengths(told)[1 : len(changes) + 1] or lengths(told)

    Changed(measure, (5, 8, 10000), ["task loop* x2", "task loop* x0.5"], [(5, 16, 10000), (5, 4, 10000)])


@needs_clients
def test_pytorch_foretold_and_really_changed(xstrace):
    """A batch that really is twice as large, or half: one operation takes so much more or less, the rest what it took."""
    need("torch")
    signal.alarm(550)

    def measure(rows, changes):
        run = xstrace("--chrome-itt-logging", CLIENTS, [PROGRAMS / "torch_steps.py", 20, rows], timeout=120, preexec_fn=first_of_all)
        told = critical_path(str(run.trace.path), ["* x1", *changes])
        check(told)
        return lengths(told)[1 : len(changes) + 1] or lengths(told)

    Changed(measure, 512, ["task mm x2", "task mm x0.5"], [1024, 256])


@pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")
@pytest.mark.parametrize("options", ["--chrome-kernel-logging", "--format kineto"])
def test_cuda(xstrace, tmp_path, options):
    """Kineto's format does not say what a call waited for: the chain goes through the device all the same."""
    run = xstrace(options, "cuda_streams", ["--streams", 2, "--kernels", 8], env=SoftCUDA(tmp_path).env)
    told = critical_path(str(run.trace.path))
    check(told)
    assert told["kinds"].get("kernel", 0) > 0 and told["graph"]["late"] == 0
