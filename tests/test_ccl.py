"""The report on oneCCL's collectives (-r), and the options that choose one library's tasks."""

import os
import re

import pytest

from conftest import APPS, compile_c

COLUMNS = [
    "Function",
    "Message Size (B)",
    "Calls",
    "Time (ns)",
    "Time (%)",
    "Average (ns)",
    "Min (ns)",
    "Max (ns)",
]
RANKS = "PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK SLURM_PROCID PALS_RANKID RANK".split()


@pytest.fixture(autouse=True)
def no_rank(monkeypatch):
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)


def check_report(text, out, rank="-"):
    """All of it; returns the pid that it names."""
    lines = [line for line in text.splitlines() if line]
    if lines[0].startswith("Process "):  # on stderr
        del lines[:2 if not lines[1] else 1]
    assert lines[0] == "=== CCL Timing Summary ==="
    box = re.fullmatch(r"\*  Process ID : (\d+) \| Rank ID : (\S+)  \*", lines[2])
    assert box[2] == rank and lines[1] == lines[3] == "*" * len(lines[2])
    run = re.fullmatch(r" +Total Execution Time \(ns\): +(\d+)", lines[4])
    total = re.fullmatch(r"Total CCL Time for oneCCL backend \(ns\): +(\d+)", lines[5])
    assert len({len(line) for line in lines[4:6]}) == 1
    assert len({len(line) for line in lines[6:]}) == 1  # the columns are aligned
    rows = [[cell.strip() for cell in line.split(", ")] for line in lines[6:]]
    assert rows[0] == COLUMNS
    expected = re.findall(r"^row: (\S+) (\S+) (\d+)$", out, re.M)
    assert [tuple(row[:3]) for row in rows[1:]] == expected
    check_figures(rows[1:], int(total[1]), int(run[1]))
    return int(box[1])


def check_figures(rows, total, run):
    times = [int(row[3]) for row in rows]
    assert times == sorted(times, reverse=True) and sum(times) == total < run
    for row in rows:
        calls, time, average, low, high = (int(row[i]) for i in (2, 3, 5, 6, 7))
        assert 0 < low <= average <= high and average == time // calls
        assert low + high <= time or calls == 1
        assert row[4] == f"{100 * time / total:.2f}"


@pytest.mark.parametrize("options", ["-r", "--ccl-summary-report"])
def test_report_alone(xstrace, options):
    """No trace is written, and what other domains do is not in the report."""
    run = xstrace(options, "itt_ccl")
    assert run.status == 0 and run.said == [] and list(run.cwd.iterdir()) == []
    check_report(run.err, run.out)


def test_rank(xstrace):
    run = xstrace("-r --chrome-ccl-logging", "itt_ccl", env={"PMI_RANK": "3"})
    assert check_report(run.err, run.out, "3") == run.trace.pid
    assert run.trace.metadata["rank"] == 3


def test_with_a_trace(xstrace):
    """The report is the same, and so is the trace."""
    run = xstrace("-r --chrome-itt-logging", "itt_ccl")
    check_report(run.err, run.out)
    assert "rank" not in run.trace.metadata
    assert run.trace.count("tasks", "other::main") == 1
    assert run.trace.count("tasks", "dnnl::primitive::execute::matmul") == 16
    assert run.trace.count("open", "oneCCL::API::alltoall") == 1
    sizes = [s.args.get("send_size") for s in run.trace.tasks if s.name == "oneCCL::API::allreduce"]
    assert sorted(sizes) == [[64]] * 3 + [[4000]] * 5
    times = {}
    for task in run.trace.tasks:
        if task.name.startswith("oneCCL") and not task.unfinished:
            key = task.name, str(task.args.get("send_size", ["-"])[0])
            times[key] = times.get(key, 0) + round(task.end - task.start)
    found = re.findall(r"^ *(oneCCL\S+), +(\S+), +\d+, +(\d+),", run.err, re.M)
    assert {(name, size): int(ns) for name, size, ns in found} == times


def test_report_goes_to_a_file(xstrace):
    run = xstrace("-r -o rep.txt", "itt_ccl")
    pid = int(re.search(r"rep\.(\d+)\.txt", run.said[0])[1])
    assert run.err == "" and [f.name for f in run.cwd.iterdir()] == [f"rep.{pid}.txt"]
    assert check_report((run.cwd / f"rep.{pid}.txt").read_text(), run.out) == pid


def test_each_process_reports_its_own(xstrace):
    run = xstrace("-r -o rep", "sh", ["-c", "itt_ccl; itt_ccl"], env={"PATH": f"{APPS}:{os.environ['PATH']}"})
    reports = [path.read_text() for path in run.cwd.iterdir()]
    half = run.out[: len(run.out) // 2]
    assert len(reports) == 2 and half * 2 == run.out
    assert len({check_report(text, half) for text in reports}) == 2


def test_nothing_to_report(xstrace):
    run = xstrace("-r -o rep.txt", "itt_tasks", [10])
    assert run.err == "" and list(run.cwd.iterdir()) == []
    assert len(run.said) == 1 and "No event of interest" in run.said[0]


def test_only_sizes_are_sizes(xstrace):
    """Other metadata that looks alike; values that are no sizes; overlapped tasks."""
    source = r"""
#include <ittnotify.h>
#define NAME(n) __itt_string_handle_create(n)
static __itt_domain *d;
static void task(const char *name, const char *key, __itt_metadata_type type, void *value)
{
	__itt_task_begin(d, __itt_null, __itt_null, NAME(name));
	if (type == __itt_metadata_unknown)
		__itt_metadata_str_add(d, __itt_null, NAME(key), value, 0);
	else
		__itt_metadata_add(d, __itt_null, NAME(key), type, 1, value);
	__itt_task_end(d);
}
int main(void)
{
	unsigned long long u = ~0ull; long long s = -5; double f = 2.5; unsigned short h = 9; int here;
	__itt_id id;
	d = __itt_domain_create("oneCCL");
	id = __itt_id_make(&here, 1);
	task("u64", "send_size", __itt_metadata_u64, &u);
	task("u16", "send_size", __itt_metadata_u16, &h);
	task("negative", "send_size", __itt_metadata_s64, &s);
	task("text", "send_size", __itt_metadata_unknown, "\"send_size\":[1]");
	task("value", "other", __itt_metadata_unknown, ",\"send_size\":[2]");
	task("key", "x,\"send_size", __itt_metadata_u64, &u);
	task("longer", "send_size_2", __itt_metadata_u64, &u);
	__itt_task_begin_overlapped(d, id, __itt_null, NAME("overlapped"));
	__itt_metadata_add(d, id, NAME("send_size"), __itt_metadata_u64, 1, &u);
	__itt_task_end_overlapped(d, id);
	return 0;
}
"""
    run = xstrace("-r", compile_c(xstrace.home / "sizes", source))
    found = dict(re.findall(r"^ *oneCCL::(\S+), +(\S+), +1,", run.err, re.M))
    none = dict.fromkeys(["negative", "text", "value", "key", "longer"], "-")
    most = str(2**64 - 1)
    assert found == none | {"u64": most, "u16": "9", "overlapped": most}


@pytest.mark.parametrize("options, domain", [("ccl", "oneCCL"), ("dnn", "dnnl")])
def test_one_library_alone(xstrace, options, domain):
    trace = xstrace(f"--chrome-{options}-logging", "itt_ccl").trace
    assert {s.name.split("::")[0] for s in trace.slices} == {domain}
    assert len([s for s in trace.slices if not s.unfinished]) == 16
