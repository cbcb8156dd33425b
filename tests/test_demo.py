"""scripts/demo on a clean Debian, as who has just cloned: with --clients, as it downloads a compiler and an OpenCL. What it needs of time."""

import os
import re
import resource
import shutil
import subprocess

from conftest import ROOT, allow, check_trace, root_only
from others import clean_root, inside, needs_clients

PROMISED = 90  # seconds besides the downloads: of processors, which one that does nothing else needs no longer than
DOWNLOADING = 1500


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@needs_clients
@root_only
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


def test_two_at_once(tmp_path):
    """Neither removes what the other has written. The build, and what it would build, are stand-ins."""
    stand_ins = {
        "scripts/setup": "",
        "scripts/xstrace-summary": 'cat "$1"',
        "bin/ninja": "",
        "build-demo/launcher/xstrace": 'sleep 0.5; while [ "$1" != --output-dir-path ]; do shift; done; echo traced >"$2/gemm.$$.json"; sleep 0.5',
    }
    for name, script in stand_ins.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
    (tmp_path / "build-demo/build.ninja").touch()
    shutil.copy(ROOT / "scripts/demo", tmp_path / "scripts/demo")
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    both = [subprocess.Popen([tmp_path / "scripts/demo"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
    for one in both:
        out = one.communicate(timeout=60)[0]
        assert one.returncode == 0 and "\ntraced\n" in out, out
