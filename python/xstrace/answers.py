"""The answer of a query, as text for people and for programs."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import math
import os
import shutil
import sys

from .cli import clip_middle, columns, printable
from .running import loading
from .temporary import Directory

FORMATS = ("table", "csv", "json", "parquet", "arrow")
BINARY = ("parquet", "arrow")
PIECE = 10_000  # rows at once
WIDEST = 60  # columns of a text in a table
NUMBERS = (int, float, decimal.Decimal)


class CannotWrite(Exception):
    """The text is one line."""


def write(relation, form, out):
    """Writes the rows of DuckDB's relation to `out`, a binary file. Raises CannotWrite, OSError."""
    if form in BINARY:
        {"parquet": _parquet, "arrow": _arrow}[form](relation, out)
        return
    rows = {"table": _table, "csv": _csv, "json": _json}[form](relation)
    for text in map(_harmless, rows) if out.isatty() else rows:
        out.write(text.encode(errors="backslashreplace"))
    out.flush()


def _harmless(text):
    """CSV or JSON as a terminal may get it: what is no character to be seen, and no end of a line, in JSON's way (\u001b)."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def rows_of(relation):
    """Pieces of the rows: lists of tuples."""
    reader = getattr(relation, "iter_rows", None)
    if reader is None:
        while piece := relation.fetchmany(PIECE):
            yield piece
        return
    piece = []
    for row in reader():
        piece.append(row)
        if len(piece) == PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def shown(value):
    """A value as a cell of a table: one line, safe for a terminal."""
    if value is None:
        return ""
    if type(value) is float:
        return f"{value:.6g}" if value == value else "nan"
    return printable(plain(value) if not isinstance(value, (dict, list)) else json.dumps(value, default=plain))


def plain(value):
    """A value as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (datetime.date, datetime.time, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return str(value)


def _table(relation):
    """Columns are as wide as the first piece of rows needs."""
    names = [printable(name) for name in relation.columns]
    pieces = rows_of(relation)
    first = next(pieces, [])
    right = [all(value is None or isinstance(value, NUMBERS) and type(value) is not bool for value in values) for values in zip(*first)]
    texts = [[clip_middle(shown(value), WIDEST) for value in row] for row in first]
    widths = [max(map(columns, values)) for values in zip(names, *texts)]

    def line(cells):
        padded = []
        for cell, width, is_right in zip(cells, widths, right or [False] * len(names)):
            fill = " " * (width - columns(cell))
            padded.append(fill + cell if is_right else cell + fill)
        return "  ".join(padded).rstrip() + "\n"

    yield line(names)
    yield line(["-" * width for width in widths])
    yield from map(line, texts)
    for piece in pieces:
        yield "".join(line([clip_middle(shown(value), WIDEST) for value in row]) for row in piece)


def _csv(relation):
    class Line:
        def write(self, text):
            self.text = text

    line = Line()
    writer = csv.writer(line, lineterminator="\n")
    writer.writerow(relation.columns)
    yield line.text
    for piece in rows_of(relation):
        for row in piece:
            writer.writerow(["" if value is None else value for value in map(_cell, row)])
            yield line.text


def _cell(value):
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _distinct(columns):
    """The names of columns, each but once: of a, a the second is a_1."""
    found = []
    for name in columns:
        number, new = 0, name
        while new in found or number and new in columns:
            number += 1
            new = f"{name}_{number}"
        found.append(new)
    return found


def _json(relation):
    names = _distinct(relation.columns)
    between = "["
    for piece in rows_of(relation):
        for row in piece:
            yield between + "\n" + json.dumps(dict(zip(names, map(plain, row))), ensure_ascii=False, allow_nan=False)
            between = ","
    yield "\n]\n" if between == "," else "[]\n"


def _parquet(relation, out):
    """Through a file of its own: DuckDB writes to names alone."""
    with Directory("xstrace-query.") as place:
        path = os.path.join(place, "answer.parquet")
        relation.write_parquet(path)
        with open(path, "rb") as file:
            shutil.copyfileobj(file, out)
    out.flush()


def _arrow(relation, out):
    """Arrow's IPC stream."""
    try:
        with loading():
            import pyarrow
    except ImportError:
        raise CannotWrite("--format arrow needs pyarrow: pip install pyarrow") from None
    reader = relation.fetch_arrow_reader(PIECE)
    with pyarrow.ipc.new_stream(out, reader.schema) as stream:
        for batch in reader:
            stream.write_batch(batch)
    out.flush()


def refuse_terminal(form, out):
    """Raises CannotWrite where bytes would go to a terminal."""
    if form in BINARY and out is sys.stdout.buffer and out.isatty():
        raise CannotWrite(f"--format {form} is no text: name a file with -o, or redirect the output")
