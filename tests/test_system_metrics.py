"""--system-metrics: what the machine does, as counters beside the programs."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import XSTRACE, wait_until

STAT = "cpu  {user} 0 0 {idle} 0 0 0 0 0 0\n"
MEMORY = "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n"
ENERGY = "sys/class/powercap/intel-rapl:0"
NETWORK = "sys/class/net/eth7/statistics"
PORT = "sys/class/infiniband/mlx5_0/ports/1/counters"


@pytest.fixture
def machine(tmp_path):
    """A machine of files: put() changes what they say, at once."""

    class Machine:
        root = tmp_path / "machine"
        env = os.environ | {"XSTRACE_SYSTEM_ROOT": str(root)}

        def put(self, path, text):
            path = self.root / path
            path.parent.mkdir(parents=True, exist_ok=True)
            # the same file: it is open
            with open(path, "r+" if path.exists() else "w") as file:
                file.write(f"{text}\n".ljust(40) if isinstance(text, int) else text)

    made = Machine()
    made.put("proc/stat", STAT.format(user=100, idle=900))
    made.put("proc/meminfo", MEMORY.format(available=400))
    return made


def start(tmp_path, machine, *options, app=("sleep", "60"), **env):
    return subprocess.Popen(
        [XSTRACE, "--system-metrics=20", *options, *app], cwd=tmp_path, env=machine.env | env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(run, tmp_path, status=0):
    """What the counters said, by name: [(us, value)]."""
    _, said = run.communicate(timeout=60)
    assert run.returncode == status, said
    found = list(tmp_path.glob("xstrace-system.*.json"))
    assert len(found) == 1, said
    counters = {}
    for e in json.loads(found[0].read_text())["traceEvents"]:
        if e["ph"] == "C":
            counters.setdefault(e["name"], []).append((e["ts"], e["args"]["value"]))
    return counters


def sampler_of(run):
    """Its pid, once it samples."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for pid in subprocess.run(["pgrep", "-P", str(run.pid), "xstrace-system"], capture_output=True, text=True).stdout.split():
            if any("machine/proc/stat" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")):
                return int(pid)
        time.sleep(0.01)
    raise AssertionError("no xstrace-system")


def gone(pid):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not os.path.exists(f"/proc/{pid}") or " Z " in open(f"/proc/{pid}/stat").read():
            return True
        time.sleep(0.01)
    return False


def test_values(tmp_path, machine):
    run = start(tmp_path, machine)
    sampler_of(run)
    time.sleep(0.2)
    machine.put("proc/stat", STAT.format(user=175, idle=925))
    machine.put("proc/meminfo", MEMORY.format(available=100))
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGTERM)
    counters = finish(run, tmp_path, -signal.SIGTERM)
    assert [value for _, value in counters["memory used [B]"]] == [600 * 1024, 900 * 1024]
    assert [value for _, value in counters["processors busy [%]"]] == [75.0]


def test_rates(tmp_path, machine):
    """What a rate says of a time, times that time, is what was counted; energy begins anew at its range."""
    for path, value in ((f"{ENERGY}/energy_uj", 900_000), (f"{ENERGY}/max_energy_range_uj", 1_000_000), (f"{ENERGY}/name", "package-0"),
                        (f"{NETWORK}/rx_bytes", 5), (f"{NETWORK}/tx_bytes", 10**6), (f"{PORT}/port_rcv_data", 0), (f"{PORT}/port_xmit_data", 0)):  # fmt: skip
        machine.put(path, value)
    run = start(tmp_path, machine)
    sampler_of(run)
    time.sleep(0.2)
    machine.put(f"{ENERGY}/energy_uj", 400_000)  # 0.5 J on
    machine.put(f"{NETWORK}/rx_bytes", 100_005)
    machine.put(f"{NETWORK}/tx_bytes", 7)  # an interface that was reset: nobody knows
    machine.put(f"{PORT}/port_xmit_data", 1000)
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGTERM)
    counters = finish(run, tmp_path, -signal.SIGTERM)

    # a look is 20 ms after the one before it; later on a busy machine, and then the next one is nearer, but not nearer than 10 ms to
    # one of the network's; each change is in one of them
    rates = {name: [value for _, value in values if value] for name, values in counters.items()}
    assert len(rates["power of 0 package-0 [W]"]) == len(rates["eth7 received [B/s]"]) == len(rates["mlx5_0 port 1 sent [B/s]"]) == 1
    seconds = 0.5 / rates["power of 0 package-0 [W]"][0]
    assert 0.0099 < seconds < 1
    assert rates["eth7 received [B/s]"][0] == pytest.approx(100_000 / seconds, rel=0.5)
    assert 4000 / rates["mlx5_0 port 1 sent [B/s]"][0] == pytest.approx(seconds, rel=0.5)
    assert all(value == 0 for _, value in counters["eth7 sent [B/s]"])


def test_energy_of_processors(tmp_path, machine):
    """What was used since the first look; the same package is told once, and its range is no end."""
    other = ENERGY.replace("intel-rapl:0", "intel-rapl-mmio:0")
    for folder in (ENERGY, other):
        for name, value in (("energy_uj", 900_000), ("max_energy_range_uj", 1_000_000), ("name", "package-0")):
            machine.put(f"{folder}/{name}", value)
    run = start(tmp_path, machine)
    sampler_of(run)
    time.sleep(0.2)
    machine.put(f"{ENERGY}/energy_uj", 400_000)
    time.sleep(0.2)
    machine.put(f"{other}/energy_uj", 950_000)
    time.sleep(0.2)
    os.kill(run.pid, signal.SIGTERM)
    assert [value for _, value in finish(run, tmp_path, -signal.SIGTERM)["energy of 0 package-0 [J]"]] == [0, 0.5]


def test_this_machine(tmp_path, xstrace):
    run = subprocess.run([XSTRACE, "--system-metrics", "-h", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 7"], cwd=tmp_path)
    assert run.returncode == 7
    (path,) = tmp_path.glob("xstrace-system.*.json")
    names = {e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "C"}
    assert "memory used [B]" in names


@pytest.mark.parametrize("env", [{"MPI_LOCALRANKID": "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK": "3"}, {"SLURM_LOCALID": "1"}], ids=str)
def test_one_rank_of_a_machine(tmp_path, machine, env):
    run = start(tmp_path, machine, app=("true",), **env)
    assert "No event of interest" in run.communicate(timeout=60)[1] and run.returncode == 0
    assert not list(tmp_path.glob("*.json"))
    finish(start(tmp_path, machine, app=("sleep", "0.5"), **dict.fromkeys(env, "0")), tmp_path)


def test_without_children(tmp_path, machine):
    assert "memory used [B]" in finish(start(tmp_path, machine, "--follow-child-process", "0", app=("sleep", "0.5")), tmp_path)


def test_ctrl_c_is_the_applications(tmp_path, machine):
    ready = tmp_path / "ready"
    run = start(tmp_path, machine, app=("sh", "-c", f"trap 'exit 5' INT; >{ready}; while :; do sleep 0.05; done"))
    pid = sampler_of(run)
    wait_until(ready.exists)
    os.killpg(run.pid, signal.SIGINT)
    assert "memory used [B]" in finish(run, tmp_path, 5)
    assert gone(pid)


def test_it_ends_with_the_launcher(tmp_path, machine):
    run = start(tmp_path, machine)
    pid = sampler_of(run)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    assert gone(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_it_is_killed_or_stopped(tmp_path, machine, number):
    """The application has its end, and its status."""
    run = start(tmp_path, machine, app=("sh", "-c", "sleep 1; exit 9"))
    pid = sampler_of(run)
    os.kill(pid, number)
    assert "memory used [B]" in finish(run, tmp_path, 9)
    assert gone(pid)


def test_it_crashes(tmp_path, machine):
    """As when a driver crashes in it: a line says so."""
    run = start(tmp_path, machine, app=("sh", "-c", "sleep 1; exit 9"))
    os.kill(sampler_of(run), signal.SIGSEGV)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 9 and "xstrace: signal 11 has ended xstrace-system, which samples no more; the application goes on\n" in said


@pytest.mark.parametrize("value", ["0", "60001", "x"])
def test_odd_intervals(tmp_path, value):
    run = subprocess.run([XSTRACE, f"--system-metrics={value}", "true"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode and "--system-metrics" in run.stderr and run.stderr.count("\n") == 1


def test_energy_that_only_root_reads(tmp_path, machine):
    if os.geteuid():
        pytest.skip("needs root, to give its rights up")
    machine.put(f"{ENERGY}/energy_uj", 1)
    (machine.root / ENERGY / "energy_uj").chmod(0o400)
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(path.stat().st_mode | 0o055) if path != path.parent and str(path).startswith("/tmp/") else None
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    run = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", XSTRACE, "--system-metrics", "sleep", "0.3"],
        capture_output=True, text=True, cwd=out, env=machine.env,
    )  # fmt: skip
    assert run.returncode == 0
    assert f"[WARNING] The energy of intel-rapl:0 may be read by root only (sudo chmod a+r /{ENERGY}/energy_uj)\n" in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="counting for the whole machine needs rights")
def test_memory_controllers(tmp_path, machine):
    """A box that counts page faults: what it says of all times together is at least what the program had on that processor."""
    box = "sys/bus/event_source/devices/uncore_imc_3"
    files = {"type": "1", "cpumask": "0", "format/event": "config:0-7", "format/umask": "config:8-15",
             "events/cas_count_read": "event=0x02,umask=0x00", "events/cas_count_read.scale": "6.103515625e-5", "events/cas_count_read.unit": "MiB",
             "events/cas_count_write": "event=0x05", "events/cas_count_write.scale": "6.103515625e-5", "events/cas_count_write.unit": "MiB"}  # fmt: skip
    for path, text in files.items():
        machine.put(f"{box}/{path}", text + "\n")
    for path, text in {"type": "1", "cpumask": "0", "format/event": "config1:0-7", "events/cas_count_read": "event=0x02"}.items():
        machine.put(f"{box[:-1]}4/{path}", text + "\n")  # whose events are of a kind that we do not know
    pages = 20000
    code = f"""
import mmap, time
m = mmap.mmap(-1, {pages} * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
time.sleep(0.3)
for i in range({pages}): m[i * 4096] = 1
time.sleep(0.1)
"""
    run = start(tmp_path, machine, app=("taskset", "-c", "0", sys.executable, "-c", code))
    counters = finish(run, tmp_path)
    read = counters["memory of uncore_imc_3 at processor 0 read [B/s]"]
    # a value that has not changed is not told again: each holds until the next look, 20 ms at least
    moved = sum(value * (at - before) / 1e6 for (before, _), (at, value) in zip(read, read[1:]))
    assert moved >= 0.9 * pages * 64
    assert "memory of uncore_imc_3 at processor 0 written [B/s]" in counters
    assert not any("uncore_imc_4" in name for name in counters)
