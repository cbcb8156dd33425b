"""xstrace-check: proves that no viewer can misread a trace.

Viewers drop what they do not like without a word: Perfetto a slice that overlaps another one of its
track, an arrow whose end lies on no slice; so a trace is checked when it is made, not when it is
looked at. What is checked stands in Checker, one method per kind of event.

In a file that was cut, what is missing may have stood behind the cut: checks that need it (names,
both ends of arrows, the slices that they lie on) are left out.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from array import array

from .cli import Parser, microseconds, printable, put, said, say_unusable
from .intervals import Intervals
from .running import command
from .source import ZSTD_WINDOW
from .trace import TraceError, events_of, open_trace

COMMAND = "xstrace-check"
EXAMPLES = 3
DAY_NS = 86_400 * 10**9
FOREVER_NS = 1 << 62
EXACT_NS = 1 << 52  # 52 days: so far from their base, us with three decimals are exact in a double
LARGEST = sys.float_info.max
DEVICE_CATEGORIES = frozenset(("gpu_op", "kernel", "gpu_memcpy", "gpu_memset"))
ONLY_TIMED = "IRPNODbneSTpFcvV()"  # phases of which the time is all that is checked

DAMAGE = {
    "json": "not valid JSON",
    "control character": "unescaped control character",
    "utf-8": "not valid UTF-8",
    "comma": "not valid JSON (comma)",
    "tail": "text behind the end",
    "compression": "damaged compressed data",
    "packets": "not valid packets",
}

Report = collections.namedtuple("Report", "events problems notes")
Report.__doc__ = """What inspect_trace() found.

events: int. problems: list of str, empty when all is well. notes: list of str: what a reader
should know though nothing is wrong with the file.
"""


def check_trace(path, strict=False, zstd_window=ZSTD_WINDOW):
    """Returns the list of problems of a trace (str, one line each); [] when there are none.

    strict: a file that was cut is a problem, too.
    Raises OSError when the file cannot be read, TraceError when it is no trace, or nothing is left of it.
    """
    return inspect_trace(path, strict, zstd_window).problems


def inspect_trace(path, strict=False, zstd_window=ZSTD_WINDOW):
    """Checks a trace and returns a Report; arguments and errors as for check_trace()."""
    with open_trace(path, zstd_window) as trace:
        checker = Checker(trace)
        for event in events_of(trace, also_unfit=True):
            checker.feed(event)
    checker.finish(strict)
    return Report(checker.events, checker.problems.lines(), checker.notes)


class Problems:
    """Counts problems by kind and keeps the first few examples of each."""

    def __init__(self):
        self._kinds = {}

    def add(self, kind, example="", *args):
        """kind: what is wrong. example % args: where; made only for the first few."""
        found = self._kinds.setdefault(kind, [0])
        found[0] += 1
        if len(found) <= EXAMPLES:
            found.append(said(example % args if args else example))

    def add_many(self, kind, count, examples):
        """Adds `count` at once, with at least a few of their examples."""
        found = self._kinds.setdefault(kind, [0])
        found[0] += count
        found.extend(said(example) for example in examples[: EXAMPLES + 1 - len(found)])

    def lines(self):
        return [_line_of_kind(kind, *found) for kind, found in self._kinds.items()]


def _line_of_kind(kind, count, *examples):
    examples = [example for example in examples if example]
    more = "; …" if examples and count > len(examples) else ""
    times = f" ({count} times)" if count > 1 else ""
    where = ": " + "; ".join(examples) + more if examples else ""
    return kind + times + where


class Track:
    """The slices of one (pid, tid), as parallel arrays: 20 bytes a slice."""

    def __init__(self, pid, tid):
        self.pid = pid
        self.tid = tid
        self.starts = array("q")  # ns
        self.ends = array("q")
        self.names = array("I")
        self.steps = []  # of B and E: (ts, number of the name or None, is B)
        self.is_device = False
        self.has_flows = False
        self.cover = None
        self.last_start = -1

    def __str__(self):
        return f"pid {self.pid} tid {self.tid}"


class FlowPoints:
    """Starts or ends of the flows of one category and name, as parallel arrays."""

    def __init__(self):
        self.ids = array("q")
        self.times = array("q")  # ns
        self.tracks = array("I")
        self.enclosed = bytearray()  # 1: belongs to the slice around it, 0: to the next one

    def __len__(self):
        return len(self.ids)


class Checker:
    """Takes the events of one trace by feed(), then finish(); see problems, notes, events."""

    def __init__(self, trace):
        self.trace = trace
        self.events = 0
        self.problems = Problems()
        self.notes = []
        is_run = trace.ours and trace.metadata.get("tool") == "xstrace"
        self._limit = EXACT_NS if is_run else FOREVER_NS
        self._tracks = {}
        self._track_list = []
        self._names = {}
        self._listed = []
        self._process_names = {}
        self._thread_names = {}
        self._flows = collections.defaultdict(lambda: (FlowPoints(), FlowPoints()))
        self._odd_ids = {}
        self._by_phase = {
            "X": self._slice,
            "B": self._begin,
            "E": self._end,
            "s": self._flow,
            "t": self._flow,
            "f": self._flow,
            "C": self._counter,
            "i": self._instant,
            "M": self._metadata,
        }
        self._by_phase.update((phase, self._time) for phase in ONLY_TIMED)

    def feed(self, event):
        """Looks at one event (a dict, as Trace gives it)."""
        self.events += 1
        phase = event.get("ph")
        take = self._by_phase.get(phase) if type(phase) is str else None
        if take:
            take(event)
        elif "ph" in event:
            self._problem("ph that no viewer knows", "%s", repr(phase))
        else:
            self._problem("event without ph")

    def finish(self, strict=False):
        """Checks what can be known only at the end. strict: a cut file is a problem."""
        self._finish_file(strict)
        for track in self._track_list:
            self._finish_steps(track)
            self._finish_track(track)
        if not self.trace.truncated:
            self._finish_names()
        for (category, name), (starts, ends) in self._flows.items():
            self._finish_flows(f"{category}/{name}", starts, ends)

    def _problem(self, kind, example="", *args):
        where = f"event {self.events}"
        self.problems.add(kind, f"{where}: {example % args}" if example else where)

    # ---- one event ----

    def _slice(self, event):
        track = self._track(event)
        start = self._time(event)
        end = self._time(event, "dur")
        if track is None or start is None or end is None:
            return
        end += start
        track.starts.append(start)
        track.ends.append(end)
        track.names.append(self._name(event))
        category = event.get("cat")
        if type(category) is str and category in DEVICE_CATEGORIES:
            track.is_device = True
            if category == "gpu_op":
                self._device_times(event.get("args"), start)

    def _device_times(self, args, start):
        """Queued, then submitted, then begun; what is absent is not compared."""
        if type(args) is not dict:
            return
        queued = args.get("queued")
        submit = args.get("submit")
        for time in (queued, submit):
            if time is not None and type(time) is not int:
                self._problem("args.queued or args.submit that is no time", "%r", time)
                return
        if queued is not None and queued > (start if submit is None else submit):
            self._problem("device work queued after it was submitted or begun")
        if submit is not None and submit > start:
            self._problem("device work submitted after it had begun")

    def _begin(self, event):
        track = self._track(event)
        start = self._time(event)
        if track is not None and start is not None:
            track.steps.append((start, self._name(event), True))

    def _end(self, event):
        track = self._track(event)
        end = self._time(event)
        if track is not None and end is not None:
            name = event.get("name")
            track.steps.append((end, self._name(event) if type(name) is str else None, False))

    def _flow(self, event):
        track = self._track(event)
        time = self._time(event)
        flow_id = event.get("id")
        name = event.get("name")
        category = event.get("cat")
        if type(flow_id) not in (int, str):
            self._problem("flow without a usable id", "%r", flow_id)
            return
        if type(name) is not str or type(category) is not str:
            self._problem("flow without name or cat")
            return
        if track is None or time is None:
            return
        if type(flow_id) is str or not 0 <= flow_id < FOREVER_NS:
            flow_id = self._odd_ids.setdefault(flow_id, -1 - len(self._odd_ids))
        phase = event["ph"]
        points = self._flows[category, name][phase != "s"]
        points.ids.append(flow_id)
        points.times.append(time)
        points.tracks.append(track.number)
        points.enclosed.append(phase != "f" or event.get("bp") == "e")
        track.has_flows = True

    def _instant(self, event):
        """Without "s" it is the thread's; a viewer ignores what else may stand there."""
        self._time(event)
        scope = event.get("s", "t")
        if scope not in ("g", "p", "t"):
            self._problem("instant of unknown extent", "%r", scope)
        if self.trace.ours:
            self._name(event)
            self._track(event)

    def _counter(self, event):
        self._time(event)
        self._name(event)
        if not _is_process(event.get("pid")):
            self._problem("counter without a usable pid")
        values = event.get("args")
        if type(values) is not dict or not values:
            self._problem("counter without values")
            return
        for key, value in values.items():
            if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST:
                self._problem("counter whose value is no number", "%s is %r", key, value)

    def _metadata(self, event):
        what = event.get("name")
        if what not in ("process_name", "thread_name"):
            return
        pid = event.get("pid")
        tid = event.get("tid")
        args = event.get("args")
        name = args.get("name") if type(args) is dict else None
        if type(name) is not str or not _is_process(pid):
            self._problem("process or thread name without a usable pid or args.name")
        elif what == "process_name":
            self._process_names[pid] = name
        elif _is_process(tid):
            self._thread_names[pid, tid] = name
        else:
            self._problem("thread name without a usable tid")

    # ---- parts of an event ----

    def _time(self, event, key="ts"):
        """ts or dur in ns; None when it cannot be used."""
        time = event.get(key)
        if type(time) is not int:
            if key in event:
                self._problem(key + " that is no time", "%r", time)
            else:
                self._problem("event without " + key, "ph %s", event.get("ph"))
        elif time < 0:
            self._problem("negative " + key, "%s us", microseconds(time))
        elif time >= self._limit:
            self._problem(key + " out of range", "%s us", microseconds(time))
        else:
            return time
        return None

    def _name(self, event):
        """The number of the event's name."""
        name = event.get("name")
        if type(name) is not str:
            self._problem("event without a name", "ph %s", event.get("ph"))
            name = "?"
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names)
            if any("\ud800" <= character <= "\udfff" for character in name):
                self._problem("name that is not valid Unicode", "%r", name)
        return number

    def _track(self, event):
        """The Track of the event; None when pid or tid cannot be used."""
        pid = event.get("pid")
        tid = event.get("tid")
        try:
            return self._tracks[pid, tid]
        except (KeyError, TypeError):
            pass
        for key, value in (("pid", pid), ("tid", tid)):
            if key not in event:
                self._problem("event without " + key, "ph %s", event.get("ph"))
                return None
            if not _is_process(value):
                self._problem(key + " that viewers cannot hold", "%r", value)
                return None
        track = self._tracks[pid, tid] = Track(pid, tid)
        track.number = len(self._track_list)
        self._track_list.append(track)
        return track

    # ---- the end ----

    def _finish_file(self, strict):
        trace = self.trace
        for kind, count in trace.damaged.items():
            some = [damage for damage in trace.damage if damage.kind == kind]
            where = [f"line {line}" + (f": {why}" if why else "") for _, line, why in some]
            self.problems.add_many(DAMAGE[kind], count, where)
        if trace.truncated and strict:
            self.problems.add("the file was cut")
        elif trace.truncated:
            self.notes.append("the file was cut; what may have stood behind the cut is not missed")
        if trace.has_odd_base:
            base = trace.header["baseTimeNanoseconds"]
            self.problems.add(f"baseTimeNanoseconds is no {'time' if type(base) is int else 'integer'}", "%r", base)
        if trace.ours:
            self._finish_ours()
        lost = (trace.other or {}).get("lost")
        if lost:
            self.notes.append(f"{said(lost)} records were lost while tracing")
        if (trace.other or {}).get("recovered"):
            self.notes.append("recovered: spans that were open when the drain process ended may be missing")
        for key in ("untimed_commands", "open_commands", "open_requests"):
            if (trace.other or {}).get(key):
                self.notes.append(f"{key}: {printable(trace.other[key])}")

    def _finish_ours(self):
        base = self.trace.base_ns
        if base is None or base % DAY_NS:
            self.problems.add("baseTimeNanoseconds is not the start of a day", "%r", base)
        if self.trace.display_time_unit != "ns":
            self.problems.add("displayTimeUnit is not ns")
        if self.trace.other is None and not self.trace.truncated:
            self.problems.add("no otherData")

    def _finish_steps(self, track):
        """Makes slices of B and E. Viewers sort by time, so they are sorted here, too."""
        is_open = []
        for time, name, is_begin in sorted(track.steps, key=lambda step: step[0]):
            if is_begin:
                is_open.append((time, name))
            elif not is_open:
                if not self.trace.truncated:
                    self.problems.add("E without B", "%s us on %s", microseconds(time), track)
            else:
                start, begun = is_open.pop()
                if name is not None and name != begun:
                    self.problems.add("E of another name", "%r, %r", self._name_of(begun), self._name_of(name))
                track.starts.append(start)
                track.ends.append(time)
                track.names.append(begun)
        if is_open and not self.trace.truncated:
            time, begun = is_open[-1]
            self.problems.add("B without E", "%r at %s us on %s", self._name_of(begun), microseconds(time), track)
        track.steps = []

    def _name_of(self, number):
        if len(self._listed) != len(self._names):
            self._listed = list(self._names)
        return self._listed[number]

    def _finish_track(self, track):
        starts = track.starts
        ends = track.ends
        intervals = Intervals(starts, ends)
        for first, second in intervals.overlaps():
            self.problems.add(
                "slices that overlap without nesting",
                "%s [%s, %s] and %s [%s, %s] on %s",
                self._name_of(track.names[first]),
                microseconds(starts[first]),
                microseconds(ends[first]),
                self._name_of(track.names[second]),
                microseconds(starts[second]),
                microseconds(ends[second]),
                track,
            )
        if track.has_flows:
            track.cover = intervals.union()
            track.last_start = max(starts, default=-1)
        track.has_slices = bool(starts)
        track.starts = track.ends = track.names = None

    def _finish_names(self):
        unnamed = {}
        for track in self._track_list:
            if not track.has_slices:
                continue
            if track.is_device and (track.pid, track.tid) not in self._thread_names:
                self.problems.add("device track without thread_name", "%s", track)
            if track.pid not in self._process_names and (self.trace.ours or track.is_device):
                unnamed[track.pid] = None
        for pid in unnamed:
            self.problems.add("process without process_name", "pid %s", pid)

    def _finish_flows(self, what, starts, ends):
        add = self.problems.add
        row_of = _rows_by_id(starts.ids)
        has_end = bytearray(len(starts))
        for row, flow_id in enumerate(starts.ids):
            if row_of(flow_id) != row:
                add("flow id used again", "%s id %s", what, self._id(flow_id))
                has_end[row] = 1  # said enough of it
        for row, flow_id in enumerate(ends.ids):
            start = row_of(flow_id)
            if start is not None:
                has_end[start] = 1
                if ends.times[row] < starts.times[start]:
                    add("flow that ends before it starts", "%s id %s", what, self._id(flow_id))
            elif not self.trace.truncated:
                add("flow end without start", "%s id %s", what, self._id(flow_id))
        if self.trace.truncated:
            return
        row = has_end.find(0)
        while row >= 0:
            add("flow start without end", "%s id %s", what, self._id(starts.ids[row]))
            row = has_end.find(0, row + 1)
        self._finish_bindings("flow start on no slice", what, starts)
        self._finish_bindings("flow end on no slice", what, ends)

    def _finish_bindings(self, kind, what, points):
        for row, time in enumerate(points.times):
            track = self._track_list[points.tracks[row]]
            bound = time in track.cover if points.enclosed[row] else time <= track.last_start
            if not bound:
                where = (what, self._id(points.ids[row]), microseconds(time), track)
                self.problems.add(kind, "%s id %s at %s us on %s", *where)

    def _id(self, number):
        """The id as the file has it."""
        return number if number >= 0 else list(self._odd_ids)[-1 - number]


def _is_process(value):
    """Can the value be a pid or tid? Viewers keep 32 bits, or a string."""
    return type(value) is str or (type(value) is int and -(1 << 31) <= value < 1 << 32)


def _rows_by_id(ids):
    """A function from an id to the first row that has it, or to None.

    Ids are nearly always counted, so a table does; 4 bytes an id instead of a dict's 100.
    """
    low = min(ids, default=0)
    size = max(ids, default=0) - low + 1
    if size > 4 * len(ids) + 1000:
        rows = {}
        for row, flow_id in enumerate(ids):
            rows.setdefault(flow_id, row)
        return rows.get
    table = array("i", [-1]) * size
    for row, flow_id in enumerate(ids):
        if table[flow_id - low] < 0:
            table[flow_id - low] = row

    def find(flow_id):
        row = table[flow_id - low] if low <= flow_id < low + size else -1
        return row if row >= 0 else None

    return find


EXAMPLE = """examples:
  xstrace-check app.*.json                      is all well with them?
  xstrace-check --json traces/ | jq '.[] | select(.problems != [])'
  xstrace-check --repair unitrace.json          writes unitrace.repaired.json

Exit status: 0 all is well, 1 problems, 2 a file could not be used."""


@command(COMMAND)
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    from . import many
    from .workers import Unavailable

    parser = Parser(
        prog=COMMAND,
        description="Proves that no viewer can misread a trace (xstrace's, or another tool's).",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--strict", action="store_true", help="a file that was cut is a problem")
    parser.add_argument("--repair", action="store_true", help="write a valid trace of each that is not, and say what was changed")
    parser.add_argument("-o", "--output", metavar="OUT", help="the repaired trace (default: beside FILE, called FILE.repaired.json)")
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    many.add_options(parser)
    options = parser.parse_args(argv)
    if options.output and (not options.repair or len(options.files) > 1):
        parser.error("-o needs --repair and one FILE")
    said_of = []
    try:
        arguments = (options.output, options.zstd_window) if options.repair else (options.strict, options.zstd_window)
        for path, verdict, error in many.each(options, _repaired if options.repair else _checked, *arguments):
            if error:
                say_unusable(COMMAND, getattr(error, "filename", None) or path, error)
                verdict = {"path": path, "error": said(getattr(error, "strerror", None) or error)}
            elif not options.json:
                put(COMMAND, _lines(verdict))
            said_of.append({key: value for key, value in verdict.items() if options.json or key in ("error", "problems")})
    except (TraceError, Unavailable) as error:
        print(f"{COMMAND}: {said(error)}", file=sys.stderr)
        return 2
    if options.json:
        put(COMMAND, [json.dumps(said_of, indent=1)])
    return max(2 if "error" in one else 1 if one["problems"] else 0 for one in said_of)


def _checked(path, strict, zstd_window):
    report = inspect_trace(path, strict, zstd_window)
    return {"path": path, "events": report.events, "problems": report.problems, "notes": report.notes}


def _repaired(path, target, zstd_window):
    from .repair import repair_trace

    done = repair_trace(path, target, zstd_window)
    about = {"path": path, "repaired": done.path, "changes": done.changes, "repair_notes": done.notes}
    return {**about, **_checked(done.path, True, zstd_window), "path": path}


def _lines(verdict):
    """What is said of a trace."""
    path = checked = printable(verdict["path"])
    lines = []
    if "repaired" in verdict:
        checked = printable(verdict["repaired"])
        lines += [*verdict["changes"], *(f"note: {note}" for note in verdict["repair_notes"])]
        lines.append(f"repaired: {checked}" if verdict["changes"] else f"nothing to repair; a copy: {checked}")
    count = len(verdict["problems"])
    found = [*verdict["problems"], *(f"note: {note}" for note in verdict["notes"])]
    found.append(f"{verdict['events']} events, {'ok' if not count else '1 problem' if count == 1 else f'{count} problems'}")
    return [f"{path}: {line}" for line in lines] + [f"{checked}: {line}" for line in found]
