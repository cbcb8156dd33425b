"""The report on oneCCL's collectives (-r), and the options that choose one library's tasks."""

import collections
import os
import re

import pytest

from conftest import APPS, compile_c

RANKS = "PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK SLURM_PROCID PALS_RANKID RANK".split()


@pytest.fixture(autouse=True)
def no_rank(monkeypatch):
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)


def check_report(text, out, rank=""):
    """unitrace's table to the letter, then ours; returns the pid that it names."""
    theirs, ours = re.split(r"\n\n+(?:Process \d[^\n]*\n\n)?=== CCL Time by Message Size ===\n\n", text)  # on stderr with the process
    lines = theirs.splitlines()
    box = re.fullmatch(r"\*  Process ID : (\d+) \| Rank ID : (.*)", lines[1])
    assert box[2] == rank and lines[0] == lines[2] == "*" * 60
    width = max(len(line.split(",")[0]) for line in lines[3:])
    assert lines[3] == " " * (width - 8) + "Function" + UNITRACE_HEAD
    expected = [(name, size, int(n)) for name, size, n in re.findall(r"^row: (\S+) (\S+) (\d+)$", out, re.M)]
    functions = collections.Counter()
    for name, _, n in expected:
        functions[name] += n
    rows = read_table(lines[3:])
    assert {row["Function"]: int(row["Calls"]) for row in rows} == functions
    check_figures(rows)
    sizes = read_table(ours.splitlines())
    # in the order of their times (check_figures()), which on a busy machine need not be that of what the program meant to sleep
    assert sorted((row["Function"], row["Message Size (B)"], int(row["Calls"])) for row in sizes) == sorted(expected)
    check_figures(sizes)
    for row in rows:
        assert int(row["Time (ns)"]) == sum(int(r["Time (ns)"]) for r in sizes if r["Function"] == row["Function"])
    return int(box[1])


UNITRACE_HEAD = (
    ",        Calls,            Time (ns),     Time (%),         Average (ns),             Min (ns),             Max (ns)"
)


def read_table(lines):
    lines = [line for line in lines if line and not line.startswith("(Cost of tracing: ")]
    assert len({len(line) for line in lines}) == 1  # the columns are aligned
    rows = [[cell.strip() for cell in line.split(", ")] for line in lines]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def check_figures(rows):
    times = [int(row["Time (ns)"]) for row in rows]
    assert times == sorted(times, reverse=True)
    for row in rows:
        calls, time, average, low, high = (int(row[c]) for c in ("Calls", "Time (ns)", "Average (ns)", "Min (ns)", "Max (ns)"))
        assert 0 < low <= average <= high and average == time // calls
        assert low + high <= time or calls == 1
        assert row["Time (%)"] == f"{100 * time / sum(times):.6f}"


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
    sizes = run.err.split("=== CCL Time by Message Size ===")[1]
    found = re.findall(r"^ *(oneCCL\S+), +(\S+), +\d+, +(\d+),", sizes, re.M)
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
    sizes = run.err.split("=== CCL Time by Message Size ===")[1]
    found = dict(re.findall(r"^ *oneCCL::(\S+), +(\S+), +1,", sizes, re.M))
    none = dict.fromkeys(["negative", "text", "value", "key", "longer"], "-")
    most = str(2**64 - 1)
    assert found == none | {"u64": most, "u16": "9", "overlapped": most}


@pytest.mark.parametrize("options", ["ccl", "dnn", "mpi", "itt"])
def test_all_tasks_are_shown(xstrace, options):
    """As in unitrace: the name of a library takes no other library's tasks away, nor the program's own."""
    trace = xstrace(f"--chrome-{options}-logging", "itt_ccl").trace
    assert {s.name.split("::")[0] for s in trace.slices} == {"oneCCL", "dnnl", "other"}
    assert len([s for s in trace.slices if not s.unfinished]) == 33


@pytest.mark.parametrize("options, value", [("--chrome-ccl-logging", "1"), ("-r", "1"), ("--chrome-dnn-logging", "none"), ("--chrome-mpi-logging", "none")])
def test_its_own_level(xstrace, options, value):
    """oneCCL has tasks of its own for those who ask; what the user has set stays, be it nothing."""
    words = ["-c", 'echo "level ${CCL_ITT_LEVEL-none}"']
    assert "CCL_ITT_LEVEL" not in os.environ  # of whoever runs the tests
    assert f"level {value}\n" in xstrace(options, "sh", words).out
    for users in "0", "2", "":
        assert f"level {users}\n" in xstrace(options, "sh", words, env={"CCL_ITT_LEVEL": users}).out
