"""--format kineto: the trace as PyTorch's Kineto writes it (docs/KINETO.md)."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import APPS, BUILD, ROOT, XSTRACE, check_trace, compile_c, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from merging import merge
from others import CLIENTS, need, needs_clients
from ranks import Ranks, mpi_app, needs_mpi, said  # noqa: F401

KINETO = "--format kineto"
CHROME = "--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging"
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
needs_softcuda = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no software CUDA")


def load(run):
    """The only file of a run, as any JSON reader has it: no key may come twice."""

    def once(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), keys
        return dict(pairs)

    assert run.status == 0, run.err
    assert len(run.trace_files) == 1
    return json.loads(run.trace_files[0].read_text(), object_pairs_hook=once)


def slices(data, *categories):
    return [e for e in data["traceEvents"] if e["ph"] == "X" and e["cat"] in categories]


def check_structure(data, pid):
    assert data["schemaVersion"] == 1 and data["displayTimeUnit"] == "ns"
    assert data["baseTimeNanoseconds"] > 1.5e18
    assert data["traceName"] and data["trace_id"]
    devices = {device["id"]: device for device in data["deviceProperties"]}
    named = collections.defaultdict(dict)
    for event in data["traceEvents"]:
        if event["ph"] == "M":
            named[event["pid"]].update({event["name"]: event["args"]})
    assert named[pid]["process_labels"]["labels"] == "CPU"
    for one in slices(data, *DEVICE):
        assert one["pid"] == one["args"]["device"] and one["pid"] in devices
        assert one["args"]["stream"] >= 0
        assert re.fullmatch(rf"(GPU|Device) {one['pid']}", named[one["pid"]]["process_labels"]["labels"])
        assert named[one["pid"]]["process_sort_index"]["sort_index"] == one["pid"] + 5_000_000
        if "bytes" in one["args"]:
            bandwidth = one["args"]["bytes"] / (one["dur"] * 1000) if one["dur"] else 0
            assert one["args"]["memory bandwidth (GB/s)"] == pytest.approx(bandwidth, rel=0.01)


def check_flows(data):
    """Each is a pair, from a launch to the work that has its correlation. Their number."""
    host = {(e["pid"], e["tid"], e["ts"]): e for e in slices(data, "cuda_runtime", "cuda_driver", "xpu_runtime")}
    device = {(e["pid"], e["tid"], e["ts"]): e for e in slices(data, *DEVICE)}
    ends = collections.defaultdict(dict)
    for event in data["traceEvents"]:
        if event.get("cat") == "ac2g":
            assert event["name"] == "ac2g" and event["ph"] not in ends[event["id"]]
            ends[event["id"]][event["ph"]] = event
    for pair in ends.values():
        assert set(pair) == {"s", "f"} and pair["f"]["bp"] == "e"
        launch, work = (there[end["pid"], end["tid"], end["ts"]] for there, end in ((host, pair["s"]), (device, pair["f"])))
        assert launch["args"]["correlation"] == work["args"]["correlation"]
        assert launch["ts"] <= work["ts"]
    return len(ends)


def test_opencl_has_what_chromes_format_has(xstrace):
    plain = xstrace(CHROME, "cl_matrix").trace
    run = xstrace(KINETO, "cl_matrix")
    data = load(run)
    check_structure(data, run.trace.pid)
    calls = slices(data, "xpu_runtime")
    work = slices(data, *DEVICE)
    assert collections.Counter(e["name"] for e in calls) == collections.Counter(s.name for s in plain.calls)
    assert len(work) == len(plain.device) == check_flows(data) > 0
    kernels = slices(data, "kernel")
    assert len(kernels) == sum("global" in s.args for s in plain.device) > 0
    for one in kernels:
        shape = one["args"]
        assert ("grid" in shape and "block" in shape) or "global work size" in shape
    copies = slices(data, "gpu_memcpy")
    assert copies and all(re.match(r"Memcpy .*\(cl\w+\)", e["name"]) for e in copies)
    assert len({e["args"]["correlation"] for e in calls}) == len(calls)


@needs_softcuda
def test_cuda(xstrace, tmp_path):
    # long enough that the program waits for them
    settings = {"CUPTI_VERSION": 130500, "DEVICES": 2, "DURATION_NS": "_Z9incrementPii=100000"}
    cuda = SoftCUDA(tmp_path, 13, **settings)
    run = xstrace(KINETO, "cuda_streams", ["--kernels", 20], env=cuda.env)
    data = load(run)
    check_structure(data, run.trace.pid)
    kernels, copies, fills = (slices(data, kind) for kind in DEVICE)
    assert (len(kernels), len(copies), len(fills)) == (
        len(cuda.kernels),
        len(cuda.copies),
        len(cuda.fills),
    )
    assert check_flows(data) == len(kernels) + len(copies) + len(fills) > 40
    for one in kernels:
        args = one["args"]
        assert args["grid"] == [4, 1, 1] and args["block"] == [256, 1, 1]
        assert args["registers per thread"] == 16 and args["shared memory"] == 128
        assert args["context"] >= 1 and one["tid"] == args["stream"]
    assert {e["name"] for e in kernels} == {"increment(int*, int)"}
    assert {e["name"] for e in copies} <= {f"Memcpy {way}" for way in COPIES}
    assert {e["name"] for e in fills} == {"Memset (Device)"}
    assert {e["name"] for e in slices(data, "cuda_runtime")} >= {"cudaLaunchKernel", "cudaMalloc"}
    assert slices(data, "overhead") and slices(data, "cuda_sync")


COPIES = ["HtoD (Pageable -> Device)", "HtoD (Pinned -> Device)", "DtoH (Device -> Pageable)", "DtoH (Device -> Pinned)", "DtoD (Device -> Device)"]


def test_tasks_are_annotations(xstrace):
    plain = xstrace("--chrome-itt-logging", "itt_tasks", [500, 2]).trace
    data = load(xstrace(f"{KINETO} --chrome-itt-logging", "itt_tasks", [500, 2]))
    tasks = slices(data, "user_annotation")
    assert collections.Counter(e["name"] for e in tasks) == collections.Counter(s.name for s in plain.tasks)


@pytest.mark.parametrize("report", ["-h -o rep.txt", "--openmp-report"])
def test_beside_a_report(xstrace, report):
    """A format asks for a trace, whatever else is asked for."""
    run = xstrace(f"{KINETO} {report}", "itt_tasks", [20, 1])
    (path,) = (path for path in run.trace_files if path.name.startswith("itt_tasks"))  # --cpu-metrics has one of its own
    assert run.status == 0 and slices(json.loads(path.read_text()), "user_annotation")


def test_a_rank_is_told_with_a_blank(xstrace):
    """HolisticTraceAnalysis looks for it so, and takes rank 0 otherwise."""
    env = {"PMI_RANK": "3", "PMI_SIZE": "4"}
    run = xstrace(f"{KINETO} --chrome-itt-logging", "itt_tasks", [10, 1], env=env)
    ranks = re.findall(r'"rank":\s+(\d+)', run.trace_files[0].read_text())
    assert ranks == ["3"] and load(run)["distributedInfo"]["rank"] == 3


def test_launches_for_hta(xstrace):
    plain = load(xstrace(KINETO, "cl_matrix"))
    data = load(xstrace("--format kineto-hta", "cl_matrix"))
    launches = [e for e in slices(data, "xpu_runtime") if e["name"] == "cudaLaunchKernel"]
    assert {e["args"]["call"] for e in launches} == {"clEnqueueNDRangeKernel"}
    made = [e for e in launches if "result" not in e["args"]]  # the others have failed
    assert len(made) == len(slices(plain, "kernel")) > 0
    assert not [e for e in slices(plain, "xpu_runtime") if e["name"] == "cudaLaunchKernel"]


@pytest.mark.long
@needs_softcuda
def test_a_killed_drain_process_leaves_what_recover_completes(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path)
    run = xstrace.start(KINETO, "cuda_loop", [60_000], env=cuda.env)
    wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > 1_000_000)
    directory = run.dir
    os.kill(run.drain, signal.SIGKILL)
    run.wait(60)
    recovered = xstrace.bare(XSTRACE, ["--recover", directory], cwd=run.cwd)
    assert recovered.status == 0, recovered.err
    (path,) = run.cwd.glob("cuda_loop*.json")
    data = json.loads(path.read_text())
    assert data["schemaVersion"] == 1 and data["traceName"] == str(path)
    assert len(slices(data, "kernel")) == len(cuda.kernels)


# ---- what a program says itself ----

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

static struct xstrace_cpu_trace *list;

static size_t add(const char *name, int type, int64_t start, int64_t us, int64_t device, int64_t resource, uint64_t correlation)
{
	struct xstrace_activity one = { .name = name, .type = type, .start = start, .end = start + 1000 * us,
		.device = device, .resource = resource, .correlation = correlation };
	size_t first = 0;

	if (xstrace_cpu_trace_add(list, &one, 1, &first))
		abort();
	return first;
}

int main(void)
{
	int64_t now = xstrace_now();
	size_t n;

	struct xstrace_trace *trace = NULL;
	struct xstrace_config config = { .size = sizeof(config) };

	(void)xstrace_initialize(true);
	(void)xstrace_prepare(&config);
	(void)xstrace_start();
	xstrace_metadata("note", "a \"text\"");
	xstrace_metadata_json("versions", "{\"a\":\n1}");
	xstrace_metadata("traceEvents", "ours");
	list = xstrace_cpu_trace_create(now, "list");
	n = add("aten::add", XSTRACE_CPU_OP, now, 50, getpid(), 7, 11);
	xstrace_activity_metadata(list, n, "Sequence number", "5", false);
	xstrace_activity_metadata(list, n, "Input Dims", "[[2, 3], []]", false);
	xstrace_activity_metadata(list, n, "quoted", "[5]", true);
	xstrace_activity_metadata(list, n, "truth", "true", false);
	xstrace_activity_metadata(list, n, "broken", "[5", false);
	xstrace_activity_metadata(list, n, "lines", "[5,\n6]", false);
	xstrace_activity_metadata(list, n, "Backend", "CPU", true);
	n = add("AddBackward0", XSTRACE_CPU_OP, now + 100000, 50, getpid(), 8, 12);
	xstrace_activity_metadata(list, n, "Sequence number", "5", false);
	xstrace_activity_metadata(list, n, "Fwd thread id", "7", false);
	/* per 100 us: a launch, 60 us of a kernel, then 20 us of a copy with 80 kB, 20 us idle */
	n = add("ProfilerStep#0", XSTRACE_USER_ANNOTATION, now, 1000, getpid(), 7, 0);
	/* halves of surrogate pairs, which JSON lets pass */
	xstrace_activity_metadata(list, n, "half", "\"a\\ud800\"", false);
	xstrace_metadata_json("halves", "\"\\udc00b\\ud83d\\ude00\\ud800\\n\"");
	for (int i = 0; i < 10; i++) {
		int64_t at = now + i * 100000;

		add("cudaLaunchKernel", XSTRACE_CUDA_RUNTIME, at, 2, getpid(), 7, 100 + i);
		add("cudaMemcpyAsync", XSTRACE_CUDA_RUNTIME, at + 3000, 2, getpid(), 7, 200 + i);
		add(i % 2 ? "ncclKernel_AllReduce" : "gemm", XSTRACE_CONCURRENT_KERNEL, at + 10000, 60, 0, 7, 100 + i);
		n = add("Memcpy HtoD (Pageable -> Device)", XSTRACE_GPU_MEMCPY, at + 70000, 20, 0, 7, 200 + i);
		xstrace_activity_metadata(list, n, "bytes", "80000", false);
		xstrace_activity_metadata(list, n, "memory bandwidth (GB/s)", "4.0", false);
	}
	/* half of the last of NCCL's kernels has company on another stream */
	add("gemm", XSTRACE_CONCURRENT_KERNEL, now + 940000, 30, 0, 8, 0);
	add("[memory]", XSTRACE_CPU_INSTANT_EVENT, now, 0, getpid(), 7, 0);
	if (xstrace_cpu_trace_transfer(list, now + 2000000))
		abort();
	(void)xstrace_stop(&trace);
	xstrace_trace_free(trace);
	return 0;
}
"""


@pytest.fixture
def told(tmp_path):
    """A program that describes its own activities."""
    flags = ["-I", ROOT / "include", BUILD / "library/libxstrace-api.a"]
    return compile_c(tmp_path / "told", PROGRAM, *flags)


def test_what_a_program_says_itself(xstrace, told):
    run = xstrace(f"{KINETO} --chrome-itt-logging", told)
    data = load(run)
    assert data["note"] == 'a "text"' and data["versions"] == {"a": 1}
    check_structure(data, run.trace.pid)
    forward, backward = slices(data, "cpu_op")
    assert forward["args"] == {
        "Sequence number": 5,
        "Input Dims": [[2, 3], []],
        "quoted": "[5]",
        "truth": True,
        "broken": "[5",
        "lines": "[5,\n6]",
        "Backend": "CPU",
        "External id": 11,
    }
    assert (forward["tid"], backward["tid"]) == (7, 8)
    arrow = {e["ph"]: e for e in data["traceEvents"] if e.get("cat") == "fwdbwd"}
    assert (arrow["s"]["ts"], arrow["s"]["tid"]) == (forward["ts"], 7)
    assert (arrow["f"]["ts"], arrow["f"]["tid"]) == (backward["ts"], 8)
    assert check_flows(data) == 20
    assert [e["name"] for e in data["traceEvents"] if e.get("cat") == "cpu_instant_event"] == ["[memory]"]


def test_halves_of_letters_in_perfettos_format(xstrace, told):
    """Its texts are UTF-8, which readers check: what cannot be told in it costs that letter, not the packet."""
    run = xstrace("--format perfetto --chrome-itt-logging", told)
    (step,) = (s for s in run.trace.slices if s.name == "ProfilerStep#0")
    assert step.args["half"] == ["a\ufffd"] and run.trace.other["application"]["halves"] == "\ufffdb\U0001f600\ufffd\n"


HTA = r"""
import json, sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
temporal = analysis.get_temporal_breakdown(visualize=False)
types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
idle, _ = analysis.get_idle_time_breakdown(ranks=[0, 1], visualize=False)
overlap = analysis.get_comm_comp_overlap(visualize=False)
launches = analysis.get_cuda_kernel_launch_stats(ranks=[0, 1], visualize=False)
queue = analysis.get_queue_length_summary(ranks=[0, 1])
bandwidth = analysis.get_memory_bw_summary(ranks=[0, 1])
print("\n" + json.dumps({
    "temporal": json.loads(temporal.to_json(orient="records")),
    "types": json.loads(types.to_json(orient="records")),
    "kernels": json.loads(kernels.to_json(orient="records")),
    "idle": json.loads(idle.to_json(orient="records")),
    "overlap": json.loads(overlap.to_json(orient="records")),
    "launches": {rank: sorted(set(rows["launch_delay"])) for rank, rows in launches.items()},
    "queue": json.loads(queue.reset_index().to_json(orient="records")),
    "bandwidth": json.loads(bandwidth.reset_index().to_json(orient="records")),
}))
"""


@needs_clients
def test_holistic_trace_analysis(xstrace, told, tmp_path):
    """Two ranks, each with 330 us of kernels, 300 us of NCCL's, 200 us of copies, and gaps of 20 us."""
    python = os.environ.get("XSTRACE_TEST_HTA")
    if not python:
        need("hta")
        python = CLIENTS
    traces = tmp_path / "ranks"
    traces.mkdir()
    for rank in range(2):
        env = {"PMI_RANK": str(rank), "PMI_SIZE": "2"}
        run = xstrace(f"{KINETO} --chrome-itt-logging", told, env=env)
        run.trace_files[0].rename(traces / f"rank{rank}.json")
    made = subprocess.run([python, "-c", HTA, traces], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    told_us = json.loads(made.stdout.splitlines()[-1])
    assert sorted(row["rank"] for row in told_us["temporal"]) == [0, 1]
    for row in told_us["temporal"]:
        # from the first piece of work to the end of the last: 10 times 80 us, 9 gaps of 20 us.
        # Of each of the 21 pieces, what is less than a microsecond is cut off.
        assert row["kernel_time(us)"] == pytest.approx(980, abs=2)
        assert row["idle_time(us)"] == pytest.approx(180, abs=22)
        assert row["compute_time(us)"] == pytest.approx(330, abs=22)
        assert row["non_compute_time(us)"] == pytest.approx(470, abs=22)
    sums = {row["kernel_type"]: row["sum"] for row in told_us["types"]}
    assert sums["COMPUTATION"] == pytest.approx(2 * 300, abs=44)
    assert sums["COMMUNICATION"] == pytest.approx(2 * 270, abs=44)
    assert sums["MEMORY"] == pytest.approx(2 * 200, abs=44)
    assert told_us["launches"] == {"0": [9.0, 66.0], "1": [9.0, 66.0]}
    assert [row["comp_comm_overlap_pctg"] for row in told_us["overlap"]] == pytest.approx([10, 10], abs=1)
    queue = {(row["('rank', '')"], row["('queue_length', 'max')"]) for row in told_us["queue"]}
    assert queue == {(0, 2), (1, 2)}  # a kernel and a copy, launched before the kernel began
    for row in told_us["bandwidth"]:
        assert row["('memory_bw_gbps', 'count')"] == 10 and row["('memory_bw_gbps', 'max')"] == 4
    idle = sum(row["idle_time"] for row in told_us["idle"] if row["rank"] == 0 and row["stream"] == 7)
    assert idle == pytest.approx(180, abs=22)


def gpu_annotations(data):
    return slices(data, "gpu_user_annotation")


@needs_softcuda
def test_tasks_are_on_the_devices_rows(xstrace, tmp_path):
    """Each task's work, from the first piece to the last, where it ran; tasks around it cover it."""
    run = xstrace(KINETO, "cuda_nvtx", [3], env=SoftCUDA(tmp_path).env)
    data = load(run)
    launches = {e["args"]["correlation"]: e for e in slices(data, "cuda_runtime", "cuda_driver")}
    expected = collections.Counter()
    for task in slices(data, "user_annotation"):
        inside = [
            work
            for work in slices(data, *DEVICE)
            if (call := launches.get(work["args"]["correlation"]))
            and (call["pid"], call["tid"]) == (task["pid"], task["tid"])
            and task["ts"] <= call["ts"] and call["ts"] + call["dur"] <= task["ts"] + task["dur"]
        ]
        for stream in {(work["pid"], work["args"]["stream"]) for work in inside}:
            of = [w for w in inside if (w["pid"], w["args"]["stream"]) == stream]
            first, last = min(w["ts"] for w in of), max(w["ts"] + w["dur"] for w in of)
            expected[(*stream, task["name"], round(first, 3), round(last - first, 3))] += 1
    found = collections.Counter(
        (e["pid"], e["args"]["stream"], e["name"], round(e["ts"], 3), round(e["dur"], 3)) for e in gpu_annotations(data)
    )
    assert found == expected and len({name for _, _, name, _, _ in found}) >= 3


def test_changes_of_memory_are_events(xstrace, tmp_path):
    """tests/apps/library.c memory: seven changes while it is profiled, one after that."""
    run = xstrace(f"{KINETO} --chrome-itt-logging", APPS / "library", ["memory", tmp_path])
    assert "stop: 2, the events are in the launcher's trace" in run.out  # the program ends then
    data = json.loads(run.trace_files[0].read_text())
    events = [e for e in data["traceEvents"] if e["name"] == "[memory]"]
    assert {(e["ph"], e["cat"], e["s"], e["pid"]) for e in events} == {("i", "cpu_instant_event", "t", run.trace.pid)}
    keys = ("Bytes", "Device Type", "Device Id", "Total Allocated", "Total Reserved")
    assert [tuple(e["args"][key] for key in keys) for e in events] == [
        (100, 1, 1, 100, 1000),
        (50, 1, 1, 150, 1000),
        (25, 1, 1, 175, 1000),
        (-50, 1, 1, 125, 1000),
        (8, 0, 0, 8, 8),
        (1, 18, 0, 9, 9),
        (2, 18, 0, 9, 9),
    ]
    first = events[0]["args"]["Addr"]
    assert [e["args"]["Addr"] - first for e in events] == [0, 1, 2, 1, 3, 5, 6]
    assert not [e for e in xstrace("--chrome-itt-logging", APPS / "library", ["memory", tmp_path]).trace.events if e["name"] == "[memory]"]


def test_merged(xstrace, told, tmp_path):
    """xstrace-merge --format kineto: what the files say of devices and ranks, under the numbers of the merged trace."""
    for rank in range(2):
        run = xstrace(f"{KINETO} --chrome-itt-logging", told, env={"PMI_RANK": str(rank), "PMI_SIZE": "2"})
        run.trace_files[0].rename(tmp_path / f"rank{rank}.json")
    path = tmp_path / "all.json"
    merge("--format", "kineto", "-o", path, tmp_path / "rank0.json", tmp_path / "rank1.json", cwd=tmp_path)
    assert check_trace(path, strict=True) == []
    data = json.loads(path.read_text())
    assert data["schemaVersion"] == 1 and data["displayTimeUnit"] == "ns" and data["traceName"]
    assert data["distributedInfo"] == {"rank": 0, "ranks": [0, 1], "world_size": 2}
    devices = {device["id"]: device["rank"] for device in data["deviceProperties"]}
    assert sorted(devices.values()) == [0, 1]
    assert {e["pid"] for e in slices(data, *DEVICE)} == set(devices)
    plain = tmp_path / "plain.json"
    merge("-o", plain, tmp_path / "rank0.json", tmp_path / "rank1.json", cwd=tmp_path)
    assert "schemaVersion" not in json.loads(plain.read_text())


@needs_mpi
def test_collectives_of_mpi(xstrace, mpi_app):  # noqa: F811
    """Each has Kineto's words for what the program says that it did."""
    job = Ranks(xstrace, f"{KINETO} --chrome-mpi-logging", mpi_app("mpi_collectives"), [xstrace.cwd])
    assert job.run.status == 0, job.run.err
    for path in xstrace.cwd.glob("*.json"):
        data = json.loads(path.read_text())
        rank = data["distributedInfo"]["rank"]
        calls = [e | {"args": e.get("args", {})} for e in slices(data, "user_annotation") if e["name"].startswith("MPI_")]
        rows = [row[1:] for row in said(xstrace.cwd / f"said.{rank}") if row[0] == "call"]
        groups = set()
        for call, (function, words) in zip(sorted(calls, key=lambda e: e["ts"]), rows, strict=True):
            args = call["args"]
            if "seq" not in words:
                continue
            assert args["Collective name"] == function.removeprefix("MPI_").lower() and args["Seq"] == int(words["seq"])
            assert words.get("count") in (None, str(args.get("In msg nelems")))
            assert args["Process Group Name"] != "world" or (args["Rank"], args["Group size"]) == (rank, 2)
            groups.add(args["Process Group Name"])
        assert len(groups) > 1 and "world" in groups
        assert not any("Collective name" in e["args"] for e in calls if e["name"] in ("MPI_Wait", "MPI_Put", "MPI_Get"))


# ---- devices ----


def devices_of(run):
    return {device["id"]: device for device in load(run)["deviceProperties"]}


@needs_softcuda
def test_properties_of_cuda_devices(xstrace):
    """What tests/softcuda says of its devices (objects.c)."""
    run = xstrace(KINETO, "cuda_loop", [10], env=SoftCUDA(xstrace.home).env)
    device = devices_of(run)[0]
    assert device.pop("totalGlobalMem") > 1 << 20
    assert device == {
        "id": 0,
        "name": "Software GPU 0",
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 4,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 233472,
    }


XPU = ("totalGlobalMem", "maxComputeUnits", "maxWorkGroupSize", "maxClockFrequency", "maxMemAllocSize", "localMemSize")


def test_properties_of_opencl_devices(xstrace):
    """As the runtime tells a program that asks it."""
    if not (APPS / "cl_matrix").exists():
        pytest.skip("no OpenCL")
    asked = subprocess.run(["clinfo", "--raw"], capture_output=True, text=True).stdout if shutil.which("clinfo") else ""
    (device,) = devices_of(xstrace(KINETO, "cl_matrix")).values()
    assert set(device) - {"id", "name"} == set(XPU)
    names = {
        "totalGlobalMem": "CL_DEVICE_GLOBAL_MEM_SIZE",
        "maxComputeUnits": "CL_DEVICE_MAX_COMPUTE_UNITS",
        "maxWorkGroupSize": "CL_DEVICE_MAX_WORK_GROUP_SIZE",
        "maxMemAllocSize": "CL_DEVICE_MAX_MEM_ALLOC_SIZE",
        "localMemSize": "CL_DEVICE_LOCAL_MEM_SIZE",
    }
    for key, name in names.items():
        values = re.findall(rf"{name}\s+(\d+)$", asked, re.M)
        assert str(device[key]) in values or not asked


def test_properties_of_level_zero_devices(xstrace):
    """What the driver in tests/softgpu says; what it has no function for is left out."""
    if not (APPS / "ze_matrix").exists():
        pytest.skip("no Level Zero")
    driver = {"ZE_ENABLE_ALT_DRIVERS": str(BUILD / "tests/softgpu/libze_softgpu.so")}
    devices = devices_of(xstrace(KINETO, "ze_matrix", env=driver))
    assert devices
    for device in devices.values():
        assert device["name"] and set(device) - {"id", "name"} <= set(XPU)
        assert device["maxComputeUnits"] > 0 and device["maxClockFrequency"] == 1000
