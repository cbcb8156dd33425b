"""What is done with each rank's trace by itself, where the file is; its results are small.

Every function takes a path and plain values and returns plain values, so that it can run in another
process, here or on another machine (workers.py).
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os

from . import places
from .check import inspect_trace
from .cli import microseconds
from .halves import Halves
from .running import loading, written
from .trace import Fault, events_of, fault_of, open_trace

NAMES = ("*.json", "*.json.zst", "*.json.gz")
ROWS = 65536  # of a group in a Parquet file
INT64 = range(-(1 << 63), 1 << 63)


def find(given, names=NAMES):
    """The traces among `given`, each once: files, the files in directories and below that have such names, and those of patterns.

    Returns {path: what tells whether two machines see the same file}.
    """
    found, met = {}, set()
    for place in given:
        for path in places.meant(place, names):
            one = places.identity(path)
            if os.path.isfile(path) and one not in met:
                met.add(one)
                path = os.path.abspath(path)
                status = os.stat(path)
                found[path] = (status.st_size, status.st_mtime_ns)
    return found


def no_files(given, names=NAMES):
    """What find() passes over though it is there: (path, why) of each pipe, socket and device that is named, or lies with such a name in
    a directory. Nobody may ever write into those, so they are not looked into."""
    for place in given:
        for path in places.meant(place, names):
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
                yield path, "no file" if path != place else "a pipe or a device, which cannot be read more than once"


def check(path):
    """Two lists of str, problems and notes: what xstrace-check says of the file. Second: the Fault that the other functions give, too; here these tell it."""
    report = inspect_trace(path)
    return (report.problems, report.notes), Fault("", False)


def statistics(path):
    """What the rank did, how often and how long: a dict for JSON. Second: the trace's Fault."""
    totals = {}
    events = last = 0
    with open_trace(path) as trace:
        halves = Halves(trace)
        for event in events_of(trace):
            events += 1
            phase = event["ph"]
            if phase != "M":
                last = max(last, event["ts"] + (event["dur"] if phase == "X" else 0))
            if phase == "B" or phase == "E":
                event = halves.take(event)
            elif phase != "X":
                continue
            if event:
                _add(totals, event)
        for event in halves.rest(last):
            _add(totals, event)
        about = _about(trace)
    rows = sorted(totals.items(), key=lambda row: (-row[1][1], row[0]))
    keys = ("count", "total_ns", "min_ns", "max_ns")
    named = [{"cat": key[0], "name": key[1], **dict(zip(keys, row))} for key, row in rows]
    return {**about, "file": path, "events": events, "totals": named}, fault_of(trace)


def _add(totals, event):
    key = str(event.get("cat", "")), str(event.get("name", ""))
    ns = event["dur"]
    total = totals.get(key)
    if total is None:
        totals[key] = [1, ns, ns, ns]
        return
    total[0] += 1
    total[1] += ns
    total[2] = min(total[2], ns)
    total[3] = max(total[3], ns)


def mpi_calls(path):
    """The trace without all that says nothing about clocks: its MPI calls and communicators, as a gzip file (bytes). Second: its Fault."""
    with open_trace(path) as trace:
        lines = []
        for event in events_of(trace):
            phase, name = event.get("ph"), event.get("name")
            is_call = phase == "X" and type(name) is str and name.startswith("MPI")
            if is_call or (phase == "M" and name in ("process_name", "communicator")):
                lines.append(_line(event))
        keys = ("displayTimeUnit", "baseTimeNanoseconds", "metadata", "distributedInfo", "schemaVersion")
        head = {key: trace.header[key] for key in keys if key in trace.header}
    text = json.dumps(head)[:-1] + (", " if head else "") + '"traceEvents":[\n'
    return gzip.compress((text + ",\n".join(lines) + "\n]}\n").encode(), 1), fault_of(trace)


def to_parquet(path, target, clock):
    """Writes the events into the file `target`, a row each; returns their number, and the trace's Fault.

    clock: the file's entry of a merged trace's otherData.inputs, or None. Times are ns since the
    epoch, by that clock. `target` is there when it is whole, and nothing is overwritten.
    """
    with loading():
        import pyarrow as arrow
        from pyarrow import parquet

    schema = arrow.schema(
        [(name, arrow.string()) for name in ("host", "ph", "cat", "name", "tid", "args")]
        + [(name, arrow.int64()) for name in ("rank", "ts_ns", "dur_ns")]
        + [("pid", arrow.string())]
    )
    if os.path.exists(target):
        raise FileExistsError(f"{target} is there already")
    rows = 0
    with contextlib.ExitStack() as stack:
        trace = stack.enter_context(open_trace(path))
        events = events_of(trace)
        first = list(itertools.islice(events, 1))  # of what is no trace not even a directory is made
        os.makedirs(os.path.dirname(target), exist_ok=True)
        file = stack.enter_context(written(target))
        out = stack.enter_context(parquet.ParquetWriter(file, schema, compression="zstd"))
        group = []
        about = _about(trace)
        for event in itertools.chain(first, events):
            if event.get("ph") == "M":
                continue
            group.append(_row(event, about, trace.base_ns or 0, clock))
            if len(group) == ROWS:
                out.write_table(arrow.Table.from_pylist(group, schema))
                rows += len(group)
                group = []
        out.write_table(arrow.Table.from_pylist(group, schema))
        rows += len(group)
    return rows, fault_of(trace)


def true_time(clock, time):
    """The time on the merged trace's timeline; clock as in to_parquet()."""
    pieces = clock.get("pieces", ())
    low, high = 0, len(pieces)  # those before low have begun, those from high on have not
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if pieces[middle]["from_ns"] <= time else (low, middle)
    piece = pieces[low - 1] if low else clock
    return time + piece["offset_ns"] + round(piece["drift_ppm"] * (time - piece["from_ns"]) / 1e6)


def _about(trace):
    metadata = trace.metadata
    distributed = trace.header.get("distributedInfo")
    rank = metadata.get("rank")
    if rank is None and type(distributed) is dict:
        rank = distributed.get("rank")
    return {"host": _text(metadata.get("host")), "rank": _int64(rank), "pid": metadata.get("pid")}


def _text(value):
    """As a column or a report can hold it: without halves of surrogate pairs."""
    return None if value is None else str(value).encode(errors="replace").decode()


def _int64(value):
    return value if type(value) is int and value in INT64 else None


def _line(event):
    """The event as it stood in the file: times in microseconds."""
    event = dict(event)
    times = [f'"{key}":{microseconds(event.pop(key))}' for key in ("ts", "dur") if type(event.get(key)) is int]
    return "{" + ",".join(times + [json.dumps(event, separators=(",", ":"))[1:]])


def _row(event, about, base, clock):
    start, length = event.get("ts"), event.get("dur")
    if type(start) is int:
        end = start + base + (length if type(length) is int else 0)
        start += base
        if clock and start in INT64 and end in INT64:
            start, end = true_time(clock, start), true_time(clock, end)
        length = end - start if type(length) is int else None
    else:
        start = length = None
    args = event.get("args")
    row = {"host": about["host"], "rank": about["rank"], "ts_ns": _int64(start), "dur_ns": _int64(length)}
    for key in ("ph", "cat", "name", "pid", "tid"):
        row[key] = _text(event.get(key))
    row["args"] = None if args is None else json.dumps(args, separators=(",", ":"))
    return row


__all__ = ["check", "find", "mpi_calls", "no_files", "statistics", "to_parquet", "true_time"]
