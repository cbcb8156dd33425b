"""What a run says to the people who read it: whose table this is, what a process is, where a file lies."""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import APPS, ROOT, XSTRACE, compile_c, wait_until
from gpu_log import SoftGPU

ITT = "--chrome-itt-logging"
KERNELS = "--chrome-kernel-logging"
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
OPENCL = ["-DCL_TARGET_OPENCL_VERSION=120", "-lOpenCL"]


def process_names(trace, pid=None):
    """All that its process was called, in this order."""
    return [
        event["args"]["name"]
        for event in trace.events
        if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] == (pid or trace.pid)
    ]


# ---- where things are ----


def test_reports_stay_where_output_says(xstrace):
    """As unitrace has it: -o is relative to the working directory, and never below --output-dir-path."""
    absolute = xstrace.home / "reports"
    absolute.mkdir()
    for output in (str(absolute / "rep.txt"), "rep.txt"):
        run = xstrace(["-h", "--chrome-call-logging", "-o", output, "--output-dir-path", "traces"], "gemm", [64, 1])
        assert run.status == 0 and run.trace.path.parent == xstrace.cwd / "traces"
        (report,) = Path(xstrace.cwd, output).parent.glob(f"rep.{run.trace.pid}.txt")
        assert "API Timing Summary" in report.read_text()
        assert f"[INFO] Log is stored in {report}" in run.said
    run = xstrace(["-h", "-o", "no/rep", "--output-dir-path", "traces"], "gemm", [64, 1])
    assert run.status == 125 and run.said == [
        f"xstrace: --output no/rep: {xstrace.cwd}/no: No such file or directory"
    ]


@pytest.mark.parametrize("given", ["./out", "out//", "../cwd/./out", "{}/out", "sub/../out"])
def test_paths_are_shown_alike(xstrace, given):
    """From the root, whatever was given; what lies behind a link is not guessed."""
    (xstrace.cwd / "sub").mkdir()
    wanted = xstrace.cwd / ("sub/../out" if given.startswith("sub") else "out")
    options = ["-h", ITT, "--output-dir-path", given.format(xstrace.cwd), "-o", "./rep"]
    run = xstrace(options, "itt_tasks", [4, 1])
    assert f"[INFO] Timeline is stored in {wanted}/itt_tasks.{run.trace.pid}.json" in run.said
    result = xstrace([ITT, "--result-dir", "./res"], "itt_tasks", [4, 1])
    (line,) = result.said
    assert line.startswith(f"[INFO] Timeline is stored in {xstrace.cwd}/res/itt_tasks.")
    merged = subprocess.run(
        [XSTRACE.parent.parent / "merge/xstrace-merge", "-o", "./all.json", run.trace.path.name],
        cwd=run.trace.path.parent,
        capture_output=True,
        text=True,
    )
    assert f"[INFO] Merged trace is stored in {os.path.realpath(wanted)}/all.json\n" in merged.stderr


@pytest.mark.skipif(not LOADER.exists(), reason="another machine's loader")
def test_the_loader_is_what_it_loads(xstrace):
    """Called by its own name or another, it is known by its DT_SONAME, and judged by the program behind it."""
    odd = shutil.copy(LOADER, xstrace.home / "odd")
    for loader, options in ((LOADER, []), (odd, []), (odd, ["--argv0", "static_hello"])):
        run = xstrace(ITT, loader, [*options, APPS / "itt_tasks", 10, 1])
        assert (run.status, len(run.said)) == (0, 1), run.said
        assert run.trace.count("tasks") == 10
    run = xstrace(ITT, odd, ["--list", APPS / "itt_tasks"])
    assert not any("statically linked" in line for line in run.said)
    run = xstrace(ITT, odd, [APPS / "static_hello"])
    assert f"xstrace: {APPS}/static_hello is statically linked: it runs, but cannot be traced" in run.said


# ---- who is who ----

TITLE = r"""
#include <ittnotify.h>
#include <string.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("title");

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("first"));
	__itt_task_end(domain);
	printf("ready\n");
	fflush(stdout);
	getchar();
	if (argc > 2) { /* as setproctitle() does: over the arguments */
		size_t room = argv[argc - 1] + strlen(argv[argc - 1]) - argv[0];

		memset(argv[0], 0, room);
		strncpy(argv[0], "worker: number 7 of /srv/app", room);
	} else {
		prctl(PR_SET_NAME, "worker 7");
	}
	for (int i = 0; i < 100; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("second"));
		__itt_task_end(domain);
		usleep(20000);
	}
	return 0;
}
"""


@pytest.mark.parametrize("how", ["argv", "name"])
def test_processes_are_called_what_they_are(xstrace, how):
    """Title, rank and arguments of each process; what unitrace's users look for stays where it is."""
    app = compile_c(xstrace.home / "titled", TITLE)
    args = ["some", "words", "to write over, of any length"] if how == "argv" else ["--now"]
    env = {"PMI_RANK": "3", "PMI_SIZE": "4"} if how == "argv" else None
    run = xstrace.start(ITT, app, args, env=env, stdin=subprocess.PIPE)
    run.wait_for_output()
    run.process.stdin.write(b"x")
    run.process.stdin.close()
    trace = run.finish().trace
    rank, host = "RANK 3 " if env else "", trace.metadata["host"]
    names = process_names(trace)
    title = "titled: worker: number 7 of /srv/app" if how == "argv" else "worker 7: titled --now"
    assert names[-1] == f"{rank}HOST<{host}> {title}"
    assert set(names[:-1]) <= {f"{rank}HOST<{host}> titled {' '.join(args)}"}
    assert trace.metadata["argv"] == [str(app), *args]
    assert trace.metadata.get("rank") == (3 if env else None)


def test_each_process_has_its_own_arguments(xstrace):
    """`command` is the run's."""
    run = xstrace(ITT, "sh", ["-c", f"{APPS}/itt_tasks 7 1; {APPS}/itt_tasks 9 1 && true"])
    argv = {tuple(t.metadata["argv"][1:]) for t in run.traces}
    assert argv == {("7", "1"), ("9", "1")}
    assert all(t.metadata["command"][0] == "sh" for t in run.traces)
    assert {name.split("> ")[1] for t in run.traces for name in process_names(t)} == {
        "itt_tasks 7 1",
        "itt_tasks 9 1",
    }


def test_a_long_command_line_is_cut(xstrace):
    run = xstrace(ITT, "itt_tasks", [4, 1, "ä" * 400])
    (name,) = process_names(run.trace)
    assert re.fullmatch(r"HOST<[^>]*> itt_tasks 4 1 ä{20,60}…", name)
    assert run.trace.metadata["argv"][3] == "ä" * 400


def test_where_a_device_sits(xstrace, tmp_path):
    """As unitrace has it: rank, host, name, PCI address, number."""
    gpu = SoftGPU(tmp_path, DEVICES=3, TILES=2)
    env = {**gpu.env, "PMI_RANK": "1", "PMI_SIZE": "2"}
    run = xstrace(KERNELS, "ze_matrix", ["--device", 2, "--tile", 1], env=env)
    devices = {pid for pid, _ in (s.track for s in run.trace.device)}
    (name,) = {name for pid in devices for name in process_names(run.trace, pid)}
    assert re.fullmatch(r"RANK 1 DEVICE<[^>]+>\[.+\] 0:3c:0:0 #2\.1", name)


# ---- tables ----


def test_a_heading_over_each_table(xstrace):
    """Ranks write to one stderr: process, rank and command line are over each title there, and not in files."""
    env = {"PMI_RANK": "2", "PMI_SIZE": "4"}
    run = xstrace("-h -d -s", "gemm", [64, 1], env=env)
    titles = re.findall(r"(.*)\n\n=== .* ===", run.err)
    assert len(titles) == 6 and len(set(titles)) == 1
    assert re.fullmatch(r"Process \d+, rank 2: gemm 64 1", titles[0])
    assert "Process" not in re.sub("\nProcess .*", "", run.err)
    run = xstrace("-h -d -o rep", "gemm", [64, 1])
    (report,) = xstrace.cwd.glob("rep.*")
    assert "Process" not in report.read_text()


NAMES = r"""
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* kernel of the given name, once on each device; then as many queues as asked for, one after the other */
int main(int argc, char **argv)
{
	static char text[4096];
	const char *source = text;
	size_t one = 1;
	int queues = atoi(argv[2]);
	cl_platform_id platform;
	cl_device_id devices[8];
	cl_uint count;

	snprintf(text, sizeof(text), "kernel void %s(void) {}", argv[1]);
	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, devices, &count);
	cl_context context = clCreateContext(NULL, count, devices, NULL, NULL, NULL);
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
	if (clBuildProgram(program, 0, NULL, NULL, NULL, NULL))
		return 1;
	cl_kernel kernel = clCreateKernel(program, argv[1], NULL);
	for (cl_uint d = 0; d < (queues ? 1 : count); d++)
		for (int i = 0; i < (queues ? queues : 1); i++) {
			cl_command_queue queue = clCreateCommandQueue(context, devices[d], 0, NULL);
			void *hole = malloc(64 + i * 16); /* no address comes again soon */

			clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
			clFinish(queue);
			if (argc < 4)
				clReleaseCommandQueue(queue);
			memset(hole, 1, 64);
		}
	printf("%u devices\n", count);
	return 0;
}
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("names") / "names", NAMES, *OPENCL)


def test_long_names_are_short_in_tables(xstrace, names):
    """120 columns at most, with their ends; whole in the trace, and in CSV."""
    name = "begin_" + "x" * 200 + "_end"
    run = xstrace(f"-d -s -t {KERNELS}", names, [name, 0])
    assert name not in run.err
    rows = re.findall(r"^ *(begin_x+…x+_end),", run.err, re.M)
    assert len(rows) == 3 and {len(row) for row in rows} == {120}
    assert len(re.findall(r": begin_x+…x+_end \[ns\]", run.err)) == 1
    assert any(s.base == name for s in run.trace.device)
    widths = {len(line) for line in run.err.splitlines() if line.count(",") == 6}
    assert len(widths) == 1  # names are as wide as they look
    xstrace("-d -o rep.csv --report-format csv", names, [name, 0])
    (report,) = xstrace.cwd.glob("rep.*")
    assert f',"{name}",' in report.read_text()


def test_a_device_column_where_it_is_needed(xstrace, names):
    """The same kernel on two devices is two rows, and the last column says which."""
    run = xstrace("-d -s", names, ["same", 0], env={"POCL_DEVICES": "pthread pthread"})
    assert run.out == "2 devices\n"
    heads = [line for line in run.err.splitlines() if line.lstrip().startswith("Kernel,")]
    assert len(heads) == 3 and all(head.endswith(", Device") for head in heads)
    rows = [line.split(",") for line in run.err.splitlines() if line.lstrip().startswith("same,")]
    assert [row[1].strip() for row in rows] == ["1"] * 6
    assert sorted(row[-1].strip() for row in rows) == ["0"] * 3 + ["1"] * 3
    run = xstrace("-d -s", names, ["same", 0], env={"POCL_DEVICES": "pthread"})
    assert "Device\n" not in run.err and run.err.count("same,") == 3


# ---- tracks ----


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kept", [False, True], ids=["released", "kept"])
def test_short_lived_queues_share_tracks(xstrace, names, kept):
    """600 queues one after the other: a few tracks of their own, then one for all that do not overlap; each slice says whose it is."""
    run = xstrace(KERNELS, names, ["k", 600, *(["kept"] if kept else [])])
    trace = run.trace
    tracks = {s.track: trace.names("thread_name")[s.track] for s in trace.device}
    assert len(trace.device) == 600 and len(tracks) <= 33
    shared = [s for s in trace.device if "Other Queues" in tracks[s.track]]
    assert all(re.fullmatch(r"0x[0-9a-f]+", s.args["queue"]) for s in shared)
    assert all(s.args["thread"] == trace.pid for s in shared)
    if kept:
        assert len({s.args["queue"] for s in shared}) == len(shared) == 600 - 32
        assert {tracks[s.track] for s in shared} == {"CL Other Queues"}


# ---- the tools ----


def test_dump_says_its_files(xstrace):
    """What --dump prints are the traces that it has made, and all of them."""
    name = f"people-{os.getpid()}"
    options = f"--session {name} {ITT} --flight-recorder 60s"
    words = "tasks t 20 child tasks t 10 wait end wait".split()
    run = xstrace.start(options, "itt_steps", words, stdin=subprocess.PIPE)
    wait_until(lambda: len(re.findall("^ready", (run.log / "stdout").read_text(), re.M)) == 2)
    for _ in range(3):
        dumped = subprocess.run([XSTRACE, "--dump", name], capture_output=True, text=True, timeout=60)
        files = re.findall(r"^\[INFO\] Timeline is stored in (/.*\.json)$", dumped.stdout, re.M)
        assert (dumped.returncode, dumped.stderr, len(files)) == (0, "", 2)
        assert all(Path(file).stat().st_size > 0 for file in files)
    assert dumped.stdout.count("\n") == 2
    run.process.stdin.write(b"\n\n")
    run.process.stdin.close()
    assert len(run.finish().trace_files) == 6


def test_a_summary_is_as_wide_as_the_terminal(xstrace):
    """COLUMNS or the terminal itself; 100 columns where there is none."""
    run = xstrace(ITT, "itt_tasks", [40, 1, "word " * 60])
    command = [sys.executable, ROOT / "scripts/xstrace-summary", run.trace.path]

    def widest(text):
        return max(map(len, text.splitlines()))

    plain = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    for env, width in ((plain, 100), ({**plain, "COLUMNS": "70"}, 70), ({**plain, "COLUMNS": "180"}, 180)):
        out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        assert widest(out) == width
    main, other = pty.openpty()
    subprocess.run(["stty", "cols", "133"], stdin=other, check=True)
    subprocess.run(command, env=plain, stdout=other, check=True)
    assert widest(os.read(main, 65536).decode()) == 133
    os.close(main)
    os.close(other)
