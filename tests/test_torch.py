"""PyTorch: our traces against those of PyTorch's own profiler; the processes that PyTorch starts.

Only with XSTRACE_TEST_CLIENTS=1 and where scripts/setup --clients could install PyTorch.
"""

import collections
import json
import re
import signal

import pytest

from others import CLIENTS, ITT, PROGRAMS, need, needs_clients

pytestmark = needs_clients

# What is in our trace and not in that of PyTorch's profiler:
# - the domains of oneDNN, which calls ITT itself, inside of PyTorch's ops and on its threads
# - ranges and marks of torch.profiler.itt, which are only for ITT: the program's "all of it" and "a mark"
PYTORCH = "PyTorch::"
ONLY_ITT = ["all of it", "a mark"]
# What is in PyTorch's and not in ours: nothing.


@pytest.fixture(autouse=True)
def torch(time_limit):
    signal.alarm(300)
    need("torch")


def forests(trace):
    """[[name, [children]], …] of each thread, of PyTorch's domain alone."""
    for tasks in trace.by_thread(s for s in trace.tasks if s.name.startswith(PYTORCH)).values():
        forest, open_tasks = [], []
        for task in tasks:
            while open_tasks and open_tasks[-1][0] <= task.start:
                open_tasks.pop()
            node = [task.name.removeprefix(PYTORCH), []]
            if open_tasks:
                assert task.end <= open_tasks[-1][0], task
            (open_tasks[-1][1] if open_tasks else forest).append(node)
            open_tasks.append((task.end, node[1]))
        yield forest


def names(forest):
    for name, children in forest:
        yield name
        yield from names(children)


@pytest.mark.parametrize("kind", ["cnn", "block"])
def test_as_pytorchs_own_profiler(xstrace, kind):
    """The same ops, as often, nested alike, on each thread."""
    script, steps = PROGRAMS / "torch_train.py", 3
    bare = xstrace.bare(CLIENTS, [script, kind, xstrace.home / "bare", steps])
    run = xstrace(ITT, CLIENTS, [script, kind, xstrace.home / "seen", steps])
    assert bare.status == run.status == 0, run.err
    said = [re.search("^losses.*", r.out, re.M)[0] for r in (bare, run)]
    assert said[0] == said[1] and said[0].endswith("the same")

    trace = run.trace
    assert trace.other["lost"] == 0 and "unmatched_ends" not in trace.other
    assert not any(task.unfinished for task in trace.tasks)
    seen = json.loads((xstrace.home / "seen").read_text())
    ours = list(forests(trace))
    main = [forest for forest in ours if "all of it" in dict(forest)]
    assert main == [[["all of it", [["a mark", []]]]]]
    ours.remove(main[0])
    counts = collections.Counter(name for forest in ours for name in names(forest))
    assert counts == collections.Counter(seen["counts"])
    assert sum(counts.values()) > 400 and counts["step 1"] == 2
    assert sorted(ours) == sorted(seen["trees"])
    assert len(ours) == 2


@pytest.mark.parametrize("option", ["dnn", "ccl", "mpi"])
def test_options_of_libraries_take_no_ops_away(xstrace, option):
    """As in unitrace, where each of them stands for all ITT tasks."""
    run = xstrace(f"--chrome-{option}-logging", CLIENTS, [PROGRAMS / "torch_train.py", "cnn", xstrace.home / "seen", 2])
    assert run.status == 0
    seen = collections.Counter(json.loads((xstrace.home / "seen").read_text())["counts"])
    ops = collections.Counter(s.name.removeprefix(PYTORCH) for s in run.trace.tasks if s.name.startswith(PYTORCH))
    assert all(ops[name] == n for name, n in seen.items()) and seen["aten::conv2d"] > 0


@pytest.mark.parametrize("kind", ["loader", "fork", "spawn", "forkserver"])
def test_processes_that_pytorch_starts(xstrace, kind):
    script = PROGRAMS / "torch_data.py"
    run = xstrace(ITT, CLIENTS, [script, kind])
    assert run.status == 0 and run.err == ""
    run.check_expected()
    pids = set(re.findall(r"^process: (\d+)", run.out, re.M))
    assert {str(t.pid) for t in run.traces} == pids and len(run.traces) == len(pids)
    assert len(pids) == (5 if kind == "loader" else 3)  # two epochs, two workers each
    assert len({t.metadata["run"] for t in run.traces}) == 1


def test_torchrun(xstrace):
    """Two ranks over gloo, as children of a launcher of their own."""
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    run = xstrace(ITT, CLIENTS, [*words, PROGRAMS / "torch_ranks.py"], timeout=120)
    assert run.status == 0, run.err
    run.check_expected()
    ranks = [t for t in run.traces if t.count("tasks", "PyTorch::c10d::allreduce_")]
    assert len(ranks) == 2
    for trace in ranks:
        # gloo's own threads say when they run it
        gloo = [s for s in trace.tasks if s.name == "PyTorch::gloo:all_reduce"]
        calls = [s for s in trace.tasks if s.name == "PyTorch::c10d::allreduce_"]
        assert len(gloo) == 3 and {s.track for s in gloo}.isdisjoint(s.track for s in calls)
