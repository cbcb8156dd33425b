"""docs/FROM_UNITRACE.md: what it says of options and variables holds for the commands; tests/unitrace/run tells what passes and what does not."""

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from conftest import ROOT, XSTRACE
from gpu_log import DRIVER, SoftGPU

PAGE = (ROOT / "docs/FROM_UNITRACE.md").read_text()
SUITE = ROOT / "tests/unitrace/run"
needs_softgpu = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
VERDICTS = {"same", "better", "different", "not yet"}
# these do something else than to start an application
ALONE = {"--device-list": 0, "--metric-list": 0, "--version": 0, "--help": 0, "--pause": 125, "--resume": 125, "--stop": 125}


def table(title):
    """The rows of the table below a heading; a list of cells each, without the head."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def spans(cell):
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


OPTIONS = [(option, row[1]) for row in table("Options") for option in spans(row[0])]
ONLY_HERE = set(spans(PAGE.split("Only here:")[1].split("(")[0]))


def run(*args, cwd, **more):
    return subprocess.run([str(arg) for arg in args], cwd=cwd, capture_output=True, text=True, timeout=120, **more)


def one_line(text):
    """The tool's own lines."""
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("title", ["Options", "Files", "Report columns", "Trace categories and names", "Arguments in the trace"])
def test_rows_have_a_verdict(title):
    for row in table(title):
        assert len(row) == 3 and row[1] in VERDICTS, row
        assert all(len(cell) <= 200 for cell in row), row
    assert {row[1] for row in table("Environment variables") + table("Scripts")} <= VERDICTS


@pytest.mark.parametrize("option, verdict", OPTIONS, ids=[option for option, _ in OPTIONS])
def test_every_option_of_unitrace_is_accepted(tmp_path, option, verdict):
    (tmp_path / "names").write_text("a\n")
    (tmp_path / "probes.bt").write_text("BEGIN { exit(); }\n")
    words = shlex.split(option)
    if words[0] in ALONE:
        result = run(XSTRACE, *words, cwd=tmp_path)
        assert result.returncode == ALONE[words[0]], result.stderr
        if result.returncode:
            assert len(one_line(result.stderr)) == 1 and words[1] in result.stderr and not result.stdout
        return
    if words[0] == "--chrome-kmd-logging":
        # without bpftrace, or root: one line that says so, before anything starts
        result = run(XSTRACE, *words, "sh", "-c", "echo ran", cwd=tmp_path)
        assert result.stdout == "ran\n" or (result.returncode == 125 and "kmd-logging" in result.stderr)
        return
    result = run(XSTRACE, *words, "sh", "-c", "echo ran; exit 3", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "ran\n"), result.stderr
    missing = [line for line in result.stderr.splitlines() if "this version does not" in line]
    assert len(missing) == (verdict == "not yet"), result.stderr


def test_every_option_of_ours_is_in_the_page():
    """One that unitrace has is in the table, any other among those that are only here."""
    text = run(XSTRACE, "--help", cwd="/").stdout
    ours = set(re.findall(r"^ *(--[\w-]+)", text, re.M))
    theirs = {word for option, _ in OPTIONS for word in option.split() if word.startswith("--")}
    assert ours and ours <= theirs | ONLY_HERE
    assert ONLY_HERE <= ours and not ONLY_HERE & theirs


def test_every_variable_that_is_ours_is_in_the_source():
    folders = ("common", "launcher", "collector", "itt_collector", "interpose", "gpu", "writer", "devices")
    source = "".join(path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.[ch]"))
    for cell, verdict, note in table("Environment variables"):
        for name in spans(cell):
            if verdict in ("same", "better") and not note.startswith("Left alone"):
                assert f'"{name}' in source, name
        for name in re.findall(r"`([A-Z][A-Z_]+)`", note):
            assert name in source or note.startswith("Left alone"), name
    # what is left alone is not in it
    for cell, _, note in table("Environment variables"):
        if note.startswith("Left alone"):
            assert not [name for name in spans(cell) if f'"{name}' in source], cell


# ---- the recipes of its README ----

RECIPES = [
    # options as they are typed there, the files that they leave, below the directory in which it runs
    ("--chrome-kernel-logging --output-dir-path unitrace-result", [r"unitrace-result/ze_matrix\.PID\.json"]),
    ("-d -o myapp_device_timing", [r"myapp_device_timing\.PID"]),
    ("-d --include-kernels matmul,incre -o rep.txt", [r"rep\.PID\.txt"]),
    ("--chrome-call-logging --chrome-kernel-logging", [r"ze_matrix\.PID\.json"]),
    ("--chrome-kernel-logging --chrome-mpi-logging --chrome-ccl-logging --chrome-dnn-logging", [r"ze_matrix\.PID\.json"]),
    ("-h -d -s -o rep --chrome-device-logging", [r"rep\.PID", r"ze_matrix\.PID\.json"]),
    ("-h -d -s -t -c --chrome-kernel-logging --result-dir new", [rf"new/ze_matrix\.PID/{name}" for name in
        ("host_timing.txt", "device_timing.txt", "device_submission.txt", "device_timeline.txt", "call_logging.txt", "chrome_trace.json")]
        + [r"new/xstrace\.\d+/run_config.json"]),
    ("-q -o perfquery.csv", [r"perfquery\.PID\.csv", r"perfquery\.metrics\.PID\.csv"]),
    ("-k -o perfmetrics.csv", [r"perfmetrics\.PID\.csv", r"perfmetrics\.metrics\.PID\.csv"]),
    ("-k -i 20 -o perfmetrics.csv", [r"perfmetrics\.PID\.csv", r"perfmetrics\.metrics\.PID\.csv"]),
    ("-g ComputeBasic -q --chrome-kernel-logging -o profile", [r"profile\.metrics\.PID", r"ze_matrix\.PID\.json"]),
    ("--stall-sampling --chrome-kernel-logging -o perfstall.csv",
        [r"ze_matrix\.PID\.json", r"xstrace-metrics\.PID\.json", r"perfstall\.metrics\.PID\.csv"]),
]  # fmt: skip


@needs_softgpu
@pytest.mark.parametrize("options, files", RECIPES, ids=[options for options, _ in RECIPES])
def test_recipes_leave_the_files_that_are_expected(xstrace, options, files):
    gpu = SoftGPU(xstrace.home, SYNC=1, SHM=xstrace.home / "shm", DURATION_NS="increment=1000000")
    run = xstrace(options, "ze_matrix", ["--kernels", 3], env=gpu.env)
    assert run.status == 0
    found = sorted(str(path.relative_to(run.cwd)) for path in run.cwd.rglob("*") if path.is_file())
    assert len(found) == len(files), found
    for pattern in files:
        assert [name for name in found if re.fullmatch(pattern.replace("PID", r"\d+"), name)], (pattern, found)


@needs_softgpu
def test_names_behind_the_properties_are_kernels(xstrace):
    """unitrace's selective_kernels takes each quoted name behind that heading for a kernel that was recorded."""
    run = xstrace("-d -o rep", "ze_matrix", ["--kernels", 3, "--copies", 2], env=SoftGPU(xstrace.home, SYNC=1).env)
    (report,) = run.cwd.glob("rep.*")
    above, below = report.read_text().split("=== Kernel Properties ===")
    assert re.findall(r'^ *"([^"]+)"', below, re.M) == ["increment"]
    assert "=== Device Time Distribution ===" in above


@needs_softgpu
def test_started_paused_with_the_variable_set(xstrace):
    env = SoftGPU(xstrace.home, SYNC=1).env | {"PTI_ENABLE_COLLECTION": "1"}
    run = xstrace("--chrome-call-logging --chrome-kernel-logging --conditional-collection", "ze_matrix", ["--kernels", 3], env=env)
    assert len(run.trace.device) == 3


# ---- unitrace's own suite ----

CHECKER = """\
import os, subprocess, sys
top, test, words = sys.argv[1], sys.argv[2], sys.argv[3:]
ran = subprocess.run([top + "/../../build/unitrace", *os.environ["UNITRACE_OPTION"].split(), f"{top}/build/{test}/{test}", *words])
sys.exit("[ERROR] status " + str(ran.returncode) if ran.returncode else 0)
"""
CONFIG = """\
{"default_configuration": {"scenarios": ["-h", "-d -q"]},
 "test_configuration": [{"name": "fails", "scenarios": ["-h"]}, {"name": "elsewhere", "platform": ["Windows"]},
  {"name": "few", "skip_scenarios": ["-d -q"]}]}
"""


# real SPIR-V by its first word: the software GPU has kernels of ours for it
PLAIN = r"""
#include <level_zero/ze_api.h>
#include <cstdint>

int main()
{
	const uint32_t spirv[] = {0x07230203, 0};
	ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC};
	ze_module_desc_t module_desc = {ZE_STRUCTURE_TYPE_MODULE_DESC};
	ze_kernel_desc_t kernel_desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, "GEMM"};
	ze_driver_handle_t driver;
	ze_device_handle_t device;
	ze_context_handle_t context;
	ze_module_handle_t module;
	ze_kernel_handle_t kernel;
	uint32_t one = 1, first = 1;

	module_desc.format = ZE_MODULE_FORMAT_IL_SPIRV;
	module_desc.inputSize = sizeof(spirv);
	module_desc.pInputModule = (const uint8_t *)spirv;
	return zeInit(0) || zeDriverGet(&one, &driver) || zeDeviceGet(driver, &first, &device) || zeContextCreate(driver, &context_desc, &context)
	    || zeModuleCreate(context, device, &module_desc, &module, nullptr) || zeKernelCreate(module, &kernel_desc, &kernel);
}
"""


def made_up_checkout(top):
    """A suite like unitrace's, of five tests with three programs."""
    test = top / "tools/unitrace/test"
    for name, tests, source in (
        ("plain", ["plain", "few", "elsewhere"], PLAIN),
        ("fails", ["fails"], "int main() { return 4; }"),
        ("sycled", ["sycled"], "#include <sycl/sycl.hpp>\nint main() { sycl::buffer<int> none; }"),
    ):
        folder = test / "cpp_test" / name
        folder.mkdir(parents=True)
        (folder / "main.cc").write_text(source)
        lines = [f"add_executable({name} main.cc)"]
        lines += [
            f"add_test(NAME {one} COMMAND ${{PYTHON_EXECUTABLE}} ${{CMAKE_SOURCE_DIR}}/../run_test.py\n  ${{CMAKE_SOURCE_DIR}} {name})"
            for one in tests
        ]
        (folder / "CMakeLists.txt").write_text("\n".join(lines))
    (test / "run_test.py").write_text(CHECKER)
    (test / "test_config.json").write_text(CONFIG)


@needs_softgpu
def test_the_suite_is_driven_through_our_binary(tmp_path):
    """What passes, what fails and what cannot be run is told apart, by a suite of our own."""
    made_up_checkout(tmp_path / "checkout")
    result = run(sys.executable, SUITE, "--build", XSTRACE.parent.parent, tmp_path / "checkout", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    assert sorted(lines[:-1]) == [
        "failed  fails -h: [ERROR] status 4",
        "not run plain -d -q: hardware metrics are not there yet",
        "not run sycled -d -q: hardware metrics are not there yet",
        "not run sycled -h: needs a SYCL compiler",
        "passed  few -h",
        "passed  plain -h",
    ]
    assert lines[-1] == "2 passed, 1 failed, 3 not run"
    assert run(sys.executable, SUITE, tmp_path, cwd=tmp_path).returncode != 0  # no suite there


@pytest.mark.skipif("XSTRACE_TEST_UNITRACE" not in os.environ, reason="XSTRACE_TEST_UNITRACE names no checkout of pti-gpu")
def test_unitraces_own_suite(tmp_path):
    """The table of docs/FROM_UNITRACE.md: nothing fails but what is named there."""
    signal.alarm(1500)
    options = shlex.split(os.environ.get("XSTRACE_TEST_UNITRACE_OPTIONS", ""))
    command = [sys.executable, SUITE, "--build", XSTRACE.parent.parent, *options, os.environ["XSTRACE_TEST_UNITRACE"]]
    result = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    failed = [line for line in result.stdout.splitlines() if line.startswith("failed")]
    assert not failed and "passed" in result.stdout, "\n".join(failed) or result.stdout
