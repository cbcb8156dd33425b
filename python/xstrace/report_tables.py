"""What reports (-h -d -r) and traces say of names: time and calls, of the host, of devices, of communication.

A report is text; its tables begin below a heading and end at an empty line. A trace is summed up by name.
"""

from __future__ import annotations

import codecs
import csv
import errno
import glob
import io
import os
import re
import shutil
import tarfile

from . import many, ranks
from .check import DEVICE_CATEGORIES
from .cli import said
from .convert import ENDINGS
from .running import opened
from .source import TraceError
from .temporary import Directory
from .trace import Fault, events_of, fault_of, open_trace
from .workers import workers

HEADINGS = (
    ("host", "API Timing Summary"),
    ("device", "Device Timing Summary"),
    ("comm", "*" * 28),
)
NUMBER = re.compile(r"\d{1,30}", re.ASCII)
TOTAL = re.compile(r"\s*Total (?:API|Device) Time for (.*?) backend \(ns\):\s*(\S*)\s*")
SPAN = re.compile(r"\s*Total Execution Time[^:]*:\s*(\S*)\s*")
BACKEND = re.compile(r"=+ (.*) Backend =+\s*")
SHAPE = re.compile(r"\[[^\[\]]*\]$")  # what a trace says of a kernel's shape, or a copy's bytes
COMMUNICATION = ("oneCCL::",)
LONGEST = 1 << 20  # of a line in a report
HEAD = 4096  # bytes of a file, which say what it is
LARGEST_REPORT = 256 << 20
LARGEST_MEMBER = 4 << 30  # of a tarball: it is unpacked beside it
LARGEST_HEADER = 16 << 10  # of a member's: its name, and what else is said of it


class Misuse(Exception):
    """The input is not what it must be; the text is one line."""


class Reading:
    """What is read of a file. tables: list of (section, table). fault: the Fault."""

    def __init__(self, tables, fault):
        self.tables = tables
        self.fault = fault

    def tell(self, name, warn):
        """Says what is not in the tables."""
        if self.fault.text:
            warn(f"{name}: {said(self.fault.text)}", self.fault.is_loss)


def readings_of(place, warn, scheduler=None, memory_limit=1 << 30):
    """Yields (file, section, table) of each report and trace in `place`: a tarball, a directory, a file or a pattern.

    section: "host", "device" or "comm". table: list of (name, (ns, calls)). warn(text, is_missing=True): what cannot be read, a
    line, and whether the sums would be others with it.
    scheduler: address of a Dask cluster whose workers read the files that they see; None: processes of this machine do.
    memory_limit: bytes, of all of them together.
    Raises OSError where there is nothing of that name, Misuse where nothing can be read of it, Unavailable without a cluster.
    """
    files = 0
    for name, found, error in _read_all(place, warn, scheduler, memory_limit):
        if isinstance(error, (OSError, TraceError, EOFError)):
            warn(f"{name}: {said(getattr(error, 'strerror', None) or error)}; left out", is_trace(name))
            continue
        if error:
            raise error
        if found is None:
            continue
        files += 1
        found.tell(name, warn)
        for section, table in found.tables:
            yield name, section, table
    for name, why in ranks.no_files([place], ("*",)):
        if not files and name == place:
            raise Misuse(why)
        warn(f"{name}: {why}; left out")
    if not files:
        raise Misuse("no report and no trace in it")


def _read_all(place, warn, scheduler, memory_limit):
    """(file, what is read of it, error), one of the last two None."""
    if scheduler is None and os.path.isfile(place) and _is_tarball(place):
        for name, path in _members(place, warn):
            yield name, *many.bounded(path, memory_limit, _readings, ())[1:]
        return
    pool = workers(scheduler)
    if scheduler is None and not os.path.exists(place) and not glob.has_magic(place):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
    with pool:
        paths = pool.find([place], ("*",))
        each = memory_limit // min(len(paths) or 1, os.cpu_count() or 1)
        for path, result, error in many.shown(
            pool.each(many.bounded, [(path, each, _readings, ()) for path in paths]), len(paths), " files"
        ):
            yield result or (path, None, error)


def _is_tarball(path):
    """NULs alone would be an empty one; and padding to xz, which reads all of it to see what follows."""
    with open(path, "rb") as file:
        first = file.read(1)
    try:
        if first != b"\0":
            tarfile.open(path, tarinfo=_Member).close()
        return first != b"\0"
    except (_LongHeader, *ODD_HEADER):
        return True
    except tarfile.TarError:
        return False


# what tarfile raises where headers are no text, or lead to each other
ODD_HEADER = ValueError, RecursionError


class _LongHeader(tarfile.TarError):
    pass


class _Member(tarfile.TarInfo):
    """tarfile reads a long name, and what pax says of a member, as a whole: some hundred bytes of a tarball can be gigabytes of it."""

    @classmethod
    def frombuf(cls, buf, encoding, errors):
        member = super().frombuf(buf, encoding, errors)
        says = member.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
        if says and member.size > LARGEST_HEADER:
            raise _LongHeader(f"a header of {member.size} bytes")
        return member


def _members(place, warn):
    with Directory("xstrace-summary.") as folder:
        try:
            with tarfile.open(place, tarinfo=_Member) as tar:
                yield from _files_in(tar, place, os.path.join(folder, "member"), warn)
        except ODD_HEADER:
            warn(f"{place}: a header that no tarball has; what follows is left out")
        except (tarfile.TarError, EOFError, OSError) as error:
            warn(f"{place}: {said(error)}; what follows is left out")


def _files_in(tar, place, path, warn):
    for member in tar:
        source = tar.extractfile(member) if member.isfile() else None
        if source is None:
            continue
        if member.size > LARGEST_MEMBER:
            warn(f"{place}: {member.name}: larger than {LARGEST_MEMBER >> 30} GiB; left out")
            continue
        with source:
            head = source.read(HEAD)
            if _is_too_large(head, member.size):  # known before it takes room
                warn(f"{place}: {member.name}: larger than any report; left out", is_trace(member.name))
                continue
            with open(path, "wb") as copy:
                copy.write(head)
                shutil.copyfileobj(source, copy)
        yield f"{place}: {member.name}", path


def is_trace(name):
    """Is a file of this name meant as a trace, among others of a directory?"""
    return name.endswith(ENDINGS)


def _is_report(head):
    """Can what begins so be a report, and no trace?"""
    is_text = not head.startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\n", b"\x0a")) or b"===" in head
    return is_text and not head.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"{", b"["))


def _is_too_large(head, size):
    return size > LARGEST_REPORT and _is_report(head)


def _readings(path):
    """The Reading of a report or trace; None: a text that is neither."""
    with opened(path, "rb") as file:
        head = file.read(HEAD)
    if _is_report(head):
        if _is_too_large(head, os.path.getsize(path)):
            raise TraceError("larger than any report")
        with open(path, encoding="utf-8", errors="replace") as file:
            report = Report(file)
        if not report.sections and is_trace(path):
            raise TraceError("neither a report nor a trace")
        return Reading(list(report.sections.items()), report.fault()) if report.sections else None
    return tables_of_trace(path)


# ---- reports ----


class Report:
    """The tables of a report's lines. sections: {section: [(name, (ns, calls))]}. spoilt: rows and sums whose numbers are none."""

    def __init__(self, lines):
        self.sections = {}
        self.spoilt = 0
        self._last = ""
        self._read(self._noted(lines))

    def fault(self):
        """The Fault, when all lines have been read. A report's last line has an end."""
        parts = [f"{self.spoilt} rows whose numbers cannot be used; left out"] if self.spoilt else []
        parts += ["was cut; what could be read counts"] if not self._last.endswith("\n") else []
        return Fault("; ".join(parts), self.spoilt > 0)

    def _noted(self, lines):
        for self._last in lines:
            yield self._last[:LONGEST]

    def _read(self, lines):
        section = None
        for line in lines:
            new = next((name for name, heading in HEADINGS if heading in line), None)
            if new == "comm" and section == "comm":  # the second line of the box
                self._rows(section, lines)
                section = None
            elif new:
                section = new
            elif section and (total := SPAN.fullmatch(line)):
                self._add(section, "Wallclock", total[1], "1")
            elif section and (total := TOTAL.fullmatch(line)):
                self._add(section, f"{total[1]}_backend", total[2], "1")
            elif section in ("host", "device") and BACKEND.fullmatch(line):
                self._rows(section, lines)

    def _add(self, section, name, ns, calls):
        rows = self.sections.setdefault(section, [])
        if NUMBER.fullmatch(ns) and NUMBER.fullmatch(calls):
            rows.append((name, (int(ns), int(calls))))
        else:
            self.spoilt += 1

    def _rows(self, section, lines):
        """The rows of a table, from its head on."""
        self.sections.setdefault(section, [])
        head = next((line for line in lines if line.strip()), "")
        columns = [cell.strip() for cell in head.split(",")]
        if not {"Calls", "Time (ns)"} <= set(columns):
            return
        for line in lines:
            if not line.strip():
                break
            try:
                cells = next(csv.reader(io.StringIO(line), skipinitialspace=True))
            except (csv.Error, StopIteration):
                self.spoilt += 1
                continue
            # a name that has commas and no quotes takes the columns that are too many
            extra = max(len(cells) - len(columns), 0)
            cells = [", ".join(cells[: extra + 1]), *cells[extra + 1 :]]
            row = dict(zip(columns, map(str.strip, cells)))
            self._add(section, cells[0], row.get("Time (ns)", ""), row.get("Calls", ""))


# ---- traces ----


def tables_of_trace(path):
    """The Reading of a trace: names without shapes, the span of all as Wallclock."""
    sums = {"host": {}, "device": {}, "comm": {}}
    first, last, work = None, 0, 0
    with open_trace(path) as trace:
        for event in events_of(trace):
            if event["ph"] != "X":
                continue
            start, length = event["ts"], event["dur"]
            first = start if first is None else min(first, start)
            last = max(last, start + length)
            name, category = str(event.get("name")), event.get("cat")
            section = "host"
            if type(category) is str and category in DEVICE_CATEGORIES:
                section, name = "device", SHAPE.sub("", name)
                work += length
            elif name.startswith(COMMUNICATION):
                section = "comm"
            row = sums[section].setdefault(name, [0, 0])
            row[0] += length
            row[1] += 1
    tables = [(section, [(name, tuple(row)) for name, row in rows.items()]) for section, rows in sums.items() if rows]
    if sums["device"]:
        tables.append(("device", [("Wallclock", (last - first, 1)), ("trace_backend", (work, 1))]))
    return Reading(tables, fault_of(trace))
