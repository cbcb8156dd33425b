"""What --what-if is given: "kernel gemm x0.5", "MPI_* x0", "launch latency x0" (docs/PATH.md)."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass

import numpy as np

from .path_graph import CALL, CATEGORIES, COPY, KERNEL, OUTSIDE, TASK, WORK
from .source import TraceError

BIT = {name: 1 << number for number, name in enumerate(CATEGORIES)}
OF_CALLS, OF_WORK, ANY = (CALL,), (KERNEL, COPY, WORK), (TASK, CALL, KERNEL, COPY, WORK)
OWN = BIT["host"] | BIT["waiting"] | BIT["device"] | BIT["wake-up"] | BIT["message"] | BIT["collective"]
# words in front of a pattern: the categories of time that the rule changes, and the kinds of slices that it looks at
WORDS = {
    "host": (BIT["host"], (TASK, CALL)),
    "task": (BIT["host"], (TASK,)),
    "call": (BIT["host"] | BIT["waiting"] | BIT["wake-up"], OF_CALLS),
    "waiting": (BIT["waiting"], OF_CALLS),
    "kernel": (BIT["device"], (KERNEL,)),
    "copy": (BIT["device"], (COPY,)),
    "device": (BIT["device"], OF_WORK),
    "launch latency": (BIT["launch latency"], OF_WORK),
    "queueing": (BIT["queueing"], OF_WORK),
    "idle": (BIT["idle"], OF_WORK),
    "wake-up": (BIT["wake-up"], OF_CALLS),
    "message": (BIT["message"], OF_CALLS),
    "collective": (BIT["collective"], OF_CALLS),
    "start": (BIT["start"], ANY),
    "join": (BIT["join"], ANY),
}
RULE = re.compile(r"\s*(.*?)\s*[x×](\d{1,4}(?:\.\d{0,9})?|\.\d{1,9})\s*", re.DOTALL)
MOST_RULES = 64
LARGEST = 1000


class RuleError(TraceError):
    """The rule cannot be understood, or is about nothing; the text is for people."""


@dataclass
class Rule:
    """One change. match: u2, of each name the bits of the categories that `factor` multiplies."""

    text: str
    factor: float
    match: np.ndarray = None


def parse_rule(text):
    """(words or None, pattern, factor) of a rule; raises RuleError."""
    found = RULE.fullmatch(text)
    if not found:
        raise RuleError(f"'{text}' is no change: it ends in a factor, as in 'kernel gemm x0.5'")
    factor = float(found[2])
    if factor > LARGEST:
        raise RuleError(f"'{text}': factors are at most {LARGEST}")
    about = found[1]
    for words in WORDS:
        if about == words:
            return words, "*", factor
        if about.startswith(words + " "):
            return words, about[len(words) :].strip(), factor
    if not about:
        raise RuleError(f"'{text}' says no name and no kind: 'MPI_* x0', 'kernel * x0.5', 'launch latency x0'")
    return None, about, factor


def make_rule(text, graph):
    """The Rule of a text for a Graph's names; raises RuleError where it is about none of them."""
    words, pattern, factor = parse_rule(text)
    bits, kinds = WORDS[words] if words else (OWN, ANY)
    match = np.zeros(len(graph.names), np.uint16)
    wanted = re.compile(fnmatch.translate(pattern))
    for number, name in enumerate(graph.names):
        if number == 0:
            is_meant = pattern in ("*", OUTSIDE) and words in ("host", "start", "join")
        else:
            is_meant = graph.name_kind[number] in kinds and _is_called(wanted, name)
        if is_meant:
            match[number] = bits
    if not match.any():
        raise RuleError(f"'{text}': {_nothing(words, graph, kinds)}")
    return Rule(text, factor, match)


def _is_called(wanted, name):
    """By its whole name, or by that behind its domain ("step" is "train::step")."""
    return bool(wanted.match(name)) or bool(wanted.match(name.rpartition("::")[2]))


def _nothing(words, graph, kinds):
    names = [name for name, kind in zip(graph.names[1:], graph.name_kind[1:]) if kind in kinds]
    of_kind = {"kernel": "kernels", "copy": "copies", "task": "tasks"}.get(words, "names")
    if not names:
        return f"the trace has no {of_kind}"
    more = ", …" if len(names) > 3 else ""
    return f"no such name; the trace has {len(names)} {of_kind}: {', '.join(names[:3])}{more}"
