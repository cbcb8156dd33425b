"""--system-metrics of NVIDIA's GPUs, by the software NVML: what it answered, and wrote down, is what the trace has."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD
from test_system_gpus import Run, changes, rates

LIBRARY = BUILD / "tests/softnvml"
GPU = "SoftNV 0 0:5e:0:0"
REASONS = (None, "clocks set", "power limit", "hardware", "boost of several GPUs", "temperature, by software", "temperature, by hardware",
           "power brake", "display clocks", "board limit", "reliability")  # fmt: skip
ENERGY, NVLINK_TX, NVLINK_RX, PCIE_TX, PCIE_RX = "field83", "field138", "field139", "field197", "field198"


def run(tmp_path, *options, looks=30, name="memory", interval=5, **env):
    app = ("sh", "-c", f"sleep 1.2; while [ $(grep -c {name} sysman.log) -lt {looks} ]; do sleep 0.05; done")
    env |= {"LD_LIBRARY_PATH": str(LIBRARY), "SOFTNVML_LOG": str(tmp_path / "sysman.log"), "ZE_ENABLE_ALT_DRIVERS": "/nowhere"}
    return Run(tmp_path, *options, app=app, interval=interval, **env)


def wave(us):
    rest = us % 10**6
    return us // 10**6 * 10**8 + rest * rest // 10**4


def energy_at(us):
    return (50 * us + wave(us)) // 1000


def bytes_at(us, factor):
    day = us % (86400 * 10**6)
    return factor * day + wave(day)


def energy_told(answers):
    """Power and energy: a counter that stands has not been written yet."""
    written = [answers[0]]
    for answer in answers[1:]:
        if answer[1] != written[-1][1]:
            written.append(answer)
    return rates(written, 0, 1e3), changes([(mj - answers[0][1]) / 1e3 for _, mj, _ in written])


def test_values(tmp_path):
    """Each value of each counter, to the last digit; and the library's answers are the known functions of time."""
    done = run(tmp_path, SOFTNVML_DEVICES="2")
    assert not done.warnings()
    for device, gpu in enumerate((GPU, "SoftNV 1 0:5f:0:0")):
        answers = done.answers[ENERGY, device, 0]
        assert [mj for _, mj, _ in answers] == [energy_at(us) for us, *_ in answers]
        assert (done.counters[f"{gpu} power [W]"], done.counters[f"{gpu} energy [J]"]) == energy_told(answers)
        for kind, name, known in (
            ("clock", "frequency of cores [MHz]", lambda tenths: 1980 - 15 * (tenths % 40)),
            ("temperature", "temperature [C]", lambda tenths: 30 + device + tenths % 50),
            ("memory", "memory used [B]", lambda tenths: ((device + 1) << 30) + 4096 * (tenths % 100)),
            ("utilization", "busy [%]", lambda tenths: tenths % 101),
        ):
            answers = done.answers[kind, device, 0]
            assert [value for _, value, _ in answers] == [known(us // 10**5) for us, *_ in answers]
            assert done.counters[f"{gpu} {name}"] == changes([value for _, value, _ in answers])
        assert done.counters[f"{gpu} memory busy [%]"] == changes([value for *_, value in done.answers["utilization", device, 0]])
        assert done.counters[f"{gpu} frequency of memory [MHz]"] == [2619]
        for bit, reason in enumerate(REASONS):
            told = done.counters.get(f"{gpu} throttled by {reason}", [])
            masks = [int(mask) for _, mask, _ in done.answers["reasons", device, 0]]
            assert told == (changes([0] + [mask >> bit & 1 for mask in masks])[1:] if reason else [])
        for field, name, factor in (
            (PCIE_RX, "PCIe received", 5000),
            (PCIE_TX, "PCIe sent", 7000),
        ):
            answers = done.answers[field, device, 0]
            assert [value for _, value, _ in answers] == [bytes_at(us, factor) for us, *_ in answers]
            assert done.counters[f"{gpu} {name} [B/s]"] == rates(answers, 0, 1e6)
        assert done.counters[f"{gpu} NVLink received [B/s]"] == [11e6 * 1024] and done.counters[f"{gpu} NVLink sent [B/s]"] == [13e6 * 1024]
        assert len(done.answers["memory", device, 0]) > 10
    assert any("throttled by" in name for name in done.counters)


def test_counters_wrap(tmp_path):
    """Numbers of 32 bits say so, and what they rise by is known beyond their end: 7 GB/s wrap once in 0.6 s."""
    done = run(tmp_path, SOFTNVML="wrap")
    answers = done.answers[PCIE_TX, 0, 0]
    risen = [(int(b) - int(a)) % 2**32 * 1e6 / (t - t0) for (t0, a, _), (t, b, _) in zip(answers, answers[1:])]
    assert any(b[1] < a[1] for a, b in zip(answers, answers[1:])), "it did wrap"
    assert done.counters[f"{GPU} PCIe sent [B/s]"] == changes(risen)


def test_energy_in_steps(tmp_path):
    """A driver that counts energy 10 times a second: no power of 0 between, and no peak behind."""
    done = run(tmp_path, SOFTNVML="steps")
    power, energy = energy_told(done.answers[ENERGY, 0, 0])
    assert len(done.answers[ENERGY, 0, 0]) > 3 * len(energy) > 12
    assert (done.counters[f"{GPU} power [W]"], done.counters[f"{GPU} energy [J]"]) == (power, energy)


def test_time_stands(tmp_path):
    done = run(tmp_path, SOFTNVML="still")
    assert done.counters[f"{GPU} energy [J]"] == [0] and not any("power [W]" in name or "/s]" in name for name in done.counters)


def test_fields_without_a_time(tmp_path):
    """Then the time of the look counts, which is a little earlier."""
    done = run(tmp_path, SOFTNVML="timeless")
    answers = done.answers[ENERGY, 0, 0]
    assert done.counters[f"{GPU} energy [J]"] == energy_told(answers[1:])[1]  # the trial has no time
    sent = sorted(done.counters[f"{GPU} PCIe sent [B/s]"])
    assert sent[len(sent) // 2] == pytest.approx(7.1e9, rel=0.2)
    power = done.counters[f"{GPU} power [W]"]
    assert len(power) > 5 and sum(40 < watts < 300 for watts in power) > len(power) / 2


def test_single_links(tmp_path):
    """A library that does not sum the links up: we do."""
    done = run(tmp_path, SOFTNVML="links")
    for field, name in ((NVLINK_RX, "received"), (NVLINK_TX, "sent")):
        sums = {}
        for us, kib, _ in done.answers[field, 0, 0]:
            sums.setdefault(us, []).append(kib)
        sums = [(us, sum(links)) for us, links in sums.items() if len(links) == 4]  # alone: it was asked whether there is such a link
        assert done.counters[f"{GPU} NVLink {name} [B/s]"] == rates(sums, 0, 1e6 * 1024)


def test_an_old_driver(tmp_path):
    """Without fields: the power that it tells; PCIe's throughput, whose calls last 40 ms, where looks are rare."""
    done = run(tmp_path, interval=100, looks=3, SOFTNVML="old")
    assert done.counters[f"{GPU} power [W]"] == changes([mw / 1e3 for _, mw, _ in done.answers["power", 0, 0]])
    assert done.counters[f"{GPU} PCIe received [B/s]"] == [5000 * 1024] and done.counters[f"{GPU} PCIe sent [B/s]"] == [7000 * 1024]
    assert not any("energy" in name or "NVLink" in name for name in done.counters) and not done.warnings()


def test_old_and_often(tmp_path):
    done = run(tmp_path, interval=10, SOFTNVML="old")
    assert f"{GPU} power [W]" in done.counters and not any("PCIe" in name for name in done.counters)


@pytest.mark.parametrize("error", [15, 16])
def test_lost_in_the_middle(tmp_path, error):
    done = run(tmp_path, looks=60, SOFTNVML_DEVICES="2", SOFTNVML_FAULT=f"nvmlDeviceGetMemoryInfo:21:{error}")
    gpus = [GPU, "SoftNV 1 0:5f:0:0"]
    (line,) = done.warnings()
    (lost,) = [i for i in (0, 1) if line == f"[WARNING] {gpus[i]} is lost (nvmlDeviceGetMemoryInfo): --system-metrics goes on without it"]
    for what in "memory", "clock":
        assert len(done.answers[what, lost, 0]) < 15 < len(done.answers[what, 1 - lost, 0])


@pytest.mark.parametrize("error", [3, 999])
def test_a_function_that_fails(tmp_path, error):
    done = run(tmp_path, SOFTNVML_FAULT=f"nvmlDeviceGetTemperature:3:{error},field83:9:{error}")
    assert len(done.warnings()) == 2 and all("it is left out" in line and f"gives {error:#x}" in line for line in done.warnings())
    assert len(done.answers["temperature", 0, 0]) == 2 and len(done.answers[ENERGY, 0, 0]) == 8


def test_no_value_just_now(tmp_path):
    done = run(tmp_path, SOFTNVML_FAULT="field83:9:21,nvmlDeviceGetMemoryInfo:5:27")
    assert not done.warnings()
    assert (done.counters[f"{GPU} power [W]"], done.counters[f"{GPU} energy [J]"]) == energy_told(done.answers[ENERGY, 0, 0])


def test_not_allowed(tmp_path):
    done = run(tmp_path, SOFTNVML_FAULT="nvmlDeviceGetUtilizationRates:1:4")
    assert done.warnings() == [f"[WARNING] {GPU}: this user may not read its utilization (start xstrace as root)"]


@pytest.mark.parametrize("error, lines", [(9, 0), (18, 1)])
def test_it_does_not_start(tmp_path, error, lines):
    done = Run(tmp_path, app=("sh", "-c", "sleep 0.3; exit 3"), status=3, LD_LIBRARY_PATH=str(LIBRARY), ZE_ENABLE_ALT_DRIVERS="/nowhere",
               SOFTNVML_FAULT=f"nvmlInit_v2:1:{error}")  # fmt: skip
    assert not done.counters and len(done.warnings()) == lines
    assert not lines or f"error {error}; nvidia-smi says why" in done.said


def test_the_abi():
    """NVIDIA's own Python package reads the software NVML: its layouts, numbers and names are the library's."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    script = """
import pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(1)
p = n.nvmlDeviceGetPciInfo(h)
f = n.nvmlDeviceGetFieldValues(h, [n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, (n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 2),
    n.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, n.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, (n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 3)])
t = f[0].timestamp
d = t % 86400000000
w = d // 10**6 * 10**8 + (d % 10**6)**2 // 10**4
m = n.nvmlDeviceGetMemoryInfo(h)
u = n.nvmlDeviceGetUtilizationRates(h)
T = t // 10**5
def near(value, known, most):
    return value in [known(T + i) for i in range(most)]
rest = t % 10**6
print(n.nvmlDeviceGetCount(), n.nvmlDeviceGetName(h), p.domain, p.bus, p.device, p.busId,
    f[0].value.ullVal == (50 * t + t // 10**6 * 10**8 + rest * rest // 10**4) // 1000, f[1].nvmlReturn, f[1].value.ullVal == 13 * d * 3 // 10,
    f[2].valueType == n.NVML_VALUE_TYPE_UNSIGNED_INT, f[2].value.uiVal == (7000 * d + w) % 2**32, f[3].value.uiVal == (5000 * d + w) % 2**32,
    f[4].value.ullVal == 11 * d * 4 // 10,
    near(n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM), lambda T: 1980 - 15 * (T % 40), 9), n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
    near(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU), lambda T: 31 + T % 50, 9), m.total >> 30, m.used >> 30, m.free == m.total - m.used,
    near(u.gpu, lambda T: T % 101, 9), u.memory == u.gpu // 2, near(n.nvmlDeviceGetPowerUsage(h), lambda T: 100000 + T % 1000, 9),
    near(n.nvmlDeviceGetCurrentClocksEventReasons(h), lambda T: 1 << T % 12 >> 1, 9),
    n.nvmlDeviceGetPcieThroughput(h, n.NVML_PCIE_UTIL_RX_BYTES), n.nvmlDeviceGetPcieThroughput(h, n.NVML_PCIE_UTIL_TX_BYTES))
n.nvmlShutdown()
"""
    env = os.environ | {"LD_LIBRARY_PATH": str(LIBRARY), "SOFTNVML_DEVICES": "2", "SOFTNVML": "links,wrap"}
    said = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    expected = "2 SoftNV 1 0 95 0 00000000:5F:00.0 True 0 True True True True True True 2619 True 141 2 True True True True True 5000 7000"
    assert said.stdout.split() == expected.split()
