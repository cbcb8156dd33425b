"""xstrace-report of real programs' traces: its sums are those that Python finds in the JSON."""

import collections
import json
import re
import subprocess
import sys
from array import array

import pytest

from conftest import APPS, ROOT
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from gpu_log import DRIVER, SoftGPU
from merging import merge
from ranks import Ranks, mpi_app, needs_mpi  # noqa: F401
from test_report_page import checked
from xstrace import overhead, tables
from xstrace.intervals import Intervals

pytest.importorskip("duckdb")

SCRIPT = ROOT / "scripts/xstrace-report"
ALL = "--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging"
DEVICE = ("gpu_op", "kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "xpu_runtime")


def report(cwd, *traces):
    """Page and data; the page is as it must be."""
    command = [sys.executable, SCRIPT, "-o", "r.html", "--json", "r.data", *map(str, traces)]
    made = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert made.returncode == 0 and made.stderr == "", made.stderr
    checked((cwd / "r.html").read_text())
    return json.loads((cwd / "r.data").read_text())


def covered(slices):
    return Intervals(array("q", [s.start for s in slices]), array("q", [s.end for s in slices])).union().length()


def named(rows):
    return {row["name"]: (row["count"], row["ns"]) for row in rows}


def sums(slices, name=lambda s: s.name):
    found = collections.defaultdict(lambda: [0, 0])
    for one in slices:
        found[name(one)][0] += 1
        found[name(one)][1] += one.end - one.start
    return {key: tuple(value) for key, value in found.items()}


def plain(one):
    return re.sub(r"\[(SIMD[^\]]*|\d+)\]$", "", one.name)


def check(data, trace):
    """One process's report against its trace."""
    device = [s for s in trace.slices if s.cat in DEVICE]
    kernels = [s for s in device if s.cat == "kernel" or "global" in s.args]
    named_so = [s for s in trace.calls if " " not in s.name]  # CUPTI tells of waits, too
    calls = named_so if any(s.cat == "gpu_op" for s in device) else [s for s in trace.slices if s.cat in CALLS]
    assert named(data["kernels"]) == sums(kernels, plain)
    assert sum(row["ns"] for row in data["copies"]) == sum(s.end - s.start for s in device) - sum(s.end - s.start for s in kernels)
    assert named(data["calls"]) == sums(calls)
    (process,) = data["processes"]
    assert process["span"] == max(s.end for s in trace.slices) - min(s.start for s in trace.slices)
    assert sum(process["where"].values()) == process["span"] and sum(data["where"].values()) == process["span"]
    by_device = collections.defaultdict(list)
    for one in device:
        by_device[one.track[0]].append(one)
    assert sorted(one["busy"] for one in data["devices"]) == sorted(covered(slices) for slices in by_device.values())
    for one in data["devices"]:
        assert one["busy"] + one["before"] + one["between"] + one["after"] == one["span"] == process["span"]
        assert sum(one["at_once"].values()) == one["busy"]
    assert (
        sum(row["ns"] for row in data["idle"]) == sum(one["between"] for one in data["devices"]) == sum(ns for _, ns in data["gap_lengths"])
    )


@pytest.mark.skipif(not (APPS / "gemm").exists(), reason="no OpenCL headers")
def test_gemm_on_pocl(xstrace, tmp_path):
    run = xstrace(ALL, "gemm")
    data = report(run.cwd, *run.trace_files)
    check(data, run.trace)
    (drawn,) = data["drawn"]
    steps = sorted((s for s in run.trace.tasks if s.name == "gemm::iteration"), key=lambda s: s.start)
    assert drawn["steps"]["name"] == "gemm::iteration" and [row[1] for row in drawn["steps"]["rows"]] == [s.end - s.start for s in steps]
    assert {row["name"] for row in data["lead_calls"] if row["class"] == "wait"} == {"clFinish"}
    written = [s for s in run.trace.device if s.name.startswith("clEnqueueWriteBuffer")]
    assert next(row["bytes"] for row in data["copies"] if row["name"] == "clEnqueueWriteBuffer") == sum(s.args["bytes"] for s in written)


@pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
@pytest.mark.parametrize("kind", ["immediate", "regular"])
def test_level_zero(xstrace, tmp_path, kind):
    """A wait after each kernel of the software GPU: the report says so."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=300000")
    args = ["--list", kind, "--sync", "queue", "--kernel", "empty", "--kernels", 40]
    run = xstrace("--chrome-call-logging --chrome-kernel-logging", "ze_matrix", args, env=gpu.env)
    data = report(run.cwd, *run.trace_files)
    check(data, run.trace)
    assert sum(row["count"] for row in data["kernels"]) == 40


@pytest.mark.long(keep=1)
@pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")
@pytest.mark.parametrize("options", ["--chrome-call-logging --chrome-kernel-logging", "--format kineto", "--format perfetto"])
def test_cuda(xstrace, tmp_path, options):
    cuda = SoftCUDA(tmp_path, 13, CUPTI_VERSION=130500, DEVICES=2)
    run = xstrace(options, "cuda_streams", ["--kernels", 50], env=cuda.env)
    data = report(run.cwd, *run.trace_files)
    check(data, run.trace)


@pytest.mark.long
@needs_mpi
def test_ranks(xstrace, mpi_app):  # noqa: F811
    """Each rank by itself, and merged into one trace: the same ranks with the same times in MPI."""
    job = Ranks(xstrace, "--chrome-mpi-logging", mpi_app("mpi_collectives"), [xstrace.cwd], 4)
    paths = [trace.path for trace in job.traces.values()]
    merge("-o", "all.json", "--no-clock-sync", *paths, cwd=xstrace.cwd)
    times = {}
    for rank, trace in job.traces.items():
        (thread,) = {s.track for s in trace.calls}
        times[rank] = covered([s for s in trace.calls if s.track == thread])
    for traces in (paths, ["all.json"]):
        data = report(xstrace.cwd, *traces)
        assert {row["rank"]: row["where"]["mpi"] for row in data["processes"]} == times


def test_without_what_tracing_cost(xstrace):
    """Tables of calls, tasks and steps have what overhead.subtract() leaves; the parts of a process's time are still all of it."""
    run = xstrace("--chrome-itt-logging", "itt_tasks", [2000, 1, "--depth", 3])
    traced = report(run.cwd, *run.trace_files)
    assert traced["traces"][0]["overhead"]["events_ns"] > 0 and "tracing" not in traced["where"]
    net = report(run.cwd, "--subtract-overhead", *run.trace_files)
    with tables.open(run.trace_files[0]) as opened:
        overhead.subtract(opened.connection)
        sql = (
            "select name, sum(net)::bigint, sum(dur)::bigint from slices join slices_net using (slice_id) where kind = 'task' group by name"
        )
        rows = {name: (net_ns, ns) for name, net_ns, ns in opened.connection.execute(sql).fetchall()}
    assert {row["name"]: row["ns"] for row in net["tasks"]} == {name: net_ns for name, (net_ns, _) in rows.items()}
    assert {row["name"]: row["ns"] for row in traced["tasks"]} == {name: ns for name, (_, ns) in rows.items()}
    assert sum(net_ns for net_ns, _ in rows.values()) < sum(ns for _, ns in rows.values())
    assert net["where"]["tracing"] > 0 and sum(net["where"].values()) == sum(traced["where"].values()) == net["span"]
    assert "without the first" in checked((run.cwd / "r.html").read_text())
