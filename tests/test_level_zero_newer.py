"""Functions of Level Zero that the installed headers may lack: is each where interpose/level_zero_newer.toml says, and called as it says?

XSTRACE_TEST_ZE_HEADERS names folders that hold level_zero/ze_ddi.h of other versions, with colons between them; XSTRACE_TEST_ZE_LOADER the folder of a newer
libze_loader.so.1, and of its driver that does nothing (libze_null.so.1). Without them there are the installed headers alone.
"""

import functools
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from gpu_log import DRIVER

sys.path.insert(0, str(ROOT / "interpose"))
import level_zero  # noqa: E402
from prototypes import preprocess  # noqa: E402

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
        self.newer = level_zero.read_functions("".join(f"ze_result_t {prototype};" for prototype in self.table["newer"]["functions"]))
        self.tables, self.functions = level_zero.read_tables(text), level_zero.read_functions(text)
        self.version = 1, int(re.search(r"ZE_API_VERSION_CURRENT\s*=\s*\(?[^,]*?\(\s*1\s*<<\s*16\s*\)\s*\|\s*\(\s*(\d+)", text)[1])

    def compiled(self, code):
        """What a C program with these headers prints."""
        lines = ["#include <stddef.h>", "#include <stdio.h>", *(f"#include <{header}>" for header in self.table["headers"])]
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "asks")
            subprocess.run([*self.compiler, "-o", program, "-x", "c", "-"], input="\n".join([*lines, *code]), text=True, check=True)
            return subprocess.run([program], check=True, capture_output=True, text=True).stdout

    @functools.cached_property
    def places(self):
        """By table, {entry: function}, as the compiler lays the structs out."""
        rows = [(t, member, function) for t in self.tables for member, function in t.entries]
        lines = [f'\tprintf("{t.name} {f} %zu\\n", offsetof({t.kind}, {m}) / sizeof(void *));' for t, m, f in rows]
        found = {}
        for line in self.compiled(["int main(void)", "{", *lines, "\treturn 0;", "}", ""]).splitlines():
            name, function, entry = line.split()
            found.setdefault(name, {})[int(entry)] = function
        return found


read = functools.cache(Headers)


@pytest.fixture(params=["", *FOLDERS], ids=lambda folder: Path(folder).name or "installed")
def headers(request):
    return read(request.param)


def touched(built, version):
    """By table, {entry: function}: what a library that was built with some headers touches in a loader of a version."""
    return {
        name: {e.number: e.function for e in entries if version >= (e.since or built.version)}
        for name, entries in level_zero.all_entries(built.tables, built.table).items()
        if list(version) not in built.table["tables"]["reordered"].get(name, [])
    }


@pytest.mark.parametrize("built", ["", *FOLDERS], ids=lambda folder: "built_with_" + (Path(folder).name or "installed"))
def test_every_place(headers, built):
    """No entry that is touched in a loader is another function's, or behind its table's end."""
    entries = touched(read(built), headers.version)
    wrong = [
        (name, number, function, there.get(number))
        for name, there in headers.places.items()  # a table that a loader does not have it does not ask for
        for number, function in entries.get(name, {}).items()
        if there.get(number) != function
    ]
    assert wrong == [] and sum(len(entries.get(name, {})) for name in headers.places) >= 239


def test_every_table_is_known(headers):
    """A loader that asks a layer for a table and gets none fails."""
    ours = read("")
    known = {*level_zero.all_entries(ours.tables, ours.table), *ours.table["tables"]["later"]}
    assert {t.name for t in headers.tables} - known == set()


def test_every_prototype(headers):
    """As many arguments as the headers say, of the same size and class."""
    listed = {f for f, (_, _, *since) in headers.table["newer"]["places"].items() if tuple(since) <= headers.version}
    code = []
    for name in sorted(listed & headers.functions.keys()):
        ours, theirs = headers.newer[name], headers.functions[name]
        assert theirs.returns == "ze_result_t" and len(ours.names) == len(theirs.names), name
        for side, function in ("ours", ours), ("theirs", theirs):
            code.append(f"struct {side}_{name} {{ " + " ".join(d + ";" for d in function.declarations) + " char end; };")
        for one, other in zip(ours.names, theirs.names):
            a, b = f"((struct ours_{name} *)0)->{one}", f"((struct theirs_{name} *)0)->{other}"
            same = f"sizeof({a}) == sizeof({b}) && __builtin_classify_type({a}) == __builtin_classify_type({b})"
            code.append(f'_Static_assert({same}, "{name}: {one}");')
    headers.compiled([*code, "int main(void)", "{", "\treturn 0;", "}", ""])


@pytest.mark.skipif(not Path(LOADER, "libze_null.so.1").exists() or not LOADER, reason="XSTRACE_TEST_ZE_LOADER names no folder with libze_null.so.1")
@pytest.mark.parametrize("options", ["--chrome-call-logging", "--chrome-call-logging --chrome-kernel-logging -h -d -c"])
def test_every_name(xstrace, options):
    """Each function, called by its name, is recorded by its name, and is the one that is reached: a wrong place would have another's name and arguments."""
    ours = read("")
    names = {e.function for entries in level_zero.all_entries(ours.tables, ours.table).values() for e in entries} & ours.newer.keys()
    names -= {"zeInitDrivers", "zesInit"}  # some loaders call them themselves
    args = [f"{name}=" + "".join("p" if re.search(r"\*|handle_t", d) else "n" for d in ours.newer[name].declarations) for name in sorted(names)]
    env = {"LD_LIBRARY_PATH": str(Path(LOADER).resolve()), "ZE_ENABLE_NULL_DRIVER": "1"}
    bare = xstrace.bare("ze_every", args, env=env)
    run = xstrace(options, "ze_every", args, env=env)
    assert (run.status, run.out) == (bare.status, bare.out) and run.status == 0
    there = re.findall(r"^(\w+): 0$", run.out, re.M)
    assert len(there) > 100
    recorded = [call.name for call in sorted(run.trace.calls, key=lambda call: call.start) if call.name in names]
    release = int(Path(LOADER, "libze_loader.so.1").resolve().name.split(".")[3])
    assert recorded == (there if release >= 20 else [name for name in there if name in recorded])
