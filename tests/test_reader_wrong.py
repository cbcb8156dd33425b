"""Files that are no traces, that are damaged, or that ask for too much: one line, or what can be read of them."""

import gzip
import json
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from made import (
    CHECK,
    CLILOADER,
    DEVICE,
    KINETO,
    METADATA,
    NAMES,
    OTHER,
    SUMMARY,
    UNITRACE,
    flow,
    kernel,
    needs_zstd,
    normal_events,
    read,
    run,
    slice_,
    text_of,
    text_of_trace,
    without_zstandard,
    zstd_frames,
)
from memory import run_for_peak, wide_frame
from xstrace import TraceError, check, check_trace, open_trace, source, summarize, trace

# ---- files that are wrong ----


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


@pytest.mark.long
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


@pytest.mark.long(keep=8)
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


@pytest.mark.parametrize("magic", [bytes(4), b"abcd"], ids=["zeros", "junk"])
def test_a_frame_whose_beginning_is_damaged(make, zstd_reader, magic):
    """It is no end of the file, whoever decompresses: what follows is missing."""
    zstandard = pytest.importorskip("zstandard")
    text = text_of_trace(normal_events(300)).encode()
    frames = [zstandard.compress(text[at : at + len(text) // 3 + 1]) for at in range(0, len(text), len(text) // 3 + 1)]
    path = make(frames[0] + magic + frames[1][4:] + frames[2], "w.json.zst")
    hidden = {"PYTHONPATH": str(without_zstandard(path.parent))} if zstd_reader == "command" else {}
    for command in (CHECK, SUMMARY):
        done = run(command, path, env=os.environ | hidden)
        assert done.returncode == 1 and "damaged" in done.stdout.lower(), done


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_is_read_once_whatever_it_is_called(make, link):
    path = make(text_of_trace(normal_events(3)))
    link(path, path.parent / "other.json")
    done = run(CHECK, "--json", path.parent)
    assert len(json.loads(done.stdout)) == 1, done
    done = run(CHECK.parent / "mergetrace.py", "--statistics", "-", path.parent)
    assert len(json.loads(done.stdout[: done.stdout.rindex("}") + 1])["traces"]) == 1, done


@pytest.mark.parametrize("what,status", [(b"\0\0\0\0", 1), (b"\x50\x2a\x4d\x18", 0)], ids=["no frame", "skipped"])
def test_what_a_frame_says_of_its_size_takes_no_memory(make, what, status):
    """Four gigabytes, of which the file has nothing: damage, or the end of it; all before is read."""
    zstandard = pytest.importorskip("zstandard")
    path = make(zstandard.compress(text_of_trace(normal_events(300)).encode()) + what + b"\xff\xff\xff\xff" + bytes(100), "w.json.zst")
    for command in (CHECK, SUMMARY):
        done = run(command, "--memory-limit", "64M", path)
        assert done.returncode == status and ("damaged" in done.stdout.lower()) == status and not done.stderr, done


@pytest.mark.parametrize("script", ["report", "diff", "path"])
def test_damaged_compressed_data_is_something_left_out(make, script):
    """Their status and a line say so, as they do of a line that is no JSON."""
    pytest.importorskip("duckdb")
    zstandard = pytest.importorskip("zstandard")
    text = text_of_trace(normal_events(300)).encode()
    path = make(zstandard.compress(text[: len(text) // 2]) + bytes(100), "w.json.zst")
    command = CHECK.parent / f"xstrace-{script}"
    words = {"report": ["-o", path.parent / "out.html", path], "diff": ["--no-cache", path, path], "path": [path]}[script]
    done = run(command, *words)
    assert done.returncode == 1 and "damaged compressed data" in done.stderr, done


@pytest.mark.parametrize("base", ['"1700000000000000000"', "1.7e18", "-5", str(2**61)])
def test_a_base_that_is_no_time_is_told(make, base):
    """By all that say when something was: its events count as if there were none."""
    pytest.importorskip("duckdb")
    path = make('{"baseTimeNanoseconds":%s,"traceEvents":[%s]}' % (base, ",\n".join(map(text_of, normal_events(3)))), "w.json")
    for command in ([SUMMARY], [CHECK.parent / "mergetrace.py", "--statistics", "-"], [CHECK.parent / "xstrace-path", "--json"]):
        done = run(*command, path)
        assert done.returncode == 1 and "basetimenanoseconds is no time" in (done.stdout + done.stderr).lower(), done
    done = run(CHECK.parent / "xstrace-query", "--json", "--no-cache", path, "select base_ns, left_out from traces")
    assert done.returncode == 1 and "baseTimeNanoseconds is no time" in done.stderr
    assert json.loads(done.stdout) == [{"base_ns": 0, "left_out": 1}]
    path.write_text(path.read_text().replace(base, "null", 1))
    done = run(CHECK.parent / "xstrace-query", "--json", "--no-cache", path, "select base_ns, left_out from traces")
    assert (done.returncode, done.stderr, json.loads(done.stdout)) == (0, "", [{"base_ns": 0, "left_out": 0}])
    assert run(CHECK.parent / "mergetrace.py", "-o", path.parent / "all.json", path).returncode == 0


# ---- zstd windows ----


@pytest.mark.long
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


@pytest.mark.long(keep=1)
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
    assert done.returncode == (2 if where == "before" else 1)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("behind", [b"a" * (1 << 20), b"\0" * (1 << 20), b"\n" + b" " * ((1 << 20) - 1)], ids=["text", "zeros", "blanks"])
@pytest.mark.parametrize("more", [[], ["--repair", "-o"]], ids=["check", "repair"])
def test_what_follows_a_damaged_event_is_not_kept(make, behind, more):
    packer = zlib.compressobj(1, wbits=31)
    text = '{"traceEvents":[\n%s,\n{"ph":x' % json.dumps(normal_events(1)[0])
    parts = [packer.compress(text.encode()), *(packer.compress(behind) for _ in range(300)), packer.compress(b"\n "), packer.compress(b" " * (1 << 20))]
    path = make(b"".join([*parts, packer.compress(b"\n" + json.dumps(normal_events(2)[1]).encode() + b"]}"), packer.flush()]), "w.json.gz")
    done = run_for_peak(path.parent, [CHECK, *more, *([path.parent / "good.json"] if more else []), path])
    assert "line 3: Expecting value" in done.stdout and f": 2 events, {'ok' if more else '1 problem'}" in done.stdout
    assert done.peak < 100_000


@pytest.mark.long
def test_a_small_gzip_file_does_not_take_a_lot(make):
    path = make(gzip.compress(text_of_trace(normal_events(1)).encode() + b" " * (300 << 20)), "w.json.gz")
    done = run_for_peak(path.parent, [CHECK, path])
    assert done.returncode == 0 and done.peak < 60_000


@pytest.mark.parametrize("value", ["0", "1", "-1", "4G", "8X", "", "1" * 50])
def test_bad_zstd_window(make, value):
    for command in (CHECK, SUMMARY):
        done = run(command, f"--zstd-window={value}", make(normal_events(1)))
        assert done.returncode == 2 and "--zstd-window" in done.stderr
