"""Where the programs that nobody here wrote are: the environments of scripts/setup --clients, compilers for tests/clients."""

import contextlib
import fcntl
import functools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import mounted, wait_until

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/clients"
CLIENTS = ROOT / ".venv-clients/bin/python"
CCL = ROOT / ".venv-ccl"
ITT = "--chrome-itt-logging"

needs_clients = pytest.mark.skipif(
    os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1"
)


def interpreters():
    """The machine's Pythons, one of each version: those found by name, and those that XSTRACE_TEST_PYTHONS lists (with colons)."""
    names = [f"python3.{minor}" for minor in range(8, 14)] + ["python3", *os.environ.get("XSTRACE_TEST_PYTHONS", "").split(":")]
    found = {}
    for name in names:
        path = shutil.which(name) if name else None
        ran = path and subprocess.run([path, "-IS", "-c", "import sys; print(*sys.version_info[:2], sys._base_executable)"], capture_output=True, text=True)
        if ran and not ran.returncode:
            major, minor, real = ran.stdout.rstrip().split(" ", 2)
            found.setdefault((int(major), int(minor)), Path(real))
    return [found[version] for version in sorted(found)]


INTERPRETERS = interpreters()


@functools.lru_cache(maxsize=None)
def lacks(module):
    if not CLIENTS.exists():
        return "no .venv-clients; scripts/setup --clients makes it"
    found = subprocess.run([CLIENTS, "-c", f"import {module}"], capture_output=True).returncode == 0
    return None if found else f".venv-clients has no {module}"


def need(module):
    """Skips the test if the clients' Python cannot import that."""
    if reason := lacks(module):
        pytest.skip(reason)


def clean_root(place, codename=None):
    """A Debian with apt alone, with what this machine needs to reach packages, and the environment of a login: (place, environment)."""
    if not shutil.which("mmdebstrap"):
        pytest.skip("no mmdebstrap; scripts/setup --clients installs it")
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    if subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", codename or release["VERSION_CODENAME"], place], capture_output=True).returncode:
        pytest.skip("no clean root: mmdebstrap reaches no packages")
    shutil.copy("/etc/resolv.conf", place / "etc")
    env = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    env |= {name: value for name, value in os.environ.items() if name in ("PIP_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")}
    if certificates := os.environ.get("PIP_CERT"):
        shutil.copy(certificates, place / "root/certificates")
        env["PIP_CERT"] = "/root/certificates"
    return place, env


def inside(root, *words, **more):
    """A command in such a root, as in a container."""
    with mounted(root / "proc", "ro", "proc"), mounted(root / "sys", "ro", "sysfs"), mounted(root / "dev/shm", "mode=1777"):
        return subprocess.run(["chroot", root, *words], capture_output=True, text=True, **more)


@contextlib.contextmanager
def the_port_of_perfetto():
    """There is one for all: one test after the other, also of other workers and of other runs of the tests."""
    with open(Path(tempfile.gettempdir(), f"xstrace-tests-9001-{os.getuid()}"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", 9001)) != 0)
        yield


def compile_cpp(path, source, *flags):
    """A program of tests/clients, or a skipped test where its library is not installed."""
    command = ["g++", "-std=c++17", "-O1", "-w", "-o", path, PROGRAMS / source, *flags]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no g++")
    if made.returncode:
        first = next((line for line in made.stderr.splitlines() if "error" in line), made.stderr)
        if "No such file" in first or "cannot find" in made.stderr:
            pytest.skip(f"{source}: {first}")
        pytest.fail(made.stderr)
    return path
