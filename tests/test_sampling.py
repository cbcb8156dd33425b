"""--metric-sampling and --stall-sampling: what the software GPU counts by time follows from its log, to the last digit."""

import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import APPS, BUILD, ROOT, XSTRACE
from gpu_log import DRIVER, SoftGPU
from test_metrics import COLUMNS, FREQUENCY, ns, single

pytestmark = pytest.mark.skipif(not (BUILD / "sampler/xstrace-metrics").exists(), reason="no Level Zero headers")

PERIOD = 500  # us


@pytest.fixture
def gpu(tmp_path):
    """A software GPU whose streamers see what all processes execute; kernels last 2 ms."""

    def make(**settings):
        return SoftGPU(tmp_path, **({"SHM": tmp_path / "shm", "DURATION_NS": "increment=2000000"} | settings))

    return make


def sections(text, columns=COLUMNS):
    """{device: [(kernel, id, [row by column])]}, as the file has them: what belongs together stands together."""
    found = {}
    parts = re.split(r"\n=== Device #(\d+) Metrics ===\n", text)[1:]
    for device, part in zip(parts[::2], parts[1::2], strict=True):
        blocks = part.lstrip("\n").rstrip("\n").split("\n\n")
        head, _, blocks[0] = blocks[0].partition("\n")
        assert head.split(",") == ["Kernel", "GlobalInstanceId", *columns]
        found[int(device)] = instances = []
        for block in filter(None, blocks):
            rows = list(csv.DictReader(block.splitlines(), head.split(",")))
            (key,) = {(row["Kernel"], int(row["GlobalInstanceId"])) for row in rows}
            instances.append((*key, rows))
    return found


def sampled(run):
    (path,) = [p for p in run.cwd.iterdir() if re.fullmatch(r"rep\.metrics\.\d+(\.\d+)?\.csv", p.name)]
    return sections(path.read_text())


def ticks(nanoseconds):
    return -(-nanoseconds * FREQUENCY // 1_000_000_000)


def truth(gpu, begin, device=0, period=PERIOD):
    """What the device counts from that time on for a period, as the file has it."""
    start = ticks(begin)
    end = start + period * FREQUENCY // 1_000_000
    busy = launches = groups = 0
    for one in gpu.kernels:
        if one.device != device:
            continue
        busy += max(0, min(one.end, end) - max(one.start, start))
        if start < one.end <= end:
            launches += 1
            groups += int(one.groups.split(",")[0])
    length = ns(end - start)
    active = single(min(busy, end - start) * 100 / (end - start))
    values = [length, begin, length, f"{active:f}", launches, groups, 1000, f"{single(100 - active):f}", 64 * groups]
    return [str(value) for value in [*values, f"{64 * groups / length:f}", int(launches != 0)]]


def check(gpu, instances, device=0, pids=None):
    """Each row is true, and stands with the kernel that ran then; each sample of a kernel is there."""
    begins = set()
    left = [one for one in gpu.kernels if one.device == device and (not pids or one.pid in pids)]
    for kernel, _, rows in instances:
        times = [int(row["QueryBeginTime[ns]"]) for row in rows]
        begins.update(times)
        assert all([row[name] for name in COLUMNS] == truth(gpu, at, device) for row, at in zip(rows, times, strict=True))
        ran = [one for one in left if one.start <= ticks(times[0]) and ticks(times[-1]) <= one.end]
        ran = [one for one in ran if re.match(rf'{one.name}\[SIMD32 {{{one.groups.split(",")[0]}; ', kernel)]
        assert ran, (kernel, times)
        left.remove(ran[0])
        # the one before and the one behind are not this kernel's
        step = PERIOD * FREQUENCY // 1_000_000
        assert ticks(times[0]) - step < ran[0].start and ticks(times[-1]) + step > ran[0].end
        assert [ticks(at) - ticks(times[0]) for at in times] == [step * i for i in range(len(times))]
    return left, begins


@pytest.mark.parametrize("kind", ["regular", "immediate"])
@pytest.mark.parametrize("sync", [0, 1])
def test_values(xstrace, gpu, kind, sync):
    """Kernels that overlap have a sample each; what was counted is true to the last digit."""
    gpu = gpu(SYNC=sync)
    args = ["--list", kind, "--kernels", 9, "--copies", 2, "--executions", 2]
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "ze_matrix", args, env=gpu.env)
    bare = xstrace.bare("ze_matrix", args, env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (0, bare.out), run.err
    found = sampled(run)
    left, _ = check(gpu, found[0])
    assert list(found) == [0] and not left and len(found[0]) == len(gpu.kernels) == 18
    assert not [line for line in run.said if "WARNING" in line]


@pytest.mark.parametrize("options", ["", "--format kineto"])
def test_counter_tracks(xstrace, gpu, options):
    """The sampling process's trace has each sample when it began; ids are those of the slices in the program's."""
    gpu = gpu()
    run = xstrace(f"-k -i {PERIOD} -o rep.csv --chrome-kernel-logging {options}", "ze_matrix", ["--kernels", 4], env=gpu.env)
    assert run.status == 0, run.err
    traces = {trace.path.name.split(".")[0]: trace for trace in run.traces}
    slices = {int(one.args["id"]): one for one in traces["ze_matrix"].device} if not options else {}
    counters = {}
    for event in traces["xstrace-metrics"].events:
        if event["ph"] == "C":
            counters.setdefault(event["name"], []).append((event["ts"], event["args"]["value"]))
    assert set(counters) == set(COLUMNS)
    by_time = {value: at for at, value in counters["QueryBeginTime[ns]"]}
    names = traces["xstrace-metrics"].names("process_name").values()
    assert options or any("DEVICE<" in name and "[SoftGPU 0]" in name for name in names), names
    for _, number, rows in sampled(run)[0]:
        for row in rows:
            at = by_time[float(row["QueryBeginTime[ns]"])]
            assert not slices or slices[number].start - 20000 <= at <= slices[number].end + 20000
            for name in COLUMNS:
                value = dict(counters[name])[at]
                assert f"{single(value) if '%' in name else value:{'f' if '.' in row[name] else '.0f'}}" == row[name]


def test_perfetto_has_the_same(xstrace, gpu):
    run = xstrace("-k -o rep.csv --chrome-device-logging --format perfetto", "ze_matrix", ["--kernels", 2], env=gpu().env)
    (path,) = run.cwd.glob("xstrace-metrics.*.pftrace")
    data = path.read_bytes()
    assert run.status == 0 and all(name.encode() in data for name in COLUMNS)


def test_several_processes_and_devices(xstrace, gpu):
    """Two programs at a time on each of two devices: what counts is when their kernels ran, not who ran them."""
    gpu = gpu(DEVICES=2)
    one = f"{APPS}/ze_matrix --list immediate --in-order --kernels 5 --device"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "sh", ["-c", f"{one} 0 & {one} 0 & {one} 1 & {one} 1 & wait"], env=gpu.env)
    assert run.status == 0, run.err
    found = sampled(run)
    assert sorted(found) == [0, 1] and len({k.pid for k in gpu.kernels}) == 4
    for device in (0, 1):
        left, _ = check(gpu, found[device], device)
        assert not left and len(found[device]) == 10


def test_devices_to_sample(xstrace, gpu):
    gpu = gpu(DEVICES=3)
    one = f"{APPS}/ze_matrix --kernels 2 --device"
    script = f"{one} 0; {one} 1; {one} 2"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv --devices-to-sample 1,2", "sh", ["-c", script], env=gpu.env)
    assert run.status == 0 and sorted(sampled(run)) == [1, 2]


def test_result_dir(xstrace, gpu):
    """A file for each device, in the sampling process's directory."""
    gpu = gpu(DEVICES=2)
    script = f"{APPS}/ze_matrix --kernels 2 --device 0; {APPS}/ze_matrix --kernels 3 --device 1"
    run = xstrace(f"-k -i {PERIOD} --result-dir out", "sh", ["-c", script], env=gpu.env)
    files = sorted((run.cwd / "out").rglob("metrics_*.csv"))
    assert [(p.name, p.parent.name, p.parent.parent.name.split(".")[0]) for p in files] == [
        (f"metrics_{i}.csv", "metrics", "xstrace-metrics") for i in (0, 1)
    ]
    for device, path in enumerate(files):
        left, _ = check(gpu, sections(f"\n=== Device #{device} Metrics ===\n{path.read_text()}")[device], device)
        assert not left


def test_without_a_file(xstrace, gpu):
    gpu = gpu()
    run = xstrace(f"-k -i {PERIOD}", "ze_matrix", ["--kernels", 2], env=gpu.env)
    text = run.err[run.err.index("\n=== Device #0 Metrics ===") :]
    text = text[: text.index("\n\n", text.rindex('"increment[')) + 2]
    assert not check(gpu, sections(text)[0])[0]


def test_idle_samples(xstrace, gpu):
    """With them each period of the device has a row: while it ran in the kernel's place, else in one of its own."""
    gpu = gpu()
    script = f"{APPS}/ze_matrix --kernels 1; sleep 0.02; {APPS}/ze_matrix --kernels 1"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv --idle-sampling", "sh", ["-c", script], env=gpu.env)
    found = sampled(run)[0]
    idle = [one for one in found if one[0].startswith("NoKernel")]
    left, begins = check(gpu, [one for one in found if one not in idle])
    assert not left and [one[0] for one in idle] == ["NoKernel(Before increment[SIMD32 {1; 1; 1} {1; 1; 1}])"] * 2 + ["NoKernel"] * (len(idle) - 2)
    assert len(idle) >= 2 and len({one[1] for one in idle}) == len(idle) and all(one[1] > 1 for one in idle)
    for _, _, rows in idle:
        for row in rows:
            at = int(row["QueryBeginTime[ns]"])
            begins.add(at)
            assert [row[name] for name in COLUMNS] == truth(gpu, at)
            assert not [one for one in gpu.kernels if one.start <= ticks(at) <= one.end]
    times = sorted(map(ticks, begins))
    step = PERIOD * FREQUENCY // 1_000_000
    assert times == [times[0] + step * i for i in range(len(times))] and len(times) > 40


def test_kernel_filters_and_pauses(xstrace, gpu):
    """What is not recorded has no samples."""
    for options, count in (("--include-kernels incr", 3), ("--exclude-kernels incr", 0), ("--start-paused", 0)):
        env = gpu().env
        name = options.strip("-").replace(" ", "")
        run = xstrace(f"-k -i {PERIOD} -o {name}.csv {options}", "ze_matrix", ["--kernels", 3], env=env)
        files = list(run.cwd.glob(f"{name}.metrics.*"))
        assert run.status == 0 and len(files) == (count > 0)
        assert not files or len(sections(files[0].read_text())[0]) == count


def test_ranks(xstrace, gpu):
    """Of a machine's ranks one samples; or those that were chosen."""
    gpu = gpu()
    for rank, options, count in ((0, "", 1), (1, "", 0), (1, "--ranks-to-sample 1", 1), (2, "--ranks-to-sample 1", 0)):
        name = f"r{rank}{options[-1:]}"
        env = gpu.env | {"PMI_RANK": str(rank), "PMI_SIZE": "3", "MPI_LOCALRANKID": str(rank)}
        run = xstrace(f"-k -i {PERIOD} -o {name}.csv {options}", "ze_matrix", ["--kernels", 2], env=env)
        assert run.status == 0 and len(list(run.cwd.glob(f"{name}.metrics.*.{rank}.csv"))) == count, run.err


@pytest.mark.parametrize("option", ["0", "1"])
def test_reset_event_on_device(xstrace, gpu, option):
    gpu = gpu()
    args = ["--list", "immediate", "--in-order", "--events", "timed", "--device-reset", "--sync", "none", "--kernels", 4]
    run = xstrace(f"-k -i {PERIOD} -o rep.csv --reset-event-on-device {option}", "ze_matrix", args, env=gpu.env)
    assert run.status == 0 and not check(gpu, sampled(run)[0])[0]


# ---- what devices and their drivers do ----


def test_reports_come_late(xstrace, gpu):
    """Some tenths of a second behind the kernels, whose records have been read by then."""
    gpu = gpu(REPORTS_LATE_US=300000)
    script = f"{APPS}/ze_matrix --list immediate --in-order --kernels 40; sleep 0.7"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "sh", ["-c", script], env=gpu.env)
    left, _ = check(gpu, sampled(run)[0])
    assert run.status == 0 and not left


@pytest.mark.parametrize("settings", [{"REPORTS_DROP": 7}, {"REPORTS_ROOM": 3}], ids=["lost", "overflow"])
def test_reports_are_lost(xstrace, gpu, settings):
    """Their number is told in one line; the others are true."""
    gpu = gpu(**settings)
    args = ["--list", "immediate", "--in-order", "--kernels", 30]
    run = xstrace("-k -i 200 -o rep.csv --idle-sampling", "ze_matrix", args, env=gpu.env)
    (line,) = [line for line in run.said if "WARNING" in line]
    lost, reads = map(int, re.search(r"reports of device #0 are lost: (\d+) .* and (\d+) reads", line).groups())
    rows = [row for _, _, rows in sampled(run)[0] for row in rows]
    times = sorted({ticks(int(row["QueryBeginTime[ns]"])) for row in rows})
    step = 200 * FREQUENCY // 1_000_000
    assert all([r[name] for name in COLUMNS] == truth(gpu, int(r["QueryBeginTime[ns]"]), period=200) for r in rows)
    assert run.status == 0 and lost == (times[-1] - times[0]) // step + 1 - len(times) > 0 and reads > 0
    if "REPORTS_DROP" in settings:
        assert len(times) // 6 - 1 <= lost <= len(times) // 6 + 1


@pytest.mark.parametrize("bits", [22, 24, 32])
def test_times_wrap(xstrace, gpu, bits):
    """Reports whose clock has few bits (22: 218 ms) get times that go on."""
    gpu = gpu(METRIC_BITS=bits)
    args = ["--list", "immediate", "--in-order", "--kernels", 150]
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "ze_matrix", args, env=gpu.env)
    left, _ = check(gpu, sampled(run)[0])
    assert run.status == 0 and not left


def test_kernel_times_wrap(xstrace, gpu):
    """Those of kernels have 22 bits, 218 ms: they wrap while the programs run."""
    gpu = gpu(BITS=22, METRIC_BITS=30)
    script = f"for i in 1 2 3 4 5 6 7; do {APPS}/ze_matrix --list immediate --in-order --kernels 4; sleep 0.05; done"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "sh", ["-c", script], env=gpu.env)
    left, _ = check(gpu, sampled(run)[0])
    assert run.status == 0 and not left


FAULTS = {
    "zetMetricGroupGet:1:unsupported_feature": "it has no such group of metrics",
    "zetMetricGet:1:unknown": "its driver does not tell when a report was made",
    "zetContextActivateMetricGroups:1:not_available": "as when another tool uses the counters",
    "zetMetricStreamerReadData:2:device_lost": "its reports cannot be read any more",
    "zetMetricGroupCalculateMultipleMetricValuesExp:1:unknown": "1 reports of device #0 cannot be understood",
    "zeContextCreate:1:out_of_host_memory": None,
    "zeDeviceGetGlobalTimestamps:1:device_lost": None,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(tmp_path, gpu, fault):
    """The program runs as without; the sampling process says in one line what it misses."""
    gpu = gpu()
    env = os.environ | gpu.env | {"SOFTGPU_FAULT": fault}
    program = ["env", "-u", "SOFTGPU_FAULT", APPS / "ze_matrix", "--list", "immediate", "--in-order", "--kernels", "20"]
    done = subprocess.run([XSTRACE, "-k", "-i", str(PERIOD), "-o", "rep.csv", *program], env=env, cwd=tmp_path, capture_output=True, text=True)
    # the look before the start meets some faults, too, and then says so
    lines = [line for line in done.stderr.splitlines() if "WARNING" in line or line.startswith("xstrace:")]
    assert done.returncode == 0 and "launched 20 kernels" in done.stdout, done.stderr
    if FAULTS[fault]:
        assert any(FAULTS[fault] in line for line in lines), done.stderr
    assert len(lines) <= 2


def test_another_tool_samples(tmp_path, gpu):
    """The driver opens no streamer: one line."""
    gpu = gpu()
    faults = ",".join(["zetMetricStreamerOpen:1:not_available"] * 5)
    program = ["env", "-u", "SOFTGPU_FAULT", APPS / "ze_matrix", "--kernels", "2"]
    done = subprocess.run(
        [XSTRACE, "-k", "-o", "rep.csv", *program], env=os.environ | gpu.env | {"SOFTGPU_FAULT": faults}, cwd=tmp_path, capture_output=True, text=True
    )
    lines = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert done.returncode == 0 and len(lines) == 1 and "another tool samples the device" in lines[0], done.stderr
    assert not list(tmp_path.glob("rep.metrics.*"))


@pytest.mark.parametrize("who", ["application", "sampler", "launcher"])
def test_killed(tmp_path, gpu, who):
    """What was sampled by then is written. The program's kernels are known when 64 more have been launched."""
    gpu = gpu(SYNC=1)
    app = [APPS / "ze_matrix", "--list", "immediate", "--in-order", "--kernels", "1000", "--sync", "none"]
    run = subprocess.Popen(
        [XSTRACE, "-k", "-i", str(PERIOD), "-o", "rep.csv", *app], env=os.environ | gpu.env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 30
    while time.monotonic() < end and not (gpu.path.exists() and gpu.path.read_text().count("increment") > 150):
        time.sleep(0.02)
    pids = {int(line.split()[0]): line for line in subprocess.run(["ps", "--ppid", str(run.pid), "-o", "pid,args"], capture_output=True, text=True).stdout.splitlines()[1:]}
    (victim,) = {
        "application": [pid for pid, line in pids.items() if "ze_matrix" in line],
        "sampler": [pid for pid, line in pids.items() if "xstrace-metrics" in line],
        "launcher": [run.pid],
    }[who]
    os.kill(victim, signal.SIGKILL)
    _, said = run.communicate(timeout=60)
    assert (run.returncode == 0) == (who == "sampler")
    end = time.monotonic() + 30
    while time.monotonic() < end and not [p for p in tmp_path.glob("rep.metrics.*") if p.stat().st_size]:
        time.sleep(0.05)
    time.sleep(0.2 if who == "launcher" else 0)
    (path,) = tmp_path.glob("rep.metrics.*")
    found = sections(path.read_text())[0]
    assert len(found) > 3, said
    assert all([r[name] for name in COLUMNS] == truth(gpu, int(r["QueryBeginTime[ns]"])) for _, _, rows in found[1:5] for r in rows)


def test_constant_memory(tmp_path, gpu):
    """400,000 samples of 104 bytes, 40 MB, are in nobody's memory but the page cache's."""
    gpu = gpu(DURATION_NS="increment=100000")
    app = ["sh", "-c", f"for i in 1 2 3 4; do {APPS}/ze_matrix --list immediate --in-order --kernels 4000 --kernel empty; sleep 1; done"]
    run = subprocess.Popen([XSTRACE, "-k", "-i", "10", "-o", "rep.csv", *app], env=os.environ | gpu.env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = {}
    while run.poll() is None:
        for line in subprocess.run(["ps", "-eo", "ppid,pid,comm"], capture_output=True, text=True).stdout.splitlines()[1:]:
            parent, pid, name = line.split(None, 2)
            if int(parent) == run.pid and name in ("xstrace-metrics", "xstrace-drain"):
                with contextlib.suppress(OSError):
                    kib = re.search(r"RssAnon:\s*(\d+)", (Path("/proc") / pid / "status").read_text())
                    most[name] = max(most.get(name, 0), int(kib[1]) if kib else 0)
        time.sleep(0.05)
    assert run.returncode == 0 and list(tmp_path.glob("rep.metrics.*"))
    assert set(most) == {"xstrace-metrics", "xstrace-drain"} and all(0 < kib < 20480 for kib in most.values()), most


def test_the_first_kernel_counts(xstrace, gpu):
    """The application starts when the streamer is open, however long that takes."""
    gpu = gpu(DURATION_NS="increment=2000000", OPEN_US=300000)
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "ze_matrix", ["--kernels", 1], env=gpu.env)
    assert run.status == 0 and len(sampled(run)[0]) == 1


def test_the_last_process_counts(xstrace, gpu):
    """A process that outlives the program, and says late what ran: its kernels have their samples."""
    gpu = gpu()
    script = f"{APPS}/ze_matrix --list immediate --in-order --kernels 100 >/dev/null & sleep 0.05"
    run = xstrace(f"-k -i {PERIOD} -o rep.csv", "sh", ["-c", script], env=gpu.env)
    end = time.monotonic() + 30
    while time.monotonic() < end and not any(p.stat().st_size for p in run.cwd.glob("rep.metrics.*")):
        time.sleep(0.02)
    assert run.status == 0 and 5 < len(sampled(run)[0]) < 100


# ---- stalls ----

REASONS = "Active ControlStall PipeStall SendStall DistStall SbidStall SyncStall InstrFetchStall OtherStall".split()


def stalls(path):
    """{kernel: {address: [count of each reason]}} of a file with one device."""
    text = path.read_text()
    head, *rows = text.removeprefix("\n=== Device #0 Metrics ===\n\n").splitlines()
    assert head.split(",") == ["Kernel", "IP[Address]", *(f"{reason}[Events]" for reason in REASONS)]
    found = {}
    for kernel, address, *counts in csv.reader(rows):
        found.setdefault(kernel, {})[int(address, 16)] = list(map(int, counts))
    return found


def predicted(total):
    """What so many samples of the software GPU are: at each of four instructions in turn, and for each of nine reasons."""
    found = {8 * i: [0] * len(REASONS) for i in range(4)}
    for number in range(total):
        found[8 * (number % 4)][number % 9] += 1
    return {address: counts for address, counts in found.items() if any(counts)}


@pytest.mark.parametrize("kind", ["regular", "immediate"])
@pytest.mark.parametrize("interval", [50, 200])
def test_stalls(xstrace, gpu, interval, kind):
    """Each sample is at its instruction, with its reason."""
    gpu = gpu()
    args = ["--list", kind, "--in-order", "--kernels", 20]
    run = xstrace(f"--stall-sampling -i {interval} -o rep.csv", "ze_matrix", args, env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = stalls(path)
    assert run.status == 0 and list(found) == ["increment"]
    total = sum(map(sum, found["increment"].values()))
    period = interval * FREQUENCY // 1_000_000
    assert found["increment"] == predicted(total)
    assert sum((one.end - one.start) // period for one in gpu.kernels) <= total <= sum((one.end - one.start) // period + 1 for one in gpu.kernels)
    assert not [line for line in run.said if "WARNING" in line]


def test_stalls_of_kernels(xstrace, gpu):
    """Those of two kernels, of two processes, are apart."""
    gpu = gpu(DURATION_NS="increment=2000000,empty=4000000")
    one = f"{APPS}/ze_matrix --list immediate --in-order --kernels 5 --kernel"
    run = xstrace("--stall-sampling -o rep.csv --exclude-kernels spin", "sh", ["-c", f"{one} empty; {one} increment"], env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = stalls(path)
    total = {name: sum(map(sum, rows.values())) for name, rows in found.items()}
    assert run.status == 0 and set(total) == {"empty", "increment"}
    assert 5 * 80 - 5 <= total["empty"] <= 5 * 80 + 5 and 5 * 40 - 5 <= total["increment"] <= 5 * 40 + 5
    assert sum(total.values()) == sum(map(sum, predicted(sum(total.values())).values()))


@pytest.mark.parametrize("other", ["empty", "spin"])
def test_filtered_kernels_have_no_stalls(xstrace, gpu, other):
    """And give none to those that lie before them in their module."""
    gpu = gpu(DURATION_NS="increment=2000000,empty=4000000,spin=4000000")
    one = f"{APPS}/ze_matrix --list immediate --in-order --kernels 5 --kernel"
    run = xstrace(f"--stall-sampling -o rep.csv --exclude-kernels {other}", "sh", ["-c", f"{one} {other}; {one} increment"], env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = stalls(path)
    assert run.status == 0 and set(found) == {"increment"} and not [line for line in run.said if "WARNING" in line]
    assert 5 * 40 - 5 <= sum(map(sum, found["increment"].values())) <= 5 * 40 + 5


ASSEMBLY = """//.kernel increment
// B000: Preds:{},  Succs:{}
// Line 7:	sum += at[i];
// File: increment.cpp
/* [00000000] */ (W) load.ugm.d32 (32|M0) r10 [r4:2] {$1} // {Compacted}
/* [00000008] */ add (32|M0) r12.0<1>:d r10.0<1;1,0>:d 1 {$1.dst} // {Compacted}
/* [00000010] */ mov (32|M0) r14.0<1>:d r12.0<1;1,0>:d // {Compacted}
/* [00000018] */ mov (32|M0) r16.0<1>:d r12.0<1;1,0>:d // {Compacted}
"""


def test_stalls_are_joined_with_a_dump(xstrace, gpu, tmp_path):
    """analyzeperfmetrics.py reads the file, and finds the instruction, its cause and its line in the compiler's dump."""
    gpu = gpu()
    run = xstrace("--stall-sampling -o rep.csv", "ze_matrix", ["--list", "immediate", "--in-order", "--kernels", 20], env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump/OCL_asm1_simd32.asm").write_text(ASSEMBLY)
    script = [sys.executable, ROOT / "scripts/analyzeperfmetrics.py", "-k", "increment", "-s", tmp_path / "dump", "-r", tmp_path / "report.txt"]
    done = subprocess.run([*script, "-o", tmp_path / "chart.html", path], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "report.txt").read_text()
    assert "Kernel: increment" in report and "/* [00000008] */" in report and "Line 7" in report and "is stalled potentially by" in report


# ---- what is wrong is said before the program starts ----

WRONG = {
    "-k -g ComputeBasik": "--metric-sampling: no device has a metric group ComputeBasik; did you mean --group ComputeBasic?",
    "-k -i 0": "--sampling-interval takes a number from 1",
    "-k -i five": "--sampling-interval takes a number, not 'five'",
    "-k -i 4294968": "--sampling-interval takes a number from 1",
    "-k --stall-sampling": "give one of them",
    "-k --flight-recorder=1s --chrome-kernel-logging": "metrics have files of their own",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_wishes(xstrace, options):
    run = xstrace(options, "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": str(DRIVER)})
    assert (run.status, run.out) == (125, "") and len(run.said) == 1 and WRONG[options] in run.said[0]


def test_without_a_driver(xstrace):
    run = xstrace("-k", "echo", ["ran"], env={"ZE_ENABLE_ALT_DRIVERS": "/nonexistent"})
    assert (run.status, run.out) == (0, "ran\n") and "--metric-sampling: nothing is measured: Level Zero" in run.said[0]
    assert len([line for line in run.said if "sampl" in line]) == 1


# ---- several groups at once ----

MEMORY = "GpuTime[ns] QueryBeginTime[ns] L3_BYTE_READ[bytes] L3_BUSY[%]".split()


def memory_truth(gpu, begin, device=0):
    """The same for MemoryProfile."""
    start = ticks(begin)
    end = start + PERIOD * FREQUENCY // 1_000_000
    kernels = [one for one in gpu.kernels if one.device == device]
    busy = sum(max(0, min(one.end, end) - max(one.start, start)) for one in kernels)
    groups = sum(int(one.groups.split(",")[0]) for one in kernels if start < one.end <= end)
    return list(map(str, [ns(end - start), begin, 128 * groups, f"{min(busy, end - start) * 100 / (end - start):f}"]))


def apart(text, device=0):
    """{columns: {(kernel, id): rows}} of a device whose groups have sections of their own."""
    found = {}
    for part in re.split(rf"\n=== Device #{device} Metrics ===\n", text)[1:]:
        columns = part.lstrip("\n").split("\n")[0].split(",")[2:]
        found[tuple(columns)] = sections(f"\n=== Device #{device} Metrics ===\n{part}", columns)[device]
    return found


@pytest.mark.parametrize("group", ["ComputeBasic,MemoryProfile", "MemoryProfile,ComputeBasic"])
def test_groups_at_once(xstrace, gpu, group):
    """Each has a section, in the order in which they are named, with its samples of the same kernels; counters have the group's name."""
    gpu = gpu()
    args = ["--list", "immediate", "--in-order", "--kernels", 8]
    run = xstrace(f"-k -i {PERIOD} -g {group} -o rep.csv --chrome-kernel-logging", "ze_matrix", args, env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = apart(path.read_text())
    columns = {"ComputeBasic": COLUMNS, "MemoryProfile": MEMORY}
    assert run.status == 0 and list(found) == [tuple(columns[name]) for name in group.split(",")]
    compute, memory = found[tuple(COLUMNS)], found[tuple(MEMORY)]
    left, _ = check(gpu, compute)
    assert not left and [one[:2] for one in compute] == [one[:2] for one in memory] and len(compute) == 8
    for kernel, _, rows in memory:
        times = [int(row["QueryBeginTime[ns]"]) for row in rows]
        assert [[row[name] for name in MEMORY] for row in rows] == [memory_truth(gpu, at) for at in times]
        assert [one for one in gpu.kernels if one.start <= ticks(times[0]) and ticks(times[-1]) <= one.end and one.name in kernel]
    (trace,) = [trace for trace in run.traces if trace.path.name.startswith("xstrace-metrics")]
    counters = {}
    for event in trace.events:
        if event["ph"] == "C":
            counters.setdefault(event["name"], set()).add(event["args"]["value"])
    assert set(counters) == {f"{one}: {name}" for one, names in columns.items() for name in names}
    for name, rows in (("ComputeBasic", compute), ("MemoryProfile", memory)):
        assert {int(row["QueryBeginTime[ns]"]) for _, _, of in rows for row in of} <= counters[f"{name}: QueryBeginTime[ns]"]
    assert not [line for line in run.said if "WARNING" in line]


def test_groups_at_once_on_devices(xstrace, gpu):
    """With --result-dir each group of each device has a file; the charts' script finds a metric in the section that has it."""
    gpu = gpu(DEVICES=2)
    script = f"{APPS}/ze_matrix --kernels 2 --device 0; {APPS}/ze_matrix --kernels 3 --device 1"
    run = xstrace(f"-k -i {PERIOD} -g ComputeBasic,MemoryProfile --result-dir out", "sh", ["-c", script], env=gpu.env)
    files = {path.name: path for path in (run.cwd / "out").rglob("metrics_*.csv")}
    assert run.status == 0 and sorted(files) == ["metrics_0-2.csv", "metrics_0.csv", "metrics_1-2.csv", "metrics_1.csv"]
    for name, path in files.items():
        device = int(name[8])
        text = f"\n=== Device #{device} Metrics ===\n{path.read_text()}"
        if "-2" not in name:
            assert not check(gpu, sections(text)[device], device)[0]
            continue
        instances = sections(text, MEMORY)[device]
        rows = [row for _, _, of in instances for row in of]
        assert len(instances) == 2 + device
        assert all([row[one] for one in MEMORY] == memory_truth(gpu, int(row["QueryBeginTime[ns]"]), device) for row in rows)


def test_a_group_and_programmable_metrics(xstrace, gpu):
    gpu = gpu(PROGRAMMABLE="yes")
    group = "KERNELS_SCALED:SCALE=7,MemoryProfile,BUSY_PART,ComputeBasic"
    run = xstrace(["-k", "-i", str(PERIOD), "-g", group, "-o", "rep.csv"], "ze_matrix", ["--kernels", 6], env=gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = apart(path.read_text())
    columns = ("GpuTime[ns]", "QueryBeginTime[ns]", "KERNELS_SCALED[events]", "BUSY_PART")
    assert run.status == 0 and list(found) == [tuple(MEMORY), tuple(COLUMNS), columns]
    assert not check(gpu, found[tuple(COLUMNS)])[0]
    for _, _, rows in found[columns]:
        for row in rows:
            ended, busy, length = programmed(row)
            assert (row["KERNELS_SCALED[events]"], row["BUSY_PART"]) == (str(7 * ended(gpu)), f"{busy(gpu) / length:f}")


@pytest.mark.parametrize("fault", ["zetMetricStreamerReadData:4:device_lost", "zetMetricStreamerOpen:2:not_available"])
def test_a_fault_of_one_group_is_the_devices(tmp_path, gpu, fault):
    """One line; the program runs, and what was sampled by then is written."""
    gpu = gpu()
    program = ["env", "-u", "SOFTGPU_FAULT", APPS / "ze_matrix", "--list", "immediate", "--in-order", "--kernels", "20"]
    command = [XSTRACE, "-k", "-i", str(PERIOD), "-g", "ComputeBasic,MemoryProfile", "-o", "rep.csv", *program]
    faults = ",".join([fault] * (1 if "Read" in fault else 5))  # it is opened in several ways
    done = subprocess.run(command, env=os.environ | gpu.env | {"SOFTGPU_FAULT": faults}, cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if "device #0 is not sampled" in line]
    assert done.returncode == 0 and "launched 20 kernels" in done.stdout and len(lines) == 1, done.stderr
    assert ("cannot be read any more" if "Read" in fault else "the driver opens no streamer") in lines[0]
    assert "Read" in fault or not list(tmp_path.glob("rep.metrics.*"))


@pytest.mark.parametrize(
    "option, group, settings, said",
    [
        ("-k", "MemoryTwin,MemoryProfile", {}, "no device samples the metric groups MemoryTwin,MemoryProfile at once"),
        ("-k", "ComputeBasic,MemoryTwin,MemoryProfile", {"DEVICES": 2}, "at once; these go together: ComputeBasic,MemoryTwin; or MemoryProfile"),
        ("-k", "ComputeBasic,ComputeBasic", {}, "no device samples the metric groups ComputeBasic,ComputeBasic at once"),
        ("-k", "ComputeBasic,MemoryProfile", {"CONCURRENT": "none"}, "ComputeBasic,MemoryProfile at once; no two of them go together"),
        ("-k", "ComputeBasic,MemoryProfil", {}, "no device has a metric group MemoryProfil; did you mean --group MemoryProfile?"),
        ("-k", "ComputeBasic,", {}, "no device has a metric group ;"),
        ("-k", "ComputeBasic,EuStallSampling", {}, "EuStallSampling goes with no other one"),
        ("-q", "ComputeBasic,ComputeBasic", {}, "no device counts the metric groups ComputeBasic,ComputeBasic at once"),
        ("-q", "MemoryTwin,ComputeBasic,MemoryProfile", {}, "at once; these go together: MemoryTwin,ComputeBasic; or MemoryProfile"),
        ("-q", "MemoryTwin,MemoryProfile,ComputeBasic", {"CONCURRENT": "sets"}, "these go together: MemoryTwin,ComputeBasic; or MemoryProfile"),
        ("-q", "ComputeBasic,MemoryProfile", {"CONCURRENT": "none"}, "no device counts the metric groups ComputeBasic,MemoryProfile at once; no two"),
        ("-q", "ComputeBasic,EuStallSampling", {}, "the metric group EuStallSampling is for sampling, not for queries"),
    ],
)
def test_groups_that_do_not_go_together(xstrace, gpu, option, group, settings, said):
    gpu = gpu(**settings)
    run = xstrace([option, "-g", group, "-o", "rep.csv"], "ze_matrix", env=gpu.env)
    assert (run.status, run.out) == (125, "") and len(run.said) == 1 and said in run.said[0] and not gpu.kernels


# ---- programmable metrics ----


def programmed(one):
    """What the software GPU counts of its programmable metrics in the period of a row."""
    start = ticks(int(one["QueryBeginTime[ns]"]))
    end = start + PERIOD * FREQUENCY // 1_000_000

    def ended(gpu):
        return sum(start < kernel.end <= end for kernel in gpu.kernels)

    def busy(gpu):
        return min(sum(max(0, min(kernel.end, end) - max(kernel.start, start)) for kernel in gpu.kernels), end - start)

    return ended, busy, end - start


@pytest.mark.parametrize(
    "group, scale, whole",
    [("KERNELS_SCALED:SCALE=7,BUSY_PART:WHOLE=2.5", 7, 2.5), ("KERNELS_SCALED,BUSY_PART", 1, 1), ("BUSY_PART:WHOLE=1000", None, 1000)],
)
def test_programmable_metrics(xstrace, gpu, group, scale, whole):
    """A group is made of them, with the parameters' values or what the driver takes without."""
    gpu = gpu(PROGRAMMABLE="yes")
    run = xstrace(["-k", "-i", str(PERIOD), "-g", group, "-o", "rep.csv"], "ze_matrix", ["--kernels", 6], env=gpu.env)
    columns = ["GpuTime[ns]", "QueryBeginTime[ns]", *(["KERNELS_SCALED[events]"] if scale else []), "BUSY_PART"]
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    found = sections(path.read_text(), columns)[0]
    assert len(found) == len(gpu.kernels) == 6 and not [line for line in run.said if "WARNING" in line]
    for _, _, rows in found:
        for row in rows:
            ended, busy, length = programmed(row)
            assert row["BUSY_PART"] == f"{busy(gpu) / length * whole:f}"
            assert not scale or row["KERNELS_SCALED[events]"] == str(scale * ended(gpu))


@pytest.mark.parametrize(
    "group, said, how",
    [
        ("KERNELS_SCALED:SCAL=7", "the metric has no parameter SCAL", "yes"),
        ("KERNELS_SCALED:SCALE=seven", "SCALE=seven is no value of the metric's parameter", "yes"),
        ("KERNELS_SCALED:SCALE", "SCALE= is no value of the metric's parameter", "yes"),
        ("BUSY_PART:WHOLE=0", "the driver does not make the metric BUSY_PART with these values", "yes"),
        ("KERNELS_SCALED,BUSY_PART", "these metrics cannot be counted at once: KERNELS_SCALED,BUSY_PART; name fewer", "apart"),
    ],
)
def test_programmable_metrics_that_there_are_not(xstrace, gpu, group, said, how):
    """One line, and the program is not started."""
    gpu = gpu(PROGRAMMABLE=how)
    for option in ("-k", "-q"):
        run = xstrace([option, "-g", group, "-o", "rep.csv"], "ze_matrix", ["--kernels", 2], env=gpu.env)
        assert run.status == 125 and len(run.said) == 1 and said in run.said[0] and not gpu.kernels


@pytest.mark.parametrize(
    "option, group, said",
    [
        ("-k", "KERNELS_SCALE:SCALE=7", "did you mean --group KERNELS_SCALED?"),
        ("-k", "KERNELS_SCALED,NO_SUCH", "no device has a metric group NO_SUCH"),
        ("-q", "KERNELS_SCALED:SCALE=7", "is for sampling, not for queries"),
    ],
)
def test_programmable_metrics_are_looked_for(xstrace, gpu, option, group, said):
    gpu = gpu(PROGRAMMABLE="time")
    run = xstrace([option, "-g", group], "ze_matrix", env=gpu.env)
    assert run.status == 125 and said in run.said[0] and not gpu.kernels


def test_list_of_programmable_metrics(xstrace, gpu):
    run = xstrace.bare(XSTRACE, ["--metric-list"], env=gpu(PROGRAMMABLE="yes").env)
    assert "Device #0, programmable metric KERNELS_SCALED:SCALE=1 (query, sampling): Kernels that ended, times SCALE\n" in run.out
    assert "Device #0, programmable metric BUSY_PART:WHOLE=1 (query, sampling)" in run.out
