"""xstrace-report: the command line; work on each trace is done by workers.py, here or on a cluster."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys

from ..cli import Parser, add_memory_limit, printable, put, said
from .. import convert, places, ranks
from ..many import NAMES, shown
from ..running import command, spare, written
from ..trace import TraceError
from ..workers import Unavailable, workers
from . import page, words
from .examine import examine
from .reduce import Reduction

COMMAND = "xstrace-report"
EXAMPLE = """example:
  xstrace --chrome-call-logging --chrome-kernel-logging --chrome-itt-logging ./app
  xstrace-report -o report.html app.*.json         then open report.html in any browser
  xstrace-report --json - traces/ | jq '.findings[] | [.id, .share]'

Exit status: 0 (what was cut off a trace was never there), 1 when a trace could not be used or something of one was left out, and
a line says what, 2 when nothing could be done."""


@command(COMMAND)
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    options = _parser().parse_args(argv)
    if options.json is None and options.output is None:
        options.output = "report.html"
    try:
        return _report(options)
    except (Unavailable, TraceError) as why:
        return _fail(str(why))


def _parser():
    parser = Parser(
        prog=COMMAND,
        description="Writes one HTML page that tells why a program is slow: what the time of the traces went into, and what to do about it.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a trace, a directory of traces, or a glob")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page (report.html, without --json); - is stdout")
    parser.add_argument("--json", metavar="FILE", help="write the same as data, too; - is stdout")
    parser.add_argument("--step", metavar="NAME", help="the task that is a step of the program (found by itself where one repeats)")
    add_memory_limit(parser, "2G", "for the tables of traces, all together")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, whose workers read the traces near them (tcp://node7:8786)"
    )
    parser.add_argument("--subtract-overhead", action="store_true", help="show times without what tracing cost, where the trace tells it")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    return parser


def _report(options):
    if importlib.util.find_spec("duckdb") is None:
        raise Unavailable("needs DuckDB: pip install duckdb")
    for name in filter(None, (options.output, options.json)):
        if name != "-" and not os.path.isdir(os.path.dirname(os.path.abspath(name))):
            raise Unavailable(f"{printable(name)}: no such directory")
    given = [path for place in options.traces for path in _expanded(place)]
    if options.scheduler is None and (missing := [place for place in given if not os.path.exists(place)]):
        raise Unavailable(f"{said(missing[0])}: no such file or directory")
    with workers(options.scheduler) as pool:
        others = dict(ranks.no_files(given, NAMES)) if options.scheduler is None else {}
        pipes = [place for place in given if others.pop(place, None)]  # each is read once: so they may be named
        paths = pool.find(given, NAMES) + pipes
        if not paths:
            raise Unavailable(f"no traces in {said(', '.join(options.traces))}" + "".join(f"; {said(path)}: {others[path]}" for path in list(others)[:1]))
        spare(paths, (options.output, options.json))
        reduction = _reduced(pool, paths, options)
    for path, why in others.items():
        reduction.unusable(path, f"{why}; left out")
    data = reduction.finish()
    if not data["processes"]:
        for row in data["unusable"]:
            print(f"{COMMAND}: {printable(row['path'])}: {said(row['why'])}", file=sys.stderr)
        raise Unavailable(
            "none of the traces could be used"
            if data["unusable"]
            else "no trace has a call, a task or device work: there is nothing to report"
        )
    if options.json:
        _write(options.json, json.dumps(data, indent=1) + "\n")
    if options.output:
        _write(options.output, page.render(data))
    for row in data["unusable"] + data["left_out"]:
        print(f"{COMMAND}: {printable(row['path'])}: {said(row['why'])}", file=sys.stderr)
    _tell(data, options)
    named = {os.path.abspath(place) for place in options.traces}
    return int(reduction.is_lossy or any(row["path"] in named or row["path"] in others for row in data["unusable"]))


def _expanded(place):
    """A glob that the shell has left alone, as the files that it names."""
    return [place] if os.path.exists(place) else places.matching(place) or [place]


def _reduced(pool, paths, options):
    at_once = min(os.cpu_count() or 1, len(paths))
    settings = {
        "memory_limit": options.memory_limit // at_once,
        "threads": max((os.cpu_count() or 1) // at_once, 1),
        "converter": convert.find_converter(),
        "step": options.step,
        "subtract": options.subtract_overhead,
    }
    reduction = Reduction(_version(), options.subtract_overhead)
    calls = ((path, settings) for path in paths)
    results = pool.each(examine, list(calls))
    for path, part, error in results if options.quiet else shown(results, len(paths)):
        if error is None:
            reduction.add(part)
        elif isinstance(error, (OSError, TraceError)):
            why = getattr(error, "strerror", None) or str(error)
            reduction.unusable(path, why.removeprefix(f"{printable(path)}: "))
        else:
            raise error
    return reduction


def _version():
    from .. import __version__

    return __version__


def _write(name, text):
    if name == "-":
        put(COMMAND, [text.removesuffix("\n")])
        return
    with written(name, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _tell(data, options):
    """The findings in a line each, for who looks at the terminal alone."""
    if options.output in (None, "-") or options.json == "-":
        return
    for finding in data["findings"]:
        print(f"{words.share(finding['share']):>7} {printable(finding['title'])}: {said(finding['text'])}")
    print(f"{COMMAND}: {len(data['traces'])} trace(s), {len(data['findings'])} finding(s) in {printable(options.output)}")


def _fail(text):
    print(f"{COMMAND}: {text}", file=sys.stderr)
    return 2
