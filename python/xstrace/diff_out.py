"""What xstrace-diff says: for people, as JSON, as JUnit's XML, as GitHub's annotations."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

from .cli import clip_middle, columns, printable
from .diff_rows import count_text, percent_text, time_text
from .diff_stats import least_p

TITLES = (("run", "runs"), ("rank", "ranks"), ("kernel", "kernels"), ("copy", "copies"), ("call", "calls"), ("task", "tasks"))
NAME = 40  # columns
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ANNOTATIONS = 10  # of each severity: GitHub shows no more of a step


def text_of(result, top):
    """Lines for people. result: a diff.Result. top: rows of each kind."""
    yield f"A  {side_text(result.a)}"
    yield f"B  {side_text(result.b)}"
    yield from (f"note: {printable(note)}" for note in result.notes)
    for kind, title in TITLES:
        rows = [row for row in result.rows if row.kind == kind]
        if rows:
            yield ""
        compared = [row for row in rows if row.is_in_both]
        yield from _table(title, compared, top) if compared else [title] * bool(rows)
        for state, said in (("new", "only in B"), ("gone", "only in A")):
            names = [row for row in rows if row.state == state]
            names.sort(key=lambda row: -(row.total_a + row.total_b))
            for row in names[:top]:
                yield f"{'':2}{_cell(row.name)} {said}: {_times(row)}"
            if len(names) > top:
                yield f"{'':2}{len(names) - top} more {said}"
    for verdict in result.verdicts:
        if verdict.failed:
            yield f"FAILED  {printable(verdict.rule.text)}: {printable(verdict.why)}"
    if result.verdicts:
        failed = sum(verdict.failed for verdict in result.verdicts)
        yield f"{len(result.verdicts)} {'check' if len(result.verdicts) == 1 else 'checks'}, {failed or 'none'} failed"


def side_text(side):
    runs = "1 run" if len(side.runs) == 1 else f"{len(side.runs)} runs"
    traces = sum(map(len, side.runs))
    return f"{printable(side.place)}: {runs}" + (f", {traces} traces" if traces > len(side.runs) else "")


def _times(row):
    count, total = (row.count_b, row.total_b) if row.state == "new" else (row.count_a, row.total_a)
    return f"{count_text(count)}x {time_text(total)}"


def _cell(name):
    name = clip_middle(printable(name), NAME)
    return name + " " * (NAME - columns(name))


def _table(title, rows, top):
    rows.sort(key=lambda row: (-abs(row.total_b - row.total_a), row.name))
    yield f"{title:{NAME + 2}} {'A, mean':>9} {'B, mean':>9} {'change':>9} {'95 %':>16} {'p':>7}  {'a run: A':>9} {'B':>9}  count"
    for row in rows[:top]:
        yield _line(row)
    if len(rows) > top:
        changed = sum(row.is_changed() for row in rows[top:])
        yield f"  {len(rows) - top} more, {changed or 'none'} of them changed"


def _line(row):
    change = row.change["mean"]
    interval = change.interval()
    between = f"{_percent(interval[0])} .. {_percent(interval[1])}" if interval else ""
    p = "" if change.p is None else f"{change.p:.2g}" if change.p >= 0.001 else f"{change.p:.0e}"
    counts = count_text(row.count_a) + ("" if row.count_a == row.count_b else f" > {count_text(row.count_b)}")
    return (
        f"{'* ' if row.is_changed() else '  '}{_cell(row.name)} {time_text(change.a):>9} {time_text(change.b):>9} {percent_text(change.ratio):>9}"
        f" {between:>16} {p:>7}  {time_text(row.total_a):>9} {time_text(row.total_b):>9}  {counts}"
    )


def _percent(ratio):
    percent = (ratio - 1) * 100
    return f"{percent:+.1f}" if abs(percent) < 9.95 else f"{percent:+.0f}" if percent < 999.5 else "more"


def notes_of(a, b, rules):
    """What a reader should know of how far the figures reach. a, b: of diff.Side."""
    n, m = len(a.runs), len(b.runs)
    if n == m == 1:
        yield "one run of each: p tells chance within a run, not from run to run; give directories of several runs"
    elif min(n, m) == 1:
        yield "one run on one side: no p can be told"
    elif (least := least_p(n, m)) >= 0.05:
        yield f"with {n} and {m} runs p is never below {least:.2g}; with 4 and 4 it can be 0.029"
    for side in (a, b):
        cut = sum(not trace["complete"] for run in side.runs for trace in run)
        if cut:
            yield f"{side.place}: {cut} of {sum(map(len, side.runs))} traces are cut, or lost records"
    hosts = [{trace["host"] for run in side.runs for trace in run} for side in (a, b)]
    if hosts[0] != hosts[1]:
        yield "A and B were recorded on different hosts"
    tested = [rule.level for rule in rules if rule.level is not None]
    if tested and (n != 1 or m != 1) and least_p(n, m) >= max(tested):
        yield "so rules that ask for p cannot fail"


def json_of(result):
    """The same as plain values."""
    return {
        "a": _side(result.a),
        "b": _side(result.b),
        "notes": list(result.notes),
        "rows": [_row(row) for row in result.rows],
        "checks": [
            {"rule": one.rule.text, "kind": one.row.kind, "name": one.row.name, "failed": one.failed, "p": one.p, "why": one.why}
            for one in result.verdicts
        ],
        "status": result.status,
    }


def _side(side):
    return {
        "place": side.place,
        "runs": [[{key: trace[key] for key in ("path", "rank", "host", "pid", "complete")} for trace in run] for run in side.runs],
    }


def _row(row):
    found = {"kind": row.kind, "name": row.name, "state": row.state, "changed": row.is_changed()}
    for side, count, total in (("a", row.count_a, row.total_a), ("b", row.count_b, row.total_b)):
        found[side] = {"count": count, "total_ns": total}
    if row.is_in_both:
        change = row.change["mean"]
        found["a"]["mean_ns"], found["b"]["mean_ns"] = change.a, change.b
        found["ratio"] = change.ratio if math.isfinite(change.ratio) else None
        found["interval"] = change.interval()
        found["p"], found["p_holm"] = change.p, row.adjusted
    return found


def junit_of(result):
    """JUnit's XML (bytes): a test for each rule and each name that it means."""
    failures = sum(one.failed for one in result.verdicts)
    suite = ElementTree.Element("testsuite", name="xstrace-diff", tests=str(len(result.verdicts)), failures=str(failures), errors="0")
    for one in result.verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(one.rule.text), name=_xml(f"{one.row.kind} {one.row.name}"))
        if one.failed:
            ElementTree.SubElement(case, "failure", message=_xml(one.why)).text = _xml(
                f"{one.why}\nA: {result.a.place}\nB: {result.b.place}"
            )
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)


def _xml(text):
    return NOT_XML.sub("\ufffd", text)


def github_of(result):
    """Lines that GitHub makes annotations of: errors for what failed, warnings for what else has become slower for sure."""
    failed = [one for one in result.verdicts if one.failed]
    for one in failed[:ANNOTATIONS]:
        yield f"::error title={_command(one.rule.text, True)}::{_command(one.why)}"
    told = {id(one.row) for one in failed}
    slower = [row for row in result.rows if row.is_in_both and row.is_changed() and row.change["mean"].ratio > 1 and id(row) not in told]
    slower.sort(key=lambda row: row.total_a - row.total_b)
    for row in slower[:ANNOTATIONS]:
        yield f"::warning title=slower::{_command(f'{row.kind} {row.name}: mean ' + row.change['mean'].text())}"


def _command(text, is_property=False):
    text = printable(text).replace("%", "%25")
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text
