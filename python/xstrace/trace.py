"""Reads a trace in Chrome's JSON format, one event at a time, in constant memory.

The reader takes the layout of docs/TRACE_FORMAT.md, and any other layout of the same JSON: an
array without an object around it (cliloader), unitrace's, Kineto's indented one, one long line.
It reads compressed files (see source.py) and files that were cut anywhere.

Two rules:
- Times never pass through a double. ts and dur come out as integer nanoseconds.
- What is in the file never makes the reader raise. A cut file gives the events that are complete
  and sets `truncated`; what is not valid JSON, or not UTF-8, is noted in `damage`, and reading goes
  on at the next event.

A file of which nothing at all could be read is no trace; who judges traces asks with events_of().
"""

from __future__ import annotations

import codecs
import collections
import decimal
import itertools
import json
import re

from .pftrace import is_perfetto, open_perfetto
from .source import FAR_NS, ZSTD_WINDOW, OpenTrace, Source, TraceError

__all__ = ["Damage", "Trace", "TraceError", "events_of", "open_trace"]

BLOCK = 256 * 1024
NEAR = 16 * 1024
DAMAGE_KEPT = 10
LONGEST_EVENT = 64 * BLOCK
LONGEST_MEMBER = 4 * LONGEST_EVENT  # of the top level, beside the events
DEPTH = 256  # of lists and objects in each other; xstrace-merge takes as many
TIMES = frozenset(("ts", "dur", "tts", "tdur"))
DEVICE_TIMES = frozenset(("queued", "submit"))
POINT = ord(".")
NOT_SPACE = re.compile(r"[^ \t\r\n]")
# what a cut leaves of a number, a literal or an escape, from where the decoder stopped
UNFINISHED = re.compile(r"-?|\.|[eE][-+]?|t|tru?|f|fa|fals?|n|nul?|\\?u?[0-9a-fA-F]{0,4}")
NEXT_EVENT = re.compile(r"\n(?=[ \t]*\{|[\],])")

Damage = collections.namedtuple("Damage", "kind line detail")
Damage.__doc__ = """One place where a file is not what it should be.

kind: "json", "control character", "utf-8", "comma", "tail" or "compression".
line: line of the (decompressed) file, from 1. detail: str, may be empty.
"""


_LOST = object()


class _Cut(Exception):
    """The text ends inside the value that was wanted."""


def _no_constant(name):
    raise ValueError(name + " is not JSON")


# str.encode turns a fraction into bytes: cheap, exact, and unlike anything that JSON can hold
_scan = json.JSONDecoder(parse_float=str.encode, parse_constant=_no_constant).scan_once
_scan_lenient = json.JSONDecoder(parse_float=str.encode, strict=False).scan_once
_scan_member = json.JSONDecoder(parse_constant=_no_constant).scan_once
_scan_member_lenient = json.JSONDecoder(strict=False).scan_once


def open_trace(path, zstd_window=ZSTD_WINDOW):
    """Opens a trace and reads its header; see Trace. What is in Perfetto's protobuf is read as if it were JSON.

    path: a file name (.json, .pftrace, the same with .gz or .zst; the contents decide, not the name).
    zstd_window: bytes that a compressed file may make its reader keep.
    Raises OSError when the file cannot be read, TraceError when it cannot be a trace at all (it
    does not begin with { or [) or when it is compressed with zstd and nothing can read that.
    """
    source = Source(path, zstd_window)
    try:
        return open_perfetto(path, source) if is_perfetto(source.peek()) else Trace(path, source)
    except BaseException:
        source.close()
        raise


def events_of(trace, also_unfit=False):
    """The events of a Trace; those that nothing can be made of are counted in trace.unfit, and given where also_unfit says so.

    A slice without a length gets one of 0. Raises TraceError at the end where there is neither an event nor a word of xstrace's own, or
    no event that can be used: emptiness is what remains of a trace when something went wrong, and must not pass for one in which nothing
    happened.
    """
    some = False
    for event in trace:
        if also_unfit or _fits(event):
            some = True
            yield event
        else:
            trace.unfit += 1
    if trace.unfit and not some:
        raise TraceError("no event in it can be used")
    if some or trace.ours:
        return
    if trace.damage:
        kind, line, detail = trace.damage[0]
        raise TraceError(f"no event can be read (line {line}: {detail or kind})")
    raise TraceError("empty" if trace.is_blank else "cut before its first event" if trace.truncated else "it holds no events")


def _fits(event):
    """Has the event all that its place needs: a kind, a process, times?"""
    phase = event.get("ph")
    if type(phase) is not str or len(phase) != 1:
        return False
    if phase == "M":
        return True
    start = event.get("ts")
    if type(start) is not int or not -FAR_NS < start < FAR_NS or type(event.get("pid")) not in (int, str):
        return False
    length = event.setdefault("dur", 0) if phase == "X" else event.get("dur", 0)
    return type(length) is int and 0 <= length < FAR_NS


Fault = collections.namedtuple("Fault", "text is_loss")
Fault.__doc__ = """What of a trace could not be read: text, one line ("": it is whole); is_loss: is that more than a missing end?"""


def fault_of(trace):
    """The Fault of a Trace that has been read to its end."""
    parts = ["was cut; what could be read counts"] if trace.truncated else []
    if trace.has_odd_base:
        parts.insert(0, "its baseTimeNanoseconds is no time; its events count as if none were given")
    if trace.left_out:
        more = f", and {trace.left_out - 1} more like it" if trace.left_out > 1 else ""
        parts.insert(0, f"{trace.first_left_out}; left out{more}")
    if trace.unfit:
        parts.insert(0, f"{trace.unfit} events without a usable ph, pid, time or beginning; left out")
    return Fault("; ".join(parts), trace.has_odd_base or trace.left_out + trace.unfit > 0)


class Trace(OpenTrace):
    """One pass over the events of one file; iterate over it once. Also a context manager.

    Each event is the dict that is in the file, with
    - ts, dur, tts, tdur: int, nanoseconds (a fraction of a nanosecond is rounded to even),
    - args.queued, args.submit of events of category gpu_op: int, nanoseconds,
    - every other fraction: float.
    A time that is not a JSON number, or is absurdly large, is left as it is.

    Known at once:
    - header: dict, the top-level members in front of the events,
    - metadata: dict, header["metadata"] or {},
    - base_ns: int or None, header["baseTimeNanoseconds"]: when ts is 0, since the Unix epoch; has_odd_base: that is no time,
    - display_time_unit: str or None,
    - ours: bool, metadata says that xstrace (or xstrace-merge) wrote this.
    Known when the iteration has ended:
    - header: also the members behind the events (older files of Kineto have them there),
    - other: dict or None, the member otherData,
    - truncated: bool, the file ends too early,
    - is_blank: bool, there is nothing in it but white space,
    - damaged: dict, how many places are not valid JSON or UTF-8, by kind of Damage; {} is good,
    - damage: list of Damage, the first ten of each kind,
    - left_out: int, at how many of these places something is lost: the others could be read,
    - first_left_out: str, where the first of those is, and why.
    events_of() counts in `unfit` what is valid JSON and no event that could be used.
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
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._text = ""
        self._pos = 0
        self._from = self._to = 0  # of _text: what was read last
        self._line = 1  # of the character _line_at of _text
        self._line_at = 0
        self._eof = False
        self._is_array = False
        self._in_events = self._had_events = False
        try:
            self._open()
        except _Cut:
            self._end_cut()
        except BaseException:
            self.close()
            raise
        self._batches = self._read_batches()
        self._events = itertools.chain.from_iterable(self._batches)

    @property
    def display_time_unit(self):
        value = self.header.get("displayTimeUnit")
        return value if isinstance(value, str) else None

    def __iter__(self):
        return self._events

    def batches(self):
        """The same events, in lists of one or more; instead of the iteration, not beside it. text() is where they came from."""
        return self._batches

    def text(self):
        """The text of the batch that batches() gave last, from its first event's first character to its last event's last one."""
        return self._text[self._from : self._to]

    # ---- the text: a window that moves over the file ----

    def _more(self):
        """Drops what is read, appends at least as much as is left over. False at the end."""
        if self._eof:
            return False
        self._line_of(self._pos)
        parts = [self._text[self._pos :]]
        wanted = max(BLOCK, len(parts[0]))
        self._text, self._pos, self._line_at = "", 0, 0
        while wanted > 0:
            chunk = self._source.read()
            if not chunk:
                self._eof = True
                parts.append(self._decode_end())
                break
            parts.append(self._decode(chunk, parts))
            wanted -= len(chunk)
        self._text = "".join(parts)
        return True

    def _decode(self, chunk, parts=()):
        try:
            return self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            before = sum(part.count("\n") for part in parts)
            before += error.object.count(b"\n", 0, error.start)
            self._note("utf-8", self._line + before, error.reason)
        self._decoder.errors = "replace"
        text = self._decoder.decode(chunk)
        self._decoder.errors = "strict"
        return text

    def _decode_end(self):
        source = self._source
        if self._decoder.getstate()[0] or source.cut:
            self.truncated = True  # in the middle of a character, or of a frame
        if source.error:
            self._note("compression", self._line, source.error)
            self._lose(self._line, "damaged compressed data")
            self.truncated = True
        return ""

    def _peek(self):
        """The next character that is not white space; "" at the end of the file."""
        while True:
            match = NOT_SPACE.search(self._text, self._pos)
            if match:
                self._pos = match.start()
                return match.group()
            self._pos = len(self._text)
            if not self._more():
                return ""

    def _value(self, scan, longest=None):
        """Decodes the value at _pos and moves behind it.

        Raises _Cut, or ValueError when it is not JSON or has more than `longest` characters;
        _pos is still at the value then.
        """
        reach = NEAR
        while True:
            # not the window as it is: an error counts all lines in front of it
            text = self._text[self._pos : self._pos + reach]
            near = len(text) < len(self._text) - self._pos
            try:
                value, end = scan(text, 0)
                # a number at the end of the text may go on behind it
                if end < len(text) or (self._eof and not near) or type(value) in (dict, list, str):
                    self._from = self._pos
                    self._pos = self._to = self._pos + end
                    return value
            except StopIteration as stop:
                error = json.JSONDecodeError("Expecting value", text, stop.value)
                if not _ends_early(text, error):
                    raise error from None
            except RecursionError:
                raise ValueError("nested too deeply") from None
            except ValueError as error:
                if not _ends_early(text, error):
                    raise
            if near:
                reach *= 16
                continue
            if longest and len(self._text) - self._pos > longest:
                raise ValueError("no end in sight")
            if not self._more():
                raise _Cut

    def _line_of(self, pos):
        self._line += self._text.count("\n", self._line_at, pos)  # pos is never before that of the call before
        self._line_at = pos
        return self._line

    def _note(self, kind, line, detail=""):
        self.damaged[kind] = self.damaged.get(kind, 0) + 1
        if self.damaged[kind] <= DAMAGE_KEPT:
            self.damage.append(Damage(kind, line, detail))

    def _lose(self, line, why):
        self.left_out += 1
        self.first_left_out = self.first_left_out or f"line {line}: {why.removesuffix(' at')}"

    def _lose_here(self, kind, detail=""):
        self._note_here(kind, detail)
        self._lose(self._line_of(self._pos), detail or "text behind the end of the trace")

    def _note_here(self, kind, detail=""):
        self._note(kind, self._line_of(self._pos), detail)

    def _note_why(self, line, why):
        """Notes what the decoder said."""
        if "control character" in why:
            self._note("control character", line)
        else:
            self._note("json", line, why)

    # ---- the top level ----

    def _open(self):
        first = self._peek()
        if first == "\ufeff":
            self._note_here("json", "a byte order mark")
            self._pos += 1
            first = self._peek()
        if first == "":
            self.is_blank = not self.truncated
            raise _Cut
        if first not in "{[":
            raise TraceError("not a trace (it begins with neither { nor [)")
        self._pos += 1
        if first == "[":
            self._is_array = self._in_events = True
        else:
            self._members(first=True)

    def _members(self, first):
        """Reads members up to the events, or to the end of the object. Raises _Cut."""
        while True:
            mark = self._peek()
            if mark == "}":
                self._pos += 1
                if not self._had_events:
                    raise TraceError("not a trace (it has no traceEvents)")
                return self._tail()
            if not first:
                if mark != ",":
                    return self._lost_top_level("comma", "missing")
                self._pos += 1
                mark = self._peek()
            first = False
            if mark != '"':
                return self._lost_top_level("json", "a member was expected")
            try:
                key = self._member_value()
                if self._peek() != ":":
                    return self._lost_top_level("json", "':' was expected")
                self._pos += 1
                mark = self._peek()
                if key == "traceEvents" and mark == "[":
                    if self._had_events:
                        self._note_here("json", "traceEvents twice")
                    self._pos += 1
                    self._in_events = self._had_events = True
                    return None
                value = self._member_value()
                _exact_value(value)  # is it nested too deeply?
            except ValueError as error:
                return self._lost_top_level("json", _why(error))
            if key == "otherData" and isinstance(value, dict):
                self.other = value
            else:
                self.header[key] = value

    def _member_value(self):
        try:
            return self._value(_scan_member, LONGEST_MEMBER)
        except ValueError as error:
            line = self._line_of(self._pos)
            value = self._value(_scan_member_lenient, LONGEST_MEMBER)
            self._note_why(line, _why(error))
            return value

    def _lost_top_level(self, kind, detail):
        """Nothing behind this place can be understood."""
        if self._peek() == "":
            raise _Cut
        self._lose_here(kind, detail)

    def _tail(self):
        if self._peek() != "":
            self._lose_here("tail")

    def _end_cut(self):
        self._in_events = False
        self.truncated = True

    # ---- the events ----

    def _read_batches(self):
        try:
            while self._in_events:
                yield from self._read_array()
                self._in_events = False
                if self._is_array:
                    self._tail()
                else:
                    self._members(first=False)
        except _Cut:
            self._end_cut()
        finally:
            self.close()

    def _read_array(self):
        """The events up to the closing bracket. Raises _Cut."""
        last = "open"  # "open", "event", "comma"; None behind damage
        singly = 0  # so many events before _many() is tried again
        while True:
            if not singly and last in ("open", "comma"):
                events = self._many()
                if events:
                    last = "comma"
                    yield events
                    continue
                singly = 1000
            mark = self._peek()
            if mark == "":
                raise _Cut
            if mark == "]":
                if last == "comma":
                    self._note_here("comma", "in front of the closing bracket")
                self._pos += 1
                return
            if mark == ",":
                if last in ("open", "comma"):
                    self._note_here("comma", "twice, or in front of the first event")
                last = "comma"
                self._pos += 1
                continue
            if last == "event":
                self._note_here("comma", "missing between events")
            event = self._one()
            last = "event" if event is not None else None
            singly = max(singly - 1, 0)
            if event is not None:
                yield [event]

    def _many(self):
        """All events of the window up to its last line, in one go; None if that does not work."""
        if len(self._text) - self._pos < BLOCK // 2:
            self._more()
        stop = self._text.rfind("},\n", self._pos) + 1
        if not stop:
            return None
        text = "[" + self._text[self._pos : stop] + "]"
        try:
            events, end = _scan(text, 0)
            if end != len(text) or set(map(type, events)) != {dict}:
                return None
            _make_exact(events)
        except (StopIteration, ValueError, RecursionError):
            return None
        self._from, self._to = self._pos, stop
        self._pos = stop + 1
        return events

    def _one(self):
        """The event at _pos, or None when it cannot be used. Raises _Cut."""
        try:
            event = self._value(_scan, LONGEST_EVENT)
        except ValueError as error:
            event = self._repair(_why(error))
        except _Cut:
            if not NEXT_EVENT.search(self._text, self._pos + 1):
                raise
            event = self._repair("not closed")  # this event was cut, the file was not
        if type(event) is dict:
            try:
                _make_exact([event])
            except ValueError as error:
                return self._lose_here("json", _why(error))
            return event
        if event is not _LOST:
            self._lose_here("json", "an event that is not an object")
        return None

    def _repair(self, why):
        """Takes an event that has raw control characters or NaN; else skips to the next one."""
        self._note_why(self._line_of(self._pos), why)
        try:
            return self._value(_scan_lenient, LONGEST_EVENT)
        except (ValueError, _Cut):
            pass
        self._lose(self._line_of(self._pos), why)
        start = self._pos + 1
        while True:
            match = NEXT_EVENT.search(self._text, start)
            if match:
                self._pos = match.end()
                return _LOST
            # an event may only follow where there is nothing but white space behind the last newline yet
            newline = self._text.rfind("\n", start)
            begins = newline >= 0 and len(self._text) - newline < BLOCK and not NOT_SPACE.search(self._text, newline)
            self._pos = newline if begins else len(self._text)
            if not self._more():
                raise _Cut
            start = 0


def _ends_early(text, error):
    """Is the end of the text the reason for the error?"""
    if getattr(error, "msg", "").startswith("Unterminated string"):
        return True
    pos = getattr(error, "pos", None)
    return pos is not None and UNFINISHED.fullmatch(text, pos) is not None


def _why(error):
    """The reason alone: where it is, is said by the line."""
    why = getattr(error, "msg", None) or str(error)
    return "a number with too many digits" if "integer string conversion" in why else why


def _make_exact(events):
    """Times to integer nanoseconds and other fractions to floats, in place. ValueError: nested deeper than DEPTH."""
    for event in events:
        for key, value in event.items():
            kind = type(value)
            if kind is str:
                continue
            if kind is bytes:
                if key not in TIMES:
                    event[key] = float(value)
                    continue
                try:
                    if value[-4] == POINT:
                        event[key] = int(value.replace(b".", b""))
                        continue
                except (IndexError, ValueError):
                    pass
                event[key] = _nanoseconds(value)
            elif kind is int:
                if key in TIMES:
                    event[key] = value * 1000
            elif kind is dict:
                if event.get("cat") == "gpu_op":
                    _exact_members(value, DEVICE_TIMES)
                else:
                    _exact_members(value, ())
            elif kind is list:
                event[key] = [_exact_value(item) for item in value]


def _exact_members(members, times, depth=DEPTH):
    for key, value in members.items():
        kind = type(value)
        if key in times:
            members[key] = _nanoseconds(value)
        elif kind is bytes or kind is list or kind is dict:
            members[key] = _exact_value(value, depth - 1)


def _exact_value(value, depth=DEPTH):
    kind = type(value)
    if kind is bytes:
        return float(value)
    if kind is not list and kind is not dict:
        return value
    if not depth:
        raise ValueError("nested too deeply")
    if kind is dict:
        _exact_members(value, (), depth)
        return value
    for item in value:
        if type(item) is not int and type(item) is not str:
            return [_exact_value(item, depth - 1) for item in value]
    return value


def _nanoseconds(value):
    """Microseconds as they stand in the file, to integer nanoseconds."""
    if type(value) is int:
        return value * 1000
    if type(value) is not bytes:
        return value
    try:
        if value[-4:-3] == b".":
            return int(value.replace(b".", b""))
    except ValueError:
        pass
    try:
        number = decimal.Decimal(value.decode())
        if number.adjusted() < 30:
            return int((number * 1000).to_integral_value())
    except decimal.DecimalException:
        pass
    return float(value)
