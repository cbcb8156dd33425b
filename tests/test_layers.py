"""Which part may know of which (docs/ARCHITECTURE.md): by the includes of the sources and by the symbols of what was built."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conftest import BUILD, ROOT

# folder: those whose headers it may include and whose functions it may call, lowest first
BACKEND = ["common", "collector", "gpu/base"]
MAY_USE = {
    "common": [],
    "collector": ["common"],
    "itt_collector": ["common", "collector"],
    "interpose/mpi": ["common", "collector"],
    "gpu/base": ["common", "collector"],
    "interpose/openmp": BACKEND,
    "interpose/python": BACKEND,
    **{f"gpu/{path.name}": BACKEND for path in sorted((ROOT / "gpu").iterdir()) if path.is_dir() and path.name != "base"},
    "costs": ["common", "collector", "itt_collector", "interpose/mpi"],
    "writer/base": ["common"],
    "writer/formats": [],
    "writer/meaning": ["common", "costs", "writer/base"],
    "writer/sinks": ["common", "costs", "writer/base", "writer/formats", "writer/meaning"],
    "writer/drain": ["common", "costs", "writer/base", "writer/meaning", "writer/sinks"],
    "merge/read": ["common", "writer/formats"],
    "merge/mpi": ["merge/read", "writer/formats"],
    "merge/clocks": ["merge/read", "merge/mpi", "writer/base", "writer/formats"],
    "merge/write": ["common", "merge/read", "merge/mpi", "merge/clocks", "writer/base", "writer/formats"],
    "merge": ["common", "merge/read", "merge/mpi", "merge/clocks", "merge/write", "writer/base", "writer/formats"],
    "tables": ["common", "merge/read", "writer/formats"],
    "include/xstrace": [],
    "library": ["common", "include/xstrace"],
    "library/inside": ["common", "collector", "itt_collector", "library"],
    "python/native": ["include/xstrace"],
    "launcher": ["common", "writer/base"],
    "packaging/portable": [],
    "devices": ["common"],
    "doctor": ["common", "itt_collector", "writer/base", "devices"],
    "sampler": ["common", "include/xstrace", "library"],
    "stacks": ["common"],
    "attach": ["common", "writer/base", "writer/meaning", "writer/sinks", "writer/drain"],
    "replay": [],
}
# of a folder that may be used in part, the headers that may be included
IN_PART = {
    ("attach", "writer/drain"): {"run_open.h"},
    ("merge/read", "common"): {"text.h"},
    ("merge/write", "common"): {"options.h", "text.h"},
    ("merge", "common"): {"nearest.h", "paths.h", "streams.h", "text.h"},
    ("tables", "common"): {"nearest.h", "streams.h", "text.h"},
    ("tables", "merge/read"): {"file.h", "reader.h", "source.h"},
    ("merge/clocks", "writer/base"): {"json.h"},
    ("merge/write", "writer/base"): {"json.h", "output.h"},
    ("launcher", "writer/base"): {"json.h"},
    ("writer/meaning", "costs"): {"costs.h"},
    ("writer/sinks", "costs"): {"costs.h"},
    ("writer/drain", "costs"): {"costs.h"},
    ("doctor", "writer/base"): {"json.h"},
    ("doctor", "itt_collector"): {"itt_abi.h"},
    ("library/inside", "library"): {"library.h"},
}


def generated(name):
    """Where a generated file belongs: tables to the drain process, the rest to those who install the wrappers."""
    if name.endswith(("_names.c", "_arguments.c")):
        return "writer/meaning"
    if name.startswith("mpi_"):
        return "interpose/mpi"
    return next(folder for folder in MAY_USE if folder.startswith("gpu/") and name.startswith(f"{Path(folder).name}_"))


# Files that call each other in a circle, by name. docs/LEVEL_ZERO.md has a picture of the first.
CIRCLES = [
    {f"level_zero_{part}.c" for part in "append body collect device event execute list submission".split()},
]


def sources(folder):
    """Its own and those of folders below it that have no row."""
    return sorted(p for p in (ROOT / folder).rglob("*.[ch]") if folder_of(p.relative_to(ROOT)) == folder)


def folder_of(path):
    return next((str(parent) for parent in path.parents if str(parent) in MAY_USE), None)


# ---- includes ----


@cache
def headers():
    """{name: folders that have it}"""
    found = {}
    for folder in MAY_USE:
        for path in sources(folder):
            found.setdefault(path.name, []).append(folder)
    return found


def wrong_includes(folder, path, text):
    for name in re.findall(r'^#\s*include "(?:[^"]*/)?([^"/]+)"', text, re.M):
        where = headers().get(name, [])  # none: generated, and its own
        if not where or folder in where:
            continue
        of = next((f for f in where if f in MAY_USE[folder]), where[0])
        if of not in MAY_USE[folder] or name not in IN_PART.get((folder, of), {name}):
            yield f"{path} includes {of}/{name}"


@pytest.mark.parametrize("folder", MAY_USE)
def test_includes_go_one_way(folder):
    wrong = [line for path in sources(folder) for line in wrong_includes(folder, path.relative_to(ROOT), path.read_text())]
    assert sources(folder) and not wrong, "\n".join(wrong)


def test_what_is_wrong_in_an_include_is_found():
    path = Path("common/ring.c")
    assert list(wrong_includes("common", path, '#include "collector.h"\n#include <ring.h>\n#include "shm.h"\n')) == [
        "common/ring.c includes collector/collector.h"
    ]
    assert list(wrong_includes("launcher", path, '#include "json.h"\n#include "output.h"\n')) == [
        "common/ring.c includes writer/base/output.h"
    ]


def test_folders_are_ordered():
    """A folder stands behind all that it may use, so no two can use each other."""
    order = list(MAY_USE)
    assert all(order.index(low) < order.index(high) for high, lows in MAY_USE.items() for low in lows)


def test_every_folder_has_its_row():
    with_c = {p.relative_to(ROOT).parts[0] for p in ROOT.glob("*/*.c")} | {str(p.parent.relative_to(ROOT)) for p in ROOT.glob("*/*/*.c")}
    ours = {f for f in with_c if not f.startswith(("tests", "bench", "build", "docs", "."))}
    assert {f for f in ours if not folder_of(Path(f) / "x.c")} == set()
    rows = re.findall(r"^\| `([\w/<>]+)/` \|", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.M)
    wanted = {"gpu/<api>" if f.startswith("gpu/") and f != "gpu/base" else f for f in MAY_USE}
    assert wanted <= set(rows)


# ---- symbols ----


def symbols(paths):
    """{object: (names of ours that it defines, those that it uses of others)}"""
    found = {str(path): (set(), set()) for path in paths}
    for line in subprocess.run(["nm", "-P", "-A", *paths], capture_output=True, text=True, check=True).stdout.splitlines():
        path, name, kind, *_ = re.split(r":? ", line)
        if re.match(r"x[smtr]_", name) and kind.isupper():
            found[path][kind == "U"].add(name)
    return found


@cache
def objects():
    """{(folder, file): (defined, used)} of what the products are made of."""
    paths = {}
    for row in json.loads((BUILD / "compile_commands.json").read_text()):
        source, output = (BUILD / row["file"]).resolve(), BUILD / row["output"]
        if row["output"].startswith(("tests/", "bench/")) or not output.exists():
            continue
        folder = generated(source.name) if BUILD in source.parents else folder_of(source.relative_to(ROOT))
        paths.setdefault((folder, source.name), output)
    found = symbols(paths.values())
    return {place: found[str(path)] for place, path in paths.items()}


@cache
def calls():
    """{(folder, file): {(folder, file): names}}; a name that several define is the nearest one's, as the linker takes it."""
    defined = {}
    for place, (names, _) in objects().items():
        for name in names:
            defined.setdefault(name, []).append(place)
    edges = {place: {} for place in objects()}
    for place, (_, used) in objects().items():
        allowed = [place[0], *reversed(MAY_USE[place[0]])]
        for name in used:
            if where := defined.get(name):
                to = min(where, key=lambda p: allowed.index(p[0]) if p[0] in allowed else len(allowed))
                edges[place].setdefault(to, set()).add(name)
    return edges


def circles(edges):
    """Sets of places each of which reaches each other one (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(place):
        number[place] = low[place] = len(number)
        stack.append(place)
        for other in edges[place]:
            if other not in number:
                visit(other)
                low[place] = min(low[place], low[other])
            elif other in stack:
                low[place] = min(low[place], number[other])
        if low[place] == number[place]:
            at = stack.index(place)
            found.append(set(stack[at:]))
            del stack[at:]

    for place in edges:
        if place not in number:
            visit(place)
    return [circle for circle in found if len(circle) > 1]


def test_the_whole_build_is_looked_at():
    built = [folder for folder in MAY_USE if folder != "packaging/portable"]  # -Dportable=true alone
    missing = [f"{folder}/{p.name}" for folder in built for p in sources(folder) if p.suffix == ".c" and (folder, p.name) not in objects()]
    assert [name for name in missing if "/no_" not in name] == []
    assert len(calls()) > 150


def test_calls_go_one_way():
    wrong = [
        f"{'/'.join(place)} uses {'/'.join(to)}: {' '.join(sorted(names))}"
        for place, edges in calls().items()
        for to, names in edges.items()
        if to[0] != place[0] and to[0] not in MAY_USE[place[0]]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circles():
    found = [{name for _, name in circle} for circle in circles(calls())]
    known = [circle for circle in found if circle in CIRCLES]
    others = [sorted(circle) for circle in found if circle not in known]
    assert not others
    assert known == CIRCLES  # one that is gone has no place in the list


def test_the_picture_of_the_core_is_true():
    """docs/LEVEL_ZERO.md says which file of the core calls which."""
    rows = re.findall(r"^    (\w+) +──▶ ([\w, ]+?)(?:  |$)", (ROOT / "docs/LEVEL_ZERO.md").read_text(), re.M)
    told = {f"level_zero_{name}.c": {f"level_zero_{other}.c" for other in others.split(", ")} for name, others in rows}
    core = CIRCLES[0]
    real = {place[1]: {to[1] for to in edges if to[1] in core} for place, edges in calls().items() if place[1] in core}
    assert {name: others for name, others in told.items() if name in core} == real


def test_what_is_a_circle():
    edges = {"a": ["b", "d"], "b": ["c"], "c": ["a"], "d": ["e"], "e": ["d"], "f": ["a", "f"]}
    assert sorted(sorted(circle) for circle in circles(edges)) == [["a", "b", "c"], ["d", "e"]]
