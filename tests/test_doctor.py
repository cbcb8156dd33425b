"""xstrace --doctor: what is there, what is missing, what will be seen of a program; held against runs that are really traced."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import APPS, BUILD, XSTRACE, compile_c, copy_build
from cuda_log import SoftCUDA
from gpu_log import SoftGPU

# Gives system calls (numbers of x86-64) an error: what a container's seccomp profile does.
DENY = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers, words = [int(n) for n in sys.argv[1].split(",")], sys.argv[2:]
rows = [(0x20, 0, 0, 0)] + [(0x15, len(numbers) - i, 0, n) for i, n in enumerate(numbers)] + [(6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x50000 | errno.EACCES)]
kept = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(kept))
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.create_string_buffer(program, len(program)), 0, 0), ctypes.get_errno()
os.execv(words[0], words)
"""
PTRACE, PERF_EVENT_OPEN = 101, 298


class Doctor:
    """One look, as JSON: status, and rows by section."""

    def __init__(self, *app, env=None, prefix=(), launcher=XSTRACE, **popen):
        environment = {**os.environ, **(env or {})}
        done = subprocess.run(
            [*prefix, launcher, "--doctor", "--json", *app], capture_output=True, text=True, env=environment, timeout=100, **popen
        )
        self.status, self.err = done.returncode, done.stderr
        self.document = json.loads(done.stdout)
        assert self.document["status"] == self.status and not self.err
        for row in self.rows():
            assert row["state"] in ("ok", "note", "missing", "bad") and row["text"]
            assert row["state"] == "ok" or row.get("todo") or row["name"] == "OpenMP of gcc"

    def rows(self):
        return [row for value in self.document.values() if type(value) is list for row in value]

    def row(self, section, name):
        """The row, or None."""
        return next((row for row in self.document.get(section, ()) if row["name"] == name), None)

    def state(self, section, name):
        row = self.row(section, name)
        return row and row["state"]


@pytest.fixture(scope="module")
def here():
    return Doctor()


def test_here(here, tmp_path):
    assert set(here.document) == {"tool", "version", "status", "machine", "apis", "checks"}
    assert here.status == any(row["state"] == "bad" for row in here.rows())
    assert here.state("checks", "ITT") == "ok"
    text = subprocess.run([XSTRACE, "--doctor"], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert text.returncode == here.status and not text.stderr
    said = re.findall(r"^  (ok|note|missing|bad) +(.{18})", text.stdout, re.M)
    assert [(state, name.strip()) for state, name in said] == [(row["state"], row["name"]) for row in here.rows()]
    assert os.listdir(tmp_path) == []


def test_what_it_says_of_the_clock_is_what_traces_use(here, xstrace):
    trace = xstrace("--chrome-itt-logging", "itt_tasks", ["10"]).trace
    assert (here.state("machine", "clock") == "ok") == (trace.metadata["clock"] == "tsc")


def test_an_empty_environment():
    one = Doctor(prefix=["env", "-i"])
    assert one.state("checks", "ITT") == "ok" and one.state("apis", "Python") == "missing"


# ---- APIs ----


def test_opencl_is_there_and_traced(here):
    if here.state("apis", "OpenCL") != "ok":
        pytest.skip("no OpenCL")
    assert here.state("checks", "OpenCL") == "ok"


def test_opencl_without_a_driver(tmp_path):
    one = Doctor(env={"OCL_ICD_VENDORS": str(tmp_path)})
    assert one.state("apis", "OpenCL") == "missing" and one.state("checks", "OpenCL") is None
    assert "driver" in one.row("apis", "OpenCL")["todo"] and one.status == 0


LOADERS = {
    "crashes": ("int clGetPlatformIDs(int n, void *p, int *c) { return *(volatile int *)8; }", "crashed (signal 11", "OpenCL"),
    "leaves": ("int _exit(int); int clGetPlatformIDs(int n, void *p, int *c) { _exit(3); return 0; }", "ended with status 3", "OpenCL"),
    "has no layers": ("int clGetPlatformIDs(int n, void *p, int *c) { return -1; }", "knows no layers", "OpenCL's loader"),
}


@pytest.mark.parametrize("how", LOADERS)
def test_a_loader_that(how, tmp_path):
    source, text, name = LOADERS[how]
    more = "int clGetPlatformInfo() { return -1; } int clGetDeviceIDs() { return -1; } int clGetDeviceInfo() { return -1; }"
    compile_c(tmp_path / "libOpenCL.so.1", f"{source} {more}", "-shared", "-fPIC")
    one = Doctor(env={"LD_LIBRARY_PATH": str(tmp_path)})
    row = one.row("apis", name)
    assert one.status == 1 and row["state"] == "bad" and text in row["text"] and str(tmp_path) in row["text"]
    assert one.state("checks", "ITT") == "ok"


def test_something_else_in_a_loaders_place(tmp_path):
    compile_c(tmp_path / "libOpenCL.so.1", "int nothing;", "-shared", "-fPIC")
    row = Doctor(env={"LD_LIBRARY_PATH": str(tmp_path)}).row("apis", "OpenCL")
    assert row["state"] == "missing" and "no OpenCL loader" in row["text"]


def test_level_zero(tmp_path):
    one = Doctor(env=SoftGPU(tmp_path, DEVICES=1).env)
    assert one.state("apis", "Level Zero") == "ok" and "SoftGPU" in one.row("apis", "Level Zero")["text"]
    assert one.state("checks", "Level Zero") == "ok"


def test_level_zero_that_cannot_be_traced(tmp_path):
    # a layer in our place that does nothing: no call reaches us
    env = SoftGPU(tmp_path).env
    one = Doctor(env={**env, "ZE_ENABLE_ALT_DRIVERS": "/nonexistent.so"})
    assert one.state("apis", "Level Zero") == "missing"


def test_cuda(tmp_path):
    one = Doctor(env=SoftCUDA(tmp_path).env)
    assert one.state("apis", "CUDA") == "ok" and "Software GPU" in one.row("apis", "CUDA")["text"]
    assert one.state("checks", "CUDA") == "ok"


def test_mpi(here):
    if here.state("apis", "MPI") != "ok":
        pytest.skip("no MPI library by its name")
    path, abi = re.match(r"(\S+): .*; ABI: (.*)$", here.row("apis", "MPI")["text"]).groups()
    assert (abi == "Open MPI's") == ("Open MPI v" in here.row("apis", "MPI")["text"]) and here.state("checks", "MPI") == "ok"
    assert os.path.exists(path)


# ---- the machine ----


def test_a_small_dev_shm():
    words = 'mount -t tmpfs -o size=16m none /dev/shm && exec "$@"'
    one = Doctor(prefix=["unshare", "-m", "sh", "-c", words, "sh"])
    row = one.row("machine", "/dev/shm")
    assert row["state"] == "note" and "16 of 16 MiB" in row["text"] and "size=" in row["todo"]
    assert one.state("checks", "ITT") == "ok"  # elsewhere


def test_no_dev_shm():
    one = Doctor(prefix=["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', "sh"])
    assert one.state("machine", "/dev/shm") == "note" and one.state("checks", "ITT") == "ok"


def test_a_container_without_ptrace_and_perf():
    one = Doctor(prefix=[sys.executable, "-c", DENY, f"{PTRACE},{PERF_EVENT_OPEN}"])
    assert one.state("machine", "ptrace") == "note" and "SYS_PTRACE" in one.row("machine", "ptrace")["todo"]
    assert one.state("machine", "perf_event") == "note" and "perf_event_paranoid" in one.row("machine", "perf_event")["todo"]
    assert one.state("checks", "ITT") == "ok" and one.status == 0


def test_limits_that_leave_no_room():
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    one = Doctor(preexec_fn=limit)
    assert one.status == 1 and one.state("machine", "limits") == "bad" and "ulimit -f" in one.row("machine", "limits")["text"]
    # and that is so: nothing is traced
    assert one.state("checks", "ITT") == "bad"


def test_soft_limits_are_those_of_applications():
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (512 << 10, resource.getrlimit(resource.RLIMIT_DATA)[1]))  # noqa: E731
    done = subprocess.run([XSTRACE, "--doctor"], capture_output=True, text=True, preexec_fn=limit, timeout=100)
    assert done.returncode == 1 and "ulimit -d" in done.stdout or done.returncode not in (0, 1)


# ---- this very program ----


def test_a_program_of_opencl_is_what_its_trace_says(xstrace):
    if not shutil.which("clinfo"):
        pytest.skip("no clinfo")
    one = Doctor("clinfo")
    row = one.row("program", "OpenCL")
    assert one.state("program", "program") == "ok" and row["state"] == "ok" and "libOpenCL.so.1" in row["text"]
    calls = sum(event["ph"] == "X" for event in xstrace("--chrome-call-logging", shutil.which("clinfo")).trace.events)
    assert calls > 50
    one = Doctor("true")
    assert one.row("program", "OpenCL") is None and one.state("program", "runtimes") == "note"


def test_what_programs_link_or_may_open(tmp_path):
    assert "ITT" in [row["name"] for row in Doctor(APPS / "itt_tasks").document["program"]]
    opens = compile_c(tmp_path / "opens", '#include <dlfcn.h>\nint main() { return !dlopen("libOpenCL.so.1", 2); }')
    assert "may open" in Doctor(opens).row("program", "OpenCL")["text"]
    library = compile_c(tmp_path / "libgone.so", "int gone(void) { return 0; }", "-shared", "-fPIC")
    needs = compile_c(tmp_path / "needs", "int gone(void); int main() { return gone(); }", library)
    library.unlink()
    one = Doctor(needs)
    assert one.status == 1 and "libgone.so" in one.row("program", "libraries")["text"]


def test_no_program_is_run_that_a_file_calls_its_loader(tmp_path):
    loader = tmp_path / "ld-evil.so"
    loader.write_text(f"#!/bin/sh\ntouch {tmp_path}/run\n")
    loader.chmod(0o777)
    asks = compile_c(tmp_path / "asks", "int main(void) { return 0; }", f"-Wl,--dynamic-linker={loader}")
    assert Doctor(asks).status in (0, 1) and not (tmp_path / "run").exists()


def setuid(path):
    shutil.copy(shutil.which("true"), path)
    os.chown(path, 65534, -1)
    path.chmod(0o4755)


def other_class(path):
    data = bytearray(Path(shutil.which("true")).read_bytes())
    data[4] = 1  # ELFCLASS32
    path.write_bytes(data)
    path.chmod(0o755)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "make, word",
    [
        (setuid, "gains rights"),
        (other_class, "not a 64-bit"),
        (lambda path: shutil.copy(APPS / "static_hello", path), "statically linked"),
        (lambda path: os.mkfifo(path, 0o777), "no program"),
        (lambda path: path.mkdir(), "no program"),
        (lambda path: None, "no program"),
        (lambda path: (path.write_text("#!/nonexistent/sh\n"), path.chmod(0o755)), "/nonexistent/sh is no program"),
    ],
)
def test_programs_that_cannot_be_traced(make, word, tmp_path):
    path = tmp_path / "a\x1b[2J \"b'\n<c>\\"
    make(path)
    one = Doctor(path)
    bad = [row for row in one.document["program"] if row["state"] == "bad"]
    assert one.status == 1 and len(bad) == 1 and word in bad[0]["text"] and bad[0]["todo"]
    text = subprocess.run([XSTRACE, "--doctor", path], capture_output=True, text=True)
    assert "\x1b" not in text.stdout and word in text.stdout and text.returncode == 1


def test_a_program_of_musl_is_traced(xstrace, tmp_path):
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl")
    source = (Path(__file__).parent / "apps/musl_tasks.c").read_text()
    (tmp_path / "m.c").write_text(source)
    subprocess.run(["musl-gcc", "-o", tmp_path / "m", tmp_path / "m.c"], check=True)
    one = Doctor(tmp_path / "m")
    assert one.status == 0 and "musl" in one.row("program", "program")["text"]
    assert xstrace("--chrome-itt-logging", tmp_path / "m").trace.count("tasks", "musl::t") == 3


def test_scripts(tmp_path):
    script = tmp_path / "s"
    script.write_text(f"#!/usr/bin/env {Path(sys.executable).name}\n")
    script.chmod(0o755)
    one = Doctor(script)
    assert one.state("program", "interpreter") == "ok" and one.state("program", "Python") == "ok"
    script.write_text("\0\1\2")
    assert Doctor(script).state("program", "program") == "note"


# ---- as a command ----


def test_wrong_words():
    for words, said in ((["--json", "true"], "--json is about --doctor"), (["--doctor", "--device-list"], "give one of")):
        done = subprocess.run([XSTRACE, *words], capture_output=True, text=True)
        assert done.returncode == 125 and said in done.stderr and done.stderr.count("\n") == 1


def test_its_program_is_missing(tmp_path):
    done = subprocess.run([copy_build(tmp_path), "--doctor"], capture_output=True, text=True)
    assert done.returncode == 125 and "xstrace-doctor is not where it belongs" in done.stderr
    done = subprocess.run([BUILD / "doctor/xstrace-doctor"], capture_output=True, text=True)
    assert done.returncode == 125 and done.stderr.count("\n") == 1


def test_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        assert subprocess.run([XSTRACE, "--doctor"], stdout=full, stderr=subprocess.DEVNULL).returncode == 125
