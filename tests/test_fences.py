"""Fences whose lack shows once in millions of runs: the compiled code must have them between the two accesses that they keep in order (docs/RING.md)."""

import platform
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, compile_c

LIBRARY, DRAIN = BUILD / "collector/libxstrace.so", BUILD / "writer/xstrace-drain"
FENCE = re.compile(r"mfence|lock or[lq] +\$0x0,(0x\w+)?\(%rsp\)|xchg +%\w+,.*\(")
FIELDS = {
    "sleeping": "struct xs_doorbell",
    "tail": "struct xs_ring",
    "waiting": "struct xs_ring",
}
# where, function, what is stored, what is loaded behind it; None: before the function is called
DEKKERS = [
    (LIBRARY, "xs_doorbell_ring", None, "sleeping"),
    (DRAIN, "xs_ring_release", "tail", "waiting"),
]

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for instructions of x86-64"),
    pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump"),
]


@pytest.fixture(scope="module")
def offsets(tmp_path_factory):
    """{field: its place, as it is written in front of a register}"""
    prints = "".join(f'printf("{field} %#zx\\n", offsetof({of}, {field}));' for field, of in FIELDS.items())
    source = f'#include <stddef.h>\n#include <stdio.h>\n#include "ring.h"\nint main(void) {{ {prints} }}\n'
    program = compile_c(tmp_path_factory.mktemp("fences") / "offsets", source, "-D_GNU_SOURCE", "-I", ROOT / "common")
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {field: "(0x0)?" if place == "0" else place for field, place in map(str.split, lines)}


def instructions(binary, function):
    """Of a function, without addresses."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(binary)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "__asan_" in text or "__tsan_" in text:
        pytest.skip("a sanitizer's code")
    return re.findall(r"^ +[0-9a-f]+:\s+(.*?)\s*(?:#.*)?$", text, re.M)


def first(code, pattern):
    return next((i for i, one in enumerate(code) if re.match(pattern, one)), None)


@pytest.mark.parametrize("binary, function, stored, loaded", DEKKERS, ids=lambda value: getattr(value, "name", value))
def test_fence_between_store_and_load(offsets, binary, function, stored, loaded):
    code = instructions(binary, function)
    text = "\n".join(code)
    store = first(code, rf"(mov|xchg)\w* +[%$]\w+,{offsets[stored]}\(%") if stored else 0
    load = first(code, rf"(?!lea)\w+ +(.*,)?{offsets[loaded]}\(%\w+\)")
    fences = [i for i, one in enumerate(code) if FENCE.match(one)]
    assert None not in (store, load) and store < load, text
    assert any(store <= fence < load for fence in fences), text
