"""Functions of Level Zero that the installed headers may lack: is each where interpose/level_zero_newer.toml says, and called as it says?

XSTRACE_TEST_ZE_HEADERS names folders that hold level_zero/ze_ddi.h of other versions, with colons between them; XSTRACE_TEST_ZE_LOADER the folder of a newer
libze_loader.so.1, and of its driver that does nothing (libze_null.so.1). Without them there are the installed headers alone.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from gpu_log import DRIVER

sys.path.insert(0, str(ROOT / "interpose"))
import level_zero  # noqa: E402
from prototypes import Function, preprocess  # noqa: E402

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
FOLDERS = [folder for folder in os.environ.get("XSTRACE_TEST_ZE_HEADERS", "").split(":") if folder]
LOADER = os.environ.get("XSTRACE_TEST_ZE_LOADER", "")


class Headers:
    """Those in a folder, or ("") the installed ones: their version, tables and functions, and what our table becomes where these are built with."""

    def __init__(self, folder):
        self.compiler = ["cc", *(["-I" + folder] if folder else [])]
        self.table = tomllib.loads((ROOT / "interpose/level_zero.toml").read_text())
        self.table["headers"] += [name for name in self.table["later_headers"] if level_zero.has_header(name, self.compiler)]
        level_zero.add_newer(self.table)
        text = preprocess(self.table["headers"], self.compiler)
        self.tables, self.functions = level_zero.read_tables(text), level_zero.read_functions(text)
        self.version = 1, int(re.search(r"ZE_API_VERSION_CURRENT\s*=\s*\(?[^,]*?\(\s*1\s*<<\s*16\s*\)\s*\|\s*\(\s*(\d+)", text)[1])

    def compiled(self, tmp_path, code):
        """What a C program with these headers prints."""
        source, program = tmp_path / "asks.c", tmp_path / "asks"
        lines = ["#include <stddef.h>", "#include <stdio.h>", *(f"#include <{header}>" for header in self.table["headers"])]
        source.write_text("\n".join([*lines, *code]))
        subprocess.run([*self.compiler, "-o", program, source], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=["", *FOLDERS], ids=lambda folder: Path(folder).name or "installed", scope="module")
def headers(request):
    return Headers(request.param)


@pytest.fixture(scope="module")
def ours():
    """What is built, as far as headers decide it: our table with the installed headers."""
    return Headers("")


def touched(built, version):
    """By table, {entry: function}: what a library that was built with some headers touches in a loader of a version."""
    return {
        name: {e.number: e.function for e in entries if version >= (e.since or built.version)}
        for name, entries in level_zero.all_entries(built.tables, built.table).items()
        if list(version) not in built.table["tables"]["reordered"].get(name, [])
    }


def places(headers, tmp_path):
    """By table, {entry: function}, as the compiler lays the headers' structs out."""
    rows = [(t, member, function) for t in headers.tables for member, function in t.entries]
    lines = [f'\tprintf("{t.name} {f} %zu\\n", offsetof({t.kind}, {m}) / sizeof(void *));' for t, m, f in rows]
    found = {}
    for line in headers.compiled(tmp_path, ["int main(void)", "{", *lines, "\treturn 0;", "}"]).splitlines():
        name, function, entry = line.split()
        found.setdefault(name, {})[int(entry)] = function
    return found


def wrong(built, headers, found):
    """What `built` would touch in a loader of `headers`, and is not there."""
    return [
        (name, entry, function, found[name].get(entry))
        for name, entries in touched(built, headers.version).items()
        if name in found  # a loader without this table does not ask for it
        for entry, function in entries.items()
        if found[name].get(entry) != function
    ]


def test_every_place(headers, ours, tmp_path):
    """No entry that is touched is another function's or behind the table's end, whichever of the two headers the library is built with."""
    found = places(headers, tmp_path)
    assert wrong(ours, headers, found) == []
    assert wrong(headers, headers, found) == []
    assert sum(len(entries) for entries in touched(ours, headers.version).values()) > 250


def test_built_with_others(headers, ours, tmp_path):
    """A library built with these headers, in a loader of each version."""
    for folder in ["", *FOLDERS]:
        loader = Headers(folder)
        assert wrong(headers, loader, places(loader, tmp_path)) == [], folder


def test_every_table_is_known(headers, ours):
    """A loader that asks a layer for a table and gets none fails."""
    known = {*level_zero.all_entries(ours.tables, ours.table), *ours.table["tables"]["later"]}
    assert {t.name for t in headers.tables} - known == set()


def test_every_prototype(headers, tmp_path):
    """As many arguments as the headers say, of the same size and class."""
    prototypes = {p.split("(")[0]: Function(p.split("(")[0], "ze_result_t", p.split("(", 1)[1][:-1]) for p in headers.table["newer"]["functions"]}
    listed = {f for f, (_, _, *since) in headers.table["newer"]["places"].items() if tuple(since) <= headers.version}
    code = []
    for name in sorted(listed & headers.functions.keys()):
        ours, theirs = prototypes[name], headers.functions[name]
        assert theirs.returns == "ze_result_t" and len(ours.names) == len(theirs.names), name
        for side, function in ("ours", ours), ("theirs", theirs):
            code.append(f"struct {side}_{name} {{ " + " ".join(d + ";" for d in function.declarations) + " char end; };")
        for one, other in zip(ours.names, theirs.names):
            a, b = f"((struct ours_{name} *)0)->{one}", f"((struct theirs_{name} *)0)->{other}"
            same = f"sizeof({a}) == sizeof({b}) && __builtin_classify_type({a}) == __builtin_classify_type({b})"
            code.append(f'_Static_assert({same}, "{name}: {one}");')
    headers.compiled(tmp_path, [*code, "int main(void)", "{", "\treturn 0;", "}"])
