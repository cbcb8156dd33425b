"""--metric-sampling with CUDA: what the software CUDA counts by time follows from its log, to the last digit."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import APPS, ROOT
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from gpu_log import DRIVER, SoftGPU

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no CUPTI headers")

PERIOD = 500  # us
GROUP = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed,sc__kernels.sum,dram__bytes.sum,gpu__time_duration.sum"
TIMES = ["GpuTime[ns]", "QueryBeginTime[ns]"]
COLUMNS = [
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed[%]",
    "sc__kernels.sum",
    "dram__bytes.sum[byte]",
    "gpu__time_duration.sum[ns]",
]
OPTIONS = ["-k", "-i", str(PERIOD), "-g", GROUP, "-o", "rep.csv"]
APP = "cuda_streams", ["--kernels", 6, "--streams", 1]


@pytest.fixture
def cuda(tmp_path):
    """A software CUDA whose sampling sees what all processes execute; kernels last 2 ms."""

    def make(version=13, **settings):
        return SoftCUDA(tmp_path, version, **({"SHM": tmp_path / "shm", "DURATION_NS": "*=2000000"} | settings))

    return make


def product_of(text):
    x, y, z = map(int, text.split(","))
    return x * y * z


def sampled(run, columns=COLUMNS):
    """{device: [(kernel, id, [row])]}: what belongs together stands together."""
    (path,) = [p for p in run.cwd.iterdir() if re.fullmatch(r"rep\.metrics\.\d+(\.\d+)?\.csv", p.name)]
    found = {}
    parts = re.split(r"\n=== Device #(\d+) Metrics ===\n", path.read_text())[1:]
    for device, part in zip(parts[::2], parts[1::2], strict=True):
        blocks = part.lstrip("\n").rstrip("\n").split("\n\n")
        head, _, blocks[0] = blocks[0].partition("\n")
        assert head.split(",") == ["Kernel", "GlobalInstanceId", *TIMES, *columns]
        found[int(device)] = instances = []
        for block in filter(None, blocks):
            rows = list(csv.DictReader(block.splitlines(), head.split(",")))
            (key,) = {(row["Kernel"], int(row["GlobalInstanceId"])) for row in rows}
            instances.append((*key, rows))
    return found


def truth(cuda, begin, device, length=PERIOD * 1000):
    """What the device counts from that time on for a period, as the file has it."""
    end = begin + length
    kernels = [one for one in cuda.kernels if one.device == device]
    busy = sum(max(0, min(one.end, end) - max(one.start, begin)) for one in kernels)
    ended = [one for one in kernels if begin < one.end <= end]
    blocks, threads = sum(product_of(one.grid) for one in ended), sum(product_of(one.block) for one in ended)
    busy = min(busy, length)
    values = [busy * 100 / length, len(ended), 96 * blocks * threads, busy]
    return [str(length), str(begin), *(f"{value:f}" for value in values)]


def check(cuda, instances, device=0, length=PERIOD * 1000):
    """Each row is true, and stands with the kernel that ran then. Returns the kernels without rows, and what was sampled."""
    left = [one for one in cuda.kernels if one.device == device]
    begins = set()
    for kernel, _, rows in instances:
        times = [int(row[TIMES[1]]) for row in rows]
        begins.update(times)
        for row, at in zip(rows, times, strict=True):
            assert [row[name] for name in [*TIMES, *COLUMNS]] == truth(cuda, at, device, length)
        ran = [one for one in left if one.start <= times[0] and times[-1] <= one.end and kernel.startswith(one.name)]
        assert ran, (kernel, times)
        left.remove(ran[0])
        # those before and behind are not this kernel's, and none in between is missing
        assert times[0] - length < ran[0].start and times[-1] + length > ran[0].end
        assert times == list(range(times[0], times[0] + len(times) * length, length))
    return left, begins


def warnings(run):
    return [line for line in run.said if "WARNING" in line]


@pytest.mark.parametrize("sync", [0, 1])
@pytest.mark.parametrize("version", [12, 13])
def test_values(xstrace, cuda, version, sync):
    cuda = cuda(version, SYNC=sync)
    bare = xstrace.bare(*APP, env=cuda.env | {"SOFTCUDA_LOG": ""})
    run = xstrace(OPTIONS, *APP, env=cuda.env)
    assert (run.status, run.out) == (bare.status, bare.out), run.err
    found = sampled(run)
    left, _ = check(cuda, found[0])
    assert list(found) == [0] and not left and len(found[0]) == len(cuda.kernels) == 6
    assert not warnings(run)


def test_kernels_that_overlap(xstrace, cuda):
    """Each has a row for the sample."""
    cuda = cuda()
    run = xstrace(OPTIONS, "cuda_streams", ["--kernels", 5, "--streams", 1, "--threads", 3], env=cuda.env)
    left, _ = check(cuda, sampled(run)[0])
    assert not left and len(cuda.kernels) == 15


def test_counter_tracks(xstrace, cuda):
    """The sampling process's trace has each sample when it began, by the clock of the kernels' slices."""
    cuda = cuda()
    run = xstrace([*OPTIONS, "--chrome-kernel-logging"], *APP, env=cuda.env)
    traces = {trace.path.name.split(".")[0]: trace for trace in run.traces}
    slices = {int(one.args["id"]): one for one in traces["cuda_streams"].device if "global" in one.args}
    counters = {}
    for event in traces["xstrace-metrics"].events:
        if event["ph"] == "C":
            counters.setdefault(event["name"], {})[event["ts"]] = event["args"]["value"]
    assert set(counters) == {*TIMES, *COLUMNS}
    moments = {value: at for at, value in counters[TIMES[1]].items()}
    rows = [(number, row) for _, number, rows in sampled(run)[0] for row in rows]
    assert len(rows) >= 18
    for number, row in rows:
        at = moments[int(row[TIMES[1]])]
        assert slices[number].start - 0.01 <= at <= slices[number].end + 0.01
        assert all(f"{counters[name][at]:f}" == row[name] for name in COLUMNS)


def test_several_processes_and_devices(xstrace, cuda):
    """What counts is when their kernels ran, not who ran them, nor how a process numbers its devices."""
    cuda = cuda(DEVICES=2)
    one = f"{APPS}/cuda_streams --kernels 4 --streams 1 --threads 2 --devices 2"
    run = xstrace(OPTIONS, "sh", ["-c", f"{one} & {one} & wait"], env=cuda.env)
    found = sampled(run)
    assert sorted(found) == [0, 1] and len({kernel.pid for kernel in cuda.kernels}) == 2
    for device in (0, 1):
        left, _ = check(cuda, found[device], device)
        assert not left


def test_devices_that_a_program_numbers_otherwise(xstrace, cuda):
    """As each rank with a CUDA_VISIBLE_DEVICES of its own does."""
    cuda = cuda(DEVICES=2)
    run = xstrace(OPTIONS, "sh", ["-c", f"SOFTCUDA_FIRST=1 SOFTCUDA_DEVICES=1 {APPS}/cuda_streams --kernels 4 --streams 1"], env=cuda.env)
    for kernel in cuda.kernels:
        kernel.device += 1
    found = sampled(run)
    assert sorted(found) == [1] and not check(cuda, found[1], 1)[0] and len(cuda.kernels) == 4


def test_devices_to_sample(xstrace, cuda):
    cuda = cuda(DEVICES=2)
    run = xstrace([*OPTIONS, "--devices-to-sample", "1"], "cuda_streams", ["--kernels", 2, "--threads", 2, "--devices", 2], env=cuda.env | {"OCL_ICD_VENDORS": "/nowhere"})
    found = sampled(run)
    assert sorted(found) == [1] and not check(cuda, found[1], 1)[0]


def test_idle_samples(xstrace, cuda):
    """With them each period of the device has a row."""
    cuda = cuda()
    script = f"{APPS}/cuda_streams --kernels 1 --streams 1; sleep 0.02; {APPS}/cuda_streams --kernels 1 --streams 1"
    run = xstrace([*OPTIONS, "--idle-sampling"], "sh", ["-c", script], env=cuda.env)
    found = sampled(run)[0]
    idle = [one for one in found if one[0].startswith("NoKernel")]
    left, begins = check(cuda, [one for one in found if one not in idle])
    assert not left and len(idle) >= 3
    for _, _, rows in idle:
        for row in rows:
            begins.add(int(row[TIMES[1]]))
            assert [row[name] for name in [*TIMES, *COLUMNS]] == truth(cuda, int(row[TIMES[1]]), 0)
    steps = sorted(begins)
    assert steps == list(range(steps[0], steps[-1] + 1, PERIOD * 1000)) and len(steps) > 40


@pytest.mark.parametrize("settings", [{"PM_LATE_NS": 30_000_000}, {"PM_FULL": 7}, {"PM_CYCLES": 1}, {"LATE_MS": 20}])
def test_late_and_piecemeal(xstrace, cuda, settings):
    """Samples that come late, in small images, by periods of cycles: nothing of it shows."""
    cuda = cuda(**settings)
    run = xstrace(OPTIONS, "sh", ["-c", f"{APPS}/cuda_streams --kernels 6 --streams 1; sleep 0.1"], env=cuda.env)
    left, _ = check(cuda, sampled(run)[0])
    assert not left and len(cuda.kernels) == 6 and not warnings(run)


def test_lost_samples(xstrace, cuda):
    """Each missing one is seen by the times, and told; what is there is true."""
    cuda = cuda(PM_DROP=4)
    run = xstrace([*OPTIONS, "--idle-sampling"], *APP, env=cuda.env)
    times = sorted({int(row[TIMES[1]]) for _, _, rows in sampled(run)[0] for row in rows})
    missing = (times[-1] - times[0]) // (PERIOD * 1000) + 1 - len(times)
    (line,) = warnings(run)
    lost = int(re.search(r"samples of CUDA device #0 are lost: (\d+) that its times show, and its buffer was full 0 times", line)[1])
    assert 0 < missing <= lost <= missing + 1
    for _, _, rows in sampled(run)[0]:
        for row in rows:
            assert [row[name] for name in [*TIMES, *COLUMNS]] == truth(cuda, int(row[TIMES[1]]), 0)


def test_a_buffer_that_is_full(xstrace, cuda):
    """The device makes no more samples until it is started anew, which happens."""
    cuda = cuda(PM_ROOM=20)
    run = xstrace([*OPTIONS, "--idle-sampling"], "cuda_streams", ["--kernels", 60, "--streams", 1], env=cuda.env)
    (line,) = warnings(run)
    lost, full = map(int, re.search(r"lost: (\d+) that its times show, and its buffer was full (\d+) times", line).groups())
    rows = [row for _, _, rows in sampled(run)[0] for row in rows]
    assert full >= 2 and lost > 0 and len(rows) >= 20 * full // 2
    for row in rows:
        assert [row[name] for name in [*TIMES, *COLUMNS]] == truth(cuda, int(row[TIMES[1]]), 0)


def test_another_clock(xstrace, cuda):
    """Samples with times of CLOCK_REALTIME: joined as well as the two clocks can be read at once."""
    cuda = cuda(PM_CLOCK=1)
    run = xstrace(OPTIONS, *APP, env=cuda.env)
    instances = sampled(run)[0]
    assert run.status == 0 and len(instances) == len(cuda.kernels) == 6 and not warnings(run)
    for (_, _, rows), kernel in zip(instances, cuda.kernels, strict=True):
        times = [int(row[TIMES[1]]) for row in rows]
        assert kernel.start - 1_000_000 <= times[0] and times[-1] <= kernel.end + 1_000_000 and abs(len(times) - (kernel.end - kernel.start) // (PERIOD * 1000)) <= 2


def test_a_clock_that_nobody_has(xstrace, cuda):
    cuda = cuda(PM_CLOCK=2)
    run = xstrace(OPTIONS, *APP, env=cuda.env)
    (line,) = warnings(run)
    assert run.status == 0 and "not sampled: its samples have times of a clock that is not known" in line


def test_groups(xstrace, cuda):
    """Of a group of ours what cannot be counted at once is left out, and told."""
    cuda = cuda()
    run = xstrace(f"-k -i {PERIOD} -g ComputeBasic -o rep.csv", *APP, env=cuda.env)
    columns = [
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed[%]",
        "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed[%]",
        "gr__cycles_active.sum.pct_of_peak_sustained_elapsed[%]",
    ]
    assert len(sampled(run, columns)[0]) == len(cuda.kernels)
    (line,) = warnings(run)
    assert "CUDA device #0 samples 3 metrics of the group ComputeBasic" in line


@pytest.mark.parametrize("group", ["ComputeBasic,MemoryBasic", "MemoryBasic,ComputeBasic"])
def test_several_groups(xstrace, cuda, group):
    """They are one: each metric once, as many as can be counted at once."""
    cuda = cuda()
    run = xstrace(f"-k -i {PERIOD} -g {group} -o rep.csv -d", *APP, env=cuda.env)
    compute = [
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed[%]",
        "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed[%]",
        "gr__cycles_active.sum.pct_of_peak_sustained_elapsed[%]",
    ]
    (line,) = warnings(run)
    columns = compute if group.startswith("Compute") else ["dramc__read_throughput.avg.pct_of_peak_sustained_elapsed[%]"]
    assert len(sampled(run, columns)[0]) == len(cuda.kernels)
    assert f"samples {len(columns)} metrics of the group {group}" in line


def test_the_script_reads_it(xstrace, cuda):
    cuda = cuda()
    run = xstrace(OPTIONS, *APP, env=cuda.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    listed = subprocess.run([sys.executable, ROOT / "scripts/analyzeperfmetrics.py", "-l", path], capture_output=True, text=True, check=True).stdout
    assert all(f"        {name}\n" in listed for name in [*TIMES, *COLUMNS]) and '{256; 1; 1}]", 6\n' in listed


REFUSED = {
    "dram__bytes.sum,dram__no_such.sum": "it has no metric dram__no_such.sum that can be sampled",
    "dram__bytes.sum,dramc__read_throughput.avg.pct_of_peak_sustained_elapsed": "cannot be counted at once; name fewer by --group, these can: dram__bytes.sum",
    "dram__bytes.sum,dramc__read_throughput.avg.pct_of_peak_sustained_elapsed,sm__inst_executed.sum": "at once; name fewer by --group, these can: dram__bytes.sum,sm__inst_executed.sum",
    "dram__bytes.sum,": "it has no metric  that can be sampled",
}


@pytest.mark.parametrize("group", REFUSED)
def test_metrics_that_cannot_be_sampled(xstrace, cuda, group):
    """One line before the program starts, which runs."""
    cuda = cuda()
    run = xstrace(["-k", "-g", group, "-o", "rep.csv", "-d"], *APP, env=cuda.env)
    (line,) = warnings(run)
    assert run.status == 0 and REFUSED[group] in line and len(cuda.kernels) == 6


@pytest.mark.parametrize("group, said", [("ComputBasic", "did you mean --group ComputeBasic?"), ("Flops", "is for queries, not for sampling")])
def test_groups_that_there_are_not(xstrace, cuda, group, said):
    cuda = cuda()
    run = xstrace(["-k", "-g", group], *APP, env=cuda.env)
    assert run.status == 125 and said in run.said[0] and not cuda.commands


def functions():
    text = (ROOT / "common/pm_sampling_abi.h").read_text()
    return ["cupti" + name for name in re.findall(r"^\s*F\((\w+), xs_p", text, re.M)]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("function", functions())
def test_functions_that_fail(xstrace, cuda, tmp_path, function):
    """At once, later, and for want of the right: the program is as it is, and at most one line says what is missing."""
    for result in ("1:35", "2:35", "4:999", "999"):
        cuda_ = cuda(FAULT=f"{function}:{result}")
        cuda_.path.unlink(missing_ok=True)
        run = xstrace([*OPTIONS, "--chrome-kernel-logging"], *APP, env=cuda_.env)
        run.check_expected("kernels")
        assert run.status == 0 and len(cuda_.kernels) == 6 and len(warnings(run)) <= 2, run.said
        files = [p for p in run.cwd.iterdir() if p.name.startswith("rep.metrics")]
        assert files or warnings(run), result
        for path in run.cwd.iterdir():
            path.unlink()
    assert len(functions()) == 21


def test_the_right_to_read_counters(xstrace, cuda):
    run = xstrace(OPTIONS, *APP, env=cuda(FAULT="cuptiPmSamplingEnable:35").env)
    (line,) = warnings(run)
    assert "this user may not read its counters (the driver's option NVreg_RestrictProfilingToAdminUsers)" in line


def test_without_cupti(xstrace, cuda, tmp_path):
    """A driver alone, or with another libcupti that does not know it: one line, and the program runs."""
    cuda = cuda()
    (tmp_path / "lib").mkdir()
    driver = cuda.libraries.parent / "libcuda.so.1"
    (tmp_path / "lib/libcuda.so.1").symlink_to(driver)
    env = {"LD_LIBRARY_PATH": str(tmp_path / "lib"), "VIRTUAL_ENV": "", "CONDA_PREFIX": "", "CUDA_HOME": "", "CUDA_PATH": ""}
    run = xstrace(OPTIONS, "sh", ["-c", "echo on"], env=cuda.env | env)
    (line,) = warnings(run)
    assert (run.status, run.out) == (0, "on\n") and re.search("no libcupti of CUDA 12.6 or later|cannot be used with this driver", line)


def test_the_cost(xstrace, cuda, tmp_path):
    """At 1 kHz a small part of a processor, and memory that does not grow with the samples."""
    run = xstrace.start(["-k", "-i", "1000", "-g", GROUP, "-o", "rep.csv"], "sleep", ["4"], env=cuda().env)
    sampler = run.child("xstrace-metrics")
    time.sleep(1)

    def look():
        status = Path(f"/proc/{sampler}/status").read_text()
        ran = int(Path(f"/proc/{sampler}/schedstat").read_text().split()[0])
        return time.monotonic_ns(), ran, int(re.search(r"RssAnon:\s*(\d+)", status)[1])

    since, before, memory = look()
    time.sleep(2)
    now, after, grown = look()
    run.finish()
    assert (after - before) / (now - since) < 0.02 and grown <= memory + 64 and grown < 20480, ((after - before) / (now - since), memory, grown)


def test_a_kill_of_the_sampler(xstrace, cuda):
    """What it has told is written, and the program goes on."""
    cuda = cuda()
    run = xstrace.start(OPTIONS, "cuda_streams", ["--kernels", 400, "--streams", 1], env=cuda.env)
    time.sleep(0.4)
    sampler = run.child("xstrace-metrics")
    assert Path(f"/proc/{sampler}/status").exists()
    os.kill(sampler, signal.SIGKILL)
    result = run.finish()
    assert result.status == 0 and len(cuda.kernels) == 400
    for _, _, rows in sampled(result)[0]:
        for row in rows:
            assert [row[name] for name in [*TIMES, *COLUMNS]] == truth(cuda, int(row[TIMES[1]]), 0)


def test_devices_of_two_apis(xstrace, cuda, tmp_path):
    """Each counts its devices from 0: in files of metrics a number is one device's, and a line says whose."""
    cuda = cuda()
    gpu = SoftGPU(tmp_path, SHM=tmp_path / "ze", DURATION_NS="increment=2000000")
    if not DRIVER.exists():
        pytest.skip("no Level Zero headers")
    script = f"{APPS}/ze_matrix --kernels 3 && {APPS}/cuda_streams --kernels 4 --streams 1"
    run = xstrace(f"-k -i {PERIOD} -g ComputeBasic -o rep.csv -d", "sh", ["-c", script], env=cuda.env | gpu.env)
    (path,) = run.cwd.glob("rep.metrics.*.csv")
    parts = re.split(r"\n=== Device #(\d+) Metrics ===\n", path.read_text())[1:]
    assert run.status == 0 and [int(number) for number in parts[::2]] == [0, 1]
    assert '"increment[SIMD32' in parts[1] and "_Z9increment" not in parts[1] and "_Z9increment" in parts[3]
    (line,) = [line for line in run.said if "[INFO] --metric-sampling: CUDA device #0 is device #1 in files of metrics" in line]
    listed = subprocess.run([sys.executable, ROOT / "scripts/analyzeperfmetrics.py", "-l", path], capture_output=True, text=True, check=True).stdout
    assert "XVE_STALL[%]" in listed and "sm__cycles_active.avg.pct_of_peak_sustained_elapsed[%]" in listed
