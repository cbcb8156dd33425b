"""xstrace-diff: what has become slower or faster, appeared or vanished, from one program's traces to another's. docs/DIFF.md"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys

from . import diff_out, diff_read
from .cli import Parser, add_memory_limit, add_zstd_window, put, said
from .convert import NoTables
from .diff_rows import compare
from .diff_rules import Misuse, judge, parse
from .diff_stats import holm
from .many import shown
from .running import command, is_lack_of_memory, spare, written
from .source import ZSTD_WINDOW, TraceError
from .workers import Unavailable, workers

COMMAND = "xstrace-diff"
EXAMPLES = """
A and B: a trace (.json, .pftrace, also .zst and .gz), a directory of them, or a pattern in quotes. Several traces of one program are
repeats, and the more there are the smaller a change can be told from chance. Traces of one launch, and ranks, make one run.

examples:
  xstrace-diff before.json after.json
  xstrace-diff --fail-on 'kernel +5%' --fail-on 'task step +3% p<0.05' main/ branch/
  xstrace-diff --junit diff.xml --github 'main/*.json' 'branch/*.json'

exit status: 0: no rule of --fail-on failed; 1: one did, or something of a trace was left out, and a line says what; 2: an input or an
option cannot be used.
"""

Side = collections.namedtuple("Side", "place runs")
Side.__doc__ = """place: str as given. runs: list of lists of traces, as read_trace() gives them."""

Result = collections.namedtuple("Result", "a b rows verdicts notes status")
Result.__doc__ = """a, b: Side. rows: list of Row. verdicts: list of Verdict. notes: list of str. status: 0, or 1 when a rule failed,
or something of a trace was left out."""


def diff(a, b, fail_on=(), **options):
    """Compares the traces in two places, each a str (file, directory, pattern); a Result.

    fail_on: rules, list of str. options: by_rank (bool: tell ranks apart), cache (bool), memory_limit, zstd_window (bytes), scheduler
    (str: address of a Dask cluster whose workers read the traces), say (a function that is told what is left out, a line each).
    Raises Misuse, TraceError, Unavailable.
    """
    rules = [parse(text) for text in fail_on]
    by_rank = options.pop("by_rank", False)
    sides = _read([a, b], **options)
    samples = [diff_read.samples_of(side.runs, by_rank) for side in sides]
    rows = compare(*samples, *(len(side.runs) for side in sides))
    verdicts, unused = judge(rules, rows, holm)
    if unused:
        names = ", ".join(f"'{rule.text}'" for rule in unused)
        raise Misuse(f"nothing in A or B is meant by {names}: a rule that can never fail")
    notes = list(diff_out.notes_of(*sides, rules))
    is_lossy = any(trace["is_lossy"] for side in sides for run in side.runs for trace in run)
    return Result(*sides, rows, verdicts, notes, int(is_lossy or any(one.failed for one in verdicts)))


def _read(places, cache=True, memory_limit=1 << 30, zstd_window=ZSTD_WINDOW, scheduler=None, say=lambda text: None):
    with workers(scheduler) as pool:
        paths = [diff_read.traces_of(place, pool if scheduler else None) for place in places]
        each = memory_limit // min(max(map(len, paths)), os.cpu_count() or 1)
        in_blocks = all(len(found) == 1 for found in paths)
        calls = [(path, in_blocks, cache, each, zstd_window) for found in paths for path in found]
        results, errors = {}, {}
        for path, result, error in shown(pool.each(diff_read.read_trace, calls), len(calls)):
            if error and is_lack_of_memory(error):
                raise NoTables(f"{path}: out of memory")
            if error and not isinstance(error, (TraceError, OSError)):
                raise NoTables(f"{path}: {type(error).__name__}: {error}")
            if error and path in places:
                raise error
            if error:
                errors[path] = error
            results[path] = result
    sides = []
    for place, found in zip(places, paths):
        traces = [results[path] for path in found if results[path]]
        if not traces:
            raise errors[found[0]]
        sides.append(Side(place, diff_read.runs_of(traces)))
    # of those that were cut alone a note tells
    for line in dict.fromkeys(line for result in results.values() if result and result["is_lossy"] for line in result["faults"]):
        say(line)
    for error in errors.values():
        say(f"{error}; left out")
    return sides


def _parser():
    parser = Parser(
        prog=COMMAND,
        description="What has become slower or faster, appeared or vanished, from A's traces to B's.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("a", metavar="A", help="the traces to compare with")
    add("b", metavar="B", help="the traces that are judged")
    add(
        "--fail-on",
        action="append",
        default=[],
        metavar="RULE",
        help="KIND [NAME] [mean|median|self|total|count] +5%% [p<0.05]; may be repeated",
    )
    add("--by-rank", action="store_true", help="compare what is in each rank by itself")
    add("--top", type=int, default=10, metavar="N", help="rows of each kind (default 10)")
    add("--json", action="store_true", help="all rows, as JSON")
    add("--junit", metavar="FILE", help="a test for each rule and name, as JUnit's XML")
    add("--github", action="store_true", help="annotations of GitHub's workflows, too")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers read the traces, where they are")
    add("--no-cache", action="store_true", help="do not keep the tables that are made of a trace, nor use kept ones")
    add_memory_limit(parser)
    add_zstd_window(parser)
    return parser


def _tell(text):
    print(f"{COMMAND}: {said(text)}", file=sys.stderr)


def _run(options):
    if options.junit and not options.scheduler:
        spare([path for place in (options.a, options.b) for path in diff_read.traces_of(place)], [options.junit])
    result = diff(
        options.a,
        options.b,
        options.fail_on,
        by_rank=options.by_rank,
        cache=not options.no_cache,
        memory_limit=options.memory_limit,
        zstd_window=options.zstd_window,
        scheduler=options.scheduler,
        say=_tell,
    )
    if options.junit:
        with written(options.junit) as file:
            file.write(diff_out.junit_of(result))
    lines = [json.dumps(diff_out.json_of(result), indent=1)] if options.json else list(diff_out.text_of(result, max(options.top, 0)))
    annotations = list(diff_out.github_of(result)) if options.github else []
    put(COMMAND, lines + ([] if options.json else annotations))
    if options.json and annotations:
        print("\n".join(annotations), file=sys.stderr)
    return result.status


@command(COMMAND)
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except (Misuse, TraceError, Unavailable) as error:
        _tell(error)
    return 2
