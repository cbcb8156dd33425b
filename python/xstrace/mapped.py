"""A query over many traces: asked of each by itself, by processes here or the workers of a Dask cluster, then of the answers.

What is asked of each trace is the same wherever that happens, and so is the order of the answers: the result is, too.
"""

from __future__ import annotations

import contextlib
import os

from . import convert, library, tables
from .cli import printable
from .convert import NoTables, find_traces
from .many import NAMES, shown
from .query import COMMAND, Failed, ask, explain, output_of, write_answer
from .running import spare
from .temporary import Directory
from .workers import Unavailable, workers


def map_one(path, query, number, settings):
    """Asks one trace, which has the number `number` among all. Runs anywhere.

    Returns (its answer as a Parquet file: bytes, its columns of type HUGEINT, what was amiss: list of str, is something
    missing?). Raises NoTables or Failed.
    """
    with _opened(path, settings) as one:
        one.number(number)
        try:
            relation = one.sql(query)
            if relation is None:
                raise Failed("the query of each trace has no rows to give")
            kinds = dict(zip(relation.columns, map(str, relation.types)))
            # of these Parquet would make doubles
            huge = [column for column, kind in kinds.items() if kind == "HUGEINT"]
            relation = relation.project(_replaced(huge, "decimal(38, 0)"))
            with Directory("xstrace-query.") as place:
                answer = os.path.join(place, "answer.parquet")
                relation.write_parquet(answer)
                with open(answer, "rb") as file:
                    return file.read(), huge, one.said, bool(one.missing)
        except (OSError, Failed):
            raise
        except Exception as error:
            raise Failed(explain(error)) from None


def convert_one(path, settings):
    """Makes the tables of one trace, which stay beside it."""
    with _opened(path, settings) as one:
        return None, [], one.said, bool(one.missing)


def _opened(path, settings):
    convert.prefer(settings["converter"])
    return tables.open(path, **{key: value for key, value in settings.items() if key != "converter"})


def _replaced(columns, kind):
    """All columns, these as another type."""
    names = ['"' + column.replace('"', '""') + '"' for column in columns]
    return "*" + (f" replace ({', '.join(f'{name}::{kind} as {name}' for name in names)})" if names else "")


@contextlib.contextmanager
def _pool(args, words):
    """(pool, traces, those that were named)"""
    if args.scheduler:
        with workers(args.scheduler) as pool:
            traces = pool.find(words, NAMES)
            if not traces:
                raise Failed(f"{' '.join(map(printable, words))}: no worker sees such a trace")
            yield pool, traces, {os.path.abspath(word) for word in words}
        return
    found = find_traces(words)
    with workers(None, min(args.processes or 1, len(found))) as pool:
        yield pool, [path for path, _ in found], {path for path, named in found if named}


def _halves(args, query):
    """What is asked of each trace, and of all answers; ("", what is asked of the whole database)."""
    if args.reduce:
        if query.strip() in library.names():
            return library.find(query.strip()).sql, args.reduce
        return query, args.reduce
    if query.strip() in library.names():
        found = library.find(query.strip())
        return (found.first, found.reduce) if found.reduce else ("", found.sql)
    return "", query


def run(args, words, query, form):
    """The exit status; raises what main() of query.py says."""
    try:
        return _run(args, words, query, form)
    except Unavailable as error:
        raise Failed(str(error)) from None


def _run(args, words, query, form):
    first, second = _halves(args, query)
    count = args.processes or 1
    settings = {
        "cache": not args.no_cache,
        "memory_limit": max(64 << 20, args.memory_limit // count),
        "zstd_window": args.zstd_window,
        "converter": convert.find_converter(),
        "threads": 1 if count > 1 or args.scheduler else None,
    }
    with _pool(args, words) as (pool, traces, named), Directory("xstrace-query.") as place:
        spare([*traces, args.file], [args.output])
        if not first:
            if args.no_cache:
                raise Failed("--no-cache needs --reduce, or a query of the library that has two halves")
            made, _, status = _gather(shown(pool.each(convert_one, [(path, settings) for path in traces]), len(traces)), named, None)
            with tables.open(made, memory_limit=args.memory_limit, zstd_window=args.zstd_window) as all_of_them:
                _write(ask(all_of_them, second), args, form)
            return status
        calls = [(path, first, number, settings) for number, path in enumerate(traces)]
        parts, huge, status = _gather(shown(pool.each(map_one, calls), len(traces)), named, place)
        _write(_reduce(parts, huge, second, args), args, form)
        return status


def _gather(results, named, place):
    """(files of the answers, their columns of type HUGEINT, exit status)"""
    parts, huge, status, failures = [], [], 0, []
    for path, result, error in results:
        if isinstance(error, NoTables) and path not in named:
            failures.append(str(error))  # of a directory: no trace
            _say(f"{error}; left out")
            continue
        if error:
            raise error if isinstance(error, (NoTables, Failed)) else Failed(f"{printable(path)}: {error}")
        answer, huge, said, missing = result
        for line in said:
            _say(line)
        status |= missing
        if place:
            parts.append(os.path.join(place, f"{len(parts)}.parquet"))
            with open(parts[-1], "wb") as file:
                file.write(answer)
        else:
            parts.append(path)
    if not parts:
        raise Failed(failures[0] if failures else "no traces")
    return parts, huge, int(status)


def _reduce(parts, huge, query, args):
    database = tables.database(args.memory_limit)
    files = ", ".join("'" + part.replace("'", "''") + "'" for part in parts)
    try:
        database.execute(f"create view mapped as select {_replaced(huge, 'hugeint')} from read_parquet([{files}], union_by_name = true)")
        return database.sql(query)
    except Exception as error:
        raise Failed(explain(error)) from None


def _write(relation, args, form):
    if relation is None:
        return
    with output_of(args.output, form) as output:
        write_answer(relation, form, output)


def _say(line):
    import sys

    print(f"{COMMAND}: {printable(line)}", file=sys.stderr)
