"""Reads a trace in Perfetto's protobuf, as xstrace and xstrace-merge write it, as if it were Chrome's JSON.

Perfetto's own reader sorts packets by time. This one takes a file as it comes, in constant memory: of a
track, an end belongs to the newest begin that has none. That holds for what xstrace writes (a slice's end
right behind its begin) and for what is sorted by time.

The numbers of the fields are those of Perfetto's public .proto files. A message's fields stand in a table with the kind
that each must have (NUMBER, DOUBLE, BYTES): so whatever a file holds, nothing here or behind it meets a value of
another type. What is remembered of a file has a bound (MOST), as nesting has.
"""

from __future__ import annotations

import struct

from .source import OpenTrace, TraceError

PHASES = {1: "B", 2: "E", 3: "i", 4: "C"}
OWN_CLOCK = 64
OWN = frozenset(("xstrace::trace", "xstrace::process", "xstrace::end"))
NO_TEXT = ""
FINITE = 1e300
DEVICE_TIMES = frozenset(("queued", "submit"))
LONGEST_PACKET = 1 << 26
DEPTH = 256  # of arguments in each other, as in JSON
MOST = 1 << 23  # texts and tracks that are remembered; a sequence or an open slice counts as several
SEQUENCE = OPEN = 8

NUMBER, DOUBLE, BYTES = 0, 1, 2  # the kinds of fields, by their numbers in the file
SIZES = {DOUBLE: 8, 5: 4}
PACKET = {6: BYTES, 8: NUMBER, 10: NUMBER, 11: BYTES, 12: BYTES, 13: NUMBER, 58: NUMBER, 59: BYTES, 60: BYTES}
DESCRIBES = b"\xe2\x03"  # field 60's key
DEFAULTS, EVENT_DEFAULTS = {11: BYTES}, {11: NUMBER}
CLOCKS, CLOCK = {1: BYTES}, {1: NUMBER, 2: NUMBER}
TEXTS, TEXT = {1: BYTES, 2: BYTES, 3: BYTES}, {1: NUMBER, 2: BYTES}
TRACK = {1: NUMBER, 2: BYTES, 3: BYTES, 4: BYTES, 5: NUMBER, 8: BYTES}
PROCESS, THREAD = {1: NUMBER, 3: NUMBER, 6: BYTES, 8: BYTES}, {1: NUMBER, 2: NUMBER, 3: NUMBER, 5: BYTES}
EVENT = {3: NUMBER, 4: BYTES, 6: BYTES, 9: NUMBER, 10: NUMBER, 22: BYTES, 23: BYTES, 30: NUMBER, 44: DOUBLE}
LEGACY = {2: NUMBER, 6: NUMBER, 12: NUMBER}
ANNOTATION = {1: NUMBER, 2: NUMBER, 3: NUMBER, 4: NUMBER, 5: DOUBLE, 6: BYTES, 10: BYTES, 11: BYTES, 12: BYTES}


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


def _fields(data, kinds):
    """(field, value) of those fields of a message that are wanted; value: int, or bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == NUMBER:
            value, at = _varint(data, at)
        elif kind == BYTES or kind in SIZES:
            if kind == BYTES:
                size, at = _varint(data, at)
            else:
                size = SIZES[kind]
            value = data[at : at + size]
            at += size
            if at > end:
                raise ValueError("a field is longer than its message")
        else:
            raise ValueError(f"a field of kind {kind}")
        if field in kinds:
            if kinds[field] != kind:
                raise ValueError(f"field {field} is of kind {kind}")
            yield field, value


def _message(data, kinds, *needed):
    """The fields as a dict; of one that is there more than once the last one counts."""
    found = dict(_fields(data, kinds))
    for field in needed:
        if field not in found:
            raise ValueError(f"field {field} is missing")
    return found


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


class Packets:
    """The packets of a file, as bytes. is_cut: the last one was not whole (known at the end). Raises ValueError where none begins."""

    def __init__(self, source):
        self._source = source
        self.is_cut = False

    def __iter__(self):
        data, wanted = b"", 0
        while True:
            at, wanted = 0, 0
            while at < len(data):
                try:
                    key, start = _varint(data, at)
                    size, start = _varint(data, start)
                except IndexError:
                    break
                if key != 10 or size > LONGEST_PACKET:
                    raise ValueError("no packet of a trace begins here")
                wanted = start + size - len(data)
                if wanted > 0:
                    break
                yield data[start : start + size]
                at = start + size
            more = self._more(wanted)
            data = data[at:] + more
            if not more:
                self.is_cut = bool(data) or self._source.cut
                return

    def _more(self, wanted):
        """At least so many bytes, if there are so many; read in one go, or a long packet would be copied for each piece."""
        pieces = [self._source.read()]
        while pieces[-1] and wanted > len(pieces[-1]):
            wanted -= len(pieces[-1])
            pieces.append(self._source.read())
        return b"".join(pieces)


def threads_in(packet):
    """(uuid, pid, tid) of each thread that a packet describes; (uuid, None, None) of other tracks. Raises ValueError, IndexError."""
    if DESCRIBES not in packet:  # nearly all: they need not be taken apart
        return
    for _, data in _fields(packet, {60: BYTES}):
        track = _message(data, TRACK, 1)
        thread = _message(track[4], THREAD, 1, 2) if 4 in track else {}
        yield track[1], thread.get(1), thread.get(2)


class _Sequence:
    """What the packets of one sequence have told so far."""

    def __init__(self):
        self.now = 0
        self.uuid = 0
        self.texts = {1: {}, 2: {}, 3: {}}  # categories, names, keys of arguments
        self.open = []

    def text(self, kind, number):
        found = self.texts[kind].get(number)
        if found is None:
            raise ValueError("a text that was not told")
        return found

    def forget(self):
        """Of the texts; returns how many there were."""
        count = sum(map(len, self.texts.values()))
        self.texts = {1: {}, 2: {}, 3: {}}
        return count


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
        self.left_out = 0
        self.first_left_out = ""
        self._source = source
        self._room = MOST
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

    def _remember(self, weight):
        if self._room < weight:
            raise ValueError("too much is to be remembered")
        self._room -= weight

    def _note(self, detail):
        from .trace import Damage

        self.damaged["packets"] = self.left_out = self.left_out + 1
        self.first_left_out = self.first_left_out or detail
        if len(self.damage) < 10:
            self.damage.append(Damage("packets", 0, detail))

    def _read(self):
        try:
            packets = Packets(self._source)
            for packet in packets:
                try:
                    yield from self._packet(packet)
                except IndexError:
                    self._note("a number is cut")
                except ValueError as error:
                    self._note(str(error))
            self.truncated = packets.is_cut
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
        found = _message(packet, PACKET)
        number = found.get(10, 0)
        if number not in self._sequences:
            self._remember(SEQUENCE)
            self._sequences[number] = _Sequence()
        sequence = self._sequences[number]
        if found.get(13, 0) & 1:
            self._room += sequence.forget()
        for _, value in _fields(found.get(59, b""), DEFAULTS):
            sequence.uuid = _message(value, EVENT_DEFAULTS).get(11, 0)
        for _, clock in _fields(found.get(6, b""), CLOCKS):
            clock = _message(clock, CLOCK)
            if clock.get(1) == OWN_CLOCK:
                sequence.now = clock.get(2, 0)
        if 60 in found:
            yield from self._descriptor(_message(found[60], TRACK, 1))
        for kind, entry in _fields(found.get(12, b""), TEXTS):
            entry = _message(entry, TEXT, 1, 2)
            self._remember(entry[1] not in sequence.texts[kind])
            sequence.texts[kind][entry[1]] = entry[2].decode()
        if 11 in found:
            if 58 in found:
                time = found.get(8, 0)
            else:
                sequence.now += found.get(8, 0)
                time = sequence.now
            yield from self._event(sequence, found[11], time)

    def _place(self, uuid, place):
        self._remember(uuid not in self._tracks)
        self._tracks[uuid] = place

    def _descriptor(self, track):
        uuid = track[1]
        for field, kind, kinds, needed in ((3, "process", PROCESS, (1,)), (4, "thread", THREAD, (1, 2))):
            if field not in track:
                continue
            told = _message(track[field], kinds, *needed)
            place = (told[1], told[2] if field == 4 else told[1])
            self._place(uuid, place)
            name = told.get(6 if field == 3 else 5)
            event = {"ph": "M", "pid": place[0], "tid": place[1]}
            if name is not None:
                yield {**event, "name": f"{kind}_name", "args": {"name": name.decode()}}
            if field == 3 and 8 in told:
                yield {**event, "name": "process_labels", "args": {"labels": told[8].decode()}}
            if 3 in told:
                yield {**event, "name": f"{kind}_sort_index", "args": {"sort_index": told[3]}}
        if 8 in track:
            if track.get(5) not in self._tracks:
                raise ValueError("a counter of a track that is not described")
            self._place(uuid, (self._tracks[track[5]][0], None, track.get(2, b"").decode()))

    def _event(self, sequence, data, time):
        event, args, phase, legacy = {"ts": time}, {}, None, {}
        for field, value in _fields(data, EVENT):
            if field == 9:
                phase = PHASES.get(value, "")
            elif field == 3:
                event["cat"] = sequence.text(1, value)
            elif field == 22:
                event["cat"] = value.decode()
            elif field == 10:
                event["name"] = sequence.text(2, value)
            elif field == 23:
                event["name"] = value.decode()
            elif field == 30:
                args["value"] = _signed(value)
            elif field == 44:
                (args["value"],) = struct.unpack("<d", value)
            elif field == 4:
                key, shown = self._annotation(sequence, value)
                args[key] = shown
            elif field == 6:
                legacy = _message(value, LEGACY)
        if phase == "E":
            yield self._ended(sequence, time)
            return
        place = self._tracks.get(sequence.uuid)
        if place is None:
            raise ValueError("an event of a track that is not described")
        event["pid"] = place[0]
        if phase == "C":
            if len(place) < 3:
                raise ValueError("a value of a track that is no counter's")
            event["name"] = place[2]
        else:
            event["tid"] = place[1]
        if event.get("cat") == "gpu_op":
            for key in DEVICE_TIMES & args.keys():
                if type(args[key]) in (int, float) and abs(args[key]) < FINITE:  # times 1000, too
                    args[key] = round(args[key] * 1000)
        if args:
            event["args"] = args
        if phase == "B":
            self._remember(OPEN)
            sequence.open.append(event)
        elif phase == "i" and event.get("name") in OWN and "cat" not in event:
            self._own(event["name"], args)
        elif phase:
            yield {**event, "ph": phase}
        elif 32 < legacy.get(2, 0) < 127:
            bound = {"bp": "e"} if legacy.get(12) else {}
            yield {**event, "ph": chr(legacy[2]), "id": legacy.get(6, 0), **bound}
        else:
            raise ValueError("an event of no kind")

    def _own(self, name, args):
        if name == "xstrace::end":
            if isinstance(args.get("otherData"), dict):
                self.other = args["otherData"]
        elif name == "xstrace::trace":
            self.header = args
        elif self.metadata:
            self.metadata["argv"] = args.get("argv")

    def _ended(self, sequence, time):
        if not sequence.open:
            raise ValueError("an end without a begin")
        event = sequence.open.pop()
        self._room += OPEN
        if self.ours:
            event.setdefault("cat", "cpu_op")  # of plain tasks
        return {**event, "ph": "X", "dur": time - event["ts"]}

    def _annotation(self, sequence, data, depth=DEPTH):
        key, value, members, items = NO_TEXT, None, {}, []
        if not depth:
            raise ValueError("nested too deeply")
        for field, shown in _fields(data, ANNOTATION):
            if field == 1:
                key = sequence.text(3, shown)
            elif field == 10:
                key = shown.decode()
            elif field == 2:
                value = bool(shown)
            elif field == 3:
                value = shown
            elif field == 4:
                value = _signed(shown)
            elif field == 5:
                (value,) = struct.unpack("<d", shown)
            elif field == 6:
                value = shown.decode()
            elif field == 11:
                inner, member = self._annotation(sequence, shown, depth - 1)
                members[inner] = member
            elif field == 12:
                items.append(self._annotation(sequence, shown, depth - 1)[1])
        if members:
            return key, members
        return key, items if value is None else value


def open_perfetto(path, source):
    """A PerfettoTrace; raises TraceError where nothing of the file is one."""
    trace = PerfettoTrace(path, source)
    if trace.damage and not trace._tracks:
        raise TraceError("not a trace (neither JSON nor packets of Perfetto's)")
    return trace
