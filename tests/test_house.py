"""Which part may know of which: read from the sources, so that what docs/ARCHITECTURE.md says of the folders stays true."""

import re
import shutil
import subprocess

import pytest

from conftest import ROOT

# folder: those whose headers it may include, as the table of folders in docs/ARCHITECTURE.md has it
MAY_INCLUDE = {
    "common": set(),
    "collector": {"common"},
    "itt_collector": {"collector", "common"},
    "interpose": {"collector", "common"},
    "gpu": {"collector", "common", "interpose"},
    "writer": {"common"},
    "merge": {"common", "writer"},
    "launcher": {"common", "writer"},
    "devices": {"common"},
}
# of a folder that may be included in part, the headers that may
IN_PART = {
    ("merge", "common"): {"options.h", "paths.h"},
    ("merge", "writer"): {"json.h", "output.h"},
    ("launcher", "writer"): {"json.h"},
}


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*.[ch]"))


def folder_of(name, folder):
    """Where an include of `folder` leads to: its own header first, as for the compiler; what is generated counts as its own."""
    others = [other for other in MAY_INCLUDE if any((ROOT / other).rglob(name))]
    return folder if folder in others or not others else others[0]


def test_includes_go_one_way():
    wrong = []
    for folder, allowed in MAY_INCLUDE.items():
        for path in sources(folder):
            for name in re.findall(r'^#\s*include "(?:[^"]*/)?([^"/]+)"', path.read_text(), re.M):
                of = folder_of(name, folder)
                part = IN_PART.get((folder, of))
                if of != folder and (of not in allowed or (part and name not in part)):
                    wrong.append(f"{path.relative_to(ROOT)} includes {of}/{name}")
    assert not wrong, "\n".join(wrong)


def test_one_file_of_the_drain_process_knows_the_apis():
    """What differs from API to API is a row of writer/backends.c; code that asks for one API would have to be found for the next."""
    named = re.compile(r"XS_SOURCE_(?!COUNT\b|NONE\b)\w+|\"(?:L0|CL|CU)\"")
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for folder in ("writer", "merge")
        for path in sources(folder)
        if path != ROOT / "writer/backends.c"
        for word in named.findall(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_has_its_row():
    with_c = {p.relative_to(ROOT).parts[0] for p in ROOT.glob("*/*.c")}
    assert with_c - {"tests", "bench"} == set(MAY_INCLUDE)
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.M)
    assert set(MAY_INCLUDE) <= set(rows)


@pytest.mark.skipif(not shutil.which("ruff"), reason="no ruff")
def test_python_has_no_unused_names():
    result = subprocess.run(["ruff", "check", "--no-cache", "-q", "--output-format=concise", "."], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
