"""--cpu-metrics: what the processor and the kernel have counted, for tasks and for kernels of OpenCL on processors."""

import collections
import csv
import errno
import json
import os
import re
import resource
import sys

import pytest

from conftest import APPS, BUILD
from gpu_log import SoftGPU

ITT = "--chrome-itt-logging"
SOFTWARE = "page-faults,context-switches"
COUNTED = f"{ITT} --cpu-metrics={SOFTWARE}"
NAMES = ("page-faults", "context-switches")

# Gives the calls that are named no room: what a sandbox, a kernel or a missing right do. (nr 298: perf_event_open of x86-64)
DENY = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code, words = int(sys.argv[1]), sys.argv[2:]
filters = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 298, 0x06, 0, 0, 0x00050000 | code, 0x06, 0, 0, 0x7FFF0000)
kept = ctypes.create_string_buffer(filters, len(filters))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(kept))
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.create_string_buffer(program, len(program)), 0, 0), ctypes.get_errno()
os.execv(words[0], words)
"""


def deny(code):
    return [sys.executable, "-c", DENY, str(code)]


def bounds(out):
    """What the program itself has asked the kernel for: {task: {event: [(least, most), ...]}}, in the order of time."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in re.findall(r"^between: (.*)$", out, re.M):
        least, most, event, task = line.split()
        found[f"app::{task}"][event].append((int(least), int(most)))
    return found


def of_program(run):
    (trace,) = [t for t in run.traces if "xstrace-cpu" not in t.path.name]
    return trace


def check_tasks(run):
    tasks = collections.defaultdict(list)
    for one in sorted(of_program(run).tasks, key=lambda s: s.start):
        tasks[one.name].append(one.args)
    for name, events in bounds(run.out).items():
        for event, pairs in events.items():
            assert len(pairs) == len(tasks[name])
            for (least, most), args in zip(pairs, tasks[name], strict=True):
                assert least <= args[event][0] <= most, (name, event)
    return tasks


@pytest.mark.parametrize("threads", [0, 5])
def test_tasks(xstrace, threads):
    run = xstrace(COUNTED, "itt_counts", [1000, 20, threads]).check_expected("tasks")
    tasks = check_tasks(run)
    assert all(args["page-faults"][0] >= 1000 for args in tasks["app::touch"])
    assert all(args["context-switches"][0] >= 20 for args in tasks["app::sleep"])
    assert "=== Task Counters ===" in run.err


def test_task_clock(xstrace):
    """A task that sleeps has no time on a processor, and none has more than it lasts."""
    run = xstrace(f"{ITT} --cpu-metrics=task-clock,minor-faults,major-faults", "itt_counts", [3000, 20])
    for one in of_program(run).tasks:
        assert set(one.args) == {"task-clock", "minor-faults", "major-faults"}
        assert one.args["task-clock"][0] <= one.end - one.start + 20_000, one
    (slept,) = [one for one in of_program(run).tasks if one.name == "app::sleep"]
    assert slept.args["task-clock"][0] < (slept.end - slept.start) / 2


@pytest.mark.parametrize("events, told", [("cpu-migrations", True), ("cpu-migrations,page-faults", False)])
def test_what_tasks_do_not_have(xstrace, events, told):
    """Where nothing else is counted, a line says what it needs."""
    run = xstrace(f"--cpu-metrics={events}", "itt_counts", [10, 1])
    lines = [line for line in run.said if "cpu-migrations is counted for kernels of OpenCL on processors alone" in line]
    assert run.status == 0 and len(lines) == told and ("=== Task Counters ===" in run.err) != told


@pytest.mark.parametrize("format", ["json", "csv"])
def test_rows(xstrace, format):
    """A row for each name of tasks has the sums of what the trace says of them."""
    run = xstrace(f"{COUNTED} --report-format {format} -o rep.txt", "itt_counts", [100, 5, 3])
    (path,) = [p for p in run.cwd.iterdir() if re.fullmatch(r"rep\.\d+\.txt", p.name)]
    rows = json.loads(path.read_text()) if format == "json" else list(csv.DictReader(path.open()))
    sums = collections.defaultdict(collections.Counter)
    for one in of_program(run).tasks:
        sums[one.name].update({"calls": 1, "time_ns": one.end - one.start} | {event: one.args[event][0] for event in NAMES})
    found = {}
    for row in rows:
        if row["report"] == "task_counters":
            counted = row["counted"] if format == "json" else json.loads(row["counted"])
            found[row["name"]] = {"calls": int(row["calls"]), "time_ns": int(row["time_ns"])} | counted
    assert found == sums


def test_library_ranges(xstrace):
    """Ranges of the library are tasks."""
    code = """
import mmap, xstrace
with xstrace.range("touch"):
    m = mmap.mmap(-1, 64 * 4096)
    for i in range(64): m[i * 4096] = 1
"""
    run = xstrace(COUNTED, sys.executable, ["-c", code], env={"PYTHONPATH": str(BUILD / "python")})
    if "No module named" in run.err:
        pytest.skip("the Python package is not built")
    (touched,) = [s for s in of_program(run).host if s.name == "touch"]
    assert touched.args["page-faults"][0] >= 1


def test_without_the_option(xstrace):
    run = xstrace(ITT, "itt_counts", [10, 1])
    assert not any(one.args for one in run.trace.tasks)
    assert "Task Counters" not in run.err


def test_counters_of_the_application(xstrace):
    """A trace of xstrace-cpu has what the whole application did, by time."""
    run = xstrace(COUNTED, "itt_counts", [5000, 20])
    (trace,) = [t for t in run.traces if "xstrace-cpu" in t.path.name]
    counters = collections.defaultdict(list)
    for event in trace.events:
        if event["ph"] == "C":
            counters[event["name"]].append((event["ts"], event["args"]["value"]))
    faults = counters["application: page-faults [1/s]"]
    assert set(counters) == {"application: page-faults [1/s]", "application: context-switches [1/s]"}
    assert max(value for _, value in faults) >= 5000 / 60


# ---- kernels ----


def kernel_rows(run):
    (path,) = [p for p in run.cwd.iterdir() if re.fullmatch(r"rep\.metrics\.\d+\.csv", p.name)]
    text = path.read_text()
    assert text.startswith("\n=== Device #0 Metrics ===\n\nKernel,GlobalInstanceId,GpuTime[ns],")
    return list(csv.DictReader(line for line in text.split("===\n")[1].splitlines() if line))


@pytest.mark.skipif(not (APPS / "cl_counts").exists(), reason="no OpenCL")
def test_kernels(xstrace):
    """What a kernel has to itself is counted for it; each kernel of the trace has a row."""
    run = xstrace("--chrome-device-logging --cpu-metrics=page-faults,task-clock -o rep.csv", "cl_counts", [1500])
    rows = kernel_rows(run)
    (trace,) = [t for t in run.traces if "cl_counts" in t.path.name]
    kernels = {int(s.args["id"]): s for s in trace.device}
    assert {int(row["GlobalInstanceId"]) for row in rows} == set(kernels) and len(kernels) == 6
    faults = collections.Counter()
    for row in rows:
        kernel = kernels[int(row["GlobalInstanceId"])]
        assert row["Kernel"] == kernel.base
        assert abs(int(row["GpuTime[ns]"]) - (kernel.end - kernel.start)) <= 1
        faults[row["Kernel"]] += float(row["page-faults[Events]"])
    # a look may be late on a busy machine
    assert 1400 <= faults["touch"] <= 1600 and faults["spin"] < 100
    assert sum(float(row["task-clock[ns]"]) for row in rows) > 0


@pytest.mark.skipif(not (APPS / "cl_counts").exists(), reason="no OpenCL")
def test_interval(xstrace):
    """--sampling-interval is that of the looks."""
    run = xstrace("--chrome-device-logging --cpu-metrics=page-faults -i 5000 -o rep.csv", "cl_counts", [10])
    assert len(kernel_rows(run)) == 6


@pytest.mark.skipif(not (BUILD / "sampler/xstrace-metrics").exists(), reason="no Level Zero headers")
def test_beside_another_sampler(xstrace, tmp_path):
    """Both wait for the kernels of all processes, and not for each other."""
    gpu = SoftGPU(tmp_path, SHM=tmp_path / "shm", DURATION_NS="increment=2000000")
    run = xstrace("-k -i 500 --cpu-metrics=page-faults -o rep.csv", "ze_matrix", ["--kernels", 4], env=gpu.env)
    assert run.status == 0
    (path,) = [p for p in run.cwd.iterdir() if re.fullmatch(r"rep\.metrics\.\d+\.csv", p.name)]
    assert "=== Device #0 Metrics ===" in path.read_text()


# ---- what cannot be ----


@pytest.mark.parametrize(
    "events, said",
    [
        ("cyles", "unknown event 'cyles'; did you mean cycles?"),
        ("page-faults,cachemisses", "unknown event 'cachemisses'; did you mean cache-misses?"),
        ("cycles,,cs", "takes events with one comma between each two, as cycles,page-faults"),
        ("cycles,", "takes events with one comma between each two, as cycles,page-faults"),
        ("", "takes EVENT,..., not an empty string"),
        ("x" * 200, "did you mean"),
    ],
)
def test_bad_events(xstrace, events, said):
    run = xstrace([ITT, f"--cpu-metrics={events}"], "itt_counts", [1, 1])
    assert run.status == 125 and not run.out and not run.err
    assert len(run.said) == 1 and said in run.said[0]


@pytest.mark.parametrize("options", ["--flight-recorder 1s", "--on-demand"])
def test_not_together(xstrace, options):
    run = xstrace(f"{COUNTED} {options}", "itt_counts", [1, 1])
    assert run.status == 125 and len(run.said) == 1


@pytest.mark.parametrize(
    "code, said",
    [
        (errno.EACCES, r"this user may not count \(sudo sysctl kernel\.perf_event_paranoid=[12]\)"),
        (errno.EPERM, r"a sandbox forbids perf_event_open\(\) \(of a container: --cap-add PERFMON"),
        (errno.ENOSYS, r"this kernel has no perf_event_open\(\)"),
        (errno.ENOENT, r"this machine has no such counters"),
    ],
)
def test_forbidden(xstrace, code, said):
    """One line says why and what mends it, before the program; what the kernel tells threads is counted all the same."""
    run = xstrace([ITT, "--cpu-metrics"], "itt_counts", [100, 3], prefix=deny(code))
    assert run.status == 0
    lines = [line for line in run.said if "--cpu-metrics" in line]
    assert len(lines) == 1 and re.search(said, lines[0]), run.said
    assert lines[0].endswith("counted: task-clock,page-faults,context-switches")
    check_tasks(run)


def test_other_names(xstrace):
    run = xstrace(f"{ITT} --cpu-metrics=faults,cs", "itt_counts", [10, 1])
    assert all(set(one.args) == set(NAMES) for one in of_program(run).tasks)


# ---- programs that make it hard ----


def test_no_descriptor(xstrace):
    """The program has those that it has without us."""
    code = """
import os
from ittapi import domain, string_handle, task_begin, task_end
d = domain("d")
task_begin(d, string_handle("t"))
print(sorted(os.listdir("/proc/self/fd")))
task_end(d)
"""
    run = xstrace(f"{ITT} --cpu-metrics", sys.executable, ["-c", code])
    assert of_program(run).tasks and run.out == xstrace.bare(sys.executable, ["-c", code]).out


@pytest.mark.parametrize(
    "app, args",
    [
        ("closer", []),
        ("closer", ["late"]),
        ("dropper", []),
        ("chdirer", []),
        ("itt_threads", [10000, 64]),
        ("itt_sandbox", ["filter"]),
        ("itt_sandbox", ["strict"]),
        ("itt_end", ["_exit"]),
    ],
)
def test_hostile(xstrace, app, args):
    """It ends as without us."""
    bare = xstrace.bare(app, args)
    run = xstrace(f"{ITT} --cpu-metrics", app, args)
    assert run.status == bare.status


def test_few_descriptors(xstrace):
    """Of threads that find no room for an event nothing is counted by the hardware; they run."""
    run = xstrace(COUNTED, "itt_counts", [10, 1, 3], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 4096)))
    assert run.status == 0
    check_tasks(run)


def test_children(xstrace):
    """A child of fork counts for itself: its parent's are not its own."""
    code = """
import mmap, os
from ittapi import domain, string_handle, task_begin, task_end
d = domain("d")
def touch(name, pages):
    task_begin(d, string_handle(name))
    m = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(pages): m[i * 4096] = 1
    task_end(d)
touch("parent", 2000)
pid = os.fork()
if not pid:
    touch("first", 100)
    touch("child", 300)
    os._exit(7)
assert os.waitpid(pid, 0)[1] == 7 << 8
"""
    run = xstrace(COUNTED, sys.executable, ["-c", code])
    assert run.status == 0
    tasks = {s.name: s.args["page-faults"][0] for t in run.traces for s in t.tasks}
    assert 2000 <= tasks["d::parent"] < 2500 and 300 <= tasks["d::child"] < 800


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_killed_sampler(xstrace):
    """The application goes on, and its tasks are counted."""
    run = xstrace.start(COUNTED, sys.executable, ["-c", "import sys; print('ready', flush=True); sys.stdin.read()"], stdin=-1)
    run.wait_for_output()
    os.kill(run.child("xstrace-cpu"), 9)
    run.process.stdin.close()
    run.finish()
    assert run.status == 0
    assert any("signal 9 has ended xstrace-cpu" in line for line in [*run.said, *run.err.splitlines()])
