"""xstrace-check --repair: a valid trace from one that was cut or is faulty, and what was changed.

The file is read twice: what is wrong with slices and arrows is known only when all have been seen. The second pass copies the text of
the events that stay as they are.
"""

from __future__ import annotations

import collections
import contextlib
import gzip
import os
import shutil
import subprocess

from .check import DAMAGE, DAY_NS
from .repair_events import Changes, Mender, text_of
from .repair_read import open_damaged, serialized
from .repair_tracks import Tracks
from .source import ZSTD_WINDOW, TraceError

PIECE = 1 << 20  # of text, in one zstd frame
SUFFIXES = (".json", ".pftrace")
PACKINGS = (".zst", ".gz")

Repaired = collections.namedtuple("Repaired", "path events changes notes")
Repaired.__doc__ = """What repair_trace() did.

path: str, the new file. events: int, in the new file. changes: list of str, a line for each kind of change with its count and where;
[]: the events are those of the file. notes: list of str, what a reader should know.
"""


def repair_trace(path, target=None, zstd_window=ZSTD_WINDOW):
    """Writes a valid trace of what is left of the one in `path`, which stays as it is.

    path: a file (not a pipe: it is read twice). target: str, the new file, which must not exist; its suffix (.json, .json.gz, .json.zst)
    says how it is packed. None: beside `path`, called `<name>.repaired.json`, packed as that is; a taken name gets a number.
    Returns a Repaired. Raises OSError where a file cannot be read or written, TraceError where there is nothing to repair.
    """
    if not os.path.isfile(path):
        raise TraceError("only a file can be repaired: it is read twice" if os.path.exists(path) else "No such file or directory")
    changes = Changes()
    before = _state(path)
    tracks, mender = _analyse(path, zstd_window)
    with _new_file(path, target) as out, open_damaged(path, zstd_window) as trace:
        tracks.changes = changes
        writer = Writer(trace, out, tracks, Mender(trace, changes, mender.shift))
        try:
            writer.run()
        except LookupError:  # what the first pass has not met
            if _state(path) == before:
                raise
        if _state(path) != before:
            raise TraceError("was changed while it was read")
        if not writer.events and not trace.ours:
            raise TraceError("no event of it can be used")
    _tell_damage(trace, changes)
    return Repaired(out.path, writer.events, changes.lines(), writer.notes)


def _state(path):
    """What both readings must find the same."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


DONE = {
    "json": "left out, or null for what is no number",
    "control character": "escaped",
    "utf-8": "U+FFFD stands for what is not",
    "comma": "put, or taken away",
    "tail": "left out",
    "compression": "what is behind it is lost",
    "packets": "left out",
}


def _tell_damage(trace, changes):
    """What was not even JSON."""
    changes.count += trace.escaped + trace.documents - 1
    if trace.escaped:
        changes.add_many("quotes in names were escaped", trace.escaped, [])
    if trace.documents > 1:
        changes.add_many("traces behind the end of the first were joined with it", trace.documents - 1, [])
    for kind, count in trace.damaged.items():
        count -= {"json": trace.escaped, "tail": trace.documents - 1}.get(kind, 0)
        changes.count += count
        if count:
            places = [one for one in trace.damage if one.kind == kind]
            some = (
                [f"line {one.line}" + (f": {one.detail}" if one.detail else "") for one in places] if count == trace.damaged[kind] else []
            )
            changes.add_many(f"{DAMAGE[kind]}: {DONE[kind]}", count, some)


def _analyse(path, zstd_window):
    """The first pass: the tracks, solved, and the mender."""
    untold = Changes()
    untold.told = False
    with open_damaged(path, zstd_window) as trace:
        mender = Mender(trace, untold, _shift_of(trace))
        tracks = Tracks(untold, exact=trace.ours)
        feed, mend = tracks.feed, mender.mend
        some = trace.ours
        for batch in trace.batches():
            some = True
            for event in batch:
                event = mend(event)
                if event is not None:
                    feed(event)
    if not some:
        raise TraceError("empty" if trace.is_blank else "no event of it can be read")
    tracks.solve(trace.documents)
    return tracks, mender


def _shift_of(trace):
    """ns by which the times of a trace of ours move when its base becomes the beginning of a day, as it should be."""
    base = trace.base_ns
    return base % DAY_NS if trace.ours and base is not None and base >= 0 else 0


class Writer:
    """The second pass."""

    def __init__(self, trace, out, tracks, mender):
        self.trace, self.out, self.tracks, self.mender = trace, out, tracks, mender
        self.events = 0
        self.notes = []
        self.is_array = trace.is_array  # of several traces in the file, the first one says it

    def run(self):
        front = dict(self.trace.header)
        self._head(front)
        for batch in self.trace.batches():
            self._batch(batch)
        for event in self._names():
            self._put(text_of(event), 1)
        self._end({key: value for key, value in self.trace.header.items() if key not in front})

    def _head(self, front):
        changes = self.mender.changes
        if self.is_array:
            self.out.put("[\n")
            return
        if self.trace.ours:
            if front.get("displayTimeUnit") != "ns":
                front = {"displayTimeUnit": "ns", **{key: value for key, value in front.items() if key != "displayTimeUnit"}}
                changes.add("displayTimeUnit is ns now")
            base = self.trace.base_ns
            if base is None or base < 0:
                front["baseTimeNanoseconds"] = 0
                changes.add("there is no base of times: 1970 is taken")
            elif base % DAY_NS:
                front["baseTimeNanoseconds"] = base - base % DAY_NS
                changes.add("times count from the beginning of the day now")
        self.out.put((serialized(front)[:-1] + "," if front else "{") + '"traceEvents":[\n')

    def _batch(self, batch):
        mend, place = self.mender.mend, self.tracks.place
        results = []
        same = not self.trace.rewritten
        for event in batch:
            result = mend(event)
            if result is not None:
                result = place(result)
            same = same and result is event
            results.append(result)
        if same:
            self._put(self.trace.text().lstrip(), len(batch))
            return
        texts = self.trace.texts() if len(batch) > 1 else iter((None if self.trace.rewritten else self.trace.text(),))
        for event, result, text in zip(batch, results, texts):
            if result is not None:
                self._put(text if result is event and text is not None else text_of(result), 1)

    def _put(self, text, events):
        self.out.put(",\n" + text if self.events else text)
        self.events += events

    def _names(self):
        """Names that are missing, of lanes and of tracks of devices."""
        tracks, changes = self.tracks, self.mender.changes
        for (number, lane), tid in tracks.tids.items():
            track = tracks.list[number]
            name = tracks.thread_names.get((track.pid, track.tid), str(track.tid))
            yield _named("thread_name", track.pid, tid, name=f"{name} lane {lane + 1}")
            index = tracks.sort_indices.get((track.pid, track.tid))
            if type(index) is int:
                yield _named("thread_sort_index", track.pid, tid, sort_index=index)
        told = self.mender.names()
        unnamed = {}
        for track in tracks.list:
            if track.has_slices and track.pid not in tracks.process_names and (track.is_device or self.trace.ours):
                unnamed[track.pid] = track.is_device
            if (track.pid, track.tid) not in tracks.thread_names and (track.is_device or track.tid in told):
                changes.add("tracks without a name got one", "%s", track)
                yield _named("thread_name", track.pid, track.tid, name=f"track {told.get(track.tid, track.tid)}")
        for pid, is_device in unnamed.items():
            changes.add("processes without a name got one", "pid %s", pid)
            yield _named("process_name", pid, 0, name=f"{'DEVICE' if is_device else 'HOST'} {pid}")

    def _end(self, behind):
        trace, changes = self.trace, self.mender.changes
        if trace.truncated:
            changes.add("the end is missing: the trace was closed")
        text = "\n" if self.events else ""
        if self.is_array:
            self.out.put(text + "]\n")
            return
        other = trace.other
        if other is None and trace.ours:
            other = {"end": "unknown"}
            if not trace.truncated:
                changes.add("there is no otherData: the end is unknown")
        if changes.count or trace.damaged:
            behind["repaired"] = True
        if other is not None:  # the last one, as it is when this is repaired once more
            behind.pop("otherData", None)
            behind["otherData"] = other
        members = "".join(f",{serialized(key)}:{serialized(value)}" for key, value in behind.items())
        self.out.put(text + "]" + members + "}\n")
        if (other or {}).get("lost"):
            self.notes.append(f"{other['lost']} records were lost while tracing: no repair brings them back")


def _named(what, pid, tid, **args):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


# ---- the new file ----


@contextlib.contextmanager
def _new_file(path, target):
    """A _Target; nothing is left of it where something fails."""
    for name in (target,) if target else _free_names(path):
        try:
            out = _Target(name)
        except FileExistsError:
            if target:
                raise
            continue
        break
    try:
        yield out
        out.close()
    except BaseException:
        out.abandon()
        raise


def _free_names(path):
    stem, packing = os.path.splitext(path)
    if packing not in PACKINGS:
        stem, packing = path, ""
    base, suffix = os.path.splitext(stem)
    stem = base if suffix in SUFFIXES else stem
    number = 1
    while True:
        yield f"{stem}.repaired{f'-{number}' if number > 1 else ''}.json{packing}"
        number += 1


class _Target:
    """Text into a file, packed as its name says. The name is taken at once, and given back by abandon()."""

    def __init__(self, path):
        self.path = path
        self._parts, self._size = [], 0
        packing = os.path.splitext(path)[1]
        if packing == ".zst" and not shutil.which("zstd"):
            raise TraceError("writing .zst needs the command zstd: name a .json or .json.gz by -o")
        raw = open(path, "xb")
        self._file = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=3) if packing == ".gz" else raw
        self._raw = raw
        self._is_zstd = packing == ".zst"

    def put(self, text):
        self._parts.append(text)
        self._size += len(text)
        if self._size >= PIECE:
            self._flush()

    def _flush(self):
        data = "".join(self._parts).encode()
        self._parts, self._size = [], 0
        if self._is_zstd and data:  # a frame of its own, as the writer does
            data = subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        self._file.write(data)

    def close(self):
        self._flush()
        self._file.close()
        self._raw.close()

    def abandon(self):
        with contextlib.suppress(OSError):
            self._raw.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
