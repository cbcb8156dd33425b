"""Why instructions stall: joins the samples of --stall-sampling with the assembly of the kernels.

That is what Intel's graphics compiler dumps, or .cubin files of NVIDIA's (sass.py).

A dump (IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir=DIR) has a .asm file for each kernel and width. Of its lines those are read that

- name the kernel: "//.kernel NAME";
- begin a basic block: "// B002: Preds:{B001, B003},  Succs:{B004}";
- tell the source of what follows (-gline-tables-only): "// Line 40: ..." and "// File: ...";
- are instructions: they end with a comment, and may begin with their address, "/* [000001B8] */". An instruction has 16 bytes, or 8
  where it is marked Compacted.

An instruction whose result comes later (a load, a store, another message, an inverse, a matrix product) sets a scoreboard token, "{$5}";
one that needs the result waits for it, "{$5.dst}" or "{$5.src}", as "sync" does with any. So what an instruction with "SbidStall" waits for is the nearest instruction before it, in its block or in
those that lead there, that sets the token.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from . import sass
from .listing import Listing
from .running import opened

SBID = "SbidStall[Events]"
# reasons whose cause can be found, and which sort of instructions that is
CAUSED = {SBID: None, "LongScoreboardStall[Events]": "Long", "ShortScoreboardStall[Events]": "Short"}
ADDRESSED = re.compile(r"/\* *\[([0-9A-Fa-f]{1,16})\] *\*/ *")
BLOCK = re.compile(r"// *(B\w+):.*Preds:\{([^}]*)\}.*Succs:\{[^}]*\}")
LINE = re.compile(r"// *(Line \d+:.*)")
FILE = re.compile(r"// *(File:.*)")
TOKENS = re.compile(r"\$(\d+)(\.dst|\.src)?")
SYNC = re.compile(r"(\([^)]*\)\s*)*sync\.")
RULE = "*" * 95


class Instruction:
    """address: bytes from the kernel's begin; waits, sets: numbers of tokens; line, file: of the source, as the dump says it, or None."""

    def __init__(self, address, text, line, file):
        self.address, self.line, self.file = address, line, file
        self.text = f"/* [{address:08X}] */ {text}"
        code = text.split("//")[0]
        found = TOKENS.findall(code)
        only_waits = SYNC.match(code.strip()) is not None  # "sync.allrd ($0,$1)"
        self.waits = {int(number) for number, what in found if what or only_waits}
        self.sets = self.defines = {int(number) for number, what in found if not what and not only_waits}
        self.slow = None


class IntelListing(Listing):
    """Of the lines of a .asm file."""

    def __init__(self, path, lines):
        instructions, blocks = [], []
        line = file = None
        address = 0
        for text in lines:
            text = text.rstrip("\r\n")
            if text.startswith("//"):
                if block := BLOCK.match(text):
                    before = [one.strip() for one in block[2].split(",") if one.strip()]
                    blocks.append((block[1], len(instructions), before))
                elif source := LINE.match(text):
                    line = source[1]
                elif source := FILE.match(text):
                    file = source[1]
            elif "//" in text:
                if told := ADDRESSED.match(text):
                    address, text = int(told[1], 16), text[told.end() :]
                instructions.append(Instruction(address, text, line, file))
                address += 8 if "Compacted" in text else 16
        super().__init__(path, instructions, blocks)


class Dump:
    """A folder of assembly. demangler: a command that takes a name and prints what it means; None: c++filt.

    missing: why .cubin files of it cannot be read (str), or None. Raises OSError where the folder cannot be read.
    """

    def __init__(self, folder, demangler=None):
        self.demangler = demangler or shutil.which("c++filt")
        self.paths, self.functions, self.missing = {}, {}, None
        # a kernel that was compiled again has a later name
        names = sorted(os.listdir(folder), key=lambda name: (len(name), name))
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".asm"):
                self.paths |= dict.fromkeys(self._kernels_in(path), path)
            elif name.endswith(".cubin"):
                self._disassemble(path)

    def _disassemble(self, path):
        tool = sass.find_nvdisasm()
        if not tool:
            self.missing = ".cubin files need nvdisasm: pip install nvidia-cuda-nvdisasm"
            return
        try:
            functions = sass.disassemble(path, tool)
        except (OSError, subprocess.SubprocessError) as error:
            self.missing = f"nvdisasm cannot read {path}: {str(getattr(error, 'stderr', None) or error).strip().splitlines()[-1]}"
            return
        for name, lines in functions.items():
            self.functions |= dict.fromkeys({name, self._demangle(name)}, (path, lines))

    def _kernels_in(self, path):
        with opened(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("//.kernel"):
                    mangled = line.split()[1:2]
                    yield from {*mangled, *map(self._demangle, mangled)}

    def _demangle(self, name):
        try:
            text = (
                subprocess.run([self.demangler, name], capture_output=True, text=True, timeout=10, check=True).stdout
                if self.demangler
                else name
            )
        except (OSError, subprocess.SubprocessError):
            self.demangler = None
            return name
        # SYCL names kernels by the type of their function
        return text.split("\n")[0].removeprefix("typeinfo name for ") or name

    def listing(self, kernel):
        """The kernel's Listing, None where the dump has none."""
        bare = re.sub(r"\[[^\]]*\]$", "", kernel)
        if found := self.functions.get(kernel) or self.functions.get(bare):
            return sass.SassListing(*found)
        path = self.paths.get(kernel) or self.paths.get(bare)
        if not path:
            return None
        with opened(path, encoding="utf-8", errors="replace") as file:
            return IntelListing(path, file)


def report(stalled, listing, most=10):
    """Which instructions of the kernel stall, by the reason, the most expensive first: a list of lines (str).

    stalled: of metrics.py; listing: None where no assembly was found; most: instructions for each reason, negative: all.
    """
    if not listing:
        return [f"Kernel: {stalled.kernel}", "No .asm or .cubin file of the shader dump has this kernel"]
    said = [f"Kernel: {stalled.kernel}", f"Assembly: {listing.path}"]
    said.append(f"Top {most} Stalls of Each Type" if most >= 0 else "Stalls of Each Type")
    reasons = [name for name in stalled.names if "Stall" in name and any(stalled[name])]
    for reason in sorted(reasons, key=lambda name: name != SBID):
        counts = sorted(zip(stalled[reason], stalled.addresses, strict=True), key=lambda one: (-one[0], one[1]))
        said += [RULE, f"{reason.split('Stall')[0]} Stalls:"]
        for count, address in [one for one in counts if one[0] > 0][: most if most >= 0 else None]:
            said += ["", f"Instruction, {count:.0f} events", *_stall(listing, address, reason)]
    return [*said, "=" * 95]


def _stall(listing, address, reason):
    place = listing.places.get(address)
    if place is None:
        return [f"  [{address:08X}]", "is not in the assembly"]
    said = _shown(listing.instructions[place], "  ")
    causes = listing.causes(place, CAUSED[reason]) if reason in CAUSED else []
    if not causes:
        return [*said, "is stalled"]
    said.append("is stalled potentially by")
    for one in causes:
        said += ["  instruction", *_shown(one, "    ")]
    return said


def _shown(instruction, indent):
    lines = [instruction.text, instruction.line, instruction.file]
    return [indent + line for line in lines if line]
