"""OpenMP by OMPT: clang's programs on LLVM's runtime and Intel's, and a runtime by hand (tests/apps/omp_runtime.c)."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from conftest import ROOT, compile_c, wait_until
from others import CCL, CLIENTS, need, needs_clients

OPENMP = "--chrome-openmp-logging"
REPORT = "--openmp-report"
SOURCE = ROOT / "tests/apps/omp_regions.c"
INTEL = CCL / "lib/libiomp5.so"
T = 4  # threads of each region
needs_clang = pytest.mark.skipif(not shutil.which("clang") or not list(Path("/usr/lib").glob("llvm-*/lib/libomp.so")), reason="no clang with libomp")

# names end with a place: "OpenMP::loop main+0x2a"
PLACE = re.compile(r" (\S+)\+0x[0-9a-f]+$")


def counts(trace):
    return Counter(PLACE.sub("", s.name).removeprefix("OpenMP::") for s in trace.tasks)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("openmp") / "omp_regions"
    subprocess.run(["clang", "-O1", "-w", "-fopenmp", "-D_GNU_SOURCE", "-I", ROOT / "tests/apps", SOURCE, "-o", path], check=True)
    return path


def rows(path):
    return [row for row in json.loads(Path(path).read_text()) if row["report"] == "openmp_regions"]


@pytest.fixture
def report(xstrace, program, tmp_path):
    """{function: row} of the report of a run."""

    def run(*args, options="", form="json"):
        output = f"--report-format json -o {tmp_path}/rep.json" if form == "json" else ""
        run = xstrace(f"{REPORT} {options} {output}", program, args)
        assert run.status == 0, run.err
        if form != "json":
            return run, {}
        found = {PLACE.search(row["name"])[1]: row for row in rows(next(tmp_path.glob("rep.*.json")))}
        return run, found

    return run


# ---- what is shown ----


@needs_clang
@pytest.mark.parametrize("runtime", ["llvm", "intel"])
@pytest.mark.parametrize("rounds", [1, 20])
def test_each_construct_is_there_as_often_as_it_ran(xstrace, program, runtime, rounds):
    env = {}
    if runtime == "intel":
        if not INTEL.exists():
            pytest.skip("no libiomp5.so; scripts/setup --clients installs it")
        env = {"LD_PRELOAD": str(INTEL)}  # it has the functions that clang's programs call
    run = xstrace(OPENMP, program, ["all", rounds], env=env)
    assert (run.status, run.out, run.err) == (0, "done\n", "")
    names = counts(run.trace)
    wanted = {
        "parallel": 2,
        "implicit task": 2 * T,
        "loop": 2 * T,
        "sections": T,
        "single": 2,
        "masked": 1,
        "critical": T,
        "wait for critical": T,
        "wait for nestable lock": T,
        "task": 10,
        "taskgroup": 1,
    }
    assert {name: names[name] for name in wanted} == {name: n * rounds for name, n in wanted.items()}
    # a lock that is tested and free is one that was waited for, to LLVM's runtime before 17
    assert names["wait for lock"] in (T * rounds, 2 * T * rounds)
    barriers = sum(n for name, n in names.items() if "barrier" in name)
    # explicit; behind two loops, two singles and the sections; at the two ends
    assert barriers == (1 + 5 + 2) * T * rounds
    assert names["taskwait"] == rounds
    made = [e for e in run.trace.events if e["ph"] == "i"]
    assert len(made) == 10 * rounds and {PLACE.sub("", e["name"]) for e in made} == {"OpenMP::create task"}
    flows = Counter(e["name"] for e in run.trace.events if e["ph"] == "s")
    assert flows == {"parent": 10 * rounds, "predecessor_to": 2 * rounds}
    assert run.trace.other["lost"] == 0 and "unmatched_ends" not in run.trace.other
    loops = [s for s in run.trace.tasks if PLACE.sub("", s.name) == "OpenMP::loop"]
    assert {s.args["iterations"][0] for s in loops} <= {20, 1000, 250, 999}
    regions = [s for s in run.trace.tasks if PLACE.sub("", s.name) == "OpenMP::parallel"]
    assert {s.args["threads"][0] for s in regions} == {T}
    assert {PLACE.search(s.name)[1] for s in regions} == {"region_of_all", "region_of_tasks"}


@needs_clang
def test_tasks_lie_in_regions_and_after_their_creation(xstrace, program):
    run = xstrace(OPENMP, program, ["all", 5])
    regions = [s for s in run.trace.tasks if s.name.startswith("OpenMP::parallel")]
    parts = [s for s in run.trace.tasks if s.name == "OpenMP::implicit task"]
    for part in parts:
        assert sum(r.start <= part.start and part.end <= r.end for r in regions) == 1
    starts = {e["id"]: e["ts"] for e in run.trace.events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in run.trace.events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and all(starts[i] <= ends[i] for i in starts)
    assert len({s.track for s in parts}) == T
    assert sum(name.startswith("OpenMP worker") for name in run.trace.names("thread_name").values()) == T - 1


@needs_clang
@pytest.mark.parametrize("args", [("deep", 40), ("deep", 300), ("nested", 10), ("nested", 40)], ids=str)
def test_deeper_than_what_is_kept(xstrace, program, args):
    """64 tasks and 16 regions of a thread lie within each other; what is deeper is left out, and nothing else goes wrong."""
    run = xstrace(f"{OPENMP} {REPORT}", program, args)
    assert (run.status, run.out) == (0, "done\n")
    names = counts(run.trace)
    assert "unmatched_ends" not in run.trace.other
    if args[0] == "nested":
        assert names["parallel"] == args[1] and names["implicit task"] == min(args[1], 16)
    else:
        assert min(args[1], 64) <= names["task"] <= args[1]


# ---- the report ----


@needs_clang
def test_who_is_late(report):
    """Threads work 100, 200, 300 and 400 ms."""
    _, found = report("late")
    row = found["late"]
    assert (row["calls"], row["threads"], row["waited_ns"]) == (1, T, 0)
    assert row["work_ns"] == pytest.approx(1000e6, rel=0.1)
    assert row["late_ns"] == pytest.approx(600e6, rel=0.1)
    assert row["imbalance_percent"] == pytest.approx(100 * (1 - 250 / 400), abs=3)
    assert row["time_ns"] == pytest.approx(400e6, rel=0.1)
    # work, waits inside and waits at the end are all that threads did
    assert row["work_ns"] + row["late_ns"] == pytest.approx(T * row["time_ns"], rel=0.1)


@needs_clang
def test_tasks_that_run_at_the_end_of_a_region_are_work(report):
    """Eight of 10 ms, made by one thread; all run while the others wait at the region's end already."""
    _, found = report("tasks")
    row = found["tasks_at_the_end"]
    assert row["work_ns"] >= 80e6  # a task that comes late to a processor takes longer
    # what is left is the time until the last thread had begun
    assert row["work_ns"] + row["late_ns"] + row["waited_ns"] <= T * row["time_ns"] + 1e6
    assert row["imbalance_percent"] < 60  # were they not counted, one thread would have done all


@needs_clang
def test_tables_of_text_and_csv(xstrace, program, tmp_path):
    run = xstrace(REPORT, program, ["all", 3])
    assert not run.trace_files
    table = run.err
    assert "== OpenMP Regions ==" in table
    assert re.search(r"^ *OpenMP::parallel region_of_all\+0x\w+, +3, +4, ", table, re.M)
    run = xstrace(f"{REPORT} --report-format csv -o {tmp_path}/rep.csv", program, ["all", 3])
    with open(next(tmp_path.glob("rep.*.csv"))) as file:
        found = [row for row in csv.DictReader(file) if row["report"] == "openmp_regions"]
    assert sorted((row["calls"], row["threads"]) for row in found) == [("3", "4"), ("3", "4")]


# ---- when recording begins, stops and ends ----


@needs_clang
def test_what_is_not_recorded(xstrace, program):
    run = xstrace(f"{OPENMP} {REPORT} --start-paused", program, ["paused"])
    assert (run.status, run.out) == (0, "done\n")
    names = counts(run.trace)
    assert names["parallel"] == 4  # one of them to the moment at which recording stopped
    assert 3 * T <= names["implicit task"] <= 4 * T
    assert re.search(r"small\+0x\w+, +3, ", run.err)


@needs_clang
def test_a_region_with_a_pause_in_it_is_in_no_table(report):
    """Three threads wait in the pause: nobody has recorded that, so it would be their work."""
    run, found = report("spanned", options="--start-paused")
    assert set(found) == {"small"} and found["small"]["calls"] == 1
    run, _ = report("spanned", options="--start-paused", form="text")
    assert "(1 run is of regions not in this table" in run.err


@needs_clang
def test_fork(xstrace, program):
    run = xstrace(OPENMP, program, ["fork"])
    assert run.status == 0
    assert sorted(counts(trace)["parallel"] for trace in run.traces) == [1, 2]


@needs_clang
def test_a_program_that_ends_in_a_region(xstrace, program):
    run = xstrace(f"{OPENMP} {REPORT}", program, ["exit"])
    assert run.status == 7
    assert counts(run.trace)["parallel"] == 2 and run.trace.count("open") >= T
    assert re.search(r"small\+0x\w+, +1, ", run.err)


@needs_clang
def test_a_program_that_is_killed(xstrace, program):
    run = xstrace.start(OPENMP, program, ["loop", 100000000])
    pid = run.child("omp_regions")
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    run.finish()
    names = counts(run.trace)
    assert names["parallel"] > 10 and abs(names["parallel"] - names["implicit task"] / 2) <= 2
    assert run.trace.other["end"] == {"reason": "killed", "signal": 9} or run.trace.other["lost"] == 0


@needs_clang
def test_gcc_has_none(xstrace, tmp_path):
    """libgomp does not tell tools anything: a line, and with LLVM's runtime in its place all is there."""
    source = tmp_path / "p.c"
    source.write_text('#include <stdio.h>\nint main(void){int n=0;\n#pragma omp parallel num_threads(4) reduction(+:n)\n\tn++;\n\tprintf("%d\\n", n);}\n')
    made = subprocess.run(["gcc", "-fopenmp", "-o", tmp_path / "p", source], capture_output=True)
    if made.returncode:
        pytest.skip("gcc has no OpenMP")
    run = xstrace(OPENMP, tmp_path / "p")
    assert (run.status, run.out) == (0, "4\n")
    assert any("no OMPT" in line for line in run.said)
    run = xstrace(OPENMP, tmp_path / "p", env={"LD_PRELOAD": "libomp.so.5"})
    assert (run.status, run.out) == (0, "4\n")
    assert counts(run.trace)["implicit task"] == T and not any("no OMPT" in line for line in run.said)


@needs_clang
def test_a_dump_of_the_flight_recorder(xstrace, program):
    """It shows what threads do just now; no line says that there is nothing of OpenMP."""
    run = xstrace.start(f"{OPENMP} --flight-recorder 10s", program, ["loop", 100000000])
    pid = run.child("omp_regions")
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGUSR1)
    wait_until(lambda: "Timeline" in (run.log / "stderr").read_text())
    os.kill(pid, signal.SIGKILL)
    run.finish()
    assert counts(run.traces[0])["loop"] > 10
    assert not any("OMPT" in line for line in run.said)


# ---- a tool of the program's own ----

TOOL = """
#include <stdio.h>
#include <stdint.h>
#include <string.h>
typedef union { uint64_t value; void *ptr; } word;
typedef void (*fn)(void);
static int (*set)(int, fn);
static long begun, ended, tasks, wrong, flushes;
static void thread_begin(int type, word *w) { w->value = 77; }
static void parallel_begin(word *t, const void *f, word *r, unsigned n, int flags, const void *c) { r->value = 1000 + __sync_add_and_fetch(&begun, 1); }
static void parallel_end(word *r, word *t, int flags, const void *c) { __sync_add_and_fetch(&ended, 1); if (r->value < 1000 || r->value > 1000 + begun) wrong++; }
static void task_create(word *t, const void *f, word *n, int flags, int d, const void *c) { n->value = 5; __sync_add_and_fetch(&tasks, 1); }
static void task_schedule(word *p, int s, word *n) { if (p->value != 5 && p->value != 0 && p->value != 9) wrong++; }
static void implicit(int e, word *r, word *t, unsigned n, unsigned i, int flags) { if (e == 1) t->value = 9; else if (t->value != 9) wrong++; }
static int init(fn (*lookup)(const char *), int device, word *w) {
	*(fn *)&set = lookup("ompt_set_callback");
	w->value = 4711;
	if (set(3, (fn)parallel_begin) < 3) wrong++;
	set(4, (fn)parallel_end); set(5, (fn)task_create); set(6, (fn)task_schedule); set(7, (fn)implicit); set(1, (fn)thread_begin);
	return 1;
}
static void fini(word *w) { printf("tool: %ld %ld %ld wrong %ld word %lu\\n", begun, ended, tasks, wrong, (unsigned long)w->value); fflush(stdout); }
static struct { int (*i)(fn (*)(const char *), int, word *); void (*f)(word *); word w; } result = { init, fini };
void *ompt_start_tool(unsigned v, const char *r) { return &result; }
"""


@needs_clang
@pytest.mark.parametrize("how", ["linked", "named", "in the program"])
def test_a_tool_of_the_program_works_as_without_us(xstrace, program, tmp_path, how):
    source, tool, path, env = tmp_path / "tool.c", tmp_path / "libtool.so", tmp_path / "app", {}
    source.write_text(TOOL)
    flags = ["-O1", "-w", "-fopenmp", "-D_GNU_SOURCE", "-I", ROOT / "tests/apps"]
    subprocess.run(["clang", "-O1", "-w", "-shared", "-fPIC", source, "-o", tool], check=True)
    if how == "linked":
        subprocess.run(["clang", *flags, SOURCE, "-Wl,--no-as-needed", tool, "-o", path], check=True)
    elif how == "named":
        path, env = program, {"OMP_TOOL_LIBRARIES": f"/nonexistent.so:{tool}"}
    else:
        subprocess.run(["clang", *flags, SOURCE, source, "-rdynamic", "-o", path], check=True)
    bare = xstrace.bare(path, ["all", 3], env=env)
    assert re.search(r"tool: 6 6 \d+ wrong 0 word 4711", bare.out), bare.out
    run = xstrace(OPENMP, path, ["all", 3], env=env)
    assert (run.status, run.out) == (0, bare.out)
    if how == "in the program":  # it is found before us, and the runtime takes one alone
        assert any("no runtime of OpenMP was seen" in line for line in run.said)
        return
    names = counts(run.trace)
    assert (names["parallel"], names["implicit task"], names["task"]) == (6, 6 * T, 30)
    # and where OpenMP is not asked for, it is alone
    assert xstrace("--chrome-itt-logging", path, ["all", 3], env=env).out == bare.out


OPENER = r"""
#include <dlfcn.h>
#include <stdio.h>
static struct { int a, b, c, d; const char *source; } place = { 0, 2, 0, 0, ";a;b;1;1;;" };
static long ran;
static void body(int *thread, int *bound) { __sync_fetch_and_add(&ran, 1); }
int main(int count, char **arguments) {
	void *tool = dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL);
	for (int i = 0; i < 3; i++) {
		void *runtime = dlopen(arguments[1], RTLD_NOW);
		void (*region)(void *, int, void (*)(int *, int *), ...) = dlsym(runtime, "__kmpc_fork_call");
		region(&place, 0, body);
		dlclose(runtime);
		if (tool)
			dlclose(tool);
		tool = NULL;
	}
	puts(ran >= 3 ? "ran" : "");
}
"""


@needs_clang
def test_a_tool_whose_library_the_program_lets_go(xstrace, tmp_path):
    """The runtime still calls it; by itself it would have kept the library."""
    (tmp_path / "tool.c").write_text(TOOL)
    subprocess.run(["clang", "-O1", "-w", "-shared", "-fPIC", tmp_path / "tool.c", "-o", tmp_path / "libtool.so"], check=True)
    runtime = next(Path("/usr/lib").glob("llvm-*/lib/libomp.so"))
    opener = compile_c(tmp_path / "opener", OPENER)
    bare = xstrace.bare(opener, [runtime, tmp_path / "libtool.so"])
    assert bare.status == 0 and "tool: 3 3" in bare.out
    run = xstrace(OPENMP, opener, [runtime, tmp_path / "libtool.so"])
    assert (run.status, run.out) == (0, bare.out)
    assert counts(run.trace)["parallel"] == 3


# ---- PyTorch ----


@needs_clients
def test_from_an_operation_by_a_primitive_to_a_region(xstrace, tmp_path):
    """A step of PyTorch's, whose own runtime is GCC's: LLVM's takes its place."""
    need("torch")
    script = tmp_path / "step.py"
    script.write_text(
        "import torch\ntorch.set_num_threads(2)\nconvolution, x = torch.nn.Conv2d(16, 32, 3), torch.randn(8, 16, 64, 64)\n"
        "with torch.autograd.profiler.emit_itt():\n    for _ in range(3):\n        torch.relu(convolution(x)).sum().backward()\n"
    )
    run = xstrace(f"--chrome-dnn-logging {OPENMP} {REPORT}", CLIENTS, [script], env={"LD_PRELOAD": "libomp.so.5"})
    assert run.status == 0, run.err
    chains = Counter()
    for tasks in run.trace.by_thread(run.trace.tasks).values():
        outer = []
        for task in tasks:
            while outer and outer[-1].end <= task.start:
                outer.pop()
            outer.append(task)
            if task.name.startswith("OpenMP::parallel"):
                chains.update([tuple(one.name.split("::")[0] for one in outer if not one.name.startswith("OpenMP::parallel"))])
    inside = {chain for chain in chains if chain[:1] == ("PyTorch",)}
    assert any(chain[-1] == "dnnl" for chain in inside) and any(chain[-1] == "PyTorch" for chain in inside)
    assert "TensorIterator" in run.err


# ---- target regions ----

LLVM = ROOT / ".deps/llvm-19/usr/lib/llvm-19"
TARGET = """
#include <stdio.h>
int main(void)
{
    int a[1000], sum = 0;
    for (int i = 0; i < 1000; i++)
        a[i] = i;
    for (int round = 0; round < 3; round++) {
#pragma omp target map(tofrom : a)
        for (int i = 0; i < 1000; i++)
            a[i] += 1;
    }
#pragma omp target data map(tofrom : a)
    {
#pragma omp target teams distribute parallel for
        for (int i = 0; i < 1000; i++)
            a[i] *= 2;
#pragma omp target update from(a)
    }
    for (int i = 0; i < 1000; i++)
        sum += a[i];
    printf("%d\\n", sum);
}
"""


@needs_clients
@pytest.mark.skipif(not (LLVM / "bin/clang-linker-wrapper").exists(), reason="no .deps/llvm-19; scripts/setup --clients makes it")
def test_target_regions_of_llvm(xstrace, tmp_path):
    """On processors as devices: what LLVM's libomptarget tells of itself."""
    (tmp_path / "target.c").write_text(TARGET)
    env = {"LD_LIBRARY_PATH": f"{LLVM}/lib:{LLVM.parents[1]}/lib/x86_64-linux-gnu", "PATH": f"{LLVM}/bin:{os.environ['PATH']}"}
    flags = ["-O1", "-w", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", f"-L{LLVM}/lib"]
    subprocess.run([LLVM / "bin/clang", *flags, tmp_path / "target.c", "-o", tmp_path / "target"], check=True, env=os.environ | env)
    run = xstrace(OPENMP, tmp_path / "target", env={"LD_LIBRARY_PATH": env["LD_LIBRARY_PATH"]})
    assert (run.status, run.out) == (0, f"{2 * sum(i + 3 for i in range(1000))}\n")
    found = counts(run.trace)
    assert (found["target"], found["submit kernel"]) == (4, 4)
    assert (found["target enter data"], found["target exit data"], found["target update"]) == (1, 1, 1)
    moved = {
        what: [s.args["bytes"][0] for s in run.trace.tasks if f"OpenMP::{what}" in s.name]
        for what in ("transfer to device", "transfer from device")
    }
    assert moved == {"transfer to device": [4000] * 4, "transfer from device": [4000] * 5}


# ---- a runtime by hand ----


def test_target_regions(xstrace):
    run = xstrace(OPENMP, "omp_runtime", ["target"])
    assert (run.status, run.out) == (0, "done\n")
    assert counts(run.trace) == {
        "target enter data": 1,
        "allocate on device": 1,
        "transfer to device": 1,
        "target": 1,
        "submit kernel": 1,
        "transfer from device": 1,
        "free on device": 1,
        "target update": 1,
    }
    args = {PLACE.sub("", s.name).removeprefix("OpenMP::"): s.args for s in run.trace.tasks}
    assert args["target"]["device"] == [3] and args["submit kernel"]["teams"] == [120]
    assert args["transfer to device"]["bytes"] == [4096] and args["transfer from device"]["bytes"] == [2048]


@pytest.mark.parametrize("options", ["", " --start-paused", " --ring-size 65536 --on-full drop", " --ring-size 65536 --on-full overwrite"])
def test_a_runtime_that_tells_nonsense(xstrace, options):
    """What crosses has a track of its own: the fixture checks the trace."""
    run = xstrace(f"{OPENMP} {REPORT}{options}", "omp_runtime", ["odd"])
    assert (run.status, run.out) == (0, "done\n")


def test_a_second_runtime_that_starts_in_a_region(xstrace):
    """The region of the first one goes on, and its end is known."""
    run = xstrace(f"{OPENMP} {REPORT}", "omp_runtime", ["second"])
    assert (run.status, run.out) == (0, "done\n")
    assert counts(run.trace) == {"parallel": 1, "implicit task": 1, "loop": 1} and run.trace.count("open") == 0
    assert "not in this table" not in run.err


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("args", [("stack", 16384), ("cancel", 200), ("many", 2000)], ids=str)
def test_threads(xstrace, args):
    run = xstrace(f"{OPENMP} {REPORT}", "omp_runtime", args)
    assert (run.status, run.out) == (0, "done\n")
    if args[0] != "cancel":
        assert counts(run.trace)["implicit task"] == (args[1] if args[0] == "many" else 1)


def test_without_the_option_nothing_is_recorded(xstrace):
    run = xstrace("--chrome-itt-logging", "omp_runtime", ["events", 1000])
    assert run.status == 0 and not run.trace_files


HEADER = next(iter(Path("/usr/lib").glob("llvm-*/lib/clang/*/include/omp-tools.h")), None)


@pytest.mark.skipif(not HEADER, reason="no omp-tools.h")
def test_abi(tmp_path):
    """Our numbers are those of LLVM's header, by name."""
    ours = (ROOT / "interpose/openmp/ompt_abi.h").read_text()
    theirs = {
        "OMPT_THREAD_BEGIN": "ompt_callback_thread_begin", "OMPT_THREAD_END": "ompt_callback_thread_end",
        "OMPT_PARALLEL_BEGIN": "ompt_callback_parallel_begin", "OMPT_PARALLEL_END": "ompt_callback_parallel_end",
        "OMPT_TASK_CREATE": "ompt_callback_task_create", "OMPT_TASK_SCHEDULE": "ompt_callback_task_schedule",
        "OMPT_IMPLICIT_TASK": "ompt_callback_implicit_task", "OMPT_TASK_DEPENDENCE": "ompt_callback_task_dependence",
        "OMPT_WORK": "ompt_callback_work", "OMPT_MASKED": "ompt_callback_masked", "OMPT_SYNC_REGION": "ompt_callback_sync_region",
        "OMPT_MUTEX_RELEASED": "ompt_callback_mutex_released", "OMPT_MUTEX_ACQUIRE": "ompt_callback_mutex_acquire",
        "OMPT_MUTEX_ACQUIRED": "ompt_callback_mutex_acquired",
        "OMPT_TARGET_EMI": "ompt_callback_target_emi", "OMPT_TARGET_DATA_OP_EMI": "ompt_callback_target_data_op_emi",
        "OMPT_TARGET_SUBMIT_EMI": "ompt_callback_target_submit_emi",
        "OMPT_BEGIN": "ompt_scope_begin", "OMPT_END": "ompt_scope_end", "OMPT_BEGIN_END": "ompt_scope_beginend",
        "OMPT_THREAD_INITIAL": "ompt_thread_initial", "OMPT_THREAD_WORKER": "ompt_thread_worker",
        "OMPT_BARRIER_IMPLICIT": "ompt_sync_region_barrier_implicit", "OMPT_BARRIER_EXPLICIT": "ompt_sync_region_barrier_explicit",
        "OMPT_TASKWAIT": "ompt_sync_region_taskwait", "OMPT_TASKGROUP": "ompt_sync_region_taskgroup", "OMPT_REDUCTION": "ompt_sync_region_reduction",
        "OMPT_BARRIER_WORKSHARE": "ompt_sync_region_barrier_implicit_workshare", "OMPT_BARRIER_PARALLEL": "ompt_sync_region_barrier_implicit_parallel",
        "OMPT_WORK_LOOP": "ompt_work_loop", "OMPT_WORK_SECTIONS": "ompt_work_sections", "OMPT_WORK_SINGLE": "ompt_work_single_executor",
        "OMPT_WORK_SINGLE_OTHER": "ompt_work_single_other", "OMPT_WORK_TASKLOOP": "ompt_work_taskloop", "OMPT_WORK_SCOPE": "ompt_work_scope",
        "OMPT_LOCK": "ompt_mutex_lock", "OMPT_TEST_LOCK": "ompt_mutex_test_lock", "OMPT_CRITICAL": "ompt_mutex_critical", "OMPT_ORDERED": "ompt_mutex_ordered",
        "OMPT_TASK_EXPLICIT": "ompt_task_explicit", "OMPT_TASK_TARGET": "ompt_task_target", "OMPT_TASK_INITIAL": "ompt_task_initial",
        "OMPT_TASK_COMPLETE": "ompt_task_complete", "OMPT_TASK_SWITCH": "ompt_task_switch", "OMPT_TASK_LATE_FULFILL": "ompt_task_late_fulfill",
        "OMPT_PARALLEL_LEAGUE": "ompt_parallel_league", "OMPT_TARGET_ENTER_DATA": "ompt_target_enter_data", "OMPT_DATA_TO_DEVICE": "ompt_target_data_transfer_to_device",
        "OMPT_DATA_DELETE": "ompt_target_data_delete", "OMPT_SET_ALWAYS": "ompt_set_always",
    }  # fmt: skip
    assert all(name in ours for name in theirs)
    asserts = "\n".join(f'_Static_assert((int){ours} == (int){name}, "{name}");' for ours, name in theirs.items())
    source = tmp_path / "abi.c"
    source.write_text(
        f'#define OMPT_WORKS OUR_WORKS\n#include "{HEADER}"\n#include "ompt_abi.h"\n{asserts}\n'
        '_Static_assert(sizeof(struct ompt_tool) == sizeof(ompt_start_tool_result_t), "tool");\n'
    )
    # the same words are types there: ours come under other names
    subprocess.run(
        ["cc", "-w", "-c", "-o", tmp_path / "abi.o", "-I", ROOT / "interpose/openmp",
         *(f"-D{word}=our_{word}" for word in ("ompt_lookup", "ompt_function")), source],
        check=True,
    )  # fmt: skip
