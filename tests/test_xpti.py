"""SYCL's runtime by XPTI (--chrome-sycl-logging): through the framework in software, and as PyPI's runtime tells of itself."""

import collections
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from others import CCL, PROGRAMS, compile_cpp, needs_clients

SYCL = "--chrome-sycl-logging"
FRAMEWORK = BUILD / "tests/softxpti/libxptifw.so"


def names(trace):
    return collections.Counter(s.name for s in trace.slices)


def marks(trace, name):
    return [event["args"] for event in trace.events if event["ph"] == "i" and event["name"] == name]


def counter(trace, name):
    return [event["args"]["value"] for event in trace.events if event["ph"] == "C" and event["name"] == name]


def arrows(trace):
    """(where, when) of both ends of each arrow between slices with ids."""
    ends = collections.defaultdict(dict)
    for event in trace.events:
        if event["ph"] in "sf" and event["name"] == "parent":
            ends[event["id"]][event["ph"]] = (event["tid"], event["ts"])
    return [(end["s"], end["f"]) for end in ends.values()]


def logged(run):
    """{function: lines of its calls without times}, as text."""
    found = collections.defaultdict(list)
    for line in run.err.splitlines():
        if match := re.match(r"(?:>>>>|<<<<) \[\d+\] (ur\w+):?(?: \[\d+ ns\])?(.*)", line):
            found[match[1]].append(match[2].strip())
    return found


def test_a_command_from_its_submission_to_its_end(xstrace):
    run = xstrace(SYCL, "sycl_app", ["steps", 5])
    assert run.status == 0 and not run.err
    assert names(run.trace) == {"waiting scale": 5, "submit scale": 5, "urEnqueueKernelLaunch": 5, "event.wait": 5}
    tasks = [s for s in run.trace.slices if s.name == "submit scale"]
    waits = [s for s in run.trace.slices if s.name == "waiting scale"]
    for task, wait in zip(tasks, waits):
        assert task.args == {"source_file": ["program.cpp"], "line": [20], "queue_id": [7]}
        assert wait.end <= task.start
    assert len(run.trace.events) > 0 and len(marks(run.trace, "node_create")) == 5
    calls = [s for s in run.trace.slices if s.name == "urEnqueueKernelLaunch"]
    assert all(t.start <= c.start and c.end <= t.end and t.track == c.track for t, c in zip(tasks, calls))
    # an arrow leads from each waiting to its task
    joined = arrows(run.trace)
    assert len(joined) == 5
    assert sorted(f for _, f in joined) == sorted((t.track[1], t.start) for t in tasks)
    assert {s[0] for s, _ in joined} == {w.track[1] for w in waits}
    assert {run.trace.names("thread_name")[w.track] for w in waits} == {"SYCL commands waiting"}


def test_calls_have_a_table_of_their_own(xstrace):
    run = xstrace(f"{SYCL} -h -c", "sycl_app", ["steps", 4])
    assert re.search(r"== UR Backend ==\n\n +Function,.*\nurEnqueueKernelLaunch, +4,", run.err)
    assert logged(run)["urEnqueueKernelLaunch"] == ["", "-> UR_RESULT_SUCCESS (0)", "", "-> UR_RESULT_ERROR_INVALID_VALUE (4) [FAILED]"] * 2
    failed = [s for s in run.trace.slices if s.name == "urEnqueueKernelLaunch" and s.args]
    assert len(failed) == 2  # every other one has a result


def test_arguments_and_results(xstrace):
    run = xstrace(f"{SYCL} -c", "sycl_app", ["arguments"])
    assert run.status == 0
    found = logged(run)
    address = "0x[0-9a-f]+"
    for name, pattern in {
        "urKernelCreate": f'hProgram = 0x300 pKernelName = "scale" phKernel = {address}\nphKernel = 0x200 -> UR_RESULT_SUCCESS \\(0\\)',
        # a kernel has its name; what is not given is 0
        "urEnqueueKernelLaunch": rf"hQueue = 0x100 hKernel = 0x200 \(scale\) workDim = 2 pGlobalWorkOffset = 0x0 pGlobalWorkSize = {address} \{{64, 32\}} "
        r"pLocalWorkSize = 0x0\n-> UR_RESULT_SUCCESS \(0\)",
        # without addresses, without one of them: without arguments
        "urEventWait": rf"numEvents = 2 phEventWaitList = {address} \{{0x11, 0x12\}}\n-> UR_RESULT_SUCCESS \(0\)\n\n-> UR_RESULT_SUCCESS \(0\)\n\n-> UR_RESULT_SUCCESS \(0\)",
        "urMemBufferCreate": rf"hContext = 0x100 flags = UR_MEM_FLAG_READ_WRITE\|UR_MEM_FLAG_WRITE_ONLY size = 4096 pProperties = 0x0 phBuffer = {address}\n"
        rf"phBuffer = 0x13 -> UR_RESULT_SUCCESS \(0\)\nhContext.*\n-> UR_RESULT_ERROR_UNKNOWN \(2147483646\) \[FAILED\]",
        "urEnqueueMemBufferReadRect": r"hQueue = 0x100 hBuffer = 0x13 blockingRead = 1 bufferOrigin = \{x = 1, y = 2, z = 3\} .* region = \{width = 4, height = 5, depth = 6\} "
        r"bufferRowPitch = 1 .*\n-> UR_RESULT_SUCCESS \(0\)",
        "urOfTomorrow": r"\n",
    }.items():
        assert re.fullmatch(pattern, "\n".join(found[name])), (name, found[name])


def test_pointers_that_lead_nowhere_are_not_followed(xstrace):
    run = xstrace(f"{SYCL} -c", "sycl_app", ["pointers"])
    assert run.status == 0
    found = logged(run)
    assert set(found["urEnqueueKernelLaunch"][1::2] + found["urQueueCreate"][1::2]) == {"-> UR_RESULT_SUCCESS (0)"}
    # up to the end of the last page that is there
    assert re.fullmatch(r"numEvents = 1 phEventWaitList = 0x[0-9a-f]+ \{0x6e6e6e6e6e6e6e6e\}", found["urEventWait"][-2])
    assert found["urProgramBuild"][0].endswith(' "nnn"')


def test_arguments_of_a_newer_unified_runtime_are_not_read(xstrace):
    run = xstrace(f"{SYCL} -c", "sycl_app", ["newer", "arguments"])
    assert run.status == 0
    found = logged(run)
    assert found["urEnqueueKernelLaunch"] == found["urOfTomorrow"] == ["", ""] and len(found["urMemBufferCreate"]) == 4


def test_usm_of_each_device(xstrace):
    run = xstrace(SYCL, "sycl_app", ["devices"])
    on = {
        device: counter(run.trace, f"SYCL USM in use{device} (bytes)")
        for device in ("", " on Card", " on Card #2", " on Processor", " on the host")
    }
    assert on == {"": [3], " on Card": [64, 128, 192, 128], " on Card #2": [1000], " on Processor": [50, 0], " on the host": [7]}
    lines = sorted(match[0] for line in run.said if (match := re.search(r"\d+ USM allocations? of SYCL.*", line)))
    assert lines == [
        "1 USM allocation of SYCL on Card #2, 1000 bytes",
        "1 USM allocation of SYCL on the host, 7 bytes",
        "1 USM allocation of SYCL, 3 bytes",
        "2 USM allocations of SYCL on Card, 128 bytes",
    ]


def test_memory_in_use_and_what_is_not_freed(xstrace):
    run = xstrace(SYCL, "sycl_app", ["memory"])
    assert counter(run.trace, "SYCL USM in use (bytes)") == [4096, 5096, 1000]
    assert counter(run.trace, "SYCL buffers in use (bytes)") == [1600, 0]
    assert names(run.trace) == {"mem_alloc": 2, "mem_alloc (buffer)": 1, "mem_release": 3}
    assert not marks(run.trace, "node_create")  # of the stream of allocations: it is no command
    assert marks(run.trace, "accessor") == [{"buffer": [0x2000], "mode": [1026], "source_file": ["program.cpp"], "line": [20]}]
    place = {"source_file": ["program.cpp"], "line": [20]}
    assert marks(run.trace, "image_create") == [{"image": [0x3000], "format": [7], "sampled": [0], "width": [16], "height": [8]} | place]
    assert marks(run.trace, "image_accessor") == [{"image": [0x3000], "mode": [1024]} | place]
    assert marks(run.trace, "image_destroy") == [{"image": [0x3000]}]
    assert any(re.search(r"process \d+ \(sycl_app\) has not freed 1 USM allocation of SYCL, 1000 bytes", line) for line in run.said)


def test_what_was_allocated_while_nothing_was_recorded_counts(xstrace):
    run = xstrace(f"{SYCL} --start-paused", "sycl_app", ["memory"])
    assert not run.traces or not run.trace.slices
    assert any("has not freed 1 USM allocation" in line for line in run.said)


def test_nothing_that_an_event_says_is_believed(xstrace):
    bare = xstrace.bare("sycl_app", ["hostile"])
    run = xstrace(SYCL, "sycl_app", ["hostile"])
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err) and run.status == 0
    assert max(len(s.name) for s in run.trace.slices) < 20000
    assert names(run.trace)["urEventWait"] == 1
    # calls without a name: an end that is none of theirs ends none
    unknown = [s for s in run.trace.slices if s.name == "(unknown)"]
    assert unknown and all(s.unfinished for s in unknown)


def test_small_stacks_a_cancelled_thread_and_a_child(xstrace):
    run = xstrace(SYCL, "sycl_app", ["threads"])
    assert run.status == 0
    assert sorted(names(trace)["submit scale"] for trace in run.traces) == [5, 80]
    assert sorted(names(trace)["urEnqueueKernelLaunch"] for trace in run.traces) == [5, 80]


@pytest.mark.parametrize("mode, word", [("newer", "newer than version 1"), ("lying", None)])
def test_structures_that_are_not_known_are_not_read(xstrace, mode, word):
    run = xstrace(SYCL, "sycl_app", [mode, 3])
    found = names(run.trace)
    assert found["submit (no name)"] == found["urEnqueueKernelLaunch"] >= 3
    assert not any(s.args for s in run.trace.slices if s.name.startswith("submit"))
    assert any(word in line for line in run.said) if word else True


def test_a_runtime_that_tells_nothing_is_named(xstrace, tmp_path):
    library = tmp_path / "libsycl.so.9"
    shutil.copy(FRAMEWORK, library)
    run = xstrace(SYCL, "sycl_app", ["none", library])
    assert run.status == 0
    assert any("SYCL's runtime has not told of anything" in line for line in run.said)
    run = xstrace("--chrome-itt-logging", "sycl_app", ["none", library])
    assert not any("SYCL" in line for line in run.said)


def test_without_the_option_nothing_is_recorded_and_nothing_set(xstrace):
    run = xstrace("--chrome-call-logging", "env_probe")
    assert not re.search("XPTI|UR_ENABLE", run.out)
    run = xstrace(
        "--chrome-call-logging",
        "sycl_app",
        ["steps", 3],
        env={"XPTI_TRACE_ENABLE": "1", "XPTI_SUBSCRIBERS": str(BUILD / "collector/libxstrace.so")},
    )
    assert run.status == 0 and not run.traces


def test_the_users_own_values_are_kept(xstrace):
    own = {
        "XPTI_SUBSCRIBERS": "/own.so",
        "UR_ENABLE_LAYERS": "UR_LAYER_PARAMETER_VALIDATION",
        "XPTI_FRAMEWORK_DISPATCHER": "/own/libxptifw.so",
    }
    run = xstrace(SYCL, "env", env=own)
    library = os.path.realpath(BUILD / "collector/libxstrace.so")
    assert f"XPTI_SUBSCRIBERS=/own.so,{library}\n" in run.out
    assert "UR_ENABLE_LAYERS=UR_LAYER_PARAMETER_VALIDATION,UR_LAYER_TRACING\n" in run.out
    assert "XPTI_FRAMEWORK_DISPATCHER=/own/libxptifw.so\n" in run.out and "XPTI_TRACE_ENABLE=1\n" in run.out
    run = xstrace(SYCL, "true", env={"XPTI_TRACE_ENABLE": "0"})
    assert any("XPTI_TRACE_ENABLE is set (0)" in line for line in run.said)


def test_a_subscriber_of_the_users_gets_its_events_too(xstrace, tmp_path):
    other = tmp_path / "libother.so"
    source = tmp_path / "other.c"
    source.write_text(
        '#include <stdio.h>\nvoid xptiTraceInit(unsigned a, unsigned b, const char *v, const char *stream) { printf("%s\\n", stream); }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", other, source], check=True)
    run = xstrace(SYCL, "sycl_app", ["steps", 2], env={"XPTI_SUBSCRIBERS": str(other)})
    assert "ur.call" in run.out.split() and names(run.trace)["submit scale"] == 2


def test_with_the_flight_recorder(xstrace):
    run = xstrace(f"{SYCL} --flight-recorder 60s", "sycl_app", ["crash", 3])
    assert names(run.trace)["submit scale"] == names(run.trace)["waiting scale"] == 3


@pytest.mark.parametrize("form", ["perfetto", "kineto"])
def test_in_other_formats(xstrace, form):
    run = xstrace(f"{SYCL} --format {form}", "sycl_app", ["steps", 3])
    found = names(run.trace)
    assert found["submit scale"] == found["waiting scale"] == found["event.wait"] == found["urEnqueueKernelLaunch"] == 3


def test_a_time_without_recording(xstrace):
    """What the run's window leaves out; and by the variable that unitrace knows."""
    run = xstrace(f"{SYCL} --delay 60", "sycl_app", ["steps", 3])
    assert run.status == 0 and not any(trace.slices for trace in run.traces)
    run = xstrace(f"{SYCL} --start-paused", "sycl_app", ["steps", 3], env={"PTI_ENABLE_COLLECTION": "1"})
    assert run.status == 0 and names(run.trace)["submit scale"] == 3


# ---- the real runtime ----

needs_opencl = pytest.mark.skipif(
    not (CCL / "lib/libintelocl.so").exists(), reason="no intel-opencl-rt in .venv-ccl; scripts/setup --clients installs it"
)
REAL = {"OCL_ICD_FILENAMES": str(CCL / "lib/libintelocl.so"), "LD_LIBRARY_PATH": str(CCL / "lib")}


@needs_clients
def test_the_facts_of_the_interface(tmp_path):
    if not (CCL / "include/xpti").exists():
        pytest.skip("no intel-sycl-rt in .venv-ccl; scripts/setup --clients installs it")
    program = compile_cpp(tmp_path / "abi", "xpti_abi.cpp", f"-I{CCL}/include", f"-I{ROOT}/gpu/sycl")
    assert subprocess.run([program]).returncode == 0


@needs_clients
@pytest.mark.parametrize(
    "header", [*CCL.glob("include/unified-runtime/ur_api.h"), *map(Path, os.environ.get("XSTRACE_TEST_UR_HEADERS", "").split())], ids=str
)
def test_the_arguments_of_the_unified_runtime(header):
    """gpu/sycl/ur_abi.h has the first arguments of each function, as this version's header has them."""
    real = header.read_text()
    plain = lambda text: " ".join(re.sub(r"\bconst\b", "", text.replace("*", " * ")).split())  # noqa: E731
    parameters = {}
    for body, name in re.findall(r"typedef struct ur_\w+_params_t \{(.*?)\} (ur_\w+)_params_t;", real, re.S):
        fields = [re.fullmatch(r"(.*\*)\s*p(\w+)", " ".join(field.split())).groups() for field in body.split(";") if field.strip()]
        parameters[name.replace("_", "")] = [(plain(kind[:-1]), name) for kind, name in fields]
    ours = re.findall(r"^ur_result_t (ur\w+)\((.*?)\);", (ROOT / "gpu/sycl/ur_abi.h").read_text(), re.S | re.M)
    compared = 0
    for name, text in ours:
        there = parameters.get(name.lower())
        if there is None:  # it came later, or went earlier
            continue
        given = [re.fullmatch(r"(.*?)(\w+)", " ".join(argument.split())).groups() for argument in text.split(",")]
        assert [n for _, n in given] == [n for _, n in there[: len(given)]], name
        for (kind, _), (real_kind, _) in zip(given, there):
            opaque = plain(kind) == "void *" and ("properties_t" in real_kind or "function_t" in real_kind)
            assert plain(kind) == real_kind or opaque or (plain(kind), real_kind) == ("uintptr_t", "ur_native_handle_t"), name
        compared += 1
    assert compared > 70
    values = dict(re.findall(r"^\s*(UR_\w+)\s*=\s*(\w+(?:\(\d+\))?)", real, re.M))
    number = lambda text: 1 << int(text[7:-1]) if text.startswith("UR_BIT") else int(text, 0)  # noqa: E731
    for name, value in re.findall(r"^\s*(UR_\w+) = (\w+)", (ROOT / "gpu/sycl/ur_types.h").read_text(), re.M):
        assert name not in values or number(values[name]) == int(value, 0), name


@needs_clients
@needs_opencl
def test_dpctl(xstrace):
    run = xstrace(f"{SYCL} --chrome-kernel-logging", CCL / "bin/python", [PROGRAMS / "sycl_usm.py"], env=REAL)
    assert run.status == 0, run.err
    count, *times = map(int, run.out.split())
    found = names(run.trace)
    # the runtime calls a kernel of OpenCL C as the function is called that has submitted it
    assert found["waiting DPCTLQueue_SubmitRange"] == found["submit DPCTLQueue_SubmitRange"] == count
    kernels = [s for s in run.trace.device if s.base == "twice"]
    # dpctl's own event profiling
    assert sorted(s.end - s.start for s in kernels) == pytest.approx(sorted(times), abs=2000, rel=0.02)
    enqueues = sorted((s for s in run.trace.slices if s.name == "clEnqueueNDRangeKernel"), key=lambda s: s.start)
    tasks = sorted((s for s in run.trace.slices if s.name == "submit DPCTLQueue_SubmitRange"), key=lambda s: s.start)
    assert all(t.start <= e.start and e.end <= t.end and t.track == e.track for t, e in zip(tasks, enqueues)) and len(enqueues) == count
    starts = {event["id"] for event in run.trace.events if event["ph"] == "s" and event["name"] == "dep"}
    ends = {event["id"] for event in run.trace.events if event["ph"] == "f" and event["name"] == "dep"}
    assert starts == ends and len(starts) >= count
    (device,) = {event["name"] for event in run.trace.events if event["ph"] == "C" and "USM in use" in event["name"]}
    assert re.fullmatch(r"SYCL USM in use on .+ \(bytes\)", device) and max(counter(run.trace, device)) == 8192


@needs_clients
@needs_opencl
def test_a_program_without_a_sycl_compiler(xstrace, tmp_path):
    flags = [
        "-I",
        CCL / "include",
        "-I",
        CCL / "include/sycl",
        "-L",
        CCL / "lib",
        "-lsycl",
        "-l:libOpenCL.so.1",
        f"-Wl,-rpath,{CCL}/lib",
        "-Wl,--allow-shlib-undefined",
    ]
    program = compile_cpp(tmp_path / "sycl_buffers", "sycl_buffers.cpp", *flags)
    bare = xstrace.bare(program, env=REAL)
    assert bare.status == 0, bare.err
    run = xstrace(f"{SYCL} --chrome-kernel-logging -h", program, env=REAL)
    assert (run.status, run.out) == (0, bare.out)
    found = names(run.trace)
    assert found["submit host task"] == 1 and found["submit memset"] == 1 and found["urEnqueueUSMFill"] == 1
    assert found["urCommandBufferFinalizeExp"] == found["urEnqueueCommandBufferExp"] == 1
    kernels = [s for s in run.trace.device if s.base == "scale"]
    assert [s.base for s in run.trace.device].count("command buffer (scale)") == 1
    in_file = [
        s for s in run.trace.slices if s.name.startswith("submit") and s.args.get("source_file", [""])[0].endswith("sycl_buffers.cpp")
    ]
    assert len(kernels) == int(run.out) and len(in_file) >= int(run.out)
    assert counter(run.trace, "SYCL buffers in use (bytes)") == [4096, 0]
    assert [m["width"] + m["height"] for m in marks(run.trace, "image_create")] == [[16, 8]] and len(marks(run.trace, "image_destroy")) == 1
    assert "== UR Backend ==" in run.err
    assert any(re.search(r"has not freed 1 USM allocation of SYCL on .+, 308 bytes", line) for line in run.said)


@needs_clients
@needs_opencl
def test_dpnp_and_onemkl(xstrace, tmp_path):
    if not list(CCL.glob("lib/python3*/site-packages/dpnp")):
        pytest.skip("no dpnp in .venv-ccl; scripts/setup --clients installs it")
    script = tmp_path / "product.py"
    script.write_text(
        "import dpnp\na = dpnp.ones((256, 256), dtype=dpnp.float32, device='opencl:cpu')\n"
        "for _ in range(5):\n    b = dpnp.matmul(a, a)\nb.sycl_queue.wait()\nprint(float(b[0, 0]))\n"
    )
    run = xstrace(f"{SYCL} --chrome-kernel-logging -h", CCL / "bin/python", [script], env=REAL)
    assert (run.status, run.out) == (0, "256.0\n"), run.err
    found = names(run.trace)
    # oneMKL computes on processors in host tasks
    assert found["submit host task"] == found["waiting host task"] >= 5
    assert (
        max(
            value
            for e in run.trace.events
            if e["ph"] == "C" and "USM in use on" in e["name"] and "host" not in e["name"]
            for value in [e["args"]["value"]]
        )
        >= 2 * 256 * 256 * 4
    )
    assert "== UR Backend ==" in run.err


@needs_clients
def test_onedal_by_its_tasks(xstrace, tmp_path):
    """oneDAL runs in oneTBB's tasks, which ITT shows, below scikit-learn's functions."""
    if not list(CCL.glob("lib/python3*/site-packages/sklearnex")):
        pytest.skip("no scikit-learn-intelex in .venv-ccl; scripts/setup --clients installs it")
    script = tmp_path / "means.py"
    script.write_text(
        "import numpy as np\nfrom sklearnex.cluster import KMeans\nx = np.random.default_rng(1).random((2000, 8), dtype=np.float32)\n"
        "print(KMeans(n_clusters=4, n_init=1, random_state=1, max_iter=20).fit(x).n_iter_)\n"
    )
    run = xstrace(
        "--chrome-itt-logging --python-stacks=sklearnex,onedal", CCL / "bin/python", [script], env={"LD_LIBRARY_PATH": str(CCL / "lib")}
    )
    assert run.status == 0 and int(run.out) > 0, run.err
    tbb = [s for s in run.trace.slices if s.name == "tbb::tbb_parallel_for"]
    fits = [s for s in run.trace.slices if s.name.startswith("Python::KMeans.fit ")]
    assert fits and any(f.track == t.track and f.start <= t.start and t.end <= f.end for t in tbb for f in fits)
