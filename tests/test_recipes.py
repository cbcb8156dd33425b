"""The recipes for other people's package managers (packaging/): the modulefile is loaded; the others are held against what is built."""

import ast
import os
import re
import shutil
import subprocess
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


def test_the_recipe_for_spack():
    """Python parses it; it sets options of Meson that there are, and each feature that it disables has a variant."""
    tree = ast.parse((ROOT / "packaging/spack/package.py").read_text())
    (recipe,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert recipe.name == "Xstrace" and [base.id for base in recipe.bases] == ["MesonPackage"]
    calls = [node.value for node in recipe.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    variants = [call.args[0].value for call in calls if call.func.id == "variant"]
    conditions = [word.value.value for call in calls for word in call.keywords if word.arg == "when"]
    words = [node.value for node in ast.walk(recipe) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    (features,) = (
        [one.value for one in node.value.elts]
        for node in ast.walk(recipe)
        if isinstance(node, ast.Assign) and node.targets[0].id == "features"
    )
    assert features == variants and {f"+{name}" for name in variants} >= set(conditions)
    given = [word for text in words for word in re.findall(r"^-D(\w+)=", text)]
    assert "tests" in given and set(given) - {"werror"} | set(features) <= set(OPTIONS)


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
