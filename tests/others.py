"""Where the programs that nobody here wrote are: the environments of scripts/setup --clients, compilers for tests/clients."""

import functools
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/clients"
CLIENTS = ROOT / ".venv-clients/bin/python"
CCL = ROOT / ".venv-ccl"
ITT = "--chrome-itt-logging"

needs_clients = pytest.mark.skipif(
    os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1"
)


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
