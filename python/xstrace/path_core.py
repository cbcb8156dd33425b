"""Asks xstrace-replay (replay/), the compiled half of xstrace-path, and takes its answer apart.

Both speak in arrays of numbers of this machine: what is asked and found stands in replay/input.c and replay/answer.c.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from dataclasses import dataclass

import numpy as np

from .running import program
from .source import TraceError

QUESTION, ANSWER = 0x3161506572727378, 0x3261506572727378
NONE = 0xFFFFFFFF
PLACES = ("build/replay", "lib/xstrace")  # of a checkout, of what is installed
STEP = np.dtype([("begin", "i8"), ("end", "i8"), ("slice", "u4"), ("track", "u4"), ("before", "u4"), ("category", "u4")])
HALF = np.dtype([("name", "u4"), ("category", "u4"), ("share", "i8"), ("end", "i8")])
WAIT = np.dtype([("who", "u4"), ("whom", "u4"), ("count", "u8"), ("time", "i8")])
HEAD = ("magic", "nodes", "edges", "late", "loose", "circular", "overlaps", "is_same")
COUNTS = ("steps", "halves", "waits")


class ReplayError(TraceError):
    """xstrace-replay is not there, or gave no answer; the text is for people."""


@dataclass
class Found:
    """What xstrace-replay found.

    begin, end: of the run, ns (as the slices' times are).
    steps: STEP, the longest chain from its end back to its begin; each begins where the next one ends.
    halves: HALF, names with the largest shares of the chain, and the run's end if they took half.
    waits: WAIT, processes that waited for others. ends: i8, the run's end in each scenario.
    slack: i8, of each name, ns. is_same: without changes every moment is when it was.
    nodes, edges: size of the graph. late, loose, circular, overlaps: arrows and slices that do not fit.
    """

    begin: int
    end: int
    steps: np.ndarray
    halves: np.ndarray
    waits: np.ndarray
    ends: np.ndarray
    slack: np.ndarray
    is_same: bool
    nodes: int
    edges: int
    late: int
    loose: int
    circular: int
    overlaps: int


def ask(graph, rules, scenarios, halves):
    """The Found of a Graph (path_graph.py).

    rules: list of path_rules.Rule. scenarios: list of int, bits of the rules that each has.
    halves: of how many names. Raises ReplayError.
    """
    head = np.array(
        [
            QUESTION,
            len(graph.begin),
            len(graph.process),
            len(graph.names),
            len(graph.arrow_from),
            graph.groups,
            len(graph.member),
            len(rules),
            len(scenarios),
            halves,
        ],
        np.uint64,
    )
    arrays = [
        head,
        graph.begin,
        graph.end,
        graph.track,
        graph.name,
        graph.kind,
        graph.process,
        graph.flags,
        graph.arrow_from,
        graph.arrow_to,
        graph.arrow_time,
        graph.arrow_type,
        graph.group,
        graph.member,
        graph.role,
        np.array([rule.factor for rule in rules], np.float64),
        np.array(scenarios, np.uint64),
        *(rule.match for rule in rules),
    ]
    return _answer(_run(arrays), len(scenarios), len(graph.names))


def _program():
    path = program("xstrace-replay", PLACES)
    if not path:
        raise ReplayError("xstrace-replay was not found: build it (ninja -C build), or put it into PATH")
    return path


def _run(arrays):
    """What the program answers to the arrays (bytes)."""
    program = subprocess.Popen([_program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def feed():
        with contextlib.suppress(BrokenPipeError), program.stdin:  # it has ended, and says why
            for array in arrays:
                program.stdin.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with program.stdout, program.stderr:
        answer = program.stdout.read()
        said = program.stderr.read().decode(errors="replace").strip()
    feeder.join()
    if program.wait() != 0:
        why = said or f"xstrace-replay ended with status {program.returncode}"
        raise ReplayError(why.removeprefix("xstrace-replay: "))
    return answer


def _answer(answer, scenarios, names):
    size = 8 * (len(HEAD) + 2 + len(COUNTS))
    if len(answer) < size:
        raise ReplayError("xstrace-replay gave no answer")
    numbers = dict(zip((*HEAD, "begin", "end", *COUNTS), np.frombuffer(answer[:size], np.int64).tolist()))
    arrays, at = {}, size
    for what, kind, count in (
        ("steps", STEP, numbers["steps"]),
        ("halves", HALF, numbers["halves"]),
        ("waits", WAIT, numbers["waits"]),
        ("ends", np.dtype("i8"), scenarios),
        ("slack", np.dtype("i8"), names),
    ):
        if numbers["magic"] != ANSWER or len(answer) < at + count * kind.itemsize:
            raise ReplayError("xstrace-replay and this package are of different versions")
        arrays[what] = np.frombuffer(answer, kind, count, at)
        at += count * kind.itemsize
    numbers.update(arrays, is_same=bool(numbers["is_same"]))
    return Found(**{field: numbers[field] for field in Found.__dataclass_fields__})
