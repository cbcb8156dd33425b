"""xstrace-query: asks traces by SQL."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys

from . import answers, cli, library
from .cli import add_memory_limit, add_zstd_window, printable, said
from .convert import NoTables
from .running import SMALL, command, opened, spare, written
from .source import TraceError
from .tables import TABLES, VIEWS, open as open_tables

COMMAND = "xstrace-query"
EXAMPLES = f"""
TRACE is a file (.json, .pftrace, also .zst and .gz; of xstrace, unitrace, Kineto and others), a directory, or a pattern in
quotes. QUERY is SQL as DuckDB understands it, or the name of a query of the library (--list). Without one there is a
prompt, or SQL is read from stdin. Tables: {", ".join(TABLES)}; views of them: {", ".join(VIEWS)}. Times are in ns.

examples:
  xstrace-query app.4711.json top-kernels
  xstrace-query app.4711.json "select name, count(*), sum(dur) from calls group by name order by 3 desc limit 10"
  xstrace-query --json traces/ waits-by-rank

exit status: 0: answered; 1: answered, but not all of the traces could be read, and a line says why; 2: no answer.
"""


class Failed(ValueError):
    """The text is one line."""


def _processes(text):
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"takes a number from 1 on, not '{printable(text)}'")
    return int(text)


class Parser(cli.Parser):
    def refuse(self, text):
        raise Failed(text)


def _parser():
    parser = Parser(
        prog=COMMAND,
        usage=f"{COMMAND} [options] TRACE... [QUERY]",
        description="Asks traces by SQL.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="TRACE... [QUERY]", help="traces, and what is asked of them")
    parser.add_argument("--format", choices=answers.FORMATS, default=None, help="of the answer (default: table)")
    parser.add_argument("--json", action="store_true", help="as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the answer there; a file that is there is overwritten")
    parser.add_argument("-f", "--file", metavar="FILE", help="read the query from a file")
    parser.add_argument("--list", action="store_true", help="show the queries of the library, and end")
    parser.add_argument("--show", metavar="NAME", help="show the SQL of a query of the library, and end")
    parser.add_argument("--reduce", metavar="SQL", help="ask QUERY of each trace by itself, then this of all answers: of the table mapped")
    parser.add_argument("--processes", type=_processes, metavar="N", help="ask the traces by so many processes at a time")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="ask the traces by the workers of this Dask cluster, where they are")
    add_memory_limit(parser)
    parser.add_argument("--no-cache", action="store_true", help="do not keep the tables that are made of a trace, nor use kept ones")
    add_zstd_window(parser)
    return parser


def _is_query(word):
    if os.path.lexists(word):
        return False
    return word in library.names() or bool(re.search(r"\s", word)) or word.startswith(".")


def _split(args):
    """The traces and the query (None: none was given) of the command line."""
    words = list(args.words)
    query = None
    if args.file:
        try:
            with opened(args.file, most=SMALL, encoding="utf-8") as file:
                query = file.read()
        except (OSError, ValueError) as error:
            raise Failed(f"{printable(args.file)}: {getattr(error, 'strerror', None) or 'no text in UTF-8'}") from None
    elif len(words) > 1 and _is_query(words[-1]):
        query = words.pop()
    if not words:
        raise Failed(f"no traces given; see {COMMAND} --help")
    return words, query


def ask(tables, query):
    """DuckDB's relation of SQL or of a query of the library; None: it has no rows to show. Raises Failed."""
    if not query.strip():
        raise Failed(f"the query is empty; {COMMAND} --list shows those that have names")
    try:
        if query.strip() in library.names():
            return tables.sql(library.find(query.strip()).sql)
        return tables.sql(query)
    except Exception as error:  # DuckDB's own, which come from a module that is loaded late
        raise Failed(explain(error)) from None


def explain(error):
    """One line of what DuckDB says; anything else goes on as it is."""
    if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb") and not isinstance(error, RuntimeError):
        raise error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    place = next((i for i, line in enumerate(lines) if line.startswith("LINE ")), len(lines))
    return said(" ".join(lines[:place]))


def write_answer(relation, form, output):
    """Writes the rows of a relation; of none (None) nothing. Raises Failed, OSError, CannotWrite."""
    if relation is None:
        return
    try:
        answers.write(relation, form, output)
    except (OSError, answers.CannotWrite):
        raise
    except Exception as error:
        raise Failed(explain(error)) from None


def _show_list(form):
    queries = library.queries()
    if form == "json":
        import json

        return json.dumps([{"name": one.name, "doc": one.doc} for one in queries], indent=1)
    width = max(len(one.name) for one in queries)
    return "\n".join(f"{one.name:{width}}  {one.doc}" for one in queries)


def _run(args):
    form = "json" if args.json else args.format or "table"
    if args.json and args.format not in (None, "json"):
        raise Failed("--json and --format say different things")
    if args.list or args.show:
        print(_show_list(form) if args.list else library.find(args.show).sql, flush=True)
        return 0
    words, query = _split(args)
    if args.scheduler is not None or args.processes or args.reduce is not None:
        from . import mapped

        if query is None:
            raise Failed("--reduce, --processes and --scheduler need a query")
        return mapped.run(args, words, query, form)
    with open_tables(words, cache=not args.no_cache, memory_limit=args.memory_limit, zstd_window=args.zstd_window) as tables:
        spare([*tables.paths, args.file], [args.output])
        status = say_missing(tables)
        if query is None and sys.stdin and sys.stdin.isatty() and not args.output:
            from .prompt import Prompt

            return Prompt(tables, form).run() or status
        if query is None:
            query = sys.stdin.read() if sys.stdin else ""
        with output_of(args.output, form) as output:
            write_answer(ask(tables, query), form, output)
        return status


def say_missing(tables):
    """Lines on stderr: what of the traces is not in the tables. Returns the exit status."""
    for line in tables.faults():
        print(f"{COMMAND}: {printable(line)}", file=sys.stderr)
    return 1 if tables.missing else 0


def output_of(path, form):
    """Where the answer goes: stdout, or a file; a context manager. Raises CannotWrite for bytes on a terminal."""
    if path:
        return written(path)
    answers.refuse_terminal(form, sys.stdout.buffer)
    return contextlib.nullcontext(sys.stdout.buffer)


@command(COMMAND)
def main(argv=None):
    """The exit status."""
    try:
        return _run(_parser().parse_args(argv))
    except (Failed, TraceError, answers.CannotWrite) as error:
        print(f"{COMMAND}: {printable(str(error))}", file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{printable(error.filename)}: " if error.filename else ""
        print(f"{COMMAND}: {where}cannot write: {error.strerror or error}", file=sys.stderr)
    return 2


__all__ = ["Failed", "NoTables", "ask", "explain", "main", "output_of", "say_missing"]
