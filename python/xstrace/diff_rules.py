"""Rules of xstrace-diff --fail-on: KIND [NAME] [METRIC] CHANGE [p<LEVEL].

kernel +5%              any kernel whose mean time has grown by 5 % or more
task step +3% p<0.05    the task "step", and chance alone would hardly do that
call MPI_* total +2ms   all of these calls, the sum over a run
call * count +0.1%      called more often
kernel new              a kernel that was not there before; "gone": that is there no longer
"""

from __future__ import annotations

import collections
import fnmatch
import re

from .diff_read import KINDS

METRICS = ("mean", "median", "self", "total", "count")
UNITS = {"%": None, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
PATTERN = re.compile(
    r"\s*(?P<kind>[a-z]+)(?:\s+(?P<name>\S.*?))??(?:\s+(?P<metric>mean|median|self|total|count))?"
    r"\s+(?:(?P<sign>[+-])(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>%|ns|us|ms|s)|(?P<event>new|gone))(?:\s+p\s*<\s*(?P<p>0?\.\d+))?\s*"
)

Rule = collections.namedtuple("Rule", "text kind name metric event limit unit level")
Rule.__doc__ = """text: str as given. kind: of KINDS, or "any". name: a pattern. metric: of METRICS. event: "new", "gone" or None.

limit: signed float, of unit "%" in %, else in ns. level: float, of p, or None."""

Verdict = collections.namedtuple("Verdict", "rule row failed p why")
Verdict.__doc__ = """rule: Rule. row: the Row it holds for. failed: bool. p: float after Holm's correction, or None. why: str, one line."""


class Misuse(Exception):
    """A rule, or another option, is not as it must be; the text is one line."""


def parse(text):
    """The Rule that a text says. Raises Misuse."""
    found = PATTERN.fullmatch(text)
    if not found or found["kind"] not in (*KINDS, "any"):
        raise Misuse(f"no rule: '{text}'; one is KIND [NAME] [{'|'.join(METRICS)}] +5% [p<0.05], of KIND {', '.join(KINDS)} or any")
    limit = None if found["event"] else float(found["sign"] + found["value"]) * (UNITS[found["unit"]] or 1)
    if found["unit"] not in (None, "%") and found["metric"] == "count":
        raise Misuse(f"rule '{text}': counts have no unit of time: say %")
    if found["event"] and found["p"]:
        raise Misuse(f"rule '{text}': {found['event']} has no p")
    level = float(found["p"]) if found["p"] else None
    return Rule(text.strip(), found["kind"], found["name"] or "*", found["metric"] or "mean", found["event"], limit, found["unit"], level)


def _is_meant(rule, row):
    return rule.kind in (row.kind, "any") and (row.name == rule.name or fnmatch.fnmatchcase(row.name, rule.name))


def judge(rules, rows, holm):
    """(verdicts, unused): a Verdict for each rule and each row that it means, and the rules that mean none. holm: of diff_stats."""
    found, unused = [], []
    for rule in rules:
        meant = [row for row in rows if _is_meant(rule, row)]
        if not meant:
            unused.append(rule)
        found += [(rule, row) for row in meant]
    tested = [row.change[rule.metric].p if rule.level is not None and row.is_in_both else None for rule, row in found]
    return [_verdict(rule, row, p) for (rule, row), p in zip(found, holm(tested))], unused


def _verdict(rule, row, p):
    if rule.event:
        failed = row.state == rule.event
        return Verdict(
            rule, row, failed, None, f"{row.kind} {row.name} is {row.state}" if failed else f"{row.kind} {row.name} is not {rule.event}"
        )
    if not row.is_in_both:
        return Verdict(rule, row, False, None, f"{row.kind} {row.name} is {row.state}: nothing to compare")
    change = row.change[rule.metric]
    by = (change.ratio - 1) * 100 if rule.unit == "%" else change.b - change.a
    is_beyond = by >= rule.limit if rule.limit >= 0 else by <= rule.limit
    is_chance = rule.level is not None and (p is None or p >= rule.level)
    why = f"{row.kind} {row.name}: {rule.metric} {change.text()}"
    if rule.level is not None:
        why += f", p {p:.2g} with {rule.level:g} asked" if p is not None else ", too few values for p"
    return Verdict(rule, row, is_beyond and not is_chance, p, why)
