"""xstrace-summary --energy: exact shares of energy that is known, and of the software driver's, which is a function of time."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, XSTRACE

SUMMARY = ROOT / "scripts/xstrace-summary"
MERGE = BUILD / "merge/xstrace-merge"
DRIVER = BUILD / "tests/softgpu/libze_softgpu.so"
SECOND = 10**6  # of ts


def report(*paths, status=0):
    done = subprocess.run([sys.executable, SUMMARY, "--energy", "--csv", *paths], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr if status == 2 else list(csv.DictReader(io.StringIO(done.stdout)))


def trace(path, events, run="r1"):
    path.write_text(json.dumps({"baseTimeNanoseconds": 0, "metadata": {"tool": "xstrace", "version": "1", "run": run}, "traceEvents": events}))
    return path


def named(pid, name):
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def counter(pid, name, points):
    return [{"ph": "C", "ts": s * SECOND, "pid": pid, "name": name, "args": {"value": value}} for s, value in points]


def slice_of(pid, category, name, begin, end):
    return {"ph": "X", "ts": begin * SECOND, "dur": (end - begin) * SECOND, "pid": pid, "tid": 1, "cat": category, "name": name}


def system(path, host="h", bus="0:3a:0:0", factor=1, run="r1"):
    """100 J in the first second, 300 J in the next one; processors 10 W."""
    energy = [(0, 0), (1, 100 * factor), (2, 400 * factor)]
    return trace(path, [
        named(9, f"HOST<{host}> xstrace-system"),
        *counter(9, f"GPU 1 {bus} card energy [J]", energy),
        *counter(9, f"GPU 1 {bus} package energy [J]", [(0, 0), (2, 77)]),
        *counter(9, "energy of 0 package-0 [J]", [(0, 0), (2, 20)]),
        *counter(9, "energy of 0:0 core [J]", [(0, 0), (2, 19)]),
        *counter(9, "energy of 1 psys [J]", [(0, 0), (2, 500)]),
    ], run)  # fmt: skip


def app(path, host="h", bus="0:3a:0:0", run="r1"):
    return trace(path, [
        named(5, f"HOST<{host}> app"), named(6, f"DEVICE<{host}>[GPU 1] {bus} #0"),
        slice_of(6, "gpu_op", "a", 0.5, 1.5), slice_of(6, "gpu_op", "b", 1, 2), slice_of(6, "gpu_op", "nothing", 1, 1),
        slice_of(5, "cpu_op", "d::step", 0, 1), slice_of(5, "cpu_op", "d::step", 1, 1.5), slice_of(5, "cpu_op", "d::all", 0, 4),
        slice_of(5, "cpu_op", "zeInit", 0, 1),
    ], run)  # fmt: skip


def figures(rows, kind):
    return {row["name"]: (int(row["count"]), float(row["time_s"]), float(row["energy_j"])) for row in rows if row["kind"] == kind}


def test_shares(tmp_path):
    rows = report(system(tmp_path / "s.json"), app(tmp_path / "a.json"))
    assert figures(rows, "device") == {"GPU 1 0:3a:0:0": (1, 2.0, 400.0)}
    assert figures(rows, "processors") == {"h": (1, 2.0, 20.0)}
    # a: 50 J alone, half of 150 J together; b: the other half, then 150 J alone
    assert figures(rows, "work") == {"b": (1, 1.0, 225.0), "a": (1, 1.0, 125.0), "nothing": (1, 0.0, 0.0)}
    assert figures(rows, "task") == {"d::all": (1, 4.0, 420.0), "d::step": (2, 1.5, 265.0)}
    tasks = {row["name"]: row for row in rows if row["kind"] == "task"}
    assert [tasks["d::step"][key] for key in ("processors_j", "devices_j", "covered_percent")] == ["15.0", "250.0", "100.0"]
    assert tasks["d::all"]["covered_percent"] == "50.0"
    assert [row["mean_w"] for row in rows if row["kind"] == "work"] == ["225.0", "125.0", ""]


def test_tiles_are_summed_up(tmp_path):
    path = trace(tmp_path / "s.json", [named(9, "HOST<h> s")] + [
        event for tile in (0, 1) for event in counter(9, f"GPU 1 0:3a:0:0 tile {tile} energy [J]", [(0, 0), (1, 50), (2, 200)])
    ])  # fmt: skip
    assert figures(report(path, app(tmp_path / "a.json")), "work")["b"][2] == 225


def test_hosts_are_told_apart(tmp_path):
    rows = report(system(tmp_path / "s.json"), app(tmp_path / "a.json"), system(tmp_path / "t.json", host="g", factor=2), app(tmp_path / "b.json", host="g"))
    assert figures(rows, "work")["b"][2] in (225, 450) and sorted(float(row["energy_j"]) for row in rows if row["name"] == "b") == [225, 450]
    assert figures(rows, "task")["d::step"] == (4, 3.0, 250 + 15 + 500 + 15)


def test_ranks_of_a_node(tmp_path):
    """Each rank is a run of its own, and the first one's sampler is that of all."""
    rows = report(app(tmp_path / "b.json", run="r2"), system(tmp_path / "s.json"), app(tmp_path / "a.json"))
    assert figures(rows, "work") == {"b": (2, 2.0, 225.0), "a": (2, 2.0, 125.0), "nothing": (2, 0.0, 0.0)}


def test_a_device_that_nobody_looked_at(tmp_path):
    rows = report(system(tmp_path / "s.json"), app(tmp_path / "a.json", bus="0:99:0:0"))
    assert not figures(rows, "work") and figures(rows, "device") and figures(rows, "task")


def test_kineto_with_two_of_a_name(tmp_path):
    """Nobody knows whose a kernel is then: it is left out."""
    kineto = trace(tmp_path / "k.json", [named(5, "HOST<h> app"), named(0, "GPU 1"), slice_of(0, "kernel", "a", 0.5, 1.5)])
    one = system(tmp_path / "s.json")
    assert figures(report(one, kineto), "work") == {"a": (1, 1.0, 200.0)}
    events = [named(9, "HOST<h> s")] + [e for bus in "ab" for e in counter(9, f"GPU 1 0:{bus}:0:0 energy [J]", [(0, 0), (2, 2)])]
    assert not figures(report(trace(tmp_path / "two.json", events), kineto), "work")


def test_text(tmp_path):
    done = subprocess.run([sys.executable, SUMMARY, "--energy", system(tmp_path / "s.json"), app(tmp_path / "a.json")], capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["b", "1", "1", "225", "225", "100.0"] in lines and ["d::step", "2", "1.5", "265", "176.667", "15", "250", "100.0"] in lines


def test_bad_input(tmp_path):
    a, s = app(tmp_path / "a.json"), system(tmp_path / "s.json")
    assert "was the program run with --system-metrics" in report(a, status=2)
    assert "h was looked at more than once" in report(a, s, system(tmp_path / "t.json", run="r2"), status=2)
    assert "none: No such file" in report(s, tmp_path / "none", status=2)
    (tmp_path / "empty.json").write_text("")
    assert "empty" in report(s, tmp_path / "empty.json", status=2)
    done = subprocess.run([sys.executable, SUMMARY, "--csv", a], capture_output=True, text=True)
    assert done.returncode == 2 and "--csv is for --energy" in done.stderr
    odd = trace(tmp_path / "odd.json", [
        named(9, "HOST<h> s"), *counter(9, "GPU 1 0:3a:0:0 card energy [J]", [(0, 0)]), *counter(9, "GPU 2 0:3b:0:0 card energy [J]", [(0, "x"), (1, None)]),
        {"ph": "C", "ts": 1e300, "pid": 9, "name": "GPU 1 0:3a:0:0 energy [J]", "args": {"value": 1}}, {"ph": "C", "ts": 0, "pid": 9, "name": "energy [J]", "args": 3},
        {"ph": "X", "ts": 0, "dur": -5, "pid": 9, "cat": "gpu_op", "name": "k"}, {"ph": "X", "ts": 0, "dur": 5, "pid": [9], "cat": "gpu_op", "name": "k"},
    ])  # fmt: skip
    assert figures(report(odd, a, status=1), "device") == {"GPU 1 0:3a:0:0": (1, 0.0, 0.0)}


def energy_at(us):
    rest = us % 10**6
    return (50 * us + us // 10**6 * 10**8 + rest * rest // 10**4) / 1e6


class Run:
    """A run of kernels on the software GPU: its traces, when the driver was asked for energy [us] and when the trace says so [us]."""

    def __init__(self, folder, kind):
        folder.mkdir()
        log = folder / "sysman.log"
        done = subprocess.run(
            [XSTRACE, "--system-metrics=2", "--chrome-kernel-logging", f"--format={kind}", BUILD / "tests/apps/ze_calls", "2", "6"],
            cwd=folder, capture_output=True, text=True, timeout=120,
            env=os.environ | {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYSMAN_LOG": str(log), "SOFTGPU_DURATION_NS": "*=20000000", "SOFTGPU_WORKERS": "1",
                              "XSTRACE_TEST_ZE_KERNELS": str(BUILD / "tests/softgpu/ze_kernels.so")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        self.traces = sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)  # ze_calls, xstrace-system
        self.app, self.system = ([e for e in json.loads(path.read_text())["traceEvents"]] for path in self.traces)
        self.looked = [int(line.split("\t")[3]) for line in log.read_text().splitlines() if line.startswith("power\t0\t0\t")]
        self.told = [e["ts"] for e in self.system if e["ph"] == "C" and e["name"].endswith("card energy [J]")]
        # the driver's time of a look is a little before the counter's, or long before where others have the processor
        late = [ts - us for ts, us in zip(self.told, self.looked)]
        self.offset, self.latest = min(late), max(late) - min(late)

    def energy(self, ts):
        """What the driver's function says; before the first look and behind the last one nothing is known."""
        return energy_at(min(max(ts, self.told[0]), self.told[-1]) - self.offset)


@pytest.mark.skipif(not DRIVER.exists(), reason="built without Level Zero")
@pytest.mark.parametrize("kind", ["chrome", "kineto"])
def test_a_run(tmp_path, kind):
    """Each kernel's energy is what the driver's function says of its time, in the traces of the run and in the merged one."""
    runs = []
    while len(runs) < 5 and (not runs or runs[-1].latest > 2000):
        runs.append(Run(tmp_path / str(len(runs)), kind))
    run = min(runs, key=lambda run: run.latest)
    work = [e for e in run.app if e["ph"] == "X" and e["cat"] in ("gpu_op", "kernel")]
    expected = sum(run.energy(e["ts"] + e["dur"]) - run.energy(e["ts"]) for e in work)
    rows = report(*run.traces)
    found = sum(float(row["energy_j"]) for row in rows if row["kind"] == "work")
    assert len(work) >= 25 and found == pytest.approx(expected, rel=0.01, abs=2 * 250 * run.latest / 1e6)
    device = next(row for row in rows if row["kind"] == "device")
    assert float(device["energy_j"]) == pytest.approx(energy_at(run.looked[-1]) - energy_at(run.looked[0]), rel=1e-9)

    if kind == "kineto":
        return
    merged = tmp_path / "merged.json"
    subprocess.run([MERGE, "-o", merged, *run.traces], check=True, capture_output=True)
    again = report(merged)
    assert figures(again, "device") == figures(rows, "device")
    assert [float(row["energy_j"]) for row in again if row["kind"] == "work"] == pytest.approx([float(row["energy_j"]) for row in rows if row["kind"] == "work"])
