"""CUDA: the software CUDA, whose log is the truth that every trace and report is compared with."""

import collections
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import APPS, BUILD, ROOT, XSTRACE, compile_c, root_only, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")

KERNELS = "--chrome-kernel-logging"
DEVICE = "--chrome-device-logging"
# record sizes differ; from 130300 on each subscriber has calls of its own
VERSIONS = [12, 18, 28, 130000, 130300, 130500]
COPIES = {1: "memcpy HtoD", 2: "memcpy DtoH", 8: "memcpy DtoD", 9: "memcpy HtoH", 10: "memcpy PtoP"}


def plain(name):
    """A slice's name without kinds of memory and sizes."""
    return re.split(r"[\[(]", name)[0]


def shown(trace):
    return collections.Counter((plain(one.name), one.args["correlation"]) for one in trace.device)


def executed(cuda):
    """The same of the log."""
    rows = collections.Counter()
    for c in cuda.commands:
        if c.kind == "kernel":
            rows[c.name, c.correlation] += 1
        elif c.kind in ("copy", "peer"):
            rows["memcpy PtoP" if c.kind == "peer" else COPIES[c.copy], c.correlation] += 1
        elif c.kind == "set":
            rows["memset", c.correlation] += 1
    return rows


def other(run):
    (trace,) = run.traces
    return trace.other


def told(run):
    """What the trace says is missing."""
    data = other(run)
    return data["lost"] + data.get("open_commands", 0) + data.get("untimed_commands", 0)


def cuda_of(tmp_path, version=130500, **settings):
    return SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version, **settings)


# ---- what is shown ----


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", [KERNELS, DEVICE, f"{KERNELS} --chrome-call-logging"])
def test_all_that_was_executed_is_shown(xstrace, tmp_path, options, version):
    cuda = cuda_of(tmp_path, version, DEVICES=2)
    run = xstrace(options, "cuda_streams", ["--kernels", 50], env=cuda.env)
    assert run.status == 0, run.err
    assert shown(run.trace) == executed(cuda)
    assert told(run) == 0 and other(run)["cupti_version"] == version


def test_times_are_the_devices(xstrace, tmp_path):
    cuda = cuda_of(tmp_path, DURATION_NS="_Z9incrementPii=100000")
    run = xstrace(KERNELS, "cuda_streams", ["--kernels", 20], env=cuda.env)
    truth = {c.correlation: c.end - c.start for c in cuda.kernels}
    kernels = [one for one in run.trace.device if plain(one.name) == "_Z9incrementPii"]
    assert len(kernels) == len(truth) == 40
    for one in kernels:
        assert abs((one.end - one.start) - truth[one.args["correlation"]]) <= 1


def test_an_arrow_leads_from_each_call(xstrace, tmp_path):
    cuda = cuda_of(tmp_path)
    run = xstrace(KERNELS, "cuda_streams", ["--kernels", 20], env=cuda.env)
    events = json.loads(run.trace_files[0].read_text())["traceEvents"]
    calls = {
        (e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X" and e.get("cat") == "cpu_op"
    }
    device = {
        (e["pid"], e["tid"], e["ts"]): e["name"]
        for e in events
        if e["ph"] == "X" and e.get("cat") == "gpu_op"
    }
    flows = collections.defaultdict(dict)
    for e in events:
        if e.get("cat") == "flow" and e["name"] == "dep":
            flows[e["id"]][e["ph"]] = e
    assert len(flows) == len(cuda.kernels) + len(cuda.copies) + len(cuda.fills)
    for ends in flows.values():
        call = calls[ends["s"]["tid"], ends["s"]["ts"]]
        work = device[ends["f"]["pid"], ends["f"]["tid"], ends["f"]["ts"]]
        kinds = {"_Z9": "cudaLaunchKernel", "mem": "cudaMem"}
        assert call.startswith(kinds[work[:3]]), (call, work)


def test_what_a_kernel_is_made_of(xstrace, tmp_path):
    cuda = cuda_of(tmp_path)
    run = xstrace(KERNELS, "cuda_streams", env=cuda.env)
    kernel = next(one for one in run.trace.device if one.name.startswith("_Z9"))
    truth = cuda.kernels[0]
    grid = [int(x) for x in re.findall(r"\d+", truth.grid)]
    block = [int(x) for x in re.findall(r"\d+", truth.block)]
    assert kernel.args["local"] == block
    assert kernel.args["global"] == [a * b for a, b in zip(grid, block)]
    assert (kernel.args["registers"], kernel.args["static_shared"]) == (16, 128)
    assert kernel.args["local_per_thread"] == 8
    copy = next(one for one in run.trace.device if "HtoD" in one.name)
    assert copy.args["bytes"] == 4096 and "(M2D)" in copy.name


def test_demangled(xstrace, tmp_path):
    run = xstrace(f"{KERNELS} --demangle", "cuda_streams", env=cuda_of(tmp_path).env)
    assert any(one.name.startswith("increment(int*, int)") for one in run.trace.device)


@pytest.mark.parametrize("which, count", [("--include-kernels incr", 10), ("--exclude-kernels incr", 0)])
def test_kernels_by_name(xstrace, tmp_path, which, count):
    run = xstrace(f"{KERNELS} {which}", "cuda_streams", env=cuda_of(tmp_path).env)
    assert sum(one.name.startswith("_Z9") for one in run.trace.device) == count


@pytest.mark.parametrize("which, count", [("include", 10), ("exclude", 0)])
def test_kernels_by_names_in_a_file(xstrace, tmp_path, which, count):
    (tmp_path / "names").write_text("no_such_kernel\nincr\n")
    options = f"{KERNELS} --{which}-kernels-file {tmp_path / 'names'}"
    run = xstrace(options, "cuda_streams", env=cuda_of(tmp_path).env)
    assert sum(one.name.startswith("_Z9") for one in run.trace.device) == count


def test_reports(xstrace, tmp_path):
    cuda = cuda_of(tmp_path, SYNC=1)
    run = xstrace("-h -d -s -t", "cuda_loop", [500], env=cuda.env)
    assert run.status == 0
    assert re.search(r"^ *cudaLaunchKernel, +500,", run.err, re.M)
    assert re.search(r"^ *empty, +500,", run.err, re.M)
    assert len(re.findall(r"empty.*\(start\)", run.err)) == 500


def test_synchronisation_and_memory(xstrace, tmp_path):
    run = xstrace(KERNELS, "cuda_streams", env=cuda_of(tmp_path).env)
    events = json.loads(run.trace_files[0].read_text())["traceEvents"]
    waits = [e["args"] for e in events if e.get("name") == "waits for a stream"]
    assert len(waits) == 2 and all(w["stream"][0] and w["correlation"][0] for w in waits)
    used = [e["args"]["value"] for e in events if e.get("name") == "CUDA device memory"]
    assert max(used) == 4096 and used[-1] == 0
    assert any(e.get("name") == "flush of CUPTI's buffers" for e in events)


# ---- faults ----


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    "fault",
    [{"LATE_MS": 20}, {"OUT_OF_ORDER": 3}, {"CUT_EVERY": 2}],
    ids=lambda fault: next(iter(fault)),
)
@pytest.mark.parametrize("version", [18, 130500])
def test_misbehaviour_loses_nothing(xstrace, tmp_path, fault, version):
    cuda = cuda_of(tmp_path, version, **fault)
    run = xstrace(KERNELS, "cuda_streams", ["--kernels", 200], env=cuda.env)
    assert run.status == 0
    assert shown(run.trace) == executed(cuda) and told(run) == 0


def test_dropped_is_told(xstrace, tmp_path):
    """Of any kind: what CUPTI had no room for is among the lost."""
    cuda = cuda_of(tmp_path, DROP_EVERY=7)
    run = xstrace(DEVICE, "cuda_streams", ["--kernels", 50], env=cuda.env)
    kernels = sum(one.name.startswith("_Z9") for one in run.trace.device)
    assert 0 < len(cuda.notes) == told(run)
    assert kernels < len(cuda.kernels) <= kernels + told(run)


@pytest.mark.parametrize(
    "function, result",
    [
        ("cuptiActivityEnable", 35),
        ("cuptiSubscribe", 39),
        ("cuptiActivityEnable", 15),
        ("cuptiGetVersion", 999),
        ("cuptiActivityRegisterCallbacks", 1),
    ],
)
def test_off_with_a_reason(xstrace, tmp_path, function, result):
    """The program runs as ever; one line under -v says why, and so does the trace."""
    cuda = cuda_of(tmp_path, 28, FAULT=f"{function}:{result}")
    run = xstrace(f"{KERNELS} -v", "cuda_streams", env=cuda.env)
    assert run.status == 0 and len(cuda.kernels) == 10
    lines = [line for line in run.said if "CUDA is not traced" in line]
    assert len(lines) == 1 and f"answers {result}" in lines[0]


def test_off_says_nothing_unasked(xstrace, tmp_path):
    cuda = cuda_of(tmp_path, 28, FAULT="cuptiSubscribe:39")
    run = xstrace(KERNELS, "cuda_streams", env=cuda.env)
    assert run.status == 0 and not any("CUDA" in line for line in run.said)


# ---- ends ----


@pytest.mark.parametrize("end, status", [("return", 0), ("_exit", 0), ("abort", -6)])
def test_complete_however_it_ends(xstrace, tmp_path, end, status):
    cuda = cuda_of(tmp_path)
    run = xstrace(KERNELS, "cuda_streams", ["--end", end], env=cuda.env)
    assert run.status == status
    if end == "return":
        assert shown(run.trace) == executed(cuda)
    else:  # CUPTI had no time to tell when it ran
        assert sum(shown(run.trace).values()) + run.trace.other.get("untimed_commands", 0) == sum(executed(cuda).values())


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("options", [KERNELS, DEVICE])
@pytest.mark.parametrize("version", [18, 130500])
def test_killed_at_random_moments(xstrace, tmp_path, options, version):
    """Every kernel that the log holds is shown, or told."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    choose = random.Random(seed)
    for _ in range(2):
        cuda = cuda_of(tmp_path, version)
        cuda.path.unlink(missing_ok=True)
        run = xstrace.start(options, "cuda_loop", [10_000_000, 100], env=cuda.env)
        deadline = time.monotonic() + 30
        while not (cuda.path.exists() and cuda.path.stat().st_size > 5000):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(choose.random() / 5)
        os.kill(run.child("cuda_loop"), signal.SIGKILL)
        run.wait(60)
        run.collect()
        trace = run.traces[-1]
        kernels = sum(one.name.startswith("empty") for one in trace.device)
        missing = trace.other.get("open_commands", 0) + trace.other.get("untimed_commands", 0)
        # the last one may be in the log or in CUPTI's buffer and not yet in the other
        assert len(cuda.kernels) - 1 <= kernels + missing
        assert kernels <= len(cuda.kernels)


def test_killed_before_a_buffer_is_full(xstrace, tmp_path):
    """CUPTI fills in times when it is asked, which it is ten times a second."""
    cuda = cuda_of(tmp_path, DURATION_NS="*=2000000")
    run = xstrace.start(KERNELS, "cuda_loop", [10_000_000, 10], env=cuda.env)
    app = run.child("cuda_loop")
    wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > 50_000)
    os.kill(app, signal.SIGKILL)
    run.wait(60)
    run.collect()
    assert len(run.trace.device) > 200 and told(run) < 200


@pytest.mark.parametrize("how", ["return", "_exit", "kill"])
def test_left_on_its_way(xstrace, tmp_path, how):
    """Copies, fills and graphs that have not run are told as kernels are: each call is a command. A copy of nothing is none."""
    run = xstrace(KERNELS, "cuda_left", [how], env=cuda_of(tmp_path).env, timeout=60)
    assert run.out == "left\n"
    # of the graph's first launch; a flush comes after some time
    untimed = run.trace.other.get("untimed_commands", 0)
    assert len(run.trace.device) + untimed == 2 and (how != "return" or not untimed)
    assert run.trace.other["open_commands"] == 6 and told(run) == 6 + untimed


# ---- pauses ----


def test_nothing_while_paused(xstrace, tmp_path):
    cuda = cuda_of(tmp_path)
    run = xstrace(f"{KERNELS} --start-paused", "cuda_streams", env=cuda.env)
    assert run.status == 0 and len(cuda.kernels) == 10
    assert not run.traces or not run.trace.device


@pytest.mark.parametrize(
    "options, mode, expected",
    [
        ("--start-paused", "env", 20),
        ("--iterations step:3-4", "steps", 7),
        ("--delay 500ms", "wait", 20),
        ("--duration 500ms", "wait", 10),
    ],
)
def test_what_is_recorded(xstrace, tmp_path, options, mode, expected):
    """The kernels that were launched then, and no others, however recording is switched."""
    run = xstrace(f"{KERNELS} --chrome-itt-logging {options}", "cuda_switched", [mode], env=cuda_of(tmp_path).env)
    assert run.status == 0 and len(run.trace.device) == expected
    assert sum(one.name == "cudaLaunchKernel" for one in run.trace.calls) == expected


def test_paused_within_a_wait(xstrace, tmp_path):
    """The wait's slice ends at the pause: no arrow leads to its end."""
    run = xstrace(f"{KERNELS} --start-paused", "cuda_switched", ["within"], env=SoftCUDA(tmp_path).env)
    (cut,) = [call for call in run.trace.calls if call.unfinished]
    assert cut.name == "cudaStreamSynchronize"
    done = subprocess.run([ROOT / "scripts/xstrace-check", run.trace.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_overwritten(xstrace, tmp_path):
    """Rings are read at the end, CUPTI's buffers are not: their times lie behind all that the rings have said."""
    cuda = SoftCUDA(tmp_path, SYNC=1)
    del cuda.env["SOFTCUDA_LOG"]
    run = xstrace(f"{KERNELS} --on-full overwrite", "cuda_loop", [100000], env=cuda.env)
    assert "impossible_times" not in run.trace.other and len(run.trace.device) == 100000


@pytest.mark.long
def test_a_session_that_is_paused(xstrace, tmp_path):
    """What is called meanwhile is not shown, and what was called before and after is."""
    name = f"cuda{os.getpid()}"
    cuda = cuda_of(tmp_path)
    run = xstrace.start(f"{KERNELS} --session {name}", "cuda_loop", [100_000_000, 100], env=cuda.env)
    app = run.child("cuda_loop")
    for command in ("", "--pause", "--resume"):
        if command:
            assert xstrace.bare(XSTRACE, [command, name]).status == 0
        size = cuda.path.stat().st_size if cuda.path.exists() else 0
        wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > size + 100_000)
        time.sleep(0.3)  # what is executed is told ten times a second
    os.kill(app, signal.SIGKILL)
    run.wait(60)
    run.collect()
    trace = run.trace
    calls = sum(one.name == "cudaLaunchKernel" for one in trace.calls)
    missing = trace.other.get("open_commands", 0) + trace.other.get("untimed_commands", 0)
    assert 0 <= calls - len(trace.device) <= missing + 2
    assert 100 < len(trace.device) < len(cuda.kernels) - 100


@pytest.mark.long
def test_a_drain_process_that_is_killed(xstrace, tmp_path):
    """--recover: each kernel is shown once, those of buffers that were read before as well as later ones."""
    cuda = cuda_of(tmp_path)
    run = xstrace.start(KERNELS, "cuda_loop", [60_000], env=cuda.env)
    wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > 1_000_000)
    directory = run.dir
    os.kill(run.drain, signal.SIGKILL)
    run.wait(60)
    recovered = xstrace.bare(XSTRACE, ["--recover", directory], cwd=run.cwd)
    assert recovered.status == 0, recovered.err
    (path,) = run.cwd.glob("cuda_loop*.json")
    events = json.loads(path.read_text())["traceEvents"]
    kernels = collections.Counter(
        e["args"]["correlation"] for e in events if e.get("cat") == "gpu_op"
    )
    assert kernels == collections.Counter(c.correlation for c in cuda.kernels)


# ---- the way in ----


USERS = """
#include <stdio.h>
int InitializeInjection(void)
{
	puts("user's own");
	return 1;
}
"""


def test_a_library_of_the_users_own(xstrace, tmp_path):
    library = compile_c(tmp_path / "users.so", USERS, "-shared", "-fPIC")
    cuda = cuda_of(tmp_path)
    run = xstrace(KERNELS, "cuda_streams", env=cuda.env | {"CUDA_INJECTION64_PATH": str(library)})
    assert run.status == 0 and run.out.startswith("user's own\n")
    assert shown(run.trace) == executed(cuda)


def test_two_subscribers(xstrace, tmp_path):
    """Another profiler has the one place of an old CUPTI: we stay off. Of a newer one both have their records."""
    for version, on in ((28, False), (130500, True)):
        cuda = cuda_of(tmp_path, version)
        cuda.path.unlink(missing_ok=True)
        collector = BUILD / f"tests/softcuda/{cuda.libraries.name}/softcuda_collector.so"
        log = tmp_path / f"collector.{version}"
        env = cuda.env | {
            "CUDA_INJECTION64_PATH": str(collector),
            "COLLECTOR_LOG": str(log),
            "COLLECTOR_CALLS": "1",
        }
        if on:
            env["COLLECTOR_SUBSCRIBER"] = "1"
        run = xstrace(f"{KERNELS} -v", "cuda_streams", env=env)
        assert run.status == 0
        assert sum(row.startswith("kernel\t") for row in log.read_text().splitlines()) == 10
        assert any("another profiler" in line for line in run.said) != on
        if on:
            assert shown(run.traces[-1]) == executed(cuda)


def test_nothing_in_a_program_without_cuda(xstrace):
    run = xstrace(f"{KERNELS} -v", "/bin/true")
    assert run.status == 0 and not any("CUDA" in line for line in run.said)


# ---- programs of every kind ----

PROGRAMS = [
    ("cuda_driver", []),
    ("cuda_graphs", [3]),
    ("cuda_managed", []),
    ("cuda_reset", []),
    ("cuda_fork", []),
    ("cuda_errors", []),
]


@pytest.mark.parametrize("version", [18, 130500])
@pytest.mark.parametrize("program, args", PROGRAMS, ids=[program for program, _ in PROGRAMS])
def test_every_program(xstrace, tmp_path, program, args, version):
    """Modules of the driver's API, graphs, managed memory, a device that is reset, a child of fork, calls that fail."""
    cuda = cuda_of(tmp_path, version, DEVICES=2)
    bare = xstrace.bare(program, args, env=cuda.env)
    cuda.path.unlink(missing_ok=True)
    run = xstrace(KERNELS, program, args, env=cuda.env)
    assert run.status == bare.status
    pids = re.compile(r"process: \d+")
    assert pids.sub("", run.out) == pids.sub("", bare.out)
    rows = collections.Counter()
    for trace in run.traces:
        rows.update(shown(trace))
    assert rows == executed(cuda)
    if program != "cuda_fork":
        assert told(run) == 0


@pytest.mark.parametrize("options", [KERNELS, DEVICE, f"{KERNELS} --chrome-call-logging"])
def test_a_child_of_a_process_that_has_used_cuda(xstrace, tmp_path, options):
    """CUDA refuses to work there; what the child tries is in its own trace, and the parent's work is complete."""
    cuda = cuda_of(tmp_path)
    bare = xstrace.bare("cuda_fork", ["after"], env=cuda.env)
    cuda.path.unlink()
    run = xstrace(options, "cuda_fork", ["after"], env=cuda.env)
    assert run.status == bare.status == 0
    traces = {trace.metadata["pid"]: trace for trace in run.traces}
    parent = {c.pid for c in cuda.commands}
    assert len(parent) == 1 and len(cuda.kernels) == 40
    for pid, trace in traces.items():
        assert shown(trace) == (executed(cuda) if pid in parent else collections.Counter())
        assert trace.other["lost"] + trace.other.get("open_commands", 0) == 0
    if "call" in options:
        (tried,) = [call for pid in traces.keys() - parent for call in traces[pid].calls if "aunch" in call.name]
        assert tried.args["result"] != 0


def test_a_child_does_not_have_cuptis_buffers(xstrace, tmp_path):
    """Records there point to names, which the parent reads: a child that has dropped its rights could have it read anything into the names' table."""
    run = xstrace(KERNELS, "cuda_fork", ["maps"], env=cuda_of(tmp_path).env)
    files = {Path(line.split()[5]).name for line in run.out.splitlines() if "/xstrace-" in line}
    assert run.status == 0 and "strings" in files and not [name for name in files if name.startswith("c") and name != "control"]
    assert len(run.trace.device) == 40


@root_only
@pytest.mark.parametrize("offset", [1, -20, 1000000])
@pytest.mark.parametrize("version", [12, 130500])
def test_times_in_a_time_namespace(xstrace, tmp_path, offset, version):
    """CUPTI stamps by the namespace's CLOCK_MONOTONIC: kernels lie between the calls that made them and waited for them."""
    enter = ["-T", "--monotonic", offset, "--boottime", offset]
    if subprocess.run(["unshare", *map(str, enter), "true"], capture_output=True).returncode:
        pytest.skip("not allowed here, or the machine has just been started")
    run = xstrace(f"{KERNELS} --chrome-call-logging", "unshare", [*enter, APPS / "cuda_streams"], env=cuda_of(tmp_path, version).env)
    (trace,) = (trace for trace in run.traces if trace.device)
    begin, end = min(call.start for call in trace.calls), max(call.end for call in trace.calls)
    assert all(begin <= one.start <= one.end <= end for one in trace.device) and "impossible_times" not in trace.other


def test_a_graphs_nodes(xstrace, tmp_path):
    """Each node's work has the graph's and the node's number, and an arrow from the launch."""
    cuda = cuda_of(tmp_path)
    run = xstrace(KERNELS, "cuda_graphs", [3], env=cuda.env)
    truth = collections.Counter((c.graph, c.node) for c in cuda.kernels)
    assert any(graph for graph, _ in truth)
    kernels = [one for one in run.trace.device if "registers" in one.args]
    found = collections.Counter(
        (one.args.get("graph", 0), one.args.get("graph_node", 0)) for one in kernels
    )
    assert found == truth
    # those of a child graph and of a loop's body, too; what a stream captures is no launch
    names = collections.Counter(plain(one.name) for one in kernels)
    assert names == collections.Counter(c.name for c in cuda.kernels) and len(names) == 2
    assert told(run) == 0


def test_calls_that_fail(xstrace, tmp_path):
    cuda = cuda_of(tmp_path, FAULT="cudaMalloc:1:2")
    run = xstrace("--chrome-call-logging", "cuda_streams", env=cuda.env)
    (call,) = [one for one in run.trace.calls if one.name == "cudaMalloc"]
    assert (call.args["result"], call.args["returned"]) == (2, "cudaErrorMemoryAllocation (2)")


def test_calls_of_the_driver_that_fail(xstrace, tmp_path):
    """Its errors have names of their own."""
    cuda = cuda_of(tmp_path, FAULT="cuMemAlloc_v2:1:2")
    run = xstrace("--chrome-call-logging -c", "cuda_driver", env=cuda.env)
    failed = [one for one in run.trace.calls if "result" in one.args]
    assert [one.args["returned"] for one in failed] == ["CUDA_ERROR_OUT_OF_MEMORY (2)"]
    assert failed[0].name.startswith("cuMemAlloc")
    assert "-> CUDA_ERROR_OUT_OF_MEMORY (2)" in run.err


def test_arguments(xstrace, tmp_path):
    run = xstrace("-c", "cuda_streams", env=cuda_of(tmp_path).env)
    assert re.search(r">>>> .* cudaMalloc: devPtr = 0x\w+ size = 4096\n", run.err)
    assert re.search(r"<<<< .* cudaMalloc \[\d+ ns\] .*0x\w+.* -> cudaSuccess \(0\)", run.err)
    launch = re.search(r">>>> .* cudaLaunchKernel: (.*)", run.err)[1]
    assert re.search(r"gridDim = \{ *x = 4", launch) or "x = 4" in launch, launch
    assert "kind = cudaMemcpyHostToDevice" in run.err


def test_an_argument_of_a_call_that_fails(xstrace, tmp_path):
    cuda = cuda_of(tmp_path, FAULT="cudaMalloc:1:2")
    run = xstrace("-c", "cuda_streams", env=cuda.env)
    assert "-> cudaErrorMemoryAllocation (2)" in run.err


@pytest.mark.parametrize("wanted, there", [("0", {0}), ("1", {1})])
def test_devices_to_sample(xstrace, tmp_path, wanted, there):
    cuda = cuda_of(tmp_path, DEVICES=2)
    first = xstrace.bare(BUILD / "launcher/xstrace", ["--device-list"], env=cuda.env).out
    numbers = [int(n) for n in re.findall(r"Device #(\d+): Software GPU", first)]
    run = xstrace(
        f"{KERNELS} --devices-to-sample {numbers[int(wanted)]}",
        "cuda_streams",
        ["--devices", 2],
        env=cuda.env,
    )
    devices = {c.device for c in cuda.kernels}
    kernels = sum(one.name.startswith("_Z9") for one in run.trace.device) if run.traces else 0
    assert kernels == sum(c.device in there for c in cuda.kernels)
    assert devices


def test_the_device_list_has_one_entry_for_all_apis(xstrace, tmp_path):
    text = xstrace.bare(BUILD / "launcher/xstrace", ["--device-list"], env=cuda_of(tmp_path).env).out
    assert text.count("CUDA (device 0)") == 1 and "PCI address: 0000:41:00.0" in text


# ---- libcupti as NVIDIA ships it, without a driver ----

REAL = sorted(ROOT.glob(".venv/lib/python3*/site-packages/nvidia/cu*/lib/libcupti.so.1?"))
REAL += sorted(Path("/usr/local").glob("cuda/lib64/libcupti.so.1?"))
# what the driver does in a program that has one
INJECTED = """
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	int (*initialize)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "InitializeInjection");

	printf("%d\\n", initialize ? initialize() : -1);
	return 0;
}
"""


@pytest.mark.parametrize("library", REAL, ids=str)
def test_the_real_libcupti_without_a_driver(xstrace, tmp_path, library):
    """It answers with an error of one kind or another: CUDA is off, the program as ever."""
    app = compile_c(tmp_path / "injected", INJECTED, "-D_GNU_SOURCE", "-ldl")
    run = xstrace(f"{KERNELS} -v", app, env={"LD_LIBRARY_PATH": str(library.parent)})
    assert (run.status, run.out) == (0, "1\n")
    (line,) = [line for line in run.said if "CUDA is not traced" in line]
    assert re.search(r"answers (15|999)", line)


# ---- NVTX ----


def test_nvtx(xstrace, tmp_path):
    cuda = cuda_of(tmp_path)
    bare = xstrace.bare("cuda_nvtx", env=cuda.env)
    run = xstrace("--chrome-itt-logging", "cuda_nvtx", env=cuda.env)
    assert (run.status, run.out) == (bare.status, bare.out) and run.status == 0
    assert run.trace.tasks
