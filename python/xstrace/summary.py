"""xstrace-summary: what a trace holds, in ten lines.

Works on the traces of xstrace, unitrace, cliloader and Kineto; a line that a trace has nothing for
is left out.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import re
import shutil
import signal
import sys
from array import array

from . import many
from .cli import Parser, clip, clip_middle, clip_path, columns, printable, put, said, say_unusable
from .convert import find_traces
from .energy import Energy, as_csv, as_json, as_text
from .halves import Halves
from .intervals import Intervals
from .kinds import NAMELESS, is_call, moves_data
from .overhead import OWN_ARGS, NetTimes, kind_of_task, overhead_of
from . import running
from .source import ZSTD_WINDOW
from .trace import TraceError, events_of, fault_of, open_trace
from .workers import Unavailable

COMMAND = "xstrace-summary"
WIDTH = 100  # where there is no terminal
NARROWEST = 40
TOP = 3
NAME_WIDTH = 18  # shorter than this, a name is not recognized
EPOCH_NS = 10**18  # ts without a base that lie behind this count from 1970
KINETO_CALLS = ("cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime")
KINETO_COPIES = ("gpu_memcpy", "gpu_memset")
SAMPLE = "sample"  # a function that --attach has found
KINETO_TASKS = ("cpu_op", "user_annotation", "python_function")
TRANSFER = re.compile(r"(.*?)\[([0-9]{1,19})\]\Z", re.DOTALL)
DEVICE_NAME = re.compile(r"DEVICE<[^>]*>\[(.*)\]", re.DOTALL)
HOST_NAME = re.compile(r"HOST<([^>]*)>")
END_KEYS = ("end", "status", "lost", "open_commands", "untimed_commands", "open_requests", "recovered")
FLOW_PHASES = frozenset("stf")
UNITS_NS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
UNITS_BYTES = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


def summarize(path, zstd_window=ZSTD_WINDOW, width=WIDTH, net=False):
    """Returns the summary of a trace: a list of at most 10 str of at most `width` columns each.

    net: times of tasks and calls without what tracing took of them (docs/OVERHEAD.md).
    Raises OSError when the file cannot be read, TraceError when it is no trace, or nothing is left of it, or (net) it
    does not tell what tracing took.
    """
    return [clip(printable(line), width) for line in _read(path, zstd_window, width, net).lines()]


def _read(path, zstd_window, width, net):
    """The Summary of a trace; errors as for summarize()."""
    with open_trace(path, zstd_window) as trace:
        summary = Summary(trace, width, net)
        for event in events_of(trace):
            summary.feed(event)
        summary.finish()
        summary.subtract()
    return summary


class Total:
    """Count, time in ns and bytes of the slices of one name."""

    __slots__ = ("bytes", "count", "ns")

    def __init__(self):
        self.count = self.ns = self.bytes = 0


class Summary:
    """Takes the events of one trace by feed(); lines() gives the text, not yet cut to any width."""

    def __init__(self, trace, width=WIDTH, net=False):
        self.trace = trace
        self.net = NetTimes() if net else None
        self.width = width
        self.phases = collections.Counter()
        self.calls = collections.defaultdict(Total)
        self.tasks = collections.defaultdict(Total)
        self.kernels = collections.defaultdict(Total)
        self.copies = collections.defaultdict(Total)
        self.others = collections.defaultdict(Total)  # other work of devices: barriers, migrations, native kernels
        self._halves = Halves(trace)
        self._busy = {}  # pid of a device -> (starts, ends)
        self._names = {}  # pid -> process_name
        self._labels = {}  # pid -> process_labels
        self._first = None
        self._last = None
        self._is_kineto = "schemaVersion" in trace.header or "deviceProperties" in trace.header

    def feed(self, event):
        """Adds one event (a dict, as events_of() gives it)."""
        phase = event["ph"]
        self.phases[phase] += 1
        if phase == "M":
            self._metadata(event)
            return
        end = start = event["ts"]
        if phase == "i" and self.net:
            self._place(event, start, start, "mark", None)
        if phase == "X":
            end += event["dur"]
            self._slice(event, start, end)
        elif (phase == "B" or phase == "E") and (whole := self._halves.take(event)):
            self._slice(whole, whole["ts"], end)
        if self._first is None:
            self._first = start
            self._last = end
        elif start < self._first:
            self._first = start
        if end > self._last:
            self._last = end

    def finish(self):
        """When all events have been fed: slices that have no end are as long as the trace goes."""
        for whole in self._halves.rest(self._last or 0):
            self._slice(whole, whole["ts"], whole["ts"] + whole["dur"])

    def _slice(self, event, start, end):
        name = event.get("name")
        if type(name) is not str:
            name = NAMELESS
        category = event.get("cat")
        if category == "cpu_op" and not self._is_kineto:
            total = (self.calls if is_call(name) else self.tasks)[name]
        elif category == "gpu_op" or category == "kernel" or category in KINETO_COPIES:
            total = self._device_total(event, name, category)
            pid = event.get("pid")
            if type(pid) in (int, str):
                if pid not in self._busy:
                    self._busy[pid] = array("q"), array("q")
                self._busy[pid][0].append(start)
                self._busy[pid][1].append(end)
        elif category in KINETO_TASKS or category == SAMPLE:
            total = self.tasks[name]
        elif category in KINETO_CALLS:
            total = self.calls[name]
        elif category is None:
            total = (self.calls if is_call(name) else self.tasks)[name]
        else:
            return
        total.count += 1
        total.ns += end - start
        if self.net and (self.tasks.get(name) is total or self.calls.get(name) is total):
            calls = self.calls.get(name) is total
            kind = ("mpi" if name.startswith("MPI") else "call") if calls else kind_of_task(name)
            self._place(event, start, end, kind, (calls, name))

    def _place(self, event, start, end, kind, group):
        """For the times without tracing: a slice, or an instant (group None)."""
        thread = event.get("pid"), event.get("tid")
        args = event.get("args")
        values = 0
        if type(args) is dict:
            values = "in" in args if kind == "call" else sum(key not in OWN_ARGS for key in args) if kind in ("task", "function") else 0
        if all(type(part) in (int, str) for part in thread):
            self.net.add(thread, start, end, kind, group, values)

    def subtract(self):
        """When all events have been fed: the times of tasks and calls become those without tracing, where that is wanted."""
        if not self.net:
            return
        overhead = overhead_of(self.trace.other)
        if not overhead or not overhead.costs:
            raise TraceError("it does not tell what tracing cost (otherData.overhead): it is another tool's, cut, or of an older xstrace")
        for group, ns in self.net.totals(overhead).items():
            if group:
                calls, name = group
                (self.calls if calls else self.tasks)[name].ns -= round(ns)

    def _device_total(self, event, name, category):
        args = event.get("args")
        size = args.get("bytes") if type(args) is dict else None
        match = TRANSFER.match(name)
        if match:
            name = match.group(1)
            if type(size) is not int:
                size = int(match.group(2))
        if type(size) is not int and category not in KINETO_COPIES:
            if category == "kernel" or not is_call(name):
                return self.kernels[name]
            if not moves_data(name):
                return self.others[name]
        total = self.copies[name]
        if type(size) is int and 0 <= size < 1 << 62:
            total.bytes += size
        return total

    def _metadata(self, event):
        pid = event.get("pid")
        args = event.get("args")
        if type(args) is not dict or type(pid) not in (int, str):
            return
        if event.get("name") == "process_name":
            self._names[pid] = str(args.get("name"))
        elif event.get("name") == "process_labels":
            self._labels[pid] = str(args.get("labels"))

    # ---- JSON ----

    def data(self):
        """All that is known, as a dict for JSON. docs/TRACE_FORMAT.md has its members."""
        host, pid, rank = self._whose()
        overhead = overhead_of(self.trace.other)
        return {
            "path": self.trace.path,
            "tool": self._tool(),
            "host": host,
            "pid": pid,
            "rank": rank,
            "command": self.trace.metadata.get("command"),
            "begin_ns": None if self._first is None else self._first + (self.trace.base_ns or 0),
            "span_ns": None if self._first is None else self._last - self._first,
            "tracing_ns": overhead.tracing_ns if overhead else None,
            "commands_ns": overhead.commands_ns if overhead else None,
            "start_ns": overhead.start_ns if overhead else None,
            "drain_cpu_ns": overhead.drain_cpu_ns if overhead else None,
            "subtracted": bool(self.net),
            "end": {key: value for key, value in (self.trace.other or {}).items() if key in END_KEYS},
            "cut": self.trace.truncated,
            "damaged": sum(self.trace.damaged.values()),
            "unusable": self.trace.unfit,
            "events": sum(self.phases.values()),
            "phases": dict(self.phases),
            **{
                what: [{"name": name, "count": one.count, "ns": one.ns} for name, one in _sorted(totals)]
                for what, totals in (("calls", self.calls), ("tasks", self.tasks), ("kernels", self.kernels), ("other_work", self.others))
            },
            "copies": [{"name": name, "count": one.count, "ns": one.ns, "bytes": one.bytes} for name, one in _sorted(self.copies)],
            "devices": [{"name": name, "pid": pid, "busy_ns": busy} for pid, name, busy in self._devices()],
        }

    # ---- the text ----

    def lines(self):
        """List of str, at most 10."""
        lines = [
            self._process_line(),
            self._command_line(),
            self._time_line(),
            self._end_line(),
            self._count_line(),
            _top_line("calls", self.calls, self.width),
            _top_line("tasks", self.tasks, self.width),
            _top_line("kernels", self.kernels, self.width),
            self._copies_line(),
            self._devices_line(),
        ]
        return [line for line in lines if line]

    def _process_line(self):
        parts = [self._tool()] if self._tool() else []
        for what, value in zip(("host", "pid", "rank"), self._whose()):
            if value is not None:
                parts.append(f"{what} {value}")
        rest = printable(", ".join(parts))
        path = printable(self.trace.path)
        if not rest:
            return clip_path(path, self.width)
        return clip_path(path, max(self.width - columns(rest) - 2, self.width // 3)) + ": " + rest

    def _tool(self):
        return f"xstrace {self.trace.metadata.get('version', '?')}" if self.trace.ours else "Kineto" if self._is_kineto else None

    def _whose(self):
        """(host, pid, rank); None: not told"""
        metadata = self.trace.metadata
        host = metadata.get("host") or self.trace.header.get("host_name")
        pid = metadata.get("pid")
        rank = metadata.get("rank")
        for known, name in self._names.items():
            match = HOST_NAME.search(name)
            if match and not DEVICE_NAME.search(name):
                host = host or match.group(1)
                pid = known if pid is None else pid
        distributed = self.trace.header.get("distributedInfo")
        if rank is None and type(distributed) is dict:
            rank = distributed.get("rank")
        return host, pid, rank

    def _command_line(self):
        command = self.trace.metadata.get("command")
        if type(command) is not list:
            return None
        return "command   " + " ".join(map(str, command))

    def _time_line(self):
        if self._first is None:
            return None
        base = self.trace.base_ns
        begin = self._first + (base or 0)
        line = "time      "
        if base or begin > EPOCH_NS:
            line += _date(begin)
        return line + f"wall span {with_unit(self._last - self._first, UNITS_NS)}" + self._cost()

    def _cost(self):
        """What tracing took of the program's threads, and of the processor beside it."""
        overhead = overhead_of(self.trace.other)
        if not overhead:
            return ""
        taken = f", tracing took {with_unit(overhead.tracing_ns, UNITS_NS)}"
        return taken + (", subtracted below" if self.net else f", drain process {with_unit(overhead.drain_cpu_ns, UNITS_NS)}")

    def _end_line(self):
        """How the run ended and what is missing: they share a line, for both can be long."""
        other = self.trace.other or {}
        parts = []
        end = other.get("end")
        if end is not None:
            parts.append(_how_it_ended(end, other.get("status")))
        if self.trace.truncated:
            parts.append("THE FILE WAS CUT")
        if self.trace.damaged:
            parts.append(f"DAMAGED PLACES IN THE FILE: {sum(self.trace.damaged.values())}")
        if self.trace.unfit:
            parts.append(f"EVENTS THAT CANNOT BE USED: {_grouped(self.trace.unfit)}")
        if self.trace.has_odd_base:
            parts.append("ITS baseTimeNanoseconds IS NO TIME")
        recovered = bool(other.get("recovered"))
        if recovered:
            parts.append("recovered (without spans that were open then)")
        if other.get("lost"):
            parts.append(f"RECORDS LOST: {_grouped(other['lost'])}")
        missing = [
            f"{_grouped(other[key])} {what}"
            for key, what in (
                ("open_commands", "commands not seen complete"),
                ("untimed_commands", "commands without times"),
                ("open_requests", "MPI requests not seen complete"),
            )
            if other.get(key)
        ]
        if "lost" in other and not other["lost"] and not missing and not recovered and not fault_of(self.trace).is_loss:
            parts.append("nothing lost")
        parts += missing
        if other.get("excluded_calls"):
            parts.append(f"without {_grouped(other['excluded_calls'])} calls of --exclude-calls")
        threads = other.get("threads")
        for thread in threads if type(threads) is list else ():
            if type(thread) is dict and thread.get("in_call"):
                parts.append(f"thread {thread.get('tid')} was in {thread['in_call']}")
        return "end       " + ", ".join(parts) if parts else None

    def _count_line(self):
        phases = self.phases
        kinds = (
            ("calls", _count(self.calls)),
            ("tasks", _count(self.tasks)),
            ("kernels", _count(self.kernels)),
            ("copies", _count(self.copies)),
            ("flow points", sum(phases[phase] for phase in FLOW_PHASES)),
            ("counter values", phases["C"]),
            ("names", phases["M"]),
        )
        known = sum(number for _, number in kinds)
        total = sum(phases.values())
        kinds += (("others", total - known),)
        line = ", ".join(f"{what} {_grouped(number)}" for what, number in kinds if number)
        return f"events    {_grouped(total)}" + (": " + line if line else "")

    def _copies_line(self):
        shown = []
        for name, total in _largest(self.copies):
            rate = f" {total.bytes / total.ns:.3g} GB/s" if total.ns else ""
            size = with_unit(total.bytes, UNITS_BYTES)
            shown.append((name, f"{_grouped(total.count)}x {size}{rate}"))
        return _listed("copies", shown, len(self.copies), self.width)

    def _devices_line(self):
        if not self._busy:
            return None
        span = self._last - self._first
        shown = []
        for _, name, busy in self._devices():
            share = 100 * busy / span if span else 0
            shown.append((name, f"busy {share:.1f} %"))
        overhead = overhead_of(self.trace.other)
        cost = overhead.commands_ns if overhead else 0
        told = f"; tracing commands took {with_unit(cost, UNITS_NS)}" if cost else ""
        return _listed("devices", shown[:TOP], len(shown), max(self.width - len(told), self.width // 2)) + told

    def _devices(self):
        """(pid, name, ns with work) of each."""
        return [(pid, self._device(pid), Intervals(*times).union().length()) for pid, times in self._busy.items()]

    def _device(self, pid):
        name = self._names.get(pid, "")
        match = DEVICE_NAME.search(name)
        if match:
            return match.group(1)
        return self._labels.get(pid) or name or f"pid {pid}"


def _top_line(what, totals, width):
    whole = sum(total.ns for total in totals.values())
    shown = []
    for name, total in _largest(totals):
        average = with_unit(total.ns / total.count, UNITS_NS)
        share = 100 * total.ns / whole if whole else 0
        shown.append((name, f"{_grouped(total.count)}x avg {average} {share:.0f} %"))
    return _listed(what, shown, len(totals), width)


def _listed(what, shown, known, width):
    """One line with names and their figures: as many as leave the names room to be told apart."""
    while shown:
        more = f"; {_grouped(known - len(shown))} more" if known > len(shown) else ""
        figures = sum(columns(figure) + 1 for _, figure in shown) + 2 * (len(shown) - 1)
        names = [printable(name) for name, _ in shown]
        fitted = _fit(names, width - 10 - columns(more) - figures)
        if len(shown) == 1 or all(short == name or columns(short) >= NAME_WIDTH for short, name in zip(fitted, names)):
            items = [f"{name} {figure}" for name, (_, figure) in zip(fitted, shown)]
            return f"{what:<10}" + "; ".join(items) + more
        shown = shown[:-1]
    return None


def _fit(names, room):
    """Cuts the longest names until all fit into `room` columns together."""
    names = [clip_middle(name, max(room, 1)) for name in names]
    widths = [columns(name) for name in names]
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return [clip_middle(name, width) for name, width in zip(names, widths)]


def _largest(totals):
    return _sorted(totals)[:TOP]


def _sorted(totals):
    return sorted(totals.items(), key=lambda item: -item[1].ns)


def _count(totals):
    return sum(total.count for total in totals.values())


def _grouped(number):
    return f"{number:,}" if type(number) is int else str(number)


def with_unit(value, units):
    """Three significant digits or more, with the largest unit that leaves a 1 in front."""
    for size, unit in units:
        if value >= size or size == 1:
            scaled = value / size
            return f"{scaled:.0f} {unit}" if scaled >= 100 or size == 1 else f"{scaled:.3g} {unit}"
    return str(value)


def _date(epoch_ns):
    try:
        moment = datetime.datetime.fromtimestamp(epoch_ns // 10**9, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M:%S}.{epoch_ns // 10**6 % 1000:03d} UTC, "


def _how_it_ended(end, status):
    if status is None:
        return str(end)
    if end == "killed":
        try:
            return f"killed by signal {status} ({signal.Signals(status).name})"
        except (ValueError, TypeError):
            return f"killed by signal {status}"
    return f"{end}, status {status}"


def _report_energy(options):
    energy, faults = Energy(), []
    path = options.files[0]
    try:
        paths = [path for path, _ in find_traces(options.files)]
        with many.memory_bound(options.memory_limit):
            for path in many.shown(paths, len(paths)):
                faults.append((path, energy.read(path, options.zstd_window)))
            path = ", ".join(paths)
            rows = energy.rows()
    except (OSError, TraceError) as error:
        say_unusable(COMMAND, clip_middle(path, WIDTH), error)
        return 2
    except MemoryError:
        say_unusable(COMMAND, clip_middle(path, WIDTH), TraceError(many.NO_MEMORY))
        return 2
    for path, fault in faults:
        if fault.text:
            print(f"{COMMAND}: {printable(path)}: {said(fault.text)}", file=sys.stderr)
    put(COMMAND, [as_json(rows)] if options.json else [as_csv(rows)] if options.csv else as_text(rows))
    return int(any(fault.is_loss for _, fault in faults))


EXAMPLE = """examples:
  xstrace-summary app.4711.json
  xstrace-summary --json traces/ | jq '.[] | {path, end: .end.end, kernels: .kernels[0]}'
  xstrace-summary --energy --csv traces/

Exit status: 0 (what was cut off a file was never there), 1 when something of a file was left out, 2 when a file could not be used."""


def _parser():
    parser = Parser(
        prog=COMMAND,
        description="Says in ten lines what a trace holds (xstrace's, or another tool's); with --energy, what the "
        "tasks and kernels of a run have cost.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--energy", action="store_true", help="energy of devices, their work, tasks and steps of a run with xstrace --system-metrics")
    add("--csv", action="store_true", help="with --energy: as CSV")
    add("--json", action="store_true", help="as JSON, with all names")
    add(
        "--subtract-overhead",
        action="store_true",
        help="times of tasks and calls without what tracing took of them, as the trace estimates it",
    )
    many.add_options(parser)
    return parser


@running.command("xstrace-summary")
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.csv and (options.json or not options.energy):
        parser.error("--csv is for --energy, and not with --json")
    if options.energy and (options.subtract_overhead or options.scheduler):
        parser.error("--subtract-overhead and --scheduler are not for --energy")
    if options.energy:
        return _report_energy(options)
    try:
        return _report(options)
    except (TraceError, Unavailable) as error:
        print(f"{COMMAND}: {said(error)}", file=sys.stderr)
        return 2


def _report(options):
    status = 0
    width = None if options.json else max(shutil.get_terminal_size((WIDTH, 24)).columns, NARROWEST)
    found = []
    for path, result, error in many.each(options, _said_of, options.zstd_window, width, options.subtract_overhead):
        if error:
            say_unusable(COMMAND, path, error)
            result = {"path": path, "error": said(getattr(error, "strerror", None) or error)}
            status = 2
        else:
            result, is_loss = result
            status = max(status, int(is_loss))
            if not options.json:
                put(COMMAND, [""] * bool(found) + result)
        if options.json or not error:
            found.append(result if options.json else path)
    if options.json:
        put(COMMAND, [json.dumps(found, indent=1)])
    return status


def _said_of(path, zstd_window, width, net):
    """(the lines of a trace, was something of it left out?); without a width, what is to become JSON."""
    summary = _read(path, zstd_window, width or WIDTH, net)
    told = [clip(printable(line), width) for line in summary.lines()] if width else summary.data()
    return told, fault_of(summary.trace).is_loss
