"""Reads the hardware metrics that xstrace and unitrace write: files of comma-separated values.

    for section in load("run.metrics.123.csv"):
        section.device, section.metrics            # 0, ("GpuTime[ns]", ...)
        for one in section.instances:              # of -q and -k: executions of kernels, in the file's order
            one.kernel, one.id, one["GpuTime[ns]"] # values: an array of float, one for each sample (in time) or tile
        for name, stalled in section.stalls.items():  # of --stall-sampling: instructions of kernels
            stalled.addresses, stalled["SbidStall[Events]"]

A file has one section for each device, or of several groups of metrics for each group, which begins with
"=== Device #0 Metrics ===" (none: device 0). Then come the names of the columns, in a line that begins with "Kernel", and the
rows. What belongs to one execution of a kernel is followed by an empty line; of -k, the rows' times ascend. Fields may have blanks around them, and quotes. Other text may come
before (-o of unitrace puts its reports into the same file). Values that are separated by semicolons, with decimal commas, are
read as well, and files of older versions of unitrace, which have a column "Device" and repeat the names for each execution.
"""

from __future__ import annotations

import csv
import difflib
import re
from array import array
from collections import Counter

from .cli import said
from .running import opened

DEVICE_MAX = 10**9
BANNER = re.compile(r"=== Device #(\d{1,9}) Metrics ===")
ADDRESS = "IP[Address]"
INSTANCE = "GlobalInstanceId"
DEVICE = "Device"  # older: the device, and no number of the instance
HEADER = re.compile(r'"?Kernel"?\s*[,;]')
LINE_MAX = 1 << 20  # characters
NOT_A_SAMPLE = "NoKernel"  # --idle-sampling: no kernel ran


class MetricsError(Exception):
    """The file holds no metrics, or is damaged; the text says where, in one line."""


class Rows:
    """Columns of numbers by name: `rows["GpuTime[ns]"]`, an array('d')."""

    def __init__(self, names):
        self.names = names
        self.columns = [array("d") for _ in names]

    def __getitem__(self, name):
        return self.columns[self.names.index(name)]

    def __len__(self):
        return len(self.columns[0]) if self.columns else 0

    def add(self, values):
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)


class Instance(Rows):
    """An execution of a kernel. kernel: its name, with its shape; id: its GlobalInstanceId."""

    def __init__(self, kernel, number, names):
        super().__init__(names)
        self.kernel, self.id = kernel, number


class Stalled(Rows):
    """The instructions of a kernel that were met by samples. addresses: from the kernel's begin, in bytes (int)."""

    def __init__(self, kernel, names):
        super().__init__(names)
        self.kernel, self.addresses = kernel, []


class Section:
    """What a file says of one device. metrics: names with units, in the file's order (a tuple of str)."""

    def __init__(self, device, metrics, has_stalls):
        self.device, self.metrics, self.has_stalls = device, metrics, has_stalls
        self.instances, self.stalls = [], {}

    def by_kernel(self):
        """{kernel: its instances}, in the order in which they came first."""
        found = {}
        for one in self.instances:
            found.setdefault(one.kernel, []).append(one)
        return found

    def kernels(self):
        """Their names and how often each is there, in the order in which they came first."""
        if self.has_stalls:
            return {name: len(stalled.addresses) for name, stalled in self.stalls.items()}
        return {name: len(instances) for name, instances in self.by_kernel().items()}


def load(path):
    """The sections of the file, a list of Section with at least one.

    Raises OSError where it cannot be read, MetricsError where it is no file of metrics or is damaged.
    """
    with opened(path, encoding="utf-8", errors="backslashreplace", newline="") as file:
        reader = _Reader()
        for number, line in enumerate(_lines_of(file), 1):
            reader.read(number, line)
        return reader.close()


def nearest(name, names):
    """' (did you mean "...")' where one of the names is like it, else ''."""
    close = difflib.get_close_matches(name, names, 1, 0.5) or [one for one in names if one.split("[")[0].lower() == name.lower()]
    return f' (did you mean "{said(close[0])}"?)' if close else ""


def _lines_of(file):
    """The lines; one that is longer than any that we know is an error, however long it is."""
    number = 0
    while line := file.readline(LINE_MAX + 1):
        number += 1
        if len(line) > LINE_MAX:
            raise MetricsError(f"line {number}: longer than {LINE_MAX} characters: no file of metrics")
        yield line


class _Reader:
    """Line by line; the names of kernels hold neither line breaks nor their own separators unquoted."""

    def __init__(self):
        self.sections, self.section, self.device = [], None, 0
        self.known = {}  # the same sections, by what they are of
        self.separator, self.layout, self.unknown = ",", INSTANCE, None
        self.number = self.rows = self.instances = 0
        self.current = None  # the instance that rows are added to
        self.ended = True  # with the end of a line

    def read(self, number, line):
        self.number, self.ended = number, line.endswith("\n")
        text = line.strip()
        if not text:
            self.current = None
        elif banner := BANNER.match(text):
            self.device, self.section, self.current = int(banner[1]), None, None
        elif text.startswith("=="):
            self.section = self.current = None
        elif HEADER.match(text):
            self._header(text)
        elif self.section:
            self._row(self._fields(text))

    def close(self):
        if not self.number:
            raise MetricsError("the file is empty")
        if not self.sections and self.unknown is not None:
            raise MetricsError(f'no metrics: the column behind "Kernel" is neither {INSTANCE} nor {ADDRESS}, but "{said(self.unknown)}"')
        if not self.sections:
            raise MetricsError('no metrics: there is no line that begins with "Kernel"')
        if not self.ended and self.rows:
            raise MetricsError(f"line {self.number}: it has no end: the file was cut")
        return self.sections

    def _error(self, text):
        raise MetricsError(f"line {self.number}: {text}")

    def _fields(self, text):
        try:
            fields = [field.strip() for field in next(csv.reader([text], delimiter=self.separator, skipinitialspace=True))]
        except csv.Error as error:
            return self._error(str(error))
        return fields if fields[-1] else fields[:-1]  # older files end with a comma

    def _header(self, text):
        self.separator = ";" if text.count(";") > text.count(",") else ","
        names = self._fields(text)
        second = names[1] if len(names) > 1 else ""
        self.section = self.current = None
        if second not in (ADDRESS, INSTANCE, DEVICE):
            self.unknown = second  # a table of a report
            return
        repeated = sorted(name for name, times in Counter(names).items() if times > 1)
        if repeated or "" in names:
            self._error(f'two columns are named "{said(repeated[0])}"' if repeated else "a column has no name")
        if len(names) < 3:
            self._error("there are no metrics: the group is empty")
        self.layout = second
        self._enter(self.device, tuple(names[2:]))

    def _enter(self, device, names):
        key = device, names, self.layout == ADDRESS
        self.section = self.known.get(key)
        if not self.section:
            self.section = self.known[key] = Section(*key)
            self.sections.append(self.section)

    def _row(self, fields):
        names = self.section.metrics
        expected = len(names) + 2
        if len(fields) != expected:
            hint = " (decimal commas? save it with semicolons, or with decimal points)" if len(fields) > expected else ""
            self._error(f"{len(fields)} values for {expected} columns{hint}")
        values = [self._number(value, name) for value, name in zip(fields[2:], names, strict=True)]
        self.rows += 1
        if self.layout == ADDRESS:
            stalled = self.section.stalls.setdefault(fields[0], Stalled(fields[0], names))
            stalled.addresses.append(self._address(fields[1]))
            stalled.add(values)
            return
        number = self._number(fields[1], self.layout)
        if self.layout == DEVICE:
            self._enter(self._device(fields[1], number), names)
            number = self.current.id if self.current else self.instances + 1
        if not self.current or self.current.kernel != fields[0] or self.current.id != number:
            self.instances += 1
            self.current = Instance(fields[0], number, names)
            self.section.instances.append(self.current)
        self.current.add(values)

    def _device(self, text, number):
        if 0 <= number < DEVICE_MAX and number == int(number):
            return int(number)
        return self._error(f'"{said(text)}" is no number of a device')

    def _address(self, text):
        try:
            return int(text, 16)
        except ValueError:
            return self._error(f'"{said(text)}" is no address')

    def _number(self, text, name):
        if self.separator == ";":
            text = text.replace(",", ".")
        try:
            return float(text)
        except ValueError:
            pass
        if text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        return self._error(f'"{said(text)}" is no number ({said(name)})')
