"""Why instructions stall: joins the samples of --stall-sampling with the assembly that Intel's graphics compiler dumps.

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

SBID = "SbidStall[Events]"
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
        self.sets = {int(number) for number, what in found if not what and not only_waits}


class Listing:
    """A kernel's assembly: its instructions in their order (a list of Instruction), and which blocks they lie in."""

    def __init__(self, path, lines):
        self.path, self.instructions, self.blocks = path, [], []
        line = file = None
        address = 0
        for text in lines:
            text = text.rstrip("\r\n")
            if text.startswith("//"):
                if block := BLOCK.match(text):
                    before = [one.strip() for one in block[2].split(",") if one.strip()]
                    self.blocks.append((block[1], len(self.instructions), before))
                elif source := LINE.match(text):
                    line = source[1]
                elif source := FILE.match(text):
                    file = source[1]
            elif "//" in text:
                if told := ADDRESSED.match(text):
                    address, text = int(told[1], 16), text[told.end() :]
                self.instructions.append(Instruction(address, text, line, file))
                address += 8 if "Compacted" in text else 16
        self.places = {one.address: place for place, one in enumerate(self.instructions)}

    def _spans(self):
        """first, last + 1 and predecessors of each block, by name; what comes before the first one is a block, too."""
        blocks = self.blocks if self.blocks and self.blocks[0][1] == 0 else [("", 0, []), *self.blocks]
        ends = [start for _, start, _ in blocks[1:]] + [len(self.instructions)]
        return {name: (start, end, before) for (name, start, before), end in zip(blocks, ends, strict=True)}

    def causes(self, place):
        """What the instruction at this place waits for: those that set its tokens, the nearest first (a list of Instruction)."""
        spans, missing, found = self._spans(), set(self.instructions[place].waits), []
        home = next((name for name, (start, end, _) in spans.items() if start <= place < end), None)
        if home is None:
            return found
        ways, seen = [(home, place)], set()
        while ways and missing:
            name, end = ways.pop(0)
            start, _, before = spans[name]
            for at in range(end - 1, start - 1, -1):
                hit = self.instructions[at].sets & missing
                if hit:
                    found.append(self.instructions[at])
                    missing -= hit
            for one in before:
                if one in spans and one not in seen:
                    seen.add(one)
                    ways.append((one, spans[one][1]))
        return found


class Dump:
    """A folder of assembly. demangler: a command that takes a name and prints what it means; None: c++filt.

    Raises OSError where the folder cannot be read.
    """

    def __init__(self, folder, demangler=None):
        self.demangler = demangler or shutil.which("c++filt")
        self.paths = {}
        names = [name for name in os.listdir(folder) if name.endswith(".asm")]
        # a kernel that was compiled again has a later name
        for name in sorted(names, key=lambda name: (len(name), name)):
            path = os.path.join(folder, name)
            for kernel in self._kernels_in(path):
                self.paths[kernel] = path

    def _kernels_in(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("//.kernel"):
                    mangled = line.split()[1:2]
                    yield from {*mangled, *map(self._demangle, mangled)}

    def _demangle(self, name):
        try:
            text = subprocess.run([self.demangler, name], capture_output=True, text=True, timeout=10, check=True).stdout if self.demangler else name
        except (OSError, subprocess.SubprocessError):
            self.demangler = None
            return name
        # SYCL names kernels by the type of their function
        return text.split("\n")[0].removeprefix("typeinfo name for ") or name

    def listing(self, kernel):
        """The kernel's Listing, None where the dump has none."""
        path = self.paths.get(kernel) or self.paths.get(re.sub(r"\[[^\]]*\]$", "", kernel))
        if not path:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return Listing(path, file)


def report(stalled, listing, most=10):
    """Which instructions of the kernel stall, by the reason, the most expensive first: a list of lines (str).

    stalled: of metrics.py; listing: None where no assembly was found; most: instructions for each reason, negative: all.
    """
    if not listing:
        return [f"Kernel: {stalled.kernel}", "No .asm file of the shader dump has this kernel"]
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
    causes = listing.causes(place) if reason == SBID else []
    if not causes:
        return [*said, "is stalled"]
    said.append("is stalled potentially by")
    for one in causes:
        said += ["  instruction", *_shown(one, "    ")]
    return said


def _shown(instruction, indent):
    lines = [instruction.text, instruction.line, instruction.file]
    return [indent + line for line in lines if line]
