"""A program that contains xstrace: include/xstrace/xstrace.h (tests/apps/library.c, library_cl.c)."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, BUILD, ROOT, XSTRACE, Trace, wait_until
from cuda_log import SoftCUDA

LIBRARY = APPS / "library"
API = BUILD / "library"


def run(xstrace, *words, env=None, cwd=None, status=0, timeout=60):
    run = xstrace.bare(LIBRARY, [str(word) for word in words], env=env, cwd=cwd, timeout=timeout)
    assert run.status == status and run.err == "", run.err
    return run.out


def left_behind():
    return set(Path("/dev/shm").glob("xstrace-*")) | set(Path(os.environ.get("TMPDIR", "/tmp")).glob("xstrace-??????"))


def tasks(trace, name):
    return [s for s in trace.slices if s.name == name]


def test_traces_one_after_the_other(xstrace, private):
    """Each trace has what happened between its start and its stop, and nothing else."""
    out = run(xstrace, "windows", xstrace.home, 3)
    events = re.findall(r"events (\d+) (\d+), kernels (\d+), in ids (\d+)", out)
    files = re.findall(r"file (\S+) outer (\d+) steps (\d+)", out)
    assert len(events) == len(files) == 3
    for number, ((count, seen, kernels, in_ids), (path, outer, steps)) in enumerate(zip(events, files)):
        trace = Trace(path)
        assert len(tasks(trace, "outer")) == len(tasks(trace, "inner")) == int(outer)
        assert sum(s.name.startswith("ProfilerStep#") for s in trace.slices) == int(steps)
        assert not trace.truncated and trace.other["lost"] == 0 and trace.other["end"] == "stopped"
        assert [t["name"] for t in trace.other["threads"]] == ["library"]
        # outer, inner and a mark each; steps; three activities and their list; the back-end's event; the violation
        assert int(count) == int(seen) == 3 * int(outer) + int(steps) + 6 + 1000 * number
        assert kernels == "1" and in_ids == "2"  # the ranges: marks have no ids
        about = trace.other["application"]
        assert about["config"] == {"a": [1, 2500.0, None], "b": "\u00e9"} and about["broken"] == '{"a": '
        assert about["note"] == 'a "text" \ufffd' and about["trace_id"]
        (kernel,) = [s for s in trace.slices if s.cat == "kernel"]
        assert kernel.name == "gemm" and kernel.end - kernel.start == 100_000 and kernel.args["External id"] == 40 + number
        op, *more = sorted(tasks(trace, "aten::mm"), key=lambda s: "Input Dims" not in s.args)
        assert op.args["Input Dims"] == [[[2, 3]]] and op.start == kernel.start - 50_000
        assert [(s.args["last"], s.args["External id"]) for s in more if "last" in s.args] == ([(["yes"], ["its own"])] if number else [])
        (violation,) = tasks(trace, "invariant violation")
        assert violation.args["assertion"] == ["a < b"] and violation.args["group_profile_id"] == ["2"]


def test_under_the_launcher(xstrace):
    """The same program's events are in the launcher's trace, and it is told so."""
    run = xstrace("--chrome-itt-logging", LIBRARY, ["misuse", xstrace.home])
    assert run.status == 0
    assert "stop: 2, the events are in the launcher's trace" in run.out
    assert "save: 2" in run.out and "toggle off: 2" in run.out
    assert len(tasks(run.trace, "outer")) == 9


def test_misuse(xstrace, private):
    out = run(xstrace, "misuse", xstrace.home)
    said = dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)
    assert {key: value.partition(",")[0] for key, value in said.items()} == {
        "stop before start": "3",
        "stop without a place": "4",
        "step before start": "0",
        "metadata before start": "1",
        "a size that cannot be": "4",
        "unknown activities": "4",
        "unknown filter": "4",
        "no such directory": "4",
        "filter": "0",
        "start": "0",
        "start again": "3",
        "prepare while started": "3",
        "child without enable": "3",
        "toggle a part": "0",
        "toggle off": "0",
        "toggle on": "0",
        "a type that is none": "4",
        "transfer of nothing": "4",
        "memory export too early": "3",
        "stop": "0",
        "stop again": "3",
        "an event that is none": "4",
        "save nowhere": "6",
        "save": "0",
        "save again": "3",
    }
    assert "marks 2\n" in out  # the filter leaves those two, and the pause nothing of the seven
    trace = Trace(xstrace.home / "0.json")
    assert len(tasks(trace, "outer")) == 2


@pytest.mark.long
def test_threads(xstrace, private):
    """8 threads that never stop, 10 traces: each is valid, and none loses or doubles a range."""
    out = run(xstrace, "threads", xstrace.home, timeout=100)
    assert out == "some ranges: 1\n"
    for number in range(10):
        trace = Trace(xstrace.home / f"{number}.json")
        assert not trace.damage and not trace.truncated and trace.other["lost"] == 0
        assert len(trace.other["threads"]) <= 9


def test_forks(xstrace, private):
    """A child of fork is not traced, and the program never finds a child that is not its own."""
    out = run(xstrace, "fork", xstrace.home)
    assert "another child" not in out
    assert out.count("forked from one that uses xstrace") == 2
    assert len(tasks(Trace(xstrace.home / "0.json"), "outer")) == 5


@pytest.mark.parametrize(
    "kind, status", [("exit", 3), ("_exit", 3), ("abort", -signal.SIGABRT), ("kill", -signal.SIGKILL), ("exec", 0), ("stop", 0)]
)
def test_ends_while_it_is_recorded(xstrace, kind, status):
    """A trace that nobody stops is complete where the program said that traces lie."""
    before = left_behind()
    run(xstrace, "end", kind, cwd=xstrace.home, status=status)
    wait_until(lambda: not left_behind() - before)
    (path,) = xstrace.home.glob("*.json")
    trace = Trace(path)
    assert len(tasks(trace, "outer")) == len(tasks(trace, "inner")) == 5 and not trace.truncated
    assert not list(xstrace.home.glob("*.events")) + list(xstrace.home.glob("*.names"))


def test_a_trace_that_is_not_saved(xstrace):
    run(xstrace, "end", "unused", cwd=xstrace.home)
    time.sleep(0.1)
    assert not list(xstrace.home.glob("library.*"))


def test_memory(xstrace, private):
    out = run(xstrace, "memory", xstrace.home)
    assert out == "memory again: 3, memory is being profiled already\n"
    profile = json.loads((xstrace.home / "memory0.json").read_text())
    assert [row[1:] for row in profile["timeline"]] == [
        [1, 1, 100, 100, 1000],
        [1, 1, 50, 150, 1000],
        [1, 1, 25, 175, 1000],
        [1, 1, -50, 125, 1000],
        [0, 0, 8, 8, 8],
        [18, 0, 1, 9, 9],
        [18, 0, 2, 9, 9],
    ]
    assert [row[0] for row in profile["timeline"]] == sorted(row[0] for row in profile["timeline"])
    assert profile["snapshot"] == [
        {"device_type": 0, "device": 0, "category": "unknown", "bytes": 8, "blocks": 1},
        {"device_type": 1, "device": 1, "category": "parameter", "bytes": 125, "blocks": 2},
        {"device_type": 18, "device": 0, "category": "23456789012345678901234567890123456789?", "bytes": 2, "blocks": 1},
        {"device_type": 18, "device": 0, "category": 'a "gr\u00f6\u00dfe" ??', "bytes": 1, "blocks": 1},
    ]
    counters = [
        e["args"]["value"] for e in Trace(xstrace.home / "0.json").events if e["ph"] == "C" and e["name"] == "memory of device type 1, 1"
    ]
    assert counters == [100, 150, 175, 125]


@pytest.mark.parametrize(
    "options, expected",
    [
        ("--ring-size 64K", "prepare: 0\n"),
        ("--no-such", "prepare: 4, unknown option --no-such; see xstrace --help\n"),
        ("--ring-size 3", "prepare: 4, --ring-size takes a number"),
        ("app", "prepare: 4, 'app' is no option"),
        ("--version", "prepare: 4, --version is not for a run that the program begins itself"),
        ("--stop x", "prepare: 4, --stop is not for a run that the program begins itself"),
        ("--flight-recorder 1s --chrome-itt-logging", "prepare: 4, --flight-recorder is not for"),
        ("--start-paused", "prepare: 4, --start-paused is not for"),
        ("--delay 1s", "prepare: 4, --delay is not for"),
        ("--result-dir none", "prepare: 4, --result-dir is not for"),
        ("-h", "prepare: 4, reports (-h, -d, -s, -t, -c, -r) need --output here"),
        ("--chrome-itt-logging --ring-size", "prepare: 4, option --ring-size needs a value: BYTES"),
        ("-h -o", "prepare: 4, option --output needs a value: FILE"),
        ("-h -o /no/such/report", "prepare: 4, --output /no/such/report: /no/such: No such file"),
        ("--include-kernels-file /no/such", "prepare: 4, --include-kernels-file /no/such: No such file"),
    ],
)
def test_options(xstrace, private, options, expected):
    assert run(xstrace, "options", options).startswith(expected)


# what `xstrace --help` has, and a run that the program begins itself takes: each has an effect there, or none anywhere
TAKEN = {
    "--host-timing", "--device-timing", "--kernel-submission", "--device-timeline", "--call-logging", "--tid", "--pid", "--demangle",
    "--separate-tiles", "--report-format", "--opencl", "--chrome-call-logging", "--chrome-kernel-logging", "--chrome-device-logging",
    "--chrome-itt-logging", "--chrome-ccl-logging", "--chrome-mpi-logging", "--chrome-dnn-logging", "--ccl-summary-report",
    "--chrome-openmp-logging", "--openmp-report", "--chrome-sycl-logging", "--python-stacks", "--call-stacks",
    "--chrome-no-thread-on-device", "--chrome-no-engine-on-device", "--chrome-event-buffer-size", "--ring-size", "--backlog",
    "--backlog-disk", "--on-full", "--format", "--compress", "--on-demand", "--devices-to-sample", "--follow-child-process",
    "--include-kernels", "--exclude-kernels", "--exclude-calls", "--include-kernels-file", "--exclude-kernels-file", "--session",
    "--stacks-on-crash", "--teardown-on-signal", "--system-time", "--reset-event-on-device", "--output", "--output-dir-path", "--verbose",
}  # fmt: skip
VALUES = {
    "--report-format": "json", "--on-full": "drop", "--format": "chrome", "--compress": "none", "--export": "prometheus:0",
    "--iterations": "a:1", "--trigger": "marker:a", "--attach": "1", "--ring-size": "64K", "--output-dir-path": "/tmp",
    "--include-kernels-file": f"{ROOT}/VERSION", "--exclude-kernels-file": f"{ROOT}/VERSION", "--output": "/tmp/xstrace-report",
}  # fmt: skip


def every_option():
    """Each option of --help, with a value where it takes one."""
    text = subprocess.run([XSTRACE, "--help"], capture_output=True, text=True, check=True).stdout
    for name, value in re.findall(r"^(--[a-z-]+)(?: \[-\w\])?(?:\[=\S+\])?(?: (\S+))? {2}", text, re.M):
        yield pytest.param(f"{name}={VALUES.get(name, '1')}" if value else name, id=name)


@pytest.mark.parametrize("option", list(every_option()))
def test_every_option(xstrace, private, option):
    """It does something in a run that the program begins itself, or it is refused with a line that names it."""
    name = option.split("=")[0]
    more = {"--call-stacks": " --chrome-call-logging", "--report-format": " -h -o r.json"}.get(name, "")
    more += " -o r.txt" if name.endswith(("timing", "submission", "timeline", "call-logging", "report")) and "chrome" not in name else ""
    said = run(xstrace, "options", option + more)
    if name in TAKEN:
        assert said.startswith("prepare: 0\n")
    else:
        assert said.startswith("prepare: 4, ") and name.replace("--conditional-collection", "--start-paused") in said.splitlines()[0]



def test_opencl(xstrace, private):
    """Device work without a launcher: prepared before the program first uses OpenCL."""
    if not (APPS / "library_cl").exists():
        pytest.skip("no OpenCL")
    path = xstrace.home / "cl.json"
    run = xstrace.bare(APPS / "library_cl", [str(path), "25"])
    assert run.status == 0 and run.out == "kernels 25, calls 25\n", run.out + run.err
    trace = Trace(path)
    assert len([s for s in trace.device if s.base == "grow"]) == 25


def drain_of(place):
    """The drain process of a run whose environment names this directory."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() == "xstrace-drain\n" and f"TMPDIR={place}\0" in (path / "environ").read_text():
                return int(path.name)
        except OSError:
            pass
    return None


@pytest.mark.parametrize("late", [0, 60_000])
def test_cuda(xstrace, private, late):
    """Kernels that the driver has not told of when the trace ends are asked for then."""
    if not (APPS / "library_cuda").exists():
        pytest.skip("no headers of CUDA")
    cuda = SoftCUDA(xstrace.home, LATE_MS=late)
    path = xstrace.home / "cuda.json"
    run = xstrace.bare(APPS / "library_cuda", [str(path), "25"], env=cuda.env)
    assert run.status == 0 and run.out == "kernels 25\n" * 3, run.out + run.err
    assert len([s for s in Trace(path).slices if s.name.startswith("empty")]) == 25


def test_cuda_that_was_used_before(xstrace, private):
    """The driver looks for a tracer once, before there is a trace: CUPTI is subscribed to when there is one."""
    if not (APPS / "library_cuda").exists():
        pytest.skip("no headers of CUDA")
    cuda = SoftCUDA(xstrace.home)
    path = xstrace.home / "cuda.json"
    run = xstrace.bare(APPS / "library_cuda", [str(path), "25"], env=cuda.env | {"LATE": "1"})
    assert run.status == 0 and run.out == "kernels 25\n" * 3, run.out + run.err
    assert len(cuda.kernels) == 76


def test_ids_that_the_program_pushes(xstrace, private):
    """Kineto's External id: that of the operation for calls and kernels, that of the range for what it has launched."""
    if not (APPS / "library_cuda").exists():
        pytest.skip("no headers of CUDA")
    path = xstrace.home / "ids.json"
    options = "--format kineto --chrome-call-logging"
    run = xstrace.bare(APPS / "library_cuda", [str(path), "7", options], env=SoftCUDA(xstrace.home).env)
    assert run.status == 0 and run.out == "kernels 7\n" * 3, run.out + run.err
    events = json.loads(path.read_text())["traceEvents"]

    def ids(category, name):
        return [e["args"].get("External id") for e in events if e.get("cat") == category and name in e["name"]]

    assert ids("cuda_runtime", "LaunchKernel") + ids("cuda_driver", "LaunchKernel") == [102] * 7
    assert ids("cuda_runtime", "DeviceSynchronize") == [None]
    assert ids("kernel", "empty") == [102] * 7
    assert ids("gpu_user_annotation", "launches") == [202]


OF_THREADS = r"""
#include <xstrace/xstrace.h>
#include <pthread.h>
#include <stdio.h>
static void *with_ids(void *unused)
{
	xstrace_push_correlation(5);
	xstrace_push_user_correlation(6);
	xstrace_range_push("first");
	xstrace_range_pop();
	return unused;
}
static void *without(void *unused)
{
	xstrace_range_push("second");
	xstrace_range_pop();
	return unused;
}
int main(void)
{
	void *(*const work[])(void *) = { with_ids, without };
	struct xstrace_trace *trace;
	struct xstrace_event event;
	if (xstrace_start())
		return 1;
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work[i], NULL);
		pthread_join(thread, NULL);
	}
	if (xstrace_stop(&trace))
		return 1;
	for (size_t i = 0; i < xstrace_trace_count(trace); i++)
		if (!xstrace_trace_event(trace, i, &event))
			printf("%s %d %d\n", event.name, (int)event.external, (int)event.user_external);
	xstrace_trace_free(trace);
	return 0;
}
"""


def test_ids_are_their_thread_s(xstrace, private):
    """One that ends with ids on top leaves them to no other thread, also where that goes on in its ring."""
    source, app = xstrace.home / "ids.c", xstrace.home / "ids"
    source.write_text(OF_THREADS)
    build(source, app, "-pthread")
    run = xstrace.bare(app, [])
    assert (run.status, run.out) == (0, "first 5 6\nsecond 0 0\n"), run.out + run.err


def test_parts_switched_off(xstrace, private):
    """The host's ranges, or the devices' calls and kernels; a range that is open then ends there."""
    if not (APPS / "library_cl").exists():
        pytest.skip("no OpenCL")
    path = xstrace.home / "cl.json"
    run = xstrace.bare(APPS / "library_cl", [str(path), "25", "parts"])
    assert run.status == 0 and run.out == "kernels 50, calls 50\n", run.out + run.err
    trace = Trace(path)
    assert [len(tasks(trace, name)) for name in ("open", "host off", "devices off", "all on")] == [1, 0, 1, 1]
    enqueues = tasks(trace, "clEnqueueNDRangeKernel")
    opened, last = tasks(trace, "open")[0], tasks(trace, "all on")[0]
    assert len(enqueues) == 50 and opened.end <= enqueues[0].start
    assert sum(last.start <= e.start and e.end <= last.end for e in enqueues) == 25


def test_the_drain_process_dies(xstrace, tmp_path, monkeypatch):
    """The program goes on, and is told how to have the trace."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    source, app = xstrace.home / "killed.c", xstrace.home / "killed"
    source.write_text(KILLED)
    build(source, app)
    with subprocess.Popen([app], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        os.kill(drain_of(tmp_path), signal.SIGKILL)
        out, _ = program.communicate("\n", timeout=60)
    assert program.returncode == 0 and "the drain process has" in out, out
    directory = re.search(r"--recover (\S+)", out)[1]
    recovered = xstrace.bare(BUILD / "launcher/xstrace", ["--recover", directory])
    assert recovered.status == 0, recovered.err
    (path,) = tmp_path.glob("xstrace-*/killed.*.json")
    assert len(tasks(Trace(path), "before")) == 1 and len(tasks(Trace(path), "after")) == 1


KILLED = r"""
#include <xstrace/xstrace.h>
#include <stdio.h>
int main(void)
{
	struct xstrace_trace *trace;
	if (xstrace_start())
		return 1;
	xstrace_range_push("before");
	xstrace_range_pop();
	puts("ready");
	fflush(stdout);
	getchar();
	xstrace_range_push("after");
	xstrace_range_pop();
	int result = xstrace_stop(&trace);
	printf("%d %s\n", result, xstrace_why());
	return 0;
}
"""


def build(source, app, *flags, compiler="cc"):
    words = [compiler, "-Wall", "-Wextra", "-Werror", *flags, f"-I{ROOT}/include", f"-I{API}", "-o", app, source]
    subprocess.run([*words, f"-L{API}", "-lxstrace-api", f"-Wl,-rpath,{API}"], check=True)


USER = r"""
#include <%s>
#include <stdio.h>
int main(void)
{
	struct xstrace_trace *trace;
	int result = xstrace_start();
	xstrace_range_push("a");
	xstrace_range_pop();
	xstrace_mark(xstrace_result_text(result));
	int stopped = xstrace_stop(&trace);
	printf("%%d %%d %%d %%s\n", result, stopped, (int)xstrace_is_active(), xstrace_why());
	xstrace_trace_free(trace);
	return 0;
}
"""


@pytest.mark.parametrize("standard", ["-std=c11", "-std=c++17"])
@pytest.mark.parametrize("header", ["xstrace/xstrace.h", "stub.h"])
def test_headers(xstrace, standard, header):
    """Both headers compile as C11 and C++17 without a warning; the stub needs no library."""
    source, app = xstrace.home / "user.c", xstrace.home / "user"
    source.write_text(USER % header)
    language = ["-x", "c++" if "++" in standard else "c"]
    words = ["g++" if "++" in standard else "gcc", standard, "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", f"-I{API}"]
    link = [f"-L{API}", "-lxstrace-api", f"-Wl,-rpath,{API}"] if header != "stub.h" else []
    subprocess.run([*words, "-o", app, *language, source, "-x", "none", *link], check=True)
    run = xstrace.bare(app)
    assert run.out.startswith("0 0 0 " if header != "stub.h" else "1 1 0 xstrace was left out"), run.out


def test_not_installed(xstrace):
    """Where the collector is not, every call says so, and nothing else happens."""
    source, app, alone = xstrace.home / "user.c", xstrace.home / "user", xstrace.home / "alone"
    source.write_text(USER % "xstrace/xstrace.h")
    build(source, app)
    alone.mkdir()
    shutil.copy(API / "libxstrace-api.so.0", alone)
    run = xstrace.bare(app, env={"LD_LIBRARY_PATH": str(alone), "LD_PRELOAD": str(alone / "libxstrace-api.so.0")})
    why = "libxstrace.so is not where libxstrace-api is"
    assert run.status == 0 and run.out.startswith(f"1 1 0 {why}"), run.out + run.err


def test_switched_off(xstrace):
    source, app = xstrace.home / "user.c", xstrace.home / "user"
    source.write_text(USER % "xstrace/xstrace.h")
    build(source, app)
    run = xstrace.bare(app, env={"XSTRACE_DISABLE": "1"})
    assert run.status == 0 and run.out == "1 1 0 XSTRACE_DISABLE is set in the environment\n", run.out


def test_linked_statically(xstrace, private):
    source, app = xstrace.home / "user.c", xstrace.home / "user"
    source.write_text(USER % "xstrace/xstrace.h")
    words = ["cc", f"-I{ROOT}/include", "-o", app, source, API / "libxstrace-api.a"]
    # the collector is found where the library would be: beside the program
    subprocess.run(words, check=True)
    (xstrace.home / "xstrace").mkdir()
    for part in ("collector/libxstrace.so", "launcher/xstrace-host", "writer/xstrace-drain"):
        shutil.copy(BUILD / part, xstrace.home / "xstrace")
    run = xstrace.bare(app)
    assert run.status == 0 and run.out.startswith("0 0 0 "), run.out + run.err


def test_programs_of_the_shim(xstrace, private):
    """The examples of PyTorch's kineto_shim and of XSigma, over xstrace/kineto_shim.hpp."""
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler")
    app = xstrace.home / "shim"
    build(ROOT / "tests/apps/library_shim.cpp", app, "-std=c++17", "-pedantic", "-Wshadow", compiler="g++")
    run = xstrace.bare(app, [str(xstrace.home)])
    assert run.status == 0, run.out + run.err
    assert run.out.splitlines() == [
        "type 2",
        "events 4, linked 1",
        f"again: the trace was saved already, as {xstrace.home}/basic.json",
        "wrapper 0",
        "device type 1",
        "init 1",
        "post-processed 3",
    ]
    basic, shim = Trace(xstrace.home / "basic.json"), Trace(xstrace.home / "shim.json")
    assert len(tasks(basic, "operation")) == len(tasks(basic, "child")) == 1
    assert tasks(basic, "operation")[0].track != tasks(basic, "child")[0].track
    (op,) = tasks(shim, "aten::add")
    assert op.args == {"Call stack": ["main"], "External id": 9} and op.end - op.start == 1000
    assert shim.other["application"]["distributedInfo"] == {"rank": 3}
    assert len(tasks(Trace(xstrace.home / "xsigma.json"), "operation")) == 1
