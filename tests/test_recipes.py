"""The recipes for other people's package managers (packaging/): the modulefile is loaded; the others are held against what is built."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from conftest import ROOT, check_trace
from test_install import installed  # noqa: F401

VERSION = (ROOT / "VERSION").read_text().strip()
MODULES = next(
    (path for path in map(Path, ("/usr/lib/x86_64-linux-gnu/modulecmd.tcl", "/usr/share/modules/libexec/modulecmd.tcl")) if path.exists()),
    None,
)
OPTIONS = re.findall(r"^option\('(\w+)'", (ROOT / "meson_options.txt").read_text(), re.M)


@pytest.mark.skipif(not MODULES, reason="no environment-modules")
def test_the_modulefile(xstrace, installed, tmp_path):  # noqa: F811
    """A shell that loads the module runs the programs by name, finds their manual pages, and builds with the library; unloading undoes it."""
    (tmp_path / "xstrace").mkdir()
    text = (ROOT / "packaging/modulefile").read_text()
    assert "set prefix /opt/xstrace\n" in text
    (tmp_path / "xstrace" / VERSION).write_text(text.replace("/opt/xstrace", str(installed)))
    script = f"""module() {{ eval "$({MODULES} bash "$@")"; }}
before=$(env | sort)
module load xstrace
xstrace --version && man -w xstrace-merge && {{ ! command -v pkg-config || pkg-config --exists xstrace; }} && echo found
xstrace --chrome-itt-logging --output-dir-path {tmp_path}/out "$1" 3
module unload xstrace
[ "$before" = "$(env | sort)" ] && echo as before
"""
    env = {"PATH": os.environ["PATH"], "MODULEPATH": str(tmp_path), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", ROOT / "build/tests/apps/itt_tasks"], env=env, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert "found" in lines, done.stdout + done.stderr
    assert lines[0] == f"xstrace {VERSION}" and lines[-1] == "as before", done.stdout + done.stderr
    if shutil.which("man"):
        assert str(installed / "share/man/man1/xstrace-merge.1") in lines
    (trace,) = (tmp_path / "out").glob("*.json")
    assert check_trace(trace, strict=True) == []


class Spec(set):
    """What a recipe asks of it: whether a variant is on."""

    def __contains__(self, variant):
        return set.__contains__(self, variant.removeprefix("+")) == variant.startswith("+")


@pytest.fixture
def recipe(monkeypatch):
    """(the class, its directives), loaded with stand-ins for the names that Spack 1 gives to recipes."""
    said = []
    language = types.ModuleType("spack.package")
    for name in ("version", "variant", "license", "depends_on"):
        setattr(language, name, lambda *words, name=name, **more: said.append((name, words, more)))
    systems = types.ModuleType("spack_repo.builtin.build_systems.meson")
    systems.MesonPackage = type("MesonPackage", (), {})
    for module in (language, systems):
        for parent in [module.__name__.rsplit(".", n)[0] for n in range(1, module.__name__.count(".") + 1)]:
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return runpy.run_path(str(ROOT / "packaging/spack/package.py"))["Xstrace"], said


@pytest.mark.long
def test_the_recipe_for_spack(recipe, tmp_path):
    """It says where its source is; its conditions name its variants; Meson takes what it passes, with every variant on and off."""
    made, said = recipe
    variants = [words[0] for name, words, more in said if name == "variant"]
    conditions = {more["when"] for name, words, more in said if "when" in more}
    assert [words for name, words, more in said if name == "version"] and "://" in made.git
    assert conditions <= {f"+{name}" for name in variants}
    for chosen in (set(), set(variants)):
        package = made()
        package.spec = Spec(chosen)
        options = dict(word.removeprefix("-D").split("=") for word in package.meson_args())
        assert set(options) <= set(OPTIONS) and options["tests"] == "disabled"
        assert {name for name in variants if options[name] == "enabled"} == chosen
    package.spec = Spec()
    command = ["meson", "setup", *package.meson_args(), "-Dwrap_mode=nodownload", "-Ddefault_library=shared", tmp_path / "build", ROOT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_the_container_file():
    """It installs what the Debian package needs to be built, sets options that there are, and runs the program where it puts it."""
    text = (ROOT / "packaging/Containerfile").read_text().replace("\\\n", " ")
    needed = set(re.findall(r"^ ([\w-]+),$", (ROOT / "packaging/debian/control").read_text(), re.M)) - {"dh-python"}
    build, run = (set(line.split()) for line in re.findall(r"apt-get install -y --no-install-recommends ([^&]+)", text))
    assert {name for name in needed if name not in build} <= {"pkgconf"} and {"gcc", "ninja-build", "pkg-config"} <= build
    assert {"python3", "libunwind8", "zlib1g"} <= run
    assert set(re.findall(r" -D(\w+)=", text)) <= set(OPTIONS)
    prefix = re.search(r"--prefix (\S+)", text)[1]
    assert f"COPY --from=build {prefix} {prefix}" in text and f"ENV PATH={prefix}/bin:$PATH" in text
