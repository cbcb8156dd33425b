"""Reads what is left of a damaged trace: more than Trace does, and less strictly.

It takes names with quotes that were not escaped, and several traces in one file (a fork may write two).
"""

from __future__ import annotations

import json
import re

from .pftrace import is_perfetto, open_perfetto
from .source import Source
from .trace import _LOST, LONGEST_EVENT, NEXT_EVENT, NOT_SPACE, Trace, TraceError, _scan, _scan_lenient

NAME = re.compile(r'"name"\s*:\s*"')
BEHIND = re.compile(r'"\s*(?:\}\s*\Z|,\s*"(?:cat|ph|pid|tid|ts|dur|id|args|s|bp)"\s*:)')
SURROGATE = re.compile("[\ud800-\udfff]")
SEPARATOR = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")


def open_damaged(path, window):
    """As open_trace(), for repair; what Perfetto's packets hold comes one event a batch, without text."""
    source = Source(path, window)
    try:
        if is_perfetto(source.peek()):
            return Packets(open_perfetto(path, source))
        return DamagedTrace(path, source)
    except BaseException:
        source.close()
        raise


class Packets:
    """A PerfettoTrace as the repair wants it."""

    is_array, documents, escaped, rewritten = False, 1, 0, True

    def __init__(self, trace):
        self.trace = trace

    def __getattr__(self, name):
        return getattr(self.trace, name)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.trace.close()

    def batches(self):
        for event in self.trace:
            yield [event]


class DamagedTrace(Trace):
    """documents: traces found in the file so far. rewritten: the last batch is an event whose text is not to be copied.

    escaped: events that were lost but for the quotes in their names.
    """

    documents = 1
    escaped = 0
    rewritten = False

    @property
    def is_array(self):
        return self._is_array

    def texts(self):
        """The text of each event of the last batch."""
        text = self.text()
        pos = NOT_SPACE.search(text).start()
        while True:
            _, end = _scan(text, pos)
            yield text[pos:end]
            found = SEPARATOR.match(text, end)
            if not found:
                return
            pos = found.end()

    def _many(self):
        events = super()._many()
        self.rewritten = False
        return events

    def _one(self):
        self.rewritten = False
        return super()._one()

    def _repair(self, why):
        self.rewritten = True
        while not NEXT_EVENT.search(self._text, self._pos + 1) and len(self._text) - self._pos < LONGEST_EVENT and self._more():
            pass  # all of the event is wanted
        start, window = self._pos, self._text
        event = super()._repair(why)
        if event is not _LOST or self._text is not window:
            return event
        text = window[start : self._pos].rstrip()
        event = _with_name_escaped(text)
        if event is None:
            return _LOST
        self.escaped += 1
        self._pos = start + len(text) - text.endswith(",")
        return event

    def _tail(self):
        mark = self._peek()
        if mark not in ("{", "["):
            return super()._tail()
        self._note_here("tail", "another trace")
        self.documents += 1
        self._pos += 1
        if mark == "[":
            self._is_array = self._in_events = True
            return None
        self._is_array = self._had_events = False
        try:
            return self._members(first=True)
        except TraceError:  # an object without events
            return super()._tail()


def _with_name_escaped(text):
    """The event, where nothing but its name keeps it from being one; else None."""
    name = NAME.search(text)
    ends = [found.start() for found in BEHIND.finditer(text, name.end())] if name else []
    for end in ends:
        inside = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', text[name.end() : end])
        inside = re.sub(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})', r"\\\\", inside)
        try:
            event, _ = _scan_lenient(text[: name.end()] + inside + text[end:], 0)
            if type(event) is dict:
                return event
        except (StopIteration, ValueError, RecursionError):
            pass
    return None


def serialized(value):
    """JSON of a value that was read, with U+FFFD for halves of surrogate pairs and null for what JSON has not."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def _finite(value):
    if type(value) is float:
        return value if value - value == 0 else None
    if type(value) is dict:
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if type(value) is list else value
