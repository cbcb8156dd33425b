"""The Debian packages (packaging/deb): with --clients, as they are a build of their own. lintian finds nothing, and a clean Debian runs them."""

import shutil
import subprocess

import pytest

from conftest import APPS, ROOT, allow, check_trace, once, root_only
from others import clean_root, inside, needs_clients

pytestmark = needs_clients
BUILDING = 1500  # seconds
PLACE = ROOT / "build-deb"
PACKAGES = ("xstrace", "libxstrace-api0", "libxstrace-dev")


def make_packages():
    for old in PLACE.glob("*_*"):
        old.unlink()
    done = subprocess.run([ROOT / "packaging/deb", PLACE], capture_output=True, text=True, timeout=BUILDING)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def packages():
    """The directory with the packages."""
    if not shutil.which("dh"):
        pytest.skip("no debhelper; scripts/setup --clients installs it")
    once(PLACE, make_packages)
    assert [len(list(PLACE.glob(f"{name}_*.deb"))) for name in PACKAGES] == [1, 1, 1]
    return PLACE


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian")
def test_lintian(packages):
    (changes,) = packages.glob("*.changes")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@root_only
def test_on_a_clean_root(packages, tmp_path):
    """apt installs them by their files, a program is traced, the tools read its trace, and nothing is left when they are removed."""
    allow(BUILDING)
    root, env = clean_root(tmp_path / "root")
    for path in (*packages.glob("*.deb"), APPS / "itt_tasks"):
        shutil.copy(path, root / "root")
    script = """set -e
cd /root
apt-get -qq update
apt-get -qq install -y --no-install-recommends ./xstrace_*.deb ./libxstrace-api0_*.deb ./libxstrace-dev_*.deb
xstrace --chrome-itt-logging --output-dir-path out ./itt_tasks 3
xstrace-check --strict out/*
xstrace-summary out/*
xstrace-merge -o all.json out
xstrace --doctor
apt-get -qq purge -y xstrace libxstrace-api0 libxstrace-dev
! dpkg -l | grep xstrace
! find / -xdev -name '*xstrace*' ! -path '/root/*' ! -path '/proc/*' | grep .
"""
    done = inside(root, "sh", "-c", script, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tasks 3" in done.stdout and "xstrace works here." in done.stdout
    (trace,) = (root / "root/out").glob("*.json")
    assert check_trace(trace, strict=True) == [] and check_trace(root / "root/all.json", strict=True) == []
