"""xstrace-report: planned traces, each with one finding; real ones; the page."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT
from planned import PLANS, nothing

pytest.importorskip("duckdb")

from xstrace import tables  # noqa: E402
from xstrace.report import prelude, reduce  # noqa: E402
from xstrace.report.examine import examine  # noqa: E402

SCRIPT = ROOT / "scripts/xstrace-report"
SETTINGS = {"memory_limit": 500 << 20, "threads": 1, "converter": None, "step": None, "subtract": False}


def report_of(place):
    """The report's data of the traces in a directory, made in this process."""
    reduction = reduce.Reduction("0")
    for path in sorted(place.glob("*.json")):
        reduction.add(examine(str(path), SETTINGS))
    return json.loads(json.dumps(reduction.finish()))


def xstrace_report(*args, cwd, status=0):
    """Runs the command; the CompletedProcess."""
    result = subprocess.run([sys.executable, SCRIPT, *map(str, args)], cwd=cwd, capture_output=True, text=True)
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
    return result


def holds(found, wanted):
    """Is all that is wanted in what was found?"""
    for key, value in wanted.items():
        if isinstance(value, dict):
            holds(found[key], value)
        else:
            assert found[key] == (pytest.approx(value) if isinstance(value, float) else value), key


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("id", PLANS)
def test_a_finding_fires_on_its_plan_alone(tmp_path, id):
    """With the right numbers; and the SQL that is shown finds the same in the traces' own tables."""
    wanted = PLANS[id](tmp_path)
    data = report_of(tmp_path)
    assert [finding["id"] for finding in data["findings"]] == [id]
    found = data["findings"][0]
    holds(found, wanted)
    rows = prelude.rows_of(tables.open([str(tmp_path)]).connection, prelude.with_tables(found["sql"]))
    if id == "imbalance":
        assert rows[0]["rank"] == wanted["detail"]["rank"] and rows[0]["work"] == wanted["detail"]["work"] and len(rows) == wanted["n"]
    elif id == "communication":
        assert rows[0] == {"rank": wanted["detail"]["rank"], "mpi": wanted["cost"]}
    elif id == "incomplete-trace":
        assert len(rows) == 1 and rows[0]["lost"] == 5
    else:
        assert [(row["n"], row["cost"]) for row in rows] == [(wanted["n"], wanted["cost"])]


def test_every_finding_has_a_plan():
    assert {finding.id for finding in reduce.ALL.values()} == PLANS.keys()


def test_nothing_fires_where_nothing_is_wrong(tmp_path):
    nothing(tmp_path)
    assert report_of(tmp_path)["findings"] == []


def test_nothing_to_report_is_told_as_it_is(tmp_path):
    """Slices of a category that is nobody's, counters alone: the line says what is missing, not that nothing has a time."""
    event = {"pid": 1, "tid": 1, "ts": 1, "name": "x"}
    for more in ({"ph": "X", "dur": 2, "cat": "mine"}, {"ph": "C", "args": {"v": 1}}):
        (tmp_path / "in.json").write_text(json.dumps([{**event, **more}]))
        done = subprocess.run([sys.executable, SCRIPT, "in.json"], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr == "xstrace-report: no trace has a call, a task or device work: there is nothing to report\n"


def test_what_calls_are_for():
    import duckdb

    wanted = {
        "wait": "clFinish clWaitForEvents zeCommandQueueSynchronize zeEventHostSynchronize zeFenceHostSynchronize zeCommandListHostSynchronize "
        "cudaDeviceSynchronize cudaStreamSynchronize cuCtxSynchronize cuStreamSynchronize hipEventSynchronize urQueueFinish",
        "launch": "clEnqueueNDRangeKernel zeCommandListAppendLaunchKernel zeCommandQueueExecuteCommandLists cudaLaunchKernel cudaLaunchKernelExC cuLaunchKernel "
        "cudaGraphLaunch cuGraphLaunch hipLaunchKernel urEnqueueKernelLaunch",
        "copy": "clEnqueueReadBuffer clEnqueueUnmapMemObject zeCommandListAppendMemoryCopy cudaMemcpy cudaMemcpyAsync cuMemcpyHtoDAsync_v2 cudaMemset",
        "build": "clBuildProgram clCreateProgramWithSource zeModuleCreate cuModuleLoadData cuLibraryLoadData nvrtcCompileProgram",
        "alloc": "clCreateBuffer clReleaseMemObject zeMemAllocDevice zeMemFree cudaMalloc cudaFree cudaHostAlloc cuMemAlloc_v2 cuMemFree_v2",
        "poll": "clGetEventInfo zeEventQueryStatus cudaEventQuery cuStreamQuery",
        "mpi": "MPI_Recv PMPI_Wait MPI::Comm",
        "call": "clSetKernelArg zeKernelSetGroupSize cudaSetDevice cuCtxGetCurrent clFinished clGetMemObjectInfo",
    }
    pairs = [(name, kind) for kind, names in wanted.items() for name in names.split()]
    asked = duckdb.connect().execute(
        f"SELECT name, {prelude.class_of('name')} FROM (SELECT unnest(?) AS name)", [[name for name, _ in pairs]]
    )
    assert asked.fetchall() == pairs
