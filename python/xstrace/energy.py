"""xstrace-summary --energy: what tasks, steps and device work of a run with --system-metrics have cost.

Energy is known at the moments at which it was looked at; between two of them power is taken for constant.

- Work of a device gets the device's energy of its time. What runs at the same time shares it in equal parts.
- A task gets all energy that processors and devices of its host used while it ran: tasks that run at the same
  time, or in each other, count the same energy.
"""

from __future__ import annotations

import collections
import csv
import io
import json
import re
from array import array
from bisect import bisect_right

from .cli import clip_middle, columns, printable
from .kinds import NAMELESS, is_call
from .source import ZSTD_WINDOW
from .trace import TraceError, events_of, fault_of, open_trace

COUNTER = re.compile(r"(?P<device>.*) (?P<bus>[0-9a-f]+(?::[0-9a-f]+){3}) (?P<part>.*)energy \[J\]\Z", re.DOTALL)
PROCESSORS = re.compile(r"energy of (?P<zone>[0-9:]+) (?P<part>.*) \[J\]\Z", re.DOTALL)
DEVICE_NAME = re.compile(r"DEVICE<(?P<host>[^>]*)>\[(?P<name>.*)\] (?P<bus>[0-9a-f]+(?::[0-9a-f]+){3})", re.DOTALL)
HOST_NAME = re.compile(r"HOST<([^>]*)>")
WORK = frozenset(("gpu_op", "kernel", "gpu_memcpy", "gpu_memset"))  # the last three in Kineto's format
# which part stands for the whole device, the best first; else tiles are summed up
WHOLE = ("card ", "", "package ")
NAME_WIDTH = 48
COLUMNS = ("kind", "name", "device", "count", "time_s", "energy_j", "mean_w", "processors_j", "devices_j", "covered_percent")


class Curve:
    """Energy in J since some moment, at times in ns: straight between two points, level before the first and behind the last."""

    def __init__(self, points):
        points = sorted(dict(points).items())
        self.times = array("q", (time for time, _ in points))
        self.values = array("d", (value for _, value in points))

    def at(self, time):
        """The energy until that time."""
        after = bisect_right(self.times, time)
        if not after or after == len(self.times):
            return self.values[0 if not after else -1]
        begin, end = self.times[after - 1], self.times[after]
        low, high = self.values[after - 1], self.values[after]
        return low + (high - low) * ((time - begin) / (end - begin))

    def known(self, start, end):
        """For how long of that time it is known."""
        return max(0, min(end, self.times[-1]) - max(start, self.times[0]))


class Slices:
    """Slices as they come: times and the number of the name."""

    def __init__(self):
        self.starts, self.ends, self.names = array("q"), array("q"), array("l")

    def add(self, start, end, name):
        self.starts.append(start)
        self.ends.append(end)
        self.names.append(name)

    def __iter__(self):
        return zip(self.starts, self.ends, self.names)


class Row:
    """What one line of the report says."""

    __slots__ = ("count", "device", "devices", "energy", "known", "kind", "name", "ns", "processors")

    def __init__(self, kind, name, device=""):
        self.kind, self.name, self.device = kind, name, device
        self.count = self.ns = self.known = 0
        self.energy = 0.0
        self.processors = self.devices = None

    def values(self):
        """As COLUMNS."""
        seconds = self.ns / 1e9
        mean = self.energy / seconds if self.ns else None
        covered = 100 * self.known / self.ns if self.ns else None
        return (self.kind, self.name, self.device, self.count, seconds, self.energy, mean, self.processors, self.devices, covered)


class Energy:
    """Takes the traces of a run by read(); rows() gives the report."""

    def __init__(self):
        self._points = collections.defaultdict(list)  # (trace, pid, counter) -> [(ns, J)]
        self._work = collections.defaultdict(Slices)  # (trace, pid)
        self._tasks = collections.defaultdict(Slices)
        self._processes = {}  # (trace, pid) -> process_name
        self._names = {}
        self._traces = 0

    def read(self, path, zstd_window=ZSTD_WINDOW):
        """Returns the trace's Fault. Raises OSError when the file cannot be read, TraceError when it is no trace."""
        with open_trace(path, zstd_window) as trace:
            self._traces += 1
            base = trace.base_ns or 0
            for event in events_of(trace):
                self._feed(event, base)
            return fault_of(trace)

    def _feed(self, event, base):
        phase, name, pid = event.get("ph"), event.get("name"), event.get("pid")
        if type(pid) not in (int, str):
            return
        if type(name) is not str:
            name = NAMELESS
        args = event.get("args")
        key = self._traces, pid
        if phase == "M":
            if name == "process_name" and type(args) is dict:
                self._processes[key] = str(args.get("name"))
            return
        if phase == "C":
            value = args.get("value") if type(args) is dict else None
            if name.endswith("[J]") and type(value) in (int, float) and abs(value) < 1e18:
                self._points[(*key, name)].append((base + event["ts"], value))
        elif phase == "X":
            slices = self._slices_of(event.get("cat"), name)
            if slices is not None:
                number, start = self._names.setdefault(name, len(self._names)), base + event["ts"]
                slices[key].add(start, start + event["dur"], number)

    def _slices_of(self, category, name):
        if type(category) is str and category in WORK:
            return self._work
        is_task = category == "cpu_op" and not is_call(name)
        return self._tasks if is_task or category == "user_annotation" else None

    # ---- whose energy it is ----

    def _host(self, key):
        match = HOST_NAME.search(self._processes.get(key, ""))
        return match.group(1) if match else ""

    def _curves(self):
        """{(host, PCI address): (name, [Curve])}, and {host: [Curve]} of processors."""
        parts = collections.defaultdict(dict)
        zones = collections.defaultdict(dict)
        looked = {}
        for (trace, pid, counter), points in self._points.items():
            host = self._host((trace, pid))
            if looked.setdefault(host, (trace, pid)) != (trace, pid):
                raise TraceError(f"{host} was looked at more than once: give the traces of one run, or of the ranks of one job")
            match = COUNTER.match(counter)
            if match:
                parts[host, match["bus"]][match["part"]] = match["device"], Curve(points)
                continue
            match = PROCESSORS.match(counter)
            if match and ":" not in match["zone"]:
                zones[host][match["zone"], match["part"]] = Curve(points)
        devices = {}
        for key, found in parts.items():
            best = next((part for part in WHOLE if part in found), None)
            tiles = {part for part in found if re.fullmatch(r"tile \d+ (package )?", part)}
            chosen = [found[best]] if best is not None else [found[part] for part in tiles]
            if chosen:
                devices[key] = f"{chosen[0][0]} {key[1]}", [curve for _, curve in chosen]
        # the whole platform holds the packages
        processors = {
            host: [curve for (_, part), curve in found.items() if part != "psys" or len(found) == 1] for host, found in zones.items()
        }
        return devices, processors

    def _place(self, key, devices):
        """(host, PCI address) of a device. Kineto's format has its name alone, which is enough where no other has it."""
        name = self._processes.get(key, "")
        match = DEVICE_NAME.search(name)
        if match:
            return match["host"], match["bus"]
        hosts = {self._host(other) for other in self._processes if other[0] == key[0]}
        found = [(host, bus) for (host, bus), (device, _) in devices.items() if host in hosts and device == f"{name} {bus}"]
        return found[0] if len(found) == 1 else None

    # ---- the report ----

    def rows(self):
        """List of Row: devices, work, tasks, each with the most energy first. TraceError: no energy is known."""
        devices, processors = self._curves()
        if not devices and not processors:
            raise TraceError("they hold no energy: was the program run with --system-metrics, and are all traces of the run given?")
        names = list(self._names)
        rows = [_device_row("device", name, curves) for name, curves in devices.values()]
        rows += [_device_row("processors", host, curves) for host, curves in processors.items()]
        return rows + self._work_rows(devices, names) + self._task_rows(devices, processors, names)

    def _work_rows(self, devices, names):
        by_device = collections.defaultdict(list)
        for key, slices in self._work.items():
            place = self._place(key, devices)
            if place in devices:
                by_device[place].append(slices)
        rows = []
        for place, all_slices in by_device.items():
            device, curves = devices[place]
            rows += _shared(all_slices, device, curves, names)
        return sorted(rows, key=lambda row: -row.energy)

    def _task_rows(self, devices, processors, names):
        rows = {}
        for key, slices in self._tasks.items():
            host = self._host(key)
            of_devices = [curve for place, (_, curves) in devices.items() if place[0] == host for curve in curves]
            of_processors = processors.get(host, [])
            if not of_devices and not of_processors:
                continue
            for start, end, number in slices:
                row = rows.get(number)
                if not row:
                    row = rows[number] = Row("task", names[number])
                    row.processors = 0.0 if of_processors else None
                    row.devices = 0.0 if of_devices else None
                row.count += 1
                row.ns += end - start
                row.known += min(curve.known(start, end) for curve in of_devices + of_processors)
                if of_processors:
                    row.processors = (row.processors or 0.0) + _between(of_processors, start, end)
                if of_devices:
                    row.devices = (row.devices or 0.0) + _between(of_devices, start, end)
                row.energy = (row.processors or 0.0) + (row.devices or 0.0)
        return sorted(rows.values(), key=lambda row: -row.energy)


def _between(curves, start, end):
    return sum(curve.at(end) - curve.at(start) for curve in curves)


def _device_row(kind, name, curves):
    row = Row(kind, name)
    row.count = 1
    begin, end = min(curve.times[0] for curve in curves), max(curve.times[-1] for curve in curves)
    row.ns = row.known = end - begin
    row.energy = _between(curves, begin, end)
    return row


def _shared(all_slices, device, curves, names):
    """Rows of one device's work: a sweep over all begins and ends, between which the number of what runs is constant."""
    rows, edges = {}, []  # an edge is one int, which takes a third of the memory of a tuple: time, does it begin, name
    for slices in all_slices:
        for start, end, number in slices:
            row = rows.get(number)
            if not row:
                row = rows[number] = Row("work", names[number], device)
            row.count += 1
            if end > start:
                row.ns += end - start
                row.known += min(curve.known(start, end) for curve in curves)
                edges.append(start << 33 | 1 << 32 | number)
                edges.append(end << 33 | number)
    edges.sort()
    running, share, last = 0, 0.0, None
    for edge in edges:
        time, begins, number = edge >> 33, edge >> 32 & 1, edge & 0xFFFFFFFF
        energy = sum(curve.at(time) for curve in curves)
        if running:
            share += (energy - last) / running  # what each of those that ran has got
        last = energy
        running += 1 if begins else -1
        rows[number].energy += -share if begins else share
    return list(rows.values())


def as_csv(rows):
    """The report as one text of CSV; values that do not apply are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(["" if value is None else repr(value) if type(value) is float else printable(value) for value in row.values()])
    return text.getvalue().rstrip("\n")


def as_json(rows):
    """The report as JSON: a list of objects with the members COLUMNS."""
    return json.dumps([dict(zip(COLUMNS, row.values())) for row in rows], indent=1)


TITLES = {"device": "Device", "processors": "Processors of", "work": "Work of devices", "task": "Task or step"}


def as_text(rows):
    """The report as a list of str."""
    lines = []
    for kind, title in TITLES.items():
        of_kind = [row for row in rows if row.kind == kind]
        if not of_kind:
            continue
        several = kind == "work" and len({row.device for row in of_kind}) > 1
        more = ["processors [J]", "devices [J]"] if kind == "task" else ["device"] if several else []
        head = [title, "count", "time [s]", "energy [J]", "mean [W]", *more, "known [%]"]
        table = [head]
        for row in of_kind:
            _, name, device, count, seconds, energy, mean, processors, others, covered = row.values()
            extra = [_figure(processors), _figure(others)] if kind == "task" else [printable(device)] if several else []
            name = clip_middle(printable(name), NAME_WIDTH)
            table.append(
                [name, str(count), _figure(seconds), _figure(energy), _figure(mean), *extra, "-" if covered is None else f"{covered:.1f}"]
            )
        widths = [max(columns(line[i]) for line in table) for i in range(len(head))]
        if lines:
            lines.append("")
        for line in table:
            cells = [cell + " " * (width - columns(cell)) if not i else " " * (width - columns(cell)) + cell
                     for i, (cell, width) in enumerate(zip(line, widths))]  # fmt: skip
            lines.append("  ".join(cells).rstrip())
    return lines


def _figure(value):
    return "-" if value is None else f"{value:.6g}"
