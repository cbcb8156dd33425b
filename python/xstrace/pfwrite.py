"""Writes packets of Perfetto's protobuf, to stand behind those of a trace of xstrace's: tracks, slices, and points of arrows.

The numbers of the fields are those of writer/formats/perfetto_fields.h. Texts stand in the events themselves: the trace's own tables of
texts stay as they are, and so do its sequences of packets.
"""

from __future__ import annotations

FIRST_SEQUENCE = 1 << 31  # xstrace counts its own from 1
CLEARED, NEEDS_STATE = 1, 2
CLOCK = 6  # times since the trace's base
BEGIN, END = 1, 2


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """A field that is a number, at least 0."""
    return _varint(field << 3) + _varint(value)


def signed(field, value):
    """A field that is a number, which may be below 0."""
    return number(field, value & (1 << 64) - 1)


def text(field, value):
    """A field of bytes, or of a str."""
    data = value if type(value) is bytes else value.encode(errors="replace")
    return _varint(field << 3 | 2) + _varint(len(data)) + data


class NewPackets:
    """Makes packets (bytes). taken: the uuids of the trace's tracks."""

    def __init__(self, taken):
        self._taken = set(taken)
        self._sequences = {}  # uuid: number

    def free_uuid(self):
        """A uuid that no track has."""
        uuid = (1 << 62) + len(self._taken)
        while uuid in self._taken:
            uuid += 1
        self._taken.add(uuid)
        return uuid

    def process(self, uuid, pid, name, sort_index):
        """The packet that describes a process."""
        return framed(
            text(60, number(1, uuid) + text(3, number(1, pid) + signed(3, sort_index) + text(6, name))) + number(10, FIRST_SEQUENCE)
        )

    def thread(self, uuid, parent, pid, tid, name):
        """The packet that describes a thread of the process whose uuid is `parent`."""
        told = number(1, uuid) + number(5, parent) + text(4, number(1, pid) + number(2, tid) + text(5, name))
        return framed(text(60, told) + number(10, FIRST_SEQUENCE))

    def slice(self, uuid, category, name, begin, end, args):
        """The packets of a slice; begin, end: ns since the trace's base. args: dict of str to str."""
        said = b"".join(text(4, text(10, key) + text(6, str(value))) for key, value in args.items())
        return self._event(uuid, begin, number(9, BEGIN) + text(22, category) + text(23, name) + said) + self._event(
            uuid, end, number(9, END)
        )

    def point(self, uuid, phase, category, name, number_of_arrow, time):
        """The packets of an arrow's end: phase "s" or "f"."""
        legacy = number(2, ord(phase)) + number(6, number_of_arrow) + (number(12, 1) if phase == "f" else b"")
        return self._event(uuid, time, text(22, category) + text(23, name) + text(6, legacy))

    def _event(self, uuid, time, event):
        begun = uuid in self._sequences
        sequence = self._sequences.setdefault(uuid, FIRST_SEQUENCE + 1 + len(self._sequences))
        state = number(13, NEEDS_STATE) if begun else number(13, CLEARED) + text(59, text(11, number(11, uuid)))
        return framed(state + number(10, sequence) + number(8, time) + number(58, CLOCK) + text(11, number(11, uuid) + event))


def framed(data):
    """A packet as it stands in a file."""
    return text(1, data)
