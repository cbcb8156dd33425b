"""xstrace-report beside programs that nobody here wrote: HolisticTraceAnalysis and Perfetto find the same sums; Dask's workers the same report."""

import json
import subprocess
import sys

import perfetto_ui
import pytest

from conftest import ROOT
from others import CLIENTS, need, needs_clients
from planned import PLANS
from test_kineto import told  # noqa: F401
from test_kineto_clients import answer, python_with, ranks  # noqa: F401
from test_ranks import cluster
from test_report_real import report

pytestmark = needs_clients
SCRIPT = ROOT / "scripts/xstrace-report"

TIMES = r"""
import json, sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
times = analysis.get_temporal_breakdown(visualize=False)
_, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)
print("\n" + json.dumps({
    "idle": [float(us) for us in times["idle_time(us)"]],
    "busy": [float(us) for us in times["compute_time(us)"] + times["non_compute_time(us)"]],
    "kernels": [[row["name"], float(row["sum (us)"])] for row in kernels.to_dict("records")],
}))
"""


def test_hta_finds_the_same(ranks, tmp_path):  # noqa: F811
    """Of each rank's device: the time with work, and idle between the first and the last; of each kernel the sum.

    Of each of the 21 pieces HTA cuts off what is less than a microsecond.
    """
    seen = answer(python_with("XSTRACE_TEST_HTA", "hta"), TIMES, ranks)
    data = report(tmp_path, ranks)
    assert [one["busy"] / 1000 for one in data["devices"]] == [800, 800] == pytest.approx(seen["busy"], abs=22)
    assert [one["between"] / 1000 for one in data["devices"]] == [180, 180] == pytest.approx(seen["idle"], abs=22)
    sums = dict.fromkeys((name for name, _ in seen["kernels"]), 0)
    for name, us in seen["kernels"]:
        sums[name] += us
    work = {row["name"]: row["ns"] / 1000 for row in (*data["kernels"], *data["copies"])}
    assert {"gemm", "ncclKernel_AllReduce"} <= sums.keys() <= work.keys()
    assert sums == {name: pytest.approx(work[name], abs=22) for name in sums}


def test_perfetto_finds_the_same(xstrace, tmp_path):
    """Its trace processor: calls and kernels by name, and the time in which the device had work."""
    try:
        perfetto_ui.browser(), perfetto_ui.ui_directory(), perfetto_ui.devtools()
    except perfetto_ui.Unavailable as missing:
        pytest.skip(str(missing))
    run = xstrace("--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging", "gemm")
    data = report(run.cwd, *run.trace_files)
    with perfetto_ui.PerfettoUI(run.trace_files[0]) as ui:
        rows = ui.query("select name, count(*), sum(dur) from slice where category = 'cpu_op' and name not glob '*::*' group by name")
        work = ui.query("select ts, ts + dur from slice where category = 'gpu_op' order by ts")
    assert {row["name"]: (row["count"], row["ns"]) for row in data["calls"]} == {name: (count, ns) for name, count, ns in rows}
    busy, end = 0, 0
    for begins, ends in work:
        busy += max(ends - max(begins, end), 0)
        end = max(end, ends)
    assert [one["busy"] for one in data["devices"]] == [busy]


def test_on_a_cluster_as_here(tmp_path):
    """Two workers: the same report, to the last digit."""
    need("distributed, duckdb")
    for id in ("imbalance", "short-kernels", "outlier-steps"):
        (tmp_path / "traces" / id).mkdir(parents=True)
        PLANS[id](tmp_path / "traces" / id)

    def made(python, *options):
        result = subprocess.run([python, SCRIPT, "--json", "-", *options, "traces"], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    here = made(sys.executable)
    with cluster(tmp_path, 2) as address:
        assert made(CLIENTS, "--scheduler", address) == here
    assert len(here["traces"]) == 6 and {"short-kernels", "outlier-steps"} <= {finding["id"] for finding in here["findings"]}
