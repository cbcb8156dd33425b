"""Kineto's format in the tools that read it, which nobody here wrote.

XSTRACE_TEST_HTA and XSTRACE_TEST_TENSORBOARD name Pythons that have HolisticTraceAnalysis and torch-tb-profiler;
without them that of scripts/setup --clients is used.
"""

import json
import os
import subprocess

import pytest

from merging import merge
from others import CLIENTS, need, needs_clients
from test_kineto import KINETO, load, slices, told  # noqa: F401

pytestmark = needs_clients


def python_with(variable, module):
    named = os.environ.get(variable)
    if not named:
        need(module)
    return named or CLIENTS


def answer(python, program, *words, **more):
    """What it prints in its last line, as JSON."""
    made = subprocess.run([python, "-c", program, *words], capture_output=True, text=True, **more)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


@pytest.fixture
def ranks(xstrace, told, tmp_path):  # noqa: F811
    """Traces of two ranks of the program whose content is known, in a directory of their own."""
    traces = tmp_path / "ranks"
    traces.mkdir()
    for rank in range(2):
        run = xstrace(f"{KINETO} --chrome-itt-logging", told, env={"PMI_RANK": str(rank), "PMI_SIZE": "2"})
        run.trace_files[0].rename(traces / f"rank{rank}.1700000000000.pt.trace.json")
    return traces


TENSORBOARD = r"""
import json, sys
from torch_tb_profiler import io
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.loader import RunLoader

profile = RunProfileData.parse("rank0", None, sys.argv[1] + "/rank0.1700000000000.pt.trace.json", "/tmp")
run = RunLoader("ranks", sys.argv[1], io.Cache()).load()
print("\n" + json.dumps({
    "steps": profile.steps_names,
    "devices": profile.used_devices,
    "has": [profile.has_kernel, profile.has_memcpy_or_memset],
    "schema": profile.data_schema_version,
    "rank": profile.distributed_info["rank"],
    "kernels": [[row["name"], int(row["count"]), float(row["sum"])] for row in
                profile.kernel_stat.reset_index().to_dict("records")],
    "step_us": [cost.costs for cost in profile.steps_costs],
    "profiles": sorted(key[0] for key in run.profiles),
}))
"""


def test_tensorboard(ranks):
    """Its plug-in: steps, kernels, and what each step consists of."""
    python = python_with("XSTRACE_TEST_TENSORBOARD", "torch_tb_profiler")
    seen = answer(python, TENSORBOARD, ranks)
    assert seen["steps"] == ["0"] and seen["devices"] == [0] and seen["schema"] == 1 and seen["rank"] == 0
    assert seen["has"] == [True, True]
    kernels = {name: (count, total) for name, count, total in seen["kernels"]}
    assert kernels["gemm"] == (6, 330) and kernels["ncclKernel_AllReduce"][0] == 5
    assert {"rank0", "rank1"} <= set(seen["profiles"])
    (costs,) = seen["step_us"]
    assert sum(costs[:-1]) == pytest.approx(costs[-1], abs=1)


CRITICAL = r"""
import json, sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
graph, found = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
rows = graph.get_critical_path_breakdown()
names = analysis.t.symbol_table.get_sym_table()
events = analysis.t.get_trace(0)
print("\n" + json.dumps({
    "found": found,
    "names": sorted({names[events.loc[graph.node_list[n].ev_idx]["name"]] for n in graph.critical_path_nodes}),
    "us": float(rows["duration"].sum()),
}))
"""


def test_critical_path(ranks):
    """It goes through the device's work, which takes longer than its launches."""
    seen = answer(python_with("XSTRACE_TEST_HTA", "hta"), CRITICAL, ranks)
    assert seen["found"] and {"gemm", "ncclKernel_AllReduce"} & set(seen["names"])
    assert 900 <= seen["us"] <= 1100


TRAINING = r"""
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.autograd.profiler.emit_itt():
    for step in range(5):
        with torch.autograd.profiler.record_function(f"ProfilerStep#{step}"):
            loss = model(torch.ones(16, 64)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
dist.destroy_process_group()
"""


def test_four_ranks_of_torchrun(xstrace, tmp_path):
    """Each rank's process has a trace in Kineto's format; merged they are one."""
    need("torch")
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    run = xstrace(
        "--format kineto --chrome-itt-logging", CLIENTS,
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 4, script],
        env={"OMP_NUM_THREADS": "1"}, timeout=110,
    )
    assert run.status == 0, run.err
    ranks = {}
    for path in run.trace_files:
        data = json.loads(path.read_text())
        if "distributedInfo" in data:
            ranks[data["distributedInfo"]["rank"]] = data
            assert data["distributedInfo"]["world_size"] == 4
    assert sorted(ranks) == [0, 1, 2, 3]
    for data in ranks.values():
        names = [e["name"] for e in slices(data, "user_annotation")]
        operations = [e["name"] for e in slices(data, "cpu_op")]
        for step in range(5):
            assert names.count(f"ProfilerStep#{step}") == 1
        assert sum("SGD.step" in name for name in names) == 5
        assert operations.count("AddmmBackward0") == 5 and "aten::addmm" in operations
        assert not any("PyTorch::" in name for name in names + operations)
    path = tmp_path / "all.json"
    merge("--format", "kineto", "-o", path, *run.trace_files, cwd=tmp_path)
    data = json.loads(path.read_text())
    assert data["distributedInfo"]["ranks"] == [0, 1, 2, 3] and data["distributedInfo"]["world_size"] == 4
    steps = [e for e in slices(data, "user_annotation") if e["name"].startswith("ProfilerStep#")]
    assert len(steps) == 20 and len({e["pid"] for e in steps}) == 4
