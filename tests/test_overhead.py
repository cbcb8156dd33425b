"""What tracing costs (docs/OVERHEAD.md): told in traces and reports, and subtracted from times; held against runs without it."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

import pytest

from conftest import BUILD, ROOT, compile_c
from gpu_log import SoftGPU
from others import INTERPRETERS

sys.path.insert(0, str(ROOT / "python"))

from xstrace import TraceError, overhead, summarize  # noqa: E402
from xstrace.trace import open_trace  # noqa: E402

ITT = "--chrome-itt-logging"
PAIRED = (ROOT / "tests/apps/paired.c").read_text()
PAIRED_COMMANDS = (ROOT / "tests/apps/paired_commands.c").read_text()
SUMMARY = ROOT / "scripts/xstrace-summary"
MPICC = shutil.which("mpicc.mpich")


def told(path):
    """(otherData.overhead, overhead.Overhead) of a trace."""
    with open_trace(path) as trace:
        for _ in trace:
            pass
    return trace.other["overhead"], overhead.overhead_of(trace.other)


def durations(path, name):
    """[(duration, the same without what tracing took)] of the slices of a name."""
    net, found = overhead.NetTimes(), []
    with open_trace(path) as trace:
        for event in trace:
            track = event["pid"], event.get("tid")
            if event["ph"] == "i":
                net.add(track, event["ts"], event["ts"], "mark", None)
            if event["ph"] != "X" or event.get("cat") != "cpu_op":
                continue
            kind = overhead.kind_of_task(event["name"]) if "::" in event["name"] else "mpi" if event["name"].startswith("MPI") else "call"
            group = len(found) if event["name"] == name else None
            if group is not None:
                found.append(event["dur"])
            values = len(event.get("args", {})) if "::" in event["name"] else 0
            net.add(track, event["ts"], event["ts"] + event["dur"], kind, group, values)
    costs = net.totals(overhead.overhead_of(trace.other))
    return [(ns, ns - costs[number]) for number, ns in enumerate(found)]


def low(values):
    """What a step takes that nobody has interrupted."""
    return sorted(values)[len(values) // 10]


# ---- against runs without a tracer ----


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    """Compiles tests/apps/paired.c for events of a kind, once each."""
    place, made = tmp_path_factory.mktemp("paired"), {}

    def make(kind):
        if kind in made:
            return made[kind]
        path = place / kind
        flags = ["-O2", "-D_GNU_SOURCE", "-I", ROOT / "tests/apps"]
        if kind == "opencl":
            flags += ["-DPAIRED_OPENCL", "-DCL_TARGET_OPENCL_VERSION=300", "-l:libOpenCL.so.1"]
        if kind == "mpi":
            if not MPICC:
                pytest.skip("no MPICH")
            words = subprocess.run([MPICC, "-show"], capture_output=True, text=True, check=True).stdout.split()[1:]
            flags += ["-DPAIRED_MPI", *words]
        made[kind] = compile_c(path, PAIRED, *flags)
        return path

    return make


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "build, events, option",
    [
        ("itt", "tasks", ""),
        ("itt", "metadata", ""),
        ("itt", "marks", ""),
        ("opencl", "calls", "--chrome-call-logging"),
        ("mpi", "calls", "--chrome-mpi-logging"),
    ],
)
def test_what_is_subtracted_is_what_the_program_takes_longer(xstrace, paired, build, events, option):
    program = paired(build)
    compare(xstrace, f"{ITT} {option}", program, [events], "app::step", 120)


# what it does beside is C: up to 3.11 each instruction of an interpreter that is watched takes longer
FUNCTIONS = """
from time import perf_counter_ns as now
def one():
    pass
number = 10**200
def step():
    for _ in range(100):
        one()
        number * number
for _ in range(40):  # 4,000 short calls: further ones are only counted
    begin = now()
    step()
    print("step", now() - begin)
"""


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.resolve().name)
def test_functions_of_python_cost_what_they_tell(xstrace, python):
    """Measured in the interpreter itself, before the program begins."""
    script = xstrace.cwd / "steps.py"
    script.write_text(FUNCTIONS)
    raw, parsed = compare(xstrace, "--python-stacks=steps", python, [script], f"Python::step ({script}:6)", 40)
    assert raw["events"]["function"]["count"] == 40 * 101 + 1 and "counted" not in raw["events"] and "task" not in raw["events"]
    assert 0 < parsed.costs["function"].inside_ns < parsed.costs["function"].ns < 20_000


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Compiles tests/apps/paired_commands.c for an API. (program, environment)."""
    place = tmp_path_factory.mktemp("commands")
    flags = {
        "opencl": [ROOT / "tests/apps/cl_app.c", "-l:libOpenCL.so.1"],
        "level_zero": ["-DPAIRED_ZE", "-l:libze_loader.so.1"],
    }

    def make(api):
        path = place / api
        if not path.exists():
            compile_c(path, PAIRED_COMMANDS, "-O2", "-D_GNU_SOURCE", "-I", ROOT / "tests/apps", *flags[api])
        return path, SoftGPU(place, SYNC=1).env if api == "level_zero" else {}

    return make


@pytest.mark.long
@pytest.mark.parametrize("api, steps", [("opencl", 60), ("level_zero", 300)])
def test_our_own_work_for_commands_is_what_the_program_takes_longer(xstrace, commands, api, steps):
    """By the processors' time of all of its threads, and in proportion to the commands."""
    program, env = commands(api)
    bare, traced, costs = [], [], []

    def of_one(took):
        return low([int(ns) for ns in re.findall(r"^step (\d+)$", took.out, re.M)]) / 100

    def cost(count):
        run = xstrace("--chrome-kernel-logging", program, [count], env=env)
        raw, parsed = told(run.trace.path)
        assert raw["events"]["command"]["count"] == 100 * count and parsed.commands_ns == raw["commands_ns"] > 0
        return of_one(run), raw["commands_ns"] / (100 * count)

    for turn in range(9):  # in turns: a busy machine changes
        bare.append(of_one(xstrace.bare(program, [steps], env=env)))
        for count in (steps // 3, steps):
            took, one = cost(count)
            traced.append(took)
            costs.append(one)
        few, many = costs[-2:]
        # of this turn, or of the quietest ones: how a runtime's own threads meet is another matter in each run
        longer = traced[-1] - bare[-1], min(traced) - min(bare)
        if many / 3 < few < many * 3 and any(0.2 * ns < many < 2.5 * ns for ns in longer):
            return
    raise AssertionError((bare, traced, costs))


def test_the_start_is_told(xstrace):
    """Of it the part that anybody sees: the launcher's, from its main() on, and joining."""
    bare, traced, told_ns = [], [], []
    for _ in range(8):
        for took, run in ((bare, lambda: xstrace.bare("itt_tasks", ["1"])), (traced, lambda: xstrace(ITT, "itt_tasks", ["1"]))):
            began = time.monotonic_ns()
            done = run()
            took.append(time.monotonic_ns() - began)
        raw, parsed = told(done.trace.path)
        assert parsed.start_ns == raw["start_ns"] > 20_000
        told_ns.append(raw["start_ns"])
    assert min(told_ns) < min(traced), (bare, traced, told_ns)
    said = subprocess.run([SUMMARY, "--json", done.trace.path], capture_output=True, text=True, check=True).stdout
    assert json.loads(said)[0]["start_ns"] == raw["start_ns"]


def compare(xstrace, options, program, arguments, name, count):
    """Runs it bare and traced; the steps' times without their cost must be those of the bare run. Returns what told() does."""
    bare, traced, net = [], [], []
    for turn in range(9):  # in turns: a busy machine changes
        out = xstrace.bare(program, arguments).out
        bare.append(low([int(ns) for ns in re.findall(r"^step (\d+)$", out, re.M)]))
        run = xstrace(options, program, arguments)
        steps = durations(run.trace.path, name)
        assert len(steps) == count
        traced.append(low([ns for ns, _ in steps]))
        net.append(low([ns for _, ns in steps]))
        # of this turn, or of the quietest ones: a processor may run at another speed in the next one
        both = (traced[-1] - bare[-1], traced[-1] - net[-1]), (min(traced) - min(bare), min(traced) - min(net))
        # what an event costs depends on what the processor is doing beside it: docs/OVERHEAD.md has more
        if turn >= 2 and any(longer > 500 and 0.4 * longer < found < 2.2 * longer for longer, found in both):  # 100 events
            return told(run.trace.path)
    raise AssertionError((bare, traced, net))


# ---- what is told ----


def test_counts_are_those_of_the_records(xstrace):
    run = xstrace(ITT, "itt_tasks", ["1001", "--depth", "2"])
    raw, parsed = told(run.trace.path)
    assert raw["events"]["task"]["count"] == 1001 and set(raw["events"]) == {"task"}
    one = parsed.costs["task"]
    assert 0 < one.inside_ns < one.ns < 20_000
    assert raw["events_ns"] == pytest.approx(1001 * one.ns, abs=1001 * 0.006 + 1)
    assert raw["drain_cpu_ns"] > 100_000 and 1 << 20 < raw["drain_peak_bytes"] < 1 << 30
    assert raw["waits"] == 0 == raw["waited_ns"] and "commands_ns" not in raw
    assert "tracing commands" not in "\n".join(summarize(str(run.trace.path)))


@pytest.mark.parametrize("options", ["--format perfetto", "--format kineto", "--compress=zstd"])
def test_every_format_tells_it(xstrace, options):
    run = xstrace(f"{ITT} {options}", "itt_tasks", ["50"])
    assert told(run.trace_files[0])[0]["events"]["task"]["count"] == 50


@pytest.mark.long
def test_waits_for_a_full_ring_are_told_with_their_time(xstrace):
    run = xstrace(f"{ITT} --ring-size 64K --backlog 0", "itt_tasks", ["300000"])
    raw, _ = told(run.trace.path)
    took = float(re.search(r"^pair: ([\d.]+) ns", run.out, re.M)[1]) * 300_000
    assert raw["waits"] > 3 and 1000 < raw["waited_ns"] < took * 1.01
    line = next(line for line in summarize(str(run.trace.path)) if line.startswith("time"))
    assert "tracing took" in line and "drain process" in line


def test_our_own_work_for_commands_is_part_of_what_tracing_took(xstrace, tmp_path):
    run = xstrace(
        "--chrome-call-logging --chrome-kernel-logging -h -d --report-format csv -o rep.csv",
        "ze_matrix",
        ["--kernels", 5, "--copies", 7],
        env=SoftGPU(tmp_path).env,
    )
    raw, parsed = told(run.trace.path)
    assert raw["events"]["command"]["count"] == sum(1 for event in run.trace.events if event.get("cat") == "gpu_op")
    assert parsed.costs["command"].ns is None and parsed.costs["call"].ns > 0
    calls = sum(1 for event in run.trace.events if event.get("cat") == "cpu_op")
    assert raw["events"]["call"]["count"] == calls
    rows = list(csv.DictReader((xstrace.cwd / next(xstrace.cwd.glob("rep.*.csv")).name).open()))
    (whole,) = [row for row in rows if row["report"] == "process"]
    assert int(whole["xstrace_ns"]) == raw["events_ns"] + raw["waited_ns"] + raw["commands_ns"] == parsed.tracing_ns
    (line,) = [line for line in summarize(str(run.trace.path)) if line.startswith("devices")]
    assert re.search(r"; tracing commands took [\d.]+ [um]s$", line)
    timing = [row for row in rows if row["report"] == "host_timing"]
    assert sum(int(row["xstrace_ns"]) for row in timing) == pytest.approx(calls * parsed.costs["call"].ns, rel=0.05)


def test_text_reports_end_with_a_line_of_it(xstrace, tmp_path):
    run = xstrace("-h -d", "ze_matrix", ["--kernels", 5, "--copies", 7], env=SoftGPU(tmp_path).env)
    lines = [line for line in run.err.splitlines() if line.startswith("(Cost of tracing: ")]
    assert len(lines) == 1
    assert re.search(r"events \d+ of kind (mark|call) at [\d.]+ ns", lines[0]) and "of kind command" in lines[0]
    assert re.search(r"; 12 of kind command, measured where it happens, [\d.]+ [um]s;", lines[0])
    assert re.search(r"drain process [\d.]+ \w+ of CPU time, [\d.]+ MiB\)$", lines[0])


def test_merged_traces_keep_it_for_each_input(xstrace):
    run = xstrace(ITT, "itt_tasks", ["500"])
    again = xstrace(ITT, "itt_tasks", ["700"])
    merged = xstrace.home / "all.json"
    paths = [run.trace.path, again.trace.path]
    subprocess.run([BUILD / "merge/xstrace-merge", "-o", merged, *paths], check=True, capture_output=True)
    other = json.loads(merged.read_text())["otherData"]
    assert [one["overhead"] for one in other["inputs"]] == [told(path)[0] for path in paths]
    both = overhead.overhead_of(other)
    assert both.costs["task"].count == 1200
    costs = [told(path)[1].costs["task"].ns for path in paths]
    assert min(costs) <= both.costs["task"].ns <= max(costs)


# ---- xstrace-summary ----


def test_summary_without_overhead(xstrace):
    run = xstrace(ITT, "itt_tasks", ["5000", "--depth", "2"])
    unit = {"ns": 1, "us": 1e3, "ms": 1e6}  # a slow machine's tasks take longer
    average = [
        {
            name: float(number) * unit[letters]
            for name, number, letters in re.findall(r"(app::t\d) [\d,]+x avg ([\d.]+) (\w+)", "\n".join(summarize(str(run.trace.path), net=net)))
        }
        for net in (False, True)
    ]
    assert average[1]["app::t1"] < average[0]["app::t1"] and average[1]["app::t0"] < average[0]["app::t0"]
    done = subprocess.run(
        [SUMMARY, "--subtract-overhead", run.trace.path], capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"}
    )
    assert done.returncode == 0 and "subtracted below" in done.stdout


@pytest.mark.parametrize(
    "other", [None, {}, {"overhead": 3}, {"overhead": {"events": {"task": {"ns": "x"}}}, "inputs": 7}, {"overhead": {}}]
)
def test_a_trace_that_does_not_tell_it_is_one_line(tmp_path, other):
    path = tmp_path / "x.json"
    document = {"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]}
    path.write_text(json.dumps({**document, "otherData": other} if other is not None else document))
    assert "tracing took" not in "\n".join(summarize(str(path))) or other
    done = subprocess.run([SUMMARY, "--subtract-overhead", path], capture_output=True, text=True)
    if overhead.overhead_of(other) and overhead.overhead_of(other).costs:
        assert done.returncode == 0
        return
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "does not tell what tracing cost" in done.stderr
    with pytest.raises(TraceError):
        summarize(str(path), net=True)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-5", "1e400", '"9"', "null", "[]", "9" * 5000, "true"])
def test_spoilt_numbers_cost_nothing(tmp_path, number):
    path = tmp_path / "x.json"
    path.write_text(
        '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a::b","pid":1,"tid":1,"ts":1,"dur":5}],"otherData":{"overhead":{"events":{"task":{"count":%s,"ns":%s,'
        '"inside_ns":%s},"\\u001b[2J":{"ns":5}},"events_ns":%s,"waited_ns":%s,"commands_ns":%s,"drain_cpu_ns":%s}}}' % ((number,) * 7)
    )
    done = subprocess.run([SUMMARY, "--subtract-overhead", path], capture_output=True, text=True)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr
    if done.returncode == 0:
        assert "a::b 1x avg 5" in done.stdout


# ---- which events lie in which slices ----

COSTS = {
    "task": (7, 20.0, 9.0),
    "call": (7, 16.0, 8.0),
    "mpi": (7, 31.0, 8.0),
    "mark": (7, 11.0, 0.0),
    "metadata": (7, 13.0, 0.0),
    "values": (7, 5.0, 0.0),
}
OVERHEAD = overhead.Overhead({kind: overhead.Cost(*cost) for kind, cost in COSTS.items()})


def random_slices(seed, tracks=3):
    """[(track, start, end, kind, depth, values)]: slices nest; a mark has start == end."""
    rng, rows = random.Random(seed), []

    def fill(track, start, end, depth):
        at = start
        while at < end and len(rows) < 400:
            at += rng.randrange(0, 40)
            length = rng.choice([0, 1, rng.randrange(1, 3000)])
            if at + length > end:
                return
            kind = rng.choice(["task", "task", "call", "mpi", "mark"])
            length = 0 if kind == "mark" else length
            rows.append((track, at, at + length, kind, depth, rng.randrange(3) if kind == "task" else 0))
            if length:
                fill(track, at + 1, at + length - 1, depth + 1)
            at += length + 1

    for track in range(tracks):
        fill(track, 0, 20_000, 0)
    return rows


def by_hand(rows):
    """The cost of each slice, pair by pair."""
    costs = []
    for track, start, end, kind, depth, values in rows:
        cost = COSTS[kind][2] + 13 * values if kind != "mark" else 0
        for other, at, stop, what, deeper, more in rows:
            is_inside = other == track and start <= at and stop <= end and (deeper > depth) and at < end
            cost += (COSTS[what][1] + 13 * more) if is_inside else 0
        costs.append(min(cost, end - start))
    return costs


@pytest.mark.parametrize("seed", range(6))
def test_costs_lie_where_their_events_are(seed):
    rows, net = random_slices(seed), overhead.NetTimes()
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    for i in order:
        track, start, end, kind, _, values = rows[i]
        net.add(track, start, end, kind, i, values)
    totals = net.totals(OVERHEAD)
    assert [totals[i] for i in range(len(rows))] == pytest.approx(by_hand(rows))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", range(3))
def test_tables_say_the_same(seed):
    duckdb = pytest.importorskip("duckdb")
    rows = random_slices(seed)
    connection = duckdb.connect()
    connection.execute(
        "create table slices(slice_id bigint, track_id bigint, trace_id bigint, kind varchar, name varchar, ts bigint, dur bigint, depth integer);"
        "create table args(slice_id bigint, key varchar); create table marks(track_id bigint, trace_id bigint, ts bigint);"
        "create table metadata(trace_id bigint, key varchar, value varchar)"
    )
    events = {kind: dict(zip(("count", "ns", "inside_ns"), cost)) for kind, cost in COSTS.items()}
    connection.execute("insert into metadata values (0, 'otherData.overhead', ?)", [json.dumps({"events": events})])
    connection.execute("insert into metadata values (1, 'otherData.overhead', '{\"events\":[1,'), (2, 'otherData.inputs', 'null')")
    connection.execute("insert into slices values (9999, 99, 1, 'task', 'another trace''s', 5, 100, 0)")
    for i, (track, start, end, kind, depth, values) in enumerate(rows):
        if kind == "mark":
            connection.execute("insert into marks values (?, 0, ?)", [track, start])
            continue
        name = {"mpi": "MPI_Send", "call": "clFinish", "task": "a::b"}[kind]
        connection.execute(
            "insert into slices values (?, ?, 0, ?, ?, ?, ?, ?)",
            [i, track, "call" if kind == "mpi" else kind, name, start, end - start, depth],
        )
        for n in range(values):
            connection.execute("insert into args values (?, ?)", [i, f"key{n}"])
        connection.execute("insert into args values (?, 'unfinished')", [i])
    assert set(overhead.subtract(connection)) == {0}
    found = dict(connection.execute("select slice_id, cost from slices_net").fetchall())
    wanted = by_hand(rows)
    assert found.pop(9999) == 0
    assert set(found) == {i for i, row in enumerate(rows) if row[3] != "mark"}
    assert {i: cost for i, cost in found.items()} == {i: pytest.approx(wanted[i], abs=0.5001) for i in found}
    assert connection.execute(
        "select count(*) from slices_net join slices using (slice_id) where net != dur - cost or net < 0"
    ).fetchone() == (0,)
