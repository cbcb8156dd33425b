"""scripts/demo on a clean Debian, as who has just cloned: with --clients, as it downloads a compiler and an OpenCL. What it needs of time."""

import re
import resource
import subprocess

from conftest import ROOT, allow, check_trace, root_only
from others import clean_root, inside, needs_clients

pytestmark = [needs_clients, root_only]
PROMISED = 90  # seconds besides the downloads: of processors, which one that does nothing else needs no longer than
DOWNLOADING = 1500


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_demo(tmp_path):
    allow(DOWNLOADING)
    root, env = clean_root(tmp_path / "root")
    subprocess.run([ROOT / "packaging/tree", root / "root/xstrace"], check=True)
    before = seconds()
    done = inside(root, "/root/xstrace/scripts/demo", env=env)
    took = seconds() - before
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Results are CORRECT" in done.stdout and re.search(r"^kernels   multiply.* 5x avg", done.stdout, re.M), done.stdout
    (trace,) = (root / "root/xstrace/demo-out").glob("*.json")
    assert check_trace(trace, strict=True) == []
    print(f"processors: {took:.0f} s")
    assert took < PROMISED
    # no more than it shows
    installed = inside(root, "dpkg-query", "-W", "-f", "${Package}\n", env=env).stdout.split()
    assert "gcc" in installed and not {"g++", "clang", "mpich", "libmpich-dev"} & set(installed)
    assert not list((root / "root/xstrace").glob(".venv*/bin/pytest"))
