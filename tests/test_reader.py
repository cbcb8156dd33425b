"""xstrace.trace, the reader: layouts, times, compression, and files that were cut."""

import gzip
import json
import tracemalloc

import pytest

from made import (
    BASE,
    CLILOADER,
    KINETO,
    METADATA,
    NAMES,
    OTHER,
    UNITRACE,
    needs_zstd,
    normal_events,
    read,
    text_of_trace,
    zstd_frames,
)
from xstrace import TraceError, check_trace, open_trace, source, trace

# ---- layout and header ----


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


# ---- times ----


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


# ---- files that were cut ----


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


@pytest.mark.long(keep=1)
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


# ---- compression ----


@pytest.mark.long(keep=1)
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
