"""The events of a trace, and the table that sums them up by name."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Iterable, Iterator, NamedTuple

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
HOST = {"cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver"}
CALLS = {"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver"}
STEP = "ProfilerStep#"
TRANSFER = "xstrace: operations are put into the trace"  # a slice of the trace, and no part of the program's work


class Event(NamedTuple):
    """Something that was recorded. Times in ns."""

    name: str
    category: str
    """As Kineto calls it: "cpu_op", "user_annotation", "kernel", …"""
    start_ns: int
    """Since 1970."""
    duration_ns: int
    """0: an instant."""
    device_type: int
    """As in torch: 0 CPU, 1 CUDA, 12 XPU."""
    device: int
    """The device's number; of activities on the host the process id."""
    resource: int
    """The queue or stream; on the host the thread's id."""
    correlation: int
    external_id: int
    user_external_id: int
    nbytes: int
    """That were moved; 0: none."""
    input_shapes: str = ""
    """Of an operation of PyTorch that was recorded with shapes: JSON, a list for each argument."""
    sequence: int = -1
    """Of an operation of PyTorch: the number that it shares with its backward operation; -1: none."""
    stack: tuple[str, ...] = ()
    """Of an operation of PyTorch that was recorded with its stack: "file(line): function", the innermost first."""

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


class HostEvent:
    """An event of the host, while the events within it are looked at. Times in ns."""

    def __init__(self, event: Event, around: HostEvent | None):
        self.event = event
        self.around = around
        """The innermost event that it lies in."""
        self.children = 0
        self.inner = 0
        self.device = 0
        self.self_device = 0

    @property
    def self_ns(self) -> int:
        return max(self.event.duration_ns - self.inner, 0)


def _launched(open_events: list[HostEvent], device_ns: int) -> None:
    """A call has launched this work: it counts for all that is open around it, and as its own for the innermost operation."""
    for one in open_events:
        one.device += device_ns
    operations = [one for one in open_events if one.event.category not in CALLS]
    if operations:
        operations[-1].self_device += device_ns


def _is_of_a_thread(event: Event) -> bool:
    return event.category in HOST and event.duration_ns > 0 and not event.name.startswith(STEP)


def _without_doubles(hosts: list[HostEvent]) -> list[HostEvent]:
    """The events of a thread but those that are all that lies in another one of their name, as in torch.profiler: an
    operation that calls itself for another kind of tensor is one."""
    kept = []
    for host in reversed(hosts):  # from within
        around = host.around
        if around and around.children == 1 and around.event.name == host.event.name:
            around.inner, around.children = host.inner, host.children
            around.self_device += host.self_device
        else:
            kept.append(host)
    return kept[::-1]


def host_events(events: Iterable[Event]) -> Iterator[HostEvent]:
    """Each event of the host, with what it did not spend in events within it on the same thread, and with the work on
    devices that calls within it have launched."""
    events = list(events)
    work: dict[int, int] = defaultdict(int)
    for event in events:
        if event.category in DEVICE and event.correlation:
            work[event.correlation] += event.duration_ns
    threads: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if _is_of_a_thread(event):
            threads[event.device, event.resource].append(event)
    for thread in threads.values():
        thread.sort(key=lambda event: (event.start_ns, -event.duration_ns))
        hosts: list[HostEvent] = []
        open_events: list[HostEvent] = []  # the outermost first
        for event in thread:
            while open_events and open_events[-1].event.end_ns <= event.start_ns:
                open_events.pop()
            if open_events:
                open_events[-1].inner += event.duration_ns
                open_events[-1].children += 1
            hosts.append(HostEvent(event, open_events[-1] if open_events else None))
            open_events.append(hosts[-1])
            if event.category in CALLS and event.correlation in work:
                _launched(open_events, work.pop(event.correlation))
        yield from _without_doubles(hosts)


class Row:
    """All events of a name. Times in us, as torch.profiler has them."""

    def __init__(self, key: str, input_shapes: str, stack: tuple[str, ...]):
        self.key = key
        self.input_shapes = input_shapes
        self.stack = stack
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.device_time_total = 0.0
        """Of an event of the host: what calls within it have launched."""
        self.self_device_time_total = 0.0
        """The same without what operations within it have launched."""
        self.is_device = False
        """It is work on a device."""
        self.nbytes = 0

    @property
    def cpu_time(self) -> float:
        """The average of one."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The average of one."""
        return self.device_time_total / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, cpu {self.cpu_time_total:.3f} us, device {self.device_time_total:.3f} us>"


SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total", "count")


class KeyAverages(list[Row]):
    """Rows, one for each name. Time on a device counts for the work itself, and for what has launched it."""

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        header: str | None = None,
    ) -> str:
        """The rows as text.

        Args:
            sort_by: one of "cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total",
                "self_device_time_total", "count": the greatest first. None: in the order of their first event.
                "cuda_…" and "xpu_…" are taken for "device_…".
            row_limit: how many at most; -1: all.
            max_name_column_width: longer names are cut.
            header: a line above the table.

        Raises:
            ValueError: an unknown sort_by.
        """
        rows = list(self)
        if sort_by is not None:
            key = sort_by.replace("cuda_", "device_").replace("xpu_", "device_")
            if key not in SORTS:
                raise ValueError(f"sort_by: {sort_by!r} is none of {', '.join(SORTS)}")
            rows.sort(key=lambda row: getattr(row, key), reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        self_cpu = sum(row.self_cpu_time_total for row in self)
        device = sum(row.device_time_total for row in self if row.is_device)
        lines = [_titles(any(row.input_shapes for row in rows), device > 0, any(row.stack for row in rows))]
        lines += [_cells(row, self_cpu, device, max_name_column_width, lines[0]) for row in rows]
        widths = [max(len(line[i]) for line in lines) for i, _ in enumerate(lines[0])]
        rule = "  ".join("-" * width for width in widths)
        shown = [_line(line, widths) for line in lines]
        total = [f"Self CPU time total: {_time(self_cpu)}"] + [f"Device time total: {_time(device)}"] * (device > 0)
        return "\n".join([*([header] if header else []), rule, shown[0], rule, *shown[1:], rule, *total]) + "\n"

    def __str__(self) -> str:
        return self.table()


def _titles(shapes: bool, device: bool, stack: bool) -> list[str]:
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    titles += ["Self Device", "Device %", "Device total", "Device time avg"] * device
    return [*titles, "# of Calls", *["Input Shapes"] * shapes, *["Source Location"] * stack]


def _cells(row: Row, self_cpu: float, device: float, width: int, titles: list[str]) -> list[str]:
    name = row.key if len(row.key) <= width else row.key[: width - 3] + "..."
    cells = [name, _share(row.self_cpu_time_total, self_cpu), _time(row.self_cpu_time_total)]
    cells += [_share(row.cpu_time_total, self_cpu), _time(row.cpu_time_total), _time(row.cpu_time)]
    if "Device total" in titles:
        cells += [
            _time(row.self_device_time_total),
            _share(row.device_time_total, device),
            _time(row.device_time_total),
            _time(row.device_time),
        ]
    shapes = [row.input_shapes] * ("Input Shapes" in titles)
    return [*cells, str(row.count), *shapes, *[" < ".join(row.stack)] * ("Source Location" in titles)]


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def averages(events: Iterable[Event], group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
    """One row for each name, in the order of their first event. Functions of Python have none, as in torch.profiler."""
    events = [event for event in events if event.name != TRANSFER and event.category != "python_function"]
    rows: dict[tuple[str, str, tuple[str, ...]], Row] = {}

    def row_of(event: Event) -> Row:
        name = STEP + "*" if event.name.startswith(STEP) else event.name
        key = name, event.input_shapes if group_by_input_shape else "", event.stack[:group_by_stack_n]
        if key not in rows:
            rows[key] = Row(*key)
        return rows[key]

    hosts = list(host_events(events))
    counted = {id(host.event) for host in hosts}
    for event in sorted(events, key=lambda event: event.start_ns):
        if _is_of_a_thread(event) and id(event) not in counted:
            continue
        row = row_of(event)
        row.count += 1
        row.nbytes += event.nbytes
        if event.category in DEVICE:
            row.is_device = True
            row.device_time_total += event.duration_ns / 1000
            row.self_device_time_total += event.duration_ns / 1000
        else:
            row.cpu_time_total += event.duration_ns / 1000
    for host in hosts:
        row = row_of(host.event)
        row.self_cpu_time_total += host.self_ns / 1000
        row.device_time_total += host.device / 1000
        row.self_device_time_total += host.self_device / 1000
    return KeyAverages(rows.values())


def shapes_text(shapes: Any) -> str:
    """Shapes as Event.input_shapes has them; empty: nothing is known."""
    return json.dumps(shapes) if shapes else ""
