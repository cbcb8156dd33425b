"""The text reports (-h -d -s -t), their JSON and CSV, through the built binaries on what programs did."""

import collections
import csv
import json
import os
import re
import subprocess

import pytest

from conftest import (
    APPS,
    BUILD,
    COMMANDS,
    compile_c,
    expected_lines,
    mounted,
    root_only,
)

SOFTGPU = BUILD / "tests/softgpu/libze_softgpu.so"
ZE = {"ZE_ENABLE_ALT_DRIVERS": str(SOFTGPU)}
level_zero_only = pytest.mark.skipif(not SOFTGPU.exists(), reason="Level Zero is not built")
TIMING = ["Calls", "Time (ns)", "Time (%)", "Average (ns)", "Min (ns)", "Max (ns)"]
# as unitrace writes them, which scripts may split at fixed places
HEAD = {
    "CL": ",       Calls,           Time (ns),    Time (%),        Average (ns),            Min (ns),            Max (ns)",
    "L0": ",        Calls,            Time (ns),      Time (%),         Average (ns),             Min (ns),             Max (ns)",
}


def split_rows(lines, columns):
    """Names hold commas too, so rows are taken apart from the right."""
    return {
        cells[0].strip().strip('"'): dict(zip(columns, (cell.strip() for cell in cells[1:])))
        for cells in (line.rsplit(", ", len(columns)) for line in lines)
    }


def tables(text):
    """{(report's title, backend): {row's name: {column: text}}}, and the lines above the tables."""
    found, heads = {}, collections.defaultdict(dict)
    title = backend = columns = None
    lines = []
    for line in [*text.splitlines(), ""]:
        if match := re.fullmatch(r"=== (.*) ===", line):
            title, backend, columns = match[1], None, None
        elif match := re.fullmatch(r"== (.*) (?:Backend|Calls|Commands) ==", line):
            backend = match[1]
        elif match := re.fullmatch(r" *(Total .*? \(ns\)): +(\d+)", line):
            heads[title][match[1]] = int(match[2])
        elif re.match(r" *(Function|Kernel|Backend), ", line):
            columns, lines = [cell.strip() for cell in line.split(", ")][1:], []
            heads[title, backend] = line
        elif columns and line.strip():
            lines.append(line)
        elif columns:
            found[title, backend] = split_rows(lines, columns)
            columns = None
    return found, heads


def check_timing(rows, total, decimals):
    """A timing table adds up."""
    times = [int(row["Time (ns)"]) for row in rows.values()]
    assert times == sorted(times, reverse=True) and sum(times) == total
    for row in rows.values():
        calls, time, average, low, high = (
            int(row[c]) for c in TIMING if c != "Time (%)"
        )
        assert low <= average <= high and average == time // calls
        assert low + high <= time or calls == 1
        assert row["Time (%)"] == f"{100 * time / total:.{decimals}f}"


def check_distribution(rows, distribution):
    assert list(rows) == list(distribution)
    for name, row in rows.items():
        parts = [int(distribution[name][f"p{n} (ns)"]) for n in (50, 90, 99)]
        assert int(row["Min (ns)"]) <= parts[0] <= parts[1] <= parts[2] <= int(row["Max (ns)"])
        if row["Calls"] == "1":
            assert parts[0] == int(row["Max (ns)"])


def test_host_timing(xstrace):
    run = xstrace("-h", "cl_matrix")
    found, heads = tables(run.err)
    rows, head = found["API Timing Summary", "CL CPU"], heads["API Timing Summary"]
    total = head["Total API Time for CL CPU backend (ns)"]
    assert total < head["Total Execution Time (ns)"]
    check_timing(rows, total, 2)
    assert heads["API Timing Summary", "CL CPU"].endswith(HEAD["CL"])
    distribution = found["API Time Distribution", "CL CPU"]
    check_distribution(rows, distribution)
    failed = {name: int(row["Failed Calls"]) for name, row in distribution.items()}
    # the program does these wrong on purpose, three times each
    assert failed["clEnqueueNDRangeKernel"] == failed["clEnqueueReadBuffer"] == 3
    assert sum(failed.values()) == 6
    sums = found["API Totals", None]
    calls = sum(int(row["Calls"]) for row in rows.values())
    assert sums["CL CPU"] == sums["All"]
    assert [sums["All"][c] for c in ("Calls", "Failed Calls", "Time (ns)")] == [str(calls), "6", str(total)]
    assert 0 < int(sums["All"]["Inside xstrace (ns)"]) < 1000 * calls


@pytest.mark.parametrize("verbose", [False, True])
def test_device_timing_and_submission(xstrace, verbose):
    run = xstrace("-d -s -v" if verbose else "-ds", "cl_matrix")
    found, heads = tables(run.err)
    rows = found["Device Timing Summary", "CL CPU"]
    check_timing(rows, heads["Device Timing Summary"]["Total Device Time for CL CPU backend (ns)"], 2)
    check_distribution(rows, found["Device Time Distribution", "CL CPU"])
    for (_, _, kind, name), n in expected_lines(run.out).items():
        if kind in COMMANDS:
            assert sum(int(r["Calls"]) for k, r in rows.items() if re.match(COMMANDS[kind], k)) == n
        elif kind == "kernels" and name:
            assert sum(int(r["Calls"]) for k, r in rows.items() if k.split("[")[0] == name) == n
    if verbose:
        assert any(re.fullmatch(r"tile\[SIMD\d+ \{64; 64; 1\} \{8; 8; 1\}\]", name) for name in rows)
        assert "clEnqueueReadBuffer[16384]" in rows
    submission = found["Kernel Submission Summary", "CL CPU"]
    assert list(submission) == list(rows)
    assert heads["Kernel Submission Summary", "CL CPU"].endswith(
        ",       Calls,         Queued (ns),  Queued (%),         Submit (ns),  Submit (%),        Execute (ns), Execute (%)"
    )
    for column in ("Queued", "Submit", "Execute"):
        total = sum(int(row[column + " (ns)"]) for row in submission.values())
        for name, row in submission.items():
            assert row[column + " (%)"] == f"{100 * int(row[column + ' (ns)']) / total:.2f}"
    assert all(submission[k]["Execute (ns)"] == rows[k]["Time (ns)"] for k in rows)


LINE = re.compile(
    r"(?:<PID:(\d+)> )?Thread (\d+) Device (\d+) : (.+) \[ns\] "
    r"(\d+) \(append\) (\d+) \(submit\) (\d+) \(start\) (\d+) \(end\)"
)


def test_device_timeline(xstrace):
    """A line for each command; its times are those of the trace."""
    run = xstrace("-t -v --pid --chrome-device-logging", "cl_matrix")
    lines = [LINE.fullmatch(line) for line in run.err.splitlines()]
    assert all(lines) and len(lines) == expected_lines(run.out)[None, "expected", "commands", None]
    shown = collections.Counter()
    for line in lines:
        pid, _, device, name = line.group(1, 2, 3, 4)
        append, submit, start, end = map(int, line.group(5, 6, 7, 8))
        assert append <= submit <= start <= end and device == "0" and int(pid) == run.trace.pid
        shown[name, start, end] += 1
    assert shown == collections.Counter((s.name, round(s.start), round(s.end)) for s in run.trace.device)


def test_timeline_is_in_order(xstrace):
    """Whichever threads told of the commands; before the tables."""
    run = xstrace("-t -h", "cl_dlopen")
    text = run.err.split("\nProcess ")[0]
    assert [LINE.fullmatch(line)[4] for line in text.split("\n") if line] == [
        "clEnqueueWriteBuffer",
        "twice",
        "clEnqueueReadBuffer",
    ]


def read_json(run):
    path = next(p for p in run.cwd.iterdir() if p.suffix == ".json")
    return json.loads(path.read_text())


def read_csv(run):
    path = next(p for p in run.cwd.iterdir() if p.suffix == ".csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_rows(xstrace, kind):
    options = f"-h -d -s -t -c -v --report-format={kind} -o rep.{kind}"
    run = xstrace.start(options, "cl_matrix")
    run.wait()
    rows = read_json(run) if kind == "json" else read_csv(run)
    reports = collections.Counter(row["report"] for row in rows)
    expected = expected_lines(run.out)
    commands = expected[None, "expected", "commands", None]
    assert reports["device_timeline"] == commands and reports["process"] == 1
    assert reports["kernel_submission"] == reports["device_timing"] > 10
    calls = sum(int(row["calls"]) for row in rows if row["report"] == "host_timing")
    assert reports["call_log"] == calls
    assert sum(int(row["calls"]) for row in rows if row["report"] == "device_timing") == commands
    assert sum(int(row["failed"] or 0) for row in rows if row["report"] == "host_timing") == 6
    last = rows[-1]
    assert last["report"] == "process" and last["comm"] == "cl_matrix" and int(last["lost"]) == 0
    for row in rows:
        if row["report"].endswith("_timing"):
            assert int(row["min_ns"]) <= int(row["p50_ns"]) <= int(row["p99_ns"]) <= int(row["max_ns"])
            assert row["backend"] == "CL CPU"
    if kind == "json":
        logged = [row for row in rows if row["report"] == "call_log"]
        launch = next(r for r in logged if r["name"] == "clEnqueueNDRangeKernel" and not r["failed"])
        assert launch["in"]["workDim"] == 1 and launch["in"]["globalWorkSize"] == [4096]
        assert launch["result"] == "CL_SUCCESS (0)" and launch["failed"] == 0
        bad = [row for row in logged if row["failed"]]
        assert len(bad) == 6 and not any(row["result"].startswith("CL_SUCCESS") for row in bad)
    assert not list(run.cwd.glob("*.trace"))
    for path in run.cwd.iterdir():
        path.unlink()
    run.collect()


@level_zero_only
def test_timeline_of_level_zero_has_shapes(xstrace):
    """Without -v, as in unitrace; the tables are as short as ever."""
    args = ["--copies", "2", "--fills", "1"]
    run = xstrace("-t -d", "ze_matrix", args, env=ZE)
    text = run.err.split("\nProcess ")[0]
    shown = [LINE.fullmatch(line)[4].strip('"') for line in text.split("\n") if line]
    verbose = xstrace("-t -v", "ze_matrix", args, env=ZE)
    assert sorted(shown) == sorted(LINE.fullmatch(line)[4].strip('"') for line in verbose.err.splitlines())
    assert any(re.fullmatch(r"\w+\[SIMD\d+ \{\d+; \d+; \d+\} \{\d+; \d+; \d+\}\]", name) for name in shown)
    assert any(re.fullmatch(r"zeCommandListAppendMemoryCopy\(\w2\w\)\[\d+\]", name) for name in shown)
    assert not any("[" in name for name in tables(run.err)[0]["Device Timing Summary", "L0"])


@level_zero_only
def test_level_zero_has_columns_of_its_own(xstrace):
    run = xstrace("-h", "ze_matrix", env=ZE)
    found, heads = tables(run.err)
    rows, head = found["API Timing Summary", "L0"], heads["API Timing Summary"]
    total = head["Total API Time for L0 backend (ns)"]
    check_timing(rows, total, 6)
    assert heads["API Timing Summary", "L0"].endswith(HEAD["L0"])
    # the figures of all backends stand below each other
    assert re.search(r"^    Total API Time for L0 backend \(ns\): +\d+$", run.err, re.M)
    assert int(rows["zeCommandListAppendLaunchKernel"]["Calls"]) == 4


def test_rank_is_in_the_name(xstrace):
    run = xstrace("-h -o rep.txt", "cl_dlopen", env={"PMI_RANK": "5"})
    assert re.fullmatch(r"rep\.\d+\.5\.txt", *[p.name for p in run.cwd.iterdir()])


DEMANGLE = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
int main(void)
{
	const char *source = "kernel void _Z3addPfi(global float *a, int n) {} kernel void _ZTS6Matrix(global float *a) {}"
			     "kernel void _Znonsense(global float *a) {}";
	cl_platform_id platform; cl_device_id device; size_t one = 1; cl_uint n;
	if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0)) return 1;
	cl_context context = clCreateContext(0, 1, &device, 0, 0, 0);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, 0);
	cl_program program = clCreateProgramWithSource(context, 1, &source, 0, 0);
	cl_mem a = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, 0, 0);
	cl_kernel kernels[3];
	if (clBuildProgram(program, 0, 0, 0, 0, 0) || clCreateKernelsInProgram(program, 3, kernels, &n)) return 2;
	for (unsigned i = 0; i < n; i++) {
		clSetKernelArg(kernels[i], 0, sizeof(a), &a);
		clSetKernelArg(kernels[i], 1, 4, &n);
		clEnqueueNDRangeKernel(queue, kernels[i], 1, 0, &one, 0, 0, 0, 0);
	}
	return clFinish(queue);
}
"""


def test_demangle(xstrace):
    program = compile_c(xstrace.home / "mangled", DEMANGLE, "-l:libOpenCL.so.1")
    mangled = {"_Z3addPfi", "_ZTS6Matrix", "_Znonsense"}
    plain = {"add(float*, int)", "Matrix", "_Znonsense"}
    for options, names in (("-d", mangled), ("-d --demangle", plain)):
        run = xstrace(options, program)
        assert run.status == 0
        assert set(tables(run.err)[0]["Device Timing Summary", "CL CPU"]) == names
    run = xstrace("--chrome-kernel-logging --demangle", program)
    assert {s.name.split("[")[0] for s in run.trace.device} == plain


@pytest.mark.parametrize(
    "options, shown",
    [
        (["--include-kernels", '"add(float*, int)"'], "_Z3addPfi"),
        (["--include-kernels", "x,Matrix"], "_ZTS6Matrix"),
        (["--include-kernels", "(float"], "_Z3addPfi"),
        (["--include-kernels", "_Z3add"], "_Z3addPfi"),
        (["--include-kernels", '"float*, double"'], ""),
        (["--exclude-kernels", '"float*, int"'], "_ZTS6Matrix _Znonsense"),
        (["--exclude-kernels", "Matrix,float"], "_Znonsense"),
        (["--exclude-kernels", "6Matrix,fi"], "_Z3addPfi _ZTS6Matrix _Znonsense"),
        (["--exclude-kernels", "_ZTS6,nonsense"], "_Z3addPfi"),
        (["--include-kernels", "add", "--exclude-kernels", "int)"], ""),
    ],
)
def test_filters_know_cpp_names(xstrace, options, shown):
    """As they are shown with --demangle, and as the driver has them; nothing else is missing."""
    program = compile_c(xstrace.home / "mangled", DEMANGLE, "-l:libOpenCL.so.1")
    run = xstrace(["--chrome-kernel-logging", "-d", *options], program)
    assert run.status == 0
    assert " ".join(sorted(s.name.split("[")[0] for s in run.trace.device)) == shown
    assert len([s for s in run.trace.calls if s.name == "clEnqueueNDRangeKernel"]) == 3
    for name in "dep", "wait":
        assert len([e for e in run.trace.events if e["ph"] in "sf" and e["name"] == name]) == 2 * len(run.trace.device)
    found = tables(run.err)[0].get(("Device Timing Summary", "CL CPU"), {})
    assert " ".join(sorted(found)) == shown


def test_names_stay_on_one_line(xstrace):
    source = r"""
#include <ittnotify.h>
int main(void)
{
	__itt_domain *d = __itt_domain_create("oneCCL\n== x");
	__itt_task_begin(d, __itt_null, __itt_null, __itt_string_handle_create("a\nb\x1b[31m\xff\xc2\x85 \xe2\x80\xa8 \xc3\xa4,\"c\""));
	__itt_task_end(d);
	return 0;
}
"""
    program = compile_c(xstrace.home / "names", source)
    run = xstrace("-r", program)
    lines = [line for line in run.err.splitlines() if line.startswith("oneCCL")]
    assert len(lines) == 2  # unitrace's table, and ours by message size
    assert all(line.startswith('oneCCL?== x::a?b?[31m??? ??? ä,"c", ') for line in lines)
    for kind, read in (("json", read_json), ("csv", read_csv)):
        run = xstrace.start(f"-r --report-format={kind} -o rep.{kind}", program)
        run.wait()
        row = next(row for row in read(run) if row["report"] == "ccl_summary")
        assert row["calls"] in (1, "1") and row["name"].endswith('ä,"c"')
        next(run.cwd.glob("rep*")).unlink()
        run.collect()


@root_only
@pytest.mark.parametrize("options", ["-c -h -d -t", "-c -h -d --report-format=json", "-c -t --report-format=csv"])
def test_full_disk(xstrace, options):
    """What fitted is whole, one line says so, and the program noticed nothing."""
    suffix = options.rsplit("=", 1)[1] if "=" in options else "txt"
    with mounted(xstrace.cwd, "size=64k"):
        run = xstrace.start(f"{options} -o rep.{suffix}", "cl_matrix", ["--rounds", "40"])
        run.wait()
        assert (run.status, run.err) == (0, "")
        assert sum("No space left" in line for line in run.said) == 1
        text = next(run.cwd.iterdir()).read_text()
        assert len(text) > 20000 and text.endswith("\n")
        if suffix == "json":
            assert json.loads(text)[-1]["report"] == "process"
        elif suffix == "csv":
            assert all(row["report"] for row in csv.DictReader(text.splitlines()))
        next(run.cwd.iterdir()).unlink()
        run.collect()


def test_each_process_has_its_own(xstrace):
    script = f"{APPS}/cl_dlopen; {APPS}/cl_dlopen"
    run = xstrace("-h -t -o rep", "sh", ["-c", script])
    texts = [path.read_text() for path in run.cwd.iterdir()]
    assert len(texts) == 2
    for text in texts:
        assert len(LINE.findall(text)) == 3 and text.count("=== API Timing Summary ===") == 1


def test_opencl_option_is_accepted(xstrace):
    run = xstrace("--opencl -h", "cl_dlopen")
    assert "clCreateKernel" in tables(run.err)[0]["API Timing Summary", "CL CPU"]


def test_error_of_the_last_line(xstrace):
    """stderr is closed: nobody to tell, and nothing happens."""
    command = [BUILD / "launcher/xstrace", "-h", "-d", "-t", APPS / "cl_dlopen"]
    done = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), timeout=60)
    assert done.returncode == 0 and b"CORRECT" in done.stdout


def test_full_stderr(xstrace):
    with open("/dev/full", "w") as full:
        command = [BUILD / "launcher/xstrace", "-h", "-d", "-t", "-c", APPS / "cl_dlopen"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, timeout=60)
    assert done.returncode == 0 and b"CORRECT" in done.stdout
