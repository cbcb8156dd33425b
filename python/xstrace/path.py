"""xstrace-path: the longest chain through a run, and how long the run were if parts of it took more or less."""

from __future__ import annotations

import argparse
import json
import os
import sys

from .cli import add_memory_limit, printable, put, said
from .running import command
from .source import TraceError

EXAMPLE = """example:
  xstrace-path all.json --what-if 'kernel gemm x0.5' --what-if 'launch latency x0'
  xstrace-path all.json -o with-path.json      # a copy in which the chain is a track

A change is [KIND] PATTERN xFACTOR. KIND: task, call, host, kernel, copy, device, launch latency, queueing, wake-up,
message, collective, waiting, start, join or idle; without it, all own time of what has the name. docs/PATH.md has more.
Exit status: 0 done, 2 a file, a change or a program could not be used."""


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


def _examine(tables, what_if, halves):
    """(dict, Graph, Found)"""
    try:
        from . import path_core, path_graph, path_report, path_rules
    except ImportError as error:
        raise TraceError(f"the Python package {error.name} is missing: pip install {error.name}") from None
    for text in what_if:
        path_rules.parse_rule(text)
    if len(what_if) > path_rules.MOST_RULES:
        raise TraceError(f"at most {path_rules.MOST_RULES} changes at once")
    graph = _graph(tables, path_graph)
    if not len(graph.begin):
        raise TraceError("the trace holds no slices of threads or devices")
    rules = [path_rules.make_rule(text, graph) for text in what_if]
    found = path_core.ask(graph, rules, path_report.scenarios_of(rules), halves)
    return path_report.tell(graph, found, rules, _titles(tables, graph)), graph, found


def _graph(tables, path_graph):
    import duckdb

    try:
        return path_graph.make_graph(tables)
    except duckdb.OutOfMemoryException:
        raise TraceError("its tables need more memory: raise --memory-limit, or make room in $TMPDIR") from None
    except duckdb.Error as error:
        raise TraceError(f"its tables cannot be read: {str(error).splitlines()[0]}") from None


def _titles(tables, graph):
    """What people call the processes, in the order of the graph's numbers."""
    rows = tables.sql("SELECT process_id, name, rank, pid FROM processes").fetchall()
    names = {number: name or f"pid {pid}" for number, name, _, pid in rows}
    return [str(names.get(number, number)) for number in graph.process_id.tolist()]


def _options(argv):
    parser = argparse.ArgumentParser(
        prog="xstrace-path",
        description="The longest chain of what had to wait for what, from a run's end back to its begin: by kind, by name, "
        "and as a track; and how long the run were if parts of it took more or less time.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="of one run: a trace, or several of one host")
    parser.add_argument("--what-if", action="append", default=[], metavar="CHANGE", help="such as 'MPI_* x0'; may be given several times")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a copy of the trace with the chain as a track")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--top", type=_count, default=12, metavar="N", help="rows of each table (default 12)")
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
        if options.output and (len(options.traces) > 1 or os.path.isdir(options.traces[0])):
            raise TraceError("-o draws into one trace: make one of several with xstrace-merge")
        with _tables(options.traces, options.memory_limit) as tables:
            for line in tables.said:
                print(f"xstrace-path: {said(line)}", file=sys.stderr)
            told, graph, found = _examine(tables, options.what_if, options.top)
            if options.output:
                from .path_draw import draw

                draw(tables.paths[0], options.output, graph, found, tables)
    except BrokenPipeError:
        raise
    except (TraceError, OSError, MemoryError) as error:
        print(f"xstrace-path: {said(_reason(error, options.output))}", file=sys.stderr)
        return 2
    from .path_report import show

    notes = _notes(told)
    if options.json:
        told["notes"] = notes
        put("xstrace-path", [json.dumps(told)])
    else:
        put("xstrace-path", [*(f"[WARNING] {note}" for note in notes), *show(told, options.top)])
    return 0


def _reason(error, output):
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__
    return f"{error.filename or output}: {error.strerror or error}"


def _notes(told):
    """What does not fit together in the trace."""
    says = {
        "late": "arrows arrive before they leave (clocks differ: xstrace-merge puts them right); they are left out",
        "circular": "arrows contradict each other; they are left out",
        "overlaps": "slices overlap on one track; each is cut at the end of the one before",
    }
    return [f"{told['graph'][key]} {text}" for key, text in says.items() if told["graph"][key]]
