"""--metric-query: what the software GPU has counted follows from its log, to the last digit."""

import csv
import re
import struct
import subprocess
from itertools import product
from math import prod

import pytest

from conftest import APPS, XSTRACE, is_root
from gpu_log import DRIVER, SoftGPU

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")

FREQUENCY = 19200000
COLUMNS = (
    "GpuTime[ns] QueryBeginTime[ns] GpuCoreClocks[cycles] XVE_ACTIVE[%] KernelLaunches[events] WorkGroups[events] "
    "AvgGpuCoreFrequencyMHz[MHz] XVE_STALL[%] GPU_MEMORY_BYTE_READ[bytes] GPU_MEMORY_BYTE_READ_RATE[GBpS] ContextIdValid"
).split()
BEGIN, END = "zetCommandListAppendMetricQueryBegin", "zetCommandListAppendMetricQueryEnd"


def ns(ticks):
    return ticks * 1_000_000_000 // FREQUENCY


def single(value):
    """As a number of 32 bits."""
    return struct.unpack("f", struct.pack("f", value))[0]


MEMORY = ["GpuTime[ns]", "QueryBeginTime[ns]", "L3_BYTE_READ[bytes]", "L3_BUSY[%]"]


def sections(text, columns=COLUMNS):
    """[(device, rows)] of a file, each row by its columns; None between the runs of kernels."""
    found = []
    for part in re.split(r"\n=== Device #(\d+) Metrics ===\n", text)[1:]:
        if part.isdigit():
            found.append((int(part), []))
            continue
        assert part.startswith("\nKernel,GlobalInstanceId,SubDeviceId,") and part.endswith("\n\n")
        runs = part[1:].split("\n\n")
        head, _, runs[0] = runs[0].partition("\n")
        assert head.split(",") == ["Kernel", "GlobalInstanceId", "SubDeviceId", *columns]
        for run in runs[:-1]:
            found[-1][1].extend(csv.DictReader(run.splitlines(), head.split(",")))
        assert not runs[-1]
    return found


def expected(gpu, device=0, whole=True):
    """What each kernel's query counts, as the file has it, by when it began. Not whole: the program did not wait."""
    rows = {}
    open_, done = {}, {}
    for one in gpu.commands:
        if one.device != device:
            continue
        if one.name == BEGIN:
            open_[one.list] = one
            assert one.list not in done
        elif one.kind == "kernel":
            done[one.list] = one
        elif one.name == END:
            begin, kernel = open_.pop(one.list), done.pop(one.list)
            rows[ns(begin.start)] = [kernel.name, *compute([kernel], begin, one)]
    assert not whole or (not open_ and not done)
    return rows


def groups_of(kernel):
    return prod(map(int, kernel.groups.split(",")))


def compute(kernels, begin, end):
    """What ComputeBasic counts between two commands, as the file has it."""
    groups = sum(map(groups_of, kernels))
    length = ns(end.start - begin.start)
    active = single(sum(one.end - one.start for one in kernels) * 100 / (end.start - begin.start))
    launches = len(kernels)
    values = [length, ns(begin.start), length, f"{active:f}", launches, groups, 1000, f"{single(100 - active):f}", 64 * groups]
    return [str(value) for value in [*values, f"{64 * groups / length:f}", 1]]


def memory(kernels, begin, end):
    (kernel,) = kernels
    groups, busy = groups_of(kernel), kernel.end - kernel.start
    ticks = end.start - begin.start
    return [str(ns(ticks)), str(ns(begin.start)), str(128 * groups), f"{busy * 100 / ticks:f}"]


def programmed(kernels, begin, end):
    """KERNELS_SCALED:SCALE=7 and BUSY_PART:WHOLE=2.5."""
    (kernel,) = kernels
    busy, ticks = kernel.end - kernel.start, end.start - begin.start
    return [str(ns(ticks)), str(ns(begin.start)), "7", f"{busy / ticks * 2.5:f}"]


def expected_of(gpu, *groups):
    """The same of several groups, of which the first begins first and ends last."""
    rows, begun, done = {}, {}, {}
    for one in gpu.commands:
        if one.name == BEGIN:
            begun.setdefault(one.list, []).append(one)
        elif one.kind == "kernel" and one.list in begun:
            done[one.list] = (one, [])
        elif one.name == END:
            kernel, ends = done[one.list]
            ends.insert(0, one)
            if len(ends) < len(groups):
                continue
            begins = begun.pop(one.list)
            assert len(begins) == len(groups)
            values = [count([kernel], *pair) for count, pair in zip(groups, zip(begins, ends, strict=True), strict=True)]
            rows[ns(begins[0].start)] = [kernel.name, *sum(values, [])]
    assert not begun
    return rows


def shown(rows, columns=COLUMNS):
    return {
        int(row["QueryBeginTime[ns]"]): [row["Kernel"].split("[")[0], *(row[name] for name in columns)]
        for row in rows
    }


def measured(run, pattern=r"metrics\.\d+\.csv", columns=COLUMNS):
    (path,) = [p for p in run.cwd.iterdir() if re.search(pattern, p.name)]
    return sections(path.read_text(), columns)


@pytest.mark.parametrize("sync", [0, 1])
@pytest.mark.parametrize("events", ["none", "timed", "plain"])
@pytest.mark.parametrize("kind, order", list(product(("immediate", "regular"), ([], ["--in-order"]))), ids=str)
def test_values(xstrace, tmp_path, kind, order, events, sync):
    """Each run of each kernel has a row, in its own section, with what was counted in it alone."""
    if events == "plain" and not order:
        pytest.skip("such commands have no times")
    gpu = SoftGPU(tmp_path, SYNC=sync, STRICT=1)
    args = ["--list", kind, *order, "--events", events, "--kernels", 7, "--copies", 3, "--barriers", "--executions", 3]
    run = xstrace("-q -o rep.csv", "ze_matrix", args, env=gpu.env)
    bare = xstrace.bare("ze_matrix", args, env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (0, bare.out), run.err
    ((device, rows),) = measured(run)
    assert device == 0 and len(rows) == len(gpu.kernels) == 21
    assert shown(rows) == expected(gpu)
    assert not gpu.misuse and not [line for line in run.said if "WARNING" in line]
    for row in rows:
        groups = row["WorkGroups[events]"]
        assert row["Kernel"] == f"increment[SIMD32 {{{groups}; 1; 1}} {{1; 1; 1}}]" and row["SubDeviceId"] == "0"
    assert len({row["GlobalInstanceId"] for row in rows}) == 21


def test_counter_tracks(xstrace, tmp_path):
    """A row's number is the id of the kernel's slice; while that lasts, the device's counters have the row's values."""
    gpu = SoftGPU(tmp_path, DURATION_NS="increment=200000")
    run = xstrace("-q -o rep.csv --chrome-kernel-logging", "ze_matrix", ["--list", "immediate", "--kernels", 5], env=gpu.env)
    ((_, rows),) = measured(run)
    kernels = {one.args["id"]: one for one in run.trace.device if one.name.startswith("increment")}
    assert set(kernels) == {row["GlobalInstanceId"] for row in rows} and len(rows) == 5
    counters = {
        (e["pid"], e["name"], e["ts"]): e["args"]["value"] for e in run.trace.events if e["ph"] == "C"
    }
    for row in rows:
        one = kernels[row["GlobalInstanceId"]]
        for name in COLUMNS:
            value = counters.pop((one.track[0], name, one.start))
            assert f"{single(value) if '%' in name else value:{'f' if '.' in row[name] else 'd'}}" == row[name]
            assert counters.pop((one.track[0], name, one.end)) == 0
    assert not counters


# ---- several groups ----

OWN = ["GpuTime[ns]", "QueryBeginTime[ns]", "KERNELS_SCALED[events]", "BUSY_PART"]
SEVERAL = {
    "MemoryProfile": [memory],
    "ComputeBasic,MemoryTwin": [compute, memory],
    "MemoryProfile,ComputeBasic": [memory, compute],
    "KERNELS_SCALED:SCALE=7,BUSY_PART:WHOLE=2.5": [programmed],
    "BUSY_PART:WHOLE=0.25e1,ComputeBasic,MemoryProfile": [compute, memory, programmed],
}


def columns_of(groups, wanted):
    """Of one row: a column that an earlier group has, too, has its group's name before it."""
    known = {compute: COLUMNS, memory: MEMORY, programmed: OWN}
    names = [name for name in wanted.split(",") if ":" not in name]
    names += [";".join(name for name in wanted.split(",") if ":" in name)]
    columns = []
    for one, name in zip(groups, names, strict=False):
        columns += [f"{name}: {column}" if column in columns else column for column in known[one]]
    return columns


@pytest.mark.parametrize("kind", ["immediate", "regular"])
@pytest.mark.parametrize("wanted", SEVERAL)
def test_several_groups(xstrace, tmp_path, wanted, kind):
    """All that they count of a kernel is in one row, and in the counters of the trace."""
    gpu = SoftGPU(tmp_path, STRICT=1, PROGRAMMABLE="yes")
    groups = SEVERAL[wanted]
    columns = columns_of(groups, wanted)
    if "0.25e1" in wanted:
        columns.remove("KERNELS_SCALED[events]")
    args = ["--list", kind, "--kernels", 5, "--copies", 2, "--barriers", "--executions", 3]
    run = xstrace(["-q", "-g", wanted, "-o", "rep.csv", "--chrome-kernel-logging"], "ze_matrix", args, env=gpu.env)
    assert run.status == 0 and not gpu.misuse and not [line for line in run.said if "WARNING" in line]
    ((_, rows),) = measured(run, columns=columns)
    truth = expected_of(gpu, *groups)
    if "0.25e1" in wanted:
        truth = {at: [*row[:-2], row[-1]] for at, row in truth.items()}
    assert len(rows) == 15 and shown(rows, columns) == truth
    counters = {}
    for event in run.trace.events:
        if event["ph"] == "C":
            counters.setdefault(event["name"].replace(",", ";"), []).append(event["args"]["value"])
    assert set(counters) == set(columns)
    assert set(counters[columns[-1]]) >= {float(row[columns[-1]]) for row in rows if float(row[columns[-1]]) * 64 % 1 == 0}


@pytest.mark.parametrize(
    "fault, lost",
    [
        ("zetMetricQueryPoolCreate:2:out_of_device_memory", 1),
        ("zetMetricQueryCreate:65:out_of_host_memory", 0),
        ("zetCommandListAppendMetricQueryBegin:4:unknown", 1),
        ("zetCommandListAppendMetricQueryBegin:3:unknown", 1),
        ("zetCommandListAppendMetricQueryEnd:3:unknown", 1),
        ("zetMetricQueryGetData:4:unknown", 1),
        ("zetMetricGroupCalculateMultipleMetricValuesExp:4:unknown", 1),
        ("zetContextActivateMetricGroups:1:not_available", 5),
    ],
)
def test_faults_of_one_group(xstrace, tmp_path, fault, lost):
    """A kernel that one group does not count has no row; it is counted, and all others have theirs."""
    gpu = SoftGPU(tmp_path, SYNC=1, STRICT=1, FAULT=fault)
    run = xstrace("-q -g ComputeBasic,MemoryProfile -o rep.csv", "ze_matrix", ["--list", "immediate", "--kernels", 5], env=gpu.env)
    files = list(run.cwd.glob("rep.metrics.*"))
    columns = columns_of([compute, memory], "ComputeBasic,MemoryProfile")
    rows = sections(files[0].read_text(), columns)[0][1] if files else []
    warnings = [line for line in run.said if "WARNING" in line]
    assert run.status == 0 and len(gpu.kernels) == 5 and len(rows) == 5 - lost and not gpu.misuse
    assert len(warnings) == (lost > 0) and (lost != 1 or "1 kernel of process" in warnings[0])
    names = [one.name for one in gpu.commands]  # what began for one group alone has ended, too
    assert names.count(BEGIN) - names.count(END) == fault.count(END)


def test_perfetto_has_the_same(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("-q -o rep.csv --chrome-device-logging --format perfetto", "ze_matrix", ["--kernels", 2], env=gpu.env)
    ((_, rows),) = measured(run)
    (path,) = run.cwd.glob("*.pftrace")
    data = path.read_bytes()
    assert len(rows) == 2 and all(name.encode() in data for name in COLUMNS)


@pytest.mark.parametrize("sync, end", [("queue", "destroy"), ("none", "return")])
def test_thousands_of_kernels(xstrace, tmp_path, sync, end):
    """Queries are used again. Of a program that ends with kernels on their way, all that are over are measured."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=1000")
    args = ["--list", "immediate", "--kernels", 3000, "--kernel", "empty", "--sync", sync, "--end", end]
    run = xstrace("-q -o rep.csv", "ze_matrix", args, env=gpu.env)
    rows = measured(run)[0][1]
    missing = re.findall(r"(\d+) (?:kernel|command)s? of process", "\n".join(run.said))
    assert len(rows) + sum(map(int, missing)) == 3000 and len(rows) > 100
    assert sync == "none" or not missing
    truth = expected(gpu, whole=sync != "none")
    assert all(truth[begin] == row for begin, row in shown(rows).items())


def test_executed_again_without_waiting(xstrace, tmp_path):
    """Only the last execution's counts are there: the next one waits until they are read."""
    gpu = SoftGPU(tmp_path, DURATION_NS="increment=20000")
    args = ["--list", "regular", "--kernels", 3, "--executions", 50, "--sync", "none"]
    run = xstrace("-q -o rep.csv", "ze_matrix", args, env=gpu.env)
    ((_, rows),) = measured(run)
    assert run.status == 0 and len(rows) == 150 and shown(rows) == expected(gpu)


def test_waits_are_not_counted(xstrace, tmp_path):
    """Each kernel waits 20 ms for the host: nothing of that is in its time."""
    gpu = SoftGPU(tmp_path, STRICT=1)
    run = xstrace("-q -o rep.csv", "ze_metrics", [3, "wait"], env=gpu.env)
    ((_, rows),) = measured(run)
    assert run.status == 0 and len(rows) == 3 and shown(rows) == expected(gpu)
    assert all(int(row["GpuTime[ns]"]) < 15_000_000 for row in rows) and not gpu.misuse


def test_kernel_filters(xstrace, tmp_path):
    for options, count in (("--include-kernels incr", 4), ("--exclude-kernels incr", 0), ("--include-kernels other", 0)):
        gpu = SoftGPU(tmp_path, SYNC=1)
        gpu.path.unlink(missing_ok=True)
        run = xstrace(f"-q -o {count}{options[2]}.csv {options}", "ze_matrix", ["--kernels", 4], env=gpu.env)
        assert run.status == 0 and sum(c.name == BEGIN for c in gpu.commands) == count
        assert len(list(run.cwd.glob(f"{count}{options[2]}.metrics.*"))) == (count > 0)


def test_paused(xstrace, tmp_path):
    """What is not recorded is not measured."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("-q -o rep.csv --start-paused", "ze_matrix", ["--list", "immediate", "--kernels", 4], env=gpu.env)
    assert run.status == 0 and not list(run.cwd.glob("rep.metrics.*"))
    assert not [c for c in gpu.commands if c.name == BEGIN]


def two_devices(xstrace, options, env):
    script = f"{APPS}/ze_matrix --kernels 2 --device 1 && {APPS}/ze_matrix --kernels 3 --device 0"
    return xstrace(options, "sh", ["-c", script], env=env)


def test_devices_have_sections(xstrace, tmp_path):
    """One of a file, whatever the order of their kernels is; in a directory of results, a file."""
    gpu = SoftGPU(tmp_path, SYNC=1, DEVICES=2)
    run = two_devices(xstrace, "-q --result-dir out", gpu.env)
    files = sorted(p.relative_to(run.cwd / "out") for p in (run.cwd / "out").rglob("metrics_*.csv"))
    assert sorted(p.name for p in files) == ["metrics_0.csv", "metrics_1.csv"]
    assert all(re.fullmatch(r"ze_matrix\.\d+/metrics/metrics_\d\.csv", str(p)) for p in files)
    for path, count in ((files[0], 0), (files[1], 0)):
        text = (run.cwd / "out" / path).read_text()
        device = int(re.search(r"_(\d)\.csv", path.name)[1])
        assert text.startswith("\nKernel,")
        ((_, rows),) = sections(f"\n=== Device #{device} Metrics ===\n{text}")
        assert len(rows) + count == (2 if device else 3) and shown(rows) == expected(gpu, device)


def test_ranks(xstrace, tmp_path):
    """Each has files of its own; one that is not chosen is not measured."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    for rank in (3, 5):
        run = xstrace("-q -o rep.csv --ranks-to-sample 3", "ze_matrix", ["--kernels", 2], env=gpu.env | {"RANK": str(rank)})
        assert run.status == 0
    (path,) = run.cwd.glob("rep.metrics.*")
    assert re.fullmatch(r"rep\.metrics\.\d+\.3\.csv", path.name) and len(sections(path.read_text())[0][1]) == 2
    assert sum(c.name == BEGIN for c in gpu.commands) == 2


def test_without_a_file(xstrace, tmp_path):
    """As in unitrace: they follow on stderr."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("-q", "ze_matrix", ["--kernels", 3], env=gpu.env)
    text = run.err[run.err.index("\n=== Device #0 Metrics ===") :]
    text = text[: text.index("\n\n", text.rindex('"increment[')) + 2]
    ((_, rows),) = sections(text)
    assert shown(rows) == expected(gpu)


# ---- what is wrong is said before the program starts ----

WRONG = {
    "-q -g ComputeBasik": "--metric-query: no device has a metric group ComputeBasik; did you mean --group ComputeBasic?",
    "-q -g Nonsense": "--metric-query: no device has a metric group Nonsense; choose another one",
    "-q -g EuStallSampling": "--metric-query: the metric group EuStallSampling is for sampling, not for queries",
    "-q -k": "--metric-query measures each kernel",
    "-q --stall-sampling": "--metric-query measures each kernel",
    "-q -i 0": "--sampling-interval takes a number from 1",
    "-q --flight-recorder=1s --chrome-kernel-logging": "metrics have files of their own",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_wishes(xstrace, options):
    run = xstrace(options, "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (125, "") and len(run.said) == 1 and WRONG[options] in run.said[0]


@pytest.mark.parametrize("what, word", [("none", "the driver has no metric group"), ("empty", "ComputeBasic has no metric")])
def test_nothing_to_choose(xstrace, what, word):
    run = xstrace("-q", "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_METRICS": what})
    assert (run.status, run.out) == (125, "") and len(run.said) == 1 and word in run.said[0]


# ---- what is missing costs the metrics and nothing else ----


def test_without_a_driver(xstrace):
    run = xstrace("-q", "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": "/nonexistent"})
    assert (run.status, run.out) == (0, "ran\n") and "--metric-query: nothing is measured: Level Zero" in run.said[0]


@pytest.mark.parametrize("places", ["--output-dir-path a/b", "--output-dir-path new -o /no/such/report"])
def test_without_a_driver_nor_a_place(xstrace, places):
    """What refuses the run comes before what says that it runs, and leaves nothing behind."""
    run = xstrace(f"-k {places}", "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": "/nonexistent"})
    assert (run.status, run.out, len(run.said)) == (125, "", 1) and "No such file or directory" in run.said[0]
    assert not (xstrace.cwd / "new").exists()


FAULTS = {
    "zetMetricGroupGet:1:unsupported_feature": "does not tell of the metric group",
    "zetContextActivateMetricGroups:1:not_available": "does not activate the metric group",
    "zetMetricQueryPoolCreate:1:out_of_device_memory": "1 kernel of process",
    "zetMetricQueryCreate:64:out_of_host_memory": None,
    "zetCommandListAppendMetricQueryBegin:2:unknown": "1 kernel of process",
    "zetCommandListAppendMetricQueryEnd:2:unknown": "1 kernel of process",
    "zetMetricQueryGetData:2:unknown": "1 kernel of process",
    "zetMetricGroupCalculateMultipleMetricValuesExp:2:unknown": "1 kernel of process",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["immediate", "regular"])
def test_faults(xstrace, tmp_path, fault, kind):
    gpu = SoftGPU(tmp_path, SYNC=1, FAULT=fault)
    args = ["--list", kind, "--kernels", 5]
    env = dict(gpu.env)
    if fault.startswith("zetMetricGroupGet"):  # before the program starts all is well
        env["SOFTGPU_FAULT"] = ""
        run = xstrace("-q -o rep.csv", "env", [f"SOFTGPU_FAULT={fault}", APPS / "ze_matrix", *args], env=env)
    else:
        run = xstrace("-q -o rep.csv", "ze_matrix", args, env=env)
    bare = xstrace.bare("ze_matrix", args, env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    warnings = [line for line in run.said if "WARNING" in line]
    assert (run.status, run.out) == (0, bare.out), run.err
    assert len(gpu.kernels) == 5
    if FAULTS[fault] is None:
        assert not warnings
    else:
        assert len(warnings) == 1 and FAULTS[fault] in warnings[0]
    files = list(run.cwd.glob("rep.metrics.*"))
    rows = sections(files[0].read_text())[0][1] if files else []
    lost = 5 if fault.startswith(("zetMetricGroupGet", "zetContext")) else int("1 kernel" in str(FAULTS[fault]))
    assert len(rows) == 5 - lost


def test_a_program_with_metrics_of_its_own(xstrace, tmp_path):
    """It gets the counters that it asks for; what came before is measured."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace("-q -o rep.csv", "ze_metrics", [5], env=gpu.env | {"ZET_ENABLE_METRICS": "1"})
    assert (run.status, run.out) == (0, "counted 1 launches\n"), run.err
    assert len(measured(run)[0][1]) == 5
    warnings = "\n".join(line for line in run.said if "WARNING" in line)
    assert "uses the hardware's counters itself" in warnings and "5 kernels of process" in warnings


@pytest.mark.parametrize("kind", ["tables", "symbols"])
def test_static_loader(xstrace, tmp_path, kind):
    """Where handles are not those that the functions for metrics know (tables, with loader 1.8), these are not called."""
    run = xstrace("-q", "ze_static", [kind], env=SoftGPU(tmp_path, SYNC=1).env)
    bare = xstrace.bare("ze_static", [kind], env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (bare.status, bare.out) == (0, bare.out)
    told = "has no functions for metrics that go with the others" in "\n".join(run.said)
    assert kind == "tables" or not told


def expected_between(gpu):
    """What was counted of all that ran between a query's begin and end: {begin: row}."""
    rows, begun = {}, {}
    for one in gpu.commands:
        if one.name == BEGIN:
            assert one.list not in begun
            begun[one.list] = one
        elif one.name == END:
            begin = begun.pop(one.list)
            kernels = [kernel for kernel in gpu.kernels if begin.seq < kernel.seq < one.seq]
            alone = [kernel.list for kernel in kernels] == [one.list]
            rows[ns(begin.start)] = [kernels[0].name if alone else "graph 1", *compute(kernels, begin, one)]
    assert not begun
    return rows


@pytest.mark.parametrize("options", [[], ["--in-order"], ["--event"]], ids=str)
@pytest.mark.parametrize("mode", ["lists", "newer", "graph", "graph --older", "graph --into", "fork", "mutable"])
def test_what_is_executed_as_a_whole(xstrace, tmp_path, mode, options):
    """Kernels of lists, also of those that are changed, have their rows; a graph has one for each launch."""
    gpu = SoftGPU(tmp_path, SYNC=1, STRICT=1)
    args = [*mode.split(), 4, *options]
    run = xstrace("-q -o rep.csv --chrome-kernel-logging", "ze_replay", args, env=gpu.env)
    bare = xstrace.bare("ze_replay", args, env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (0, bare.out) and not gpu.misuse and not [line for line in run.said if "WARNING" in line]
    ((_, rows),) = measured(run)
    truth = expected_between(gpu)
    assert shown(rows) == truth
    graphs = [row for row in rows if row["Kernel"].startswith("graph")]
    in_graphs = sum(int(row["KernelLaunches[events]"]) for row in graphs)
    assert len(graphs) == (4 if mode.startswith(("graph", "fork")) else 0) and len(rows) - len(graphs) + in_graphs == len(gpu.kernels)
    kernels = {one.args["id"]: one for one in run.trace.device if one.name.startswith("empty")}
    assert {row["GlobalInstanceId"] for row in rows} <= set(kernels)
    counters = [e for e in run.trace.events if e["ph"] == "C" and e["name"] == "KernelLaunches[events]"]
    for row in graphs:
        at = kernels[row["GlobalInstanceId"]].start
        assert [e["args"]["value"] for e in counters if e["ts"] == at] == [int(row["KernelLaunches[events]"])]


def test_numbers_of_what_is_no_kernel(xstrace, tmp_path):
    """What began before it ends behind it, and counts for nothing."""
    gpu = SoftGPU(tmp_path, SYNC=1, STRICT=1)
    run = xstrace("-q -o rep.csv", "ze_replay", ["mutable", 2, "--numbers"], env=gpu.env)
    ((_, rows),) = measured(run)
    assert run.status == 0 and len(rows) == len(gpu.kernels) == 24 and not gpu.misuse
    commands = [c for c in gpu.commands if c.execution == 1 and c.name != "barrier"]
    kinds = [{BEGIN: "begin", END: "end"}.get(c.name, c.kind) for c in commands]
    assert kinds == ["begin", "barrier", "end"] * 5 + ["begin", "kernel", "end"] * 3


def test_a_graphs_counters_last_as_long_as_it(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path, SYNC=1, DURATION_NS="empty=300000")
    run = xstrace("-q -o rep.csv --chrome-kernel-logging", "ze_replay", ["graph", 2], env=gpu.env)
    rows = [row for row in measured(run)[0][1] if row["Kernel"].startswith("graph")]
    kernels = sorted((one for one in run.trace.device if one.name.startswith("empty")), key=lambda one: int(one.args["id"]))
    counters = {(e["name"], e["ts"]): e["args"]["value"] for e in run.trace.events if e["ph"] == "C"}
    for row in rows:
        first, _, last = (one for one in kernels if 0 <= int(one.args["id"]) - int(row["GlobalInstanceId"]) < 3)
        assert counters["KernelLaunches[events]", first.start] == 3
        # durations are rounded to ns, so an end may differ by one from that of what began later
        assert 0 in [counters.get(("KernelLaunches[events]", last.end + off)) for off in (-1, 0, 1)]
    assert len(rows) == 2


@pytest.mark.parametrize("sync", [0, 1])
def test_graphs_on_their_way(xstrace, tmp_path, sync):
    """Launched again and again without waiting, by a driver that lets them run meanwhile."""
    gpu = SoftGPU(tmp_path, SYNC=sync, STRICT=1, DURATION_NS="empty=20000")
    run = xstrace("-q -o rep.csv", "ze_replay", ["graph", 200], env=gpu.env)
    ((_, rows),) = measured(run)
    assert run.status == 0 and shown(rows) == expected_between(gpu) and sum(row["Kernel"] == "graph 1" for row in rows) == 200
    assert not gpu.misuse and not [line for line in run.said if "WARNING" in line]


@pytest.mark.parametrize("fault", ["zetCommandListAppendMetricQueryBegin:103:unknown", "zetCommandListAppendMetricQueryEnd:103:unknown"])
def test_a_graph_that_is_not_measured(xstrace, tmp_path, fault):
    gpu = SoftGPU(tmp_path, SYNC=1, STRICT=1, FAULT=fault)
    run = xstrace("-q -o rep.csv", "ze_replay", ["graph", 4], env=gpu.env)
    ((_, rows),) = measured(run)
    (line,) = [line for line in run.said if "WARNING" in line]
    assert run.status == 0 and sum(row["Kernel"] == "graph 1" for row in rows) == 3 and "1 kernel of process" in line


@pytest.mark.parametrize("fault", ["zetCommandListAppendMetricQueryBegin:2:unknown", "zetCommandListAppendMetricQueryEnd:2:unknown"])
def test_a_changed_kernel_that_is_not_measured(xstrace, tmp_path, fault):
    """Its query cannot begin before it has its number; or cannot end."""
    gpu = SoftGPU(tmp_path, SYNC=1, STRICT=1, FAULT=fault)
    run = xstrace("-q -o rep.csv", "ze_replay", ["mutable", 4], env=gpu.env)
    ((_, rows),) = measured(run)
    (line,) = [line for line in run.said if "WARNING" in line]
    assert run.status == 0 and len(rows) == 32 and len(gpu.kernels) == 48 and "1 kernel of process" in line


PROGRAMS = [("ze_fail", []), ("ze_forgets", [5]), ("ze_again", ["signalled", 20]), ("ze_again", ["host", 20]), ("ze_again", ["gone", 3])]
PROGRAMS += [("ze_fork", ["leave"]), ("ze_fork", ["exit"]), ("ze_sealed", [3]), ("ze_dlopen", [])]
PROGRAMS += [("ze_matrix", ["--list", kind, "--end", end]) for kind in ("immediate", "regular") for end in ("_exit", "abort", "kill", "exec")]


@pytest.mark.parametrize("program, args", PROGRAMS, ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)))
def test_programs_are_as_without(xstrace, tmp_path, program, args):
    gpu = SoftGPU(tmp_path)
    run = xstrace("-q -o rep.csv", program, args, env=gpu.env, timeout=60)
    bare = xstrace.bare(program, args, env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)}, timeout=60)
    assert (run.status, sorted(run.out.splitlines())) == (bare.status, sorted(bare.out.splitlines()))
    assert all("destroyed before" in line for line in gpu.misuse)  # which some do by themselves


# ---- permissions ----


@pytest.mark.skipif(not is_root, reason="not root")
@pytest.mark.parametrize("name, driver", [("perf_stream_paranoid", "i915"), ("observation_paranoid", "xe")])
@pytest.mark.parametrize("option", ["-q", "-k", "--stall-sampling"])
def test_permission_is_named(xstrace, tmp_path, name, driver, option):
    """With the command that mends it; where the user may read them, no word."""
    (tmp_path / driver).mkdir()
    tmp_path.chmod(0o755)
    lines = {}
    for value, user in product((0, 1), ("--ambient-caps=-all", "--bounding-set=-all --inh-caps=-all")):
        (tmp_path / driver / name).write_text(f"{value}\n")
        caps = "" if user.startswith("--amb") else f"setpriv {user}"
        script = f"mount --bind {tmp_path} /proc/sys/dev && exec {caps} {XSTRACE} {option} -o {xstrace.cwd}/rep.csv echo ran"
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, cwd=xstrace.cwd, env={"PATH": "/usr/bin:/bin", "ZE_ENABLE_ALT_DRIVERS": str(DRIVER)}
        )
        assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
        lines[value, bool(caps)] = [line for line in done.stderr.splitlines() if "sysctl" in line]
    assert [lines[key] for key in ((0, False), (0, True), (1, False))] == [[], [], []]
    (line,) = lines[1, True]
    assert line.endswith(f"sudo sysctl dev.{driver}.{name}=0")
