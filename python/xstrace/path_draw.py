"""Draws the longest chain into copies of its traces: a track of its own, and arrows where it goes from track to track."""

from __future__ import annotations

import json
import os

from .cli import microseconds
from .path_core import NONE
from .path_graph import CATEGORIES
from .path_report import kind_of, names_of
from .pftrace import Packets, is_perfetto, threads_in
from .pfwrite import NewPackets, framed
from .repair import Writer
from .repair_events import Changes, text_of
from .repair_read import DamagedTrace, serialized
from .running import written
from .source import Source, TraceError
from .trace import Trace

TRACK = "Critical path"
CATEGORY = "critical_path"
PID = (1 << 31) - 2  # no process has it, and devices have those from 1 << 31 on (docs/TRACE_FORMAT.md)
PERFETTO_PID = (1 << 30) - 2  # there devices have those from 1 << 30 on
TID = 1
COLLECTIVE = CATEGORIES.index("collective")
PACKINGS = (".gz", ".zst")


def draw(paths, output, graph, found, tables):
    """Writes a copy of each trace with the chain in it. Arguments are those of path_report.tell().

    paths: the traces, in the order of the tables. output: of one trace the file, in place of what is there; of several a
    directory, which is made, in which each has its name. The copy of a trace in JSON is JSON, also where that is cut or faulty.
    Raises OSError, and TraceError where a trace has no place for the events, or the copy would take its place.
    """
    if len(paths) == 1:
        return _draw(paths[0], output, _Chain(graph, found, tables, 0))
    try:
        os.makedirs(output, exist_ok=True)
    except FileExistsError:
        raise TraceError(f"{output} is a file: copies of several traces need a directory") from None
    taken = set()
    for number, path in enumerate(paths):
        name, packing = os.path.splitext(os.path.basename(path))
        name = name if packing in PACKINGS else name + packing
        stem, suffix = os.path.splitext(name)
        same = 1
        while name in taken:
            same += 1
            name = f"{stem}-{same}{suffix}"
        taken.add(name)
        _draw(path, os.path.join(output, name), _Chain(graph, found, tables, number))


def _draw(path, output, chain):
    if os.path.exists(output) and os.path.samefile(path, output):
        raise TraceError(f"{output} is the trace itself: the copy needs another name")
    source = Source(path)
    try:
        into = _into_packets if is_perfetto(source.peek()) else _into_json
        with written(output) as out:
            into(path, source, out, chain)
    finally:
        source.close()


# ---- JSON ----


def _into_json(path, source, out, chain):
    """What can be read of the trace, with the events in front of its own."""
    copy = _Copy(_FirstTrace(path, source), _Text(out), None, _Nothing())
    copy.chain = chain
    copy.run()


class _FirstTrace(DamagedTrace):
    """Of several traces in a file the first, as the tables have it."""

    def _tail(self):
        return Trace._tail(self)


class _Copy(Writer):
    """Copies as xstrace-check --repair does, so that the copy is JSON whatever the trace is; but events stay as they are."""

    def _head(self, front):
        members = serialized(front)[:-1] + "," if front else "{"
        self.out.put("[\n" if self.is_array else members + '"traceEvents":[\n')
        for event in _json_events(self.chain):
            self._put(event, 1)

    def _batch(self, batch):
        if self.trace.rewritten:
            for event in batch:
                self._put(text_of(event), 1)
        else:
            self._put(self.trace.text().strip(), len(batch))

    def _names(self):
        return ()


class _Nothing:
    """Of a repair's Mender: what was changed."""

    def __init__(self):
        self.changes = Changes()


class _Text:
    def __init__(self, out):
        self._out = out

    def put(self, text):
        self._out.write(text.encode(errors="replace"))


def _json_events(chain):
    pid = chain.free_pid(PID)
    for what in ("process_name", "thread_name"):
        yield json.dumps({"ph": "M", "name": what, "pid": pid, "tid": TID, "args": {"name": TRACK}})
    yield json.dumps({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": TID, "args": {"sort_index": -1}})
    for name, begin, end, args in chain.slices():
        event = {"ph": "X", "cat": CATEGORY, "name": name, "pid": pid, "tid": TID, "args": args}
        yield _timed(event, begin, end - begin)
    for number, (name, start, end) in enumerate(chain.arrows(), 1):
        flow = {"cat": CATEGORY, "name": name, "id": number}
        yield _timed({"ph": "s", **flow, "pid": start[0], "tid": start[1]}, start[2])
        yield _timed({"ph": "f", "bp": "e", **flow, "pid": end[0], "tid": end[1]}, end[2])


def _timed(event, begin, length=None):
    """The event as text, with its times."""
    times = f'{{"ts":{microseconds(begin)},'
    if length is not None:
        times += f'"dur":{microseconds(length)},'
    return times + json.dumps(event, separators=(",", ":"))[1:]


# ---- Perfetto's packets ----


def _into_packets(_, source, out, chain):
    """The trace's packets with new ones behind them."""
    tracks, uuids = {}, set()
    try:
        for packet in (packets := Packets(source)):
            out.write(framed(packet))
            for uuid, pid, tid in threads_in(packet):
                uuids.add(uuid)
                tracks[pid, tid] = uuid
    except (ValueError, IndexError) as error:
        raise TraceError(f"its packets cannot be read: {error}") from None
    if packets.is_cut:
        raise TraceError("its end is missing: nothing can be written behind it (xstrace-check --repair makes a whole one)")
    new = NewPackets(uuids)
    pid, process, thread = chain.free_pid(PERFETTO_PID), new.free_uuid(), new.free_uuid()
    out.write(new.process(process, pid, TRACK, -1))
    out.write(new.thread(thread, process, pid, TID, TRACK))
    for name, begin, end, args in chain.slices():
        out.write(new.slice(thread, CATEGORY, name, begin, end, args))
    # at one moment the reader takes the slice's end first, as it stands in front of this
    for number, (name, start, end) in enumerate(chain.arrows(is_before_end=True), 1):
        places = tracks.get(start[:2]), tracks.get(end[:2])
        if None not in places:
            out.write(new.point(places[0], "s", CATEGORY, name, ARROWS + number, start[2]))
            out.write(new.point(places[1], "f", CATEGORY, name, ARROWS + number, end[2]))


ARROWS = 1 << 40  # the trace counts its own from 1


class _Chain:
    """The chain's slices and arrows as one trace has them, with its pids, tids and times (ns since its base)."""

    def __init__(self, graph, found, tables, number):
        """number: the trace's, among those of the tables."""
        self._graph, self._found = graph, found
        rows = tables.sql(
            """SELECT track_id, pid, tid, threads.name, processes.name, threads.trace_id
            FROM threads JOIN processes USING (process_id)"""
        ).fetchall()
        by_id = {row[0]: row[1:] for row in rows}
        self._rows = [by_id.get(track) for track in graph.track_id.tolist()]
        self._number = number
        self._pids = {row[1] for row in rows if row[5] == number}
        base = tables.connection.execute("SELECT base_ns FROM traces WHERE trace_id = ?", [number]).fetchall()[0][0]
        self._shift = graph.base - (base or 0)
        self._first = -self._shift

    def free_pid(self, pid):
        """One that no process of the trace has: this one, or the next below."""
        while pid in self._pids:
            pid -= 1
        return pid

    def slices(self):
        """(name, begin, end, args) of the track's slices; what is alike and follows itself is one.

        A trace of ours has no times before its base, the beginning of a day: what other traces say of the day before is left out.
        """
        names = names_of(self._graph, self._found).tolist()
        steps = self._found.steps.tolist()
        piece = None
        for number in range(len(steps) - 1, -1, -1):
            begin, end, _, track, _, category = steps[number]
            what = (category, names[number], track)
            if begin == end:
                continue
            if piece and piece[0] == what:
                piece[2] = end
                continue
            if piece and piece[2] > self._first:
                yield self._slice(*piece)
            piece = [what, max(begin, self._first), end]
        if piece and piece[2] > self._first:
            yield self._slice(*piece)

    def _slice(self, what, begin, end):
        category, name, track = what
        kind = kind_of(self._graph, category, name)
        text = self._graph.names[name]
        text = text if kind in ("host", "call", "kernel", "copy", "device") else f"{kind}: {text}"
        row = None if track == NONE else self._rows[track]
        place = {key: value for key, value in (("thread", row[2]), ("process", row[3])) if value is not None} if row else {}
        return text, begin + self._shift, end + self._shift, {"kind": kind, **place}

    def arrows(self, is_before_end=False):
        """(name, (pid, tid, time), (pid, tid, time)) of steps that leave a slice for another track's.

        Those of a collective are two steps, through the collective. Arrows from or to another trace are left out. is_before_end: an arrow
        that leaves its slice at the end does so 1 ns earlier.
        """
        graph, steps = self._graph, self._found.steps.tolist()
        for at in range(len(steps) - 1, -1, -1):
            begin, end, to, track, source, category = steps[at]
            if category == COLLECTIVE and source == NONE and at + 1 < len(steps) and steps[at + 1][5] == COLLECTIVE:
                source, begin = steps[at + 1][4], steps[at + 1][0]
            if NONE in (source, to, track) or graph.track[source] == track:
                continue
            places = self._place(graph.track[source]), self._place(track)
            if None in places or not graph.begin[source] <= begin <= graph.end[source] or not graph.begin[to] <= end <= graph.end[to]:
                continue
            begin -= is_before_end and graph.begin[source] < begin == graph.end[source]
            yield CATEGORIES[category], (*places[0], int(begin) + self._shift), (*places[1], end + self._shift)

    def _place(self, track):
        """(pid, tid) of a track of this trace, or None where viewers could not find it."""
        row = self._rows[track]
        return row[:2] if row and row[4] == self._number and None not in row[:2] else None
