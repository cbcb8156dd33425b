"""What a release promises (docs/RELEASES.md): one version, old traces that stay readable, an SBOM; with --clients the source archive
that builds and passes its tests, and two builds with the same bytes."""

import hashlib
import json
import os
import re
import subprocess
import tarfile

import pytest

from conftest import BUILD, ROOT, Trace, allow, check_trace
from others import needs_clients

VERSION = (ROOT / "VERSION").read_text().strip()
SAMPLES = sorted(path for path in (ROOT / "tests/samples").glob("*/*") if path.name != "expected.json")


def test_the_version_stands_in_one_place():
    """Nobody else has it as a text; who says it has read it there."""
    files = subprocess.run(
        ["git", "ls-files", "*.c", "*.h", "*.py", "*.build", "*.toml"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert [
        name for name in files if not name.startswith("tests/") and f'"{VERSION}"' in re.sub(r"/\*.*?\*/", "", (ROOT / name).read_text())
    ] == []
    for program in ("launcher/xstrace", "merge/xstrace-merge"):
        said = subprocess.run([BUILD / program, "--version"], capture_output=True, text=True, check=True).stdout
        assert said.split()[1] == VERSION
    assert __import__("xstrace").__version__ == VERSION
    assert re.search(rf"^## {re.escape(VERSION)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_numbers_of_formats():
    """The documents name the numbers that the code has."""
    page = (ROOT / "docs/RELEASES.md").read_text()
    layout = re.search(r"XS_SHM_VERSION\s+(\d+)u", (ROOT / "common/shm.h").read_text())[1]
    assert f"`XS_SHM_VERSION`, now {layout}" in page
    assert f"record layout {layout}." in (ROOT / "CHANGELOG.md").read_text()
    trace = re.search(r"trace_format = '(\d+)'", (ROOT / "meson.build").read_text())[1]
    assert f"| trace format | {trace} |" in page


def test_a_trace_says_its_format(xstrace):
    run = xstrace("--chrome-itt-logging", "itt_tasks", [3])
    assert run.trace.metadata["format"] == 1 and run.trace.metadata["version"] == VERSION


# ---- traces of released versions ----


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_old_traces_are_readable(path, tmp_path):
    expected = json.loads((path.parent / "expected.json").read_text())[path.name]
    assert check_trace(path, strict=True) == []
    trace = Trace(path)
    assert trace.metadata["tool"] == "xstrace" and trace.metadata["version"] == path.parent.name
    said = subprocess.run([ROOT / "scripts/xstrace-summary", path], capture_output=True, text=True, check=True).stdout
    assert {kind: int(n) for kind, n in re.findall(r"(\w+) (\d+)", re.search("events.*", said)[0]) if kind in expected} == expected
    if path.suffix == ".pftrace":
        return  # not merged
    merged = tmp_path / "all.json"
    subprocess.run([BUILD / "merge/xstrace-merge", "-o", merged, path], check=True, capture_output=True)
    assert check_trace(merged, strict=True) == []
    assert sorted(s.name for s in Trace(merged).slices) == sorted(s.name for s in trace.slices)


def test_each_version_has_samples_of_each_format():
    for folder in (ROOT / "tests/samples").iterdir():
        names = {path.name for path in folder.iterdir()}
        assert set(json.loads((folder / "expected.json").read_text())) == names - {"expected.json"}
        assert {"gemm.json.gz", "gemm.kineto.json.gz", "gemm.pftrace", "itt_tasks.json.zst"} <= names


# ---- the SBOM ----


def test_sbom(tmp_path):
    made = json.loads((BUILD / "packaging/sbom/xstrace.spdx.json").read_text())
    assert made["spdxVersion"] == "SPDX-2.3" and made["packages"][0]["versionInfo"] == VERSION
    names = {package["name"] for package in made["packages"]}
    assert {"xstrace", "glibc", "libgcc"} <= names
    licenses = (ROOT / "docs/LICENSES.md").read_text()
    assert all(f"| {name} |" in licenses for name in names - {"xstrace"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/a").write_bytes(b"abc")
    command = [ROOT / "packaging/sbom/sbom.py", "--files", tmp_path, BUILD / "packaging/sbom/xstrace.spdx.json"]
    (file,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["files"]
    assert file["fileName"] == "./bin/a" and file["checksums"][1]["checksumValue"] == hashlib.sha256(b"abc").hexdigest()
    bad = subprocess.run([*command[:3], tmp_path / "bin/a"], capture_output=True, text=True)
    assert bad.returncode == 1 and len(bad.stderr.splitlines()) == 1


# ---- builds of their own ----


def run(*command, cwd, **more):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=1800, **more)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


BUILDING = 1800  # seconds
QUICK = ["-Dtests=disabled", "-Doptimization=0", "-Dcuda=disabled", "-Dlevel_zero=disabled"]


@needs_clients
def test_two_builds_have_the_same_bytes(tmp_path):
    """In directories of different names and depths, as packages build them: with DESTDIR. The second really compiles."""
    allow(BUILDING)
    trees = []
    for place, more in ((tmp_path / "a", {}), (tmp_path / "deeper/and longer", {"CCACHE_DISABLE": "1"})):
        env = {**os.environ, **more, "DESTDIR": str(place / "to")}
        run(ROOT / "packaging/tree", place / "source", cwd=ROOT)
        run("meson", "setup", place / "source/build", place / "source", *QUICK, cwd=tmp_path)
        run("ninja", "-C", place / "source/build", cwd=tmp_path, env=env)
        run("meson", "install", "-C", place / "source/build", "--quiet", cwd=tmp_path, env=env)
        files = sorted(path for path in (place / "to").rglob("*") if path.is_file())
        trees.append({str(path.relative_to(place / "to")): path.read_bytes() for path in files})
    assert trees[0].keys() == trees[1].keys() and len(trees[0]) > 40
    assert [name for name in trees[0] if trees[0][name] != trees[1][name]] == []


@needs_clients
def test_the_source_archive_builds_and_passes_its_tests(tmp_path):
    """What `meson dist` packs, built without git and without this tree, traces and passes the tests of formats and of samples."""
    allow(BUILDING)
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", "--shared", ROOT, clone, cwd=tmp_path)
    run("meson", "setup", "build", *QUICK, cwd=clone)
    run("meson", "dist", "-C", "build", "--no-tests", cwd=clone)
    (archive,) = (clone / "build/meson-dist").glob("*.tar.xz")
    assert archive.name == f"xstrace-{VERSION}.tar.xz"
    with tarfile.open(archive) as file:
        assert {member.mtime for member in file} == {int(run("git", "log", "-1", "--format=%ct", cwd=clone))}
        file.extractall(tmp_path / "unpacked", filter="data") if hasattr(tarfile, "data_filter") else file.extractall(tmp_path / "unpacked")
    source = tmp_path / "unpacked" / f"xstrace-{VERSION}"
    for name in (".deps", ".venv"):
        (source / name).symlink_to((ROOT / name).resolve())
    run("meson", "setup", "build", cwd=source)  # with the options of this build: ccache has compiled it
    run(
        "ninja",
        "-C",
        "build",
        "demo",
        "merge/xstrace-merge",
        "tests/apps/itt_tasks",
        "tests/apps/itt_names",
        "tests/unit/unit_ring",
        cwd=source,
    )
    run("build/tests/unit/unit_ring", cwd=source)
    text = (source / "build/meson-private/xstrace.pc").read_text()
    assert "prefix=${pcfiledir}/" in text and "-L${libdir} " in text  # the installed tree can be moved
    tests = ["tests/test_releases.py", "-k", "old_traces or says_its_format or each_version"]
    said = run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
        cwd=source,
        env={k: v for k, v in os.environ.items() if k != "XSTRACE_BUILD"},
    )
    assert "passed" in said and "failed" not in said
