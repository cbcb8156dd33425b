"""What is wrong with one event by itself, and what becomes of it. The rules are those of check.py."""

from __future__ import annotations

import json

from .check import DEVICE_CATEGORIES, EXACT_NS, FOREVER_NS, LARGEST, ONLY_TIMED, Problems
from .cli import microseconds
from .repair_read import SURROGATE, serialized

LEFT_OUT = "left out: "
TIMES = ("ts", "dur", "tts", "tdur")
SMALLEST, BEYOND = -(1 << 31), 1 << 32  # of pids and tids, which viewers keep in 32 bits
SYNTHETIC = 1 << 30  # tids from here on are no thread's


class Changes(Problems):
    """What was changed, by kind, with a few examples; `count` of all."""

    count = 0
    told = True  # False in a pass whose changes are told by another one

    def add(self, kind, example="", *args):
        if self.told:
            self.count += 1
            super().add(kind, example, *args)


class Mender:
    """Mends the events of a trace, one by one, without a look at the others.

    changes: the Changes to be told. shift: ns that all times are moved by.
    """

    def __init__(self, trace, changes, shift=0):
        self.changes = changes
        self.number = 0
        self._ours = trace.ours
        self.shift = shift
        self._limit = EXACT_NS if trace.ours and trace.metadata.get("tool") == "xstrace" else FOREVER_NS
        self._places = {}  # tids and pids that viewers cannot hold -> those that they get
        self._by_phase = {"X": self._slice, "B": self._step, "E": self._step, "C": self._counter, "i": self._instant, "M": self._metadata}
        self._by_phase.update((phase, self._flow) for phase in "stf")
        self._by_phase.update((phase, self._timed) for phase in ONLY_TIMED)

    def mend(self, event):
        """The event itself where it is right, a changed copy, or None: nothing can be made of it."""
        self.number += 1
        phase = event.get("ph")
        mend = self._by_phase.get(phase) if type(phase) is str else None
        if mend is None:
            return self._out("events of no kind (ph) that viewers know", "ph %r", phase)
        if self.shift and type(event.get("ts")) is int:
            event = self._shifted(event)
        return mend(event)

    def _shifted(self, event):
        event = {**event, "ts": event["ts"] + self.shift}
        args = event.get("args")
        if type(args) is dict and event.get("cat") == "gpu_op":
            event["args"] = {
                key: value + self.shift if key in ("queued", "submit") and type(value) is int else value for key, value in args.items()
            }
        return event

    def _out(self, kind, example="", *args):
        self._tell(LEFT_OUT + kind, example, *args)

    def _tell(self, kind, example="", *args):
        self.changes.add(kind, "event %d" % self.number + (": " + example % args if example else ""))

    # ---- kinds of events ----

    def _slice(self, event):
        name, start, length = event.get("name"), event.get("ts"), event.get("dur")
        if (
            type(start) is int
            and type(length) is int
            and type(name) is str
            and 0 <= start < self._limit
            and 0 <= length < self._limit
            and (name.isascii() or not SURROGATE.search(name))
            and event.get("cat") != "gpu_op"
        ):
            return self._placed(event)
        event = self._placed(self._named(self._timed(event)))
        if event is None:
            return None
        if type(length) is not int or not 0 <= length < self._limit:
            event = {**event, "dur": 0, "args": _with(event.get("args"), "unfinished", True)}
            self._tell("slices without a length that can be used have none now", "dur %r", length)
        return self._device_times(event) if event.get("cat") == "gpu_op" else event

    def _device_times(self, event):
        args = event.get("args")
        if type(args) is not dict:
            return event
        queued, submit, start = args.get("queued"), args.get("submit"), event["ts"]
        wrong = any(time is not None and type(time) is not int for time in (queued, submit))
        if not wrong and submit is not None:
            wrong = submit > start or (queued is not None and queued > submit)
        elif not wrong:
            wrong = queued is not None and queued > start
        if not wrong:
            return event
        self._tell("args.queued and args.submit that cannot be true were taken away")
        return {**event, "args": {key: value for key, value in args.items() if key not in ("queued", "submit")}}

    def _step(self, event):
        event = self._placed(self._timed(event))
        return self._named(event) if event and (event["ph"] == "B" or type(event.get("name")) is str) else event

    def _flow(self, event):
        flow_id = event.get("id")
        if type(flow_id) not in (int, str):
            return self._out("flow points without a usable id", "%r", flow_id)
        if type(event.get("name")) is not str or type(event.get("cat")) is not str:
            return self._out("flow points without name or cat")
        return self._placed(self._timed(event))

    def _timed(self, event):
        time = event.get("ts")
        if type(time) is not int:
            return self._out("events without a time", "ts %r", time)
        if time < 0:
            return self._out("events before the beginning of time", "%s us", microseconds(time))
        if time >= self._limit:
            return self._out("events out of range", "%s us", microseconds(time))
        return event

    def _instant(self, event):
        event = self._timed(event)
        if event and event.get("s", "t") not in ("g", "p", "t"):
            self._tell("instants of unknown extent are their thread's now", "%r", event["s"])
            event = {**event, "s": "t"}
        return self._placed(self._named(event)) if self._ours else event

    def _counter(self, event):
        event = self._named(self._timed(event))
        if event is None:
            return None
        values = event.get("args")
        if type(values) is not dict or not values:
            return self._out("counters without values")
        if not _is_place(event.get("pid")):
            event = {**event, "pid": self._place("pid", event.get("pid"))}
        good = {key: value for key, value in values.items() if type(value) in (int, float) and -LARGEST <= value <= LARGEST}
        if len(good) == len(values):
            return event
        if not good:
            return self._out("counters whose value is no number", "%r", next(iter(values.values())))
        self._tell("values of counters that are no numbers were taken away")
        return {**event, "args": good}

    def _metadata(self, event):
        if event.get("name") not in ("process_name", "thread_name"):
            return event
        args = event.get("args")
        name = args.get("name") if type(args) is dict else None
        is_thread = event["name"] == "thread_name"
        if type(name) is not str or not _is_place(event.get("pid")) or (is_thread and "tid" not in event):
            return self._out("names of processes and threads that tell of none")
        if is_thread and not _is_place(event["tid"]):
            event = {**event, "tid": self._place("tid", event["tid"])}
        return event

    # ---- parts ----

    def _named(self, event):
        if event is None:
            return None
        name = event.get("name")
        if type(name) is str and (name.isascii() or not SURROGATE.search(name)):
            return event
        if type(name) is str:
            self._tell("halves of characters in names became U+FFFD")
        else:
            self._tell("events without a name are called by what stood there, or ?")
        name = SURROGATE.sub("\ufffd", name) if type(name) is str else "?" if name is None else serialized(name)
        return {**event, "name": name}

    def _placed(self, event):
        """With a pid and a tid that viewers can hold."""
        if event is None:
            return None
        pid, tid = event.get("pid"), event.get("tid")
        if not _is_place(pid):
            event = {**event, "pid": self._place("pid", pid)}
        if not _is_place(tid):
            event = {**event, "tid": self._place("tid", tid)}
        return event

    def _place(self, key, value):
        text = "none" if value is None else json.dumps(value, default=str)
        place = self._places.get((key, text))
        if place is None:
            place = self._places[key, text] = 0 if value is None else SYNTHETIC + (1 << 20) + len(self._places)
        self._tell(f"{key}s that viewers cannot hold, or that are missing, were replaced", "%s is %d now", text, place)
        return place

    def names(self):
        """Metadata for the tids that were replaced, (tid, what it was)."""
        return {place: text for (key, text), place in self._places.items() if key == "tid" and place}


def _is_place(value):
    if type(value) is str:
        return value.isascii() or not SURROGATE.search(value)
    return type(value) is int and SMALLEST <= value < BEYOND


def _with(args, key, value):
    return {**(args if type(args) is dict else {}), key: value}


def is_device(event):
    """Does the slice belong to a device, so that its track needs a name?"""
    category = event.get("cat")
    return type(category) is str and category in DEVICE_CATEGORIES


def text_of(event):
    """The event as a line of a trace: times with three decimals."""
    parts = []
    is_work = event.get("cat") == "gpu_op"
    for key, value in event.items():
        if key in TIMES and type(value) is int:
            text = microseconds(value)
        elif key == "args" and is_work and type(value) is dict:
            text = _text_of_args(value)
        else:
            text = serialized(value)
        parts.append(f"{serialized(key)}:{text}")
    return "{" + ",".join(parts) + "}"


def _text_of_args(args):
    parts = []
    for key, value in args.items():
        is_time = key in ("queued", "submit") and type(value) is int
        parts.append(f"{serialized(key)}:{microseconds(value) if is_time else serialized(value)}")
    return "{" + ",".join(parts) + "}"
