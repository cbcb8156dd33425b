"""xstrace-path: the longest chain through a run, and how long the run were if parts of it took more or less."""

from __future__ import annotations

import argparse
import json
import sys

from .cli import Parser, add_memory_limit, printable, put, said
from .running import command, is_lack_of_memory
from .source import ZSTD_WINDOW, TraceError
from .tables import explained
from .workers import Unavailable

EXAMPLE = """example:
  xstrace-path all.json --what-if 'kernel gemm x0.5' --what-if 'launch latency x0'
  xstrace-path all.json -o with-path.json      # a copy in which the chain is a track
  xstrace-path traces/ -o with-path/           # copies of several

A change is [KIND] PATTERN xFACTOR. KIND: task, call, host, kernel, copy, device, launch latency, queueing, wake-up,
message, collective, waiting, start, join or idle; without it, all own time of what has the name. docs/PATH.md has more.
Exit status: 0 done (what was cut off a trace was never there), 1 done, but something of a trace was left out, and a line says
what, 2 a file, a change or a program could not be used."""


def critical_path(paths, what_if=(), *, halves=20, memory_limit=None):
    """The longest chain through the run in these traces, and its length with changes.

    paths: str or list of str, as for xstrace.open(). what_if: list of str such as "kernel gemm x0.5". halves: for so
    many names with the largest shares the run's length is found with half of their time. memory_limit: bytes, as for
    open(). Returns a dict (docs/PATH.md). Raises OSError; TraceError where a trace, a change or a program cannot be used.
    """
    with _tables(paths, memory_limit) as tables:
        return _examine(tables, what_if, halves)[0]


def _tables(paths, memory_limit):
    from .tables import open as open_tables

    return open_tables(paths, **({"memory_limit": memory_limit} if memory_limit else {}))


def _convert(options):
    """By the workers of a cluster: the tables, which are kept beside the traces."""
    from . import convert, mapped
    from .many import NAMES, shown
    from .workers import workers

    settings = {"cache": True, "memory_limit": options.memory_limit, "zstd_window": ZSTD_WINDOW, "threads": 1}
    with workers(options.scheduler) as pool:
        calls = [(path, {**settings, "converter": convert.find_converter()}) for path in pool.find(options.traces, NAMES)]
        for _ in shown(pool.each(mapped.convert_one, calls), len(calls)):
            pass  # what cannot be read is said when the tables are opened


def _examine(tables, what_if, halves):
    """(dict, Graph, Found)"""
    try:
        from . import path_core, path_graph, path_report, path_rules
    except ImportError as error:
        if is_lack_of_memory(error):
            raise MemoryError from None
        raise TraceError(f"the Python package {error.name} is missing: pip install {error.name}") from None
    for text in what_if:
        path_rules.parse_rule(text)
    if len(what_if) > path_rules.MOST_RULES:
        raise TraceError(f"at most {path_rules.MOST_RULES} changes at once")
    with explained():
        graph = path_graph.make_graph(tables)
        titles = _titles(tables, graph)
    if not len(graph.begin):
        raise TraceError("the trace holds no slices of threads or devices")
    rules = [path_rules.make_rule(text, graph) for text in what_if]
    found = path_core.ask(graph, rules, path_report.scenarios_of(rules), halves)
    return path_report.tell(graph, found, rules, titles), graph, found


def _titles(tables, graph):
    """What people call the processes, in the order of the graph's numbers."""
    rows = tables.sql("SELECT process_id, name, rank, pid FROM processes").fetchall()
    names = {number: name or f"pid {pid}" for number, name, _, pid in rows}
    return [str(names.get(number, number)) for number in graph.process_id.tolist()]


def _options(argv):
    parser = Parser(
        prog="xstrace-path",
        description="The longest chain of what had to wait for what, from a run's end back to its begin: by kind, by name, "
        "and as a track; and how long the run were if parts of it took more or less time.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="of one run: a trace, or several of one host")
    parser.add_argument("--what-if", action="append", default=[], metavar="CHANGE", help="such as 'MPI_* x0'; may be given several times")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write a copy of the trace with the chain as a track; of several traces, into this directory"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--top", type=_count, default=12, metavar="N", help="rows of each table (default 12)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers convert the traces, where they are")
    add_memory_limit(parser)
    return parser.parse_args(argv)


def _count(text):
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"takes a number from 1 to 4096, not '{printable(text)}'")
    return int(text)


@command("xstrace-path")
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    options = _options(argv)
    try:
        if options.scheduler:
            _convert(options)
        with _tables(options.traces, options.memory_limit) as tables:
            for line in tables.faults():
                print(f"xstrace-path: {said(line)}", file=sys.stderr)
            told, graph, found = _examine(tables, options.what_if, options.top)
            if options.output:
                from .path_draw import draw

                with explained():
                    draw(tables.paths, options.output, graph, found, tables)
            with explained():
                status = int(tables.is_lossy())
    except BrokenPipeError:
        raise
    except (TraceError, Unavailable, OSError) as error:
        print(f"xstrace-path: {said(_reason(error, options.output))}", file=sys.stderr)
        return 2
    from .path_report import show

    notes = _notes(told)
    if options.json:
        told["notes"] = notes
        put("xstrace-path", [json.dumps(told)])
    else:
        put("xstrace-path", [*(f"[WARNING] {note}" for note in notes), *show(told, options.top)])
    return status


def _reason(error, output):
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename or output}: {error.strerror or error}"


def _notes(told):
    """What does not fit together in the trace."""
    says = {
        "late": "arrows arrive before they leave (clocks differ: xstrace-merge puts them right); they are left out",
        "circular": "arrows contradict each other; they are left out",
        "overlaps": "slices overlap on one track; each is cut at the end of the one before",
    }
    return [f"{told['graph'][key]} {text}" for key, text in says.items() if told["graph"][key]]
