"""The Python tools: xstrace.trace (reader), xstrace.check, xstrace.summary and their commands."""

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tracemalloc
import zlib
from array import array
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS.parent / "python"))

from xstrace import Trace, TraceError, check_trace, open_trace, summarize  # noqa: E402
from memory import run_for_peak, wide_frame  # noqa: E402
from xstrace import check, cli, intervals, source, summary, trace  # noqa: E402

CHECK = SCRIPTS / "xstrace-check"
SUMMARY = SCRIPTS / "xstrace-summary"
DAY = 86_400 * 10**9
BASE = 20_778 * DAY
DEVICE = 2**31 + 5
METADATA = {
    "tool": "xstrace",
    "version": "0.1.0",
    "host": "vm",
    "pid": 7,
    "command": ["./app", "3"],
}
OTHER = {"end": "exited", "status": 0, "lost": 0}

needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="no command zstd")


# ---- making traces ----


def us(ns):
    return "%d.%03d" % divmod(ns, 1000)


def slice_(name, start, end, pid=7, tid=7, cat="cpu_op", **more):
    """An X event; start and end in ns."""
    event = {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid}
    return {**event, "ts": start, "dur": end - start, **more}


def kernel(name, start, end, tid=1, **more):
    return slice_(name, start, end, DEVICE, tid, "gpu_op", **more)


def flow(ph, ts, pid=7, tid=7, id=1, **more):
    event = {"ph": ph, "name": "dep", "cat": "flow", "id": id, "pid": pid, "tid": tid, "ts": ts}
    if ph == "f":
        event["bp"] = "e"
    event.update(more)
    return event


def named(what, name, pid, tid=None):
    event = {"ph": "M", "name": what, "pid": pid, "args": {"name": name}}
    return event if tid is None else {**event, "tid": tid}


NAMES = [
    named("process_name", "HOST<vm>", 7),
    named("thread_name", "app", 7, 7),
    named("process_name", "DEVICE<vm>[Fake GPU 3000]", DEVICE),
    named("thread_name", "queue 1", DEVICE, 1),
]


def text_of(event):
    """The event as the writer writes it: times, which are ns here, with three decimals."""
    event = dict(event)
    times = {key: event.pop(key) for key in ("ts", "dur") if type(event.get(key)) is int}
    args = event.get("args")
    args = dict(args) if type(args) is dict else {}
    if event.get("cat") == "gpu_op":
        times.update((key, args[key]) for key in ("queued", "submit") if type(args.get(key)) is int)
    for key in times:
        if key in args and key not in ("ts", "dur"):
            args[key] = f"<{key}>"
            event["args"] = args
        else:
            event[key] = f"<{key}>"
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    for key, ns in times.items():
        text = text.replace(f'"<{key}>"', "-" * (ns < 0) + us(abs(ns)))
    return text


def text_of_trace(events, metadata=METADATA, other=OTHER, base=BASE):
    header = {"displayTimeUnit": "ns", "baseTimeNanoseconds": base, "metadata": metadata}
    head = json.dumps(header, separators=(",", ":"))[:-1] + ',"traceEvents":[\n'
    tail = '\n],"otherData":' + json.dumps(other) + "}\n"
    return head + ",\n".join(map(text_of, events)) + tail


def normal_events(count=3):
    """A well-formed trace with an event of every kind that xstrace writes."""
    events = list(NAMES)
    for n in range(count):
        t = 10**12 + n * 10_000
        events += [
            slice_("clEnqueueNDRangeKernel", t, t + 3000),
            flow("s", t + 100, id=n + 1),
            kernel(
                "GEMM[SIMD8 {1; 1; 1} {2; 2; 2}]",
                t + 1500,
                t + 4501,
                args={"id": n, "queued": t + 100, "submit": t + 1200, "global": [8, 8]},
            ),
            flow("f", t + 1500, DEVICE, 1, id=n + 1),
            slice_('d::t"a\\s\n\u2603k\U0001f600', t + 3000, t + 9999),
            slice_("clFinish", t + 3000, t + 9000, args={"result": -5, "x": [1.25, {"y": 2.5}]}),
        ]
    return events


@pytest.fixture
def make(tmp_path):
    """Writes a trace of the given events (or the text itself) and returns its path."""

    def make(events, name="t.json", **members):
        path = tmp_path / name
        text = events if isinstance(events, (str, bytes)) else text_of_trace(events, **members)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def read(path):
    """(events, trace) of the file."""
    with open_trace(path) as opened:
        return list(opened), opened


@pytest.fixture(params=["large windows", "tiny windows"])
def windows(request, monkeypatch):
    """Runs a test also with windows so small that everything straddles one."""
    if request.param == "tiny windows":
        monkeypatch.setattr(source, "CHUNK", 7)
        monkeypatch.setattr(source, "PIECE", 5)
        monkeypatch.setattr(trace, "BLOCK", 16)


def zstd_frames(text, lines_per_frame):
    """The compressed text, as a list of independent frames."""
    lines = text.splitlines(keepends=True)
    parts = ["".join(lines[n : n + lines_per_frame]) for n in range(0, len(lines), lines_per_frame)]
    return [
        subprocess.run(
            ["zstd", "-qc"], input=part.encode(), stdout=subprocess.PIPE, check=True
        ).stdout
        for part in parts
    ]


@pytest.fixture(params=["module", "command"])
def zstd_reader(request, monkeypatch):
    """Reads zstd with the Python module, and with the command where that is missing."""
    if not shutil.which("zstd"):
        pytest.skip("no command zstd")  # it makes the input, too
    if request.param == "command":
        monkeypatch.setattr(source, "zstandard", None)
    elif source.zstandard is None:
        pytest.skip("no module zstandard")
    return request.param


# ---- the reader: layout and header ----


def test_reads_what_the_writer_writes(make, windows):
    events, opened = read(make(normal_events()))
    assert events == normal_events()
    assert opened.metadata == METADATA
    assert opened.base_ns == BASE
    assert opened.display_time_unit == "ns"
    assert opened.other == OTHER
    assert opened.ours and not opened.truncated and opened.damaged == {}


def test_header_is_known_before_the_events(make):
    with open_trace(make(normal_events())) as opened:
        assert opened.base_ns == BASE and opened.metadata["pid"] == 7
        assert opened.other is None


def test_a_trace_without_events(make, windows):
    for body in ("[]", "[\n]", "[\n\n]"):
        events, opened = read(make('{"traceEvents":%s}' % body))
        assert events == [] and not opened.truncated and not opened.damaged
        assert (opened.metadata, opened.base_ns, opened.display_time_unit) == ({}, None, None)
        assert not opened.ours


UNITRACE = """{ "traceEvents":[

{"ph": "M", "name": "process_name", "pid": 8, "ts": 1795246672684202.750000, "args": {"name": "HOST<vm>"}},
{"ph": "X", "tid": 9, "pid": 8, "name": "d::a", "cat": "cpu_op", "ts": 1795246672697455.500000, "dur": 1134.092000, "id": 0}
,
{"ph": "X", "tid": 9, "pid": 8, "name": "d::b", "cat": "cpu_op", "ts": 1795246672698591.000000, "dur": 0.000000, "args": {"u64":[1,18446744073709551615],"flt":[1.250000]}}
]
}
"""

KINETO = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "Fake", "totalGlobalMem": 1}
  ],
  "displayTimeUnit": "ms",
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},
  "traceEvents": [
  {
    "name": "process_name", "ph": "M", "ts": 0.000, "pid": 0, "tid": 0,
    "args": {
      "name": "python"
    }
  },
  {
    "name": "process_labels", "ph": "M", "ts": 0.000, "pid": 0, "tid": 0,
    "args": {
      "labels": "GPU 0"
    }
  },
  {
    "name": "thread_name", "ph": "M", "ts": 0.000, "pid": 0, "tid": 7,
    "args": {
      "name": "stream 7 "
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5,
    "ts": 1000.250, "dur": 50.500,
    "args": {
      "External id": 1, "Input Dims": [[2, 2], [2, 2]]
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5,
    "ts": 1010.000, "dur": 5.000,
    "args": {
      "cbid": 211, "correlation": 1
    }
  },
  {
    "ph": "s", "id": 1, "pid": 5, "tid": 5, "ts": 1010.000, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void gemm<float, 4>(float*)", "pid": 0, "tid": 7,
    "ts": 1020.000, "dur": 20.000,
    "args": {
      "queued": 0, "device": 0, "stream": 7, "correlation": 1, "est. achieved occupancy %": 12.5
    }
  },
  {
    "ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1020.000, "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
  {
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
    "ts": 1040.000, "dur": 10.000,
    "args": {
      "bytes": 40000, "memory bandwidth (GB/s)": 4.0
    }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 1000.000, "dur": 100.000, "pid": "Spans", "tid": "PyTorch",
    "name": "PyTorch Profiler (0)"
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1100.000
  }
  ],
  "baseTimeNanoseconds": 1795219200000000000,
  "traceName": "x.pt.trace.json"
}
"""

CLILOADER = """[
{"ph":"M","name":"process_name","pid":8,"tid":0,"args":{"name":"cl_gemm"}},
{"ph":"X","pid":8,"tid":8,"name":"clGetPlatformIDs","ts":37267.344,"dur":0.150},
{"ph":"X","pid":8,"tid":8,"name":"clFinish","ts":37297.238,"dur":0.040}
]
"""


def test_reads_unitrace(make, windows):
    events, opened = read(make(UNITRACE))
    assert [event["ts"] for event in events] == [
        1795246672684202750,
        1795246672697455500,
        1795246672698591000,
    ]
    assert [event.get("dur") for event in events] == [None, 1134092, 0]
    assert events[2]["args"] == {"u64": [1, 18446744073709551615], "flt": [1.25]}
    assert not opened.truncated and not opened.damaged


def test_reads_kineto(make, windows):
    events, opened = read(make(KINETO))
    assert len(events) == 11
    assert (events[3]["ts"], events[3]["dur"]) == (1000250, 50500)
    assert events[6]["args"]["est. achieved occupancy %"] == 12.5
    assert opened.header["distributedInfo"]["rank"] == 3
    assert opened.base_ns == 1795219200000000000  # it stands behind the events
    assert opened.header["traceName"] == "x.pt.trace.json"
    assert not opened.truncated and not opened.damaged


def test_reads_an_array(make, windows):
    events, opened = read(make(CLILOADER))
    assert [event.get("ts") for event in events] == [None, 37267344, 37297238]
    assert not opened.truncated and not opened.damaged


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_reads_any_layout(make, windows, indent):
    events = [{"ph": "X", "ts": n * 1000, "args": {"a": [{"b": n}], "c": {}}} for n in range(50)]
    written = [{**event, "ts": event["ts"] // 1000} for event in events]
    for whole in (written, {"a": [1], "traceEvents": written, "z": 1.5}):
        found, opened = read(make(json.dumps(whole, indent=indent)))
        assert found == events
        assert not opened.truncated and not opened.damaged
    assert opened.header == {"a": [1], "z": 1.5}


def test_carriage_returns_are_white_space(make, windows):
    events, opened = read(make(text_of_trace(normal_events()).replace("\n", "\r\n")))
    assert events == normal_events() and not opened.damaged


def test_memory_is_constant(make, monkeypatch):
    monkeypatch.setattr(trace, "BLOCK", 8192)
    monkeypatch.setattr(source, "CHUNK", 8192)
    path = make(normal_events(2000))
    tracemalloc.start()
    with open_trace(path) as opened:
        assert sum(1 for _ in opened) == 12004
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400_000 < path.stat().st_size


# ---- the reader: times ----


@pytest.mark.parametrize(
    "text, ns",
    [
        ("0.000", 0),
        ("0.001", 1),
        ("-0.500", -500),
        ("-1.500", -1500),
        ("86400000000.123", 86400000000123),
        ("1795246672684202.751000", 1795246672684202751),
        ("9007199254740993.001", 9007199254740993001),  # no double holds this
        ("5", 5000),
        ("-5", -5000),
        ("1.5", 1500),
        ("1.25e3", 1250000),
        ("21.5e2", 2150000),
        ("1E3", 1000000),
        ("1e-3", 1),
        ("0.0005", 0),
        ("0.0015", 2),
        ("1.2345678", 1235),
    ],
)
def test_times_are_exact(make, text, ns):
    lines = '{"traceEvents":[\n{"ts":%s,"dur":%s,"x":1.5},\n{"ts":%s}\n]}' % (text, text, text)
    for whole in (lines, lines.replace("\n", "")):
        events, _ = read(make(whole))
        assert events == [{"ts": ns, "dur": ns, "x": 1.5}, {"ts": ns}]
        assert type(events[0]["ts"]) is int and type(events[0]["dur"]) is int


@pytest.mark.parametrize(
    "text", ['"1.500"', "null", "true", "[1.5]", "1e999", "1e-9999999999999999999"]
)
def test_what_is_no_time_is_left(make, text):
    events, opened = read(make('[{"ts":%s}]' % text))
    assert events == [{"ts": json.loads(text)}] or events == [{"ts": 0}]
    assert not opened.damaged


def test_queued_and_submit_are_times_on_devices_only(make):
    args = '"args":{"queued":1.001,"submit":2,"ts":1.5,"dur":[2.5]}'
    events, _ = read(make('[{"cat":"gpu_op",%s},{"cat":"kernel",%s}]' % (args, args)))
    assert events[0]["args"] == {"queued": 1001, "submit": 2000, "ts": 1.5, "dur": [2.5]}
    assert events[1]["args"] == {"queued": 1.001, "submit": 2, "ts": 1.5, "dur": [2.5]}


def test_no_bytes_come_out(make):
    text = '[{"id":1.5,"tid":1.1,"cat":[1.5,[2.5]],"args":{"a":1.5,"b":[1,[2.5]],"c":{"d":{"e":3.5}}}}]'
    events, _ = read(make(text))
    assert events == json.loads(text)


# ---- the reader: files that were cut ----


def ends_of_events(text):
    """For each event, the offset in the bytes at which it is complete."""
    ends = []
    offset = 0
    for line in text.encode().split(b"\n"):
        if line.startswith(b'{"ph"'):
            ends.append(offset + len(line.rstrip(b",")))
        offset += len(line) + 1
    return ends


def test_cut_at_every_byte(make, windows):
    whole = normal_events(1)
    whole[-1]["args"] = {
        "a": True,
        "b": None,
        "c": False,
        "d": -1.5e-7,
        "e": 12,
        "f": [[]],
        "g": "\u00e9",
    }
    text = text_of_trace(whole)
    text = text.replace("\u00e9", "\\u00e9\\ud83d\\ude00")
    whole[-1]["args"]["g"] = "\u00e9\U0001f600"
    ends = ends_of_events(text)
    data = text.encode()
    for cut in range(len(data) + 1):
        events, opened = read(make(data[:cut]))
        assert events == whole[: sum(end <= cut for end in ends)], cut
        assert opened.truncated == (cut < len(data) - 1), cut  # the last byte is a newline
        assert opened.damaged == {}, cut
        assert (opened.other == OTHER) == (cut >= len(data) - 2), cut
        assert (opened.metadata == METADATA) == (cut >= data.find(b',"traceEvents"')), cut


@pytest.mark.parametrize("text", [UNITRACE, KINETO, CLILOADER, json.dumps(json.loads(KINETO))])
def test_other_layouts_cut_at_every_byte(make, text):
    whole, _ = read(make(text))
    data = text.encode()
    seen = 0
    for cut in range(len(data) + 1):
        events, opened = read(make(data[:cut]))
        assert seen <= len(events) <= len(whole) and events == whole[: len(events)], cut
        assert opened.truncated == (cut < len(text.rstrip())), cut
        assert opened.damaged == {}, cut
        seen = len(events)
    assert seen == len(whole)


def test_cut_zstd_at_every_byte(make, zstd_reader):
    whole = normal_events(2)
    frames = zstd_frames(text_of_trace(whole), 4)
    data = b"".join(frames)
    complete = [sum(map(len, frames[:n])) for n in range(1, len(frames) + 1)]
    step = 1 if zstd_reader == "module" else 7
    for cut in [*range(0, len(data), step), *complete]:
        events, opened = read(make(data[:cut], "t.json.zst"))
        lines = 4 * sum(end <= cut for end in complete)
        assert len(events) >= min(max(lines - 1, 0), len(whole)), cut  # the header is a line, too
        assert events == whole[: len(events)], cut
        assert opened.truncated == (cut < len(data)), cut
        assert opened.damaged == {}, cut


def test_cut_gzip_at_every_byte(make):
    whole = normal_events(2)
    data = gzip.compress(text_of_trace(whole).encode())
    for cut in range(len(data) + 1):
        events, opened = read(make(data[:cut], "t.json.gz"))
        assert events == whole[: len(events)]
        assert opened.truncated == (cut < len(data))
        assert opened.damaged == {}
    assert events == whole


def test_cut_check_is_quiet_unless_strict(make):
    data = text_of_trace(normal_events(2)).encode()
    for cut in range(0, len(data) - 1, 3):
        path = make(data[:cut])
        if cut < data.find(b',"traceEvents"'):  # it does not even say whose it is
            with pytest.raises(TraceError, match="empty" if not cut else "cut before its first event"):
                check_trace(path)
            continue
        assert check_trace(path) == [], cut
        assert check_trace(path, strict=True) == ["the file was cut"], cut


# ---- the reader: compression ----


def test_zstd_frames(make, zstd_reader, windows):
    frames = zstd_frames(text_of_trace(normal_events(20)), 5)
    skippable = b"\x52\x2a\x4d\x18\x03\x00\x00\x00abc"
    path = make(skippable + frames[0] + skippable + b"".join(frames[1:]), "t.json.zst")
    events, opened = read(path)
    assert events == normal_events(20)
    assert opened.other == OTHER and not opened.truncated and not opened.damaged


def test_the_contents_decide_not_the_name(make, zstd_reader):
    data = b"".join(zstd_frames(text_of_trace(normal_events()), 5))
    assert read(make(data, "t.json"))[0] == normal_events()
    assert read(make(normal_events(), "t.json.zst"))[0] == normal_events()
    assert read(make(normal_events(), "t.json.gz"))[0] == normal_events()


def test_gzip_members(make, windows):
    text = text_of_trace(normal_events(20)).encode()
    path = make(gzip.compress(text[:999]) + gzip.compress(text[999:]), "t.json.gz")
    events, opened = read(path)
    assert events == normal_events(20) and not opened.truncated


def test_damaged_gzip(make):
    text = text_of_trace(normal_events(2000)).encode()
    data = bytearray(gzip.compress(text))
    data[len(data) // 2 : len(data) // 2 + 20] = bytes(20)
    path = make(bytes(data), "t.json.gz")
    events, opened = read(path)
    assert opened.truncated and "compression" in opened.damaged
    assert events[:100] == normal_events(2000)[:100]
    assert any("damaged compressed data" in problem for problem in check_trace(path))


def test_damaged_zstd(make, zstd_reader):
    frames = zstd_frames(text_of_trace(normal_events(20)), 50)
    bad = frames[1][:4] + bytes([0xFF]) * 8 + frames[1][12:]
    path = make(frames[0] + bad, "t.json.zst")
    events, opened = read(path)
    assert events == normal_events(20)[:49]
    assert opened.truncated
    assert zstd_reader == "command" or "compression" in opened.damaged


@needs_zstd
def test_zstd_without_any_reader(make, monkeypatch):
    path = make(b"".join(zstd_frames(text_of_trace([]), 5)), "t.json.zst")
    monkeypatch.setattr(source, "zstandard", None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TraceError, match="needs the Python module zstandard or the command zstd"):
        open_trace(path)


@needs_zstd
def test_zstd_command_ends_when_reading_stops_early(make, monkeypatch):
    monkeypatch.setattr(source, "zstandard", None)
    monkeypatch.setattr(source, "CHUNK", 100)
    monkeypatch.setattr(trace, "BLOCK", 100)
    path = make(b"".join(zstd_frames(text_of_trace(normal_events(5000)), 5000)), "t.json.zst")
    with open_trace(path) as opened:
        assert next(iter(opened)) == NAMES[0]
    assert opened._source._chunks.gi_frame is None  # closed, and the child was waited for


# ---- the reader: files that are wrong ----


def damage(path):
    return read(path)[1].damaged


@pytest.mark.parametrize("text", ["hello", "\x7fELF", "1", '"a"', "null", "x[]"])
def test_not_a_trace(make, text):
    with pytest.raises(TraceError, match="begins with neither"):
        open_trace(make(text))


def test_json_without_events_is_no_trace(make):
    for text in ("{}", '{"a":1}', '{"traceEvents":{}}', '{"traceEvents":null}'):
        with pytest.raises(TraceError, match="no traceEvents"):
            open_trace(make(text))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_trace(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        open_trace(tmp_path)


def test_unescaped_quote_costs_one_event(make, windows):
    text = text_of_trace(normal_events()).replace('"clFinish"', '"cl "F" h"', 1)
    events, opened = read(make(text))
    wanted = normal_events()
    del wanted[9]
    assert events == wanted
    assert opened.damaged == {"json": 1}
    assert opened.damage[0].line == 11
    assert not opened.truncated


def test_raw_control_characters(make, windows):
    text = text_of_trace([slice_("a@b", 1, 2), slice_("c", 3, 4), slice_("d@", 5, 6)])
    events, opened = read(make(text.replace("a@b", "a\nb\t").replace("d@", "d\0")))
    assert [event["name"] for event in events] == ["a\nb\t", "c", "d\0"]
    assert opened.damaged == {"control character": 2}
    assert [place.line for place in opened.damage] == [2, 5]


def test_raw_control_characters_in_the_header_and_the_end(make, windows):
    text = text_of_trace([], {"tool": "a@"}, {"end": "b@"}).replace("@", "\x01")
    _, opened = read(make(text))
    assert opened.damaged == {"control character": 2}
    assert opened.metadata == {"tool": "a\x01"} and opened.other == {"end": "b\x01"}


def test_not_a_number(make, windows):
    events, opened = read(make('[{"ts":1.000},\n{"ts":NaN},\n{"ts":2.000,"args":{"v":-Infinity}}]'))
    assert len(events) == 3 and events[0] == {"ts": 1000}
    assert opened.damaged == {"json": 2}


def test_bytes_that_are_not_utf8(make, windows):
    data = text_of_trace([slice_("ok", 1, 2), slice_("a@b", 3, 4)]).encode()
    events, opened = read(make(data.replace(b"@", b"\xff")))
    assert [event["name"] for event in events] == ["ok", "a\ufffdb"]
    assert opened.damaged == {"utf-8": 1}
    assert opened.damage[0].line == 3
    assert damage(make(data.replace(b"@", b"\xed\xa0\x80")))["utf-8"] == 1  # a surrogate
    assert damage(make(data.replace(b"@", b"\xc0\xaf")))["utf-8"] == 1  # an overlong slash


@pytest.mark.parametrize(
    "body",
    [
        '{"a":1},\n{"a":2},\n',  # at the end
        '{"a":1},\n,\n{"a":2}\n',  # twice
        ',\n{"a":1},\n{"a":2}\n',  # at the beginning
        '{"a":1}\n{"a":2}\n',  # missing
        '{"a":1}{"a":2}\n',
    ],
)
def test_commas(make, windows, body):
    events, opened = read(make('{"traceEvents":[\n' + body + "]}"))
    assert events == [{"a": 1}, {"a": 2}]
    assert opened.damaged == {"comma": 1}


def test_second_document(make, windows):
    text = text_of_trace(normal_events())
    events, opened = read(make(text + text))
    assert events == normal_events()
    assert opened.damaged == {"tail": 1}
    assert damage(make(CLILOADER + "x")) == {"tail": 1}


@pytest.mark.parametrize("middle", ['"a":1 "b":2', '"a" 1', "a:1", '"a":nul', '"a":01'])
def test_damaged_header(make, windows, middle):
    events, opened = read(make('{"z":1,%s,"traceEvents":[\n{"a":1}\n]}' % middle))
    assert events == [] and opened.header["z"] == 1
    assert sum(opened.damaged.values()) == 1


def test_events_twice(make):
    events, opened = read(make('{"traceEvents":[{"a":1}],"traceEvents":[{"a":2}]}'))
    assert events == [{"a": 1}, {"a": 2}]
    assert opened.damaged == {"json": 1}


def test_byte_order_mark(make):
    assert damage(make("\ufeff" + CLILOADER)) == {"json": 1}


def test_events_that_are_no_objects(make, windows):
    events, opened = read(make('[\n{"a":1},\n5,\n[1],\n"x",\nnull,\n{"a":2}\n]'))
    assert events == [{"a": 1}, {"a": 2}]
    assert opened.damaged == {"json": 4}


def test_an_event_that_is_never_closed(make, windows):
    """Two writers in one file: the torn event is lost, the others are not."""
    lines = [text_of(event) + ",\n" for event in normal_events()]
    lines[5] = '{"ph":"X","args":{"x":[\n'
    events, opened = read(make("[\n" + "".join(lines)[:-2] + "\n]"))
    wanted = normal_events()
    del wanted[5]
    assert events == wanted
    assert opened.damaged == {"json": 1} and not opened.truncated


def test_endless_event_is_given_up(make, monkeypatch):
    monkeypatch.setattr(trace, "LONGEST_EVENT", 1000)
    monkeypatch.setattr(trace, "BLOCK", 100)
    monkeypatch.setattr(source, "CHUNK", 100)
    monkeypatch.setattr(source, "PIECE", 100)
    events, opened = read(make('[\n{"a":[' + "1,\n" * 2000 + '1]},\n{"a":2}\n]'))
    assert events == [{"a": 2}]
    assert opened.damaged["json"] == 1


def test_deep_nesting_and_huge_numbers(make, windows):
    deep = "[" * 100_000 + "]" * 100_000
    events, opened = read(
        make('[\n{"a":1},\n{"a":%s},\n{"a":%s},\n{"a":2}\n]' % (deep, "9" * 5000))
    )
    assert events[0] == {"a": 1} and events[-1] == {"a": 2}
    assert opened.damaged["json"] in (1, 2)  # Python before 3.10.7 takes the number


def test_damage_is_counted_and_kept_short(make):
    text = "[\n" + ",\n".join(['{"a":x}'] * 500) + "\n]"
    _, opened = read(make(text))
    assert opened.damaged == {"json": 500} and len(opened.damage) == trace.DAMAGE_KEPT


def test_nothing_in_a_file_makes_the_tools_raise(make, windows):
    """Mutations of good traces, the same in every run."""
    dice = random.Random(7)
    seeds = [text_of_trace(normal_events(2)).encode(), UNITRACE.encode(), KINETO.encode()]
    pieces = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b'"',
        b":",
        b"\n",
        b"\\",
        b"\xff",
        b"\0",
        b"-",
        b"1e9999",
        b"null",
    ]
    for _ in range(300):
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            data[at : at + dice.randrange(30)] = dice.choice(pieces) * dice.randrange(3)
        path = make(bytes(data))
        try:
            check_trace(path)
            lines = summarize(path)
        except TraceError:
            continue
        assert len(lines) <= 10 and all(len(line) <= 100 for line in lines)


def test_nothing_of_any_type_makes_the_check_raise(make):
    """Every member of every kind of event, replaced by every kind of value."""
    deep = [1]
    for _ in range(250):
        deep = [deep, {"x": deep[0]}] if len(deep) > 1 else [deep]
    values = [None, True, 1, -1, 2**70, 10**400, -(10**4000), 1e308, 1.5, "x", "", "\x1b]0;x\a" * 9000, [], [1], deep, {}, {"name": 1}, {"v": 10**400}]
    events = list(NAMES) + [
        kernel("k", 1, 2, args={"queued": 0}),
        flow("s", 1),
        flow("f", 1, DEVICE, 1),
        {"ph": "C", "name": "c", "pid": 7, "ts": 1, "args": {"v": 1}},
        {"ph": "B", "name": "b", "pid": 7, "tid": 7, "ts": 1},
        {"ph": "E", "name": "b", "pid": 7, "tid": 7, "ts": 2},
        {"ph": "i", "name": "i", "pid": 7, "tid": 7, "ts": 1},
    ]
    many = [dict(event, **{key: value}) for event in events for key in event for value in values]
    path = make(json.dumps(many))
    found = check_trace(path)
    assert found and max(map(len, found)) < 2000 and all(map(str.isprintable, found))
    summarize(path)
    for value in values:  # and of the header and the end
        path = make(many[:50], metadata=METADATA | dict.fromkeys(METADATA, value) | {"tool": "xstrace"}, other=dict.fromkeys(OTHER, value), base=value)
        report = check.inspect_trace(path)
        assert report.problems and all(len(line) < 2000 and line.isprintable() for line in report.problems + report.notes)
        summarize(path)


@pytest.mark.parametrize("depth", [200, 255, 257, 400, 700, 990, 5000, 10**6])
def test_nesting_has_a_limit(make, depth):
    """The same one everywhere: in an event, in the header, at the end, whatever is at the bottom; and what follows is read."""
    for opening, bottom, closing in (("[", "1.5", "]"), ("[", "1", "]"), ('{"a":', '"x"', "}"), ('[{"a":', "1", "}]")):
        times = depth // len(closing)
        nested = opening * times + bottom + closing * times
        text = text_of_trace(normal_events(2)).replace('"args":{"result":-5', '"args":{"deep":%s,"result":-5' % nested, 1)
        events, opened = read(make(text))
        assert len(events) == 16 - (depth > 256) and bool(opened.damage) == (depth > 256)
        check_trace(make(text))
        for place in ('"host": "vm"', '"end": "exited"'):
            text = text_of_trace(normal_events(2)).replace(place, '"host":%s' % nested).replace(place.replace(" ", ""), '"host":%s' % nested)
            assert nested in text
            events, opened = read(make(text))
            assert len(events) == (0 if depth > 256 and "host" in place else 16) and bool(opened.damage) == (depth > 256)
            if events:
                summarize(make(text))


def test_what_a_file_says_cannot_reach_the_terminal(make):
    """Escape sequences, line breaks, right-to-left marks and a megabyte, in every place that is said again."""
    bad = "\x1b[2J\nok\r\x9b31m\u202e\x00" + "n" * (1 << 20)
    events = normal_events(1) + [slice_(bad, 5, 9), slice_(bad, 7, 12), {"ph": bad}, {"ph": "X", "ts": bad, "pid": bad, "tid": bad, "name": bad}]
    path = make(events, metadata=METADATA | {"host": bad, "pid": bad, "rank": bad, "command": [bad], "version": bad}, other={"end": bad, "status": bad, "lost": bad})
    for command in (CHECK, SUMMARY):
        done = run(command, path)
        assert done.returncode in (0, 1) and len(done.stdout) < 10_000 and done.stderr == ""
        assert all(line.isprintable() for line in done.stdout.splitlines())
    (path.parent / "x\x1b]0;y\a\nz.json").write_text("")
    for command in (CHECK, SUMMARY):
        done = run(command, path.parent / "x\x1b]0;y\a\nz.json")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stderr.rstrip("\n").isprintable()


# ---- nothing to read ----

NOTHING = {
    "nothing": b"",
    "blanks": b" \n\t\r\n" * 1000,
    "a byte order mark": b"\xef\xbb\xbf",
    "an object": b"{}",
    "an object of others": b'{"metadata":{"tool":"xstrace"}}',
    "a list": b"[]",
    "a list that is cut": b"[",
    "no event": b'{"traceEvents":[]}',
    "no event, cut": b'{"traceEvents":[\n',
    "a header that is cut": text_of_trace([]).encode()[:50],
    "events that are none": b'[1,2,"x"]',
    "one event, cut": b'[{"ph":"X",',
    "binary": bytes(range(256)) * 50,
    "ELF": Path(sys.executable).read_bytes()[:4096],
    "an empty gzip file": gzip.compress(b""),
    "a gzip file that is cut": gzip.compress(text_of_trace(normal_events(1)).encode())[:20],
    "garbage behind a zstd magic": b"\x28\xb5\x2f\xfd" + b"garbage" * 10,
    "half a zstd magic": b"\x28\xb5",
    "half a gzip magic": b"\x1f",
}


@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_a_file_without_a_trace_does_not_pass(make, command, what):
    done = run(command, make(NOTHING[what], "n.json"))
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(f"{command.name}: ") and "n.json: " in done.stderr


@needs_zstd
@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_a_zstd_file_cut_before_its_first_event_does_not_pass(make, command):
    frame = zstd_frames(text_of_trace(normal_events(1)), 100)[0]
    for cut in (1, 4, 9, 30):
        assert run(command, make(frame[:cut], "n.json.zst")).returncode == 2


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_what_is_no_file_does_not_pass(tmp_path, command):
    for path in (tmp_path, "/dev/zero", "/dev/null", tmp_path / "none"):
        done = run(command, path, stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1


def test_a_trace_of_ours_without_events_is_ok(make):
    for text in (text_of_trace([]), text_of_trace([])[: text_of_trace([]).index('"traceEvents":[') + 15]):
        assert run(CHECK, make(text)).returncode == 0


# ---- zstd windows ----


def test_a_file_cannot_ask_for_a_gigabyte(make, zstd_reader):
    pytest.importorskip("zstandard")
    for log, window, fine in ((23, None, True), (24, None, False), (30, None, False), (28, "256M", True), (28, "128M", False)):
        path = make(wide_frame(text_of_trace(normal_events(1)), log), "w.json.zst")
        assert path.stat().st_size < 60_000
        options = [] if window is None else ["--zstd-window", window]
        hidden = {"PYTHONPATH": str(without_zstandard(path.parent))} if zstd_reader == "command" else {}
        for command in (CHECK, SUMMARY):
            done = run_for_peak(path.parent, [command, *options, path], env=os.environ | hidden)
            assert (done.returncode == 0) == fine, done
            if not fine:
                assert done.returncode == 2 and "--zstd-window" in done.stderr and len(done.stderr.splitlines()) == 1
            assert done.peak < 60_000 + (int(window[:-1]) << 10 if window else 8 << 10)


@pytest.mark.parametrize("where", ["before", "behind"])
@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_a_member_without_end(make, command, where):
    """A small file whose one text has half a gigabyte: a line, and not that memory."""
    text = ('{"traceEvents":[%s],"x":"' % json.dumps(normal_events(1)[0]) if where == "behind" else '{"x":"').encode()
    packer = zlib.compressobj(1, wbits=31)
    parts = [packer.compress(text), *(packer.compress(b"a" * (1 << 20)) for _ in range(512)), packer.compress(b'"}'), packer.flush()]
    path = make(b"".join(parts), "w.json.gz")
    done = run_for_peak(path.parent, [command, path])
    said = "DAMAGED PLACES" if command == SUMMARY and where == "behind" else "no end in sight"
    assert said in done.stdout + done.stderr and done.peak < 250_000
    assert done.returncode == (2 if where == "before" else 1 if command == CHECK else 0)


def test_a_small_gzip_file_does_not_take_a_lot(make):
    path = make(gzip.compress(text_of_trace(normal_events(1)).encode() + b" " * (300 << 20)), "w.json.gz")
    done = run_for_peak(path.parent, [CHECK, path])
    assert done.returncode == 0 and done.peak < 60_000


def without_zstandard(place):
    """A directory that hides the module."""
    (place / "hide").mkdir(exist_ok=True)
    (place / "hide" / "zstandard.py").write_text("raise ImportError")
    return place / "hide"


@pytest.mark.parametrize("value", ["0", "1", "-1", "4G", "8X", "", "1" * 50])
def test_bad_zstd_window(make, value):
    for command in (CHECK, SUMMARY):
        done = run(command, f"--zstd-window={value}", make(normal_events(1)))
        assert done.returncode == 2 and "--zstd-window" in done.stderr


# ---- the check ----


def problems(make, events, **members):
    return check_trace(make(events, **members), strict=True)


def with_normal(*events):
    return normal_events(1) + list(events)


def test_good_traces_have_no_problems(make):
    assert problems(make, []) == []
    assert problems(make, normal_events(50)) == []
    assert problems(make, UNITRACE) == []
    assert problems(make, KINETO) == []
    assert problems(make, CLILOADER) == []


def one(make, kind, *events, **members):
    """The events, beside a good trace, cause exactly one kind of problem. Returns its line."""
    found = problems(make, with_normal(*events), **members)
    assert len(found) == 1, found
    assert found[0].startswith(kind), found
    return found[0]


def test_says_cut_and_damage(make):
    good = text_of_trace(normal_events(1))
    assert problems(make, good[:-30]) == ["the file was cut"]
    assert problems(make, good + "x") == ["text behind the end: line 13"]
    assert problems(make, good.replace("clFinish", "cl\tFinish")) == [
        "unescaped control character: line 11"
    ]
    assert problems(make, good.replace("clFinish", 'cl"Finish')) == [
        "not valid JSON: line 11: Expecting ',' delimiter"
    ]
    assert problems(make, good.encode().replace(b"clFinish", b"cl\xffFinish")) == [
        "not valid UTF-8: line 11: invalid start byte"
    ]
    assert problems(make, good.replace("\n]", ",\n]")) == [
        "not valid JSON (comma): line 12: in front of the closing bracket"
    ]


@pytest.mark.parametrize("key", ["name", "ts", "dur", "pid", "tid"])
def test_slice_needs_its_members(make, key):
    event = slice_("a", 10**9, 10**9 + 5)
    del event[key]
    assert one(make, "event without " + ("a name" if key == "name" else key), event).endswith(
        "11: ph X"
    )


@pytest.mark.parametrize("value", ["5", None, True, [1], {}])
def test_times_are_numbers(make, value):
    one(make, "ts that is no time", {**slice_("a", 1, 2), "ts": value})
    one(make, "dur that is no time", {**slice_("a", 1, 2), "dur": value})


def test_negative_times(make):
    assert one(make, "negative dur", slice_("a", 5000, 3500)).endswith("-1.500 us")
    one(make, "negative ts", slice_("a", -5, 100))
    one(make, "negative ts", {"ph": "i", "name": "a", "pid": 7, "tid": 7, "ts": -1})


def test_range_of_times(make):
    assert problems(make, with_normal(slice_("a", 2 * DAY - 2, 2 * DAY - 1))) == []
    assert one(make, "ts out of range", slice_("a", 2 * DAY, 2 * DAY + 1)).endswith(
        "172800000000.000 us"
    )
    one(make, "ts out of range", slice_("a", BASE, BASE + 1))
    one(make, "dur out of range", slice_("a", 5, 2 * DAY + 5))
    # others may count from 1970
    assert (
        problems(make, [slice_("a", BASE, BASE + 1), named("process_name", "p", 7)], metadata={})
        == []
    )
    assert problems(make, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1e300,"dur":1}]')[
        0
    ].startswith("ts that is no time")
    assert problems(make, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1e20,"dur":1}]')[
        0
    ].startswith("ts out of range")


@pytest.mark.parametrize("value", [1.5, 2**32, -(2**31) - 1, None, [], True])
def test_pids_and_tids_that_viewers_cannot_hold(make, value):
    one(make, "pid that viewers cannot hold", slice_("a", 1, 2, pid=value))
    one(make, "tid that viewers cannot hold", slice_("a", 1, 2, tid=value))


def test_largest_pid(make):
    name = named("process_name", "x", 2**32 - 1)
    assert problems(make, with_normal(name, slice_("a", 1, 2, pid=2**32 - 1, tid=2**32 - 1))) == []


def test_overlap(make):
    line = one(make, "slices that overlap", slice_("a", 1000, 5000), slice_("b", 4999, 6001))
    assert line == (
        "slices that overlap without nesting: a [1.000, 5.000] and b [4.999, 6.001] on pid 7 tid 7"
    )
    assert "(2 times)" in one(
        make, "slices that overlap", slice_("a", 1, 5), slice_("b", 4, 7), slice_("c", 6, 8)
    )


def test_overlap_by_one_nanosecond_far_from_zero(make):
    t = 2 * DAY - 10**9
    assert problems(make, with_normal(slice_("a", t, t + 5), slice_("b", t + 5, t + 9))) == []
    one(make, "slices that overlap", slice_("a", t, t + 6), slice_("b", t + 5, t + 9))


def test_what_is_no_overlap(make):
    fine = [
        slice_("outer", 1000, 9000),
        slice_("same", 1000, 9000),
        slice_("left", 1000, 3000),
        slice_("next", 3000, 5000),
        slice_("inner", 3000, 4000),
        slice_("right", 5000, 9000),
        slice_("nothing", 3000, 3000),
        slice_("nothing", 9000, 9000),
        slice_("nothing", 3500, 3500),
        slice_("after", 9000, 9001),
        slice_("other thread", 500, 1500, tid=8),
        slice_("other process", 500, 1500, pid=DEVICE),
    ]
    dice = random.Random(1)
    for _ in range(20):
        assert problems(make, with_normal(*fine)) == []
        dice.shuffle(fine)


def test_overlap_against_an_oracle():
    """Also in the orders that are not sorted: by begin, and by end with the inner ones first."""
    dice = random.Random(2)
    for _ in range(500):
        spans = []
        for _ in range(dice.randrange(7)):
            start = dice.randrange(10)
            spans.append((start, start + dice.randrange(6)))
        wrong = any(a[0] < b[0] < a[1] < b[1] for a in spans for b in spans)
        by_start = sorted(spans, key=lambda span: (span[0], -span[1]))
        by_end = sorted(spans, key=lambda span: (span[1], -span[0]))
        for ordered in (spans, by_start, by_end):
            starts = array("q", [start for start, _ in ordered])
            ends = array("q", [end for _, end in ordered])
            found = intervals.Intervals(starts, ends)
            pairs = list(found.overlaps())
            assert bool(pairs) == wrong, ordered
            for a, b in pairs:
                assert starts[a] < starts[b] < ends[a] < ends[b]
            union = found.union()
            for point in range(-1, 18):
                assert (point in union) == any(a <= point <= b for a, b in spans), ordered
            assert union.length() == len({cell for a, b in spans for cell in range(a, b)})


def test_slices_in_order_of_their_ends_are_not_sorted():
    starts, ends = array("q", [3, 1, 5, 0]), array("q", [4, 4, 6, 9])
    assert type(intervals.Intervals(starts, ends)._order) is range
    starts, ends = array("q", [3, 0, 5, 1]), array("q", [4, 9, 6, 4])
    assert type(intervals.Intervals(starts, ends)._order) is not range


def begin(ph, ts, name="a", tid=7):
    return {"ph": ph, "name": name, "cat": "x", "pid": 7, "tid": tid, "ts": ts}


def test_begin_and_end(make):
    fine = [begin("B", 1), begin("B", 2, "b"), begin("E", 3, "b"), begin("E", 4)]
    assert problems(make, with_normal(*fine)) == []
    unnamed = {"ph": "E", "pid": 7, "tid": 7, "ts": 5}
    assert problems(make, with_normal(begin("B", 1), unnamed)) == []
    one(make, "B without E", begin("B", 1), begin("B", 2), begin("E", 3))
    one(make, "B without E", begin("B", 1), begin("E", 2, tid=8), begin("B", 1, tid=8))
    one(make, "E without B", begin("E", 1))
    one(make, "E of another name", begin("B", 1, "a"), begin("E", 2, "b"))
    one(make, "slices that overlap", begin("B", 10), begin("E", 20), slice_("x", 15, 25))
    one(make, "event without ts", {"ph": "B", "name": "a", "pid": 7, "tid": 7})
    unnamed_end = {"ph": "E", "pid": 7, "tid": 7, "ts": 2}
    one(make, "event without a name", {"ph": "B", "pid": 7, "tid": 7, "ts": 1}, unnamed_end)


HOST_SLICE = slice_("call", 1000, 2000)
DEVICE_SLICE = kernel("k", 3000, 4000)


def with_flow(*events):
    return (HOST_SLICE, DEVICE_SLICE, *events)


def test_good_flows(make):
    for start in (1000, 1500, 2000):
        for end in (3000, 3500, 4000):
            flows = with_flow(flow("s", start, id=9), flow("f", end, DEVICE, 1, id=9))
            assert problems(make, with_normal(*flows)) == []
    next_slice = {**flow("f", 2500, DEVICE, 1, id=9), "bp": "x"}
    assert problems(make, with_normal(*with_flow(flow("s", 1000, id=9), next_slice))) == []
    steps = [
        flow("f", 3900, DEVICE, 1, id="0x1"),
        flow("t", 3500, DEVICE, 1, id="0x1"),
        flow("s", 1000, id="0x1"),
    ]
    assert problems(make, with_normal(*with_flow(*steps))) == []
    at_nothing = slice_("marker", 6000, 6000), flow("s", 6000, id=9), flow("t", 6000, id=9)
    assert problems(make, with_normal(*at_nothing)) == []
    other = flow("s", 1000, id=1, cat="other"), flow("f", 3000, DEVICE, 1, id=1, cat="other")
    assert problems(make, with_normal(*with_flow(*other))) == []


@pytest.mark.parametrize("id", [9, 10**15, "abc", -3, 2**63])
def test_flow_without_its_other_side(make, id):
    line = one(make, "flow start without end", HOST_SLICE, flow("s", 1000, id=id))
    assert line == f"flow start without end: flow/dep id {id}"
    assert f"id {id}" in one(
        make, "flow end without start", DEVICE_SLICE, flow("f", 3000, DEVICE, 1, id=id)
    )
    one(make, "flow end without start", DEVICE_SLICE, flow("t", 3000, DEVICE, 1, id=id))


def test_flow_ids_are_not_reused(make):
    twice = with_flow(
        flow("s", 1000, id=9), flow("s", 1100, id=9), flow("f", 3000, DEVICE, 1, id=9)
    )
    one(make, "flow id used again", *twice)


def test_flow_goes_forward(make):
    late = slice_("late", 5000, 6000)
    one(
        make,
        "flow that ends before",
        late,
        *with_flow(flow("s", 5000, id=9), flow("f", 3000, DEVICE, 1, id=9)),
    )


def test_flow_start_needs_a_slice(make):
    end = flow("f", 3000, DEVICE, 1, id=9)
    for ts in (999, 2001):
        line = one(make, "flow start on no slice", *with_flow(flow("s", ts, id=9), end))
        assert line.endswith(f"flow/dep id 9 at {us(ts)} us on pid 7 tid 7")
    one(make, "flow start on no slice", *with_flow(flow("s", 1000, tid=99, id=9), end))


def test_flow_end_needs_a_slice(make):
    start = flow("s", 1000, id=9)
    for ts in (2999, 4001):
        one(make, "flow end on no slice", *with_flow(start, flow("f", ts, DEVICE, 1, id=9)))
    one(make, "flow end on no slice", *with_flow(start, flow("f", 3000, DEVICE, 2, id=9)))
    past_all = {**flow("f", 2 * 10**12, DEVICE, 1, id=9), "bp": "x"}
    one(make, "flow end on no slice", *with_flow(start, past_all))


@pytest.mark.parametrize("id", [None, 1.5, True, [], {}])
def test_flow_needs_an_id(make, id):
    one(make, "flow without a usable id", HOST_SLICE, flow("s", 1000, id=id))


@pytest.mark.parametrize("key", ["name", "cat"])
def test_flow_needs_name_and_category(make, key):
    event = flow("s", 1000, id=9)
    del event[key]
    one(make, "flow without name or cat", HOST_SLICE, event)


def test_unknown_phases(make):
    one(make, "ph that no viewer knows", {"ph": "?", "ts": 1})
    one(make, "ph that no viewer knows", {"ph": 5, "ts": 1})
    one(make, "ph that no viewer knows", {"ph": [], "ts": 1})
    one(make, "event without ph", {"ts": 1})


def test_device_tracks_have_names(make):
    line = one(make, "device track without thread_name", kernel("k", 1, 2, tid=5))
    assert line.endswith(f"pid {DEVICE} tid 5")
    kineto = KINETO.replace('"thread_name"', '"thread_nam"')
    assert problems(make, kineto) == ["device track without thread_name: pid 0 tid 7"]


def test_processes_have_names(make):
    one(make, "process without process_name", slice_("a", 1, 2, pid=55))
    kineto = KINETO.replace('"process_name"', '"process_nam"')
    assert problems(make, kineto) == ["process without process_name: pid 0"]


def test_names_are_usable(make):
    one(make, "process or thread name without", {"ph": "M", "name": "process_name", "pid": 7})
    one(
        make,
        "process or thread name without",
        {"ph": "M", "name": "thread_name", "args": {"name": "x"}},
    )
    one(make, "process or thread name without", named("process_name", 5, 7))
    one(make, "thread name without a usable tid", named("thread_name", "x", 7))


def test_lone_surrogates(make):
    text = text_of_trace(with_normal(slice_("a@", 1, 2))).replace("a@", "a\\ud800")
    assert problems(make, text) == ["name that is not valid Unicode: event 11: 'a\\ud800'"]


def counter(args, **more):
    return {"ph": "C", "name": "load", "pid": 7, "ts": 5, "args": args, **more}


def test_counters(make):
    assert problems(make, with_normal(counter({"a": 1, "b": 1.5, "": -3}))) == []
    for value in ("1", None, True, [1], {}):
        one(make, "counter whose value is no number", counter({"v": value}))
    one(make, "counter without values", counter({}))
    one(make, "counter without values", counter(5))
    one(make, "counter without a usable pid", counter({"v": 1}, pid=1.5))
    text = text_of_trace(with_normal(counter({"v": 12345}))).replace("12345", "1e999")
    assert problems(make, text) == ["counter whose value is no number: event 11: v is inf"]
    one(make, "event without a name", {"ph": "C", "pid": 7, "ts": 5, "args": {"v": 1}})


def test_device_times(make):
    def device(**args):
        return kernel("k", 3000, 4000, args=args)

    for args in (
        {},
        {"queued": 3000},
        {"submit": 3000},
        {"queued": 5, "submit": 5},
        {"queued": 0, "submit": 9},
    ):
        assert problems(make, with_normal(device(**args))) == []
    one(make, "device work queued after", device(queued=9, submit=8))
    one(make, "device work queued after", device(queued=3001))
    one(make, "device work submitted after", device(submit=3001))
    one(make, "device work submitted after", device(queued=9, submit=3001))
    one(make, "args.queued or args.submit that is no time", device(queued="1"))


def test_our_header(make):
    one(make, "baseTimeNanoseconds is not the start of a day", base=BASE + 1)
    one(make, "baseTimeNanoseconds is not the start of a day", base=None)
    one(make, "no otherData", other=None)
    text = text_of_trace(normal_events(1)).replace(
        '"displayTimeUnit":"ns"', '"displayTimeUnit":"ms"'
    )
    assert problems(make, text) == ["displayTimeUnit is not ns"]


def test_lost_records_are_a_note(make):
    path = make(normal_events(1), other={**OTHER, "lost": 12})
    report = check.inspect_trace(path, strict=True)
    assert report.problems == [] and report.events == 10
    assert report.notes == ["12 records were lost while tracing"]


def test_examples_are_few(make):
    line = one(make, "negative dur", *(slice_("a", 5, 4) for _ in range(10)))
    assert line.startswith("negative dur (10 times): event 11: ") and line.endswith("; …")
    assert line.count("event ") == 3


def test_order_of_events_does_not_matter(make):
    events = normal_events(5)
    dice = random.Random(3)
    for _ in range(10):
        dice.shuffle(events)
        assert problems(make, events) == []


# ---- the summary ----


def lines_of(make, events, **members):
    lines = summarize(make(events, **members))
    assert 0 < len(lines) <= 10
    for line in lines:
        assert cli.columns(line) <= 100 and line.isprintable()
    return lines


def starting(lines, word):
    found = [line for line in lines if line.startswith(word)]
    assert len(found) == 1, lines
    return found[0]


def test_summary_of_ours(make):
    copy = kernel(
        "clEnqueueWriteBuffer[4000]", 10**12 + 20_000, 10**12 + 22_000, args={"bytes": 4000}
    )
    lines = lines_of(make, normal_events(2) + [copy])
    assert lines[0].endswith("t.json: xstrace 0.1.0, host vm, pid 7")
    assert lines[1] == "command   ./app 3"
    assert lines[2] == "time      2026-11-21 00:16:40.000 UTC, wall span 22 us"
    assert lines[3] == "end       exited, status 0, nothing lost"
    assert lines[4] == "events    17: calls 4, tasks 2, kernels 2, copies 1, flow points 4, names 4"
    assert (
        lines[5] == "calls     clFinish 2x avg 6 us 67 %; clEnqueueNDRangeKernel 2x avg 3 us 33 %"
    )
    assert lines[6] == 'tasks     d::t"a\\s?\u2603k\U0001f600 2x avg 7 us 100 %'
    assert lines[7] == "kernels   GEMM[SIMD8 {1; 1; 1} {2; 2; 2}] 2x avg 3 us 100 %"
    assert lines[8] == "copies    clEnqueueWriteBuffer 1x 4 kB 2 GB/s"
    assert lines[9] == "devices   Fake GPU 3000 busy 36.4 %"
    assert len(lines) == 10


@pytest.mark.parametrize(
    "other, text",
    [
        ({"end": "exited", "status": 3}, "exited, status 3"),
        ({"end": "killed", "status": 9}, "killed by signal 9 (SIGKILL)"),
        ({"end": "killed", "status": 9999}, "killed by signal 9999"),
        ({"end": "exec"}, "exec"),
        ({"end": "running", "lost": 1234}, "running, RECORDS LOST: 1,234"),
        ({"threads": [{"tid": 5, "in_call": "clFinish"}, {"tid": 6}]}, "thread 5 was in clFinish"),
    ],
)
def test_summary_says_how_it_ended(make, other, text):
    assert starting(lines_of(make, normal_events(), other=other), "end") == "end       " + text


def test_summary_of_a_cut_file(make):
    lines = lines_of(make, text_of_trace(normal_events())[:-60])
    assert starting(lines, "end") == "end       THE FILE WAS CUT"


def test_summary_of_a_damaged_file(make):
    text = text_of_trace(normal_events()).replace("clFinish", "cl\tFinish")
    assert "DAMAGED PLACES IN THE FILE: 3" in starting(lines_of(make, text), "end")


def test_summary_of_a_trace_without_events(make):
    lines = lines_of(make, [])
    assert lines[-1] == "events    0" and "exited" in starting(lines, "end")


def test_summary_of_unitrace(make):
    device = """,
{"ph": "M", "name": "process_name", "pid": 4294699519, "ts": 1.0, "args": {"name": "DEVICE<vm>[AMD EPYC] 0:0:0:0"}},
{"ph": "X", "tid": 4294699519, "pid": 4294699519, "name": "GEMM[SIMD16 {64; 64; 1} {0; 0; 0}]", "cat": "gpu_op", "ts": 1795246672698000.000000, "dur": 100.000000, "args": {"id": "3"}},
{"ph": "X", "tid": 4294699519, "pid": 4294699519, "name": "zeCommandListAppendMemoryCopy(M2D)[16384]", "cat": "gpu_op", "ts": 1795246672698100.000000, "dur": 16.384000, "args": {"id": "4"}},
{"ph": "X", "tid": 8, "pid": 8, "name": "MPI::MPI_Send", "cat": "cpu_op", "ts": 1795246672698000.000000, "dur": 4.000000, "id": 0}
]"""
    lines = lines_of(make, UNITRACE.replace("\n]", device))
    assert lines[0].endswith("t.json: host vm, pid 8")
    assert starting(lines, "time") == "time      2026-11-21 07:37:52.697 UTC, wall span 1.14 ms"
    assert starting(lines, "calls") == "calls     MPI::MPI_Send 1x avg 4 us 100 %"
    assert starting(lines, "tasks").startswith("tasks     d::a 1x avg 1.13 ms 100 %; d::b 1x")
    assert (
        starting(lines, "copies")
        == "copies    zeCommandListAppendMemoryCopy(M2D) 1x 16.4 kB 1 GB/s"
    )
    assert starting(lines, "devices") == "devices   AMD EPYC busy 10.2 %"


def test_summary_of_kineto(make):
    lines = lines_of(make, KINETO)
    assert lines[0].endswith("t.json: Kineto, rank 3")
    assert starting(lines, "calls") == "calls     cudaLaunchKernel 1x avg 5 us 100 %"
    assert starting(lines, "tasks") == "tasks     aten::mm 1x avg 50.5 us 100 %"
    assert starting(lines, "kernels") == "kernels   void gemm<float, 4>(float*) 1x avg 20 us 100 %"
    assert starting(lines, "copies") == "copies    Memcpy HtoD (Pinned -> Device) 1x 40 kB 4 GB/s"
    assert starting(lines, "devices") == "devices   GPU 0 busy 30.0 %"


def test_summary_of_cliloader(make):
    lines = lines_of(make, CLILOADER)
    assert starting(lines, "calls").startswith(
        "calls     clGetPlatformIDs 1x avg 150 ns 79 %; clFinish 1x"
    )


def test_device_is_busy_once_where_work_overlaps(make):
    events = NAMES + [kernel("a", 0, 600), kernel("b", 500, 700, tid=2), slice_("c", 0, 1000)]
    assert starting(lines_of(make, events), "devices") == "devices   Fake GPU 3000 busy 70.0 %"


def test_summary_has_room_for_any_name(make):
    """Wide characters, escape sequences, newlines, no end of them."""
    events = list(NAMES)
    for n, name in enumerate(
        ["\u6f22\u5b57" * 60, "\x1b[31mred" * 30, "a\nb\rc\u2028" * 30, "x" * 500 + "1"]
    ):
        t = n * 10_000
        events += [
            slice_("d::" + name, t, t + 900),
            slice_(name, t, t + 1000),
            kernel(name, t, t + 1000),
        ]
        events += [kernel(name + "[77]", t + 1000, t + 2000, args={"bytes": 77})]
        events += [slice_(name, t, t + 10, pid=DEVICE + 1 + n, cat="gpu_op")]
        events += [named("process_name", f"DEVICE<vm>[{name}]", DEVICE + 1 + n)]
    other = {"end": "x" * 300, "threads": [{"in_call": "y" * 300}]}
    lines = lines_of(
        make,
        events,
        metadata={**METADATA, "command": ["\u6f22\n" * 99], "host": "h" * 200},
        other=other,
    )
    assert len(lines) == 10
    assert "; " in starting(lines, "kernels") and "more" in starting(lines, "kernels")


def test_names_that_differ_at_their_ends_stay_different(make):
    events = [
        slice_(f"some_domain::a_very_long_name_of_a_task_{n}", n * 10, n * 10 + 5) for n in range(2)
    ]
    line = starting(lines_of(make, events), "tasks")
    assert "task_0 1x" in line and "task_1 1x" in line


@pytest.mark.parametrize(
    "text, width, clipped",
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("\u6f22\u5b57\u6f22", 6, "\u6f22\u5b57\u6f22"),
        ("\u6f22\u5b57\u6f22", 5, "\u6f22\u5b57…"),
        ("\u6f22\u5b57\u6f22", 4, "\u6f22…"),
        ("ab", 1, "…"),
    ],
)
def test_clip(text, width, clipped):
    assert cli.clip(text, width) == clipped
    for room in range(9, 12):
        assert cli.columns(cli.clip_middle(text * 9, room)) <= room


# ---- the commands ----


def run(command, *args, **more):
    return subprocess.run(
        [str(command), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
        **more,
    )




def test_check_command(make, tmp_path):
    good = make(normal_events(1), "good.json")
    bad = make(with_normal(slice_("a", 9, 5)), "bad.json")
    done = run(CHECK, good)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{good}: 10 events, ok\n", "")
    done = run(CHECK, good, bad)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{good}: 10 events, ok",
        f"{bad}: negative dur: event 11: -0.004 us",
        f"{bad}: 11 events, 1 problem",
    ]
    done = run(CHECK, tmp_path / "none.json", bad, good)
    assert done.returncode == 2
    assert done.stderr == f"xstrace-check: {tmp_path}/none.json: No such file or directory\n"
    assert done.stdout.endswith(f"{good}: 10 events, ok\n")
    assert run(CHECK).returncode == 2


def test_check_command_strict_and_notes(make):
    cut = make(text_of_trace(normal_events(1))[:-40])
    done = run(CHECK, cut)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{cut}: note: the file was cut; what may have stood behind the cut is not missed",
        f"{cut}: 10 events, ok",
    ]
    done = run(CHECK, "--strict", cut)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"{cut}: the file was cut", f"{cut}: 10 events, 1 problem"]


def test_summary_command(make, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    path = make(normal_events(1))
    done = run(SUMMARY, path)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.splitlines() == summarize(str(path))
    other = make(normal_events(2), "u.json")
    done = run(SUMMARY, path, tmp_path / "none", other)
    assert done.returncode == 2
    assert done.stdout == "\n".join(summarize(str(path)) + [""] + summarize(str(other))) + "\n"
    assert done.stderr == f"xstrace-summary: {tmp_path}/none: No such file or directory\n"


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_unusable_input_is_one_line(make, tmp_path, command):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", make("hello"), make("{}", "\n\x1b[31m.json")):
        done = run(command, path)
        assert done.returncode == 2 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and done.stderr[:-1].isprintable()


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_output_in_any_locale(make, command):
    text = text_of_trace(normal_events(1) + [slice_("@", 10, 12), slice_("\u2603", 11, 13)])
    done = run(
        command, make(text.replace("@", "\\ud800")), env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode in (0, 1) and done.stderr == "" and done.stdout.isascii()


def install(tree, package):
    shutil.copytree(SCRIPTS.parent / "python/xstrace", package / "xstrace")
    (tree / "bin").mkdir(exist_ok=True)
    for command in (CHECK, SUMMARY):
        shutil.copy(command, tree / "bin")


@pytest.mark.parametrize("place", ["bin", "share/xstrace"])
def test_installed_tree(make, tmp_path, place):
    tree = tmp_path / "tree"
    install(tree, tree / place)
    if place != "bin":
        (tree / "bin" / "xstrace").write_text("the launcher has this name")
    (tmp_path / "link").symlink_to(tree / "bin" / "xstrace-check")
    path = make(normal_events(1))
    for command in (tree / "bin" / "xstrace-check", tmp_path / "link"):
        done = run(command, path, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
    assert run(tree / "bin" / "xstrace-summary", path).returncode == 0


def test_entry_points():
    text = (SCRIPTS.parent / "pyproject.toml").read_text()
    found = re.findall(r'^"?([\w.-]+)"? = "xstrace\.commands:(\w+)"$', text, re.MULTILINE)
    own = [(f"xstrace-{name}", name) for name in ("check", "diff", "path", "query", "report", "summary")]
    theirs = [("analyzeperfmetrics.py", "analyze"), ("roofline.py", "roofline"), ("uniview.py", "view")]
    assert sorted(found) == sorted([*own, *theirs, ("xstrace-open", "opener")])  # xstrace.open is a function
    assert callable(check.main) and callable(summary.main) and Trace is trace.Trace


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_broken_pipe_is_quiet(make, command):
    path = make(normal_events(1))
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([command, path], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_interrupt_is_quiet(tmp_path, command):
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [command, fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        with open(fifo, "wb"):  # returns when the command has opened it
            process.send_signal(signal.SIGINT)
            assert process.stdout.read() == b""
    assert process.returncode == -signal.SIGINT


def test_a_pipe_can_be_read(tmp_path):
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with subprocess.Popen([CHECK, fifo], stdout=subprocess.PIPE) as process:
        fifo.write_text(text_of_trace(normal_events(1)))
        assert process.stdout.read().decode() == f"{fifo}: 10 events, ok\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", [CHECK, SUMMARY])
def test_full_disk(make, command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [command, make(normal_events(1))], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr.decode() == f"{command.name}: cannot write: No space left on device\n"


def test_closed_stdout(make):
    done = subprocess.run(["sh", "-c", '"$0" "$1" >&-', str(CHECK), str(make(normal_events(1)))])
    assert done.returncode == 0
