"""--metric-query with CUDA: what the software CUDA has counted of each kernel follows from its log."""

import collections
import csv
import os
import re
import signal
import subprocess

import pytest
from conftest import ROOT, XSTRACE, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from gpu_log import DRIVER, SoftGPU

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no CUPTI headers")

BASIC = {
    "gpu__time_duration.sum[ns]": lambda k: k.end - k.start,
    "sm__cycles_elapsed.max[cycle]": lambda k: k.end - k.start,
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed[%]": lambda k: 100,
    "sm__warps_active.avg.pct_of_peak_sustained_active[%]": lambda k: k.blocks * k.threads % 1000 / 10,
    "sm__inst_executed.sum[inst]": lambda k: k.blocks * ((k.threads + 31) // 32) * 10,
    "sm__inst_executed.avg.per_cycle_active[inst/cycle]": lambda k: k.blocks * k.threads % 1000 / 10,
    "dram__throughput.avg.pct_of_peak_sustained_elapsed[%]": lambda k: 96 * k.blocks * k.threads / (k.end - k.start) * 100 / 1024,
    "dram__bytes_read.sum[byte]": lambda k: 64 * k.blocks * k.threads,
    "dram__bytes_write.sum[byte]": lambda k: 32 * k.blocks * k.threads,
    "lts__t_bytes.sum[byte]": lambda k: 96 * k.blocks * k.threads,
    "l1tex__t_bytes.sum[byte]": lambda k: 96 * k.blocks * k.threads,
}
UNMEASURED = re.compile(r"\[WARNING\] (\d+) kernels? of process \d+ \(\S+\) (?:has|have) no metrics")


def product_of(text):
    x, y, z = map(int, text.split(","))
    return x * y * z


def kernels(cuda):
    """By process and correlation id."""
    found = {}
    for kernel in cuda.kernels:
        kernel.blocks, kernel.threads = product_of(kernel.grid), product_of(kernel.block)
        assert kernel.graph or (kernel.pid, kernel.correlation) not in found
        found[kernel.pid, kernel.correlation] = kernel
    return found


def rows(run):
    """Of the files: (pid, device, row)."""
    found = []
    for path in run.cwd.glob("*.metrics.*.csv"):
        pid = int(path.name.split(".")[2])
        for part in path.read_text().split("\n=== Device #")[1:]:
            device, _, text = part.partition(" Metrics ===\n\n")
            lines = [line for line in text.splitlines() if line]
            columns = lines[0].split(",")
            assert len(columns) == len(set(columns)), columns  # a row would have the last one alone
            found += [(pid, int(device), row) for row in csv.DictReader(lines)]
    return found


def shown(run):
    """The correlation ids of kernels in the traces, by process and the number that rows of metrics have."""
    return {
        (trace.pid, int(event.args["id"])): event.args["correlation"]
        for trace in run.traces
        for event in trace.device
        if "global" in event.args
    }


def unmeasured(run):
    return sum(int(count) for count in UNMEASURED.findall("\n".join(run.said)))


def check(run, cuda, columns=BASIC):
    """Each row has what its own kernel did; returns how many there are."""
    truth, ids = kernels(cuda), shown(run)
    seen = set()
    for pid, device, row in rows(run):
        correlation = ids[pid, int(row["GlobalInstanceId"])]
        kernel = truth[pid, correlation]
        assert kernel.device == device and row["Kernel"].split("[")[0] == kernel.name
        assert list(row)[3:] == list(columns)
        for name, value in columns.items():
            assert row[name] == f"{value(kernel):f}", name
        assert (pid, correlation) not in seen
        seen.add((pid, correlation))
    return len(seen)


def measured(xstrace, cuda, app, arguments=(), options=()):
    run = xstrace([*"-q -o rep.csv --chrome-kernel-logging".split(), *options], app, arguments, env=cuda.env)
    assert run.status == 0
    return run


@pytest.mark.parametrize("sync", [0, 1])
@pytest.mark.parametrize("version", [12, 13])
def test_values(xstrace, tmp_path, version, sync):
    """Each kernel has a row, with what was counted in it alone."""
    cuda = SoftCUDA(tmp_path, version, SYNC=sync)
    run = measured(xstrace, cuda, "cuda_streams", ["--kernels", 20, "--streams", 3])
    assert check(run, cuda) == len(cuda.kernels) == 60 and unmeasured(run) == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("threads", [1, 4])
def test_batches_threads_and_devices(xstrace, tmp_path, threads, devices):
    """More kernels than the profiler has room for, of threads that launch at once."""
    cuda = SoftCUDA(tmp_path, DEVICES=devices)
    run = measured(xstrace, cuda, "cuda_streams", ["--kernels", 200, "--threads", threads, "--devices", devices])
    assert check(run, cuda) + unmeasured(run) == len(cuda.kernels)
    assert unmeasured(run) == 0
    assert {device for _, device, _ in rows(run)} == {one.device for one in cuda.kernels}


@pytest.mark.parametrize("option", ["-q", "--stall-sampling"])
def test_threads_of_cupti_get_no_signals(xstrace, tmp_path, option):
    """Those that it makes for us: the program's handlers may leave by a jump."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace([option, "-o", "rep.csv"], "cuda_streams", env=cuda.env)
    assert rows(run) and not any("signals" in note for note in cuda.notes)


def test_children(xstrace, tmp_path):
    """Each process has its own counters."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_fork")
    assert check(run, cuda) == len(cuda.kernels) and len({pid for pid, _, _ in rows(run)}) == 2


@pytest.mark.parametrize("app", ["cuda_reset", "cuda_driver"])
def test_contexts_that_end(xstrace, tmp_path, app):
    """What a context has counted is read before it goes."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, app)
    assert check(run, cuda) == len(cuda.kernels) > 0 and unmeasured(run) == 0


def test_counters_in_the_trace(xstrace, tmp_path):
    """The same values, from each kernel's start to its end."""
    cuda = SoftCUDA(tmp_path, SYNC=1)
    run = measured(xstrace, cuda, "cuda_streams", ["--streams", 1])
    assert len(kernels(cuda)) == 5
    events = [one for one in run.trace.device if "global" in one.args]
    for name, value in BASIC.items():
        points = [(e["ts"], e["args"]["value"]) for e in run.trace.events if e["ph"] == "C" and e["name"] == name]
        expected = []
        for event, kernel in zip(events, cuda.kernels, strict=True):
            expected += [(event.start, value(kernel)), (event.end, 0)]
        assert points == [(pytest.approx(ts, abs=1e-3), pytest.approx(v, rel=1e-15)) for ts, v in expected]


def test_metrics_by_name(xstrace, tmp_path):
    """In place of a group, names of CUPTI's own."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["-g", "sc__kernels.sum,dram__bytes.sum"])
    columns = {
        "sc__kernels.sum": lambda kernel: 1,
        "dram__bytes.sum[byte]": lambda kernel: 96 * kernel.blocks * kernel.threads,
    }
    assert check(run, cuda, columns) == len(cuda.kernels)


FLOPS = {
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum[inst]": lambda k, times=times: times * k.blocks * k.threads
    for name, times in [(f"{kind}{op}", {"fadd": 1, "ffma": 2}.get(kind + op, 0)) for kind in "hfd" for op in ("add", "mul", "fma")]
}


@pytest.mark.parametrize("group", ["ComputeBasic,Flops", "Flops,ComputeBasic", "sc__kernels.sum,Flops", "Flops,dram__bytes.sum,Flops"])
def test_several_groups(xstrace, tmp_path, group):
    """And metrics by name: they are one group, which has each metric once."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["-g", group])
    flops = {"gpu__time_duration.sum[ns]": lambda k: k.end - k.start} | FLOPS
    known = {"ComputeBasic": BASIC, "Flops": flops, "sc__kernels.sum": {"sc__kernels.sum": lambda kernel: 1}}
    known["dram__bytes.sum"] = {"dram__bytes.sum[byte]": lambda kernel: 96 * kernel.blocks * kernel.threads}
    columns = {}
    for name in group.split(","):
        columns |= {column: value for column, value in known[name].items() if column not in columns}
    assert check(run, cuda, columns) == len(cuda.kernels) and unmeasured(run) == 0


@pytest.mark.parametrize("group, said", [("ComputeBasic,Flop", "no device has a metric group Flop; did you mean --group Flops?")])
def test_one_of_several_groups_that_there_is_not(xstrace, tmp_path, group, said):
    cuda = SoftCUDA(tmp_path)
    run = xstrace(["-q", "-g", group], "cuda_streams", env=cuda.env)
    assert run.status == 125 and len(run.said) == 1 and said in run.said[0] and not cuda.commands


@pytest.mark.parametrize("group", ["dram__no_such.sum", "gpu__time_duration.sum,", "__"])
def test_metrics_that_the_gpu_does_not_have(xstrace, tmp_path, group):
    """Said in one line; the program runs, and the rest is recorded."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["-g", group])
    assert any("does not tell of the metric group (--group) for queries" in line for line in run.said)
    assert len(shown(run)) == len(cuda.kernels) and not rows(run)


def test_a_group_of_which_the_gpu_has_a_part(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["-g", "MemoryBasic"])
    part = {name: value for name, value in BASIC.items() if name.startswith(("gpu__", "dram__", "lts__", "l1tex__"))}
    order = ["gpu__time", "dram__bytes_read", "dram__bytes_write", "dram__throughput", "lts__t_bytes", "l1tex__t_bytes"]
    columns = {name: value for start in order for name, value in part.items() if name.startswith(start)}
    assert check(run, cuda, columns) == len(cuda.kernels) > 0


def test_a_group_that_there_is_not(xstrace, tmp_path):
    """Said before the program starts, with the nearest name."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace("-q -g ComputBasic", "cuda_streams", env=cuda.env)
    assert run.status == 125 and "did you mean --group ComputeBasic?" in run.said[0] and not cuda.commands


def test_list(tmp_path):
    env = os.environ | SoftCUDA(tmp_path).env
    out = subprocess.run([XSTRACE, "--metric-list"], env=env, capture_output=True, text=True, check=True).stdout
    assert "CUDA, group ComputeBasic (query):\n  gpu__time_duration.sum\n" in out
    assert "Level Zero" not in out


def test_filter(xstrace, tmp_path):
    """What a filter leaves out has no row, and is not missed."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["--exclude-kernels", "increment"])
    assert not rows(run) and unmeasured(run) == 0 and cuda.kernels


def test_graphs(xstrace, tmp_path):
    """CUPTI makes no range of a graph: each launch of one is told as not measured, and its kernels are in the trace."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_graphs", [20, 7])
    plain = [kernel for kernel in cuda.kernels if not kernel.graph]
    graphs = collections.Counter(kernel.correlation for kernel in cuda.kernels if kernel.graph)
    ids = shown(run)
    assert len(plain) == 7 and {one.correlation for one in plain} == {ids[pid, int(row["GlobalInstanceId"])] for pid, _, row in rows(run)}
    assert collections.Counter(c for c in ids.values() if c in graphs) == graphs and len(graphs) > 3
    assert unmeasured(run) == len(graphs) and "open_commands" not in run.trace.other


def test_times_of_counted_kernels(xstrace, tmp_path):
    """CUPTI tells none: each is as long as its counter says, also where that is not asked for, and ends with its call."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_streams", options=["-g", "dram__bytes.sum"])
    truth = kernels(cuda)
    work = [one for one in run.trace.device if "registers" in one.args]
    assert len(work) == len(truth) == len(rows(run))
    for one in work:
        kernel = truth[run.trace.pid, one.args["correlation"]]
        assert one.end - one.start == kernel.end - kernel.start


@pytest.mark.parametrize("threads", [1, 4])
def test_captures(xstrace, tmp_path, threads):
    """Streams are captured from the first call on, also by others while a thread launches: none is ended, and what runs is shown."""
    cuda = SoftCUDA(tmp_path)
    run = measured(xstrace, cuda, "cuda_captures", [threads, 40])
    run.check_expected("kernels")
    assert len(cuda.kernels) == 4 * 40 * threads and rows(run)
    # a graph's two kernels are one launch, and what is captured is none
    assert len(rows(run)) + unmeasured(run) == 3 * 40 * threads


def profiler_functions():
    text = (ROOT / "common/profiler_abi.h").read_text()
    return ["cupti" + name for name in re.findall(r"^\s*F\((\w+), xs_prof", text, re.M)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("function", profiler_functions())
def test_functions_that_fail(xstrace, tmp_path, function):
    """Once, or always: the program is as it is, and each kernel has a row or is counted, unless one line says that none has."""
    for when in ("1:", "2:", ""):
        home = tmp_path / when.strip(":")
        home.mkdir(exist_ok=True)
        cuda = SoftCUDA(home, FAULT=f"{function}:{when}35")
        run = measured(xstrace, cuda, "cuda_streams", ["--kernels", 400])
        untimed = run.trace.other.get("untimed_commands", 0)  # of what is counted nothing else tells the time
        assert sum("registers" in one.args for one in run.trace.device) + untimed == len(cuda.kernels)
        count = sum(pid == run.trace.pid for pid, _, _ in rows(run))
        refused = any("kernels there are not measured" in line for line in run.said)
        assert len(cuda.kernels) == 800 and (refused or count + unmeasured(run) == 800), run.said
        for path in run.cwd.iterdir():
            path.unlink()


@pytest.mark.parametrize("how", ["KILL", "SEGV"])
def test_killed(xstrace, tmp_path, how):
    """What was counted and not read is told."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace.start("-q -o rep.csv --chrome-kernel-logging", "cuda_loop", [10**7], env=cuda.env)
    wait_until(lambda: cuda.path.exists() and cuda.path.stat().st_size > 200_000)
    os.kill(run.child("cuda_loop"), getattr(signal, "SIG" + how))
    run.finish()
    assert 0 <= check(run, cuda) + unmeasured(run) - len(cuda.kernels) <= 1


# ---- --stall-sampling ----

REASONS = {  # as the software CUDA numbers them
    "Active[Events]": 1,
    "LongScoreboardStall[Events]": 2,
    "ShortScoreboardStall[Events]": 4,
    "WaitStall[Events]": 5,
    "MathPipeThrottleStall[Events]": 6,
}


def stalls(run):
    """{(pid, device, kernel, address): {reason: events}} of the files."""
    found = {}
    for pid, device, row in rows(run):
        place = pid, device, row.pop("Kernel"), int(row.pop("IP[Address]"), 16)
        assert place not in found
        found[place] = {name: int(value) for name, value in row.items()}
    return found


def expected_stalls(cuda):
    found = {}
    kernels(cuda)  # counts their blocks
    for kernel in cuda.kernels:
        for place in range(8):
            at = found.setdefault((kernel.pid, kernel.device, kernel.name, 16 * place), dict.fromkeys(REASONS, 0))
            for name, reason in REASONS.items():
                at[name] += (place * 7 + reason * 3) % 5 * kernel.blocks
    return found


@pytest.mark.parametrize(
    "app, arguments",
    [
        ("cuda_streams", ["--kernels", 100, "--threads", 4, "--devices", 2]),
        ("cuda_reset", []),
        ("cuda_graphs", []),
        ("cuda_fork", []),
        ("cuda_loop", [20000]),
    ],
)
def test_stalls(xstrace, tmp_path, app, arguments):
    """Each place of each kernel, and no kernel waits for another because of us."""
    cuda = SoftCUDA(tmp_path, DEVICES=2)
    run = xstrace("--stall-sampling -o rep.csv", app, arguments, env=cuda.env)
    assert run.status == 0 and stalls(run) == expected_stalls(cuda)
    assert not any("WARNING" in line or "measured" in line for line in run.said), run.said


def test_stalls_of_some_kernels(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path)
    run = xstrace("--stall-sampling -o rep.csv --exclude-kernels increment", "cuda_streams", env=cuda.env)
    assert not stalls(run) and cuda.kernels


@pytest.mark.parametrize("interval, power", [(1, 10), (50, 16), (10**6, 30)])
def test_interval_of_stalls(xstrace, tmp_path, interval, power):
    """A power of two of cycles, of 1.5 GHz."""
    cuda = SoftCUDA(tmp_path)
    xstrace(f"--stall-sampling -i {interval} -o rep.csv", "cuda_streams", env=cuda.env)
    assert cuda.notes == [f"sampling period {power}"]


@pytest.mark.parametrize("setting", ["PC_DROPPED", "PC_FULL"])
def test_samples_that_are_lost(xstrace, tmp_path, setting):
    cuda = SoftCUDA(tmp_path, **{setting: 1})
    run = xstrace("--stall-sampling -o rep.csv", "cuda_streams", env=cuda.env)
    assert any("of instructions" in line and "at least" in line for line in run.said), run.said


def test_sampling_functions_that_fail(xstrace, tmp_path):
    text = (ROOT / "common/profiler_abi.h").read_text()
    functions = re.findall(r"^\s*F\((\w+), xs_pc", text, re.M)
    assert len(functions) == 8
    for function in functions:
        (tmp_path / function).mkdir()
        cuda = SoftCUDA(tmp_path / function, FAULT=f"cupti{function}:35")
        run = xstrace("--stall-sampling -o rep.csv --chrome-kernel-logging", "cuda_streams", env=cuda.env)
        run.check_expected("kernels")
        told = any("not measured" in line for line in run.said)
        assert run.status == 0 and (told or stalls(run) in ({}, expected_stalls(cuda))), function
        for path in run.cwd.iterdir():
            path.unlink()


# ---- programs that do odd things ----

HOSTILE = "launch:300 exec:50 sigterm:50 threads sigstack deferred:30 async:30 pending:2 fork dlclose subscriber external:5 toggle turns:300 reset limit:64"


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("option", ["-q", "--stall-sampling"])
@pytest.mark.parametrize("mode", HOSTILE.split())
def test_hostile_programs(xstrace, tmp_path, mode, option):
    """They do and print what they do without us, and end by themselves."""
    cuda = SoftCUDA(tmp_path, SYNC=1)
    del cuda.env["SOFTCUDA_LOG"]
    bare = xstrace.bare("cuda_hostile", mode.split(":"), env=cuda.env)
    run = xstrace([option, "-o", "rep.csv", "--chrome-kernel-logging"], "cuda_hostile", mode.split(":"), env=cuda.env)
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    if option == "-q" and mode.startswith(("launch", "threads")):
        run.check_expected("kernels")
        assert len(rows(run)) + unmeasured(run) == run.trace.count("kernels")


@pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
@pytest.mark.parametrize("options", [["-o", "rep.csv"], ["--result-dir", "out"]], ids=str)
def test_devices_of_two_apis(xstrace, tmp_path, options):
    """Of one program: each counts its devices from 0, in files of metrics a number is one device's."""
    cuda, gpu = SoftCUDA(tmp_path), SoftGPU(tmp_path)
    run = xstrace(["-q", *options], "ze_cuda", [5], env=cuda.env | gpu.env)
    if "-o" in options:
        (path,) = run.cwd.glob("rep.metrics.*.csv")
        parts = re.split(r"\n=== Device #(\d+) Metrics ===\n", path.read_text())[1:]
        texts = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    else:
        texts = {int(path.stem[8:]): path.read_text() for path in (run.cwd / "out").rglob("metrics_*.csv")}
    assert (run.status, run.out) == (0, "launched 5 and 5 kernels\n") and set(texts) == {0, 1}
    kernels = {number: [re.match(r'"\w+', line)[0] for line in text.splitlines() if line.startswith('"')] for number, text in texts.items()}
    assert sorted(kernels.values()) == [['"empty'] * 5, ['"nothing'] * 5]
    assert all(text.count("Kernel,GlobalInstanceId") == 1 for text in texts.values())
    (line,) = [line for line in run.said if "is device #1 in files of metrics" in line]
