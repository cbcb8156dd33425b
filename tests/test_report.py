"""xstrace-report: planned traces, each with one finding; real ones; the page."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT
from memory import run_for_peak
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
    rows = list(prelude.rows_of(tables.open([str(tmp_path)]).connection, prelude.with_tables(found["sql"])))
    if id == "imbalance":
        assert rows[0]["rank"] == wanted["detail"]["rank"] and rows[0]["work"] == wanted["detail"]["work"] and len(rows) == wanted["n"]
    elif id == "communication":
        assert rows[0] == {"rank": wanted["detail"]["rank"], "mpi": wanted["cost"]}
    elif id == "incomplete-trace":
        assert len(rows) == 1 and rows[0]["lost"] == 5
    else:
        assert [(row["n"], row["cost"]) for row in rows] == [(wanted["n"], wanted["cost"])]


def many(path, processes, names=1, times=1):
    """A trace of processes with a call of each name, so often; the later the process, the longer its calls take."""
    calls = [(pid, number % names) for pid in range(processes) for number in range(names * times)]
    line = '{"ph":"X","pid":%d,"tid":%d,"ts":%d,"dur":%d,"name":"cl%d","cat":"cpu_op"}'
    text = ",\n".join(line % (pid, pid, n * 100_000, 1 + pid, name) for n, (pid, name) in enumerate(calls))
    path.write_text('{"traceEvents":[\n' + text + "]}")


@pytest.mark.parametrize("processes,names,limit,told", [(20_000, 1, "2G", 20_000), (20_000, 1, "256M", 8192), (4000, 30, "256M", 4000)])
def test_memory_for_many_processes(tmp_path, processes, names, limit, told):
    """What is kept of each is little, or the ones that did least are left out, and that is said."""
    many(tmp_path / "t.json", processes, names)
    words = [sys.executable, SCRIPT, "-q", "--memory-limit", limit, "--json", "all.json", "-o", "r.html", "t.json"]
    done = run_for_peak(tmp_path, words, cwd=tmp_path)
    assert done.peak < (256 + 200) << 10
    data = json.loads((tmp_path / "all.json").read_text())
    assert [row["pid"] for row in data["processes"]] == list(range(processes - told, processes)) and len(data["drawn"]) == 24
    left_out = f"{tmp_path}/t.json: {processes - told} of {processes} processes need more memory than --memory-limit allows; left out\n"
    assert (done.returncode, done.stderr) == ((1, f"xstrace-report: {left_out}") if told < processes else (0, "")), done.stderr
    assert ("need more memory" in (tmp_path / "r.html").read_text()) == (told < processes)


def test_names_for_which_there_is_no_room_are_one_row_of_their_class(tmp_path):
    """The sums stay what they are."""
    events = [(3, "clFinish"), (2, "clFlush"), (5, "clWaitForEvents"), (7, "MPI_Send"), (9, "MPI_Recv"), (11, "MPI_Wait")]
    line = '{"ph":"X","pid":%d,"tid":1,"ts":%d,"dur":%d,"name":"%s","cat":"cpu_op"}'
    text = ",\n".join(line % (pid, 100 * n, ns, name) for pid in range(2) for n, (ns, name) in enumerate(events))
    (tmp_path / "t.json").write_text('{"traceEvents":[\n' + text + "]}")
    sums = []
    for limit in (64 << 20, 1 << 15):
        reduction = reduce.Reduction("0")
        reduction.add(examine_with(tmp_path / "t.json", limit))
        data = reduction.finish()
        assert len(data["processes"]) == 2 - (limit == 1 << 15)
        sums.append([data["processes"][0]["where"][kind] for kind in ("wait", "mpi", "call")])
    assert sums == [[8000, 27_000, 2000]] * 2 and {row["name"] for row in data["calls"]} >= {"(all others)", "MPI_Wait"}


def examine_with(path, limit):
    """What is told where that is kept within `limit` bytes, and the tables are not."""
    from xstrace.report import examine as module

    with tables.open([str(path)]) as opened:
        module.settle(opened.connection, False)
        told, _ = module._told(opened.connection, str(path), {**SETTINGS, "memory_limit": limit})
    return {**told, "faults": [], "is_lossy": False}


def test_steps_of_processes_that_are_not_drawn(tmp_path):
    """Their number and median are told, all of them are not kept."""
    line = '{"ph":"X","pid":%d,"tid":1,"ts":%d,"dur":%d,"name":"app::step","cat":"cpu_op"}'
    text = ",\n".join(line % (pid, 100 * n, 50 + pid) for pid in range(30) for n in range(10))
    (tmp_path / "t.json").write_text('{"traceEvents":[\n' + text + "]}")
    told = examine(str(tmp_path / "t.json"), SETTINGS)["processes"]
    assert [(one["steps"]["count"], one["steps"]["median"]) for one in told] == [(10, 1000 * (50 + pid)) for pid in range(30)]
    assert [bool(one["steps"]["rows"]) for one in told] == [bool(one["timeline"]) for one in told] == [True] * 24 + [False] * 6
    assert len(report_of(tmp_path)["drawn"]) == 24


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
