"""xstrace-diff: made-up traces with planned differences, its statistics, its rules, what it writes for CI."""

import json
import math
import random
import runpy
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import BUILD, ROOT
from made import METADATA, NAMES, kernel, slice_, text_of_trace

sys.path.insert(0, str(ROOT / "python"))

pytest.importorskip("duckdb")
if not (BUILD / "tables/xstrace-tables").exists():
    pytest.skip("xstrace-tables is not built", allow_module_level=True)

from xstrace import diff_rules, diff_stats  # noqa: E402
from xstrace.diff import diff  # noqa: E402

COMMAND = ROOT / "scripts/xstrace-diff"
T = 10**12


def trace(path, slices, run="r", rank=None):
    """A trace of (name, kind, ns) one behind the other."""
    events, at = list(NAMES), T
    for name, kind, length in slices:
        make = {"kernel": kernel, "copy": kernel}.get(kind, slice_)
        events.append(make(name, at, at + length))
        at += length + 1000
    metadata = {**METADATA, "run": run, **({"rank": rank, "world_size": 2} if rank is not None else {})}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of_trace(events, metadata=metadata))


def planned(folder, runs, gemm=100_000, more=(), seed=1):
    """`runs` repeats whose kernel takes so many ns, with a scatter of 1 %."""
    r = random.Random(seed)
    for number in range(runs):
        gemms = [("gemm[SIMD8 {8; 1; 1} {1; 1; 1}]", "kernel", round(gemm * r.gauss(1, 0.01))) for _ in range(10)]
        steady = [("clEnqueueWriteBuffer[4096]", "copy", 5000), ("app::step", "task", 50_000), ("clFinish", "call", 7000)]
        trace(folder / f"t.{number}.json", gemms + steady + list(more), run=f"{seed}.{number}")
    return folder


def run(*arguments, **more):
    return subprocess.run([sys.executable, COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """a and same: alike; slow: the kernel takes 10 % more, a task is new, another gone."""
    place = tmp_path_factory.mktemp("sets")
    planned(place / "a", 6, more=[("app::old", "task", 3000)])
    planned(place / "same", 6, more=[("app::old", "task", 3000)], seed=4)
    planned(place / "slow", 6, gemm=110_000, more=[("app::new", "task", 4000)], seed=3)
    return place


@pytest.fixture(scope="module")
def compared(sets):
    return diff(str(sets / "a"), str(sets / "slow"))


def rows_of(document):
    return {(row["kind"], row["name"]): row for row in document["rows"]}


# ---- what is compared ----


def test_planned_differences(sets):
    done = run(sets / "a", sets / "slow", "--json")
    assert done.returncode == 0 and not done.stderr
    document = json.loads(done.stdout)
    rows = rows_of(document)
    gemm = rows["kernel", "gemm[SIMD8 {8; 1; 1} {1; 1; 1}]"]
    times = {}
    for side in ("a", "slow"):
        texts = [json.loads(path.read_text())["traceEvents"] for path in sorted((sets / side).glob("*.json"))]
        times[side] = [statistics.fmean(e["dur"] * 1000 for e in events if e["name"].startswith("gemm")) for events in texts]
    assert gemm["a"]["mean_ns"] == pytest.approx(statistics.fmean(times["a"])) and gemm["a"]["count"] == 10
    assert gemm["ratio"] == pytest.approx(statistics.fmean(times["slow"]) / statistics.fmean(times["a"]))
    assert 1.05 < gemm["interval"][0] < gemm["ratio"] < gemm["interval"][1] < 1.15
    assert gemm["p"] == pytest.approx(2 / math.comb(12, 6)) and gemm["changed"]
    assert rows["task", "app::new"]["state"] == "new" and rows["task", "app::old"]["state"] == "gone"
    steady = [row for row in document["rows"] if row["kind"] in ("call", "copy") or row["name"] == "app::step"]
    assert len(steady) == 3 and all(row["ratio"] == 1 and row["p"] == 1 and not row["changed"] for row in steady)
    assert rows["run", "wall"]["state"] == "both" and len(document["a"]["runs"]) == 6


def test_equal_sets(sets):
    document = json.loads(run(sets / "a", sets / "same", "--json", "--fail-on", "any +3% p<0.05", "--fail-on", "any new").stdout)
    assert document["status"] == 0 and not any(row["changed"] for row in document["rows"])


def test_text(sets):
    lines = run(sets / "a", sets / "slow").stdout.splitlines()
    (gemm,) = (line for line in lines if "gemm" in line)
    assert gemm.startswith("* gemm") and "+10." in gemm or "+9." in gemm
    assert any("app::new" in line and "only in B: 1x 4 us" in line for line in lines)
    assert any("app::old" in line and "only in A: 1x 3 us" in line for line in lines)
    assert max(map(len, lines)) <= 130


def test_patterns_files_and_one_run_each(sets):
    done = run(f"{sets}/a/*.json", f"{sets}/a/t.[0-5].json")
    assert done.returncode == 0 and "6 runs" in done.stdout.splitlines()[0]
    done = run(sets / "a/t.0.json", sets / "slow/t.0.json", "--json")
    document = json.loads(done.stdout)
    gemm = rows_of(document)["kernel", "gemm[SIMD8 {8; 1; 1} {1; 1; 1}]"]
    assert "chance within a run" in document["notes"][0] and gemm["p"] < 0.01 and gemm["a"]["count"] == 10
    assert rows_of(document)["run", "wall"]["p"] is None


def test_ranks_make_runs(tmp_path):
    for side, slower in (("a", 1), ("b", 2)):
        for repeat in range(2):
            for rank in range(2):
                length = 1000 * (slower if rank else 1)
                trace(
                    tmp_path / side / f"t.{repeat}.{rank}.json",
                    [("MPI_Send", "call", length), ("x::y", "task", 500)],
                    f"{repeat}.{rank}",
                    rank,
                )
    result = diff(str(tmp_path / "a"), str(tmp_path / "b"), ["call 1: MPI_Send +90%"], by_rank=True)
    assert [len(run) for run in result.a.runs] == [2] * 2
    rows = {(row.kind, row.name): row for row in result.rows}
    assert rows["call", "1: MPI_Send"].change["mean"].ratio == 2 and rows["call", "0: MPI_Send"].change["mean"].ratio == 1
    assert rows["rank", "1 MPI"].change["mean"].ratio == 2 and rows["rank", "0 MPI"].change["mean"].ratio == 1
    assert result.status == 1
    whole = diff(str(tmp_path / "a"), str(tmp_path / "b"))
    assert next(row for row in whole.rows if row.name == "MPI_Send").change["mean"].ratio == 1.5


def test_directories_are_places_of_their_own(tmp_path):
    for repeat in range(3):
        for pid in range(2):  # a process and its child: one launch
            trace(tmp_path / "a" / f"run{repeat}" / f"t.{pid}.json", [("x::y", "task", 500)], "same")
    result = diff(str(tmp_path / "a"), str(tmp_path / "a"))
    assert [len(run) for run in result.a.runs] == [2, 2, 2]


@pytest.mark.long
def test_real_programs(xstrace):
    """The same program with more work: its task is slower for sure, and its number of calls is what it is."""
    for side, size in (("a", "64"), ("b", "160")):
        for _ in range(4):
            assert (
                xstrace(f"--chrome-itt-logging --chrome-kernel-logging --output-dir-path {xstrace.home}/{side}", "gemm", [size]).status == 0
            )
    done = run(
        xstrace.home / "a",
        xstrace.home / "b",
        "--json",
        "--fail-on",
        "task gemm::multiply +20% p<0.05",
        "--fail-on",
        "task gemm::multiply count +1%",
    )
    document = json.loads(done.stdout)
    failed = [check["rule"] for check in document["checks"] if check["failed"]]
    assert done.returncode == 1 and failed == ["task gemm::multiply +20% p<0.05"]


# ---- rules ----


@pytest.mark.parametrize(
    "rule, status",
    [
        ("kernel +5%", 1),
        ("kernel +15%", 0),
        ("kernel gemm* median +5% p<0.05", 1),
        ("kernel gemm* p<0.01", 2),
        ("kernel gemm[SIMD8 {8; 1; 1} {1; 1; 1}] total +50us p<0.05", 1),
        ("kernel gemm* +9us", 1),
        ("kernel gemm* +11us", 0),
        ("kernel gemm* -5%", 0),
        ("copy +0.1%", 0),
        ("call clFinish count +1%", 0),
        ("task new", 1),
        ("task app::old gone", 1),
        ("kernel new", 0),
        ("run wall +1%", 1),
        ("task step +5%", 2),  # no such task
        ("speed +5%", 2),
        ("kernel count +5us", 2),
        ("kernel +5", 2),
        ("", 2),
    ],
)
def test_rules(compared, rule, status):
    try:
        verdicts, unused = diff_rules.judge([diff_rules.parse(rule)], compared.rows, diff_stats.holm)
    except diff_rules.Misuse:
        assert status == 2
        return
    assert (2 if unused else int(any(verdict.failed for verdict in verdicts))) == status


def test_a_rule_that_means_nothing(sets):
    """A gate that can never close must not pass for one that is open."""
    done = run(sets / "a", sets / "slow", "--fail-on", "kernel gemm* +5%", "--fail-on", "task step +5%")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "'task step +5%'" in done.stderr and not done.stdout


def test_names_in_rules():
    rule = diff_rules.parse("  task my step total mean  median +3.5% p < .05 ")
    assert (rule.kind, rule.name, rule.metric, rule.limit, rule.level) == ("task", "my step total mean", "median", 3.5, 0.05)
    assert diff_rules.parse("call -2ms").limit == -2e6 and diff_rules.parse("any total gone").metric == "total"


def test_holm_over_all_rules(compared):
    """Of many checks that ask for p, each has to be surer."""
    one, many = (
        diff_rules.judge([diff_rules.parse(text) for text in texts], compared.rows, diff_stats.holm)[0]
        for texts in (["kernel +5% p<0.05"], ["kernel +5% p<0.05", "any +5% p<0.05"])
    )
    tested = [verdict for verdict in many if verdict.p is not None]
    assert len(one) == 1 and len(tested) > 4 and one[0].failed
    assert tested[0].p == pytest.approx(min(1, one[0].p * len(tested)))


# ---- statistics ----


def test_permutations():
    assert diff_stats.permutation_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert diff_stats.permutation_p([1, 2], [1, 2]) == 1 and diff_stats.permutation_p([5, 5], [5, 5]) == 1
    assert diff_stats.permutation_p([1], [2, 3]) is None
    assert diff_stats.permutation_p([1, 1, 1, 9], [1, 1, 1]) == 1
    r = random.Random(1)
    a, b = [[r.gauss(m, 1) for _ in range(40)] for m in (0, 1.5)]
    assert diff_stats.permutation_p(a, b) == pytest.approx(1 / 10_000) == diff_stats.permutation_p(b, a)
    assert diff_stats.least_p(4, 4) == pytest.approx(2 / 70) and diff_stats.least_p(1, 9) == 1


def test_holm():
    assert diff_stats.holm([0.01, 0.04, None, 0.03]) == [pytest.approx(0.03), pytest.approx(0.06), None, pytest.approx(0.06)]


def test_intervals_hold_what_they_promise():
    r = random.Random(4)
    held = 0
    for _ in range(150):
        a, b = [[r.lognormvariate(math.log(m), 0.05) for _ in range(8)] for m in (1, 1.2)]
        low, high = diff_stats.ratio_interval(a, b)
        held += low <= 1.2 <= high
    assert 133 <= held <= 150


def test_false_alarms_and_power():
    bench = runpy.run_path(str(ROOT / "bench/diff"))
    shape = bench["SHAPES"]["scatter 2 %"]
    r = random.Random(8)
    equal = slower = 0
    for _ in range(150):
        a, b, c = ([bench["planned_run"](r, shape, factor, n) for n in range(8)] for factor in (1, 1, bench["SLOWER"]))
        equal += bench["alarms"](a, b)["mean"] != 0
        slower += bench["alarms"](a, c)["mean"] > 0
    assert equal <= 16 and slower >= 140  # of 150; 5 % are 7.5


# ---- for CI ----

HOSTILE = "evil \x1b[2J<script>&\"'%::error::x\nline,\u2028 \x00]]>"


@pytest.mark.long
def test_junit_and_github(tmp_path):
    for side, length in (("a", 1000), ("b", 3000)):
        for number in range(5):
            trace(tmp_path / side / f"{number}.json", [(HOSTILE, "task", length), ("x::fine", "task", 10)], str(number))
    done = run(tmp_path / "a", tmp_path / "b", "--junit", tmp_path / "j.xml", "--github", "--fail-on", "task +5%")
    assert done.returncode == 1
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (failure,) = suite.iter("failure")
    assert "1 us to 3 us" in failure.get("message")
    commands = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert [line[:9] for line in commands] == ["::error t", "::warning"] and commands[0].startswith("::error title=task +5%25::") and "\x1b" not in done.stdout
    assert "%25::error::x" in commands[0]
    done = run(tmp_path / "a", tmp_path / "b", "--github", "--json")
    assert json.loads(done.stdout) and "::warning title=slower::task evil" in done.stderr and "::error " not in done.stderr


# ---- what cannot be used ----


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("bad", ["none", "empty", "text.json", "dir", "no*match", "cut.json"])
def test_bad_input(tmp_path, bad):
    (tmp_path / "empty").mkdir()
    (tmp_path / "dir").mkdir()
    for path in ("text.json", "dir/x.json", "cut.json"):
        (tmp_path / path).write_text("hello" if path != "cut.json" else "{")
    trace(tmp_path / "good.json", [("a::b", "task", 5)])
    for places in ((bad, "good.json"), ("good.json", bad)):
        done = run(*places, cwd=tmp_path)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout, done
    assert run("good.json", "good.json", "--junit", "/none/x", cwd=tmp_path).returncode == 2
    assert run("good.json", cwd=tmp_path).returncode == 2


def test_what_is_left_out_is_said(sets, tmp_path):
    planned(tmp_path / "a", 3)
    (tmp_path / "a/bad.json").write_text("nothing")
    text = (tmp_path / "a/t.0.json").read_text()
    (tmp_path / "a/t.0.json").write_text(text[:-60])
    done = run(tmp_path / "a", sets / "a")
    assert done.returncode == 0 and "bad.json" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "1 of 3 traces are cut" in done.stdout


def test_the_same_twice_and_unfinished_tasks(tmp_path):
    events = NAMES + [slice_("a::b", T, T + 10), slice_("a::b", T + 20, T + 5000, args={"unfinished": True})]
    (tmp_path / "t.json").write_text(text_of_trace(events))
    result = diff(str(tmp_path / "t.json"), str(tmp_path / "t.json"), cache=False)
    (row,) = (row for row in result.rows if row.kind == "task")
    assert row.change["mean"].a == row.change["mean"].b == 10 and row.count_a == 1


def test_no_cluster(sets):
    done = run(sets / "a", sets / "a", "--scheduler", "nowhere")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "'nowhere'" in done.stderr
