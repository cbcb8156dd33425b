"""The assembly of NVIDIA's GPUs (SASS), as nvdisasm prints it of a .cubin file, for the stalls of stalls.py.

Of the output of "nvdisasm -c -g" those lines are read that

- begin a function: ".text.NAME:";
- tell the source of what follows: '//## File "k.cu", line 12' (nvcc -lineinfo);
- are labels, which begin a basic block: ".L_x_3:";
- are instructions with their address in the function: "/*0120*/  @!P0 FFMA R7, R0, UR6, R7 ;".

An instruction whose result comes later and at no fixed time sets a scoreboard, for which those wait that use the result. The printed
assembly does not say which, so the registers do: what an instruction with LongScoreboardStall (ShortScoreboardStall) waits for is the
nearest one before it, along all ways through the blocks, that loads a register which it reads, from memory (from shared memory, a special
register, or the unit for transcendental functions).
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys

from .listing import Listing

FUNCTION = re.compile(r"\.text\.([^\s:]+):\s*$")
SOURCE = re.compile(r'\s*//## File "([^"]*)", line (\d+)(.*)')
LABEL = re.compile(r"(\.L_\w+):\s*$")
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,8})\*/\s+(.*?);?\s*(?:/\*.*\*/\s*)?$")
JUMP = re.compile(r"`\((\.L_\w+)\)")
REGISTER = re.compile(r"\b(U?R\d+|U?P\d+)((?:\.\w+)*)")

LONG = ("LD", "LDG", "LDL", "TEX", "TLD", "TLD4", "TXQ", "SULD", "SUATOM", "ATOM", "ATOMG")
SHORT = ("LDS", "LDSM", "ATOMS", "MUFU", "S2R", "S2UR", "SHFL", "LDC", "I2F", "F2I", "F2F", "POPC", "FLO", "R2UR", "DADD", "DMUL", "DFMA")
# what begins with other operands than registers that it writes
NO_RESULT = (
    "ST",
    "RED",
    "BRA",
    "BRX",
    "EXIT",
    "BAR",
    "BSSY",
    "BSYNC",
    "CALL",
    "RET",
    "NOP",
    "MEMBAR",
    "WARPSYNC",
    "DEPBAR",
    "CCTL",
    "ERRBAR",
    "YIELD",
    "SUST",
)


def _span(name, suffixes, width):
    """The registers that an operand stands for: R2 with a width of 2 is R2 and R3."""
    width = 2 if ".64" in suffixes else width
    kind, number = re.match(r"(U?[RP])(\d+)", name).groups()
    return {f"{kind}{int(number) + i}" for i in range(width if kind[-1] == "R" else 1)}


class SassInstruction:
    """As stalls.Instruction. sets: registers that it loads; defines: those that it writes at all; waits: those that it reads."""

    def __init__(self, address, text, line, file):
        self.address, self.line, self.file = address, line, file
        self.text = f"/*{address:04x}*/ {text}"
        guard = re.match(r"@(!?U?P\w+)\s+", text)
        code = text[guard.end() :] if guard else text
        opcode, _, operands = code.partition(" ")
        self.opcode = opcode.split(".")[0]
        wide = 4 if ".128" in opcode else 2 if ".64" in opcode or ".WIDE" in opcode else 1
        operands = [one.strip() for one in operands.split(",")]
        results = 0 if self.opcode.startswith(NO_RESULT) else self._results(operands)
        self.defines = set().union(*(_span(*found, wide) for one in operands[:results] for found in REGISTER.findall(one)))
        self.waits = set().union(*(_span(*found, 1) for one in operands[results:] for found in REGISTER.findall(one)))
        if guard:
            self.waits |= {guard[1].lstrip("!")}
        self.slow = "Long" if self.opcode in LONG else "Short" if self.opcode in SHORT else None
        self.sets = self.defines if self.slow else set()
        self.jumps = JUMP.findall(text)
        # nothing falls through it
        self.leaves = not guard and self.opcode in ("EXIT", "BRA", "BRX", "RET")

    @staticmethod
    def _results(operands):
        """How many operands are written: a register, or two predicates."""
        first = re.match(r"U?P(\d+|T)$", operands[0])
        second = len(operands) > 1 and re.match(r"U?P(\d+|T)$", operands[1])
        return 2 if first and second else 1


class SassListing(Listing):
    """A function's assembly, from its lines."""

    def __init__(self, path, lines):
        instructions, labels, line, file = [], [], None, None
        for text in lines:
            if source := SOURCE.match(text):
                line, file = f"Line {source[2]}{source[3]}", f"File: {source[1]}"
            elif label := LABEL.match(text):
                labels.append((label[1], len(instructions)))
            elif found := INSTRUCTION.match(text):
                instructions.append(SassInstruction(int(found[1], 16), found[2].strip(), line, file))
        super().__init__(path, instructions, self._blocks(instructions, labels))

    @staticmethod
    def _blocks(instructions, labels):
        """Blocks begin at labels and behind what jumps or leaves; each with the names of those before it."""
        names = {place: name for name, place in labels}
        starts = {0, *names, *(i + 1 for i, one in enumerate(instructions) if one.jumps or one.leaves)}
        starts = sorted(start for start in starts if start < len(instructions))
        alias = {name: names[place] for name, place in labels}  # several labels at a place
        of = {start: names.get(start, f"at {start}") for start in starts}
        before = {name: [] for name in of.values()}
        for start, end in zip(starts, [*starts[1:], len(instructions)], strict=True):
            last = instructions[end - 1]
            if not last.leaves and end in of:
                before[of[end]].append(of[start])
            for target in last.jumps:
                if alias.get(target) in before:
                    before[alias[target]].append(of[start])
        return [(of[start], start, before[of[start]]) for start in starts]


def find_nvdisasm():
    """Of the path, of CUDA's toolkit, or of PyPI's nvidia-cuda-nvdisasm; None: it is nowhere."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    candidates = [os.path.join(home, "bin/nvdisasm") for home in homes if home]
    candidates += [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia/cu*/bin/nvdisasm"))]
    return shutil.which("nvdisasm") or next((path for path in candidates if os.access(path, os.X_OK)), None)


def disassemble(path, tool):
    """The functions of a .cubin file: their lines, by name. Raises OSError or subprocess.SubprocessError where there is nothing to be had."""
    text = subprocess.run([tool, "-c", "-g", path], capture_output=True, text=True, timeout=120, check=True, errors="replace").stdout
    functions, lines = {}, None
    for line in text.splitlines():
        if found := FUNCTION.match(line):
            lines = functions.setdefault(found[1], [])
        elif line.startswith("//-----"):
            lines = None
        elif lines is not None:
            lines.append(line)
    return functions
