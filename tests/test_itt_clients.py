"""Programs and libraries that call ITT themselves: its Python package, oneTBB, oneDNN, OpenCV, oneCCL.

docs/ITT.md says what each call becomes. All but the first need XSTRACE_TEST_CLIENTS=1 and what scripts/setup --clients installs.
"""

import re
import signal
import sys

import pytest

from others import CCL, CLIENTS, ITT, PROGRAMS, compile_cpp, need, needs_clients

ITTAPI = PROGRAMS / "ittapi_all.py"


@pytest.fixture(autouse=True)
def more_time(time_limit):
    signal.alarm(300)


def named(trace, name):
    return [s for s in trace.host if s.name == name]


def one(trace, name):
    found = named(trace, name)
    assert len(found) == 1, (name, found)
    return found[0]


def track_name(trace, slice):
    return trace.names("thread_name")[slice.track]


def instants(trace, name):
    return [e for e in trace.events if e["ph"] in "iI" and e["name"] == name]


# ---- ittapi, ITT's Python package ----


@pytest.fixture
def everything(xstrace):
    run = xstrace(ITT, sys.executable, [ITTAPI, "all"])
    assert (run.status, run.err) == (0, "")
    return run.trace


def test_ittapi_tasks(everything):
    trace = everything
    outer, inner, innermost = (
        one(trace, n) for n in ("python::outer", "python::inner", "other domain::innermost")
    )
    assert outer.start < inner.start < innermost.start < innermost.end < inner.end < outer.end
    assert outer.track == inner.track == innermost.track == (trace.pid, trace.pid)
    assert len([s for s in trace.tasks if s.name.endswith(".decorated")]) == 1
    assert not any(s.unfinished for s in trace.tasks) and trace.other["lost"] == 0


def test_ittapi_overlapped_tasks(everything):
    trace = everything
    first, second, moved = (one(trace, f"python::{n}") for n in ("first", "second", "moved"))
    assert first.start < second.start < first.end < second.end
    for task in first, second, moved:
        assert track_name(trace, task).startswith("Overlapped tasks")
        assert not task.unfinished


def test_ittapi_parents(everything):
    trace = everything
    parent, child = one(trace, "python::parent"), one(trace, "python::child")
    flows = [e for e in trace.events if e["ph"] in "sf" and e["name"] == "parent"]
    assert sorted(e["ph"] for e in flows) == ["f", "s"]
    begin, end = sorted(flows, key=lambda e: e["ph"] == "f")
    assert begin["id"] == end["id"]
    assert parent.start <= begin["ts"] <= parent.end and child.start <= end["ts"] <= child.end


def test_ittapi_events(everything):
    trace = everything
    loading, inside = one(trace, "loading"), one(trace, "python::in the event")
    assert loading.start <= inside.start and inside.end <= loading.end
    assert loading.track == inside.track
    assert len(instants(trace, "instant")) == 1 and not named(trace, "instant")


def test_ittapi_thread_name(everything):
    assert track_name(everything, one(everything, "python::in the worker")) == "the worker"


def test_ittapi_pause_and_resume(xstrace):
    """With --start-paused only what lies between them; a task open at the pause ends there."""
    run = xstrace(f"{ITT} --start-paused", sys.executable, [ITTAPI, "pauses"])
    assert (run.status, run.err) == (0, "")
    names = [s.name for s in sorted(run.trace.tasks, key=lambda s: s.start)]
    assert names == [f"python::{n}" for n in ("b", "d", "f", "cut")]
    assert [s.name for s in run.trace.tasks if s.unfinished] == ["python::cut"]
    assert one(run.trace, "python::cut").end - one(run.trace, "python::cut").start < 200000000


def test_ittapi_pause_without_the_option(xstrace):
    run = xstrace(ITT, sys.executable, [ITTAPI, "pauses"])
    assert run.trace.count("tasks") == 8 and run.trace.count("open") == 0


@pytest.mark.parametrize("options", [ITT, f"{ITT} --start-paused"])
def test_ittapi_detach(xstrace, options):
    run = xstrace(options, sys.executable, [ITTAPI, "detach"])
    assert (run.status, run.err) == (0, "")
    names = [s.name for t in run.traces for s in t.tasks]
    assert names == ([] if "paused" in options else ["python::before"])


# ---- oneTBB ----


@pytest.fixture
def tbb(xstrace):
    app = compile_cpp(xstrace.home / "tbb_work", "tbb_work.cpp", "-ltbb")
    bare = xstrace.bare(app, [20])
    run = xstrace(ITT, app, [20])
    assert bare.status == run.status == 0 and run.err == ""
    assert run.out.splitlines()[1:] == bare.out.splitlines()[1:]
    return run.trace


@needs_clients
def test_tbb_tasks(tbb):
    """Algorithms are tasks of the domain tbb, the bodies of a flow graph's nodes of tbb.flow."""
    for name in "tbb_parallel_for", "tbb_flow_graph":  # each time a thread takes part, which may be for one body alone
        assert 1 <= len(named(tbb, f"tbb::{name}")) <= 20
    assert tbb.count("tasks", "tbb.flow::body") == 40
    assert tbb.other["lost"] == 0
    # a worker may still be on its way out of an algorithm when the program ends
    assert not [s for s in tbb.tasks if s.unfinished and s.track == (tbb.pid, tbb.pid)]


@needs_clients
def test_tbb_flow_graph(tbb):
    """The names that the program gave to its graph and nodes, as metadata; edges as flows."""
    values = [
        value for e in tbb.events for v in e.get("args", {}).values()
        if isinstance(v, list) for value in v
    ]  # fmt: skip
    assert {"the graph", "twice", "count"} <= set(filter(lambda v: isinstance(v, str), values))
    assert [e for e in tbb.events if e["ph"] == "s" and e["name"] == "predecessor_to"]


# ---- oneDNN ----


@needs_clients
@pytest.mark.parametrize("options", [ITT, "--chrome-dnn-logging"])
def test_dnnl(xstrace, options):
    """One task for each primitive executed, on each thread that takes part."""
    app = compile_cpp(xstrace.home / "dnnl_relu", "dnnl_relu.cpp", "-ldnnl")
    run = xstrace(options, app, [6], env={"OMP_NUM_THREADS": "2"})
    assert run.status == 0 and run.err == ""
    threads = run.trace.by_thread(run.trace.tasks)
    assert run.trace.pid in threads and len(threads) <= 2
    for tasks in threads.values():
        assert [s.name.removeprefix("dnnl::primitive::execute::") for s in tasks] == [
            "matmul",
            "eltwise",
        ] * 6


@needs_clients
def test_dnnl_inside_of_pytorch(xstrace):
    """--chrome-dnn-logging shows oneDNN's primitives, with the line that oneDNN says about each, among all others: PyTorch's ops, too."""
    need("torch")
    args = [PROGRAMS / "torch_train.py", "cnn", xstrace.home / "seen", 2]
    run = xstrace("--chrome-dnn-logging", CLIENTS, args)
    assert run.status == 0
    tasks = run.trace.tasks
    assert {"dnnl::primitive::create", "dnnl::primitive::execute"} < {s.name.rpartition("::")[0] for s in tasks}
    assert any(s.name.startswith("PyTorch::aten::") for s in tasks)
    work = named(run.trace, "dnnl::primitive::execute::convolution")
    words = [s.args["metadata"][0] for s in work if "metadata" in s.args]
    # while one thread still makes its description, oneDNN gives NULL (or nothing) on the others
    assert any(words) and all("convolution" in w or w == "(null)" for w in words)
    assert sum("convolution" in w for w in words) > len(work) / 2


# ---- OpenCV ----


@needs_clients
def test_opencv(xstrace):
    need("cv2")
    env = {"OPENCV_TRACE": "1", "OPENCV_TRACE_ITT_ENABLE": "1"}
    run = xstrace(ITT, CLIENTS, [PROGRAMS / "cv_blur.py"], env=env)
    assert run.status == 0
    tasks = sorted(run.trace.tasks, key=lambda s: s.start)
    blurs = [s for s in tasks if s.name.startswith("OpenCVTrace::void cv::GaussianBlur(")]
    edges = [s for s in tasks if s.name.startswith("OpenCVTrace::void cv::Canny(")]
    assert len(blurs) == 4 and len(edges) == 1
    assert all(s.args["skipped trace entries"][0] > 0 for s in blurs + edges)


# ---- oneCCL ----


@pytest.fixture
def ccl(xstrace):
    """Runs two ranks over Intel MPI on this host's processor."""
    if not (CCL / "lib/libccl.so").exists():
        pytest.skip("no oneCCL in .venv-ccl; scripts/setup --clients installs it")
    lib = CCL / "lib"
    flags = ["-I", CCL / "include", "-L", lib, "-l:libccl.so.1", "-l:libmpi.so.12"]
    # their libraries need each other and say not where they are
    flags += [f"-Wl,--disable-new-dtags,-rpath,{lib}", "-Wl,--allow-shlib-undefined"]
    app = compile_cpp(xstrace.home / "ccl_ops", "ccl_ops.cpp", *flags)
    env = {"I_MPI_ROOT": str(CCL), "CCL_ROOT": str(CCL), "CCL_ZE_ENABLE": "0"}
    words = ["-n", "2", app, "3"]
    bare = xstrace.bare(CCL / "bin/mpiexec", words, env=env)
    if bare.status or bare.out.count("sum 2") != 2:
        pytest.skip(f"oneCCL does not run here: {bare.err[-200:]}")

    def run(options):
        run = xstrace(options, CCL / "bin/mpiexec", words, env=env)
        assert run.status == 0 and run.out.count("sum 2") == 2
        pids = set(map(int, re.findall(r"^process: (\d+)", run.out, re.M)))
        ranks = [t for t in run.traces if t.pid in pids]
        assert len(ranks) == 2
        return ranks

    return run


@needs_clients
@pytest.mark.parametrize("options", [ITT, "--chrome-ccl-logging"])
def test_ccl_collectives(ccl, options):
    for trace in ccl(options):
        for name in "allreduce", "bcast", "barrier":
            assert trace.count("tasks", f"oneCCL::API::{name}") == 3
        if options != ITT:  # what it does for a collective, too: it is asked to tell
            kinds = {s.name for s in trace.slices}
            assert len(kinds) >= 8, kinds


@needs_clients
def test_ccl_sizes_and_events(ccl):
    for trace in ccl("--chrome-ccl-logging"):
        for name, size in ("allreduce", 4000), ("bcast", 4000), ("barrier", 0):
            for task in named(trace, f"oneCCL::API::{name}"):
                assert task.args["send_size"] == [size]
        # events have bare names, which begin with the library's
        assert named(trace, "oneCCL::SCHED_CREATE") and named(trace, "oneCCL::RECV_REDUCE")
