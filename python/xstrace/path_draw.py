"""Draws the longest chain into a copy of its trace: a track of its own, and arrows where it goes from track to track."""

from __future__ import annotations

import json
import os
import re

from .cli import microseconds
from .path_core import NONE
from .path_graph import CATEGORIES
from .path_report import kind_of, names_of
from .pftrace import is_perfetto
from .running import written
from .source import Source, TraceError

TRACK = "Critical path"
PID = (1 << 31) - 2  # no process has it, and devices have those from 1 << 31 on (docs/TRACE_FORMAT.md)
TID = 1
EVENTS = re.compile(rb'\A\s*\[|(?<!\\)"traceEvents"\s*:\s*\[')
HEAD_MAX = 64 << 20  # of the members in front of the events
COLLECTIVE = CATEGORIES.index("collective")


def draw(path, output, graph, found, tables):
    """Writes into the file `output` a copy of the trace `path` with the chain in it, in place of what is there.

    Arguments are those of path_report.tell(). Raises OSError, and TraceError where the trace's format has no place
    for events of others or `output` is the trace itself.
    """
    if os.path.exists(output) and os.path.samefile(path, output):
        raise TraceError(f"{output} is the trace itself: the copy needs another name")
    source = Source(path)
    try:
        if is_perfetto(source.peek()):
            raise TraceError("-o draws into traces in JSON, not into Perfetto's format")
        with written(output) as out:
            _copy(source, out, _events(graph, found, tables))
    finally:
        source.close()


def _copy(source, out, events):
    """The trace's text with the events in front of its own."""
    text = b""
    while chunk := source.read():
        text += chunk
        found = EVENTS.search(text)
        if found and text[found.end() :].strip():
            break
        if len(text) > HEAD_MAX:
            raise TraceError("no events in its first 64 MiB")
    else:
        raise TraceError("no events")
    out.write(text[: found.end()] + b"\n")
    rest = text[found.end() :]
    between = b"" if rest.lstrip().startswith(b"]") else b",\n"
    first = True
    for event in events:
        out.write((b"" if first else b",\n") + event.encode())
        first = False
    out.write((b"" if first else between) + rest.lstrip())
    while chunk := source.read():
        out.write(chunk)


def _events(graph, found, tables):
    """The lines of the chain's events."""
    places = _Places(graph, tables)
    pid = places.free_pid()
    for what, key in (("process_name", TRACK), ("thread_name", TRACK)):
        yield json.dumps({"ph": "M", "name": what, "pid": pid, "tid": TID, "args": {"name": key}})
    yield json.dumps({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": TID, "args": {"sort_index": -1}})
    names = names_of(graph, found).tolist()
    steps = found.steps.tolist()
    piece = None
    for number in range(len(steps) - 1, -1, -1):
        begin, end, _, track, _, category = steps[number]
        if begin == end:
            continue
        what = (category, names[number], track)
        if piece and piece[0] == what:
            piece[2] = end
            continue
        if piece:
            yield _slice(piece, graph, places, pid)
        piece = [what, begin, end]
    if piece:
        yield _slice(piece, graph, places, pid)
    yield from _arrows(steps, graph, places)


def _slice(piece, graph, places, pid):
    (category, name, track), begin, end = piece
    kind = kind_of(graph, category, name)
    text = graph.names[name] if kind in ("host", "call", "kernel", "copy", "device") else f"{kind}: {graph.names[name]}"
    args = {"kind": kind, **places.about(track)}
    return _event({"ph": "X", "cat": "critical_path", "name": text, "pid": pid, "tid": TID, "args": args}, begin, places, end)


def _arrows(steps, graph, places):
    """Of steps that leave a slice for another track's; those of a collective are two steps, through the collective."""
    number = 0
    for at in range(len(steps) - 1, -1, -1):
        begin, end, to, track, source, category = steps[at]
        if category == COLLECTIVE and source == NONE and at + 1 < len(steps) and steps[at + 1][5] == COLLECTIVE:
            source, begin = steps[at + 1][4], steps[at + 1][0]
        ends = places.of_slice(source), places.of_track(track)
        if source == NONE or to == NONE or track == NONE or None in ends or graph.track[source] == track:
            continue
        if not graph.begin[source] <= begin <= graph.end[source] or not graph.begin[to] <= end <= graph.end[to]:
            continue
        number += 1
        flow = {"cat": "critical_path", "name": CATEGORIES[category], "id": number}
        yield _event({"ph": "s", **flow, "pid": ends[0][0], "tid": ends[0][1]}, begin, places)
        yield _event({"ph": "f", "bp": "e", **flow, "pid": ends[1][0], "tid": ends[1][1]}, end, places)


def _event(event, begin, places, end=None):
    """The event as text, with its times."""
    times = f'{{"ts":{microseconds(begin + places.shift)},'
    if end is not None:
        times += f'"dur":{microseconds(end - begin)},'
    return times + json.dumps(event, separators=(",", ":"))[1:]


class _Places:
    """Which pid and tid the graph's tracks have in the trace. shift: from the graph's times to the trace's, ns."""

    def __init__(self, graph, tables):
        rows = tables.sql(
            """SELECT track_id, pid, tid, threads.name, processes.name
            FROM threads JOIN processes USING (process_id)"""
        ).fetchall()
        by_id = {row[0]: row[1:] for row in rows}
        self._rows = [by_id.get(track) for track in graph.track_id.tolist()]
        self._track = graph.track
        self._pids = {row[1] for row in rows}
        base = tables.sql("SELECT base_ns FROM traces").fetchall()[0][0]
        self.shift = graph.base - (base or 0)

    def free_pid(self):
        pid = PID
        while pid in self._pids:
            pid -= 1
        return pid

    def of_track(self, track):
        """(pid, tid), or None where viewers could not find it."""
        row = None if track == NONE else self._rows[track]
        return row[:2] if row and row[0] is not None and row[1] is not None else None

    def of_slice(self, number):
        return None if number == NONE else self.of_track(self._track[number])

    def about(self, track):
        """What a step's args say of its place."""
        row = None if track == NONE else self._rows[track]
        return {"thread": row[2], "process": row[3]} if row else {}
