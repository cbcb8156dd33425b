"""The wheel (packaging/wheel) on other people's machines: with --clients, as it is a build of its own."""

import calendar
import os
import re
import subprocess
import sys
import zipfile

import pytest

from conftest import APPS, ROOT, check_trace, once, root_only
from others import needs_clients

pytestmark = needs_clients
NEWEST = (2, 28)
PLACE = ROOT / "build-dist"


def make_wheel():
    for old in PLACE.glob("*.whl"):
        old.unlink()
    # beside the other build, with its options: ccache has compiled it
    options = [f"-Cbuild-dir={ROOT}/build-portable", "-Csetup-args=-Dwerror=true"]
    subprocess.run([ROOT / "packaging/wheel", PLACE, *options], check=True, timeout=1500, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def wheel():
    if not (ROOT / ".venv-wheel/bin/auditwheel").exists():
        pytest.skip("no auditwheel; scripts/setup installs it")
    (path,) = once(PLACE, make_wheel).glob("*.whl")
    assert path.name.endswith("-abi3-manylinux_2_28_x86_64.whl")
    return path


def pip(*words):
    python = ROOT / ".venv-wheel/bin/python"
    subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", *words], check=True, timeout=120)


def trace(bin_dir, place, **more):
    """A program under the installed xstrace; its trace is whole, and the installed tools read it."""
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    options = ["--chrome-itt-logging", "--output-dir-path", place]
    subprocess.run([bin_dir / "xstrace", *options, APPS / "itt_tasks", "3"], check=True, capture_output=True, timeout=60, **more)
    (path,) = place.glob("*.json")
    assert check_trace(path, strict=True) == []
    subprocess.run([bin_dir / "xstrace-merge", "-o", place / "all.json", path], check=True, capture_output=True, **more)
    done = subprocess.run([bin_dir / "xstrace-summary", path], check=True, capture_output=True, text=True, **more)
    assert "tasks 3" in done.stdout
    for tool in ("analyzeperfmetrics.py", "roofline.py", "uniview.py"):
        subprocess.run([bin_dir / tool, "--help"], check=True, capture_output=True, **more)


def test_no_file_asks_for_a_newer_glibc(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(files) >= 12
    for path in files:
        text = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([\d.]+)", text)}
        assert not [v for v in versions if v > NEWEST], path.name
        needed = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True).stdout
        assert set(re.findall(r"NEEDED.*\[(.+?)\.so", needed)) <= {
            "libc",
            "libdl",
            "libpthread",
            "libm",
            "libz",
            "libxstrace",
            "ld-linux-x86-64",
        }, path.name


def test_its_times_are_those_of_the_commit(wheel):
    """Nothing says when it was built."""
    (epoch,) = {calendar.timegm(info.date_time) for info in zipfile.ZipFile(wheel).infolist()}
    assert abs(epoch - int(subprocess.run([ROOT / "packaging/epoch"], capture_output=True, check=True).stdout)) < 2


def test_constructors(wheel, tmp_path):
    """The start code of a new glibc leaves them to the C library, which an old one does not know: no program may have any."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    programs = [path for path in tmp_path.rglob("xstrace-*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    dynamic = [
        path for path in programs if "interpreter" in subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
    ]
    assert len(dynamic) >= 4
    for path in dynamic:
        size = re.search(
            r"\.init_array +\S+ +\S+ +\S+ (\S+)", subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
        )
        assert int(size[1], 16) == 8, path.name  # the compiler's own, which does nothing


@root_only
def test_a_venv_that_others_may_only_read(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip("--python", venv / "bin/python", "install", "--no-index", wheel)
    trace(venv / "bin", tmp_path / "root")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # no HOME, as from cron
    trace(venv / "bin", tmp_path / "others", user=65534, group=65534, extra_groups=[], env=env)


def test_an_installation_for_one_user(wheel, tmp_path):
    """pip install --user, as a user who has neither a right to the system's Python nor a place in it."""
    home = tmp_path / "h"
    env = {**os.environ, "HOME": str(home), "PYTHONUSERBASE": str(home / ".local"), "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    env.pop("PYTHONPATH", None)
    options = ["install", "-q", "--user", "--no-index", "--ignore-installed", "--no-warn-script-location", wheel]
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("the system's Python has no pip")
    subprocess.run(["/usr/bin/python3", "-m", "pip", *options], check=True, env=env, timeout=120, capture_output=True)
    trace(home / ".local/bin", tmp_path / "out", env=env)


def test_a_prefix_such_as_condas(wheel, tmp_path):
    pip("install", "--no-index", "--ignore-installed", "--prefix", tmp_path / "an env", wheel)
    trace(
        tmp_path / "an env/bin", tmp_path / "out", env={**os.environ, "PYTHONPATH": str(next((tmp_path / "an env").rglob("site-packages")))}
    )
