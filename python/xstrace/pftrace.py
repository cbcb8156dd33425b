"""Reads a trace in Perfetto's protobuf, as xstrace and xstrace-merge write it, as if it were Chrome's JSON.

Perfetto's own reader sorts packets by time. This one takes a file as it comes, in constant memory: of a
track, an end belongs to the newest begin that has none. That holds for what xstrace writes (a slice's end
right behind its begin) and for what is sorted by time.

The numbers of the fields are those of Perfetto's public .proto files.
"""

from __future__ import annotations

import struct

from .source import OpenTrace, TraceError

PHASES = {1: "B", 2: "E", 3: "i", 4: "C"}
OWN_CLOCK = 64
OWN = frozenset(("xstrace::trace", "xstrace::process", "xstrace::end"))
NO_TEXT = ""
DEVICE_TIMES = frozenset(("queued", "submit"))
LONGEST_PACKET = 1 << 28


def is_perfetto(head):
    """Do these bytes begin a file of packets? JSON may begin with the same byte, a line's end."""
    if head[:1] != b"\n" or len(head) < 3:
        return False
    at = 1
    while at < len(head) - 1 and head[at] & 128:
        at += 1
    return head[at + 1 : at + 2] not in (b"", b" ", b"\t", b"\r", b"\n", b"{", b"[")


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data):
    """(field, value) of each field of a message; value: int, or bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 2, 5):
            if kind == 2:
                size, at = _varint(data, at)
            else:
                size = 8 if kind == 1 else 4
            value = data[at : at + size]
            at += size
            if at > end:
                raise ValueError("a field is longer than its message")
        else:
            raise ValueError(f"a field of kind {kind}")
        yield key >> 3, value


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


class _Sequence:
    """What the packets of one sequence have told so far."""

    def __init__(self):
        self.now = 0
        self.uuid = 0
        self.texts = {1: {}, 2: {}, 3: {}}  # categories, names, keys of arguments
        self.open = []


class PerfettoTrace(OpenTrace):
    """One pass over the events of one file, with the attributes of trace.Trace.

    Events are dicts as there: phases X, i, C, s, f and M; B for what is never ended. Times are int, ns. What xstrace
    tells of the trace in events of its own (OWN) becomes `header` and `other`.
    """

    def __init__(self, path, source):
        self.path = path
        self.header = {}
        self.other = None
        self.truncated = self.is_blank = False
        self.damaged = {}
        self.damage = []
        self._source = source
        self._sequences = {}
        self._tracks = {}  # uuid: (pid, tid), or (pid, tid, name of a counter)
        self._events = self._read()
        self._ahead = []
        for event in self._events:  # the first event that is not the header
            self._ahead.append(event)
            if self.header or len(self._ahead) > 16:
                break

    @property
    def display_time_unit(self):
        return "ns"

    def __iter__(self):
        yield from self._ahead
        self._ahead = []
        yield from self._events

    def _packets(self):
        data = b""
        while True:
            at = 0
            while at < len(data):
                try:
                    key, start = _varint(data, at)
                    size, start = _varint(data, start)
                except IndexError:
                    break
                if key != 10 or size > LONGEST_PACKET:
                    raise ValueError("no packet of a trace begins here")
                if start + size > len(data):
                    break
                yield data[start : start + size]
                at = start + size
            more = self._source.read()
            data = data[at:] + more
            if not more:
                self.truncated = bool(data) or self._source.cut
                return

    def _note(self, detail):
        from .trace import Damage

        self.damaged["packets"] = self.damaged.get("packets", 0) + 1
        if len(self.damage) < 10:
            self.damage.append(Damage("packets", 0, detail))

    def _read(self):
        try:
            for packet in self._packets():
                try:
                    yield from self._packet(packet)
                except (ValueError, IndexError, KeyError, TypeError, UnicodeDecodeError, struct.error) as error:
                    self._note(str(error))
        except ValueError as error:
            self._note(str(error))
        finally:
            self.close()
        # cut between two packets
        self.truncated |= self.metadata.get("tool") == "xstrace" and self.other is None
        for sequence in self._sequences.values():
            for event in sequence.open:
                yield {**event, "ph": "B"}

    def _packet(self, packet):
        found = {}
        for field, value in _fields(packet):
            found[field] = value
        sequence = self._sequences.setdefault(found.get(10, 0), _Sequence())
        if found.get(13, 0) & 1:
            sequence.texts = {1: {}, 2: {}, 3: {}}
        if 59 in found:
            for field, value in _fields(found[59]):
                if field == 11:
                    sequence.uuid = dict(_fields(value)).get(11, 0)
        if 6 in found:
            for _, clock in _fields(found[6]):
                clock = dict(_fields(clock))
                if clock.get(1) == OWN_CLOCK:
                    sequence.now = clock.get(2, 0)
        if 60 in found:
            yield from self._descriptor(dict(_fields(found[60])))
        if 12 in found:
            for kind, entry in _fields(found[12]):
                entry = dict(_fields(entry))
                sequence.texts.setdefault(kind, {})[entry[1]] = entry[2].decode()
        if 11 in found:
            if 58 in found:
                time = found[8]
            else:
                sequence.now += found.get(8, 0)
                time = sequence.now
            yield from self._event(sequence, found[11], time)

    def _descriptor(self, track):
        uuid = track[1]
        for field, kind in ((3, "process"), (4, "thread")):
            if field not in track:
                continue
            told = dict(_fields(track[field]))
            place = (told[1], told[2] if field == 4 else told[1])
            self._tracks[uuid] = place
            name = told.get(6 if field == 3 else 5)
            event = {"ph": "M", "pid": place[0], "tid": place[1]}
            if name is not None:
                yield {**event, "name": f"{kind}_name", "args": {"name": name.decode()}}
            if field == 3 and 8 in told:
                yield {**event, "name": "process_labels", "args": {"labels": told[8].decode()}}
            if 3 in told:
                yield {**event, "name": f"{kind}_sort_index", "args": {"sort_index": told[3]}}
        if 8 in track:
            self._tracks[uuid] = (self._tracks[track[5]][0], None, track.get(2, b"").decode())

    def _event(self, sequence, data, time):
        event, args, phase, legacy = {"ts": time}, {}, None, {}
        for field, value in _fields(data):
            if field == 9:
                phase = PHASES[value]
            elif field == 3:
                event["cat"] = sequence.texts[1][value]
            elif field == 22:
                event["cat"] = value.decode()
            elif field == 10:
                event["name"] = sequence.texts[2][value]
            elif field == 23:
                event["name"] = value.decode()
            elif field == 44:
                (args["value"],) = struct.unpack("<d", value)
            elif field == 4:
                key, shown = self._annotation(sequence, value)
                args[key] = shown
            elif field == 6:
                legacy = dict(_fields(value))
        if phase == "E":
            yield self._ended(sequence, time)
            return
        place = self._tracks.get(sequence.uuid)
        if place is None:
            raise ValueError("an event of a track that is not described")
        event["pid"] = place[0]
        if phase == "C":
            event["name"] = place[2]
        else:
            event["tid"] = place[1]
        if event.get("cat") == "gpu_op":
            for key in DEVICE_TIMES & args.keys():
                args[key] = round(args[key] * 1000)
        if args:
            event["args"] = args
        if phase == "B":
            sequence.open.append(event)
        elif phase == "i" and event.get("name") in OWN and "cat" not in event:
            self._own(event["name"], args)
        elif phase:
            yield {**event, "ph": phase}
        else:
            bound = {"bp": "e"} if legacy.get(12) else {}
            yield {**event, "ph": chr(legacy[2]), "id": legacy.get(6, 0), **bound}

    def _own(self, name, args):
        if name == "xstrace::end":
            self.other = args.get("otherData")
        elif name == "xstrace::trace":
            self.header = args
        else:
            self.header.setdefault("metadata", {})["argv"] = args.get("argv")

    def _ended(self, sequence, time):
        if not sequence.open:
            raise ValueError("an end without a begin")
        event = sequence.open.pop()
        if self.ours:
            event.setdefault("cat", "cpu_op")  # of plain tasks
        return {**event, "ph": "X", "dur": time - event["ts"]}

    def _annotation(self, sequence, data):
        key, value, members, items = NO_TEXT, None, {}, []
        for field, shown in _fields(data):
            if field == 1:
                key = sequence.texts[3][shown]
            elif field == 10:
                key = shown.decode()
            elif field == 2:
                value = bool(shown)
            elif field == 4:
                value = _signed(shown)
            elif field == 5:
                (value,) = struct.unpack("<d", shown)
            elif field == 6:
                value = shown.decode()
            elif field == 11:
                inner, member = self._annotation(sequence, shown)
                members[inner] = member
            elif field == 12:
                items.append(self._annotation(sequence, shown)[1])
        if members:
            return key, members
        return key, items if value is None else value


def open_perfetto(path, source):
    """A PerfettoTrace; raises TraceError where nothing of the file is one."""
    trace = PerfettoTrace(path, source)
    if trace.damage and not trace._tracks:
        raise TraceError("not a trace (neither JSON nor packets of Perfetto's)")
    return trace
