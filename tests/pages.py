"""Pages whose commands are run: docs/COOKBOOK.md and docs/tours/. What stands in a page is what is done, word for word.

    ```sh                       commands, by one bash that ends at the first that fails; in a copy of docs/examples
    ```sh title="in a clone"    how xstrace is installed: in a clone of the repository
    ```python title="a.py"      a file
    ```text                     what the commands above print: see printed()
    <!-- claim: REGEX :: A..B --> and what REGEX's group finds in it is a number from A to B

A line that ends in "# until Ctrl-C" is interrupted after a while. No other code is allowed in such a page.

    tests/pages.py docs/COOKBOOK.md     runs a page and writes the numbers that were printed into it: none is made up
"""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from conftest import APPS, BUILD, ROOT
from cuda_log import HAVE_SOFTCUDA, LIBRARIES
from others import CLIENTS, lacks, the_port_of_perfetto

FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$|^<!-- claim: (.*?) :: (\S+)\.\.(\S+) -->$", re.M | re.S)
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:ns|us|ms|s|GB/s|MB/s|B|KB|MB|GB)"
NUMBER_UNIT = rf"{NUMBER}(?: {UNIT})?"
PIECES = rf"(\w+\.py:\d+|(?<![\w.]){NUMBER}(?: {UNIT}\b)?|…|\s+)"
UNTIL = "# until Ctrl-C"
IN_A_CLONE = "in a clone"
SECONDS_OPEN = 3  # of a line that ends by Ctrl-C

Block = namedtuple("Block", "kind title text low high")
Section = namedtuple("Section", "title blocks text")


def blocks(text):
    for found in FENCE.finditer(text):
        kind, title, body, claim, low, high = found.groups()
        yield Block("claim", None, claim, float(low), float(high)) if claim else Block(kind, title, body, None, None)


def sections(page):
    """The parts of a page, by its headings; the first one has what stands before them."""
    plain = re.sub(r"^```.*?^```$", lambda code: code[0].replace("\n#", "\n\0"), page.read_text(), flags=re.M | re.S)
    parts = re.split(r"^## ", plain, flags=re.M)
    texts = [part.replace("\n\0", "\n#") for part in parts]
    return [Section(text.partition("\n")[0], list(blocks(text)), text) for text in texts]


# ---- what is printed ----


def pattern(line):
    """A line of a page as an expression: numbers are any numbers, units any of their kind, "…" anything; places in Python are exact."""
    pieces = re.split(PIECES, line.strip())
    return re.compile("".join(map(piece_pattern, pieces)) + "$")


def with_numbers_of(line, printed):
    """The page's line with the numbers of the line that was printed; what "…" stands for stays left out."""
    pieces = re.split(PIECES, plain(line))
    grouped = "".join(f"({piece_pattern(piece)})" for piece in pieces)
    found = re.match(grouped + "$", printed)
    return "".join(new if re.fullmatch(NUMBER_UNIT, old) else old for old, new in zip(pieces, found.groups()))


def piece_pattern(piece):
    if piece == "…":
        return ".*?"
    if piece.isspace():
        return " ?" if not piece.strip() else piece
    if re.fullmatch(NUMBER_UNIT, piece):
        return rf"(?<![\d.,]){NUMBER}(?![\d])" + (rf" {UNIT}" if " " in piece else "")
    return re.escape(piece)


def plain(line):
    return " ".join(line.split())


def not_printed(expected, output):
    """The first line of a page that a program did not print (after the ones before it), or None."""
    lines = iter([plain(line) for line in output.splitlines()])
    for line in expected.splitlines():
        if line.strip() not in ("", "…"):
            wanted = pattern(plain(line))
            if not any(wanted.match(printed) for printed in lines):
                return line
    return None


def updated(expected, output):
    """The same text with the numbers of this output."""
    lines, made = iter([plain(line) for line in output.splitlines()]), []
    for line in expected.splitlines():
        wanted = pattern(plain(line))
        shown = line.strip() not in ("", "…")
        printed = next((printed for printed in lines if wanted.match(printed)), None) if shown else None
        assert printed or not shown, f"not printed: {line}\n{output}"
        made.append(with_numbers_of(line, printed) if shown else line)
    return "".join(f"{line}\n" for line in made)


def wrong_claim(block, output):
    found = re.search(block.text, output)
    if not found:
        return f"nothing printed is like {block.text}"
    value = float(found[1].replace(",", ""))
    return None if block.low <= value <= block.high else f"{block.text}: {value}, not {block.low} to {block.high}"


# ---- how commands are run ----


def missing(commands):
    """Why these commands cannot be run here, or None."""
    if re.search(r"\bmpi(cc|exec)\b", commands) and not shutil.which("mpicc.mpich"):
        return "no MPICH"
    if "-fopenmp" in commands and not any(Path("/usr/lib").rglob("omp.h")):
        return "no clang with OpenMP"
    if "slow_cl" in commands and not (APPS / "gemm").exists():
        return "no OpenCL"
    if re.search(r"xstrace-(report|query|path|diff)", commands) and not importlib.util.find_spec("duckdb"):
        return "no duckdb"
    if "./app" in commands and not HAVE_SOFTCUDA:
        return "no headers of CUDA and CUPTI"
    if "torch_steps" in commands:
        return lacks("torch") if os.environ.get("XSTRACE_TEST_CLIENTS") == "1" else "XSTRACE_TEST_CLIENTS is not 1"
    return None


def installed(place):
    """xstrace as `meson install` puts it, in a folder that stands for /, and the Python package as a wheel has it: the prefix."""
    command = ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", place]
    subprocess.run(command, check=True, timeout=60)
    prefix = next(place.rglob("bin/xstrace")).parent.parent
    package, library = prefix / "python", next(prefix.rglob("libxstrace-api.so.0"))
    shutil.copytree(ROOT / "python/xstrace", package / "xstrace", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(BUILD / "python/_native.abi3.so", package / "xstrace")
    (package / "lib").mkdir()
    shutil.copy(library, package / "lib/libxstrace-api.so.0")
    (package / "lib/xstrace").symlink_to(prefix / "lib/xstrace")
    for name in ("mpicc", "mpiexec"):
        if found := shutil.which(f"{name}.mpich"):
            (prefix / "bin" / name).write_text(f'#!/bin/sh\nexec {found} "$@"\n')
            (prefix / "bin" / name).chmod(0o755)
    return prefix


BROWSER = """#!/usr/bin/env python3
import re, sys, urllib.request
trace = re.search(r"url=([^&]+)", sys.argv[1])[1]
request = urllib.request.Request(urllib.parse.unquote(trace), headers={"Origin": sys.argv[1].split("/#")[0]})
print("the browser has", len(urllib.request.urlopen(request, timeout=20).read()), "bytes", flush=True)
"""


class Reader:
    """Somebody who follows a page in a directory of his own."""

    def __init__(self, folder, prefix):
        self.home = folder / "tour"
        shutil.copytree(ROOT / "docs/examples", self.home)
        (self.home / "app").symlink_to(APPS / "cuda_loop")
        browser = folder / "browser"
        browser.write_text(BROWSER)
        browser.chmod(0o755)
        library = next(prefix.rglob("xstrace.pc")).parent.parent
        self.env = {
            **os.environ,
            "PATH": f"{prefix}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(prefix / "python"),
            "PKG_CONFIG_PATH": str(library / "pkgconfig"),
            "LD_LIBRARY_PATH": str(library),
            "BROWSER": str(browser),
        }

    def environment(self, commands):
        env = dict(self.env)
        if "./app" in commands:
            env["LD_LIBRARY_PATH"] += f":{LIBRARIES}/cuda13:{LIBRARIES}"
        if "torch_steps" in commands:
            env["PATH"] = f"{CLIENTS.parent}:{env['PATH']}"
        return env

    def run(self, commands, timeout=100):
        """What they print, in order; an AssertionError if one fails."""
        lines = [interrupted(line) if line.endswith(UNTIL) else line for line in commands.splitlines()]
        output = self.home / ".output"
        port = the_port_of_perfetto() if UNTIL in commands else contextlib.nullcontext()
        with port, output.open("w") as file:
            words = ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(lines)]
            done = subprocess.run(
                words, cwd=self.home, env=self.environment(commands), stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=timeout
            )
        printed = output.read_text(errors="backslashreplace")
        assert done.returncode == 0, f"status {done.returncode} of\n{commands}\n{printed}"
        assert printed.count("the browser has") == commands.count(UNTIL), printed
        return printed

    def follow(self, blocks):
        printed = None
        for block in blocks:
            if block.kind == "sh" and block.title != IN_A_CLONE:
                printed = self.run(block.text)
            elif block.kind == "text":
                line = not_printed(block.text, printed)
                assert line is None, f"not printed: {line}\n{printed}"
            elif block.kind == "claim":
                assert wrong_claim(block, printed) is None, wrong_claim(block, printed) + "\n" + printed
            elif block.title and block.kind != "sh":
                (self.home / block.title).write_text(block.text)


def interrupted(line):
    command = line.removesuffix(UNTIL)
    return f"timeout -s INT -k 20 {SECONDS_OPEN} {command} || [ $? = 124 ]"


def update(page, prefix, folder):
    """Follows the page and writes what was printed into it; parts that cannot be run here stay as they are, and a line says so."""
    text, reader, printed = page.read_text(), Reader(folder, prefix), None
    for part in sections(page):
        reason = missing("".join(block.text for block in part.blocks if block.kind == "sh"))
        if reason:
            print(f"{page.name}, {part.title}: not run, {reason}", file=sys.stderr)
            continue
        body = part.text
        for block in part.blocks:
            if block.kind == "sh" and block.title != IN_A_CLONE:
                printed = reader.run(block.text)
            elif block.kind == "text":
                body = body.replace(f"```text\n{block.text}```", f"```text\n{updated(block.text, printed)}```", 1)
            elif block.kind == "claim":
                assert wrong_claim(block, printed) is None, wrong_claim(block, printed)
            elif block.title and block.kind != "sh":
                (reader.home / block.title).write_text(block.text)
        text = text.replace(part.text, body, 1)
    page.write_text(text)


def main(names):
    for name in names:
        try:
            with tempfile.TemporaryDirectory(prefix="xstrace-pages-") as made:
                update(Path(name).resolve(), installed(Path(made, "installed")), Path(made))
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            print(f"pages: {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
