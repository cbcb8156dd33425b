"""--system-metrics of GPUs: what the software driver's Sysman answered, and wrote down, is what the trace has."""

import json
import os
import subprocess

import pytest
from conftest import BUILD, XSTRACE

DRIVER = BUILD / "tests/softgpu/libze_softgpu.so"
GPU = "SoftGPU 0 0:3a:0:0"
REASONS = ("average power", "burst power", "current", "temperature limit", "power supply",
           "range set", "range of parts", "voltage", "temperature", "power")  # fmt: skip

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="built without Level Zero")


class Run:
    """A run of `app` under --system-metrics: what it said, its counters by name as lists of values, and the driver's answers by kind."""

    def __init__(self, tmp_path, *options, interval=5, looks=30, app=None, status=0, **env):
        """`looks`: the app ends when the GPU that is looked at most often has been looked at so often, and a second has gone."""
        app = app or ("sh", "-c", f"sleep 1.2; while [ $(grep -c engine sysman.log) -lt {4 * looks} ]; do sleep 0.05; done")
        (tmp_path / "machine").mkdir(exist_ok=True)  # a host that tells nothing
        log = tmp_path / "sysman.log"
        run = subprocess.run(
            [XSTRACE, f"--system-metrics={interval}", *options, *app], cwd=tmp_path, capture_output=True, text=True, timeout=120,
            env=os.environ | {"XSTRACE_SYSTEM_ROOT": str(tmp_path / "machine"), "ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYSMAN_LOG": str(log)} | env,
        )  # fmt: skip
        self.said = run.stderr
        assert run.returncode == status, self.said
        self.counters, self.answers, self.calls = {}, {}, set()
        for path in tmp_path.glob("xstrace-system.*.json"):
            for e in json.loads(path.read_text())["traceEvents"]:
                if e["ph"] == "C":
                    self.counters.setdefault(e["name"], []).append(e["args"]["value"])
                elif e["ph"] == "X":
                    self.calls.add(e["name"])
        for line in log.read_text().splitlines() if log.exists() else ():
            what, device, domain, us, *values = line.split("\t")
            self.answers.setdefault((what, int(device), int(domain)), []).append((int(us), *map(float, values)))

    def warnings(self):
        return [line for line in self.said.splitlines() if line.startswith("[WARNING]")]


def changes(values):
    return [value for i, value in enumerate(values) if not i or value != values[i - 1]]


def rates(answers, which, scale=1.0):
    """What is to be told of a counter: what it rose by, in the driver's own time."""
    told = []
    for (t0, *before), (t, *now) in zip(answers, answers[1:]):
        if t > t0 and now[which] >= before[which]:
            told.append((now[which] - before[which]) * scale / (t - t0))
    return changes(told)


def energy_at(us, domain):
    rest = us % 10**6
    return (50 * us + us // 10**6 * 10**8 + rest * rest // 10**4) // (domain + 1)


def test_values(tmp_path):
    """Each value of each counter, to the last digit; and the driver's answers are the known functions of time."""
    run = Run(tmp_path, SOFTGPU_DEVICES="2")
    assert not run.warnings()
    for device, gpu in enumerate((GPU, "SoftGPU 1 0:3b:0:0")):
        for domain, part in enumerate(("card", "package")):
            answers = run.answers["power", device, domain]
            assert [e for _, e, _ in answers] == [energy_at(us, domain) for us, *_ in answers]
            assert run.counters[f"{gpu} {part} power [W]"] == rates(answers, 0)
            assert run.counters[f"{gpu} {part} energy [J]"] == changes([(e - answers[0][1]) / 1e6 for _, e, _ in answers])
        for domain, part in enumerate(("cores", "memory")):
            answers = run.answers["frequency", device, domain]
            assert [mhz for _, mhz, _ in answers] == [1000 - 10 * (us // 10**5 % 50) - 100 * domain for us, *_ in answers]
            assert run.counters[f"{gpu} frequency of {part} [MHz]"] == changes([mhz for _, mhz, _ in answers])
            assert run.counters[f"{gpu} frequency of {part}, requested [MHz]"] == [1000]
            for bit, reason in enumerate(REASONS):
                told = run.counters.get(f"{gpu} {part} throttled by {reason}", [])
                assert told == changes([0] + [int(mask) >> bit & 1 for _, _, mask in answers])[1:]
        answers = run.answers["temperature", device, 0]
        assert run.counters[f"{gpu} temperature of cores [C]"] == changes([40 + device + us // 10**5 % 30 for us, *_ in answers])
        assert run.counters[f"{gpu} memory used [B]"] == [0]
        for kind, domain, names, known in (
            ("bandwidth", 0, ("memory read", "memory written"), (3, 2)),
            ("pci", 0, ("PCIe received", "PCIe sent"), (5, 7)),
            ("port", 0, (f"fabric port 1.{device}.1 received", f"fabric port 1.{device}.1 sent"), (11, 13)),
            ("port", 1, (f"fabric port 1.{device}.2 received", f"fabric port 1.{device}.2 sent"), (22, 26)),
        ):
            for which, (name, factor) in enumerate(zip(names, known)):
                assert run.counters[f"{gpu} {name} [B/s]"] == rates(run.answers[kind, device, domain], which, 1e6) == [factor * 1e6]
        assert run.counters[f"{gpu} compute engines busy [%]"] == [0]
        assert run.counters[f"{gpu} copy engines busy [%]"] == rates(run.answers["engine", device, 1], 0, 100.0)
        assert len(run.answers["power", device, 0]) > 20  # it did sample
    assert any("throttled by" in name for name in run.counters)


def test_its_own_calls_are_not_traced(tmp_path):
    run = Run(tmp_path, "-h", "--chrome-call-logging")
    assert run.counters and not run.calls and "zes" not in run.said


def test_single_engines(tmp_path):
    run = Run(tmp_path, SOFTGPU_SYSMAN="single")
    assert {f"{GPU} compute engine 0 busy [%]", f"{GPU} copy engine 1 busy [%]"} <= run.counters.keys()


def test_tiles(tmp_path):
    run = Run(tmp_path, SOFTGPU_TILES="2")
    for name in ("card power [W]", "tile 1 package energy [J]", "tile 1 frequency of memory [MHz]", "tile 1 copy engines busy [%]", "tile 1 fabric port 1.0.2 sent [B/s]"):
        assert f"{GPU} {name}" in run.counters
    answers = run.answers["power", 0, 1]
    assert run.counters[f"{GPU} tile 1 package power [W]"] == rates(answers, 0)


def test_counters_wrap(tmp_path):
    """What is between the last value and the first one behind the wrap is left out, and nothing else."""
    run = Run(tmp_path, SOFTGPU_SYSMAN="wrap")
    for domain, part in enumerate(("card", "package")):
        answers = run.answers["power", 0, domain]
        assert any(b[1] < a[1] for a, b in zip(answers, answers[1:])), "it did wrap"
        assert run.counters[f"{GPU} {part} power [W]"] == rates(answers, 0)
        assert max(run.counters[f"{GPU} {part} power [W]"]) < 400
    assert run.counters[f"{GPU} PCIe sent [B/s]"] == [7e6]
    assert not run.warnings()


def test_counters_stand(tmp_path):
    """A clock that stands gives no rate, and no division by it."""
    run = Run(tmp_path, SOFTGPU_SYSMAN="still")
    assert run.counters[f"{GPU} card energy [J]"] == [0]
    assert not any("power [W]" in name or "/s]" in name for name in run.counters)
    assert run.counters[f"{GPU} frequency of cores, requested [MHz]"] == [1000]


def test_lost_in_the_middle(tmp_path):
    """Of a GPU that is lost nothing more is asked, of the other one all; a line says so once."""
    run = Run(tmp_path, looks=60, SOFTGPU_DEVICES="2", SOFTGPU_FAULT="zesPowerGetEnergyCounter:41:device_lost")
    gpus = [GPU, "SoftGPU 1 0:3b:0:0"]
    (line,) = run.warnings()
    (lost,) = [device for device in (0, 1) if line == f"[WARNING] {gpus[device]} is lost (zesPowerGetEnergyCounter): --system-metrics goes on without it"]
    other = 1 - lost
    for what in "power", "engine":
        assert len(run.answers[what, lost, 1]) < 25 < len(run.answers[what, other, 1])
    assert run.counters[f"{gpus[other]} card power [W]"] == rates(run.answers["power", other, 0], 0)


@pytest.mark.parametrize("result", ["unsupported_feature", "unknown", "0x1234"])
def test_a_function_that_fails(tmp_path, result):
    """What it told is left out from there on."""
    faults = [f"zesTemperatureGetState:3:{result}", f"zesPowerGetEnergyCounter:9:{result}", f"zesPowerGetEnergyCounter:11:{result}"]
    run = Run(tmp_path, SOFTGPU_FAULT=",".join(faults))
    lines = run.warnings()
    assert len(lines) == 2 and all(line.startswith(f"[WARNING] {GPU} does not tell its ") and line.endswith("it is left out") for line in lines)
    assert len(run.answers["temperature", 0, 0]) == 2
    assert sum(len(run.answers["power", 0, domain]) for domain in (0, 1)) == 10  # of 12 calls; the second fault misses the call of the first
    assert len(run.answers["engine", 0, 1]) > 20


def test_no_value_just_now(tmp_path):
    run = Run(tmp_path, SOFTGPU_FAULT="zesPowerGetEnergyCounter:9:not_available,zesEngineGetActivity:7:not_ready")
    assert not run.warnings() and len(run.answers["power", 0, 0]) > 20
    assert run.counters[f"{GPU} card power [W]"] == rates(run.answers["power", 0, 0], 0)


@pytest.mark.parametrize("kind", ["PowerDomains", "FrequencyDomains", "TemperatureSensors", "MemoryModules", "EngineGroups", "FabricPorts"])
def test_missing_domains(tmp_path, kind):
    run = Run(tmp_path, app=("sleep", "0.3"), SOFTGPU_FAULT=f"zesDeviceEnum{kind}:1:unsupported_feature")
    words = {"PowerDomains": "power [W]", "FrequencyDomains": "frequency", "TemperatureSensors": "temperature of", "MemoryModules": "memory used",
             "EngineGroups": "engines", "FabricPorts": "fabric"}  # fmt: skip
    for word in words.values():
        assert any(name.startswith(f"{GPU} ") and word in name for name in run.counters) == (word != words[kind])
    assert not run.warnings()


def test_not_allowed(tmp_path):
    faults = ["zesEngineGetActivity:1", "zesEngineGetActivity:2", "zesMemoryGetBandwidth:1"]
    run = Run(tmp_path, app=("sleep", "0.2"), SOFTGPU_FAULT=",".join(f"{fault}:insufficient_permissions" for fault in faults))
    (line,) = run.warnings()
    assert line.startswith(f"[WARNING] {GPU}: this user may not read its bandwidth of memory, engines (") and "kernel.perf_event_paranoid=0" in line
    assert f"{GPU} card power [W]" in run.counters and not any("engines" in name for name in run.counters)


@pytest.mark.parametrize("fault", ["zeInit:1:uninitialized,zesInit:1:uninitialized,zeInit:2:uninitialized", "zesDeviceGetProperties:1:unknown"])
def test_no_gpu(tmp_path, fault):
    run = Run(tmp_path, app=("sh", "-c", "sleep 0.2; exit 3"), status=3, SOFTGPU_FAULT=fault)
    assert not run.counters and not run.warnings()


def test_one_rank_of_a_machine(tmp_path):
    """The first rank's sampler looks at all GPUs, whatever that rank may use; the others' at none."""
    run = Run(tmp_path, app=("sleep", "0.2"), SOFTGPU_DEVICES="2", ZE_AFFINITY_MASK="1", MPI_LOCALRANKID="0")
    assert {f"{GPU} card power [W]", "SoftGPU 1 0:3b:0:0 card power [W]"} <= run.counters.keys()
    second = tmp_path / "second"
    second.mkdir()
    run = Run(second, app=("sleep", "0.2"), SOFTGPU_DEVICES="2", ZE_AFFINITY_MASK="1", MPI_LOCALRANKID="1")
    assert not run.counters and not run.answers
